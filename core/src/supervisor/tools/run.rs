//! `subagent.run`: what the caller asks for, narrowed to what it has itself, through the gates, into a run.

use super::{Caller, list};
use crate::action::{Actions, Walls};
use crate::admit::{Applicant, RunArgs};
use crate::budget::Caps;
use crate::config::{HostServer, ModelChoice};
use crate::error::Refusal;
use crate::id::{Handle, NodeId, RunId};
use crate::json;
use crate::limits;
use crate::plan::Change;
use crate::policy::grant::Grant;
use crate::run::warm::FIRST_TURN;
use crate::run::{Request, Waiter, nice};
use crate::supervisor::catalogue::delegation_tools;
use crate::supervisor::gear::Gear;
use crate::supervisor::keeping::Shelf;
use crate::supervisor::spawn::{Plan, Right};
use crate::supervisor::{Core, host_tools, ms};
use crate::time::Duration;
use crate::wire::Encoder;
use crate::wire::message::{
    Begins, Down, Mode, Model, Role, RunLimits, Server, Spawn, ToolName, Trace, VERSION,
};
use serde_json::{Map, Value};

/// Room left in the first frame for values that the host puts in.
const SPAWN_ROOM: usize = 64 * 1024;

impl Core {
    pub(super) fn subagent_run(
        &mut self,
        caller: Caller<'_>,
        object: &Map<String, Value>,
        out: &mut Actions,
    ) -> Result<(), Refusal> {
        let Caller { node, id, call_id } = caller;
        let args = self.read_run(object);
        let granted = self.narrowed(node, &args);
        let mut problems = granted.problems.clone();
        let model = match self.model_for(node, args.model.as_deref()) {
            Ok(choice) => choice.clone(),
            Err(problem) => {
                problems.push(problem);
                self.config.model.clone()
            }
        };
        problems.extend(self.unpriced(node, &args, &model));
        problems.extend(self.wrong_item(args.plan_item));
        let mut payload = self.payload(node, &args, &granted, model.model);
        problems.extend(too_large(&payload));
        let depth = self.runs.get(&node).map_or(0, |run| run.record.depth);
        let principal = self.principal_of(node).unwrap_or_default().to_owned();
        let mut live = self.runs.values().filter(|r| r.permit.is_some()).filter_map(|r| r.record.handle);
        let applicant = Applicant {
            args: &args,
            no_budget: self.ledger.is_out(self.now.wall),
            requester_depth: depth,
            draining: self.drain.is_some(),
            may_wait: self.is_worker(node) || node == NodeId::OPERATOR,
            problems: &problems,
            live: &mut live,
        };
        let verdict = self.admission.admit(applicant, self.now.mono)?;
        // Names are minted only now: a refusal uses up no handle.
        let (run_id, trace) = self.mint_names(Some(node), call_id);
        let place = self.new_place(run_id, node);
        let by = self.runs.get(&node).map(|run| (run.record.run_id, call_id));
        payload.transcript = self.transcript(place.as_ref(), by, FIRST_TURN, Begins::Anew);
        payload.run_id = run_id;
        payload.trace = trace;
        payload.handle = Some(self.mint_handle());
        let mode = payload.mode;
        let walls = self.walls(&args);
        let plan = Plan {
            right: Right::Subagent(verdict),
            parent: (node != NodeId::OPERATOR).then_some(node),
            call_id: call_id.map(str::to_owned),
            principal,
            gear: Gear {
                grant: granted.grant,
                host: granted.host,
                walls,
                priority: args.priority.unwrap_or(self.config.defaults.priority),
                price: model.price,
                cheaper: self.cheaper(),
                caps: self.caps(&args),
                delegates: args.delegate && self.admission.depth_allows(depth + 1),
                durable: args.durable.unwrap_or(self.config.store.work),
                resume: args.resume.unwrap_or(true),
                transcript: place,
                payload,
            },
        };
        let child = self.begin(plan, out);
        self.bind_item(args.plan_item, child);
        if let Some(run) = self.run(child) {
            run.waiters.push(Waiter { node, request: id });
        }
        self.open_request(node, id, Request::Run { child, sync: mode == Mode::Sync });
        Ok(())
    }

    /// The call's arguments. Once a one-shot conversation has its answer its warm runs are stopped, and nothing would
    /// end another one.
    fn read_run(&self, object: &Map<String, Value>) -> RunArgs {
        let args = RunArgs::read(object);
        let mode = args.mode.clone().map(|mode| mode.unwrap_or(self.config.defaults.mode));
        if mode != Ok(Mode::Warm) || !self.conversation.is_over() {
            return args;
        }
        let why = "warm runs are stopped, for the conversation has its answer".to_owned();
        RunArgs { mode: Err(why), ..args }
    }

    fn wrong_item(&self, item: Option<u32>) -> Option<String> {
        let item = item?;
        match &self.plan {
            Some(plan) if plan.has(item) => None,
            Some(plan) => {
                Some(format!("plan_item: there is no item {item}; accepted are 1 to {}", plan.items.len()))
            }
            None => Some("plan_item: there is no plan; plan_create makes one".to_owned()),
        }
    }

    /// The plan's item settles when the run ends.
    fn bind_item(&mut self, item: Option<u32>, node: NodeId) {
        let bind = self.runs.get(&node).and_then(|run| run.record.handle);
        if let (Some(plan), Some(item)) = (&mut self.plan, item) {
            // There is such an item: the gate has looked.
            let _bound = plan.update(item, Change { bind, ..Change::default() });
            self.mark(Shelf::Plan);
        }
    }

    /// What the caller may give of what it has itself (S3.6), and what is wrong with what it named.
    fn narrowed(&self, node: NodeId, args: &RunArgs) -> Narrowed {
        let mut problems = Vec::new();
        let own = self.servers_of(node);
        let mut servers: Vec<Server> =
            self.config.servers.iter().filter(|s| own.contains(&s.name.as_str())).cloned().collect();
        let mut host = self.host_of(node);
        if let Some(named) = &args.servers {
            for name in named.iter().filter(|n| !own.contains(&n.as_str())) {
                let name = json::preview(name, limits::PREVIEW_BYTES);
                problems.push(format!("servers: unknown {name}; accepted are {}", list(&own)));
            }
            servers.retain(|s| named.contains(&s.name));
            host.retain(|group| named.contains(&group.name));
        }
        let above = match node {
            NodeId::OPERATOR => Grant::ALL,
            _ => self.runs.get(&node).map_or(Grant::NOTHING, |r| r.grant.clone()),
        };
        let asked = match Grant::parse("tools", args.tools.as_deref()) {
            Ok(grant) => grant,
            Err(bad) => {
                problems.extend(bad.iter().map(ToString::to_string));
                Grant::NOTHING
            }
        };
        let names = self.names_of(&servers, host.iter().copied());
        problems.extend(self.unmatched(&asked, &above, &servers, &names));
        let host = host.into_iter().cloned().collect();
        Narrowed { servers, host, grant: above.narrow(&asked), names, problems }
    }

    /// The servers that a caller has itself.
    fn servers_of(&self, caller: NodeId) -> Vec<&str> {
        match self.runs.get(&caller) {
            Some(run) => run.servers.iter().map(String::as_str).collect(),
            None if caller == NodeId::OPERATOR => {
                let host = self.config.host.iter().map(|group| group.name.as_str());
                self.config.servers.iter().map(|s| s.name.as_str()).chain(host).collect()
            }
            None => Vec::new(),
        }
    }

    /// Patterns that match no tool of the granted servers, once all their lists are known.
    fn unmatched(&self, asked: &Grant, above: &Grant, servers: &[Server], names: &[ToolName]) -> Vec<String> {
        let mut problems: Vec<String> = above
            .misses(asked)
            .iter()
            .map(|p| format!("tools: {p:?} is not among the tools of this run"))
            .collect();
        if servers.iter().any(|s| !self.offered.contains_key(&s.name)) {
            return problems;
        }
        let there: Vec<&str> = names.iter().map(|n| n.name.as_str()).collect();
        for pattern in asked.unmatched(there.iter().copied()) {
            problems.push(format!("tools: {pattern:?} matches no tool; accepted are {}", list(&there)));
        }
        problems
    }

    /// What the child will be handed, still without the names that admission mints.
    fn payload(&mut self, node: NodeId, args: &RunArgs, granted: &Narrowed, model: Model) -> Spawn {
        let depth = self.runs.get(&node).map_or(0, |r| r.record.depth) + 1;
        let delegates = args.delegate && self.admission.depth_allows(depth);
        let mut own_tools = if delegates { delegation_tools() } else { Vec::new() };
        own_tools.extend(host_tools::offered(&granted.host, &granted.grant));
        Spawn {
            v: VERSION,
            // As long as the real ones, so that what is measured is what is sent.
            run_id: RunId::NIL,
            handle: Some(Handle(u64::MAX)),
            depth,
            attempt: 1,
            role: Role::Subagent,
            mode: args.mode.clone().ok().flatten().unwrap_or(self.config.defaults.mode),
            trace: Trace {
                trace_id: "0".repeat(32),
                span_id: "0".repeat(16),
                parent_span_id: Some("0".repeat(16)),
            },
            system: String::new(),
            instruction: args.instruction.clone().unwrap_or_default(),
            context: args.context.clone(),
            output_contract: args.output_contract.clone(),
            output_schema: args.output_schema.clone(),
            servers: granted.servers.clone(),
            tools: granted.grant.to_patterns(),
            names: granted.names.clone(),
            own_tools,
            model,
            limits: self.run_limits(args),
            budget: self.call_budget(Some(node), &self.caps(args)),
            log_level: self.config.log_level.clone(),
            transcript: None,
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

    /// Where money is counted, a model without a price cannot be used (S15.6).
    fn unpriced(&self, requester: NodeId, args: &RunArgs, model: &ModelChoice) -> Option<String> {
        let counts = self.config.budget.counts_money()
            || self.caps(args).usd.is_some()
            || self.ledger.counts_money(requester);
        (counts && model.price.is_none()).then(|| {
            let name = &model.model.name;
            format!("model: {name} has no price, and its money is counted; add it to intelligence.prices")
        })
    }

    /// What the run and all below it may spend.
    fn caps(&self, args: &RunArgs) -> Caps {
        let usd = args.limits.usd.or(self.config.defaults.limits.usd).or(self.config.run_usd);
        Caps { tokens: None, usd }
    }

    fn walls(&self, args: &RunArgs) -> Walls {
        let (call, defaults) = (&args.limits, &self.config.defaults.limits);
        Walls {
            memory: call.memory.or(defaults.memory),
            cpu_seconds: call.cpu.or(defaults.cpu).map(whole_seconds),
            nice: nice(args.priority.unwrap_or(self.config.defaults.priority)),
        }
    }
}

/// What a spawn may use.
struct Narrowed {
    servers: Vec<Server>,
    host: Vec<HostServer>,
    grant: Grant,
    /// Of the tools of these servers, as far as they are known.
    names: Vec<ToolName>,
    problems: Vec<String>,
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
