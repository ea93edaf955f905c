//! Exhaustive small scope: every order of up to seven steps of two runs, in the ways that runs can meet.
//!
//! `EXHAUSTIVE_CASE=<name>` explores one case. A broken rule is printed with the steps that lead to it.

use agentd_core::supervisor::Core;
use agentd_tests::sim::exhaustive::{Case, Explored, Kind, Stage, explore};
use agentd_tests::sim::plan::{Knobs, Mode};
use std::time::Instant;

const STORE: &[Kind] = &[Kind::Stored, Kind::StoreFails, Kind::Spawned, Kind::Kill, Kind::Term];
const FORKS: &[Kind] = &[Kind::Spawned, Kind::SpawnFails, Kind::Stored, Kind::Kill, Kind::Ready, Kind::Term];
const ENDS: &[Kind] = &[Kind::Result, Kind::Exit, Kind::Eof, Kind::Stored, Kind::Kill];
const DEATHS: &[Kind] = &[Kind::Killed, Kind::Rubbish, Kind::Exit, Kind::Eof, Kind::Stored, Kind::Progress];
const STOPS: &[Kind] = &[Kind::Kill, Kind::Timer, Kind::Result, Kind::Term];
const KILLS: &[Kind] = &[Kind::Kill, Kind::Timer, Kind::Exit];
const SILENCE: &[Kind] = &[Kind::Hang, Kind::Timer, Kind::Ready, Kind::Exit, Kind::Result];

/// Clocks that are due for a stop and for nothing else.
fn ladders(knobs: Knobs) -> Knobs {
    Knobs { ping_ms: 400_000, pong_ms: 500_000, ready_ms: 450_000, progress_ms: 500_000, ..knobs }
}

fn cases() -> Vec<Case> {
    // More pids than anything here needs, and no more than are quickly told apart.
    let plain = Knobs { pids: 12, ..Knobs::default() };
    let queued = Knobs { breadth: 1, queue: 1, ..plain.clone() };
    let deep = Knobs { depth: 2, ..plain.clone() };
    let quick =
        Knobs { ping_ms: 3_000, pong_ms: 4_000, ready_ms: 5_000, progress_ms: 5_000, ..plain.clone() };
    let (one, other) = (Mode::Sync, Mode::Async);
    let case = |name, modes, stage, kinds, knobs: &Knobs| Case {
        name,
        modes,
        nested: false,
        stage,
        knobs: knobs.clone(),
        kinds,
        depth: 7,
    };
    let nested = |name, modes, stage, kinds, knobs: &Knobs| Case {
        nested: true,
        ..case(name, modes, stage, kinds, knobs)
    };
    vec![
        case("killed", [one, other], Stage::Working, KILLS, &ladders(plain.clone())),
        case("stopped", [one, other], Stage::Working, STOPS, &ladders(plain.clone())),
        nested("nested and killed", [other, one], Stage::Working, KILLS, &ladders(deep.clone())),
        case("warm and ended", [Mode::Warm, other], Stage::Working, ENDS, &plain),
        case("ended", [one, other], Stage::Working, ENDS, &plain),
        case("silent", [other, Mode::Detached], Stage::Working, SILENCE, &quick),
        case("dead", [one, other], Stage::Working, DEATHS, &plain),
        case("asked for", [one, other], Stage::Asked, STORE, &plain),
        case("made", [one, other], Stage::Forking, FORKS, &plain),
        nested("nested and made", [one, other], Stage::Asked, FORKS, &deep),
        case("queued", [other, one], Stage::Asked, STORE, &queued),
        case("queued and made", [other, one], Stage::Asked, FORKS, &queued),
    ]
}

#[test]
fn every_order_of_seven_steps() {
    let chosen = std::env::var("EXHAUSTIVE_CASE").ok();
    let mut cases = cases();
    if let Some(name) = &chosen {
        let known: Vec<&str> = cases.iter().map(|case| case.name).collect();
        assert!(
            known.contains(&name.as_str()),
            "EXHAUSTIVE_CASE={name}: there is no such case; there are {known:?}"
        );
        cases.retain(|case| case.name == name);
    }
    let next = std::sync::atomic::AtomicUsize::new(0);
    let begun = Instant::now();
    let work = || {
        let mut sum = Explored::default();
        while let Some(case) = cases.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            let begun = Instant::now();
            let seen = explore(case, &Core::new).unwrap_or_else(|broken| panic!("{}: {broken}", case.name));
            let (orders, lives) = (seen.orderings, seen.lives);
            println!(
                "{:>12} orders, {lives:>6} lives, {:.1} s: {}",
                orders,
                begun.elapsed().as_secs_f64(),
                case.name
            );
            sum.orderings += orders;
            sum.lives += lives;
        }
        sum
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let sums: Vec<Explored> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        all.into_iter().map(|one| one.join().unwrap_or_else(|why| std::panic::resume_unwind(why))).collect()
    });
    let (orders, lives) = sums.iter().fold((0, 0), |(o, l), s| (o + s.orderings, l + s.lives));
    println!("{orders} orders of seven steps, {lives} lives, {:.1} s", begun.elapsed().as_secs_f64());
    assert!(chosen.is_some() || orders > 100_000, "only {orders} orders");
}
