//! A core that is put away and taken up again between any two events decides as one that never was.

use agentd_core::action::Actions;
use agentd_core::config::Config;
use agentd_core::event::Event;
use agentd_core::machine::{Deadline, Machine};
use agentd_core::rng::Rng;
use agentd_core::snapshot::Snapshot;
use agentd_core::supervisor::Core;
use agentd_core::time::Now;
use agentd_tests::sim::draw;
use agentd_tests::sim::replay::{self, Keep, Trace};
use std::cell::Cell;
use std::path::Path;

const SEEDS: u64 = 200;

thread_local! {
    static RESTORED: Cell<u64> = const { Cell::new(0) };
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

/// One core as it is, and one that is restored from its own checkpoint again and again.
struct Twins {
    whole: Core,
    restored: Core,
    chance: Rng,
    /// Events until the next checkpoint.
    left: u64,
}

fn twins(config: Config, now: Now) -> Box<dyn Machine> {
    let (whole, restored) = (Core::new(config.clone(), now), Core::new(config, now));
    Box::new(Twins { whole, restored, chance: Rng::new(RESTORED.get()), left: 0 })
}

fn cbor(actions: &Actions) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(actions, &mut bytes).expect("actions serialise");
    bytes
}

impl Twins {
    fn put_away_and_take_up(&mut self) {
        let bytes = Core::checkpoint(&self.restored).expect("a state that can be written");
        LARGEST.set(LARGEST.get().max(bytes.len()));
        assert_eq!(bytes, Core::checkpoint(&self.whole).expect("a state that can be written"));
        self.restored = Core::restore(&bytes).expect("a checkpoint that can be read");
        let again = Core::checkpoint(&self.restored).expect("a state that can be written");
        assert_eq!(bytes, again, "what was restored is not what was written");
        RESTORED.set(RESTORED.get() + 1);
    }
}

impl Machine for Twins {
    fn handle(&mut self, now: Now, event: Event, out: &mut Actions) {
        if self.left == 0 {
            self.left = self.chance.below(40);
            self.put_away_and_take_up();
        } else {
            self.left -= 1;
        }
        let mut theirs = Actions::new();
        self.whole.handle(now, event.clone(), &mut theirs);
        self.restored.handle(now, event.clone(), out);
        assert!(cbor(out) == cbor(&theirs), "{event:?}: {out:?} and not {theirs:?}");
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        assert_eq!(self.whole.poll_timeout(), self.restored.poll_timeout());
        self.restored.poll_timeout()
    }

    fn snapshot(&self) -> Option<Snapshot> {
        assert_eq!(self.whole.snapshot(), self.restored.snapshot());
        self.restored.snapshot()
    }
}

#[test]
fn a_restored_core_goes_on_as_the_one_that_was_written() {
    for seed in 0..SEEDS {
        let outcome = replay::live(&draw::plan(seed), &twins, Keep::Verdict);
        assert!(outcome.violation.is_none(), "seed {seed}: {:?}", outcome.violation);
    }
    println!("{SEEDS} lives, {} checkpoints, the largest {} bytes", RESTORED.get(), LARGEST.get());
    assert!(RESTORED.get() > 2_000, "only {} checkpoints", RESTORED.get());
}

#[test]
fn every_committed_race_survives_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces");
    for entry in std::fs::read_dir(folder).expect("the traces are there") {
        let path = entry.expect("a folder's entry").path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a trace is readable");
        let trace: Trace = serde_json::from_str(&text).expect("a trace");
        let outcome = replay::live(&trace.plan, &twins, Keep::Verdict);
        assert!(outcome.violation.is_none(), "{}: {:?}", trace.name, outcome.violation);
    }
}
