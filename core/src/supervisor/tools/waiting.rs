//! `subagent.await`: one handle or many, any or all, and a timeout that is kept.

use super::{accept_only, arguments};
use crate::action::Actions;
use crate::bytes::Json;
use crate::error::Refusal;
use crate::id::NodeId;
use crate::limits;
use crate::run::{Request, Run, Waiter};
use crate::supervisor::Core;
use crate::time::Duration;
use crate::units;
use serde_json::{Map, Value, json};

impl Core {
    pub(super) fn subagent_await(
        &mut self,
        node: NodeId,
        id: u64,
        args: &Map<String, Value>,
        out: &mut Actions,
    ) -> Result<(), Refusal> {
        let Asked { handles, single, any, timeout } = Asked::read(args)?;
        let nodes = handles.iter().map(|h| self.owned(node, h)).collect::<Result<Vec<_>, _>>()?;
        if let Some(above) = nodes.iter().find(|n| self.subtree(**n).contains(&node)) {
            return Err(self.waits_for_itself(*above));
        }
        if let Some(value) = self.awaited(&nodes, any, single, false) {
            self.answer_json(node, id, false, value, out);
            return Ok(());
        }
        for waited in &nodes {
            if let Some(run) = self.run(*waited) {
                run.waiters.push(Waiter { node, request: id });
            }
        }
        let until = timeout.map(|t| self.now.mono + t);
        if let Some(run) = self.run(node) {
            run.requests.insert(id, Request::Await { nodes, any, single, until });
        }
        // A timeout of zero is over now.
        self.give_up_awaits(node, out);
        Ok(())
    }

    /// A run that awaits itself, or a run it is below, would wait for its own end.
    fn waits_for_itself(&self, above: NodeId) -> Refusal {
        let handle =
            self.runs.get(&above).and_then(|r| r.record.handle).map(|h| h.to_string()).unwrap_or_default();
        Refusal {
            gate: "handle".into(),
            message: format!("{handle} is this run or one that delegated it; awaiting it would never end"),
            limit: None,
            observed: None,
            hint: "answer with your result instead: it is handed up".into(),
        }
    }

    /// The answer of an await, if its condition holds or its time is up.
    pub(in crate::supervisor) fn awaited(
        &self,
        nodes: &[NodeId],
        any: bool,
        single: bool,
        timed_out: bool,
    ) -> Option<Json> {
        let objects: Vec<Option<Json>> = nodes.iter().map(|n| self.final_object(*n)).collect();
        let done = objects.iter().filter(|o| o.is_some()).count();
        let holds = if any { done > 0 } else { done == nodes.len() };
        if !holds && !timed_out {
            return None;
        }
        if single && let Some(Some(object)) = objects.first() {
            // The very bytes that every other reader of this run gets.
            return Some(object.clone());
        }
        let timed_out = timed_out && !holds;
        let mut values: Vec<Value> = Vec::new();
        for (node, object) in nodes.iter().zip(&objects) {
            let value = match object {
                Some(json) => json.parse().unwrap_or(Value::Null),
                None => self.runs.get(node).map_or(Value::Null, Run::unfinished),
            };
            values.push(value);
        }
        if single {
            let mut value = values.pop().unwrap_or(Value::Null);
            value["timed_out"] = timed_out.into();
            return Some(Json::of(&value));
        }
        Some(Json::of(&json!({ "results": values, "timed_out": timed_out })))
    }

    /// Awaits of this run whose time is up.
    pub(in crate::supervisor) fn give_up_awaits(&mut self, node: NodeId, out: &mut Actions) {
        let now = self.now.mono;
        let Some(run) = self.runs.get(&node) else { return };
        let over: Vec<u64> = run
            .requests
            .iter()
            .filter(|(_, r)| matches!(r, Request::Await { until: Some(at), .. } if *at <= now))
            .map(|(id, _)| *id)
            .collect();
        for request in over {
            let asked = self.runs.get(&node).and_then(|run| run.requests.get(&request));
            let Some(Request::Await { nodes, any, single, .. }) = asked else { continue };
            let (any, single) = (*any, *single);
            let nodes = nodes.clone();
            if let Some(value) = self.awaited(&nodes, any, single, true) {
                self.answer_json(node, request, false, value, out);
            }
            self.wait_no_longer(&nodes, Waiter { node, request });
        }
    }

    /// An await that was answered leaves no mark, however often it is repeated.
    pub(in crate::supervisor) fn wait_no_longer(&mut self, nodes: &[NodeId], waiter: Waiter) {
        for node in nodes {
            if let Some(run) = self.run(*node) {
                run.waiters.retain(|w| *w != waiter);
            }
        }
    }
}

/// The arguments of one await.
struct Asked {
    handles: Vec<String>,
    /// Asked with `handle` and not `handles`.
    single: bool,
    any: bool,
    timeout: Option<Duration>,
}

impl Asked {
    fn read(args: &Map<String, Value>) -> Result<Asked, Refusal> {
        accept_only(args, &["handle", "handles", "until", "timeout"])?;
        let any = match args.get("until").map(Value::as_str) {
            None | Some(Some("all")) => false,
            Some(Some("any")) => true,
            Some(_) => return Err(arguments("until: accepted are any and all".into())),
        };
        let timeout = match args.get("timeout") {
            None => None,
            Some(v) => Some(
                v.as_str()
                    .and_then(|s| units::duration(s).ok())
                    .ok_or_else(|| arguments(format!("timeout: accepted is {}", units::DURATIONS)))?,
            ),
        };
        Ok(Asked { handles: handles(args)?, single: args.contains_key("handle"), any, timeout })
    }
}

fn handles(args: &Map<String, Value>) -> Result<Vec<String>, Refusal> {
    match (args.get("handle"), args.get("handles")) {
        (Some(Value::String(one)), None) => Ok(vec![one.clone()]),
        (None, Some(Value::Array(many))) if (1..=limits::AWAIT_HANDLES).contains(&many.len()) => many
            .iter()
            .map(|v| v.as_str().map(str::to_owned))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| arguments("handles: accepted is a list of handles such as sub-7".into())),
        _ => Err(arguments(format!(
            "accepted is `handle` (such as sub-7) or `handles` (a list of 1 to {})",
            limits::AWAIT_HANDLES
        ))),
    }
}
