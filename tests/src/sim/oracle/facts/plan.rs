//! The conversation's plan as its calls and the ends of runs make it (S6.10, S8.4): a second, plainer reading of the
//! same rules.

use agentd_core::id::Handle;
use agentd_core::limits::PLAN_ITEMS;
use serde_json::{Map, Value, json};

/// A plan as it is shown.
pub(in crate::sim::oracle) struct PlanSeen {
    goal: Value,
    items: Vec<Map<String, Value>>,
}

impl PlanSeen {
    /// What `plan.create` with these arguments makes; `None` where it is refused.
    pub(in crate::sim::oracle) fn create(args: &Value) -> Option<PlanSeen> {
        let asked = args["items"].as_array().filter(|items| (1..=PLAN_ITEMS).contains(&items.len()))?;
        let item = |(number, asked): (u64, &Value)| {
            let mut item = Map::new();
            item.insert("item".into(), number.into());
            item.insert("title".into(), asked["title"].clone());
            item.insert("status".into(), "pending".into());
            item
        };
        Some(PlanSeen { goal: args["goal"].clone(), items: (1..).zip(asked).map(item).collect() })
    }

    /// As it is shown.
    pub(in crate::sim::oracle) fn shown(&self) -> Value {
        json!({"goal": self.goal, "items": self.items})
    }

    /// An item.
    pub(in crate::sim::oracle) fn item(&mut self, number: u64) -> Option<&mut Map<String, Value>> {
        self.items.iter_mut().find(|item| item["item"] == number)
    }

    /// What `plan.update` does.
    pub(in crate::sim::oracle) fn update(&mut self, args: &Value) {
        let Some(item) = args["item"].as_u64().and_then(|number| self.item(number)) else { return };
        if let Some(handle) = args["bind"].as_str() {
            item.insert("bind".into(), handle.into());
            if item["status"] == "pending" {
                item.insert("status".into(), "in_progress".into());
            }
        }
        if let Some(status) = args["status"].as_str() {
            item.insert("status".into(), status.into());
        }
    }

    /// A run has ended, well or for this cause.
    pub(in crate::sim::oracle) fn settle(&mut self, handle: Handle, cause: Option<&str>) {
        let name = handle.to_string();
        for item in self.items.iter_mut().filter(|item| item.get("bind") == Some(&json!(name))) {
            if item["status"] == "done" || item["status"] == "skipped" {
                continue;
            }
            let status = if cause.is_none() { "done" } else { "blocked" };
            item.insert("status".into(), status.into());
            if let Some(cause) = cause {
                item.insert("note".into(), cause.into());
            }
        }
    }
}
