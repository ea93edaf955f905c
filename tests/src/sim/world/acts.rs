//! What whoever stages a life does in it, besides what its plan says: prompts, signals, strikes and gates, at
//! moments that are found by looking on. A plan's own faults come by the clock; these come by what was seen.

use super::{Due, World};
use crate::sim::agenda::Lane;
use crate::sim::oracle::Misdeed;
use crate::sim::plan::Interrupt;
use agentd_core::bytes::Json;
use agentd_core::event::{Event, Exit, SupervisorSignal};
use agentd_core::id::NodeId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// One thing done from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Act {
    /// The supervisor gets a signal.
    Signal(Interrupt),
    /// A person asks the conversation.
    Prompt(String),
    /// A person takes the prompt of this number back.
    CancelPrompt(u64),
    /// An operator calls one of the supervisor's tools.
    Call {
        /// Names the call.
        call: u64,
        /// The tool's registry name.
        tool: String,
        /// Its arguments.
        args: Value,
    },
    /// The operator who made this call has gone.
    HangUp(u64),
    /// A stranger sends a signal to a child's process.
    Strike {
        /// Whose.
        node: u64,
        /// Which.
        blow: Blow,
    },
    /// Opens a gate at which programs wait (`Step::Until`).
    Open(String),
}

/// Signals that strangers send to children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blow {
    /// SIGKILL.
    Kill,
    /// SIGTERM.
    Term,
    /// SIGSTOP.
    Stop,
}

/// Acts that are to be done once the actions at hand are. Shared with whoever finds the moments for them.
pub(crate) type Acts = Rc<RefCell<VecDeque<Act>>>;

impl World<'_> {
    /// Lets somebody act who sees what the machine sees.
    pub(crate) fn with_acts(mut self, acts: Acts) -> Self {
        self.acts = acts;
        self
    }

    /// Does what is to be done from outside by now.
    pub(super) fn act(&mut self) {
        loop {
            let next = self.acts.borrow_mut().pop_front();
            let Some(act) = next else { return };
            match act {
                Act::Signal(signal) => {
                    let signal = match signal {
                        Interrupt::Term => SupervisorSignal::Term,
                        Interrupt::Int => SupervisorSignal::Int,
                        Interrupt::Hup => SupervisorSignal::Hup,
                    };
                    self.notice((Lane::Operator, 0), Event::Signalled { signal });
                }
                Act::Prompt(text) => self.notice((Lane::Operator, 0), Event::PromptSubmitted { text }),
                Act::CancelPrompt(prompt) => {
                    let reason = "the plan says so".to_owned();
                    self.notice((Lane::Operator, 0), Event::TurnCancelled { prompt, reason });
                }
                Act::Call { call, tool, args } => {
                    let args = Json::of(&args);
                    self.notice((Lane::Operator, 0), Event::OperatorCalled { call, tool, args });
                }
                Act::HangUp(call) => self.notice((Lane::Operator, 0), Event::OperatorHungUp { call }),
                Act::Strike { node, blow } => self.strike(NodeId(node), blow),
                Act::Open(gate) => {
                    for child in self.children.values_mut() {
                        child.program.gate_opened(&gate);
                    }
                    self.gates.insert(gate);
                    let nodes: Vec<NodeId> = self.children.keys().copied().collect();
                    nodes.into_iter().for_each(|node| self.turn_soon(node));
                }
            }
        }
    }

    fn strike(&mut self, node: NodeId, blow: Blow) {
        let now = self.programs_now();
        match blow {
            Blow::Kill => {
                if let Some((serial, _)) = self.kernel.of(node) {
                    self.agenda
                        .push_alone(self.now, Due::Dies(serial, Exit::Signal(crate::sim::kernel::SIGKILL)));
                }
            }
            Blow::Term => {
                if let Some(child) = self.children.get_mut(&node) {
                    child.program.terminated(now);
                }
                self.agenda.push_alone(self.now, Due::Turn(node));
            }
            Blow::Stop => {
                self.kernel.stop(node);
                self.oracles.misdeed(self.now, node, Misdeed::Silent);
            }
        }
    }
}
