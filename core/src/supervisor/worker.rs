//! The conversation's worker: the one that is warm is asked again, and a new one is told what was said before.

use super::catalogue::worker_tools;
use super::spawn::{Plan, Right};
use super::{Core, host_tools, operator};
use crate::action::{Actions, Walls};
use crate::budget::Caps;
use crate::config::Priority;
use crate::id::NodeId;
use crate::policy::grant::Grant;
use crate::run::Run;
use crate::wire::message::{Mode, Role, Spawn, Text, VERSION};

impl Core {
    /// Whether this run serves the conversation.
    pub(super) fn is_worker(&self, node: NodeId) -> bool {
        self.runs.get(&node).is_some_and(|run| run.record.role == Role::Worker)
    }

    /// The next turn of the worker that is warm; `None` when it cannot take one any more. One that lives on and reads
    /// nothing is of no use then, and ends.
    pub(super) fn ask_again(
        &mut self,
        worker: NodeId,
        text: &str,
        out: &mut Actions,
    ) -> Option<(NodeId, u64)> {
        // One whose exit is known and whose last words are still to be read takes nothing any more.
        let lives = |run: &&mut Run| !run.outcome.is_decided() && !run.process.has_ended();
        let run = self.run(worker).filter(lives)?;
        if !run.channel.is_open() {
            self.conversation.worker = None;
            self.complete_retirement(worker, out);
            return None;
        }
        let id = run.next_text();
        let pushed = run.warm.as_mut().is_some_and(|w| w.push(Text { id, text: text.to_owned() }));
        pushed.then(|| {
            self.hand_next(worker, out);
            (worker, id)
        })
    }

    pub(super) fn begin_worker(&mut self, text: &str, out: &mut Actions) -> NodeId {
        let (run_id, trace) = self.mint_names(None);
        let mut own_tools = worker_tools(self.admission.depth_allows(0));
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
            transcript: None,
        };
        let plan = Plan {
            right: Right::Worker,
            parent: None,
            call_id: None,
            principal: operator::PRINCIPAL.to_owned(),
            grant: Grant::ALL,
            host: self.config.host.clone(),
            walls: Walls::default(),
            priority: Priority::Normal,
            price: self.config.model.price,
            caps,
            payload,
        };
        self.begin(plan, out)
    }
}
