//! Operators' commands: the supervisor's own tools as a model has them, and what only a person wants to know or do.
//!
//! `ps {all}`, `show {handle}`, `logs {handle, lines, after, wait}`, `drain {}` and `reload {}` are here alone; every other name is a tool's and is
//! called as an embedding program calls it.

use super::super::tools::{accept_only, arguments, handle_arg, list};
use super::super::{Core, catalogue};
use super::{CALLS_FROM, Wait};
use crate::a2a;
use crate::action::Actions;
use crate::bytes::Json;
use crate::error::Refusal;
use crate::http::Response;
use crate::id::{ConnId, NodeId};
use crate::json;
use crate::limits;
use crate::run::process::Process;
use crate::run::{Outcome, Request};
use crate::wire::message::Role;
use serde_json::{Map, Value, json};

/// Commands that are no tools.
const OWN: [&str; 5] = ["ps", "show", "logs", "drain", RELOAD];

/// Answered once the configuration was read.
const RELOAD: &str = "reload";

/// The name that stands for the conversation where a handle is asked for.
pub(super) const ROOT: &str = "root";

impl Core {
    /// One command of a connection.
    pub(super) fn op(&mut self, conn: ConnId, rpc: &Value, op: &str, args: &Json, out: &mut Actions) {
        if OWN.contains(&op) {
            let done = match op {
                RELOAD => self.reload_op(conn, rpc, args, out).map(|()| None),
                _ => self.own_op(conn, rpc, op, args, out),
            };
            let (error, value) = match done {
                Ok(Some(value)) => (false, value),
                Ok(None) => return,
                Err(refusal) => (true, json!({ "error": refusal })),
            };
            let result = self.op_result(op, error, value);
            return self.answer_call(conn, rpc, &result, out);
        }
        if !catalogue::is_operators(op) {
            let seen = json::preview(op, limits::PREVIEW_BYTES);
            let all: Vec<&str> = OWN.into_iter().chain(catalogue::OPERATORS).collect();
            let refusal = arguments(format!("op: unknown {seen}; accepted are {}", list(&all)));
            let result = self.op_result(op, true, json!({ "error": refusal }));
            return self.answer_call(conn, rpc, &result, out);
        }
        // That a kill's answer waits until the process is gone is the connection's wish and no argument of the tool.
        let (gone, args) = take_gone(op, args);
        self.surface.last_call += 1;
        let call = CALLS_FROM + self.surface.last_call;
        self.surface.calls.insert(call, conn);
        let wait = Wait::Call { call, rpc: rpc.clone(), op: op.to_owned(), gone };
        self.surface.waits.insert(conn, wait);
        self.operator_called(call, op, &args, out);
    }

    /// A command has its answer.
    pub(super) fn op_answered(&mut self, conn: ConnId, error: bool, value: &Json, out: &mut Actions) {
        let Some(Wait::Call { rpc, op, gone, .. }) = self.surface.waits.remove(&conn) else { return };
        if gone
            && !error
            && let Some(node) = self.not_gone(value)
        {
            let wait = Wait::Gone { node, rpc, op, value: value.clone() };
            self.surface.waits.insert(conn, wait);
            return;
        }
        self.answer_op(conn, &rpc, &op, error, value, out);
    }

    /// The run that an answer is of, while it has a process.
    fn not_gone(&self, value: &Json) -> Option<NodeId> {
        let value = value.parse().ok()?;
        let handle = value.get("handle")?.as_str()?.parse().ok()?;
        let node = *self.by_handle.get(&handle)?;
        (!matches!(self.runs.get(&node)?.process, Process::Gone)).then_some(node)
    }

    /// A run's process is gone: whoever waited for just that is told.
    pub(in crate::supervisor) fn tell_gone(&mut self, gone: NodeId, out: &mut Actions) {
        let waiting: Vec<(ConnId, Wait)> = self
            .surface
            .waits
            .iter()
            .filter(|(_, wait)| matches!(wait, Wait::Gone { node, .. } if *node == gone))
            .map(|(conn, wait)| (*conn, wait.clone()))
            .collect();
        for (conn, wait) in waiting {
            if let Wait::Gone { rpc, op, value, .. } = wait {
                self.answer_op(conn, &rpc, &op, false, &value, out);
            }
        }
        self.tell_unrecorded(gone, out);
    }

    /// A killed run is gone, and the store fails to say so: whoever waited for its end hears both, for nobody is to wait for
    /// a disk to see a run stopped (S10.7).
    pub(in crate::supervisor) fn tell_unrecorded(&mut self, node: NodeId, out: &mut Actions) {
        let Some(run) = self.runs.get(&node) else { return };
        if !matches!((&run.process, &run.outcome), (Process::Gone, Outcome::Unsaved { .. })) {
            return;
        }
        let mut value = serde_json::to_value(run.object()).unwrap_or_default();
        value["recorded"] = false.into();
        let value = Json::of(&value);
        let kills = |call: &u64| {
            let asked = self.requests(NodeId::OPERATOR).and_then(|calls| calls.get(call));
            matches!(asked, Some(Request::Kill { node: of }) if *of == node)
        };
        let waiting = self.surface.waits.iter().filter_map(|(conn, wait)| match wait {
            Wait::Call { call, gone: true, .. } => kills(call).then_some((*conn, *call)),
            Wait::Call { .. } | Wait::Gone { .. } | Wait::Reload { .. } | Wait::Log { .. } => None,
            Wait::Begun { .. } | Wait::Task { .. } | Wait::Cancel { .. } | Wait::Stream { .. } => None,
        });
        for (conn, call) in waiting.collect::<Vec<_>>() {
            self.surface.calls.remove(&call);
            self.op_answered(conn, false, &value, out);
            self.operator_hung_up(call, out);
        }
    }

    fn answer_op(
        &mut self,
        conn: ConnId,
        rpc: &Value,
        op: &str,
        error: bool,
        value: &Json,
        out: &mut Actions,
    ) {
        let value = value.parse().unwrap_or_default();
        let result = self.op_result(op, error, value);
        let response = Response::of(200, "application/json", a2a::result(rpc, &result));
        // What is answered at once is answered while the connection's requests are being gone through.
        let is_asking = self.surface.connections.get(&conn).is_some_and(|connection| connection.is_asking());
        if is_asking {
            self.respond_and_go_on(conn, &response, out);
        }
    }

    pub(super) fn op_result(&mut self, op: &str, error: bool, value: Value) -> Value {
        let id = crate::id::RunId::mint(self.now.wall, &mut self.rng).to_string();
        a2a::operator_answer(&id, &self.context(), op, error, value)
    }

    /// The value of a command that is no tool; `None` when it comes later.
    fn own_op(
        &mut self,
        conn: ConnId,
        rpc: &Value,
        op: &str,
        args: &Json,
        out: &mut Actions,
    ) -> Result<Option<Value>, Refusal> {
        let args = read(args)?;
        match op {
            "ps" => self.ps(&args).map(Some),
            "show" => self.show(&args).map(Some),
            "logs" => self.logs(conn, rpc, &args),
            _ => {
                accept_only(&args, &[])?;
                self.drain_asked(out);
                Ok(Some(json!({ "draining": true, "live": self.busy.len() })))
            }
        }
    }

    /// Reads the configuration again; the connection waits for what comes of it.
    fn reload_op(
        &mut self,
        conn: ConnId,
        rpc: &Value,
        args: &Json,
        out: &mut Actions,
    ) -> Result<(), Refusal> {
        accept_only(&read(args)?, &[])?;
        let load = self.ask_for_reload("an operator", out)?;
        self.surface.waits.insert(conn, Wait::Reload { load, rpc: rpc.clone() });
        Ok(())
    }

    /// A load has ended: whoever waited for it is told.
    pub(in crate::supervisor) fn tell_reloaded(
        &mut self,
        ended: u64,
        told: &Result<Value, Refusal>,
        out: &mut Actions,
    ) {
        let (error, value) = match told {
            Ok(value) => (false, Json::of(value)),
            Err(refusal) => (true, Json::of(&json!({ "error": refusal }))),
        };
        let waits = |(conn, wait): (&ConnId, &Wait)| match wait {
            Wait::Reload { load, rpc } => (*load == ended).then(|| (*conn, rpc.clone())),
            Wait::Call { .. }
            | Wait::Gone { .. }
            | Wait::Begun { .. }
            | Wait::Task { .. }
            | Wait::Cancel { .. }
            | Wait::Stream { .. }
            | Wait::Log { .. } => None,
        };
        let waiting: Vec<(ConnId, Value)> = self.surface.waits.iter().filter_map(waits).collect();
        for (conn, rpc) in waiting {
            self.answer_op(conn, &rpc, RELOAD, error, &value, out);
        }
    }

    /// Every run that is not over, or all that are known.
    fn ps(&self, args: &Map<String, Value>) -> Result<Value, Refusal> {
        accept_only(args, &["all"])?;
        let all = match args.get("all") {
            None | Some(Value::Bool(false)) => false,
            Some(Value::Bool(true)) => true,
            Some(_) => return Err(arguments("all: accepted is true or false".into())),
        };
        let nodes = self.runs.keys().filter(|node| all || self.busy.contains(node));
        let runs: Vec<Value> = nodes.map(|node| self.row(*node, self.doing_of(*node))).collect();
        let waiting = self.conversation.waiting.len();
        let used = self.surface.metrics.used();
        let held = self.busy_with(|run| matches!(run.process, Process::Held { .. })).len();
        Ok(json!({
            "runs": runs,
            "held": held,
            "prompts_waiting": waiting,
            "draining": self.drain.is_some(),
            "used": used,
        }))
    }

    /// One run, with what it gave.
    fn show(&self, args: &Map<String, Value>) -> Result<Value, Refusal> {
        accept_only(args, &["handle"])?;
        let node = self.named(args)?;
        let mut row = self.row(node, self.status_of(node));
        if let Some(run) = self.runs.get(&node) {
            let object = serde_json::to_value(run.object()).unwrap_or_default();
            for key in ["result", "partial", "error", "evidence"] {
                row[key] = object[key].clone();
            }
            row["servers"] = run.servers.clone().into();
            row["model"] = run.model.clone().into();
        }
        Ok(row)
    }

    /// The run of a handle; `root` is the conversation's worker.
    pub(super) fn named(&self, args: &Map<String, Value>) -> Result<NodeId, Refusal> {
        match handle_arg(args)? {
            ROOT => {
                let workers = self.runs.iter().rev().filter(|(_, run)| run.record.role == Role::Worker);
                let newest = workers.map(|(node, _)| *node).next();
                newest.ok_or_else(|| {
                    arguments("the conversation has no worker yet: nobody has asked it anything".into())
                })
            }
            handle => self.owned(NodeId::OPERATOR, handle),
        }
    }

    /// What a run is doing, and what is a person's to know besides.
    fn row(&self, node: NodeId, mut row: Value) -> Value {
        let Some(run) = self.runs.get(&node) else { return row };
        let parent = run.parent.and_then(|parent| self.runs.get(&parent));
        row["role"] = json!(run.record.role);
        row["parent"] = json!(parent.and_then(|parent| parent.record.handle));
        row["delegated"] = run.parent.is_some().into();
        row["principal"] = run.record.principal.clone().into();
        row["created"] = run.record.created.to_string().into();
        row["ended"] = run.record.ended.map(|at| at.to_string()).into();
        row["error"] = run.record.error.clone().into();
        row["pid"] = run.pid.filter(|_| !matches!(run.process, Process::Gone)).into();
        row
    }
}

fn read(args: &Json) -> Result<Map<String, Value>, Refusal> {
    json::object(&args.0, limits::ARGUMENT_BYTES, limits::ARGUMENT_DEPTH)
        .map_err(|problem| arguments(problem.to_string()))
}

/// The arguments of a command without the wish to be answered once the process is gone.
fn take_gone(op: &str, args: &Json) -> (bool, Json) {
    if op != catalogue::KILL {
        return (false, args.clone());
    }
    match args.parse() {
        Ok(Value::Object(mut map)) if map.get("gone") == Some(&Value::Bool(true)) => {
            map.remove("gone");
            (true, Json::of(&Value::Object(map)))
        }
        Ok(_) | Err(_) => (false, args.clone()),
    }
}
