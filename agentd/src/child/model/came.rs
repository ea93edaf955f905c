//! How much of the reply in hand has come: what a call that is given up in the middle is charged by (S8.5).
//!
//! Written by the attempt as it reads, read by the main thread before it hands the loop anything that may end the call.
//! Refuses the word of an attempt that was given up: its thread may live a little longer.

use agentd_core::model::Partial;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One connection's; clones share it.
#[derive(Debug, Clone, Default)]
pub(in crate::child) struct Came(Arc<Mutex<Option<SoFar>>>);

/// What has come of the last attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::child) struct SoFar {
    /// The loop's number of the call.
    pub(in crate::child) call: u64,
    /// Rising over all calls.
    pub(in crate::child) attempt: u64,
    pub(in crate::child) came: Partial,
}

impl Came {
    /// An attempt begins.
    pub(super) fn begin(&self, call: u64, attempt: u64) {
        *self.lock() = Some(SoFar { call, attempt, came: Partial::default() });
    }

    /// So much has come of it by now.
    pub(super) fn grow(&self, attempt: u64, came: Option<Partial>) {
        if let (Some(now), Some(came)) = (self.lock().as_mut().filter(|now| now.attempt == attempt), came) {
            now.came = came;
        }
    }

    /// As far as it has come; `None` while there is nothing. It stays until the next attempt begins: what came of this one
    /// may still be on its way to the loop.
    pub(in crate::child) fn so_far(&self) -> Option<SoFar> {
        (*self.lock()).filter(|now| now.came.some().is_some())
    }

    fn lock(&self) -> MutexGuard<'_, Option<SoFar>> {
        // Nothing panics while it is held, and half of it is never written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_attempt_in_hand_is_believed() {
        let came = Came::default();
        let part = |bytes| Some(Partial { bytes, ..Partial::default() });
        let said = |attempt, bytes| part(bytes).map(|came| SoFar { call: 7, attempt, came });
        assert_eq!(came.so_far(), None);
        came.begin(7, 1);
        assert_eq!(came.so_far(), None, "nothing has come");
        came.grow(1, part(10));
        came.grow(1, None);
        assert_eq!(came.so_far(), said(1, 10));
        came.begin(7, 2);
        came.grow(1, part(30));
        assert_eq!(came.so_far(), None);
        came.grow(2, part(5));
        assert_eq!(came.so_far(), said(2, 5));
    }
}
