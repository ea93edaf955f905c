//! What is known: gathered from events and actions alone, but for births, deaths and misdeeds, which the fake machine tells.
//! Frames are read by decoders of the oracles' own, from the bytes that were fed and sent.

mod node;

pub(super) use node::{Node, Request};

use super::Verdict;
use crate::sim::plan::Plan;
use agentd_core::action::Action;
use agentd_core::event::{Event, SupervisorSignal};
use agentd_core::id::{Handle, NodeId, RunId};
use agentd_core::record::Record;
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::message::{Mode, Role, ToolResult};
use agentd_core::wire::{Decoded, Down, DownDecoder, Encoder};
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
    /// Kills that were asked for: of whom, whether only of it, when.
    kills: Vec<(String, bool, Instant)>,
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
            kills: Vec::new(),
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

    /// Whether a drain has begun.
    pub(super) fn draining(&self) -> Option<Instant> {
        self.interrupts.first().map(|(at, _)| *at)
    }

    /// Whether a run that nobody waits for has had its time after the conversation's answer.
    pub(super) fn left_over(&self, run: &Run, now: Instant) -> bool {
        let wait = Duration::from_millis(self.plan.knobs.drain_ms);
        run.record.mode == Mode::Detached && self.delivered.is_some_and(|at| now >= at + wait)
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
            Event::ChildSpawned { node, .. } => self.node(*node).spawned = Some(now),
            Event::SpawnFailed { node, .. } => self.node(*node).spawn_failed = true,
            Event::ChildBytes { node, bytes } => self.read_up(now, *node, bytes),
            Event::ChildEof { node } => {
                let node = self.node(*node);
                node.eof = true;
                node.note_finish(now);
            }
            Event::ChildWriteFailed { node, .. } | Event::SpawnFrameFailed { node, .. } => {
                self.node(*node).write_failed = true
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
            Event::Signalled { signal: SupervisorSignal::Hup }
            | Event::Seeded { .. }
            | Event::PromptSubmitted { .. }
            | Event::TurnCancelled { .. }
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
        if terminal {
            run.unsaved = (!stored).then(|| (now, run.unsaved.map_or(1, |(_, times)| times + 1)));
        }
        if terminal && (stored || !retryable) {
            run.settled.get_or_insert(now);
        }
    }

    fn read_up(&mut self, now: Instant, id: NodeId, bytes: &[u8]) {
        let node = self.node(id);
        if node.broken.is_some() {
            return;
        }
        let mut decoder = node.up.take().unwrap_or_default();
        decoder.push(bytes);
        let mut kills = Vec::new();
        for frame in decoder.by_ref() {
            match frame {
                Ok(Decoded::Message(up)) if node.terminal.is_none() => kills.extend(node.heard(now, up)),
                Ok(_) => {}
                Err(_) => node.broken = Some(now),
            }
            if node.broken.is_some() {
                break;
            }
        }
        node.up = Some(decoder);
        for (handle, only) in kills {
            self.doom(&handle, only, now);
            self.kills.push((handle, only, now));
        }
    }

    /// A kill was asked for; whether it is allowed is told by its answer, so this is a reason and no proof.
    fn doom(&mut self, handle: &str, only: bool, now: Instant) {
        let Some(id) = self.by_handle(handle).map(|r| r.record.run_id) else { return };
        self.doom_run(id, !only, now);
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
        let Some(id) = self.nodes.get(&node).and_then(|n| n.run) else { return };
        let below: Vec<RunId> = self
            .runs
            .values()
            .filter(|r| r.record.parent == Some(id) && r.record.mode == Mode::Sync)
            .map(|r| r.record.run_id)
            .collect();
        for id in below {
            self.doom_run(id, false, now);
        }
    }

    /// What a frame to a child answers. A frame the child could not read is a broken rule.
    pub(super) fn read_down(&mut self, now: Instant, id: NodeId, frame: &[u8]) -> Verdict<Vec<ToolResult>> {
        const RULE: &str = "a child is sent what it can use";
        let node = self.node(id);
        let Some(decoder) = node.down.as_mut() else {
            return Err((RULE, format!("{id} is sent a frame before its spawn frame")));
        };
        decoder.push(frame);
        let mut answers = Vec::new();
        for frame in decoder.by_ref() {
            match frame {
                Ok(Decoded::Message(Down::ToolResult(result))) => answers.push(result),
                Ok(Decoded::Message(Down::Cancel(_))) => {
                    node.cancelled.get_or_insert(now);
                }
                Ok(_) => {}
                Err(error) => return Err((RULE, format!("{id}: {error}"))),
            }
        }
        Ok(answers)
    }

    pub(super) fn did(&mut self, now: Instant, action: &Action) {
        match action {
            Action::Spawn { node, .. } => {
                let node = self.node(*node);
                node.spawn_asked.get_or_insert(now);
                node.spawn_failed = false;
            }
            Action::SendSpawn { node, payload } => {
                let node = self.node(*node);
                node.first_frame = true;
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
        let killed = self.kills.iter().any(|(handle, _, at)| text.as_ref() == Some(handle) && *at == now);
        let run = self.runs.entry(id).or_insert_with(|| Run {
            record: record.clone(),
            stored: false,
            store_failed: false,
            unsaved: None,
            terminal: None,
            settled: None,
            doomed: killed.then_some(now),
        });
        run.record = record.clone();
        if terminal && run.terminal.is_none() {
            run.terminal = Some((now, record.clone()));
            self.doom_children_of(record.node, now);
        }
    }
}

/// A run's short name.
pub(super) fn name(record: &Record) -> String {
    record.handle.map_or_else(|| "root".to_owned(), |h| h.to_string())
}
