//! A supervisor by hand: starts the binary under test as a child, speaks the control protocol with it, and knows
//! every process that came of it.
//!
//! Servers are given a variable of their own ([`Rig::tag`]) that everything they start inherits, whatever session or
//! parent it moves to; keepers are known by the pid of their child. So "nothing is left" is a look at `/proc`.

use agentd_core::bytes::Bytes;
use agentd_core::id::RunId;
use agentd_core::rng::Rng;
use agentd_core::time::Wall;
use agentd_core::wire::message::{
    Cancel, Dialect, Event, Files, Mode, Model, Ping, Role, RunLimits, RunResult, Server, Spawn, Stdio, Text,
    Trace, Transport, Turn, TurnOutcome, VERSION, WaitingOn,
};
use agentd_core::wire::{Decoded, Down, Encoder, Up, UpDecoder};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio as Pipe};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Beyond this a test has failed: whatever it waits for does not come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The binary under test.
pub(crate) const AGENTD: &str = env!("CARGO_BIN_EXE_agentd-under-test");

/// The server that misbehaves on demand.
pub(crate) const FAKE: &str = env!("CARGO_BIN_EXE_fake-mcp");

/// The variable that marks what belongs to one rig.
const TAG: &str = "RIG_TAG";

/// One child and its supervisor's half of the channel.
pub(crate) struct Rig {
    pub(crate) process: Child,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: ChildStdout,
    pub(crate) encoder: Encoder,
    decoder: UpDecoder,
    stderr: Option<JoinHandle<String>>,
    /// Frames read so far.
    pub(crate) seen: Vec<Up>,
    tag: String,
    ended: bool,
}

/// The binary under test with so much memory for all its data.
pub(crate) fn walled(mib: u32) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -d {} && exec \"$0\"", mib * 1024), AGENTD]);
    command
}

/// A value that no other process carries.
pub(crate) fn tag() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Rig {
    /// Starts a child that has nothing yet; `command` is what runs it, with the markers to be added.
    pub(crate) fn bare(mut command: Command, tag: String) -> Rig {
        let mut process = command
            .env("AGENTD_SUBAGENT", "1")
            .env("AGENTD_PARENT_PID", std::process::id().to_string())
            .stdin(Pipe::piped())
            .stdout(Pipe::piped())
            .stderr(Pipe::piped())
            .spawn()
            .expect("the binary starts");
        let stdin = process.stdin.take();
        let stdout = process.stdout.take().expect("a pipe");
        let mut pipe = process.stderr.take().expect("a pipe");
        let stderr = std::thread::spawn(move || {
            let mut said = Vec::new();
            pipe.read_to_end(&mut said).expect("stderr reads");
            String::from_utf8_lossy(&said).into_owned()
        });
        let (encoder, decoder) = (Encoder::new(), UpDecoder::new());
        Rig {
            process,
            stdin,
            stdout,
            encoder,
            decoder,
            stderr: Some(stderr),
            seen: Vec::new(),
            tag,
            ended: false,
        }
    }

    /// Starts a child and gives it its run.
    pub(crate) fn start(run: Run) -> Rig {
        let mut rig = Rig::bare(Command::new(AGENTD), run.tag.clone());
        rig.send(&Down::Spawn(Box::new(run.spawn)));
        rig
    }

    /// The same with so much memory for all its data: more than that is an abort, which no test accepts. Its servers
    /// have as much each.
    pub(crate) fn start_walled(mib: u32, run: Run) -> Rig {
        let mut rig = Rig::bare(walled(mib), run.tag.clone());
        rig.send(&Down::Spawn(Box::new(run.spawn)));
        rig
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.process.id()).expect("a pid")
    }

    pub(crate) fn send(&mut self, message: &Down) {
        let frame = self.encoder.encode_down(message).expect("it fits");
        self.stdin.as_mut().expect("stdin is open").write_all(&frame).expect("the child reads");
    }

    pub(crate) fn ping(&mut self, seq: u64) {
        self.send(&Down::Ping(Ping { seq }));
    }

    pub(crate) fn cancel(&mut self) {
        self.send(&Down::Cancel(Cancel { reason: "the test says so".into(), turn: None }));
    }

    /// Gives a warm child its next message.
    pub(crate) fn message(&mut self, id: u64, text: &str) {
        self.send(&Down::Message(Text { id, text: text.to_owned() }));
    }

    /// Ends one turn.
    pub(crate) fn cancel_turn(&mut self, turn: u64) {
        self.send(&Down::Cancel(Cancel { reason: "the test says so".into(), turn: Some(turn) }));
    }

    /// Reads on until the next turn ends with a result: its message and the result.
    pub(crate) fn turn(&mut self) -> (u64, RunResult) {
        let turn = self.until(|up| match up {
            Up::Turn(turn) => Some(Some(turn.clone())),
            Up::Result(_) | Up::Failed(_) => Some(None),
            _ => None,
        });
        match turn {
            Some(Turn { id, outcome: TurnOutcome::Result(result) }) => (id, result),
            other => panic!("no turn's result: {other:#?}; seen: {:#?}", self.seen),
        }
    }

    /// Reads on until the run waits on this.
    pub(crate) fn until_waiting_on(&mut self, wanted: &WaitingOn) {
        self.until(|up| matches!(up, Up::State(state) if state.waiting_on == *wanted).then_some(()));
    }

    /// The next frame; `None` at the end of file.
    pub(crate) fn next(&mut self) -> Option<Up> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.decoder.next() {
                Some(Ok(Decoded::Message(up))) => {
                    self.seen.push(up.clone());
                    return Some(up);
                }
                Some(Ok(Decoded::Ignored)) => panic!("a frame of unknown type"),
                Some(Err(e)) => panic!("the child breaks the protocol: {e}"),
                None => {}
            }
            assert!(readable(&[&self.stdout], until), "no frame in time; seen: {:#?}", self.seen);
            let mut bytes = [0; 64 * 1024];
            match self.stdout.read(&mut bytes) {
                Ok(0) => {
                    self.decoder.finish().expect("no frame is cut");
                    return None;
                }
                Ok(n) => self.decoder.push(&bytes[..n]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => panic!("stdout: {e}"),
            }
        }
    }

    /// Reads on until a frame that `wanted` makes something of.
    pub(crate) fn until<T>(&mut self, wanted: impl Fn(&Up) -> Option<T>) -> T {
        loop {
            let up = self.next().unwrap_or_else(|| panic!("end of file; seen: {:#?}", self.seen));
            if let Some(found) = wanted(&up) {
                return found;
            }
        }
    }

    /// Reads on until the run waits for the model.
    pub(crate) fn until_model_call(&mut self) {
        self.until(|up| matches!(up, Up::State(state) if state.waiting_on == WaitingOn::Model).then_some(()));
    }

    /// Reads on until the run waits for tools of its servers.
    pub(crate) fn until_tool_call(&mut self) {
        self.until(|up| {
            matches!(up, Up::State(state) if matches!(state.waiting_on, WaitingOn::Tools(_))).then_some(())
        });
    }

    /// Reads on until the terminal frame.
    pub(crate) fn terminal(&mut self) -> Up {
        self.until(|up| matches!(up, Up::Result(_) | Up::Failed(_)).then(|| up.clone()))
    }

    /// The text of a completed run.
    pub(crate) fn completed(&mut self) -> String {
        match self.terminal() {
            Up::Result(result) if result.end == agentd_core::wire::message::LoopEnd::Completed => {
                result.text.expect("a completed run has a text")
            }
            other => panic!("not completed: {other:#?}; seen: {:#?}", self.seen),
        }
    }

    /// The sentence of a failed run.
    pub(crate) fn failed(&mut self) -> agentd_core::wire::message::Failed {
        match self.terminal() {
            Up::Failed(failed) => failed,
            other => panic!("not failed: {other:#?}"),
        }
    }

    /// The events of this name that were seen.
    pub(crate) fn events(&self, name: &str) -> Vec<&Event> {
        let events = self.seen.iter().filter_map(|up| match up {
            Up::Event(event) if event.name == name => Some(event),
            _ => None,
        });
        events.collect()
    }

    /// Waits for the child's own end and makes sure that nothing is left of it. What it wrote to stderr.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        self.end_within(PATIENCE)
    }

    pub(crate) fn end_within(&mut self, bound: Duration) -> (ExitStatus, String) {
        let until = Instant::now() + bound;
        assert!(
            readable(&[&pidfd(self.pid())], until),
            "the child does not end within {bound:?}; left: {:?}",
            self.left()
        );
        let status = self.process.wait().expect("reaped here");
        self.ended = true;
        self.assert_nothing_is_left(until);
        let said = self.stderr.take().expect("once").join().expect("stderr is read");
        (status, said)
    }

    /// Kills the child as nothing else does, and waits until all that came of it is gone.
    pub(crate) fn kill_and_expect_nothing_left(mut self, bound: Duration) {
        let held: Vec<(i32, OwnedFd)> =
            self.left().into_iter().filter_map(|(pid, _)| Some((pid, try_pidfd(pid)?))).collect();
        assert!(!held.is_empty(), "there is something to take down");
        let until = Instant::now() + bound;
        self.process.kill().expect("killed");
        self.process.wait().expect("reaped");
        self.ended = true;
        for (pid, fd) in &held {
            assert!(
                readable(&[fd], until),
                "process {pid} outlives its child by {bound:?}: {:?}",
                self.left()
            );
        }
        self.assert_nothing_is_left(until);
    }

    /// The processes that carry this rig's mark, or are keepers of its child: pid and command line.
    pub(crate) fn left(&self) -> Vec<(i32, String)> {
        let marks = [format!("{TAG}={}", self.tag), format!("AGENTD_PARENT_PID={}", self.process.id())];
        let mut left = Vec::new();
        for entry in fs::read_dir("/proc").expect("/proc reads").flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<i32>().ok()) else { continue };
            let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
            if environ.split(|b| *b == 0).any(|v| marks.iter().any(|mark| mark.as_bytes() == v)) {
                let cmdline = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                left.push((pid, String::from_utf8_lossy(&cmdline).replace('\0', " ")));
            }
        }
        left
    }

    /// What may still be dying is waited for; what lives on is a leak.
    fn assert_nothing_is_left(&self, until: Instant) {
        for (pid, command) in self.left() {
            let Some(fd) = try_pidfd(pid) else { continue };
            assert!(readable(&[&fd], until), "{pid} ({command}) is left behind");
        }
        assert_eq!(self.left(), [], "left behind");
    }
}

impl Drop for Rig {
    /// A test that failed leaves nothing either.
    fn drop(&mut self) {
        if !self.ended {
            let _gone = self.process.kill();
            let _gone = self.process.wait();
        }
        if std::thread::panicking() {
            for (pid, _) in self.left() {
                try_pidfd(pid).map(|fd| pidfd_send_signal(&fd, Signal::KILL));
            }
        }
    }
}

/// A run to be given to a child.
pub(crate) struct Run {
    pub(crate) spawn: Spawn,
    pub(crate) tag: String,
}

impl Run {
    /// A run without servers whose model follows `rules`.
    pub(crate) fn new(rules: Value) -> Run {
        let playbook = json!({ "rules": rules }).to_string();
        let spawn = Spawn {
            v: VERSION,
            run_id: RunId::mint(Wall(1), &mut Rng::new(1)),
            handle: Some("sub-7".parse().expect("a handle")),
            depth: 1,
            attempt: 1,
            role: Role::Subagent,
            mode: Mode::Sync,
            trace: Trace { trace_id: "1".repeat(32), span_id: "2".repeat(16), parent_span_id: None },
            system: String::new(),
            instruction: "Do the thing.".into(),
            context: Vec::new(),
            output_schema: None,
            output_contract: None,
            servers: Vec::new(),
            tools: None,
            names: Vec::new(),
            own_tools: Vec::new(),
            model: Model { name: "m".into(), dialect: Dialect::Mock(Bytes::from(playbook.into_bytes())) },
            limits: RunLimits {
                steps: 50,
                tokens: 1_000_000,
                deadline_ms: 600_000,
                repeats: 0,
                tool_result_bytes: 65_536,
            },
            budget: None,
            log_level: "info".into(),
            transcript: None,
        };
        Run { spawn, tag: tag() }
    }

    /// Adds a server that is a program.
    pub(crate) fn program(mut self, name: &str, command: &[&str]) -> Run {
        let env = BTreeMap::from([(TAG.to_owned(), self.tag.clone())]);
        let args = command[1..].iter().map(|a| (*a).to_owned()).collect();
        let stdio = Stdio { command: command[0].to_owned(), args, env, cwd: None };
        self.spawn.servers.push(Server {
            name: name.to_owned(),
            ns: Some(name.to_owned()),
            transport: Transport::Stdio(stdio),
            allow: None,
            exclude: Vec::new(),
            timeout_ms: 60_000,
            start_timeout_ms: 60_000,
            required: true,
        });
        self
    }

    /// Adds the misbehaving server in these modes.
    pub(crate) fn fake(self, name: &str, modes: &[&str]) -> Run {
        let command: Vec<&str> =
            [FAKE].into_iter().chain(modes.iter().flat_map(|mode| ["--mode", *mode])).collect();
        self.program(name, &command)
    }

    /// Gives the server added last a variable.
    pub(crate) fn env(self, name: &str, value: &str) -> Run {
        self.server(|server| {
            if let Transport::Stdio(stdio) = &mut server.transport {
                stdio.env.insert(name.to_owned(), value.to_owned());
            }
        })
    }

    /// Adds the built-in file server.
    pub(crate) fn files(mut self, name: &str, root: &str) -> Run {
        self = self.program(name, &["unused"]);
        self.server(|server| {
            server.transport = Transport::Files(Files { root: root.to_owned(), write: false })
        })
    }

    /// Changes the server added last.
    pub(crate) fn server(mut self, change: impl FnOnce(&mut Server)) -> Run {
        change(self.spawn.servers.last_mut().expect("a server"));
        self
    }

    /// A child that stays between messages.
    pub(crate) fn warm(self) -> Run {
        self.change(|spawn| spawn.mode = Mode::Warm)
    }

    pub(crate) fn change(mut self, change: impl FnOnce(&mut Spawn)) -> Run {
        change(&mut self.spawn);
        self
    }
}

/// Waits until one of `fds` can be read; `false` when it cannot by `until`.
pub(crate) fn readable<F: std::os::fd::AsFd>(fds: &[&F], until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let mut polled: Vec<_> = fds.iter().map(|fd| PollFd::new(*fd, PollFlags::IN)).collect();
        match poll(&mut polled, Timespec::try_from(left).ok().as_ref()) {
            Ok(n) if n > 0 => return true,
            Ok(_) if left.is_zero() => return false,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => panic!("poll: {e}"),
        }
    }
}

pub(crate) fn try_pidfd(pid: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

pub(crate) fn pidfd(pid: i32) -> OwnedFd {
    try_pidfd(pid).expect("a living process or its zombie")
}
