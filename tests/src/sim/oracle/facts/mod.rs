//! What is known: gathered from events and actions alone, but for births, deaths and misdeeds, which the fake machine tells.
//! Frames are read by decoders of the oracles' own, from the bytes that were fed and sent.

mod heard;
mod node;
mod plan;
mod prompts;
mod run;
mod spent;
mod talk;

pub(super) use node::{Ask, Node, Request};
pub(super) use plan::PlanSeen;
pub(super) use prompts::{Prompt, Prompts};
pub(super) use run::{Intent, Run};
pub(super) use spent::Spent;
pub(super) use talk::{Message, Talk, TurnSeen};

use super::budget::Purses;
use super::throttle::Throttles;
use super::usage;
use crate::sim::plan::Plan;
use agentd_core::action::Action;
use agentd_core::bytes::Json;
use agentd_core::event::{Event, SupervisorSignal};
use agentd_core::id::{Handle, NodeId, RunId};
use agentd_core::record::{Record, Status};
use agentd_core::store::{Class, record_in};
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::message::{Mode, Resume, Role};
use agentd_core::wire::{Down, DownDecoder, Encoder};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What an operator called for.
#[derive(Clone)]
pub(super) struct OperatorCall {
    pub(super) at: Instant,
    pub(super) tool: String,
    /// About whom.
    pub(super) handle: String,
    /// A kill that spares what its run delegated.
    pub(super) only: bool,
    pub(super) answered: bool,
    pub(super) hung_up: bool,
}

/// See the module.
pub(super) struct Facts {
    pub(super) plan: Arc<Plan>,
    /// The highest breadth there was.
    pub(super) most_breadth: u32,
    /// A conversation's worker is offered to delegate.
    delegates: bool,
    pub(super) nodes: BTreeMap<NodeId, Node>,
    pub(super) runs: BTreeMap<RunId, Run>,
    /// Those of them that have not ended, or did so in the event in hand.
    pub(super) live: BTreeSet<RunId>,
    /// Processes of which something must be looked at once the event in hand is done.
    pub(super) stirred: BTreeSet<NodeId>,
    pub(super) handles: BTreeMap<Handle, RunId>,
    /// Whom each run delegated to.
    pub(super) children: BTreeMap<RunId, Vec<RunId>>,
    /// What each process that was heard has used.
    pub(super) spent: BTreeMap<NodeId, Spent>,
    /// The conversation's plan.
    pub(super) plan_seen: Option<PlanSeen>,
    /// What operators called for.
    pub(super) operator_calls: BTreeMap<u64, OperatorCall>,
    /// Runs whose kill, with all that they delegated, was answered in the event in hand.
    pub(super) killed_whole: Vec<RunId>,
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
    /// What is known of the model's endpoints, and who was told.
    pub(super) throttles: Throttles,
    /// What model calls cost, and who waits for a budget.
    pub(super) purses: Purses,
    /// What each `Persist` was of, and whether it was terminal.
    persists: BTreeMap<u64, (RunId, bool)>,
    pub(super) last_seq: Option<u64>,
    /// Whose frames the last event brought.
    heard_from: Option<NodeId>,
}

impl Facts {
    pub(super) fn new(plan: Arc<Plan>) -> Facts {
        Facts {
            most_breadth: plan.knobs.breadth,
            delegates: plan.knobs.depth > 0,
            plan,
            nodes: BTreeMap::new(),
            runs: BTreeMap::new(),
            live: BTreeSet::new(),
            stirred: BTreeSet::new(),
            handles: BTreeMap::new(),
            children: BTreeMap::new(),
            spent: BTreeMap::new(),
            plan_seen: None,
            operator_calls: BTreeMap::new(),
            killed_whole: Vec::new(),
            root: None,
            delivered: None,
            gaps: Duration::ZERO,
            interrupts: Vec::new(),
            asks: Vec::new(),
            prompts: Prompts::default(),
            throttles: Throttles::default(),
            purses: Purses::default(),
            persists: BTreeMap::new(),
            last_seq: None,
            heard_from: None,
        }
    }

    pub(super) fn node(&mut self, node: NodeId) -> &mut Node {
        self.nodes.entry(node).or_default()
    }

    /// The shortest silence that can count as no pong: the last one may be as old as a ping that was late.
    pub(super) fn shortest_silence_ms(&self) -> u64 {
        let knobs = &self.plan.knobs;
        knobs.pong_ms.saturating_sub(knobs.ping_ms + 4 * knobs.notice_ms() + 50)
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
        let Some(handle) = run.record.handle else { return 0 };
        self.nodes.values().filter_map(|n| n.unheard.get(&handle)).sum()
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
        if let Some(node) = self.heard_from.take()
            && let Some(spent) = self.spent.get_mut(&node)
        {
            spent.settle();
        }
        match event {
            Event::ChildSpawned { node, .. } => {
                let node = self.node(*node);
                node.spawned = Some(now);
                node.arm(now);
            }
            Event::SpawnFailed { node, .. } => self.node(*node).spawn_failed = true,
            Event::ChildBytes { node, bytes } => self.read_up(now, *node, bytes),
            Event::ChildEof { node } => {
                let node = self.node(*node);
                node.eof = true;
                node.note_finish(now);
            }
            Event::ChildWriteFailed { node, .. } => {
                let node = self.node(*node);
                node.write_failed = true;
                node.count_unheard();
            }
            Event::SpawnFrameFailed { node, .. } => {
                self.node(*node).frame_failed.get_or_insert(now);
            }
            Event::ExitObserved { node, exit } => {
                let gaps = self.gaps;
                let n = self.node(*node);
                n.exit = Some((now, *exit));
                n.gaps_at_exit = gaps;
                n.count_unheard();
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
            Event::Signalled { signal } if self.stops(*signal) => self.interrupts.push((now, *signal)),
            Event::PromptSubmitted { text } => {
                if !self.plan.knobs.one_shot || self.prompts.all.is_empty() {
                    self.prompts.asked(now, text);
                }
            }
            Event::TurnCancelled { prompt, .. } => self.prompt_cancelled(now, *prompt),
            Event::OperatorCalled { call, tool, args } => self.operator_called(now, *call, tool, args),
            Event::OperatorHungUp { call } => {
                if let Some(call) = self.operator_calls.get_mut(call) {
                    call.hung_up = true;
                }
            }
            Event::ConfigReady(reloaded) if self.draining().is_none() => {
                let limits = &reloaded.config.subagents;
                self.most_breadth = self.most_breadth.max(limits.breadth);
                if std::mem::replace(&mut self.delegates, limits.depth > 0) != (limits.depth > 0) {
                    self.nodes.values_mut().for_each(|node| node.outdated |= node.first_frame);
                }
            }
            Event::ConfigReady(_)
            | Event::ConfigRefused { .. }
            | Event::ModelFrameFailed { .. }
            | Event::Signalled { .. }
            | Event::Restored(_)
            | Event::HostToolAnswered { .. }
            | Event::Seeded { .. }
            | Event::Tick
            | Event::ChildStderr { .. }
            | Event::ChildWrote { .. }
            | Event::ConnOpened { .. }
            | Event::ConnBytes { .. }
            | Event::ConnWrote { .. }
            | Event::ConnEnded { .. }
            | Event::ConnClosed { .. } => {}
        }
    }

    /// Whether a signal asks for the end: a hang-up does only where the terminal's end is the run's.
    pub(super) fn stops(&self, signal: SupervisorSignal) -> bool {
        signal != SupervisorSignal::Hup || self.plan.knobs.one_shot
    }

    fn operator_called(&mut self, now: Instant, call: u64, tool: &str, args: &Json) {
        let args = args.parse().unwrap_or(Value::Null);
        let handle = args["handle"].as_str().unwrap_or_default().to_owned();
        let only = args["only"] == Value::Bool(true);
        if tool == "subagent.kill" {
            self.asked(now, &Ask::Kill { handle: handle.clone(), only });
        }
        let (tool, answered, hung_up) = (tool.to_owned(), false, false);
        let asked = OperatorCall { at: now, tool, handle, only, answered, hung_up };
        self.operator_calls.insert(call, asked);
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
            // What no later try can save is not tried again; what is saved of the run after it is something new.
            let again = !stored && retryable;
            run.unsaved = again.then(|| (now, run.unsaved.map_or(1, |(_, times)| times + 1)));
        }
        let ended = run.terminal.is_some() && run.record.role == Role::Worker;
        let unrecorded = ended && run.intent == Intent::Failed;
        if (terminal && (stored || !retryable) || unrecorded) && run.settled.is_none() {
            run.settled = Some(now);
            self.owe_note(id);
            self.end_is_told(id);
        }
    }

    /// In a later life of the daemon: a run's end is decided, and what its call in flight has sent is charged.
    pub(super) fn decided_again(&mut self, record: &Record) {
        let ended = self.runs.get(&record.run_id).is_some_and(|run| run.terminal.is_some());
        if record.status.is_terminal()
            && !ended
            && let Some(spent) = self.spent.get_mut(&record.node)
        {
            spent.decided(&record.usage);
        }
    }

    /// The daemon ends without what it could not save: it is told all the same.
    pub(super) fn given_up(&mut self, now: Instant) {
        let unsettled = |run: &&mut Run| run.terminal.is_some() && run.settled.is_none();
        let ids: Vec<RunId> = self.runs.values_mut().filter(unsettled).map(|run| run.record.run_id).collect();
        for id in ids {
            if let Some(run) = self.runs.get_mut(&id) {
                run.settled = Some(now);
            }
            self.end_is_told(id);
        }
    }

    /// A run's end is durable: every reader is told these sums from now on, and the plan's items settle.
    fn end_is_told(&mut self, id: RunId) {
        let (sum, vague) = usage::of(self, id);
        let Some(run) = self.runs.get_mut(&id) else { return };
        run.told = Some(sum);
        run.told_vaguely = vague;
        if let (Some(handle), Some(plan)) = (run.record.handle, &mut self.plan_seen) {
            plan.settle(handle, run.plan_cause());
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
                // The frames after the first are read. What the first one says is known; any frame stands for it.
                let mut decoder = DownDecoder::new();
                if let Ok(frame) = Encoder::new().encode_down(&Down::Resume(Resume {})) {
                    decoder.push(&frame);
                    while decoder.next().is_some() {}
                }
                node.down = Some(decoder);
            }
            Action::Signal { node, signal } => self.node(*node).signals.push((now, *signal)),
            Action::Sweep { node, .. } => self.node(*node).sweeping = true,
            Action::Reap { node } => self.node(*node).reap_asked = true,
            Action::Persist { seq, class, writes } => match record_in(writes) {
                Some(record) => self.persisted(now, *seq, *class, record),
                None => self.last_seq = Some(*seq),
            },
            Action::CloseStdin { node } => {
                self.node(*node).cancelled.get_or_insert(now);
            }
            Action::SendToChild { .. }
            | Action::SendModel { .. }
            | Action::LoadConfig
            | Action::EndReload { .. }
            | Action::ReapOrphans
            | Action::Note(_)
            | Action::Answer { .. }
            | Action::CallHostTool(_)
            | Action::CancelHostTool { .. }
            | Action::ConnSend { .. }
            | Action::ConnShut { .. }
            | Action::Exit { .. } => {}
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

    /// A call that made a run may have bound an item of the plan to it.
    fn bind_item(&mut self, record: &Record) {
        let parent =
            record.parent.and_then(|id| self.runs.get(&id)).and_then(|run| self.nodes.get(&run.record.node));
        let made = |r: &&Request| r.name == "subagent.run" && Some(&r.call_id) == record.call_id.as_ref();
        let call = parent.and_then(|node| node.requests.values().find(made));
        let item = call.and_then(|call| call.args["plan_item"].as_u64());
        if let (Some(plan), Some(item), Some(handle)) = (&mut self.plan_seen, item, record.handle) {
            plan.update(&json!({"item": item, "bind": handle.to_string()}));
        }
    }

    fn persisted(&mut self, now: Instant, seq: u64, class: Class, record: &Record) {
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
        if new {
            self.bind_item(record);
        }
        if let Some(parent) = record.parent.filter(|_| new) {
            self.children.entry(parent).or_default().push(id);
        }
        if new {
            self.live.insert(id);
        }
        let run = self.runs.entry(id).or_insert_with(|| Run {
            record: record.clone(),
            admitted: now,
            told: None,
            told_vaguely: false,
            stored: false,
            store_failed: false,
            unsaved: None,
            terminal: None,
            settled: None,
            doomed: None,
            intent: Intent::None,
            talk: Talk::default(),
        });
        if class == Class::Spawn {
            run.intent = Intent::Out(seq);
        }
        run.record = record.clone();
        if terminal && run.terminal.is_none() {
            run.terminal = Some((now, record.clone()));
            self.purses.decided(now, record.node);
            // Nothing durable says that there ever was such a worker: its end need not be either.
            let unrecorded = record.role == Role::Worker && run.intent == Intent::Failed;
            let relaxed = self.plan.knobs.relaxed
                && (run.stored || run.store_failed)
                && record.status != Status::Cancelled;
            let untold = unrecorded || relaxed;
            run.settled = untold.then_some(now);
            self.doom_children_of(record.node, now);
            if untold {
                self.owe_note(id);
                self.end_is_told(id);
            }
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
