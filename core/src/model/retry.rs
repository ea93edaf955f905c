//! When a model call that failed is tried again, and where (S15.4, S7.10).
//!
//! Owns the attempts of the call in hand and which endpoints rest. Refuses to try again what cannot get better: a
//! rejected credential or request. Pure: the clock and chance come in. Called by the child's model connection.

use crate::limits::{
    ENDPOINT_ATTEMPTS, ENDPOINT_BACKOFF, ENDPOINT_REST, PATIENT_BACKOFF, PATIENT_ROUNDS, RETRY_AFTER,
};
use crate::model::{ModelError, ModelErrorKind};
use crate::rng::Rng;
use crate::time::{Duration, Instant};

/// The policy of one connection, over all its calls.
#[derive(Debug)]
pub struct Retry {
    endpoints: Vec<Health>,
    patient: bool,
    rng: Rng,
    /// The endpoint in use.
    at: usize,
    /// Failures of it in a row, in this call.
    failures: u32,
    /// Endpoints that gave out since the round began.
    given_out: usize,
    /// Rounds over all endpoints that came after the first.
    rounds: u32,
    /// Attempts of this call that failed.
    attempts: u32,
}

/// What is remembered of an endpoint from call to call.
#[derive(Debug, Clone, Copy, Default)]
struct Health {
    /// It is passed over until then.
    rests_until: Instant,
    /// How often in a row it gave out.
    gave_out: u32,
    /// The supervisor wants it left alone until then: what other runs learned.
    held_until: Instant,
}

/// What to do about a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Try again.
    Again {
        /// Where, by index.
        endpoint: usize,
        /// Not before this.
        at: Instant,
    },
    /// The call has failed.
    GiveUp,
}

impl Retry {
    /// A policy over so many endpoints, at least one. A `patient` one rides it out when all of them are down.
    pub fn new(endpoints: usize, patient: bool, seed: u64) -> Retry {
        Retry {
            endpoints: vec![Health::default(); endpoints.max(1)],
            patient,
            rng: Rng::new(seed),
            at: 0,
            failures: 0,
            given_out: 0,
            rounds: 0,
            attempts: 0,
        }
    }

    /// A call begins: at the first endpoint that neither rests nor is held, else at the first that is not held, else
    /// at the one that is held for the shortest time. Whoever is held is waited for ([`Retry::held_until`]).
    pub fn begin(&mut self, now: Instant) -> usize {
        let well = |health: &Health| health.rests_until <= now && health.held_until <= now;
        let free = |health: &Health| health.held_until <= now;
        let soonest = || (0..self.endpoints.len()).min_by_key(|at| self.endpoints[*at].held_until);
        let endpoints = self.endpoints.iter();
        let found =
            endpoints.clone().position(well).or_else(|| endpoints.clone().position(free)).or_else(soonest);
        self.at = found.unwrap_or(0);
        self.failures = 0;
        self.given_out = 0;
        self.rounds = 0;
        self.attempts = 0;
        self.at
    }

    /// The supervisor wants this endpoint left alone until then; the last word stands.
    pub fn hold(&mut self, endpoint: usize, until: Instant) {
        if let Some(health) = self.endpoints.get_mut(endpoint) {
            health.held_until = until;
        }
    }

    /// Until when an endpoint is not to be asked, whatever else is decided.
    pub fn held_until(&self, endpoint: usize) -> Instant {
        self.endpoints.get(endpoint).map_or(Instant::ZERO, |health| health.held_until)
    }

    /// The call was answered by the endpoint in use.
    pub fn answered(&mut self) {
        let health = &mut self.endpoints[self.at];
        *health = Health { held_until: health.held_until, ..Health::default() };
    }

    /// Attempts of this call that failed so far.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// An attempt at the endpoint in use failed.
    pub fn after(&mut self, error: &ModelError, now: Instant) -> Next {
        self.attempts = self.attempts.saturating_add(1);
        match error.kind {
            ModelErrorKind::Credential | ModelErrorKind::Rejected | ModelErrorKind::TooLong => {
                return Next::GiveUp;
            }
            ModelErrorKind::Unreachable | ModelErrorKind::Overloaded | ModelErrorKind::Malformed => {}
        }
        self.failures += 1;
        let others = self.given_out + 1 < self.endpoints.len();
        // With somewhere else to go, nobody waits longer than it is worth.
        let held = self.endpoints[self.at].held_until > now + RETRY_AFTER;
        let too_long = others && (held || error.retry_after.is_some_and(|wait| wait > RETRY_AFTER));
        if self.rounds == 0 && self.failures < ENDPOINT_ATTEMPTS && !too_long {
            let backoff = ENDPOINT_BACKOFF * 2u32.saturating_pow(self.failures - 1);
            return self.again(self.at, now, backoff, error);
        }
        self.rest(now);
        self.given_out += 1;
        self.failures = 0;
        if self.given_out < self.endpoints.len() {
            self.at = (self.at + 1) % self.endpoints.len();
            return Next::Again { endpoint: self.at, at: now };
        }
        if !self.patient || self.rounds >= PATIENT_ROUNDS {
            return Next::GiveUp;
        }
        let (first, longest) = PATIENT_BACKOFF;
        let backoff = first.saturating_mul(2u32.saturating_pow(self.rounds)).min(longest);
        self.rounds += 1;
        self.given_out = 0;
        self.at = 0;
        self.again(0, now, backoff, error)
    }

    fn again(&mut self, endpoint: usize, now: Instant, backoff: Duration, error: &ModelError) -> Next {
        let wait = match error.retry_after {
            // What the provider asks for is the least; a little more keeps children that were told the same apart.
            Some(asked) => {
                let asked = asked.min(RETRY_AFTER).max(ENDPOINT_BACKOFF / 2);
                asked + self.share(asked / 8)
            }
            None => backoff / 2 + self.share(backoff),
        };
        Next::Again { endpoint, at: now + wait }
    }

    /// By chance, up to `most`.
    fn share(&mut self, most: Duration) -> Duration {
        Duration::from_micros(self.rng.below(u64::try_from(most.as_micros()).unwrap_or(u64::MAX)))
    }

    /// The endpoint in use is left alone for a while, each time longer.
    fn rest(&mut self, now: Instant) {
        let (first, longest) = ENDPOINT_REST;
        let health = &mut self.endpoints[self.at];
        let rest = first.saturating_mul(2u32.saturating_pow(health.gave_out)).min(longest);
        health.rests_until = now + rest;
        health.gave_out = health.gave_out.saturating_add(1);
    }
}

#[cfg(test)]
mod tests;
