//! What is known of providers' endpoints over all runs (S15.4): how long each is to be left alone, because it said so
//! or because its breaker is open.
//!
//! Owns the breaker and the bounds of every wait. Refuses to take a failure for a new one that a wait already answers:
//! calls that were in flight when it began fail with it. Pure; chance is the caller's. Called by the supervisor, which
//! tells the runs.

use crate::limits::{ENDPOINT_FAILURES, ENDPOINT_REST, ENDPOINTS, RETRY_AFTER};
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The endpoints that are not as they should be, by base address.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Throttles(BTreeMap<String, Endpoint>);

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Endpoint {
    /// Failures in a row.
    failures: u32,
    /// How often in a row the breaker opened.
    opened: u32,
    /// It asked to be left alone until then.
    asked_until: Instant,
    /// The breaker is open until then.
    rests_until: Instant,
    /// Everybody was told of a wait at least until then.
    told_until: Instant,
}

/// What the runs are to be told of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing new.
    Nothing,
    /// Leave it alone for so long.
    LeaveAlone(Duration),
    /// It may be asked again.
    GoOn,
}

impl Endpoint {
    fn until(&self) -> Instant {
        self.asked_until.max(self.rests_until)
    }

    /// What is to be told once a wait has grown, or is another one: who came when the last one was over was not told of
    /// that, however long the others were told to wait. A little is told on top, so that reports of calls that were in
    /// flight together, each of which moves the end by a trifle, are told once.
    fn change(&mut self, now: Instant, anew: bool) -> Change {
        let until = self.until();
        if until <= now || until <= self.told_until && !anew {
            return Change::Nothing;
        }
        self.told_until = until + until.since(now) / 8;
        Change::LeaveAlone(self.told_until.since(now))
    }
}

impl Throttles {
    /// An endpoint asked for less; for how long, if it said so. A time is obeyed up to [`RETRY_AFTER`]. Without one it
    /// counts as a failure.
    pub fn limited(&mut self, endpoint: &str, asked: Option<Duration>, now: Instant) -> Change {
        match asked.filter(|asked| !asked.is_zero()) {
            None => self.failed(endpoint, now),
            Some(asked) => {
                let Some(known) = self.known(endpoint, now) else { return Change::Nothing };
                let anew = known.until() <= now;
                known.asked_until = known.asked_until.max(now + asked.min(RETRY_AFTER));
                known.change(now, anew)
            }
        }
    }

    /// An attempt failed. The third in a row opens the breaker, and so does the first after it was open.
    pub fn failed(&mut self, endpoint: &str, now: Instant) -> Change {
        let Some(known) = self.known(endpoint, now) else { return Change::Nothing };
        if now < known.until() {
            return Change::Nothing;
        }
        known.failures = known.failures.saturating_add(1);
        if known.failures < ENDPOINT_FAILURES {
            return Change::Nothing;
        }
        let (first, longest) = ENDPOINT_REST;
        let rest = first.saturating_mul(2u32.saturating_pow(known.opened)).min(longest);
        known.opened = known.opened.saturating_add(1);
        known.rests_until = now + rest;
        known.change(now, true)
    }

    /// It answered a call: its breaker closes. A time that it asked for itself stands.
    pub fn answered(&mut self, endpoint: &str, now: Instant) -> Change {
        let Some(known) = self.0.get_mut(endpoint) else { return Change::Nothing };
        if now < known.asked_until {
            let &mut Endpoint { asked_until, rests_until, told_until, .. } = known;
            *known = Endpoint { asked_until, told_until, ..Endpoint::default() };
            // Who was told to wait for the breaker is told of the shorter wait.
            return known.change(now, asked_until < rests_until);
        }
        let waits = now < known.told_until;
        self.0.remove(endpoint);
        if waits { Change::GoOn } else { Change::Nothing }
    }

    /// How long an endpoint is still to be left alone; `None` when it may be asked.
    pub fn left(&self, endpoint: &str, now: Instant) -> Option<Duration> {
        let known = self.0.get(endpoint).filter(|known| now < known.until())?;
        Some(known.told_until.since(now))
    }

    /// What is known of an endpoint, from now on. At the bound, one that nobody waits for is forgotten; where all are
    /// waited for, a further one is left to its runs' own patience.
    fn known(&mut self, endpoint: &str, now: Instant) -> Option<&mut Endpoint> {
        if !self.0.contains_key(endpoint) && self.0.len() >= ENDPOINTS {
            let idle =
                self.0.iter().find(|(_, known)| known.told_until <= now).map(|(name, _)| name.clone())?;
            self.0.remove(&idle);
        }
        Some(self.0.entry(endpoint.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests;
