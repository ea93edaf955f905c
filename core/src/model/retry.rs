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

    /// A call begins: the first endpoint that does not rest, else the first.
    pub fn begin(&mut self, now: Instant) -> usize {
        self.at = self.endpoints.iter().position(|health| health.rests_until <= now).unwrap_or(0);
        self.failures = 0;
        self.given_out = 0;
        self.rounds = 0;
        self.attempts = 0;
        self.at
    }

    /// The call was answered by the endpoint in use.
    pub fn answered(&mut self) {
        self.endpoints[self.at] = Health::default();
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
        let too_long = others && error.retry_after.is_some_and(|wait| wait > RETRY_AFTER);
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
        *health = Health { rests_until: now + rest, gave_out: health.gave_out.saturating_add(1) };
    }
}

#[cfg(test)]
mod tests;
