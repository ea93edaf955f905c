//! One due time a run, indexed: setting one and finding the first are logarithmic in the number of runs.

use crate::id::NodeId;
use crate::time::Instant;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// When each run wants a tick.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Timers {
    by_node: BTreeMap<NodeId, Instant>,
    by_time: BTreeSet<(Instant, NodeId)>,
}

impl Timers {
    /// Sets a run's only timer, or clears it.
    pub(super) fn set(&mut self, node: NodeId, due: Option<Instant>) {
        let old = match due {
            Some(at) => self.by_node.insert(node, at),
            None => self.by_node.remove(&node),
        };
        if old == due {
            return;
        }
        if let Some(old) = old {
            self.by_time.remove(&(old, node));
        }
        if let Some(at) = due {
            self.by_time.insert((at, node));
        }
    }

    /// Forgets a run.
    pub(super) fn clear(&mut self, node: NodeId) {
        self.set(node, None);
    }

    /// The earliest due time.
    pub(super) fn first(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// The runs that are due at `now`, earliest first.
    pub(super) fn due(&self, now: Instant) -> Vec<NodeId> {
        self.by_time.range(..=(now, NodeId(u64::MAX))).map(|(_, node)| *node).collect()
    }
}
