//! What a child costs: from the decision to spawn until its `ready` frame is read, through the real driver, the
//! real spawner thread and the real binary, against ways of starting the same binary without any of them, in the
//! same run. Ratios are what to compare between machines and versions.
//!
//! `cargo bench -p agentd-tests --bench spawn`; without cargo's `--bench` it only checks itself, quickly.

use agentd_core::action::{Action, Actions, ChildSignal, SpawnFrame, Walls};
use agentd_core::bytes::Bytes;
use agentd_core::event::Event;
use agentd_core::id::{NodeId, RunId};
use agentd_core::machine::{Deadline, Machine};
use agentd_core::record::UsageSum;
use agentd_core::time::Now;
use agentd_core::wire::message::{Dialect, Mode, Model, Role, RunLimits, Spawn, Trace, VERSION};
use agentd_core::wire::{Down, Encoder};
use agentd_host::spawner::Image;
use agentd_io_mio::Options;
use agentd_tests::kit::Nothing;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const AGENTD: &str = env!("CARGO_BIN_EXE_agentd-under-test");

fn main() {
    let measuring = std::env::args().any(|argument| argument == "--bench");
    let (rounds, burst) = if measuring { (200, 100) } else { (3, 5) };
    let sizes: &[usize] = if measuring { &[10, 1024] } else { &[10] };
    println!("{:<52} {:>10} {:>7}", "start of one process, median", "us", "ratio");
    let mut first = None;
    for mib in sizes {
        let memory = touched(*mib);
        let one_byte = median(rounds, first_byte);
        let by_hand = median(rounds, ready_by_hand);
        let driven = sequential(rounds);
        println!("supervisor of {mib} MiB");
        line("  posix_spawn, first byte of `--version` (baseline)", one_byte, one_byte);
        line("  posix_spawn, first byte of `ready`", by_hand, one_byte);
        line("  agentd: decision to `ready`  (target 1.3)", driven, one_byte);
        let flat = *first.get_or_insert(driven);
        line("  the same against the first size  (target 1.3)", driven, flat);
        drop(black_box(memory));
    }
    let (took, spawned) = together(burst);
    let rate = f64::from(spawned) / took.as_secs_f64();
    println!(
        "burst of {spawned}: all `ready` after {:.1} ms, {rate:.0}/s  (target 2000/s)",
        took.as_secs_f64() * 1e3
    );
}

fn line(what: &str, took: Duration, baseline: Duration) {
    println!(
        "{what:<52} {:>10.0} {:>7.2}",
        took.as_secs_f64() * 1e6,
        took.as_secs_f64() / baseline.as_secs_f64()
    );
}

/// Memory that is really there: a fork would have to copy its page tables.
fn touched(mib: usize) -> Vec<u8> {
    vec![1; mib * 1024 * 1024]
}

fn median(rounds: usize, one: impl Fn() -> Duration) -> Duration {
    middle((0..rounds).map(|_| one()).collect())
}

fn middle(mut all: Vec<Duration>) -> Duration {
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

/// What the system needs for this binary: no protocol, no limits, no group.
fn first_byte() -> Duration {
    let began = Instant::now();
    let mut child = Command::new(AGENTD).arg("--version").stdout(Stdio::piped()).spawn().expect("starts");
    let mut byte = [0];
    child.stdout.as_mut().expect("piped").read_exact(&mut byte).expect("writes");
    let took = began.elapsed();
    child.wait().expect("ends");
    took
}

/// A real child, started without a driver, a spawner thread or limits.
fn ready_by_hand() -> Duration {
    let frame = frame();
    let began = Instant::now();
    let mut child = Command::new(AGENTD)
        .env("AGENTD_SUBAGENT", "1")
        .env("AGENTD_PARENT_PID", std::process::id().to_string())
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    child.stdin.as_mut().expect("piped").write_all(&frame).expect("reads");
    let mut byte = [0];
    child.stdout.as_mut().expect("piped").read_exact(&mut byte).expect("writes");
    let took = began.elapsed();
    child.kill().expect("lives");
    child.wait().expect("ends");
    took
}

/// One after the other, through the driver.
fn sequential(rounds: usize) -> Duration {
    let mut spawns = Spawns::new(rounds as u64, 1);
    drive(&mut spawns);
    middle(spawns.took)
}

/// All at once, through the driver.
fn together(count: u64) -> (Duration, u32) {
    let mut spawns = Spawns::new(count, count);
    drive(&mut spawns);
    (
        spawns.took.iter().copied().max().unwrap_or_default(),
        u32::try_from(spawns.took.len()).unwrap_or(u32::MAX),
    )
}

fn drive(spawns: &mut Spawns) {
    let wanted = spawns.left;
    let env: Vec<(OsString, OsString)> = std::env::vars_os().filter(|(name, _)| name == "PATH").collect();
    let image = Image::of(Path::new(AGENTD), Vec::new(), env).expect("a path");
    let options = Options::embedded(image).expect("an eventfd");
    agentd_io_mio::run(spawns, &mut Nothing, options).expect("drives");
    assert_eq!(spawns.took.len() as u64, wanted, "every child became ready");
}

/// Stands in for the core: spawns, notes when the first byte of `ready` comes, kills, reaps, and again.
struct Spawns {
    left: u64,
    at_once: u64,
    last: u64,
    alive: u64,
    began: BTreeMap<NodeId, Instant>,
    took: Vec<Duration>,
}

impl Spawns {
    fn new(left: u64, at_once: u64) -> Spawns {
        Spawns { left, at_once, last: 0, alive: 0, began: BTreeMap::new(), took: Vec::new() }
    }

    fn more(&mut self, out: &mut Actions) {
        while self.left > 0 && self.alive < self.at_once {
            self.left -= 1;
            self.alive += 1;
            self.last += 1;
            let node = NodeId(self.last);
            self.began.insert(node, Instant::now());
            out.push(Action::Spawn { node, name: "agentd:bench".into(), walls: Walls::default() });
        }
        if self.alive == 0 {
            out.push(Action::Exit {
                interrupted: None,
                leaked: 0,
                usage: UsageSum::default(),
                costliest: None,
            });
        }
    }
}

impl Machine for Spawns {
    fn handle(&mut self, _now: Now, event: Event, out: &mut Actions) {
        match event {
            Event::Seeded { .. } => self.more(out),
            Event::ChildSpawned { node, .. } => {
                out.push(Action::SendSpawn { node, payload: SpawnFrame(Box::new(payload())) });
            }
            Event::SpawnFailed { node, error, .. } => panic!("{node}: {error}"),
            Event::ChildBytes { node, .. } => {
                if let Some(began) = self.began.remove(&node) {
                    self.took.push(began.elapsed());
                    out.push(Action::Signal { node, signal: ChildSignal::Kill });
                }
            }
            Event::ExitObserved { node, .. } => out.push(Action::Sweep { node, keepers: true }),
            Event::Swept { node, .. } => out.push(Action::Reap { node }),
            Event::Reaped { .. } => {
                self.alive -= 1;
                // A burst is one wave: the next begins when all of it is gone.
                if self.at_once == 1 || self.alive == 0 {
                    self.more(out);
                }
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }
}

fn frame() -> Vec<u8> {
    Encoder::new().encode_down(&Down::Spawn(Box::new(payload()))).expect("fits")
}

fn payload() -> Spawn {
    let playbook = r#"{"rules": [{"reply": {"text": "never", "delay": "1h"}}]}"#;
    Spawn {
        v: VERSION,
        run_id: RunId::NIL,
        handle: None,
        depth: 1,
        attempt: 1,
        role: Role::Subagent,
        mode: Mode::Sync,
        trace: Trace { trace_id: "0".repeat(32), span_id: "0".repeat(16), parent_span_id: None },
        system: String::new(),
        instruction: "wait".into(),
        context: Vec::new(),
        output_schema: None,
        output_contract: None,
        servers: Vec::new(),
        tools: None,
        names: Vec::new(),
        own_tools: Vec::new(),
        model: Model { name: "mock".into(), dialect: Dialect::Mock(Bytes::from(playbook.as_bytes())) },
        limits: RunLimits {
            steps: 10,
            tokens: 1_000_000,
            deadline_ms: 3_600_000,
            repeats: 5,
            tool_result_bytes: 65_536,
        },
        budget: None,
        log_level: "info".into(),
        transcript: None,
    }
}
