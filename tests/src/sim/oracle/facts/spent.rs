//! What a process has reported that it used, counted by a sum of the oracles' own.

use crate::sim::replay::price;
use agentd_core::record::Tokens;
use agentd_core::wire::Up;
use agentd_core::wire::message::Usage;

/// See the module.
#[derive(Default)]
pub(in crate::sim::oracle) struct Spent {
    priced: bool,
    /// All that was charged.
    pub(in crate::sim::oracle) own: Tokens,
    /// What its model call in flight is estimated to have sent.
    in_flight: Option<u64>,
    /// Of a call that was in flight as its outcome was decided: that much of its report is charged already.
    ahead: u64,
    /// Sums that stood at some point of the event in hand.
    stood: Vec<Tokens>,
    /// Its outcome was decided between two of its own frames of one read: which of them is not told.
    pub(in crate::sim::oracle) is_vague: bool,
}

impl Spent {
    /// Nothing yet, of a model that has a price or none.
    pub(super) fn new(priced: bool) -> Spent {
        Spent { priced, ..Spent::default() }
    }

    /// The event in hand is over.
    pub(super) fn settle(&mut self) {
        self.stood.clear();
    }

    /// A frame that is taken.
    pub(super) fn heard(&mut self, up: &Up) {
        self.stood.push(self.own);
        match up {
            Up::State(state) => self.in_flight = state.in_flight,
            Up::Usage(usage) => self.used(usage),
            Up::Turn(_) | Up::Result(_) | Up::Failed(_) => self.in_flight = None,
            Up::Ready(_) | Up::Pong(_) | Up::Event(_) | Up::Tools(_) => {}
            Up::ToolRequest(_) | Up::BudgetRequest(_) | Up::Ack(_) | Up::ModelHealth(_) => {}
        }
    }

    fn used(&mut self, usage: &Usage) {
        self.in_flight = None;
        let input = usage.input.saturating_sub(std::mem::take(&mut self.ahead));
        let (output, cached, estimated) = (usage.output, usage.cached, usage.estimated);
        self.charge(&usage.model, Tokens { input, output, cached, estimated, ..Tokens::default() });
    }

    fn charge(&mut self, model: &str, mut tokens: Tokens) {
        if self.priced {
            tokens.usd = price(model).of(&tokens);
        } else {
            tokens.unpriced = true;
        }
        self.own.add(&tokens);
    }

    /// Its outcome is decided and its record says `recorded`: a call in flight is charged by estimate, once.
    pub(in crate::sim::oracle) fn decided(&mut self, recorded: &Tokens) {
        if let Some(input) = self.in_flight.take() {
            self.ahead = input;
            self.charge("sim", Tokens { input, estimated: true, ..Tokens::default() });
        }
        if self.own != *recorded && !self.stood.is_empty() {
            self.is_vague = true;
        }
    }

    /// The same of tokens in and out alone, of this life of the daemon.
    pub(in crate::sim::oracle) fn may_come_to(&self, input: u64, output: u64) -> bool {
        let fits = |sum: &Tokens| (sum.input, sum.output) == (input, output);
        self.is_vague || fits(&self.own) || self.stood.iter().any(fits)
    }

    /// Whether a sum is what it has used, now or at some point of the event in hand.
    pub(in crate::sim::oracle) fn may_be(&self, sum: &Tokens) -> bool {
        self.is_vague || self.own == *sum || self.stood.contains(sum)
    }
}
