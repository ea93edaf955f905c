//! The calls of `subagent.*`. Arguments are read strictly: a call that is not understood is answered with what
//! is accepted, and does nothing.

use super::catalogue::{AWAIT, KILL, LIST, RUN, STATUS, delegation_tools};
use super::spawn::Plan;
use super::{Core, ms};
use crate::action::{Actions, Walls};
use crate::admit::{Applicant, RunArgs};
use crate::bytes::Json;
use crate::error::Refusal;
use crate::id::{Handle, NodeId};
use crate::json;
use crate::limits;
use crate::note::Level;
use crate::policy::grant::Grant;
use crate::policy::registry::{self, Names};
use crate::record::Status;
use crate::run::ladder::Push;
use crate::run::{Ending, Request, Waiter, nice};
use crate::time::Duration;
use crate::units;
use crate::wire::Encoder;
use crate::wire::message::{Down, Mode, Role, RunLimits, Server, Spawn, ToolRequest, VERSION};
use serde_json::{Map, Value, json};

/// Room left in the first frame for values that the host puts in.
const SPAWN_ROOM: usize = 64 * 1024;

impl Core {
    /// One call of a supervisor tool. Every id is answered exactly once, now or later.
    pub(super) fn tool_request(&mut self, node: NodeId, request: ToolRequest, out: &mut Actions) {
        let Some(run) = self.run(node) else { return };
        if request.id <= run.last_request {
            self.protocol_error(node, "a `tool_request` id that is not above the last one", out);
            return;
        }
        if run.requests.len() >= limits::OPEN_REQUESTS {
            self.protocol_error(node, "too many open `tool_request`s", out);
            return;
        }
        run.last_request = request.id;
        let id = request.id;
        if run.outcome.is_decided() {
            let why = json!({ "error": { "gate": "cancelled", "message": "this run has ended" } });
            self.answer(node, id, true, &why, out);
            return;
        }
        let known = [RUN, AWAIT, STATUS, LIST, KILL].contains(&request.name.as_str());
        if !run.delegates || !known {
            // The same words for a tool that does not exist and one that is not offered here.
            let name = json::preview(request.name, limits::PREVIEW_BYTES);
            let why = json!({ "error": { "gate": "tool", "message": format!("unknown tool {name}") } });
            self.answer(node, id, true, &why, out);
            return;
        }
        let args = match json::object(&request.args.0, limits::ARGUMENT_BYTES, limits::ARGUMENT_DEPTH) {
            Ok(args) => args,
            Err(problem) => {
                let refusal = arguments(problem.to_string());
                self.answer_refusal(node, id, &refusal, out);
                return;
            }
        };
        let outcome = match request.name.as_str() {
            RUN => self.subagent_run(node, id, request.call_id, &args, out),
            AWAIT => self.subagent_await(node, id, &args, out),
            STATUS => self.subagent_status(node, id, &args, out),
            LIST => self.subagent_list(node, id, &args, out),
            _ => self.subagent_kill(node, id, &args, out),
        };
        if let Err(refusal) = outcome {
            self.answer_refusal(node, id, &refusal, out);
        }
    }

    fn subagent_run(
        &mut self,
        node: NodeId,
        id: u64,
        call_id: String,
        object: &Map<String, Value>,
        out: &mut Actions,
    ) -> Result<(), Refusal> {
        let args = RunArgs::read(object);
        let granted = self.narrowed(node, &args);
        let mut payload = self.payload(node, &args, &granted);
        let mut problems = granted.problems;
        problems.extend(too_large(&payload));
        let (depth, principal) =
            self.runs.get(&node).map(|r| (r.record.depth, r.record.principal.clone())).unwrap_or_default();
        let mut live = self.runs.values().filter(|r| r.permit.is_some()).filter_map(|r| r.record.handle);
        let applicant = Applicant {
            args: &args,
            requester_depth: depth,
            draining: self.drain.is_some(),
            problems: &problems,
            live: &mut live,
        };
        let permit = self.admission.admit(applicant, self.now.mono)?;
        // Names are minted only now: a refusal uses up no handle.
        let (run_id, trace) = self.mint_names(Some(node));
        payload.run_id = run_id;
        payload.trace = trace;
        payload.handle = Some(self.mint_handle());
        let mode = payload.mode;
        let walls = self.walls(&args);
        let plan = Plan {
            permit: Some(permit),
            parent: Some(node),
            call_id: Some(call_id),
            principal,
            grant: granted.grant,
            walls,
            payload,
        };
        let child = self.begin(plan, out);
        if let Some(run) = self.run(child) {
            run.waiters.push(Waiter { node, request: id });
        }
        if let Some(run) = self.run(node) {
            run.requests.insert(id, Request::Run { child, sync: mode == Mode::Sync });
        }
        Ok(())
    }

    /// What the caller may give of what it has itself (S3.6), and what is wrong with what it named.
    fn narrowed(&self, node: NodeId, args: &RunArgs) -> Narrowed {
        let mut problems = Vec::new();
        let own: Vec<&str> =
            self.runs.get(&node).map(|r| r.servers.iter().map(String::as_str).collect()).unwrap_or_default();
        let mut servers: Vec<Server> =
            self.config.servers.iter().filter(|s| own.contains(&s.name.as_str())).cloned().collect();
        if let Some(named) = &args.servers {
            for name in named.iter().filter(|n| !own.contains(&n.as_str())) {
                let name = json::preview(name, limits::PREVIEW_BYTES);
                problems.push(format!("servers: unknown {name}; accepted are {}", list(&own)));
            }
            servers.retain(|s| named.contains(&s.name));
        }
        let above = self.runs.get(&node).map_or(Grant::NOTHING, |r| r.grant.clone());
        let asked = match Grant::parse("tools", args.tools.as_deref()) {
            Ok(grant) => grant,
            Err(bad) => {
                problems.extend(bad.iter().map(ToString::to_string));
                Grant::NOTHING
            }
        };
        let names = registry::names(&self.config.servers, &self.offered, &[]);
        problems.extend(self.unmatched(&asked, &above, &servers, &names));
        Narrowed { servers, grant: above.narrow(&asked), names, problems }
    }

    /// Patterns that match no tool of the granted servers, once all their lists are known.
    fn unmatched(&self, asked: &Grant, above: &Grant, servers: &[Server], names: &Names) -> Vec<String> {
        let mut problems: Vec<String> = above
            .misses(asked)
            .iter()
            .map(|p| format!("tools: {p:?} is not among the tools of this run"))
            .collect();
        if servers.iter().any(|s| !self.offered.contains_key(&s.name)) {
            return problems;
        }
        let there: Vec<&str> = names
            .names
            .iter()
            .filter(|n| servers.iter().any(|s| s.name == n.server))
            .map(|n| n.name.as_str())
            .collect();
        for pattern in asked.unmatched(there.iter().copied()) {
            problems.push(format!("tools: {pattern:?} matches no tool; accepted are {}", list(&there)));
        }
        problems
    }

    /// What the child will be handed, still without the names that admission mints.
    fn payload(&mut self, node: NodeId, args: &RunArgs, granted: &Narrowed) -> Spawn {
        let depth = self.runs.get(&node).map_or(0, |r| r.record.depth) + 1;
        let names = granted.names.names.iter();
        let names = names.filter(|n| granted.servers.iter().any(|s| s.name == n.server)).cloned().collect();
        let delegates = args.delegate && self.admission.depth_allows(depth);
        Spawn {
            v: VERSION,
            run_id: crate::id::RunId::mint(crate::time::Wall(0), &mut crate::rng::Rng::new(0)),
            handle: Some(Handle(u64::MAX)),
            depth,
            attempt: 1,
            role: Role::Subagent,
            mode: args.mode.clone().ok().flatten().unwrap_or(self.config.defaults.mode),
            trace: no_trace(),
            system: String::new(),
            instruction: args.instruction.clone(),
            context: args.context.clone(),
            output_contract: args.output_contract.clone(),
            servers: granted.servers.clone(),
            tools: granted.grant.to_patterns(),
            names,
            own_tools: if delegates { delegation_tools() } else { Vec::new() },
            model: self.config.model.clone(),
            limits: self.run_limits(args),
            log_level: self.config.log_level.clone(),
        }
    }

    /// call > `subagents.defaults` > `limits.run`.
    fn run_limits(&self, args: &RunArgs) -> RunLimits {
        let (call, defaults, run) = (&args.limits, &self.config.defaults.limits, &self.config.run);
        RunLimits {
            steps: call.steps.or(defaults.steps).unwrap_or(run.steps),
            tokens: call.tokens.or(defaults.tokens).unwrap_or(run.tokens),
            deadline_ms: call.deadline.or(defaults.deadline).map_or(run.deadline_ms, ms),
            repeats: run.repeats,
            tool_result_bytes: run.tool_result_bytes,
        }
    }

    fn walls(&self, args: &RunArgs) -> Walls {
        let (call, defaults) = (&args.limits, &self.config.defaults.limits);
        Walls {
            memory: call.memory.or(defaults.memory),
            cpu_seconds: call.cpu.or(defaults.cpu).map(whole_seconds),
            nice: nice(args.priority.unwrap_or(self.config.defaults.priority)),
        }
    }

    fn subagent_await(
        &mut self,
        node: NodeId,
        id: u64,
        args: &Map<String, Value>,
        out: &mut Actions,
    ) -> Result<(), Refusal> {
        accept_only(args, &["handle", "handles", "until", "timeout"])?;
        let single = args.contains_key("handle");
        let handles = match (args.get("handle"), args.get("handles")) {
            (Some(Value::String(one)), None) => vec![one.clone()],
            (None, Some(Value::Array(many))) if !many.is_empty() && many.len() <= limits::AWAIT_HANDLES => {
                many.iter()
                    .map(|v| v.as_str().map(str::to_owned))
                    .collect::<Option<Vec<_>>>()
                    .ok_or_else(|| arguments("handles: accepted is a list of handles such as sub-7".into()))?
            }
            _ => {
                return Err(arguments(format!(
                    "accepted is `handle` (such as sub-7) or `handles` (a list of 1 to {})",
                    limits::AWAIT_HANDLES
                )));
            }
        };
        let nodes = handles.iter().map(|h| self.owned(node, h)).collect::<Result<Vec<_>, _>>()?;
        let any = match args.get("until").map(|v| v.as_str()) {
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
        let zero = timeout.is_some_and(|t| t.is_zero());
        let over = if zero { self.awaited(&nodes, any, single, true) } else { None };
        match (over, self.run(node)) {
            (Some(value), _) => self.answer_json(node, id, false, value, out),
            (None, Some(run)) => {
                run.requests.insert(id, Request::Await { nodes, any, single, until });
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// The answer of an await, if its condition holds or its time is up.
    pub(super) fn awaited(&self, nodes: &[NodeId], any: bool, single: bool, timed_out: bool) -> Option<Json> {
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
                None => self.runs.get(node).map_or(Value::Null, crate::run::Run::unfinished),
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

    fn subagent_status(
        &mut self,
        node: NodeId,
        id: u64,
        args: &Map<String, Value>,
        out: &mut Actions,
    ) -> Result<(), Refusal> {
        accept_only(args, &["handle"])?;
        let of = self.owned(node, handle_arg(args)?)?;
        let value = self.final_object(of).unwrap_or_else(|| Json::of(&self.status_of(of)));
        self.answer_json(node, id, false, value, out);
        Ok(())
    }

    fn subagent_list(
        &mut self,
        node: NodeId,
        id: u64,
        args: &Map<String, Value>,
        out: &mut Actions,
    ) -> Result<(), Refusal> {
        accept_only(args, &[])?;
        let principal = self.runs.get(&node).map(|r| r.record.principal.clone()).unwrap_or_default();
        let own = self.by_handle.values().copied();
        let own: Vec<NodeId> =
            own.filter(|n| self.runs.get(n).is_some_and(|r| r.record.principal == principal)).collect();
        let runs: Vec<Value> = own.iter().map(|n| self.status_of(*n)).collect();
        self.answer(node, id, false, &json!({ "runs": runs }), out);
        Ok(())
    }

    fn subagent_kill(
        &mut self,
        node: NodeId,
        id: u64,
        args: &Map<String, Value>,
        out: &mut Actions,
    ) -> Result<(), Refusal> {
        accept_only(args, &["handle", "reason", "only"])?;
        let target = self.owned(node, handle_arg(args)?)?;
        let reason = match args.get("reason") {
            None => "",
            Some(Value::String(s)) => s.as_str(),
            Some(_) => return Err(arguments("reason: accepted is a string".into())),
        };
        let only = match args.get("only") {
            None => false,
            Some(Value::Bool(b)) => *b,
            Some(_) => return Err(arguments("only: accepted is true or false".into())),
        };
        let who = self.runs.get(&node).map(|r| r.record.principal.clone()).unwrap_or_default();
        if let Some(value) = self.final_object(target) {
            self.answer_json(node, id, false, value, out);
        } else {
            if let Some(run) = self.run(node) {
                run.requests.insert(id, Request::Kill { node: target });
            }
            if let Some(run) = self.run(target) {
                run.waiters.push(Waiter { node, request: id });
            }
        }
        self.kill(target, &who, reason, only, out);
        Ok(())
    }

    /// Kills a run, and what it delegated unless `only` (S9.4). A second kill changes nothing.
    pub(super) fn kill(&mut self, target: NodeId, who: &str, reason: &str, only: bool, out: &mut Actions) {
        let all = if only { vec![target] } else { self.subtree(target) };
        let why = json::preview(reason, limits::PREVIEW_BYTES);
        for node in all {
            let error = match (node == target, reason.is_empty()) {
                (true, true) => format!("killed by {who}"),
                (true, false) => format!("killed by {who}: {why}"),
                (false, _) => format!("the run that delegated it was killed by {who}"),
            };
            if self.runs.get(&node).is_none_or(|r| r.outcome.is_decided()) {
                continue;
            }
            out.push(
                self.note(node, Level::Info, "subagent.kill")
                    .with("by", who)
                    .with("reason", why.as_str())
                    .into(),
            );
            // With `only`, what it delegated is left alone, synchronous runs included.
            if only {
                self.leave_children(node);
            }
            self.decide(node, Ending::without_result(Status::Cancelled, error), out);
            self.push_ladder(node, Push::Ask, out);
        }
    }

    /// Turns a run's waits for synchronous runs into waits that nothing hangs on.
    fn leave_children(&mut self, node: NodeId) {
        if let Some(run) = self.run(node) {
            for request in run.requests.values_mut() {
                if let Request::Run { sync, .. } = request {
                    *sync = false;
                }
            }
        }
    }

    /// The run behind a handle, if it is the caller's to name: another principal's reads as unknown (S6.5).
    fn owned(&self, caller: NodeId, handle: &str) -> Result<NodeId, Refusal> {
        let principal = self.runs.get(&caller).map(|r| r.record.principal.as_str());
        let found = handle.parse::<Handle>().ok().and_then(|h| self.by_handle.get(&h)).copied();
        found.filter(|n| self.runs.get(n).map(|r| r.record.principal.as_str()) == principal).ok_or_else(
            || Refusal {
                gate: "handle".into(),
                message: format!("unknown handle {}", json::preview(handle, limits::PREVIEW_BYTES)),
                limit: None,
                observed: None,
                hint: "subagent_list shows the handles there are".into(),
            },
        )
    }
}

/// What a spawn may use.
struct Narrowed {
    servers: Vec<Server>,
    grant: Grant,
    names: Names,
    problems: Vec<String>,
}

fn handle_arg(args: &Map<String, Value>) -> Result<&str, Refusal> {
    args.get("handle")
        .and_then(Value::as_str)
        .ok_or_else(|| arguments("handle: accepted is a handle such as sub-7".into()))
}

fn accept_only(args: &Map<String, Value>, accepted: &[&str]) -> Result<(), Refusal> {
    match args.keys().find(|k| !accepted.contains(&k.as_str())) {
        None => Ok(()),
        Some(key) => {
            let key = json::preview(key, limits::PREVIEW_BYTES);
            Err(arguments(format!("{key}: unknown; accepted are {}", list(accepted))))
        }
    }
}

fn arguments(message: String) -> Refusal {
    Refusal {
        gate: "arguments".into(),
        message,
        limit: None,
        observed: None,
        hint: "correct the arguments and call again".into(),
    }
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Whether the first frame would not fit; measured on the frame itself.
fn too_large(payload: &Spawn) -> Option<String> {
    let room = limits::FRAME_BYTES - SPAWN_ROOM;
    let texts = payload.instruction.len() + payload.context.iter().map(|m| m.content.len()).sum::<usize>();
    let over = |bytes: usize| {
        format!(
            "instruction and context: {bytes} bytes with what the run is given, at most {room} are accepted"
        )
    };
    if texts > room {
        return Some(over(texts));
    }
    match Encoder::new().encode_down(&Down::Spawn(Box::new(payload.clone()))) {
        Ok(frame) if frame.len() <= room => None,
        Ok(frame) => Some(over(frame.len())),
        Err(_) => Some(over(limits::FRAME_BYTES)),
    }
}

fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

fn no_trace() -> crate::wire::message::Trace {
    crate::wire::message::Trace { trace_id: String::new(), span_id: String::new(), parent_span_id: None }
}
