//! A daemon in a folder of its own, and what it tells.

use agentd_tests::kit::{PATIENCE, Rule, Subtree, call, playbook};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

const DAEMON: &str = env!("CARGO_BIN_EXE_kept-daemon");

/// A folder with a configuration, a playbook and, later, a state directory.
pub(crate) struct Home {
    folder: tempfile::TempDir,
}

/// A daemon that runs.
pub(crate) struct Daemon {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<Value>,
    seen: Vec<Value>,
    home: PathBuf,
}

impl Home {
    /// The playbook that restarts are tested with: every kind of run, each as long as it is told to be.
    pub(crate) fn new() -> Home {
        let long = |text: &str| Rule::subagent().told(text).after("1h").says("never");
        Home::with(&playbook([
            Rule::worker().told("^begin").turn(1).calls([
                call("subagent.run", json!({"instruction": "async long", "mode": "async"})),
                call("subagent.run", json!({"instruction": "detached long", "mode": "detached"})),
                call("subagent.run", json!({"instruction": "gone long", "mode": "async", "durable": false})),
                call("subagent.run", json!({"instruction": "quick", "mode": "async"})),
            ]),
            Rule::worker().says("done"),
            long("long"),
            Rule::subagent().told("quick").uses(100, 10).says("seen"),
            Rule::subagent().uses(7, 1).says("turn"),
        ]))
    }

    pub(crate) fn with(rules: &str) -> Home {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("book.yaml"), rules).expect("written");
        let config = "
agent: {name: kept}
intelligence: {dialect: mock, endpoints: [book.yaml]}
limits: {subagents: {breadth: 16, rate: 64/1s}}
lifecycle: {drain_timeout: 2s}
store: {path: state, min_free: 1B}
";
        std::fs::write(folder.path().join("agentd.yaml"), config).expect("written");
        Home { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path().join("state/agentd.db")
    }

    pub(crate) fn start(&self) -> Daemon {
        self.start_with(None)
    }

    /// Started so that it is killed at this point.
    pub(crate) fn start_with(&self, crash: Option<&str>) -> Daemon {
        let mut command = Command::new(DAEMON);
        command.arg("agentd.yaml").current_dir(self.path()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.path());
        command.envs(crash.map(|point| ("CRASH_AT", point)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("it starts");
        let stdin = child.stdin.take().expect("a pipe");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line}: {e}"));
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        Daemon { child, stdin, lines, seen: Vec::new(), home: self.path().to_owned() }
    }

    /// The records that are durable, by handle.
    pub(crate) fn records(&self) -> BTreeMap<String, Value> {
        let (_opened, saved) = agentd::store::Opened::open(&agentd::store::Options {
            directory: self.path().join("state"),
            min_free: 0,
        })
        .expect("it opens");
        let rows = saved.runs.iter().filter_map(|row| {
            let handle = row.record.handle?.to_string();
            Some((handle, serde_json::to_value(&row.record).expect("a record is JSON")))
        });
        rows.collect()
    }
}

impl Daemon {
    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn say(&mut self, line: &Value) {
        // One that was killed meanwhile reads nothing.
        let _dead = self.stdin.write_all(format!("{line}\n").as_bytes());
    }

    pub(crate) fn prompt(&mut self, text: &str) {
        self.say(&json!({ "prompt": text }));
    }

    pub(crate) fn call(&mut self, number: u64, tool: &str, args: &Value) {
        self.say(&json!({ "call": number, "tool": tool, "args": args }));
    }

    pub(crate) fn drain(&mut self) {
        self.say(&json!({ "drain": true }));
    }

    /// Waits for a line of which `which` holds; `None` when the daemon has ended before.
    pub(crate) fn find(&mut self, which: impl Fn(&Value) -> bool) -> Option<Value> {
        if let Some(found) = self.seen.iter().find(|line| which(line)) {
            return Some(found.clone());
        }
        let until = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if which(&line) {
                        return Some(line);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => panic!("it does not come; seen: {:#?}", self.seen),
            }
        }
    }

    /// Waits for the next line, whatever it says.
    pub(crate) fn next_line(&mut self) -> Option<Value> {
        let line = self.lines.recv_timeout(PATIENCE).ok()?;
        self.seen.push(line.clone());
        Some(line)
    }

    pub(crate) fn note(&mut self, event: &str, handle: Option<&str>) -> Option<Value> {
        self.find(|line| line["note"] == event && handle.is_none_or(|handle| line["handle"] == handle))
    }

    pub(crate) fn answer(&mut self, call: u64) -> Option<Value> {
        self.find(|line| line["answer"] == call)
    }

    /// Every note of this name so far, by handle.
    pub(crate) fn noted(&self, event: &str) -> Vec<String> {
        let notes = self.seen.iter().filter(|line| line["note"] == event);
        notes.filter_map(|line| line["handle"].as_str().map(str::to_owned)).collect()
    }

    pub(crate) fn seen(&self) -> &[Value] {
        &self.seen
    }

    /// Kills it now.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it is ours");
    }

    /// Waits for its end, and for that of everything below it (S9.7).
    pub(crate) fn ended(mut self) -> (Option<i32>, Vec<Value>) {
        let status = self.child.wait().expect("it is ours");
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.seen.push(line);
        }
        let home = self.home.to_string_lossy().into_owned();
        let left = Subtree::marked("HOME", &home).wait_for_end(Duration::from_secs(5));
        assert!(left.is_empty(), "alive after the daemon: {left:?}");
        (status.code(), self.seen)
    }
}
