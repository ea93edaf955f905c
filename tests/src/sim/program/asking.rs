//! How a fake child asks its model: never at an endpoint that it was told to leave alone, and it tells what came of it.

use super::Program;
use crate::sim::plan::Provider;
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::Up;
use agentd_core::wire::message::{Health, ModelHealth, Spawn, State, Throttle, WaitingOn};

/// Nobody is to be told to wait longer.
const LONGEST_MS: u64 = 80_000;

/// Its model's endpoints, and until when each is to be left alone.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    all: Vec<(String, Instant)>,
    /// It sleeps until one of them may be asked.
    pub(super) asking: bool,
}

impl Endpoints {
    pub(super) fn of(spawn: &Spawn) -> Endpoints {
        let urls = spawn.model.dialect.remote().into_iter().flat_map(|remote| &remote.endpoints);
        let all = urls.map(|endpoint| (endpoint.url.clone(), Instant::ZERO)).collect();
        Endpoints { all, asking: false }
    }
}

impl Program {
    pub(super) fn throttled(&mut self, now: Instant, throttle: &Throttle) {
        if throttle.for_ms > LONGEST_MS {
            return self.complain(format!("a throttle of {} ms", throttle.for_ms));
        }
        let known = self.endpoints.all.iter_mut().find(|(url, _)| *url == throttle.endpoint);
        match known {
            Some((_, held)) => *held = now + Duration::from_millis(throttle.for_ms),
            None => {
                return self.complain(format!("a throttle of {}, which it does not ask", throttle.endpoint));
            }
        }
        if self.endpoints.asking {
            // It looks again which may be asked.
            self.asleep = None;
        }
    }

    /// Asks the first endpoint that may be asked, and waits for it where there is none.
    pub(super) fn ask_model(&mut self, now: Instant, says: Provider) {
        let Some((url, held)) = self.endpoints.all.iter().min_by_key(|(_, held)| (*held).max(now)).cloned()
        else {
            return;
        };
        if held > now {
            self.step -= 1;
            self.asleep = Some(held);
            self.endpoints.asking = true;
            let until_ms = held.nanos() / 1_000_000;
            return self.send(&Up::State(State::of(WaitingOn::Throttled(until_ms), 1)));
        }
        let (health, retry_after_ms) = match says {
            Provider::Answers => (Health::Answered, None),
            Provider::Fails => (Health::Failed, None),
            Provider::Limits => (Health::Limited, None),
            Provider::LimitsFor(ms) => (Health::Limited, Some(ms)),
        };
        self.send(&Up::ModelHealth(ModelHealth { endpoint: url, health, retry_after_ms }));
    }
}
