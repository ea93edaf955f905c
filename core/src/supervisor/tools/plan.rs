//! The conversation's other tools: `plan.create`, `plan.get`, `plan.update` and `status` (S6.10).

use super::{Call, accept_only, arguments};
use crate::action::Actions;
use crate::error::Refusal;
use crate::id::NodeId;
use crate::plan::{Change, ItemStatus, Plan};
use crate::snapshot::StoreView;
use crate::supervisor::keeping::Shelf;
use crate::supervisor::{Core, ms};
use crate::time::Duration;
use serde_json::{Map, Value, json};

impl Core {
    pub(super) fn plan_create(&mut self, call: &Call<'_>, out: &mut Actions) -> Result<(), Refusal> {
        let Call { node, id, args } = *call;
        accept_only(args, &["goal", "items"])?;
        let goal = required_text(args, "goal")?;
        let items = match args.get("items") {
            Some(Value::Array(items)) => items,
            Some(_) | None => return Err(arguments("items: accepted is a list of {title, detail}".into())),
        };
        let items = items.iter().enumerate().map(|(i, item)| plan_item(i, item)).collect::<Result<_, _>>()?;
        let plan = Plan::new(goal, items).map_err(|problems| arguments(problems.join("; ")))?;
        let value = self.plan.insert(plan);
        let value = json!(value);
        self.mark(Shelf::Plan);
        self.answer(node, id, false, &value, out);
        Ok(())
    }

    pub(super) fn plan_get(&mut self, call: &Call<'_>, out: &mut Actions) -> Result<(), Refusal> {
        let Call { node, id, args } = *call;
        accept_only(args, &[])?;
        let value = json!(self.plan.as_ref().ok_or_else(no_plan)?);
        self.answer(node, id, false, &value, out);
        Ok(())
    }

    pub(super) fn plan_update(&mut self, call: &Call<'_>, out: &mut Actions) -> Result<(), Refusal> {
        let Call { node, id, args } = *call;
        accept_only(args, &["item", "status", "title", "detail", "note", "bind"])?;
        let item = args
            .get("item")
            .and_then(Value::as_u64)
            .and_then(|n| u32::try_from(n).ok())
            .ok_or_else(|| arguments("item: accepted is an item's number".into()))?;
        let bound = match args.get("bind") {
            None | Some(Value::Null) => None,
            Some(Value::String(handle)) => Some(self.owned(node, handle)?),
            Some(_) => return Err(arguments("bind: accepted is a handle such as sub-7".into())),
        };
        let change = Change {
            status: item_status(args)?,
            title: optional_text(args, "title")?,
            detail: optional_text(args, "detail")?,
            note: optional_text(args, "note")?,
            bind: bound.and_then(|of| self.runs.get(&of)).and_then(|run| run.record.handle),
        };
        let plan = self.plan.as_mut().ok_or_else(no_plan)?;
        plan.update(item, change).map_err(|problems| arguments(problems.join("; ")))?;
        self.mark(Shelf::Plan);
        // One that is bound to a run which is over already settles now.
        if let Some(of) = bound.filter(|of| self.final_object(*of).is_some()) {
            self.settle_plan(of);
        }
        let item = self.plan.as_ref().and_then(|plan| plan.items.iter().find(|i| i.item == item));
        let value = json!(item);
        self.answer(node, id, false, &value, out);
        Ok(())
    }

    pub(super) fn overview(&mut self, call: &Call<'_>, out: &mut Actions) -> Result<(), Refusal> {
        let Call { node, id, args } = *call;
        accept_only(args, &[])?;
        let live =
            self.by_handle.values().filter(|n| self.runs.get(n).is_some_and(|r| !r.outcome.is_decided()));
        let runs: Vec<Value> = live.map(|n| self.doing_of(*n)).collect();
        let (ended, completed) = self.ended_count;
        let mut value = json!({
            "runs": runs,
            "ended": { "all": ended, "completed": completed },
            "plan": self.plan,
            "budget": self.budget_of(node),
        });
        if let StoreView::Down { error, .. } = self.store_view() {
            value["store"] = json!({ "down": error });
        }
        self.answer(node, id, false, &value, out);
        Ok(())
    }

    /// What the turn in hand has left, and of the budgets that it draws on.
    fn budget_of(&self, node: NodeId) -> Value {
        let limits = &self.config.run;
        let mut value = json!({
            "spawns_left": self.admission.spawns_left(self.now.mono),
            "live": self.admission.permits_out(),
            "breadth": self.config.subagents.breadth,
        });
        if let (Some(turn), Some(run)) = (self.conversation.turn_of(node), self.runs.get(&node)) {
            let used = run.record.usage.both().saturating_sub(turn.used_before);
            let took = self.now.mono.since(turn.since);
            let left = Duration::from_millis(limits.deadline_ms).saturating_sub(took);
            value["tokens_left"] = limits.tokens.saturating_sub(used).into();
            value["deadline_left_ms"] = ms(left).into();
        }
        let left = self.ledger.left(node, self.now.wall);
        if !left.is_empty() {
            value["left"] = json!(left);
        }
        value
    }
}

fn plan_item(at: usize, item: &Value) -> Result<(String, Option<String>), Refusal> {
    let named = |problem: Refusal| Refusal { message: format!("items[{at}].{}", problem.message), ..problem };
    let accepted = || arguments(format!("items[{at}]: accepted is {{title, detail}}"));
    let object = item.as_object().ok_or_else(accepted)?;
    accept_only(object, &["title", "detail"]).map_err(named)?;
    Ok((required_text(object, "title").map_err(named)?, optional_text(object, "detail").map_err(named)?))
}

fn item_status(args: &Map<String, Value>) -> Result<Option<ItemStatus>, Refusal> {
    let names: Vec<&str> = ItemStatus::ALL.iter().map(|(name, _)| *name).collect();
    let wrong = || arguments(format!("status: accepted are {}", names.join(", ")));
    match args.get("status") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => ItemStatus::named(name).map(Some).ok_or_else(wrong),
        Some(_) => Err(wrong()),
    }
}

fn required_text(args: &Map<String, Value>, key: &str) -> Result<String, Refusal> {
    optional_text(args, key)?.ok_or_else(|| arguments(format!("{key}: it is missing")))
}

fn optional_text(args: &Map<String, Value>, key: &str) -> Result<Option<String>, Refusal> {
    match args.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(arguments(format!("{key}: accepted is a string"))),
    }
}

fn no_plan() -> Refusal {
    Refusal {
        gate: "plan".into(),
        message: "there is no plan".into(),
        limit: None,
        observed: None,
        hint: "plan_create makes one".into(),
    }
}
