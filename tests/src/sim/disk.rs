//! The disk under a daemon: what is durable, what is on its way, and what a crash makes of that. It outlives the daemon
//! that writes to it.

use agentd_core::record::Record;
use agentd_core::store::{Entry, Kind, RunRow, Saved, Write};
use std::collections::{BTreeMap, VecDeque};

/// See the module.
#[derive(Default)]
pub(crate) struct Disk {
    entries: BTreeMap<(Kind, String), Vec<u8>>,
    /// Saves that are not answered yet, in order, and whether each will be made.
    out: VecDeque<(u64, Vec<Write>, bool)>,
}

impl Disk {
    /// A save begins; it will be made or not.
    pub(crate) fn begin(&mut self, seq: u64, writes: Vec<Write>, made: bool) {
        self.out.push_back((seq, writes, made));
    }

    /// The oldest save is answered.
    pub(crate) fn answered(&mut self, seq: u64) {
        let Some((of, writes, made)) = self.out.pop_front() else { return };
        assert_eq!(of, seq, "a store answers in order");
        if made {
            self.apply(&writes);
        }
    }

    /// The daemon is killed. So many of the saves that are on their way have become durable; of the next one, where the
    /// disk tears what it writes, half a value.
    pub(crate) fn crash(&mut self, durable: usize, tears: bool) {
        let mut out = std::mem::take(&mut self.out).into_iter().filter(|(.., made)| *made);
        for (_, writes, _) in out.by_ref().take(durable) {
            self.apply(&writes);
        }
        let Some((_, writes, _)) = out.next().filter(|_| tears) else { return };
        let first = writes.iter().find_map(|write| Entry::of(write).ok());
        if let Some(Entry { kind, key, value: Some(mut value) }) = first
            && !self.entries.contains_key(&(kind, key.clone()))
        {
            value.truncate(value.len() / 2);
            self.entries.insert((kind, key), value);
        }
    }

    /// How many saves are on their way.
    pub(crate) fn on_the_way(&self) -> usize {
        self.out.len()
    }

    /// What a start finds.
    pub(crate) fn saved(&self) -> Saved {
        Saved::read(
            self.entries.iter().map(|((kind, key), value)| (kind.name(), key.as_str(), value.as_slice())),
        )
    }

    /// The durable record of a run.
    pub(crate) fn record(&self, run: &str) -> Option<Record> {
        let value = self.entries.get(&(Kind::Run, run.to_owned()))?;
        let row: RunRow = ciborium::from_reader(value.as_slice()).ok()?;
        Some(row.record)
    }

    fn apply(&mut self, writes: &[Write]) {
        for Entry { kind, key, value } in writes.iter().filter_map(|write| Entry::of(write).ok()) {
            match value {
                Some(value) => drop(self.entries.insert((kind, key), value)),
                None => drop(self.entries.remove(&(kind, key))),
            }
        }
    }
}
