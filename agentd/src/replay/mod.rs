//! A journal, lived through again: the core is rebuilt, fed the same events, and what it answers is compared with what
//! was recorded, byte for byte (S17.6). Owns the comparison and the verdict. Performs nothing: no process, no file but
//! the journal. Called by `agentd replay`; [`Story`] and [`words`] say it to people.

mod cast;
mod phrases;
pub mod speech;
mod story;
pub mod words;

pub use cast::Cast;
pub use story::{Line, Story, Who};

use crate::journal::{Decision, Header, ReadError, Reader, Recording, actions_bytes};
use agentd_core::action::{Action, Actions};
use agentd_core::event::Event;
use agentd_core::machine::Machine;
use agentd_core::supervisor::Core;
use agentd_core::time::Now;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// One event, and what the core made of it this time.
#[derive(Debug)]
pub struct Step<'a> {
    /// The file it is in.
    pub file: &'a Path,
    /// Its number in the daemon's life, from 1.
    pub number: u64,
    /// The driver's clocks.
    pub now: Now,
    /// What happened.
    pub event: &'a Event,
    /// What was due, where the event is a tick.
    pub due: Option<&'static str>,
    /// What the core answers.
    pub actions: &'a [Action],
}

/// Who looks on.
pub trait Audience {
    /// The core is as it was before the first event that is kept.
    fn begins(&mut self, header: &Header, core: &Core);
    /// An event was fed; `false` ends the replay.
    fn step(&mut self, step: &Step<'_>) -> bool;
}

/// What a replay came to.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Events fed.
    pub events: u64,
    /// Actions that were compared and are the same.
    pub same: u64,
    /// Where the core decided otherwise; the replay ends there.
    pub difference: Option<Difference>,
    /// The journal ends in the middle of a record, as after a crash: the file, and what was seen.
    pub torn: Option<(PathBuf, ReadError)>,
    /// Files that could not be read to their end, or not at all, with what came after them.
    pub damaged: Vec<(PathBuf, String)>,
    /// The daemon's own last word is in it.
    pub ended: bool,
    /// The journal's last event has no recorded answer: the daemon was stopped while it decided, or its last words
    /// were lost.
    pub unanswered: bool,
}

/// The first place where what was recorded and what is decided now are not the same.
#[derive(Debug)]
pub struct Difference {
    /// The file.
    pub file: PathBuf,
    /// Which file of the journal it is, from 0.
    pub segment: u64,
    /// The event's number.
    pub number: u64,
    /// When.
    pub now: Now,
    /// The event; none where a file's state is not the one that the events before it lead to.
    pub event: Option<Event>,
    /// What is not the same.
    pub kind: DifferenceKind,
}

/// In which way.
#[derive(Debug)]
pub enum DifferenceKind {
    /// The actions.
    Actions {
        /// Those that were recorded; none when this version cannot read them.
        recorded: Option<Vec<Action>>,
        /// Those that are decided now.
        decided: Vec<Action>,
    },
    /// The core panics at this event. Where the journal has no answer to it, so it did then.
    Panic,
    /// The state a file begins with.
    State,
}

impl Verdict {
    /// Every recorded action was decided again, and the journal is whole but for a torn end.
    pub fn is_same(&self) -> bool {
        self.difference.is_none() && self.damaged.is_empty()
    }
}

/// Lives through a journal again.
pub fn replay(recording: &Recording, audience: &mut dyn Audience) -> Verdict {
    let mut rerun = Rerun { verdict: Verdict::default(), core: None, begun: false, actions: Actions::new() };
    let last = recording.files().len().saturating_sub(1);
    for (n, (file, reader)) in recording.readers().enumerate() {
        let lived = match reader {
            Ok(reader) => rerun.file(file, reader, n == last, audience),
            Err(why) => {
                rerun.broken(file, &why);
                true
            }
        };
        if !lived {
            break;
        }
    }
    rerun.verdict
}

struct Rerun {
    verdict: Verdict,
    /// The core, while the files are whole.
    core: Option<Core>,
    begun: bool,
    actions: Actions,
}

impl Rerun {
    /// One file; `false` ends the replay.
    fn file(
        &mut self,
        file: &Path,
        reader: Reader<impl Read>,
        last: bool,
        audience: &mut dyn Audience,
    ) -> bool {
        let header = reader.header().clone();
        let mut core = match self.core_at_the_start_of(file, &reader) {
            Ok(core) => core,
            Err(Some(why)) => {
                self.verdict.damaged.push((file.to_owned(), why));
                return true;
            }
            Err(None) => return false,
        };
        if !std::mem::replace(&mut self.begun, true) {
            audience.begins(&header, &core);
        }
        for (n, read) in (1..).zip(reader) {
            let decision = match read {
                Ok(decision) => decision,
                Err(why @ ReadError::Cut { .. }) if last => {
                    self.verdict.torn = Some((file.to_owned(), why));
                    break;
                }
                Err(why) => {
                    self.broken(file, &why);
                    return true;
                }
            };
            let number = header.events.saturating_add(n);
            let place = Place { file, segment: header.segment, number };
            if !self.decide(&mut core, &place, &decision, audience) {
                return false;
            }
        }
        self.core = Some(core);
        true
    }

    /// The core goes on into the next file if its state there is the recorded one. Without a core, the state is one.
    fn core_at_the_start_of(
        &mut self,
        file: &Path,
        reader: &Reader<impl Read>,
    ) -> Result<Core, Option<String>> {
        let header = reader.header();
        let state = match reader.state() {
            Some(state) => state,
            None if header.segment == 0 => return Ok(Core::new(header.config.clone(), header.began)),
            None => return Err(Some("it has neither a beginning nor the core's state".to_owned())),
        };
        let Some(core) = self.core.take() else {
            return Core::restore(state).map_err(|error| Some(format!("the core's state: {error}")));
        };
        if core.checkpoint().is_ok_and(|own| own == state) {
            return Ok(core);
        }
        self.verdict.difference = Some(Difference {
            file: file.to_owned(),
            segment: header.segment,
            number: header.events,
            now: Now::default(),
            event: None,
            kind: DifferenceKind::State,
        });
        Err(None)
    }

    /// Feeds one event and compares; `false` ends the replay.
    fn decide(
        &mut self,
        core: &mut Core,
        place: &Place<'_>,
        decision: &Decision,
        audience: &mut dyn Audience,
    ) -> bool {
        let Decision { now, event, actions: recorded } = decision;
        let due = if *event == Event::Tick { core.poll_timeout().map(|deadline| deadline.why) } else { None };
        self.actions.clear();
        let (fed, actions) = (event.clone(), &mut self.actions);
        let decided = catch_unwind(AssertUnwindSafe(|| core.handle(*now, fed, actions)));
        self.verdict.events += 1;
        if decided.is_err() {
            self.differs(place, decision, DifferenceKind::Panic);
            return false;
        }
        let step =
            Step { file: place.file, number: place.number, now: *now, event, due, actions: &self.actions };
        let goes_on = audience.step(&step);
        match recorded {
            None => self.verdict.unanswered = true,
            Some(recorded) if actions_bytes(&self.actions).is_ok_and(|own| own == *recorded) => {
                self.verdict.same += u64::try_from(self.actions.len()).unwrap_or(u64::MAX);
                self.verdict.ended |= self.actions.iter().any(|action| matches!(action, Action::Exit { .. }));
            }
            Some(_) => {
                let decided = std::mem::take(&mut self.actions);
                self.differs(
                    place,
                    decision,
                    DifferenceKind::Actions { recorded: decision.actions(), decided },
                );
                return false;
            }
        }
        goes_on
    }

    fn differs(&mut self, place: &Place<'_>, decision: &Decision, kind: DifferenceKind) {
        self.verdict.difference = Some(Difference {
            file: place.file.to_owned(),
            segment: place.segment,
            number: place.number,
            now: decision.now,
            event: Some(decision.event.clone()),
            kind,
        });
    }

    /// A file cannot be read on: the next one begins anew, from its state.
    fn broken(&mut self, file: &Path, why: &ReadError) {
        self.core = None;
        self.verdict.damaged.push((file.to_owned(), why.to_string()));
    }
}

/// Where an event is.
struct Place<'a> {
    file: &'a Path,
    segment: u64,
    number: u64,
}

#[cfg(test)]
mod tests;
