//! What a run's process is given: its payload, its walls, what it may use. The same for a run that is asked for and for
//! one of an earlier life of the daemon, whose connections are looked up again by name (S3.5).

use super::catalogue::delegation_tools;
use super::{Core, host_tools};
use crate::action::Walls;
use crate::budget::Caps;
use crate::config::{HostServer, ModelChoice, Priority};
use crate::id::NodeId;
use crate::money::Price;
use crate::policy::grant::Grant;
use crate::policy::registry;
use crate::run::Run;
use crate::run::swap::Cheaper;
use crate::run::warm::FIRST_TURN;
use crate::store::Work;
use crate::time::Duration;
use crate::transcript::Location;
use crate::wire::message::{Begins, Mode, Model, Role, Server, Spawn, ToolName, Transcript, VERSION};

/// See the module.
pub(super) struct Gear {
    pub(super) grant: Grant,
    pub(super) host: Vec<HostServer>,
    pub(super) walls: Walls,
    pub(super) priority: Priority,
    pub(super) price: Option<Price>,
    /// The model that a call can be told to use instead.
    pub(super) cheaper: Option<Cheaper>,
    /// What it and all below it may use.
    pub(super) caps: Caps,
    /// It may delegate onward.
    pub(super) delegates: bool,
    /// A restart takes it up, and goes on from its transcript where there is one.
    pub(super) durable: bool,
    pub(super) resume: bool,
    /// Where it writes.
    pub(super) transcript: Option<Location>,
    pub(super) payload: Spawn,
}

impl Gear {
    /// Gives it to a run.
    pub(super) fn equip(self, run: &mut Run) {
        let payload = self.payload;
        let servers = payload.servers.iter().map(|server| &server.name);
        run.servers = servers.chain(self.host.iter().map(|group| &group.name)).cloned().collect();
        run.endpoints = endpoints(&payload.model);
        run.trace_id = payload.trace.trace_id.clone();
        run.span_id = payload.trace.span_id.clone();
        run.deadline = Duration::from_millis(payload.limits.deadline_ms);
        run.offered = payload.own_tools.iter().map(|tool| tool.name.clone()).collect();
        run.model = payload.model.name.clone();
        run.asks = payload.budget.is_some();
        run.title = super::spawn::title(&payload.instruction);
        run.grant = self.grant;
        run.walls = self.walls;
        run.priority = self.priority;
        run.price = self.price;
        run.cheaper = self.cheaper.filter(|_| run.asks);
        run.caps = self.caps;
        run.delegates = self.delegates;
        run.durable = self.durable;
        run.resume = self.resume;
        run.transcript = self.transcript;
        run.payload = Some(Box::new(payload));
    }
}

/// Base addresses of a model's endpoints; none where it is a playbook.
pub(super) fn endpoints(model: &Model) -> Vec<String> {
    let remote = model.dialect.remote().into_iter();
    remote.flat_map(|remote| &remote.endpoints).map(|endpoint| endpoint.url.clone()).collect()
}

impl Core {
    /// What a run of an earlier life is given now.
    ///
    /// # Errors
    /// What it was given then is not configured any more: a sentence that names it.
    pub(super) fn gear_again(&mut self, node: NodeId, work: &Work) -> Result<Gear, String> {
        if let Some(turn) = self.conversation.turn_of(node) {
            let (text, written) = (turn.text.clone(), turn.written);
            let place = work.transcript.clone();
            let transcript = self.transcript(place.as_ref(), None, written, Begins::Again);
            return Ok(self.worker_gear(&text, work.run_id, work.trace.clone(), place, transcript));
        }
        let choice = self.model_again(work)?.clone();
        let grant = Grant::minted(work.tools.as_deref()).0;
        let (servers, host) = self.servers_again(&work.servers)?;
        let names = self.names_of(&servers, host.iter());
        let run = self.runs.get(&node).ok_or("it is not in the table")?;
        let (record, parent) = (&run.record, run.parent);
        let delegates = work.delegates && self.admission.depth_allows(record.depth);
        let mut own_tools = if delegates { delegation_tools() } else { Vec::new() };
        own_tools.extend(host_tools::offered(&host, &grant));
        let by = record.parent.map(|parent| (parent, record.call_id.as_deref()));
        let begins = if work.resume { Begins::Again } else { Begins::Anew };
        let transcript = self.transcript(work.transcript.as_ref(), by, FIRST_TURN, begins);
        let payload = Spawn {
            v: VERSION,
            run_id: work.run_id,
            handle: record.handle,
            depth: record.depth,
            attempt: record.attempt,
            role: Role::Subagent,
            mode: record.mode,
            trace: work.trace.clone(),
            system: String::new(),
            instruction: work.instruction.clone(),
            context: work.context.clone(),
            output_contract: work.output_contract.clone(),
            output_schema: work.output_schema.clone(),
            servers,
            tools: grant.to_patterns(),
            names,
            own_tools,
            model: choice.model,
            limits: work.limits.clone(),
            budget: self.call_budget(parent, &work.caps),
            log_level: self.config.log_level.clone(),
            transcript,
        };
        let Work { walls, priority, caps, durable, resume, .. } = *work;
        Ok(Gear {
            grant,
            host,
            walls,
            priority,
            price: choice.price,
            cheaper: self.cheaper(),
            caps,
            delegates,
            durable,
            resume,
            transcript: work.transcript.clone(),
            payload,
        })
    }

    /// What the conversation's worker is given for a turn.
    pub(super) fn worker_gear(
        &self,
        text: &str,
        run_id: crate::id::RunId,
        trace: crate::wire::message::Trace,
        place: Option<Location>,
        transcript: Option<Transcript>,
    ) -> Gear {
        let mut own_tools = super::catalogue::worker_tools(self.admission.depth_allows(0));
        own_tools.extend(host_tools::offered(&self.config.host, &Grant::ALL));
        let caps = Caps { tokens: None, usd: self.config.run_usd };
        let payload = Spawn {
            v: VERSION,
            run_id,
            handle: None,
            depth: 0,
            attempt: 1,
            role: Role::Worker,
            mode: if self.config.one_shot { Mode::Sync } else { Mode::Warm },
            trace,
            system: self.config.instruction.clone(),
            instruction: text.to_owned(),
            context: self.conversation.past.clone(),
            output_contract: None,
            output_schema: None,
            servers: self.config.servers.clone(),
            tools: None,
            names: host_tools::names(&self.config.host),
            own_tools,
            model: self.config.model.model.clone(),
            limits: self.config.run.clone(),
            budget: self.call_budget(None, &caps),
            log_level: self.config.log_level.clone(),
            transcript,
        };
        Gear {
            grant: Grant::ALL,
            host: self.config.host.clone(),
            walls: Walls::default(),
            priority: Priority::Normal,
            price: self.config.model.price,
            cheaper: self.cheaper(),
            caps,
            delegates: true,
            durable: true,
            resume: true,
            transcript: place,
            payload,
        }
    }

    /// The registry's names of all tools of these servers that are known, and of these groups.
    pub(super) fn names_of<'a>(
        &self,
        servers: &[Server],
        host: impl IntoIterator<Item = &'a HostServer>,
    ) -> Vec<ToolName> {
        let given = host_tools::names(&self.config.host);
        let names = registry::names(&self.config.servers, &self.offered, &given).names.into_iter();
        let of_these = names.filter(|name| servers.iter().any(|server| server.name == name.server));
        of_these.chain(host_tools::names(host)).collect()
    }

    /// A run that has the agent's own model follows the agent.
    fn model_again(&self, work: &Work) -> Result<&ModelChoice, String> {
        let choice = match work.own_model {
            true => &self.config.model,
            false => self.named_model(&work.model).ok_or_else(|| self.unknown_model(&work.model))?,
        };
        match &choice.unusable {
            Some(why) => Err(format!("model: {} cannot be used: {why}", choice.model.name)),
            None => Ok(choice),
        }
    }

    /// The servers and groups of these names.
    fn servers_again(&self, names: &[String]) -> Result<(Vec<Server>, Vec<HostServer>), String> {
        let (mut servers, mut host) = (Vec::new(), Vec::new());
        for name in names {
            if let Some(server) = self.config.servers.iter().find(|server| server.name == *name) {
                servers.push(server.clone());
            } else if let Some(group) = self.config.host.iter().find(|group| group.name == *name) {
                host.push(group.clone());
            } else {
                return Err(format!("servers: {name} is not configured any more"));
            }
        }
        Ok((servers, host))
    }
}
