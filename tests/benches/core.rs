//! What a decision costs: events a second of the core alone with few and many live runs, and the same with the flight
//! recorder, in the same run, in processor time of the core's thread. Ratios are what to compare between machines and
//! versions.
//!
//! `cargo bench -p agentd-tests --bench core`; without cargo's `--bench` it only checks itself, quickly.

#[path = "core/crowd.rs"]
mod crowd;

use agentd::journal::{Journal, Recording};
use agentd_core::event::Event;
use agentd_core::time::{Instant as Mono, Now, Wall};
use crowd::Crowd;
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;
use std::time::Duration;

/// Events that are made before they are measured.
const ROUND: usize = 10_000;

fn main() {
    let measuring = std::env::args().any(|argument| argument == "--bench");
    let (rounds, crowds): (usize, &[u32]) =
        if measuring { (60, &[10, 1_000, 10_000]) } else { (1, &[10, 100]) };
    println!(
        "{:>10} {:>12} {:>12} {:>14} {:>8} {:>12} {:>8}",
        "live runs", "events/s", "ns/event", "recorded ev/s", "ratio", "bytes/event", "us more"
    );
    let folder = tempfile::tempdir().expect("a folder");
    for runs in crowds {
        report(*runs, rounds, &folder.path().join("flight"));
    }
}

/// Both arms in turn, round by round, on two equal cores.
fn report(runs: u32, rounds: usize, path: &Path) {
    let (mut bare, mut recorded) = (Crowd::of(runs), Crowd::of(runs));
    let begun = Now { mono: Mono::ZERO, wall: Wall(1_000_000) };
    let mut journal = Some(Journal::create(path, &crowd::config(runs), begun).expect("a journal"));
    let (mut without, mut with) = (Duration::ZERO, Duration::ZERO);
    let (mut bare_events, mut recorded_events) = (0, 0);
    for _ in 0..rounds {
        let (took, events) = round(&mut bare, &mut None);
        without += took;
        bare_events += events;
        let (took, events) = round(&mut recorded, &mut journal);
        with += took;
        recorded_events += events;
    }
    assert_eq!(bare_events, recorded_events, "both arms did the same");
    journal.take().expect("it is open").close(Duration::from_secs(60)).expect("all is written");
    let recording = Recording::open(path).expect("a journal");
    let bytes: u64 = recording.files().iter().map(|file| file.metadata().expect("there").len()).sum();
    let read: usize = recording.readers().map(|(_, reader)| reader.expect("whole").count()).sum();
    assert_eq!(read, recorded_events, "every event is in the file");
    // Means: pings come in waves, which a median would leave out.
    let (without, with) = (without.as_secs_f64() / read as f64, with.as_secs_f64() / read as f64);
    println!(
        "{runs:>10} {:>12.0} {:>12.0} {:>14.0} {:>8.2} {:>12.1} {:>8.2}",
        1.0 / without,
        without * 1e9,
        1.0 / with,
        with / without,
        bytes as f64 / read as f64,
        (with - without) * 1e6,
    );
}

/// Feeds a round, ticks included, as a driver does. Only that is timed.
fn round(crowd: &mut Crowd, journal: &mut Option<Journal>) -> (Duration, usize) {
    let mut spent = Duration::ZERO;
    let mut fed = 0;
    for _ in 0..ROUND / 100 {
        let events = crowd.events(100);
        let began = cpu();
        for event in events {
            let now = crowd.pass();
            feed(crowd, journal, now, event);
            fed += 1;
            if crowd.due() {
                feed(crowd, journal, now, Event::Tick);
                fed += 1;
            }
        }
        spent += cpu().saturating_sub(began);
        crowd.perform();
    }
    (spent, fed)
}

fn feed(crowd: &mut Crowd, journal: &mut Option<Journal>, now: Now, event: Event) {
    let Some(journal) = journal else {
        std::hint::black_box(crowd.feed(now, event));
        return;
    };
    if journal.wants_checkpoint() {
        let state = agentd_core::machine::Machine::checkpoint(&crowd.core);
        assert!(journal.checkpointed(state).is_none());
    }
    assert!(journal.observe(now, &event).is_none());
    let actions = crowd.feed(now, event);
    assert!(journal.decided(actions).is_none());
}

/// Processor time of this thread: what else the machine does is not measured.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
}
