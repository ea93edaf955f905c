//! The world a core lives in: a clock, a machine full of fake processes, a store, and the driver between them. It
//! performs every action in order before the next event and tells the oracles all it does; it judges nothing.

mod acts;
mod chance;
mod child;
mod crash;
mod deliver;
mod operator;
mod perform;

use crate::sim::agenda::{Agenda, Lane, Stream};
use crate::sim::disk::Disk;
use crate::sim::kernel::{Kernel, Serial};
use crate::sim::oracle::{Across, Oracles, Violation};
use crate::sim::plan::{EPOCH_MS, Fault, Interrupt, Plan, START};
use crate::sim::program::instruction;
use crate::sim::story::Story;
pub(crate) use acts::Acts;
pub use acts::{Act, Blow};
use agentd_core::action::{Action, Actions};
use agentd_core::event::{Event, Exit, SupervisorSignal};
use agentd_core::id::NodeId;
use agentd_core::machine::Machine;
use agentd_core::time::{Duration, Instant, Now, Wall};
use chance::Chance;
use child::Child;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// More events than any plan needs: a loop.
const MOST_EVENTS: u64 = 2_000_000;
/// Longer than any plan needs: something waits for ever.
const MOST_TIME: Duration = Duration::from_secs(4 * 3600);

/// Of so many events one is followed by a look at the snapshot.
const LOOKS_EVERY: u64 = 11;

/// What is to happen.
#[derive(Debug)]
enum Due {
    /// The driver learns this.
    Notice(Event),
    /// The driver reads a child's stdout.
    Read(NodeId),
    /// A `Spawn` is carried out.
    Born(NodeId, u32),
    /// A program runs.
    Turn(NodeId),
    /// A process ends, if it has not.
    Dies(Serial, Exit),
    /// A stranger's orphan lands on the daemon.
    Orphan,
    /// The daemon is stopped, or the machine sleeps.
    Gap { length: Duration, machine: bool },
    /// A child's stdin has room again.
    Room(NodeId),
    /// The wall clock is set.
    Wall(i64),
    /// Somebody kills all but the first.
    KillAll,
}

/// What one daemon leaves the next.
#[derive(Default)]
pub(crate) struct Legacy {
    disk: Disk,
    across: Across,
    /// When it died.
    died: Option<Instant>,
    /// How far the wall clock was set.
    wall_ms: i64,
}

/// How long nobody is there between two daemons.
const BETWEEN: Duration = Duration::from_millis(2_500);

/// How a life ended.
#[derive(Default)]
pub struct Outcome {
    /// The first rule that was broken.
    pub violation: Option<Violation>,
    /// Events the core was fed.
    pub events: u64,
    /// A number that two equal lives share.
    pub digest: u64,
    /// What happened, a line each, when it was asked for.
    pub story: Vec<String>,
    /// How many ways the world could have gone on, at each point where an order was chosen.
    pub options: Vec<usize>,
}

/// See the module.
pub(crate) struct World<'m> {
    plan: Arc<Plan>,
    machine: &'m mut dyn Machine,
    now: Instant,
    /// How long the machine slept in all: programs do not see that time.
    slept: Duration,
    /// How far the wall clock was set, in milliseconds.
    wall_ms: i64,
    /// The daemon does nothing before this.
    stopped_until: Instant,
    timer: Option<Instant>,
    agenda: Agenda<Due>,
    kernel: Kernel,
    children: BTreeMap<NodeId, Child>,
    /// What is done from outside next.
    acts: Acts,
    /// Gates that are open.
    gates: BTreeSet<String>,
    /// Who has stopped existing, by number of its spawn: for faults that name a process.
    spawns: u32,
    persists: u64,
    /// Actions so far, and at which of them the daemon is killed.
    actions: u64,
    crash_at: Option<u64>,
    /// Another one begins after it, and whether the disk tears what is being written.
    next: Option<bool>,
    disk: Disk,
    /// When it was.
    crashed: Option<Instant>,
    chance: Chance,
    oracles: Oracles,
    story: Story,
    events: u64,
    over: bool,
    /// Chosen orders, for an exhaustive search; empty leaves it to time.
    choices: Option<Vec<usize>>,
    options: Vec<usize>,
}

impl<'m> World<'m> {
    /// A world at the daemon's start.
    pub(crate) fn new(plan: Arc<Plan>, machine: &'m mut dyn Machine, story: Story) -> World<'m> {
        World::reborn(plan, machine, story, Legacy::default(), None)
    }

    /// A world at the start of the next daemon, which is killed at this action and begun again, if it is.
    pub(crate) fn reborn(
        plan: Arc<Plan>,
        machine: &'m mut dyn Machine,
        story: Story,
        legacy: Legacy,
        restart: Option<(u64, bool)>,
    ) -> World<'m> {
        let Legacy { disk, across, died, wall_ms } = legacy;
        let dies_for_good = plan.faults.iter().find_map(|fault| match fault {
            Fault::Crash { at_action } => Some(*at_action),
            _ => None,
        });
        let mut world = World {
            machine,
            now: died.map_or(START, |at| at + BETWEEN),
            wall_ms,
            slept: Duration::ZERO,
            stopped_until: Instant::ZERO,
            timer: None,
            agenda: Agenda::new(),
            kernel: Kernel::new(plan.knobs.pids),
            children: BTreeMap::new(),
            acts: Acts::default(),
            gates: BTreeSet::new(),
            spawns: 0,
            persists: 0,
            actions: 0,
            crash_at: restart.map(|(at_action, _)| at_action).or(dies_for_good),
            next: restart.map(|(_, torn)| torn),
            disk,
            crashed: None,
            chance: Chance::new(plan.seed, plan.knobs.jitter_ms),
            oracles: Oracles::new(Arc::clone(&plan), across),
            story,
            events: 0,
            over: false,
            choices: None,
            options: Vec::new(),
            plan,
        };
        world.begin(died.is_none());
        world
    }

    /// Lets an order of what is due at about the same time be chosen instead of timed.
    pub(crate) fn with_choices(mut self, choices: Vec<usize>) -> World<'m> {
        self.choices = Some(choices);
        self
    }

    fn begin(&mut self, is_first: bool) {
        let start = self.now;
        let saved = self.disk.saved();
        let was_asked = saved.conversation.as_ref().is_some_and(|row| row.last > 0);
        self.oracles.begin(&saved);
        let seed = self.plan.seed.rotate_left(self.oracles.life());
        let seed = if is_first { self.plan.seed } else { seed };
        self.later(start, (Lane::Start, 0), Due::Notice(Event::Seeded { seed }));
        if !is_first {
            self.later(start, (Lane::Start, 0), Due::Notice(Event::Restored(Box::new(saved))));
        }
        // Whoever asked and was not heard asks again.
        if is_first || !was_asked {
            let prompt = Event::PromptSubmitted { text: instruction(0, "r") };
            self.later(start, (Lane::Start, 0), Due::Notice(prompt));
        }
        let start = START;
        let mut prompts = self.plan.prompts_ms.clone();
        prompts.sort_unstable();
        for (number, at_ms) in (2..).zip(prompts) {
            let text = instruction(0, &format!("p{number}"));
            let at = start + Duration::from_millis(at_ms);
            if !is_first && at <= self.now {
                continue;
            }
            self.later(at, (Lane::Start, 0), Due::Notice(Event::PromptSubmitted { text }));
        }
        let knobs = &self.plan.knobs;
        let to_come = |at_ms: u64| is_first || START + Duration::from_millis(at_ms) > self.now;
        let ends = |f: &Fault| match f {
            Fault::Signal { signal: Interrupt::Term | Interrupt::Int, at_ms } => to_come(*at_ms),
            _ => false,
        };
        if !knobs.one_shot && !self.plan.faults.iter().any(ends) {
            let at = (start + Duration::from_millis(knobs.stop_ms)).max(self.now + BETWEEN);
            let signal = SupervisorSignal::Term;
            self.later(at, (Lane::Stop, 0), Due::Notice(Event::Signalled { signal }));
        }
        for (i, fault) in (0..).zip(self.plan.faults.clone()) {
            self.schedule((Lane::Fault, i), fault);
        }
    }

    /// Puts a fault that has its time where it belongs; the others are met where they matter.
    fn schedule(&mut self, stream: Stream, fault: Fault) {
        let begun = self.now;
        if let Fault::Operator { at_ms, handle, order } = fault {
            if START + Duration::from_millis(at_ms) < begun {
                return;
            }
            return self.operator(stream, at_ms, handle, order);
        }
        let at = |ms: u64| START + Duration::from_millis(ms);
        let (at, due) = match fault {
            Fault::Signal { at_ms, signal } => {
                let signal = match signal {
                    Interrupt::Term => SupervisorSignal::Term,
                    Interrupt::Int => SupervisorSignal::Int,
                    Interrupt::Hup => SupervisorSignal::Hup,
                };
                (at(at_ms), Due::Notice(Event::Signalled { signal }))
            }
            Fault::Gap { at_ms, ms, machine } => {
                (at(at_ms), Due::Gap { length: Duration::from_millis(ms), machine })
            }
            Fault::CancelPrompt { prompt, at_ms } => {
                let reason = "the plan says so".to_owned();
                (at(at_ms), Due::Notice(Event::TurnCancelled { prompt, reason }))
            }
            Fault::Reload { at_ms, limits } => {
                let reloaded = crate::sim::replay::reloaded(&self.plan.knobs, limits);
                (at(at_ms), Due::Notice(Event::ConfigReady(Box::new(reloaded))))
            }
            Fault::Wall { at_ms, by_ms } => (at(at_ms), Due::Wall(by_ms)),
            Fault::Orphan { at_ms } => (at(at_ms), Due::Orphan),
            Fault::KillAll { at_ms } => (at(at_ms), Due::KillAll),
            Fault::SpawnFails { .. }
            | Fault::SpawnFrameFails { .. }
            | Fault::ExecFails { .. }
            | Fault::Stillborn { .. }
            | Fault::SpawnSlow { .. }
            | Fault::StoreSlow { .. }
            | Fault::StoreFails { .. }
            | Fault::ExitLate { .. }
            | Fault::ReadLate { .. }
            | Fault::Crash { .. }
            | Fault::Restart { .. }
            | Fault::Operator { .. }
            | Fault::ExitUnknown { .. } => return,
        };
        if at < begun {
            return;
        }
        let is_asked_for = matches!(due, Due::Notice(_));
        if is_asked_for || !self.plan.is_healed(at) {
            self.later(at, stream, due);
        }
    }

    /// Lives until the daemon exits, a rule is broken, or nothing can happen any more.
    pub(crate) fn live(self) -> Outcome {
        self.live_on().0
    }

    /// The same, and what the next daemon begins with, where there is one.
    pub(crate) fn live_on(mut self) -> (Outcome, Option<Legacy>) {
        while !self.over && self.oracles.violation().is_none() && !self.is_past_crash() {
            if self.events > MOST_EVENTS {
                self.oracles.never_rests(self.now, "events without end");
            } else if self.now.since(Instant::ZERO) > MOST_TIME {
                self.oracles.never_rests(self.now, "still not at rest after four hours");
            } else if !self.step() && self.crashed.is_none() {
                self.oracles.never_rests(self.now, "nothing is due, and the daemon has not exited");
            }
        }
        match self.crashed {
            Some(at) => self.oracles.after_crash(at, self.now, &self.kernel),
            None => self.oracles.at_the_end(self.now, &self.kernel),
        }
        let violation = self.oracles.take_violation();
        let next = self.crashed.zip(self.next).map(|(died, _)| Legacy {
            disk: self.disk,
            across: self.oracles.into_across(),
            died: Some(died),
            wall_ms: self.wall_ms,
        });
        let outcome = Outcome {
            violation,
            events: self.events,
            digest: self.story.digest(),
            story: self.story.lines(),
            options: self.options,
        };
        (outcome, next)
    }

    /// One thing happens. `false` when nothing is to come.
    fn step(&mut self) -> bool {
        if self.agenda.next_at().is_some_and(|at| at < self.stopped_until) {
            self.agenda.put_off(self.stopped_until, Due::is_the_daemons);
        }
        let timer = self.timer.map(|at| at.max(self.stopped_until));
        let next = match (self.agenda.next_at(), timer) {
            (None, None) => return false,
            (Some(due), Some(timer)) if timer < due || (timer == due && self.plan.knobs.tick_first) => None,
            (None, Some(_)) => None,
            (Some(_), _) => self.take(),
        };
        let Some((at, due)) = next else {
            self.now = self.now.max(timer.unwrap_or(self.now));
            self.feed(Event::Tick);
            self.oracles.look(self.now, &self.kernel);
            return true;
        };
        self.now = self.now.max(at);
        self.carry_out(due);
        self.oracles.look(self.now, &self.kernel);
        true
    }

    /// The next thing by time; by choice among all that is due within the same few milliseconds; or by luck among all
    /// that the driver learns in one turn.
    fn take(&mut self) -> Option<(Instant, Due)> {
        if self.choices.is_none() && self.plan.knobs.turn_ms > 0 {
            let chance = &mut self.chance;
            return self.agenda.pop_by_luck(|ways| chance.below((Lane::Order, 0), ways as u64) as usize);
        }
        let taken = self.options.len();
        let Some(choice) = self.choices.as_ref().map(|c| c.get(taken).copied().unwrap_or(0)) else {
            return self.agenda.pop();
        };
        // Two runs can meet only once there are two.
        if self.spawns < 2 {
            return self.agenda.pop();
        }
        let first = self.agenda.next_at()?;
        let heads = self.agenda.heads(first + Duration::from_millis(20));
        if heads.len() < 2 {
            return self.agenda.pop();
        }
        self.options.push(heads.len());
        let stream = heads.get(choice).copied().or_else(|| heads.first().copied())?;
        self.agenda.pop_of(stream)
    }

    /// Hands one event to the core and performs what it asks for.
    fn feed(&mut self, event: Event) {
        self.events += 1;
        let wall = Wall((EPOCH_MS + self.now.millis()).saturating_add_signed(self.wall_ms));
        let now = Now { mono: self.now, wall };
        self.story.event(self.now, &event);
        if let Event::Stored { seq } | Event::StoreFailed { seq, .. } = &event {
            self.disk.answered(*seq);
        }
        self.oracles.fed(self.now, &event);
        let was_tick = event == Event::Tick;
        let mut actions = Actions::new();
        self.machine.handle(now, event, &mut actions);
        for action in actions {
            if self.crash_at == Some(self.actions) {
                return self.crash();
            }
            self.actions += 1;
            self.story.action(&action);
            self.oracles.did(self.now, &action, &self.kernel, &self.disk);
            if self.over || self.oracles.violation().is_some() {
                return;
            }
            self.perform(action);
        }
        self.act();
        let deadline = self.machine.poll_timeout().map(|d| d.at);
        self.oracles.turned(self.now, was_tick, deadline);
        // A person looks now and then, and often at first.
        if (self.events < 64 || self.events.is_multiple_of(LOOKS_EVERY))
            && let Some(snapshot) = self.machine.snapshot()
        {
            self.oracles.shown(self.now, &snapshot);
        }
        self.timer = deadline.map(|at| {
            // A driver that looks around now and then looks at its timer each time.
            let late = match self.plan.knobs.turn_ms {
                0 => self.chance.delay((Lane::Timer, 0)),
                _ => Duration::ZERO,
            };
            self.in_a_turn(at.max(self.now) + late)
        });
    }

    fn later(&mut self, at: Instant, stream: Stream, due: Due) {
        let daemons = due.is_the_daemons();
        // Nobody is there to learn of it.
        if daemons && self.crashed.is_some() {
            return;
        }
        let at = if daemons { self.in_a_turn(at) } else { at };
        self.agenda.push(at, stream, due);
    }

    /// When the driver next looks around, from `at` on.
    fn in_a_turn(&self, at: Instant) -> Instant {
        let turn = self.plan.knobs.turn_ms.saturating_mul(1_000_000);
        if turn == 0 { at } else { Instant::from_nanos(at.nanos().div_ceil(turn).saturating_mul(turn)) }
    }

    /// The driver learns something of a node, an ordinary delay from now.
    fn notice(&mut self, stream: Stream, event: Event) {
        let at = self.now + self.chance.delay(stream);
        self.later(at, stream, Due::Notice(event));
    }

    /// The time a program sees.
    fn programs_now(&self) -> Instant {
        Instant::from_nanos(self.now.nanos() - u64::try_from(self.slept.as_nanos()).unwrap_or(0))
    }
}

impl Due {
    /// What cannot happen while the daemon is stopped.
    fn is_the_daemons(&self) -> bool {
        match self {
            Due::Notice(_) | Due::Read(_) | Due::Born(..) | Due::Room(_) => true,
            Due::Turn(_) | Due::Dies(..) | Due::Orphan | Due::Gap { .. } | Due::Wall(_) | Due::KillAll => {
                false
            }
        }
    }
}

/// Whether an action is the daemon's last.
fn is_exit(action: &Action) -> bool {
    matches!(action, Action::Exit { .. })
}
