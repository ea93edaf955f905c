//! One turn of the loop: hear, tell the core, do what it says. All of it but the waiting, which is a driver's.
//!
//! Owns the drivers' contract: the clock is read once a turn, events are told in the order learned, the actions
//! of one are performed in order and all before the next, what an action answers at once is told in the next
//! turn. Refuses policy: it knows no run and has no timer but the core's and that of what surrounds it. Called by
//! drivers.

use crate::clock::{Clock, seed};
use crate::doors::{Doors, Listener};
use crate::ears::{Ears, Key};
use crate::error::OsError;
use crate::hands::Hands;
use crate::mailbox::{Mailbox, Poster};
use crate::outside::{Outside, StoreAnswer};
use crate::signals::Signals;
use crate::spawner::Image;
use crate::tree::Mode;
use agentd_core::action::{Action, Actions, Costliest};
use agentd_core::bytes::{Bytes, Json};
use agentd_core::event::{Event, SupervisorSignal};
use agentd_core::machine::Machine;
use agentd_core::record::UsageSum;
use agentd_core::store::Saved;
use agentd_core::time::{Duration, Instant, Now};
use agentd_core::wire::message::ModelSwap;
use agentd_core::wire::{Down, Encoder};
use std::collections::VecDeque;
use std::os::fd::AsFd;

/// Events of other threads told in one turn.
const MAIL: usize = 256;

/// What a reactor is started with.
#[derive(Debug)]
pub struct Options {
    /// What children are.
    pub image: Image,
    /// What this process answers for.
    pub mode: Mode,
    /// The supervisor's own signals; `None` for an embedder that keeps them.
    pub signals: Option<Signals>,
    /// What the store held, for the core to go on with: told right after the seed, before anything else is heard.
    pub saved: Option<Box<Saved>>,
    /// Where connections come in.
    pub listeners: Vec<Listener>,
    mailbox: Mailbox,
}

impl Options {
    /// For a program that owns its process. Open `signals` before the first thread and this after it.
    ///
    /// # Errors
    /// `eventfd(2)`.
    pub fn new(image: Image, signals: Option<Signals>) -> Result<Options, OsError> {
        Ok(Options {
            image,
            mode: Mode::of_own_process(),
            signals,
            saved: None,
            listeners: Vec::new(),
            mailbox: Mailbox::new()?,
        })
    }

    /// For a library inside another program: nothing process-wide is touched.
    ///
    /// # Errors
    /// `eventfd(2)`.
    pub fn embedded(image: Image) -> Result<Options, OsError> {
        Ok(Options {
            image,
            mode: Mode::Embedded,
            signals: None,
            saved: None,
            listeners: Vec::new(),
            mailbox: Mailbox::new()?,
        })
    }

    /// A way to tell the core of events, from any thread, before and while the loop runs.
    pub fn poster(&self) -> Poster {
        self.mailbox.poster()
    }
}

/// How the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The signal that began a drain, if one did.
    pub interrupted: Option<SupervisorSignal>,
    /// Processes that a sweep had to give up on.
    pub leaked: u32,
    /// What the conversation and everything below it used.
    pub usage: UsageSum,
    /// The run that used most by itself, the worker aside.
    pub costliest: Option<Costliest>,
}

/// What the driver does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Wait for an edge, at most this long (whole milliseconds, rounded up); `None` is without limit.
    Wait(Option<Duration>),
    /// Nothing: the core is done.
    End(Ended),
}

/// The loop without its waiting.
#[derive(Debug)]
pub struct Reactor<'a, M: ?Sized, O> {
    machine: &'a mut M,
    outside: &'a mut O,
    hands: Hands,
    doors: Doors,
    signals: Option<Signals>,
    mailbox: Mailbox,
    clock: Clock,
    /// Signals may wait to be read.
    signalled: bool,
    /// Mail may wait to be taken.
    mailed: bool,
    learned: VecDeque<Event>,
    actions: Actions,
}

impl<'a, M: Machine + ?Sized, O: Outside> Reactor<'a, M, O> {
    /// Starts the spawner's thread, begins to hear, and learns its first event, the seed.
    ///
    /// # Errors
    /// The system refused one of the descriptors, the thread or the seed; nothing is left running.
    pub fn new(
        machine: &'a mut M,
        outside: &'a mut O,
        options: Options,
        ears: &mut impl Ears,
    ) -> Result<Self, OsError> {
        let Options { image, mode, signals, saved, listeners, mailbox } = options;
        let seed = seed().map_err(OsError::of("getrandom(2)", "the seed"))?;
        ears.watch(Key::Mailbox, mailbox.as_fd()).map_err(OsError::of("epoll_ctl(2)", "the mailbox"))?;
        if let Some(signals) = &signals {
            ears.watch(Key::Signals, signals.as_fd()).map_err(OsError::of("epoll_ctl(2)", "the signals"))?;
        }
        let doors =
            Doors::open(listeners, ears).map_err(OsError::of("epoll_ctl(2)", "a listening socket"))?;
        let bell = mailbox.bell();
        let hands = Hands::new(image, mode, Box::new(move || bell.ring()))?;
        Ok(Reactor {
            machine,
            outside,
            hands,
            doors,
            signals,
            mailbox,
            clock: Clock::start(),
            signalled: true,
            mailed: true,
            learned: std::iter::once(Event::Seeded { seed }).chain(saved.map(Event::Restored)).collect(),
            actions: Actions::new(),
        })
    }

    /// An edge.
    pub fn ready(&mut self, key: Key) {
        match key {
            Key::Child(node, end) => self.hands.ready(node, end),
            Key::Signals => self.signalled = true,
            Key::Mailbox => self.mailed = true,
            Key::Listener(index) => self.doors.knocked(index),
            Key::Conn(conn) => self.doors.ready(conn),
        }
    }

    /// An event that the driver itself has learned, for the next turn.
    pub fn learn(&mut self, event: Event) {
        self.learned.push_back(event);
    }

    /// What surrounds this reactor, for a driver that hears from it.
    pub fn outside(&mut self) -> &mut O {
        self.outside
    }

    /// One turn: gathers what was heard, tells it, performs what comes of it.
    ///
    /// # Errors
    /// The supervisor's signals can no longer be read.
    pub fn turn(&mut self, ears: &mut impl Ears) -> Result<Next, OsError> {
        let now = self.clock.now();
        let more_to_read = self.gather(ears)?;
        // What comes of these events is learned later than all of them, so it is told in the next turn.
        let told = !self.learned.is_empty();
        for event in std::mem::take(&mut self.learned) {
            if let Some(ended) = self.tell(now, event, ears) {
                return Ok(Next::End(ended));
            }
        }
        let due = self.due(now);
        if due && let Some(ended) = self.tell(now, Event::Tick, ears) {
            return Ok(Next::End(ended));
        }
        if self.outside.looks(now, told || due)
            && let Some(snapshot) = self.machine.snapshot()
        {
            self.outside.see(snapshot);
        }
        let more_to_write = self.hands.flush(ears, &mut self.learned);
        let more_to_write = self.doors.flush(ears, &mut self.learned) || more_to_write;
        let wanted = self.outside.turned(now);
        let at_once = more_to_read || more_to_write || self.mailed || !self.learned.is_empty();
        Ok(Next::Wait(if at_once { Some(Duration::ZERO) } else { self.wait(now, wanted) }))
    }

    /// Adds what was heard to what is learned, and says whether more can be read without waiting.
    fn gather(&mut self, ears: &mut impl Ears) -> Result<bool, OsError> {
        if std::mem::take(&mut self.signalled)
            && let Some(signals) = &mut self.signals
        {
            while let Some(signal) = signals.read().map_err(OsError::of("read(2)", "the signals"))? {
                self.learned.push_back(Event::Signalled { signal });
            }
        }
        if std::mem::take(&mut self.mailed) {
            self.mailbox.hush();
            self.hands.take_answers(ears, &mut self.learned);
            let before = self.learned.len();
            self.learned.extend((0..MAIL).map_while(|_| self.mailbox.take()));
            self.mailed = self.learned.len() - before == MAIL;
        }
        let more = self.hands.serve(ears, &mut self.learned);
        Ok(self.doors.serve(ears, self.outside, &mut self.learned) || more)
    }

    fn due(&self, now: Now) -> bool {
        self.machine.poll_timeout().is_some_and(|deadline| deadline.at <= now.mono)
    }

    /// Until the core's deadline or the turn that is `wanted`, whichever comes first.
    fn wait(&self, now: Now, wanted: Option<Instant>) -> Option<Duration> {
        let due = self.machine.poll_timeout().map(|deadline| deadline.at);
        due.into_iter().chain(wanted).min().map(|at| whole_millis(at, now.mono))
    }

    /// Tells the core one event and performs all that it answers.
    fn tell(&mut self, now: Now, event: Event, ears: &mut impl Ears) -> Option<Ended> {
        if self.outside.wants_checkpoint() {
            self.outside.checkpointed(now, self.machine.checkpoint());
        }
        self.outside.observe(now, &event);
        let mut actions = std::mem::take(&mut self.actions);
        self.machine.handle(now, event, &mut actions);
        self.outside.decided(now, &actions);
        let mut ended = None;
        for action in actions.drain(..) {
            if let Action::Exit { interrupted, leaked, usage, costliest } = action {
                self.doors.farewell();
                ended = Some(Ended { interrupted, leaked, usage, costliest });
                break;
            }
            self.perform(now, action, ears);
        }
        self.actions = actions;
        ended
    }

    fn perform(&mut self, now: Now, action: Action, ears: &mut impl Ears) {
        let learned = &mut self.learned;
        match action {
            Action::Spawn { node, name, walls } => self.hands.spawn(node, name, walls, learned),
            Action::SendSpawn { node, payload } => match self.outside.encode_spawn(&payload.0) {
                Ok(frame) => self.hands.send(node, Bytes::from(frame), learned),
                Err(error) => learned.push_back(Event::SpawnFrameFailed { node, error }),
            },
            Action::SendToChild { node, frame } => self.hands.send(node, frame, learned),
            Action::SendModel { node, number, payload } => {
                let swap = *payload.0;
                match self.outside.encode_model(number, &swap) {
                    Ok(frame) => self.hands.send(node, Bytes::from(frame), learned),
                    Err(error) => {
                        let id = swap.id;
                        learned.push_back(Event::ModelFrameFailed { node, id, error });
                        // The child expects a frame of this number.
                        let none = Down::Model(Box::new(ModelSwap { model: None, budget: None, ..swap }));
                        if let Ok(frame) = Encoder::at(number).encode_down(&none) {
                            self.hands.send(node, Bytes::from(frame), learned);
                        }
                    }
                }
            }
            Action::LoadConfig => {
                if let Err(text) = self.outside.load_config() {
                    learned.push_back(Event::ConfigRefused { problems: 1, text });
                }
            }
            Action::EndReload { used } => self.outside.reload_ended(now, used),
            Action::CloseStdin { node } => self.hands.close_stdin(node),
            Action::Signal { node, signal } => self.hands.signal(node, signal),
            Action::Sweep { node, keepers } => self.hands.sweep(node, keepers, learned),
            Action::Reap { node } => self.hands.reap(node, ears, learned),
            Action::ReapOrphans => self.hands.reap_orphans(),
            Action::Persist { seq, class, writes } => match self.outside.persist(seq, class, writes) {
                StoreAnswer::Stored => learned.push_back(Event::Stored { seq }),
                StoreAnswer::Failed { error, retryable } => {
                    learned.push_back(Event::StoreFailed { seq, error, retryable });
                }
                StoreAnswer::Later => {}
            },
            Action::Note(note) => self.outside.note(now, note),
            Action::Deliver { prompt, result, fault } => self.outside.deliver(prompt, &result, fault),
            Action::Answer { call, error, value } => self.outside.answer(call, error, value),
            Action::CallHostTool(asked) => {
                let call = asked.call;
                if let Err(why) = self.outside.call_tool(asked) {
                    learned.push_back(Event::HostToolAnswered {
                        call,
                        error: true,
                        value: Json::of(&why.into()),
                    });
                }
            }
            Action::CancelHostTool { call } => self.outside.cancel_tool(call),
            Action::ConnSend { conn, bytes } => self.doors.send(conn, bytes),
            Action::ConnShut { conn, at_once } => self.doors.shut(conn, at_once, ears, learned),
            // `tell` ends with it before it comes here.
            Action::Exit { .. } => {}
        }
    }
}

/// From `now` to `at` in whole milliseconds, rounded up, so that nobody wakes just before a deadline.
fn whole_millis(at: Instant, now: Instant) -> Duration {
    let nanos = at.since(now).as_nanos();
    Duration::from_millis(u64::try_from(nanos.div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_round_up_and_never_go_backwards() {
        let at = Instant::from_nanos;
        assert_eq!(whole_millis(at(5_000_001), at(5_000_000)), Duration::from_millis(1));
        assert_eq!(whole_millis(at(6_000_000), at(5_000_000)), Duration::from_millis(1));
        assert_eq!(whole_millis(at(6_000_001), at(5_000_000)), Duration::from_millis(2));
        assert_eq!(whole_millis(at(1), at(5_000_000)), Duration::ZERO);
        assert_eq!(whole_millis(at(u64::MAX), at(0)), Duration::from_millis(18_446_744_073_710));
    }
}
