//! What one child learns of a provider's limit reaches the others (S15.4), so that thirty children do not storm an
//! endpoint that asked for patience or gave out. A child that starts later is told right after its first frame. Each
//! is told a little longer than the one before it by chance, so that they do not come back together.

use super::{Core, daemon_note, ms};
use crate::action::Actions;
use crate::address::host;
use crate::id::NodeId;
use crate::note::Level;
use crate::throttle::Change;
use crate::time::Duration;
use crate::wire::message::{Down, Health, ModelHealth, Throttle};

impl Core {
    /// A child reports how an endpoint is.
    pub(super) fn model_health(&mut self, node: NodeId, report: ModelHealth, out: &mut Actions) {
        let ModelHealth { endpoint, health, retry_after_ms } = report;
        let Some(run) = self.runs.get(&node) else { return };
        if !run.endpoints.contains(&endpoint) {
            self.protocol_error(node, "`model_health` of an endpoint it was not given", out);
            return;
        }
        let now = self.now.mono;
        let change = match health {
            Health::Answered => self.throttles.answered(&endpoint, now),
            Health::Failed => self.throttles.failed(&endpoint, now),
            Health::Limited => {
                self.throttles.limited(&endpoint, retry_after_ms.map(Duration::from_millis), now)
            }
        };
        match change {
            Change::Nothing => return,
            Change::LeaveAlone(wait) => {
                let why = if health == Health::Limited { "it asked for less" } else { "it gave out" };
                let note = daemon_note(Level::Warn, "endpoint.throttled").with("endpoint", host(&endpoint));
                out.push(note.with("for_ms", ms(wait)).with("why", why).into());
            }
            Change::GoOn => {
                let note = daemon_note(Level::Info, "endpoint.recovered").with("endpoint", host(&endpoint));
                out.push(note.into());
            }
        }
        let uses = |node: &NodeId| {
            self.runs.get(node).is_some_and(|run| run.payload.is_none() && run.endpoints.contains(&endpoint))
        };
        // Who has no first frame yet is told after it.
        for node in self.busy.iter().copied().filter(uses).collect::<Vec<_>>() {
            let wait = match change {
                Change::LeaveAlone(wait) => wait,
                Change::Nothing | Change::GoOn => Duration::ZERO,
            };
            self.throttle(node, &endpoint, wait, out);
        }
    }

    /// A child has its first frame: what is known of its endpoints follows.
    pub(super) fn tell_throttles(&mut self, node: NodeId, out: &mut Actions) {
        let now = self.now.mono;
        let Some(run) = self.runs.get(&node) else { return };
        let known = |url: &String| Some((url.clone(), self.throttles.left(url, now)?));
        for (endpoint, wait) in run.endpoints.iter().filter_map(known).collect::<Vec<_>>() {
            self.throttle(node, &endpoint, wait, out);
        }
    }

    fn throttle(&mut self, node: NodeId, endpoint: &str, wait: Duration, out: &mut Actions) {
        let for_ms = match ms(wait) {
            0 => 0,
            wait => wait + self.rng.below(wait / 8 + 1),
        };
        // One that has ended needs no word, and one that does not read is judged by that.
        let _unheard =
            self.tell_child(node, Down::Throttle(Throttle { endpoint: endpoint.to_owned(), for_ms }), out);
    }
}
