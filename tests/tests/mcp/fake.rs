//! The client against a program that misbehaves.

use crate::drive::{Driver, text};
use agentd_core::limits;
use agentd_core::mcp::{Outcome, Output};
use agentd_tests::mcp_server::{Late, Mode, Options};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

const LONG: Duration = Duration::from_secs(60);

/// A running server with the client connected to it; killed at the end.
struct Running {
    driver: Driver,
    child: Child,
    stderr: Option<thread::JoinHandle<Vec<u8>>>,
    dir: TempDir,
}

impl Running {
    fn new(modes: impl IntoIterator<Item = Mode>) -> Running {
        Running::starting_within(modes, LONG)
    }

    fn starting_within(modes: impl IntoIterator<Item = Mode>, start: Duration) -> Running {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            modes: modes.into_iter().collect(),
            log: Some(dir.path().join("log")),
            pids: Some(dir.path().join("pids")),
            ready_file: Some(dir.path().join("ready")),
        };
        let mut child = Command::new(env!("CARGO_BIN_EXE_fake-mcp"))
            .args(options.args())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let stderr = thread::spawn(move || {
            let mut said = Vec::new();
            drop(stderr.read_to_end(&mut said));
            said
        });
        let driver = Driver::new(child.stdin.take().unwrap(), child.stdout.take().unwrap(), 64 * 1024, start);
        Running { driver, child, stderr: Some(stderr), dir }
    }

    fn echo(&mut self, key: u64) {
        let text = format!("text {key}");
        let outcome = self.driver.call(key, "echo", &json!({"text": text}));
        assert_eq!(outcome, Outcome { error: false, value: agentd_core::mcp::Value::Text(text), own: false });
        assert_eq!(self.driver.times_answered(key), 1);
    }

    /// Messages the server saw.
    fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn pids(&self) -> Vec<i32> {
        let text = std::fs::read_to_string(self.dir.path().join("pids")).unwrap();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }

    /// Closes stdin and waits for the server to end by itself.
    fn end(&mut self) -> ExitStatus {
        self.driver.close();
        self.child.wait().unwrap()
    }

    fn stderr(&mut self) -> Vec<u8> {
        self.stderr.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn is_error(outcome: &Outcome, says: &str) {
    assert!(outcome.error && text(outcome).contains(says), "{outcome:?}");
}

#[test]
fn a_server_that_behaves() {
    let mut server = Running::new([Mode::Ok]);
    let names: Vec<String> = server.driver.ready().into_iter().map(|t| t.name).collect();
    assert_eq!(names, ["echo", "fail", "sleep"]);
    server.echo(1);
    is_error(&server.driver.call(2, "fail", &json!({"text": "sorry"})), "sorry");
    is_error(&server.driver.call(3, "nope", &json!({})), "error -32602: Unknown tool: nope");
    assert!(server.end().success());
    let methods: Vec<Value> = server.log().iter().map(|m| m["method"].clone()).collect();
    let calls = vec![json!("tools/call"); 3];
    assert_eq!(
        methods,
        [
            vec![
                json!("server/discover"),
                json!("initialize"),
                json!("notifications/initialized"),
                json!("tools/list")
            ],
            calls
        ]
        .concat()
    );
    assert_eq!(server.driver.events(), [] as [&str; 0]);
}

#[test]
fn noise_of_every_kind_does_not_hide_the_answer() {
    let noise = [
        Mode::StdoutJunk,
        Mode::DuplicateIds,
        Mode::WrongIds,
        Mode::Batch,
        Mode::ServerRequests,
        Mode::NotificationFlood(100_000),
    ];
    for modes in noise
        .iter()
        .map(|mode| vec![mode.clone()])
        .chain([noise.to_vec(), vec![Mode::ByteAtATime, Mode::StdoutJunk]])
    {
        let mut server = Running::new(modes.clone());
        server.driver.ready();
        for key in 1..=3 {
            server.echo(key);
        }
        server.end();
        server.driver.drain_to_end();
        for key in 1..=3 {
            assert_eq!(server.driver.times_answered(key), 1, "{modes:?}");
        }
        assert!(server.driver.outputs.len() < 2_000, "{modes:?} {}", server.driver.outputs.len());
        assert!(!server.driver.closes());
    }
}

#[test]
fn requests_of_the_server_get_their_answers() {
    let mut server = Running::new([Mode::ServerRequests]);
    server.driver.ready();
    server.echo(1);
    server.end();
    let answers: Vec<Value> = server.log().into_iter().filter(|m| m["method"].is_null()).collect();
    assert_eq!(answers[0], json!({"jsonrpc": "2.0", "id": "ask-0", "result": {}}));
    for (n, answer) in answers.iter().enumerate().take(3).skip(1) {
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(format!("ask-{n}")), &json!(-32601)));
    }
    // Its question has no form, so there is nothing to put to anybody.
    assert_eq!(answers[3], json!({"jsonrpc": "2.0", "id": "ask-3", "result": {"action": "cancel"}}));
    assert_eq!(answers.len(), 4);
}

#[test]
fn floods_on_stderr_before_and_in_calls_stop_nothing() {
    for modes in
        [vec![Mode::StderrFlood(10_000_000)], vec![Mode::StderrFlood(10_000_000), Mode::StderrNoNewline]]
    {
        let mut server = Running::new(modes);
        server.driver.ready();
        server.echo(1);
        server.end();
        let said = server.stderr();
        assert_eq!(said.len(), 20_000_000);
    }
}

#[test]
fn a_call_without_an_answer_times_out_and_the_server_is_told() {
    let mut server = Running::new([Mode::HangOnCall]);
    server.driver.ready();
    server.driver.begin(1, "echo", &json!({"text": "x"}), Duration::from_millis(50));
    is_error(&server.driver.answer(1), "within 50ms");
    server.driver.begin(2, "echo", &json!({"text": "x"}), LONG);
    server.driver.cancel(2);
    is_error(&server.driver.answer(2), "a test says so");
    server.end();
    let log = server.log();
    let of = |method: &str| log.iter().filter(|m| m["method"] == method).collect::<Vec<_>>();
    let asked: Vec<&Value> = of("tools/call").iter().map(|m| &m["id"]).collect();
    let cancelled: Vec<&Value> =
        of("notifications/cancelled").iter().map(|m| &m["params"]["requestId"]).collect();
    assert_eq!(asked, cancelled);
}

#[test]
fn a_late_answer_is_nobodys() {
    for late in [Late::NextCall, Late::Millis(200)] {
        let mut server = Running::new([Mode::LateAnswer(late)]);
        server.driver.ready();
        server.driver.begin(1, "echo", &json!({"text": "late"}), Duration::from_millis(30));
        is_error(&server.driver.answer(1), "within 30ms");
        server.echo(2);
        server.end();
        server.driver.drain_to_end();
        assert_eq!(server.driver.times_answered(1), 1);
        assert_eq!(server.driver.times_answered(2), 1);
    }
}

#[test]
fn death_at_any_point_answers_everyone() {
    let mut server = Running::new([Mode::DieOnCall(7)]);
    server.driver.ready();
    is_error(
        &server.driver.call(1, "echo", &json!({"text": "x"})),
        "gone before it answered `echo`: its output ended",
    );
    assert_eq!(server.child.wait().unwrap().code(), Some(7));
    assert!(String::from_utf8(server.stderr()).unwrap().contains("dying with 7"));

    for (mode, code) in [(Mode::DieAfterInit(5), 5), (Mode::DieDuringList(0), 0), (Mode::Exit(9), 9)] {
        let mut server = Running::new([mode]);
        server.driver.started().unwrap_err();
        assert_eq!(server.child.wait().unwrap().code(), Some(code));
        is_error(&server.driver.call(1, "echo", &json!({"text": "x"})), "the server is gone");
    }
}

#[test]
fn a_closed_pipe_with_a_living_server_behind_it_is_an_end() {
    let mut deaf = Running::new([Mode::CloseStdinLive]);
    deaf.driver.ready();
    // The pipe is closed after the list is sent: wait for that on the pipe itself, by writing until it breaks.
    for key in 1.. {
        deaf.driver.begin(key, "echo", &json!({"text": "x".repeat(100_000)}), LONG);
        deaf.driver.cancel(key);
        if deaf.driver.times_answered(key) == 1 && text(&deaf.driver.answer(key)).contains("input is closed")
        {
            break;
        }
        deaf.driver.outputs.clear();
    }
    is_error(&deaf.driver.call(1 << 40, "echo", &json!({})), "its input is closed: Broken pipe");
    assert_eq!(deaf.child.try_wait().unwrap(), None, "it lives");

    let mut mute = Running::new([Mode::CloseStdoutLive]);
    mute.driver.ready();
    is_error(&mute.driver.call(1, "echo", &json!({"text": "x"})), "its output ended");
    assert_eq!(mute.child.try_wait().unwrap(), None, "it lives");
    assert!(mute.end().success());
}

#[test]
fn lines_up_to_the_limit_are_answers_and_beyond_it_the_server_is_closed() {
    let limit = limits::MCP_LINE_BYTES as u64;
    for bytes in [132 * 1024, 5 << 20, limit - 1, limit] {
        let mut server = Running::new([Mode::HugeLine(bytes)]);
        server.driver.ready();
        let outcome = server.driver.call(1, "echo", &json!({"text": "x"}));
        assert!(!outcome.error && text(&outcome).len() as u64 > bytes - 200);
    }
    for mode in [Mode::HugeLine(limit + 1), Mode::EndlessLine, Mode::BigResult(20_000_000)] {
        let mut server = Running::new([mode]);
        server.driver.ready();
        is_error(&server.driver.call(1, "echo", &json!({"text": "x"})), "over 8388608 bytes");
        assert!(server.driver.closes());
    }
}

#[test]
fn servers_that_cannot_be_used_fail_in_time_with_the_reason() {
    let mut old = Running::new([Mode::WrongVersion("2026-07-28".into())]);
    let error = old.driver.started().unwrap_err();
    assert!(error.contains("\"2026-07-28\"") && error.contains("2025-11-25"), "{error}");
    let mut slow = Running::starting_within([Mode::SlowInit(60_000)], Duration::from_millis(100));
    assert!(slow.driver.started().unwrap_err().contains("`initialize` within 100ms"));
    let mut slow = Running::new([Mode::SlowInit(100)]);
    slow.driver.ready();
}

#[test]
fn long_lists_are_read_whole_and_lists_without_end_are_cut() {
    for modes in [vec![Mode::ManyTools(600)], vec![Mode::ManyTools(600), Mode::PageSize(50)]] {
        let mut server = Running::new(modes);
        let tools = server.driver.ready();
        assert_eq!(tools.len(), 603);
        assert!(tools.iter().all(|t| t.schema.parse().is_ok_and(|s| s["type"] == "object")));
        assert_eq!(server.driver.events(), [] as [&str; 0]);
    }
    let mut server = Running::new([Mode::ManyTools(10), Mode::PageSize(4), Mode::CursorLoop]);
    assert_eq!(server.driver.ready().len(), 13);
    assert!(server.driver.events().contains(&"mcp.tools.skipped"));
    server.echo(1);
}

#[test]
fn a_call_that_takes_its_time_does_not_hold_up_others() {
    let mut server = Running::new([Mode::Ok]);
    server.driver.ready();
    server.driver.begin(1, "sleep", &json!({"ms": 300}), LONG);
    server.echo(2);
    let order: Vec<u64> = {
        server.driver.answer(1);
        server
            .driver
            .outputs
            .iter()
            .filter_map(|o| if let Output::CallDone { key, .. } = o { Some(*key) } else { None })
            .collect()
    };
    assert_eq!(order, [2, 1]);
}

#[test]
fn what_the_server_sees_of_itself() {
    let mut server = Running::new([Mode::Dump, Mode::IgnoreTerm]);
    server.driver.ready();
    let outcome = server.driver.call(1, "dump", &json!({}));
    let seen: Value = serde_json::from_str(&text(&outcome)).unwrap();
    assert_eq!(seen["pid"], server.child.id());
    assert_eq!(seen["ppid"], std::process::id());
    assert_eq!(seen["cwd"], std::env::current_dir().unwrap().to_string_lossy().into_owned());
    assert!(seen["env"].as_object().unwrap().contains_key("PATH"));
    assert!(["0", "1", "2"].iter().all(|fd| seen["fds"][fd].is_string()), "{}", seen["fds"]);
    assert_eq!(seen["sig_blocked"], "0000000000004001", "HUP and TERM");
    assert!(seen["rlimits"]["Max open files"]["soft"].is_string(), "{}", seen["rlimits"]);
    assert!(seen["nice"].is_i64());
}

#[test]
fn a_server_can_be_deaf_to_term_and_to_the_end_of_its_input() {
    let mut server = Running::new([Mode::IgnoreTerm, Mode::IgnoreEof, Mode::Setsid, Mode::Dump]);
    server.driver.ready();
    let seen: Value = serde_json::from_str(&text(&server.driver.call(1, "dump", &json!({})))).unwrap();
    assert_eq!(seen["sid"], seen["pid"], "a session of its own");
    let pid = Pid::from_raw(i32::try_from(server.child.id()).unwrap());
    kill(pid, Signal::SIGTERM).unwrap();
    server.echo(2);
    server.driver.close();
    assert_eq!(server.child.try_wait().unwrap(), None);
}

#[test]
fn an_escapee_outlives_its_server_with_nothing_to_hold_it_by() {
    let mut server = Running::new([Mode::DoubleForkSleeper(300)]);
    server.driver.ready();
    let [own, escapee] = server.pids()[..] else { panic!("{:?}", server.pids()) };
    let _killed_at_the_end = Killed(escapee);
    assert_eq!(u32::try_from(own).unwrap(), server.child.id());
    let proc = PathBuf::from(format!("/proc/{escapee}"));
    let stat = std::fs::read_to_string(proc.join("stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    assert_eq!(fields[3], escapee.to_string(), "leads a session");
    assert_ne!(fields[1], own.to_string(), "is no child of the server");
    assert!(server.end().success());
    for signal in [Signal::SIGHUP, Signal::SIGTERM] {
        kill(Pid::from_raw(escapee), signal).unwrap();
    }
    assert!(is_alive(&proc));
    // It tells its pid before it closes the file it told it in.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while std::fs::read_dir(proc.join("fd")).unwrap().count() > 0 {
        assert!(std::time::Instant::now() < until, "it keeps a descriptor");
        std::thread::yield_now();
    }
}

#[test]
fn orphans_are_gone_by_themselves() {
    let mut server = Running::new([Mode::Orphans(50)]);
    server.driver.ready();
    server.echo(1);
    assert_eq!(server.pids().len(), 51);
    assert!(server.dir.path().join("ready").exists());
}

/// A process of ours that nothing else would end.
struct Killed(i32);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.0), Signal::SIGKILL);
    }
}

fn is_alive(proc: &Path) -> bool {
    std::fs::read_to_string(proc.join("stat"))
        .is_ok_and(|s| !s.rsplit_once(')').is_some_and(|(_, s)| s.starts_with(" Z")))
}
