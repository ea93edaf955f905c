//! What children say and are told, frame by frame, and what that means for others: who is doomed, whose turn is over.

use super::{Ask, Facts, Run, Spent};
use crate::sim::oracle::{Verdict, plan};
use agentd_core::id::{NodeId, RunId};
use agentd_core::time::Instant;
use agentd_core::wire::message::{Mode, Turn};
use agentd_core::wire::{Decoded, Down, Up};
use serde_json::Value;

impl Facts {
    pub(super) fn read_up(&mut self, now: Instant, id: NodeId, bytes: &[u8]) {
        let node = self.node(id);
        if node.broken.is_some() {
            return;
        }
        let mut decoder = node.up.take().unwrap_or_default();
        decoder.push(bytes);
        while self.node(id).broken.is_none()
            && let Some(frame) = decoder.next()
        {
            match frame {
                Ok(Decoded::Message(up)) if self.node(id).terminal.is_none() => self.heard(now, id, &up),
                Ok(_) => {}
                Err(_) => self.node(id).broken = Some(now),
            }
        }
        let node = self.node(id);
        node.up = Some(decoder);
        if node.is_unheard() {
            node.count_unheard();
        }
    }

    /// A turn out of place came from a run that was decided in the same event: it was late, and what follows is heard.
    pub(in crate::sim::oracle) fn hear_on(&mut self, now: Instant, id: NodeId) {
        let decided = self.run_of(id).and_then(|run| run.terminal.as_ref());
        let late = decided.is_some_and(|(_, record)| {
            !record.error.as_ref().is_some_and(|error| error.starts_with("protocol error"))
        });
        if late && self.node(id).out_of_turn == Some(now) {
            self.node(id).out_of_turn = None;
            self.node(id).broken = None;
            self.read_up(now, id, &[]);
        }
    }

    fn heard(&mut self, now: Instant, id: NodeId, up: &Up) {
        if let Some(ask) = self.node(id).heard(now, up) {
            self.asked(now, &ask);
            self.asks.push((ask, now));
        }
        if self.node(id).broken.is_some() {
            return;
        }
        if let Up::ToolRequest(request) = up
            && self.node(id).is_unheard()
            && self.node(id).is_offered(request.id)
        {
            // Done all the same: it was asked for in good time.
            plan::unanswered(self, &request.name, &request.args.parse().unwrap_or(Value::Null));
        }
        let priced = self.plan.knobs.priced;
        self.heard_from = Some(id);
        self.spent.entry(id).or_insert_with(|| Spent::new(priced)).heard(up);
        match up {
            Up::Turn(turn) => {
                self.purses.turn_ended(now, id);
                self.turn_told(now, id, turn);
            }
            Up::Result(_) | Up::Failed(_) => self.purses.turn_ended(now, id),
            // Whose end is decided is not answered.
            Up::BudgetRequest(ask) if self.run_of(id).is_some_and(|run| run.terminal.is_none()) => {
                self.purses.asked(id, ask);
            }
            Up::Usage(usage) => self.purses.used(now, priced, id, usage),
            Up::ModelHealth(report) => self.throttles.reported(now, report),
            Up::Ack(ack) => {
                self.prompts.note_taken(id, ack.id);
                if let Some(run) = self.run_of_mut(id) {
                    run.talk.acked(ack.id);
                }
            }
            _ => {}
        }
    }

    /// Somebody wants something of a run; whether that is allowed is told by the answer, so this is a reason and no
    /// proof.
    pub(super) fn asked(&mut self, now: Instant, ask: &Ask) {
        let Some(id) = self.by_handle(ask.handle()).map(|r| r.record.run_id) else { return };
        match ask {
            Ask::Kill { only, .. } => self.doom_run(id, !only, now),
            Ask::Retire { .. } => {
                if let Some(run) = self.runs.get_mut(&id) {
                    run.talk.retire_asked.get_or_insert(now);
                }
            }
        }
    }

    fn turn_told(&mut self, now: Instant, id: NodeId, turn: &Turn) {
        let Some(run) = self.run_of_mut(id) else { return };
        if run.terminal.is_some() {
            return;
        }
        if !run.talk.turn_ended(now, turn) {
            let node = self.node(id);
            node.broken = Some(now);
            node.out_of_turn = Some(now);
            self.stirred.insert(id);
            return;
        }
        self.node(id).armed = None;
        self.call_off(now, id);
    }

    /// A turn ends or is cancelled: what it waited for ends with it, and its calls are called off (S6.7).
    fn call_off(&mut self, now: Instant, id: NodeId) {
        let below = self.sync_children_of(id);
        let live = |id: &RunId| self.runs.get(id).is_some_and(|r| r.terminal.is_none() && !r.is_forgotten());
        let end_now: Vec<RunId> = below.iter().filter(|id| live(id)).copied().collect();
        for id in below {
            self.doom_run(id, false, now);
        }
        let node = self.node(id);
        node.called_off = Some(now);
        node.end_now.extend(end_now);
        self.stirred.insert(id);
    }

    pub(super) fn prompt_cancelled(&mut self, now: Instant, number: u64) {
        let Some(prompt) = self.prompts.all.get_mut(&number) else { return };
        if prompt.delivered.is_some() || prompt.cancelled.is_some() {
            return;
        }
        prompt.cancelled = Some(now);
        if let Some((node, message)) = prompt.begun
            && self.run_of(node).is_some_and(|r| r.talk.in_hand.is_none_or(|m| m == message))
        {
            self.node(node).turn_cancelled.get_or_insert(now);
            self.call_off(now, node);
        }
    }

    /// The run that a node serves, to be changed.
    pub(in crate::sim::oracle) fn run_of_mut(&mut self, node: NodeId) -> Option<&mut Run> {
        let id = self.nodes.get(&node)?.run?;
        self.runs.get_mut(&id)
    }

    pub(super) fn doom_run(&mut self, id: RunId, all_below: bool, now: Instant) {
        if let Some(run) = self.runs.get_mut(&id) {
            run.doomed.get_or_insert(now);
        }
        let below: Vec<RunId> = self
            .runs
            .values()
            .filter(|r| r.record.parent == Some(id) && (all_below || r.record.mode == Mode::Sync))
            .map(|r| r.record.run_id)
            .collect();
        for id in below {
            self.doom_run(id, all_below, now);
        }
    }

    /// Who waited is gone: what it waited for has no reader (S6.7).
    pub(super) fn doom_children_of(&mut self, node: NodeId, now: Instant) {
        for id in self.sync_children_of(node) {
            self.doom_run(id, false, now);
        }
    }

    fn sync_children_of(&self, node: NodeId) -> Vec<RunId> {
        let Some(id) = self.nodes.get(&node).and_then(|n| n.run) else { return Vec::new() };
        self.runs
            .values()
            .filter(|r| r.record.parent == Some(id) && r.record.mode == Mode::Sync)
            .map(|r| r.record.run_id)
            .collect()
    }

    /// What a frame to a child says. A frame the child could not read is a broken rule.
    pub(in crate::sim::oracle) fn read_down(
        &mut self,
        now: Instant,
        id: NodeId,
        frame: &[u8],
    ) -> Verdict<Vec<Down>> {
        const RULE: &str = "a child is sent what it can use";
        let node = self.node(id);
        let Some(decoder) = node.down.as_mut() else {
            return Err((RULE, format!("{id} is sent a frame before its spawn frame")));
        };
        decoder.push(frame);
        let mut said = Vec::new();
        for frame in decoder.by_ref() {
            match frame {
                Ok(Decoded::Message(down)) => said.push(down),
                Ok(_) => {}
                Err(error) => return Err((RULE, format!("{id}: {error}"))),
            }
        }
        for down in &said {
            node.told(now, down);
            if let Down::Cancel(cancel) = down
                && cancel.turn.is_none()
            {
                node.cancelled.get_or_insert(now);
            }
        }
        Ok(said)
    }
}
