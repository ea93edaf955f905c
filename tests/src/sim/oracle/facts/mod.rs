//! What is known: gathered from events and actions alone, but for births, deaths and misdeeds, which the fake machine tells.
//! Frames are read by decoders of the oracles' own, from the bytes that were fed and sent.

mod node;
mod prompts;
mod talk;

pub(super) use node::{Ask, Node, Request};
pub(super) use prompts::{Prompt, Prompts};
pub(super) use talk::{Message, Steer, Talk, TurnSeen};

use super::Verdict;
use crate::sim::plan::Plan;
use agentd_core::action::Action;
use agentd_core::event::{Event, SupervisorSignal};
use agentd_core::id::{Handle, NodeId, RunId};
use agentd_core::record::{Record, Status};
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::message::{Mode, Role, Turn};
use agentd_core::wire::{Decoded, Down, DownDecoder, Encoder, Up};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One run.
pub(super) struct Run {
    pub(super) record: Record,
    /// Some record of it is durable.
    pub(super) stored: bool,
    /// Its record could not be saved, at least once.
    pub(super) store_failed: bool,
    /// When its end could not be saved: the last time, and how often in a row.
    pub(super) unsaved: Option<(Instant, u32)>,
    pub(super) terminal: Option<(Instant, Record)>,
    /// Its terminal record is durable, or never will be.
    pub(super) settled: Option<Instant>,
    /// Somebody asked for its end: a kill of it or above it, or the end of who waits for it.
    pub(super) doomed: Option<Instant>,
    /// How far the record has come that a process may be made for it.
    pub(super) intent: Intent,
    pub(super) talk: Talk,
}

/// Whether a run may have a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Intent {
    /// It waits for a permit, or never had one.
    None,
    /// Its record is on the way to the store.
    Out(u64),
    /// Its record is durable.
    Stored,
    /// Its record could not be saved.
    Failed,
}

impl Run {
    /// It has, or had, a permit.
    pub(super) fn has_begun(&self) -> bool {
        self.intent != Intent::None
    }

    /// It is warm, was handed its instruction and is between turns.
    pub(super) fn is_idle(&self, facts: &Facts) -> bool {
        let has_frame = facts.nodes.get(&self.record.node).is_some_and(|n| n.first_frame);
        self.record.mode == Mode::Warm && has_frame && self.talk.in_hand.is_none()
    }

    /// It waits for a permit.
    pub(super) fn is_held(&self) -> bool {
        !self.has_begun() && self.terminal.is_none() && !(self.store_failed && !self.stored)
    }

    /// Its caller was told that there is none.
    pub(super) fn is_forgotten(&self) -> bool {
        self.store_failed && !self.stored && self.terminal.is_none()
    }
}

/// See the module.
pub(super) struct Facts {
    pub(super) plan: Arc<Plan>,
    pub(super) nodes: BTreeMap<NodeId, Node>,
    pub(super) runs: BTreeMap<RunId, Run>,
    pub(super) handles: BTreeMap<Handle, RunId>,
    pub(super) root: Option<RunId>,
    /// The conversation has its answer: nobody waits for detached runs for ever.
    pub(super) delivered: Option<Instant>,
    /// How long the daemon has stood still in all.
    pub(super) gaps: Duration,
    /// Interrupts so far: when, and which.
    pub(super) interrupts: Vec<(Instant, SupervisorSignal)>,
    /// Kills and retirements that were asked for, and when.
    asks: Vec<(Ask, Instant)>,
    pub(super) prompts: Prompts,
    /// What each `Persist` was of, and whether it was terminal.
    persists: BTreeMap<u64, (RunId, bool)>,
    pub(super) last_seq: Option<u64>,
}

impl Facts {
    pub(super) fn new(plan: Arc<Plan>) -> Facts {
        Facts {
            plan,
            nodes: BTreeMap::new(),
            runs: BTreeMap::new(),
            handles: BTreeMap::new(),
            root: None,
            delivered: None,
            gaps: Duration::ZERO,
            interrupts: Vec::new(),
            asks: Vec::new(),
            prompts: Prompts::default(),
            persists: BTreeMap::new(),
            last_seq: None,
        }
    }

    pub(super) fn node(&mut self, node: NodeId) -> &mut Node {
        self.nodes.entry(node).or_default()
    }

    /// The shortest silence that can count as no pong: the last one may be as old as a ping that was late.
    pub(super) fn shortest_silence_ms(&self) -> u64 {
        let knobs = &self.plan.knobs;
        knobs.pong_ms.saturating_sub(knobs.ping_ms + 4 * knobs.jitter_ms + 50)
    }

    /// How long the daemon has had, since it knows of a node's exit, to read what it wrote.
    pub(super) fn read_time(&self, node: &Node, now: Instant) -> Duration {
        node.exit
            .map_or(Duration::ZERO, |(at, _)| now.since(at).saturating_sub(self.gaps - node.gaps_at_exit))
    }

    /// The run that a node serves.
    pub(super) fn run_of(&self, node: NodeId) -> Option<&Run> {
        self.nodes.get(&node)?.run.and_then(|id| self.runs.get(&id))
    }

    /// The run of `sub-<n>`, as text.
    pub(super) fn by_handle(&self, text: &str) -> Option<&Run> {
        let handle: Handle = text.parse().ok()?;
        self.handles.get(&handle).and_then(|id| self.runs.get(id))
    }

    /// The run that a call made.
    pub(super) fn made_by(&self, node: NodeId, call_id: &str) -> Option<&Run> {
        let parent = self.nodes.get(&node)?.run?;
        self.runs
            .values()
            .find(|r| r.record.parent == Some(parent) && r.record.call_id.as_deref() == Some(call_id))
    }

    /// Messages that may have been taken from callers that died before they could be told.
    pub(super) fn unheard_sends(&self, run: &Run) -> usize {
        let handle = name(&run.record);
        let unheard = |r: &&Request| !r.answered && r.name == "subagent.send" && r.args["handle"] == *handle;
        let dead = self.nodes.values().filter(|n| n.exit.is_some() || n.write_failed);
        dead.map(|n| n.requests.values().filter(unheard).count()).sum()
    }

    /// Whether a drain has begun.
    pub(super) fn draining(&self) -> Option<Instant> {
        self.interrupts.first().map(|(at, _)| *at)
    }

    /// Whether a run that nobody waits for has had its time after the conversation's answer.
    pub(super) fn left_over(&self, run: &Run, now: Instant) -> bool {
        let wait = match run.record.mode {
            Mode::Detached => Duration::from_millis(self.plan.knobs.drain_ms),
            Mode::Warm => Duration::ZERO,
            Mode::Sync | Mode::Async => return false,
        };
        self.plan.knobs.one_shot && self.delivered.is_some_and(|at| now >= at + wait)
    }

    /// What has not ended, for a message.
    pub(super) fn unfinished(&self) -> String {
        let runs: Vec<String> = self
            .runs
            .values()
            .filter(|r| r.terminal.is_none())
            .map(|r| format!("{} {}", name(&r.record), r.record.status.name()))
            .collect();
        let nodes: Vec<String> = self
            .nodes
            .iter()
            .filter(|(_, n)| n.born.is_some() && !n.reaped)
            .map(|(id, n)| format!("{id} {}", if n.gone.is_some() { "zombie" } else { "alive" }))
            .collect();
        format!("live records: [{}]; unreaped: [{}]", runs.join(", "), nodes.join(", "))
    }

    pub(super) fn fed(&mut self, now: Instant, event: &Event) {
        match event {
            Event::ChildSpawned { node, .. } => {
                let node = self.node(*node);
                node.spawned = Some(now);
                node.armed = Some(now);
            }
            Event::SpawnFailed { node, .. } => self.node(*node).spawn_failed = true,
            Event::ChildBytes { node, bytes } => self.read_up(now, *node, bytes),
            Event::ChildEof { node } => {
                let node = self.node(*node);
                node.eof = true;
                node.note_finish(now);
            }
            Event::ChildWriteFailed { node, .. } => self.node(*node).write_failed = true,
            Event::SpawnFrameFailed { node, .. } => {
                self.node(*node).frame_failed.get_or_insert(now);
            }
            Event::ExitObserved { node, exit } => {
                let gaps = self.gaps;
                let n = self.node(*node);
                n.exit = Some((now, *exit));
                n.gaps_at_exit = gaps;
                self.doom_children_of(*node, now);
            }
            Event::Swept { node, remaining, .. } => {
                let node = self.node(*node);
                node.sweeping = false;
                node.remaining = Some(*remaining);
                node.note_finish(now);
            }
            Event::Reaped { node } => self.node(*node).reaped = true,
            Event::Stored { seq } => self.answered(now, *seq, true, false),
            Event::StoreFailed { seq, retryable, .. } => self.answered(now, *seq, false, *retryable),
            Event::Signalled { signal: signal @ (SupervisorSignal::Term | SupervisorSignal::Int) } => {
                self.interrupts.push((now, *signal));
            }
            Event::PromptSubmitted { text } => {
                if !self.plan.knobs.one_shot || self.prompts.all.is_empty() {
                    self.prompts.asked(now, text);
                }
            }
            Event::TurnCancelled { prompt, .. } => self.prompt_cancelled(now, *prompt),
            Event::Signalled { signal: SupervisorSignal::Hup }
            | Event::Seeded { .. }
            | Event::Tick
            | Event::ChildStderr { .. }
            | Event::ChildWrote { .. } => {}
        }
    }

    fn answered(&mut self, now: Instant, seq: u64, stored: bool, retryable: bool) {
        let Some((id, terminal)) = self.persists.get(&seq).copied() else { return };
        let Some(run) = self.runs.get_mut(&id) else { return };
        run.stored |= stored;
        run.store_failed |= !stored;
        if run.intent == Intent::Out(seq) {
            run.intent = if stored { Intent::Stored } else { Intent::Failed };
        }
        if terminal {
            run.unsaved = (!stored).then(|| (now, run.unsaved.map_or(1, |(_, times)| times + 1)));
        }
        if terminal && (stored || !retryable) && run.settled.is_none() {
            run.settled = Some(now);
            self.owe_note(id);
        }
    }

    /// With `agent.wake_on` the conversation is told of an ended run whose result is no call's answer (S8.4).
    fn owe_note(&mut self, id: RunId) {
        let Some(run) = self.runs.get(&id).filter(|run| run.record.handle.is_some()) else { return };
        let handle = name(&run.record);
        let asks = |node: &Node, r: &Request| {
            let about = |value: &Value| *value == *handle;
            let one = about(&r.args["handle"]) && r.name != "subagent.send";
            let many = r.args["handles"].as_array().is_some_and(|all| all.iter().any(about));
            let made = node.run == run.record.parent && Some(&r.call_id) == run.record.call_id.as_ref();
            !r.answered && (one || many || made)
        };
        let is_worker = |node: &Node| {
            let of = node.run.and_then(|id| self.runs.get(&id));
            of.is_some_and(|run| run.record.role == Role::Worker)
        };
        let mut workers = self.nodes.values().filter(|node| is_worker(node));
        let answered = workers.any(|node| node.requests.values().any(|r| asks(node, r)));
        if self.plan.knobs.wake && self.draining().is_none() && !answered {
            self.prompts.owed.insert(format!("subagent {handle} "));
        }
    }

    fn read_up(&mut self, now: Instant, id: NodeId, bytes: &[u8]) {
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
        self.node(id).up = Some(decoder);
    }

    fn heard(&mut self, now: Instant, id: NodeId, up: &Up) {
        if let Some(ask) = self.node(id).heard(now, up) {
            self.asked(now, &ask);
            self.asks.push((ask, now));
        }
        if self.node(id).broken.is_some() {
            return;
        }
        match up {
            Up::Turn(turn) => self.turn_told(now, id, turn),
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
    fn asked(&mut self, now: Instant, ask: &Ask) {
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
            self.node(id).broken = Some(now);
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
    }

    fn prompt_cancelled(&mut self, now: Instant, number: u64) {
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
    pub(super) fn run_of_mut(&mut self, node: NodeId) -> Option<&mut Run> {
        let id = self.nodes.get(&node)?.run?;
        self.runs.get_mut(&id)
    }

    fn doom_run(&mut self, id: RunId, all_below: bool, now: Instant) {
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
    fn doom_children_of(&mut self, node: NodeId, now: Instant) {
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
    pub(super) fn read_down(&mut self, now: Instant, id: NodeId, frame: &[u8]) -> Verdict<Vec<Down>> {
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
            if let Down::Cancel(cancel) = down
                && cancel.turn.is_none()
            {
                node.cancelled.get_or_insert(now);
            }
        }
        Ok(said)
    }

    pub(super) fn did(&mut self, now: Instant, action: &Action) {
        match action {
            Action::Spawn { node, .. } => {
                let node = self.node(*node);
                node.spawn_asked.get_or_insert(now);
                node.spawn_failed = false;
            }
            Action::SendSpawn { node, payload } => {
                let (mode, instruction) = (payload.0.mode, payload.0.instruction.clone());
                if payload.0.role == Role::Worker {
                    self.prompt_begun(*node, 1, &instruction);
                }
                if let Some(run) = self.run_of_mut(*node) {
                    run.talk.begun(mode, &instruction);
                }
                let node = self.node(*node);
                node.first_frame = true;
                node.offered = payload.0.own_tools.iter().map(|tool| tool.name.clone()).collect();
                node.deadline_ms = payload.0.limits.deadline_ms;
                let mut decoder = DownDecoder::new();
                if let Ok(frame) = Encoder::new().encode_down(&Down::Spawn(payload.0.clone())) {
                    decoder.push(&frame);
                    while decoder.next().is_some() {}
                }
                node.down = Some(decoder);
            }
            Action::Signal { node, signal } => self.node(*node).signals.push((now, *signal)),
            Action::Sweep { node, .. } => self.node(*node).sweeping = true,
            Action::Reap { node } => self.node(*node).reap_asked = true,
            Action::Persist { seq, record } => self.persisted(now, *seq, record),
            Action::CloseStdin { node } => {
                self.node(*node).cancelled.get_or_insert(now);
            }
            Action::SendToChild { .. } | Action::ReapOrphans | Action::Note(_) | Action::Exit { .. } => {}
            Action::Deliver { .. } => self.delivered = Some(now),
        }
    }

    /// A worker is handed a prompt, or a note. Gives the number of the prompt.
    pub(super) fn prompt_begun(&mut self, node: NodeId, message: u64, text: &str) -> Option<u64> {
        let number = self.prompts.begun(node, message, text)?;
        self.prompts.last_begun = self.prompts.last_begun.max(number);
        // It may have been taken back while its worker was being made.
        let cancelled = self.prompts.all.get(&number).and_then(|p| p.cancelled);
        self.node(node).turn_cancelled = cancelled;
        Some(number)
    }

    fn persisted(&mut self, now: Instant, seq: u64, record: &Record) {
        let id = record.run_id;
        let terminal = record.status.is_terminal();
        self.last_seq = Some(seq);
        self.persists.insert(seq, (id, terminal));
        self.node(record.node).run = Some(id);
        if record.role == Role::Worker {
            self.root.get_or_insert(id);
        }
        if let Some(handle) = record.handle {
            self.handles.insert(handle, id);
        }
        // The read that brought its call may have brought its kill as well.
        let text = record.handle.map(|h| h.to_string());
        let new = !self.runs.contains_key(&id);
        let run = self.runs.entry(id).or_insert_with(|| Run {
            record: record.clone(),
            stored: false,
            store_failed: false,
            unsaved: None,
            terminal: None,
            settled: None,
            doomed: None,
            intent: Intent::None,
            talk: Talk::default(),
        });
        if !terminal && record.status != Status::Held && !run.has_begun() {
            run.intent = Intent::Out(seq);
        }
        run.record = record.clone();
        if terminal && run.terminal.is_none() {
            run.terminal = Some((now, record.clone()));
            self.doom_children_of(record.node, now);
        }
        if new {
            let early = |(ask, at): &&(Ask, Instant)| *at == now && text.as_deref() == Some(ask.handle());
            let asks: Vec<Ask> = self.asks.iter().filter(early).map(|(ask, _)| ask.clone()).collect();
            asks.iter().for_each(|ask| self.asked(now, ask));
            // And the end of the turn that made it.
            let parent = record.parent.and_then(|id| self.runs.get(&id)).map(|r| r.record.node);
            let over = parent.and_then(|p| self.nodes.get(&p)).is_some_and(|n| n.called_off == Some(now));
            if over && record.mode == Mode::Sync {
                self.doom_run(id, false, now);
            }
        }
    }
}

/// A run's short name.
pub(super) fn name(record: &Record) -> String {
    record.handle.map_or_else(|| "root".to_owned(), |h| h.to_string())
}
