//! The arms with real processes: this process is the supervisor, on mio or on tokio, and its children are this
//! program again. One scenario a process, because signals, orphans and descriptors are a process's own; the report
//! goes to stdout as JSON.
//!
//! `one-arm mio|tokio SCENARIO.json FOLDER` performs one by hand; FOLDER is an empty folder for its gates.

mod crew;
mod outside;

use super::scenario::Scenario;
use super::transcript::Transcript;
use super::watched::{Watched, replay};
use super::{child, offspring};
use agentd_core::event::Event;
use agentd_host::signals::{Signals, reset_inherited};
use agentd_host::spawner::Image;
use agentd_host::{Pid, marker, tree};
use agentd_io_mio::{Options, Poster};
use crew::Crew;
use outside::Store;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Which driver, and whose process it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// mio, in a process that is the supervisor's own.
    Mio,
    /// tokio, likewise.
    Tokio,
    /// tokio, as a library in a program that keeps its signals and its children.
    Embedded,
}

impl Driver {
    /// As the command line spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Driver::Mio => "mio",
            Driver::Tokio => "tokio",
            Driver::Embedded => "embedded",
        }
    }

    fn named(name: &str) -> Option<Driver> {
        [Driver::Mio, Driver::Tokio, Driver::Embedded].into_iter().find(|d| d.name() == name)
    }
}

/// What came of a scenario in one process.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// What was seen.
    pub transcript: Transcript,
    /// Whatever is wrong besides: a leak, a replay that differs, a cue that never came, a process that was changed.
    pub problems: Vec<String>,
}

/// The main of the program, whichever of its parts it is.
pub fn main() -> ExitCode {
    if std::env::var_os(marker::SUBAGENT).is_some() {
        return child::main();
    }
    if let Ok(what) = std::env::var(offspring::OFFSPRING) {
        return offspring::main(&what);
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [driver, scenario, folder] = args.as_slice() else {
        eprintln!("usage: one-arm mio|tokio|embedded SCENARIO.json FOLDER");
        return ExitCode::from(2);
    };
    let report = Driver::named(driver)
        .ok_or_else(|| format!("{driver}: accepted are mio, tokio and embedded"))
        .and_then(|driver| Ok((driver, Scenario::read(Path::new(scenario))?)))
        .and_then(|(driver, scenario)| perform(&scenario, driver, Path::new(folder)))
        .unwrap_or_else(|what| Report { problems: vec![what], ..Report::default() });
    match serde_json::to_writer_pretty(std::io::stdout().lock(), &report) {
        Ok(()) => ExitCode::from(u8::from(!report.problems.is_empty())),
        Err(e) => {
            eprintln!("stdout: {e}");
            ExitCode::FAILURE
        }
    }
}

fn perform(scenario: &Scenario, driver: Driver, folder: &Path) -> Result<Report, String> {
    let descriptors = descriptors()?;
    let signals = match driver {
        Driver::Embedded => None,
        Driver::Mio | Driver::Tokio => {
            reset_inherited().map_err(|e| format!("what was inherited: {e}"))?;
            Some(Signals::take().map_err(|e| format!("the signals: {e}"))?)
        }
    };
    let process = ProcessWide::now()?;
    let stage = Stage::set(scenario, folder)?;
    let options = match driver {
        Driver::Embedded => Options::embedded(stage.image()?),
        Driver::Mio | Driver::Tokio => Options::new(stage.image()?, signals),
    }
    .map_err(|e| e.to_string())?;
    let poster = options.poster();
    let mut problems = Vec::new();
    let turns = {
        let crew = Crew::new(scenario, &stage, poster.clone(), driver != Driver::Embedded);
        let mut outside = Store::new(scenario, poster.clone(), crew.frames());
        let mut machine = Watched::new(scenario, crew);
        ask(&poster)?;
        drive(driver, &mut machine, &mut outside, options)?;
        outside.close();
        problems.append(&mut machine.stagehand.problems);
        machine.finish()
    };
    drop(poster);
    let transcript = match turns {
        Ok(turns) => {
            problems.extend(replay(scenario, &turns).err());
            Transcript::of(&turns)
        }
        Err(what) => {
            problems.push(what);
            Transcript::default()
        }
    };
    problems.extend(left(descriptors)?);
    problems.extend(process.changed(driver, &ProcessWide::now()?));
    Ok(Report { transcript, problems })
}

/// The first prompt, which every scenario begins with.
fn ask(poster: &Poster) -> Result<(), String> {
    let text = crate::sim::program::instruction(0, "r");
    poster.post(Event::PromptSubmitted { text }).map_err(|e| e.to_string())
}

fn drive(
    driver: Driver,
    machine: &mut Watched<Crew>,
    outside: &mut Store,
    options: Options,
) -> Result<(), String> {
    match driver {
        Driver::Mio => agentd_io_mio::run(machine, outside, options).map(drop).map_err(|e| e.to_string()),
        Driver::Tokio | Driver::Embedded => {
            agentd_io_tokio::run_blocking(machine, outside, options).map(drop).map_err(|e| e.to_string())
        }
    }
}

/// What the scenario's processes find: the plan, the gates, and the program that they are.
struct Stage {
    plan: PathBuf,
    gates: PathBuf,
    program: PathBuf,
}

impl Stage {
    fn set(scenario: &Scenario, folder: &Path) -> Result<Stage, String> {
        let of = |e: std::io::Error| format!("{}: {e}", folder.display());
        let stage = Stage {
            plan: folder.join("plan.json"),
            gates: folder.join("gates"),
            program: folder.join("program"),
        };
        let plan = serde_json::to_vec(&scenario.plan).map_err(|e| e.to_string())?;
        std::fs::write(&stage.plan, plan).map_err(of)?;
        std::fs::create_dir(&stage.gates).map_err(of)?;
        let own = std::env::current_exe().map_err(of)?;
        std::os::unix::fs::symlink(own, &stage.program).map_err(of)?;
        Ok(stage)
    }

    fn image(&self) -> Result<Image, String> {
        let env = [(child::PLAN, &self.plan), (child::GATES, &self.gates)];
        let env = env.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Image::of(&self.program, Vec::new(), env).ok_or_else(|| "the program's path has no slash".to_owned())
    }
}

fn descriptors() -> Result<usize, String> {
    std::fs::read_dir("/proc/self/fd").map(Iterator::count).map_err(|e| format!("/proc/self/fd: {e}"))
}

/// Processes, dead ones included, and descriptors that are left.
fn left(descriptors_before: usize) -> Result<Vec<String>, String> {
    let mut problems = Vec::new();
    let left = tree::descendants(Pid::own()).map_err(|e| format!("/proc: {e}"))?;
    if !left.is_empty() {
        problems.push(format!("left processes: {left:?}"));
    }
    let now = descriptors()?;
    if now != descriptors_before {
        problems.push(format!("{descriptors_before} descriptors before it and {now} after"));
    }
    Ok(problems)
}

/// What the kernel says of a process's signals.
const SIGNAL_LINES: [&str; 3] = ["SigBlk", "SigIgn", "SigCgt"];

/// Signals 32 and 33, which the C library takes for itself when a program starts its first thread.
const C_LIBRARY: u64 = 0b11 << 31;

/// What a library must leave as it was in the program around it (S5.3).
#[derive(Debug, PartialEq, Eq)]
struct ProcessWide {
    signals: BTreeMap<String, u64>,
    subreaper: bool,
}

impl ProcessWide {
    fn now() -> Result<ProcessWide, String> {
        let status =
            std::fs::read_to_string("/proc/self/status").map_err(|e| format!("/proc/self/status: {e}"))?;
        let signals = status.lines().filter_map(|line| {
            let (name, mask) = line.split_once(":\t").filter(|(name, _)| SIGNAL_LINES.contains(name))?;
            Some((name.to_owned(), u64::from_str_radix(mask, 16).ok()? & !C_LIBRARY))
        });
        let signals = signals.collect();
        let subreaper = rustix::process::child_subreaper().map_err(|e| format!("prctl: {e}"))?;
        Ok(ProcessWide { signals, subreaper: subreaper.is_some() })
    }

    fn changed(&self, driver: Driver, now: &ProcessWide) -> Option<String> {
        let embedded = driver == Driver::Embedded;
        (embedded && self != now)
            .then(|| format!("the program around it was changed from {self:?} to {now:?}"))
    }
}
