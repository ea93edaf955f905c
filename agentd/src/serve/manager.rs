//! A service manager (systemd) that is kept informed: that the daemon serves, reloads, ends; how things stand; and that its
//! loop turns.
//!
//! Owns when each is said. The sign of life is said in a turn of the reactor and nowhere else, at half of the interval, so that
//! a loop that hangs misses it. Refuses to decide anything: what happens is the core's, and is told here by its notes. Called
//! by what surrounds the reactor.

use super::notify::{Notify, Word};
use agentd_core::note::Note;
use agentd_core::record::Status;
use agentd_core::snapshot::{Snapshot, StoreView};
use agentd_core::time::{Duration, Instant, Now};
use agentd_host::service::Handed;
use std::collections::VecDeque;
use std::io;

/// How often the status may change for people who look at it.
const STATUS_EVERY: Duration = Duration::from_secs(2);

/// What the manager did not take is said again after this.
const AGAIN: Duration = Duration::from_secs(1);

/// What a daemon takes beyond its drain: the kills at its end, the last saves, journal and log.
const LAST_STEPS: Duration = Duration::from_secs(15);

/// The manager, and what it has been told.
#[derive(Debug)]
pub struct Manager {
    notify: Notify,
    /// Half of the watchdog's interval, and when the next sign of life is due.
    alive: Option<(Duration, Instant)>,
    /// How long a drain may take.
    drain: Duration,
    /// To be said in this order, each until it is taken.
    words: VecDeque<Word>,
    again: Option<Instant>,
    /// It was told that the daemon serves, or is to be.
    serves: bool,
    stops: bool,
    reloads: bool,
    /// Something may have changed since the last look, which may be followed by the next from then on.
    changed: bool,
    next_look: Instant,
    status: Option<String>,
    /// What was not taken has been complained of.
    complained: bool,
}

/// What a turn came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Turned {
    /// When the next one is wanted at the latest.
    pub(crate) wanted: Option<Instant>,
    /// Why the manager could not be told; once, until it takes something again.
    pub(crate) fault: Option<String>,
}

impl Manager {
    /// For what was handed to this process; `None` where nobody wants to be told anything.
    ///
    /// # Errors
    /// `NOTIFY_SOCKET` is no place, or there is no socket to be had.
    pub(crate) fn of(handed: &Handed, drain: Duration) -> io::Result<Option<Manager>> {
        let Some(place) = &handed.notify else { return Ok(None) };
        let half = handed.watchdog.map(|interval| interval / 2).filter(|half| !half.is_zero());
        Ok(Some(Manager {
            notify: Notify::to(place)?,
            alive: half.map(|half| (half, Instant::ZERO)),
            drain,
            words: VecDeque::new(),
            again: None,
            serves: false,
            stops: false,
            reloads: false,
            changed: true,
            next_look: Instant::ZERO,
            status: None,
            complained: false,
        }))
    }

    /// The core has said why it did something.
    pub(crate) fn noted(&mut self, note: &Note) {
        self.changed = true;
        if note.event == "drain.start" {
            self.stopping();
        }
    }

    /// The configuration is being read again.
    pub(crate) fn reloading(&mut self) {
        if !self.stops && !std::mem::replace(&mut self.reloads, true) {
            self.words.push_back(Word::reloading());
        }
    }

    /// The reload is over, with the new configuration or with the old one.
    pub(crate) fn reloaded(&mut self, drain: Option<Duration>) {
        self.drain = drain.unwrap_or(self.drain);
        if std::mem::take(&mut self.reloads) && !self.stops {
            self.words.push_back(Word::Ready);
        }
    }

    fn stopping(&mut self) {
        if !std::mem::replace(&mut self.stops, true) {
            self.words.push_back(Word::Stopping { within: self.drain.saturating_add(LAST_STEPS) });
            self.next_look = Instant::ZERO;
        }
    }

    /// Whether a snapshot is wanted after this turn.
    pub(crate) fn looks(&self, now: Now, happened: bool) -> bool {
        (happened || self.changed) && now.mono >= self.next_look
    }

    /// How things stand.
    pub(crate) fn see(&mut self, snapshot: &Snapshot) {
        self.changed = false;
        self.next_look = snapshot.now.mono.max(self.next_look) + STATUS_EVERY;
        let text = words_of(snapshot);
        if self.status.as_ref() != Some(&text) {
            self.words.retain(|word| !matches!(word, Word::Status(_)));
            self.words.push_back(Word::Status(text.clone()));
            self.status = Some(text);
        }
    }

    /// A turn of the loop is over. The first one has told the core what the store held, and the doors were open before.
    pub(crate) fn turned(&mut self, now: Now) -> Turned {
        if !std::mem::replace(&mut self.serves, true) {
            self.words.push_front(Word::Ready);
        }
        let mut fault = None;
        if let Some((half, due)) = &mut self.alive
            && *due <= now.mono
        {
            *due = now.mono + *half;
            fault = self.notify.say(&Word::Alive).err();
            self.complained &= fault.is_some();
        }
        if self.again.is_none_or(|again| again <= now.mono) {
            self.again = None;
            while let Some(word) = self.words.front() {
                if let Err(error) = self.notify.say(word) {
                    self.again = Some(now.mono + AGAIN);
                    fault = Some(error);
                    break;
                }
                self.words.pop_front();
                self.complained = false;
            }
        }
        let fault = fault.filter(|_| !std::mem::replace(&mut self.complained, true));
        let look = self.changed.then_some(self.next_look);
        let wanted = [self.alive.map(|(_, due)| due), self.again, look].into_iter().flatten().min();
        Turned { wanted, fault: fault.map(|error| error.to_string()) }
    }
}

/// How things stand, in one line.
fn words_of(snapshot: &Snapshot) -> String {
    let held = snapshot.runs.iter().filter(|run| run.status == Status::Held).count();
    let live = snapshot.runs.len() - held;
    let (ended, completed) = snapshot.ended;
    let draining = if snapshot.draining { "draining: " } else { "" };
    let store = match &snapshot.store {
        StoreView::Works => String::new(),
        StoreView::Down { error, .. } => format!("; the store fails: {error}"),
    };
    format!("{draining}{live} live, {held} held, {ended} ended, {completed} of them completed{store}")
}

#[cfg(test)]
mod tests;
