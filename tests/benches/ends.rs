//! What the end of a child costs, and a word with it: from a signal until the pid is free again, from the end of its
//! stdin until the core is told of its exit, and an echo there and back, through the real driver against bare system
//! calls on the same child, in the same run. Ratios are what to compare between machines and versions.
//!
//! `cargo bench -p agentd-tests --bench ends`; without cargo's `--bench` it only checks itself, quickly.

#[path = "ends/bare.rs"]
mod bare;
#[path = "ends/driven.rs"]
mod driven;

use std::io::{Read, Write};
use std::time::Duration;

/// One kind of measurement, done `rounds` times on so many children.
type Arm = fn(rounds: usize, children: usize) -> Vec<Duration>;

fn main() {
    if std::env::var_os("AGENTD_SUBAGENT").is_some() {
        return echo();
    }
    let measuring = std::env::args().any(|argument| argument == "--bench");
    let of = |rounds: usize| if measuring { rounds } else { rounds.div_ceil(100) };
    println!("{:<44} {:>10} {:>10} {:>7} {:>8}", "median", "bare us", "agentd us", "ratio", "target");
    report("SIGKILL to reaped, 1 child", 1.2, (of(400), 1), bare::kill, driven::kill);
    report("SIGKILL to reaped, 100 children", 1.2, (of(40), 100), bare::kill, driven::kill);
    report("end of stdin to exit told", 1.5, (of(400), 1), bare::exit, driven::exit);
    stay_on_one_processor();
    report("echo of 32 bytes, there and back", 2.0, (of(20_000), 1), bare::echo, driven::echo);
    let left = agentd_host::tree::descendants(agentd_host::Pid::own()).expect("the walk works");
    assert!(left.is_empty(), "no survivor: {left:?}");
}

/// For both ends of both arms: across two processors, the echo would tell where the scheduler put them. Inherited by
/// the threads and children that are made from here on, so it comes before the last row only.
fn stay_on_one_processor() {
    let all = rustix::thread::sched_getaffinity(None).expect("the affinity is known");
    let mut one = rustix::thread::CpuSet::new();
    one.set((0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).expect("one processor"));
    rustix::thread::sched_setaffinity(None, &one).expect("the affinity can be narrowed");
}

/// The child: says one byte when it is up, then gives back what it gets until there is no more.
fn echo() {
    let (mut stdin, mut stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut buffer = [0; 4096];
    stdout.write_all(b"x").and_then(|()| stdout.flush()).expect("the parent reads");
    loop {
        match stdin.read(&mut buffer).expect("stdin is a pipe") {
            0 => return,
            n => stdout.write_all(&buffer[..n]).and_then(|()| stdout.flush()).expect("the parent reads"),
        }
    }
}

/// Runs both arms by turns, so that a busy machine is as busy for both.
fn report(what: &str, target: f64, (rounds, children): (usize, usize), bare: Arm, driven: Arm) {
    const TURNS: usize = 8;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        without.extend(bare(rounds.div_ceil(TURNS), children));
        with.extend(driven(rounds.div_ceil(TURNS), children));
    }
    let (without, with) = (median(without), median(with));
    println!(
        "{what:<44} {:>10.1} {:>10.1} {:>7.2} {:>8.1}",
        without * 1e6,
        with * 1e6,
        with / without,
        target
    );
}

fn median(mut all: Vec<Duration>) -> f64 {
    all.sort_unstable();
    all[all.len() / 2].as_secs_f64()
}
