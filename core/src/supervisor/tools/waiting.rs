//! `subagent.await`: one handle or many, any or all, and a timeout that is kept.

use super::{Call, accept_only, arguments};
use crate::action::Actions;
use crate::bytes::Json;
use crate::error::Refusal;
use crate::id::NodeId;
use crate::limits;
use crate::run::warm::Known;
use crate::run::{Request, Run, Waiter};
use crate::supervisor::Core;
use crate::time::Duration;
use crate::units;
use serde_json::{Map, Value, json};

impl Core {
    pub(super) fn subagent_await(&mut self, call: &Call<'_>, out: &mut Actions) -> Result<(), Refusal> {
        let Call { node, id, args } = *call;
        let Asked { handles, single, any, timeout, message } = Asked::read(args)?;
        let nodes = handles.iter().map(|h| self.owned(node, h)).collect::<Result<Vec<_>, _>>()?;
        if let Some(above) = nodes.iter().find(|n| self.subtree(**n).contains(&node)) {
            return Err(self.waits_for_itself(*above));
        }
        if let (Some(message), [of]) = (message, nodes.as_slice()) {
            return self.await_turn(node, id, *of, message, timeout, out);
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
        self.open_request(node, id, Request::Await { nodes, any, single, until });
        // A timeout of zero is over now.
        self.give_up_awaits(node, out);
        Ok(())
    }

    /// Waits for one turn of a warm run.
    fn await_turn(
        &mut self,
        node: NodeId,
        id: u64,
        of: NodeId,
        message: u64,
        timeout: Option<Duration>,
        out: &mut Actions,
    ) -> Result<(), Refusal> {
        if self.runs.get(&of).is_none_or(|run| run.warm.is_none()) {
            return Err(arguments("message_id: only a warm run has turns; leave it out".into()));
        }
        let until = timeout.map(|t| self.now.mono + t);
        if let Some(run) = self.run(of) {
            run.waiters.push(Waiter { node, request: id });
        }
        self.open_request(node, id, Request::Turn { node: of, message, until });
        self.tell(node, id, out);
        self.give_up_awaits(node, out);
        Ok(())
    }

    /// What a turn gave, or that it never will give anything; `None` while it is to come.
    pub(in crate::supervisor) fn turn_result(&self, node: NodeId, message: u64) -> Option<(bool, Json)> {
        let run = self.runs.get(&node)?;
        let warm = run.warm.as_ref()?;
        match warm.known(message) {
            Known::Ended(object) => return Some((false, object.clone())),
            // Its turn may end with the run: the outcome tells, once it is final.
            Known::Coming if self.final_object(node).is_none() => return None,
            Known::Coming | Known::Not => {}
        }
        let handle = run.record.handle.map(|h| h.to_string()).unwrap_or_default();
        let status = run.record.status.name();
        let how =
            if run.outcome.is_decided() { format!(", which has ended as {status}") } else { String::new() };
        let why = match run.last_text {
            last if message > last => format!("there is no such message yet; the last is {last}"),
            _ => "it had no turn, or its result is no longer kept".to_owned(),
        };
        let message = format!("no result of message {message} of {handle}{how}: {why}");
        Some((true, Json::of(&json!({ "error": { "gate": "message", "message": message } }))))
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
        for request in self.overdue(node) {
            let asked = self.asked_by(Waiter { node, request });
            if let Some(Request::Turn { node: of, message, .. }) = asked {
                let (of, message) = (*of, *message);
                let mut value = self.runs.get(&of).map_or(Value::Null, Run::unfinished);
                value["message_id"] = message.into();
                value["timed_out"] = true.into();
                self.answer(node, request, false, &value, out);
                self.wait_no_longer(&[of], Waiter { node, request });
                continue;
            }
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
    /// One turn of a warm run.
    message: Option<u64>,
}

impl Asked {
    fn read(args: &Map<String, Value>) -> Result<Asked, Refusal> {
        accept_only(args, &["handle", "handles", "until", "timeout", "message_id"])?;
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
        let single = args.contains_key("handle");
        let message = match args.get("message_id") {
            None | Some(Value::Null) => None,
            Some(value) => match value.as_u64().filter(|_| single) {
                Some(message) => Some(message),
                None => {
                    return Err(arguments(
                        "message_id: accepted is a message's number, beside `handle`".into(),
                    ));
                }
            },
        };
        Ok(Asked { handles: handles(args)?, single, any, timeout, message })
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
