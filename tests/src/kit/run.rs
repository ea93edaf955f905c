//! One run of the binary under test, from its files to its end.

use super::log::Events;
use super::processes::{self, Subtree, open};
use super::{PATIENCE, alive};
use command_fds::{CommandFdExt, FdMapping};
use rustix::process::Signal;
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How a run is started: files, arguments, environment.
pub struct RunCommand {
    program: PathBuf,
    folder: TempDir,
    wrapper: Vec<OsString>,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    config: String,
    /// Names and sockets that a service manager passes on.
    passed: Vec<(String, OwnedFd)>,
}

impl RunCommand {
    /// `agentd run` in a folder of its own, with a scripted model and everything logged.
    pub fn new(program: impl Into<PathBuf>, playbook: &str) -> RunCommand {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("playbook.yaml"), playbook).expect("a file");
        let mut args: Vec<OsString> =
            ["--log-level", "debug", "--log-format", "json"].map(Into::into).to_vec();
        // The suite is the same for every driver that the binary was built with.
        args.extend(std::env::var_os("TESTS_DRIVER").into_iter().flat_map(|name| ["--driver".into(), name]));
        RunCommand {
            program: program.into(),
            folder,
            wrapper: Vec::new(),
            args,
            env: Vec::new(),
            config: "intelligence: {dialect: mock, endpoints: [playbook.yaml]}\n".to_owned(),
            passed: Vec::new(),
        }
    }

    /// In the folder of one that has ended.
    #[must_use]
    pub fn in_folder(mut self, folder: TempDir) -> RunCommand {
        fs::copy(self.path("playbook.yaml"), folder.path().join("playbook.yaml")).expect("a copy");
        self.folder = folder;
        self
    }

    /// Adds a section to the configuration, as YAML.
    pub fn config(mut self, yaml: &str) -> RunCommand {
        self.config.push_str(yaml);
        self.config.push('\n');
        self
    }

    /// Adds an argument of `agentd run`.
    pub fn arg(mut self, arg: impl Into<OsString>) -> RunCommand {
        self.args.push(arg.into());
        self
    }

    /// Sets a variable of the daemon. It has none of the tester's but `PATH`.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> RunCommand {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Puts a command before the binary: `sh -c 'ulimit -n 40; exec "$0" "$@"'`, unshare.
    pub fn wrapper<S: Into<OsString>>(mut self, words: impl IntoIterator<Item = S>) -> RunCommand {
        self.wrapper = words.into_iter().map(Into::into).collect();
        self
    }

    /// Passes a socket on as a service manager does, under a name: the next descriptor from 3 on.
    pub fn pass(mut self, name: &str, socket: impl Into<OwnedFd>) -> RunCommand {
        self.passed.push((name.to_owned(), socket.into()));
        self
    }

    /// Watched as by a service manager, which wants a sign of life in every interval.
    pub fn watchdog(self, interval: Duration) -> RunCommand {
        self.env("WATCHDOG_USEC", interval.as_micros().to_string())
    }

    /// A path in its folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into its folder.
    pub fn write(self, name: &str, text: &str) -> RunCommand {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
        self
    }

    /// Runs from a copy of the binary, which a test may delete or make useless.
    pub fn from_a_copy(mut self) -> RunCommand {
        let copy = self.path("agentd-copy");
        fs::copy(&self.program, &copy).expect("a copy");
        self.program = copy;
        self
    }

    /// Starts it on this prompt.
    pub fn start(self, prompt: &str) -> Running {
        self.begin(&["run"], Some(prompt))
    }

    /// Starts a daemon, and waits until it can be reached.
    pub fn serve(self) -> Running {
        let running = self.begin(&["serve"], None);
        running.wait_for_event("daemon.start", |_| true);
        running
    }

    /// Starts a daemon that may not come up.
    pub fn try_to_serve(self) -> Running {
        self.begin(&["serve"], None)
    }

    fn begin(mut self, what: &[&str], prompt: Option<&str>) -> Running {
        fs::write(self.path("agentd.yaml"), &self.config).expect("a file");
        let mut words = self.wrapper.iter().cloned().chain([self.program.clone().into()]);
        let mut command = if self.passed.is_empty() {
            Command::new(words.next().expect("the program"))
        } else {
            // Who is meant is told by its pid, which a shell has before it becomes the program.
            let mut shell = Command::new("bash");
            shell.args(["-c", "LISTEN_PID=$$ exec \"$0\" \"$@\""]);
            shell
        };
        command.args(words);
        let names: Vec<String> = self.passed.iter().map(|(name, _)| name.clone()).collect();
        if !names.is_empty() {
            let env = [("LISTEN_FDS", names.len().to_string()), ("LISTEN_FDNAMES", names.join(":"))];
            self.env.extend(env.map(|(name, value)| (name.into(), value.into())));
            let fds = (3..).zip(std::mem::take(&mut self.passed));
            let fds = fds.map(|(child_fd, (_, parent_fd))| FdMapping { parent_fd, child_fd });
            command.fd_mappings(fds.collect()).expect("no number is there twice");
        }
        command.args(what).args(["-c", "agentd.yaml"]).args(&self.args).args(prompt);
        command.current_dir(self.folder.path()).env_clear().envs(self.env.iter().map(|(k, v)| (k, v)));
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the binary starts");
        let pid = i32::try_from(process.id()).expect("a pid");
        let held = open(pid).expect("it is there until it is waited for");
        let (events, log) = Events::of(process.stderr.take().expect("a pipe"));
        let mut out = process.stdout.take().expect("a pipe");
        let stdout = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            out.read_to_end(&mut bytes).expect("stdout reads");
            String::from_utf8(bytes).expect("stdout is UTF-8")
        });
        Running {
            program: self.program,
            folder: Some(self.folder),
            process,
            pid,
            held,
            events,
            readers: Some((log, stdout)),
            since: Instant::now(),
            ended: false,
        }
    }

    /// Starts it and waits for its end.
    pub fn run(self, prompt: &str) -> Ended {
        self.start(prompt).wait()
    }
}

/// A run that was started.
pub struct Running {
    program: PathBuf,
    /// Until it is handed to `Ended`.
    folder: Option<TempDir>,
    process: Child,
    pid: i32,
    held: OwnedFd,
    /// What it logs.
    pub events: Events,
    readers: Option<(JoinHandle<()>, JoinHandle<String>)>,
    since: Instant,
    ended: bool,
}

impl Running {
    /// Number of what was started: the daemon, or its wrapper.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    fn folder(&self) -> &Path {
        self.folder.as_ref().expect("it has not been waited for").path()
    }

    /// A path in its folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// The first event of this name for which `which` holds, logged already or still to come.
    pub fn wait_for_event(&self, name: &str, which: impl Fn(&Value) -> bool) -> Value {
        self.events.wait_for(name, which, PATIENCE)
    }

    /// The process of a run, once it has read its first frame.
    pub fn child(&self, handle: &str) -> i32 {
        let spawned = self.wait_for_event("subagent.spawn", |e| e["handle"] == handle);
        self.wait_for_event("child.ready", |e| e["handle"] == handle);
        spawned["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).expect("a pid")
    }

    /// A command of an operator, as a person in its folder gives it.
    pub fn agentd(&self, args: &[&str]) -> std::process::Output {
        self.command(&self.program, args).output().expect("it starts")
    }

    /// A program in its folder, with the environment of a person there.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.folder()).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.folder());
        command
    }

    /// The answer of a command that has to succeed, as JSON.
    ///
    /// # Panics
    /// When it does not, or prints something else.
    pub fn ask(&self, args: &[&str]) -> Value {
        let output = self.agentd(&[args, &["--json"]].concat());
        assert!(output.status.success(), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{args:?}: {error} in {output:?}"))
    }

    /// Its state directory.
    pub fn state(&self) -> PathBuf {
        self.path(".local/state/agentd/agentd")
    }

    /// Where it is reached by TCP: the first address of its first event that begins so.
    pub fn address(&self, scheme: &str) -> String {
        let started = self.wait_for_event("daemon.start", |_| true);
        let listens = started["listen"].as_str().expect("addresses").split(' ');
        listens.clone().find(|one| one.starts_with(scheme)).unwrap_or_else(|| panic!("{started}")).to_owned()
    }

    /// Its folder, for a daemon that is started there after it.
    pub fn give_up_folder(mut self) -> TempDir {
        processes::send(&self.held, Signal::KILL);
        drop(self.process.wait());
        self.ended = true;
        assert_no_leak(self.folder(), Duration::from_secs(2));
        self.folder.take().expect("it has its folder")
    }

    /// Signals the daemon.
    pub fn signal(&self, signal: Signal) {
        processes::send(&self.held, signal);
    }

    /// Signals a process of the daemon.
    pub fn signal_child(&self, pid: i32, signal: Signal) {
        if let Some(fd) = open(pid) {
            processes::send(&fd, signal);
        }
    }

    /// What is below the daemon now.
    pub fn subtree(&self) -> Subtree {
        Subtree::of(self.pid)
    }

    /// Every process that came of it, wherever it has moved to, the daemon included.
    pub fn everything(&self) -> Subtree {
        marked(self.folder())
    }

    /// Open descriptors of the daemon.
    pub fn fds(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid)).map_or(0, Iterator::count)
    }

    /// Has it go on for a while, for something that is measured over time.
    ///
    /// # Panics
    /// When it ends meanwhile.
    pub fn lives_for(&self, time: Duration) {
        assert!(!processes::ended(&self.held, Instant::now() + time), "it has ended");
    }

    /// Waits for its end, and that nothing is left of it.
    ///
    /// # Panics
    /// When it does not end in time, or leaves a process.
    pub fn wait(mut self) -> Ended {
        assert!(
            processes::ended(&self.held, self.since + PATIENCE * 3),
            "it does not end\n{}",
            self.events.all().iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
        );
        let took = self.since.elapsed();
        let status = self.process.wait().expect("it has ended");
        self.ended = true;
        assert_no_leak(self.folder(), Duration::from_secs(2));
        let (log, stdout) = self.readers.take().expect("read once");
        log.join().expect("the log is read");
        let stdout = stdout.join().expect("stdout is read");
        let folder = self.folder.take().expect("it was waited for once");
        Ended { status, stdout, events: self.events.clone(), took, folder }
    }
}

impl Drop for Running {
    /// A test that failed leaves nothing behind either.
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        processes::send(&self.held, Signal::KILL);
        drop(self.process.wait());
        for process in marked(self.folder()).0 {
            if let Some(fd) = open(process.pid) {
                processes::send(&fd, Signal::KILL);
            }
        }
    }
}

/// A run that has ended and left nothing.
pub struct Ended {
    /// How.
    pub status: ExitStatus,
    /// The answer.
    pub stdout: String,
    /// What it logged.
    pub events: Events,
    /// From its start.
    pub took: Duration,
    folder: TempDir,
}

impl Ended {
    /// Its exit code; a signal is 128 and its number.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// Its folder, for one that is started there after it.
    pub fn into_folder(self) -> TempDir {
        self.folder
    }

    /// The answer as JSON.
    ///
    /// # Panics
    /// When it is none: with the log.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e}: {:?}\n{}", self.stdout, self.log()))
    }

    /// A path in the folder that it left.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The log as text, for a message.
    pub fn log(&self) -> String {
        let lines: Vec<String> = self.events.all().iter().map(Value::to_string).collect();
        format!("{}\n{}", lines.join("\n"), self.events.other().join("\n"))
    }

    /// Fails when a process that servers noted in `pids` before they misbehaved is alive. Not for a pid namespace,
    /// whose numbers are others.
    pub fn assert_escapees_gone(&self) {
        let pids = escapees(&self.file("pids"));
        assert!(!pids.is_empty(), "no server noted a process");
        for pid in pids {
            assert!(!alive(pid), "escaped and left behind: {pid}");
        }
    }

    /// The bytes of such a file.
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.path().join(name)).unwrap_or_default()
    }

    /// A file that it or its servers left in its folder.
    pub fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }
}

/// Fails when something that carries this folder's mark lives on, wherever it has moved to.
fn assert_no_leak(folder: &Path, patience: Duration) {
    let left = marked(folder).wait_for_end(patience);
    assert!(left.is_empty(), "left behind: {left:?}");
}

/// Process ids that servers wrote, one a line.
fn escapees(text: &str) -> Vec<i32> {
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

fn marked(folder: &Path) -> Subtree {
    Subtree::marked("HOME", &folder.to_string_lossy())
}
