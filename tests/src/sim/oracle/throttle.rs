//! What one run learns of a provider's limit reaches everybody (S15.4): while an endpoint is to be left alone, every run
//! that may ask it has been told so for long enough; nobody is told without a reason, or for much longer; and all go on.

use super::facts::Facts;
use super::{Verdict, unless};
use agentd_core::id::NodeId;
use agentd_core::limits::{ENDPOINT_FAILURES, ENDPOINT_REST, RETRY_AFTER};
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::message::{Health, ModelHealth, Throttle};
use std::collections::BTreeMap;

const TOLD: &str = "a limit that one run learned of reaches the others";
const OUTLIVED: &str = "nobody is held back for what is over";
const REASON: &str = "a throttle has a reason and an end";

/// What is known of endpoints, from what runs reported, and what each run was told.
#[derive(Debug, Default)]
pub(super) struct Throttles {
    endpoints: BTreeMap<String, Endpoint>,
    told: BTreeMap<(NodeId, String), Instant>,
}

#[derive(Debug, Default)]
struct Endpoint {
    failures: u32,
    opened: u32,
    asked_until: Instant,
    rests_until: Instant,
    /// Until when a run may have been told to wait for each, with what is told on top.
    asked_told: Instant,
    rests_told: Instant,
    /// The most that chance put on top of any wait so far.
    chance: Duration,
    /// The longest wait there was in the event in hand: one read may bring a limit and the answer that ends it.
    peak: Instant,
}

impl Endpoint {
    fn until(&self) -> Instant {
        self.asked_until.max(self.rests_until)
    }
}

impl Throttles {
    /// A run that is heard reports.
    pub(super) fn reported(&mut self, now: Instant, report: &ModelHealth) {
        let known = self.endpoints.entry(report.endpoint.clone()).or_default();
        match (report.health, report.retry_after_ms) {
            (Health::Answered, _) => {
                (known.failures, known.opened, known.rests_until) = (0, 0, Instant::ZERO);
                // Those who only wait for their share of chance any more need no word.
                known.rests_told = known.rests_told.min(now + known.chance);
                if known.asked_until <= now {
                    known.asked_told = known.asked_told.min(now + known.chance);
                }
            }
            (Health::Limited, Some(ms)) if ms > 0 => {
                let wait = Duration::from_millis(ms).min(RETRY_AFTER);
                known.asked_until = known.asked_until.max(now + wait);
                known.asked_told = known.asked_told.max(now + with_what_is_told_on_top(wait));
                known.chance = known.chance.max(wait / 7);
            }
            (Health::Failed | Health::Limited, _) if known.until() <= now => {
                known.failures += 1;
                if known.failures >= ENDPOINT_FAILURES {
                    let (first, longest) = ENDPOINT_REST;
                    let rest = (first * 2u32.pow(known.opened.min(10))).min(longest);
                    known.rests_until = now + rest;
                    known.rests_told = now + with_what_is_told_on_top(rest);
                    known.chance = known.chance.max(rest / 7);
                    known.opened += 1;
                }
            }
            (Health::Failed | Health::Limited, _) => {}
        }
        known.peak = known.peak.max(known.until());
    }
}

/// Two eighths, one of them of the other.
fn with_what_is_told_on_top(wait: Duration) -> Duration {
    wait + wait / 3
}

/// Judges a throttle as it is sent, and remembers it.
pub(super) fn judge(facts: &mut Facts, now: Instant, node: NodeId, throttle: &Throttle) -> Verdict {
    let throttles = &mut facts.throttles;
    let known = throttles.endpoints.get(&throttle.endpoint);
    let until = known.map_or(Instant::ZERO, |known| known.until().max(known.peak));
    let wait = Duration::from_millis(throttle.for_ms);
    // What is told on top is a share of the longest wait.
    let most = until.since(now) + ENDPOINT_REST.1 / 3;
    unless(throttle.for_ms == 0 || until > now && wait <= most, REASON, || {
        format!(
            "{node} is to leave {} alone for {wait:?}, it asks for {:?}",
            throttle.endpoint,
            until.since(now)
        )
    })?;
    throttles.told.insert((node, throttle.endpoint.clone()), now + wait);
    Ok(())
}

/// What must hold once an event is done.
pub(super) fn judge_settled(facts: &mut Facts, now: Instant) -> Verdict {
    facts.throttles.endpoints.values_mut().for_each(|known| known.peak = Instant::ZERO);
    for (endpoint, known) in &facts.throttles.endpoints {
        for run in facts.live.iter().filter_map(|id| facts.runs.get(id)) {
            let Some(node) = facts.nodes.get(&run.record.node) else { continue };
            let hears = node.first_frame
                && run.terminal.is_none()
                && node.exit.is_none()
                && !node.write_failed
                && node.broken.is_none();
            if !hears {
                continue;
            }
            let told = facts.throttles.told.get(&(run.record.node, endpoint.clone())).copied();
            let told = told.unwrap_or(now);
            let (name, due) = (run.record.node, known.until().since(now));
            // To the millisecond, in which a throttle counts: one that has no more left is not told any more.
            let enough = known.until() <= now || told + Duration::from_millis(1) >= known.until();
            unless(enough, TOLD, || {
                format!("{name} may ask {endpoint}, which is to be left alone for {due:?}: told {told:?}")
            })?;
            let most = known.asked_told.max(known.rests_told);
            unless(told <= now.max(most), OUTLIVED, || {
                format!("{name} waits for {endpoint} until {told:?}, which asks for {due:?}")
            })?;
        }
    }
    Ok(())
}
