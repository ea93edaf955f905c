//! A daemon under a service manager (S17.7). The test is the manager: it listens on `NOTIFY_SOCKET`, passes sockets on and
//! waits for signs of life.

use crate::stage::{AGENTD, daemon, rows, text, told};
use agentd_tests::kit::{PATIENCE, Rule, RunCommand, playbook};
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::Path;
use std::time::Duration;

/// The manager's end of `NOTIFY_SOCKET`.
struct Manager(UnixDatagram);

impl Manager {
    fn at(path: &Path) -> Manager {
        Manager::of(UnixDatagram::bind(path).expect("bound"))
    }

    fn of(socket: UnixDatagram) -> Manager {
        Manager(socket)
    }

    /// The next message, if one comes in time.
    fn next(&self, patience: Duration) -> Option<String> {
        self.0.set_read_timeout(Some(patience)).expect("set");
        let mut room = [0; 1024];
        match self.0.recv(&mut room) {
            Ok(read) => Some(text(&room[..read])),
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits for a message that begins so, past the others, and returns all of them.
    fn heard(&self, begins: &str) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            let message = self.next(PATIENCE).unwrap_or_else(|| panic!("no {begins}; heard {all:?}"));
            all.push(message);
            if all.last().is_some_and(|message| message.starts_with(begins)) {
                return all;
            }
        }
    }
}

/// A control socket in a private folder of the daemon's, as a .socket unit makes it.
fn control_socket(command: &RunCommand) -> UnixListener {
    let folder = command.path("run");
    fs::DirBuilder::new().mode(0o700).create(&folder).expect("made");
    let path = folder.join("control.sock");
    let listener = UnixListener::bind(&path).expect("bound");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
    listener
}

/// The configuration of a daemon whose control socket is there.
fn listens(command: RunCommand) -> RunCommand {
    let path = command.path("run/control.sock");
    command.config(&format!("a2a: {{listen: [\"unix://{}\"]}}", path.display()))
}

#[test]
fn a_manager_hears_of_a_whole_life() {
    let command = daemon().config("lifecycle: {drain_timeout: 7s}");
    // These tests may themselves run under nohup, and then a hangup is nothing.
    let command = command.wrapper(["env", "--default-signal=HUP"]);
    let manager = Manager::at(&command.path("notify"));
    let running = command
        .env("NOTIFY_SOCKET", manager.0.local_addr().expect("bound").as_pathname().expect("a path"))
        .serve();
    let first = manager.heard("STATUS=");
    assert_eq!(first[0], "READY=1", "{first:?}");
    assert!(running.agentd(&["ps"]).status.success(), "it serves when it says so");
    running.ask(&["spawn", "stay"]);
    let busy = manager.heard("STATUS=1 live, 0 held");
    assert!(!busy.iter().any(|message| message.starts_with("WATCHDOG")), "nobody asked for it: {busy:?}");
    running.signal(Signal::HUP);
    running.wait_for_event("config.reload", |_| true);
    let reload = manager.heard("READY=1");
    let begins = reload.iter().find(|message| message.starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert!(begins.is_some(), "{reload:?}");
    running.agentd(&["drain", "--no-wait"]);
    assert_eq!(
        manager.heard("STOPPING=1").last().map(String::as_str),
        Some("STOPPING=1\nEXTEND_TIMEOUT_USEC=22000000")
    );
    manager.heard("STATUS=draining: 1 live");
    running.signal(Signal::TERM);
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{}", ended.log());
}

#[test]
fn a_restored_daemon_is_ready_when_it_has_taken_up_what_it_had() {
    let abstract_name = format!("agentd-serve-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&abstract_name).expect("a name");
    let manager = Manager::of(UnixDatagram::bind_addr(&address).expect("bound"));
    let first = daemon().serve();
    first.ask(&["spawn", "--mode", "warm", "first"]);
    first.wait_for_event("subagent.turn", |e| e["handle"] == "sub-1");
    let folder = first.give_up_folder();
    let second = daemon().in_folder(folder).env("NOTIFY_SOCKET", format!("@{abstract_name}")).serve();
    let heard = manager.heard("STATUS=");
    assert_eq!(heard[0], "READY=1");
    assert_eq!(
        heard[1], "STATUS=1 live, 0 held, 0 ended, 0 of them completed",
        "it is there with the first look"
    );
    second.agentd(&["drain"]);
    assert_eq!(second.wait().code(), 0);
}

#[test]
fn a_loop_that_turns_gives_signs_of_life_and_one_that_does_not_gives_none() {
    let interval = Duration::from_secs(1);
    let command = daemon();
    let manager = Manager::at(&command.path("notify"));
    let running =
        command.env("NOTIFY_SOCKET", manager.0.local_addr().expect("bound").as_pathname().expect("a path"));
    let running = running.watchdog(interval).serve();
    manager.heard("STATUS=");
    // Idle, with no child and nothing to do: no deadline of the core wakes it.
    for _ in 0..4 {
        let heard = manager.heard("WATCHDOG=1");
        assert_eq!(heard, ["WATCHDOG=1"]);
    }
    running.signal(Signal::STOP);
    // One may have been on its way.
    while manager.next(interval * 2).is_some() {}
    running.signal(Signal::CONT);
    manager.heard("WATCHDOG=1");
    running.agentd(&["drain"]);
    assert_eq!(running.wait().code(), 0);
}

#[test]
fn a_watchdog_of_another_process_is_not_fed() {
    let command = daemon();
    let manager = Manager::at(&command.path("notify"));
    let running =
        command.env("NOTIFY_SOCKET", manager.0.local_addr().expect("bound").as_pathname().expect("a path"));
    let running = running.watchdog(Duration::from_millis(10)).env("WATCHDOG_PID", "1").serve();
    manager.heard("STATUS=");
    running.agentd(&["drain"]);
    let heard = manager.heard("STOPPING=1");
    assert!(!heard.iter().any(|message| message == "WATCHDOG=1"), "{heard:?}");
    assert_eq!(running.wait().code(), 0);
}

#[test]
fn a_socket_that_is_passed_on_is_the_control_socket_and_outlives_the_daemon() {
    let command = listens(daemon());
    let socket = control_socket(&command);
    let path = command.path("run/control.sock");
    let kept = socket.try_clone().expect("a copy");
    // A client that comes before the daemon waits in the socket, has no token yet, and is served once there is one.
    let early = {
        let mut early = std::process::Command::new(AGENTD);
        let token = command.path(".local/state/agentd/agentd/control.token");
        early.args(["ps", "--json", "--socket"]).arg(&path).arg("--token-file").arg(token);
        early.env_clear().env("HOME", command.path("")).stdin(std::process::Stdio::null());
        early
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("it starts")
    };
    let running = command.pass("agentd.socket", socket).serve();
    let early = early.wait_with_output().expect("it ends");
    assert!(early.status.success() && text(&early.stdout).contains("\"runs\":[]"), "{early:?}");
    assert_eq!(running.ask(&["ps"])["runs"], json!([]));
    running.agentd(&["drain"]);
    let folder = {
        let ended = running.wait();
        assert_eq!(ended.code(), 0, "{}", ended.log());
        assert!(path.exists(), "it is the manager's");
        ended.into_folder()
    };
    // The manager starts the next one with the same socket; what a client said meanwhile is not lost.
    let next = listens(daemon().in_folder(folder)).pass("agentd.socket", kept).serve();
    assert_eq!(next.ask(&["ps"])["runs"], json!([]));
    next.agentd(&["drain"]);
    assert_eq!(next.wait().code(), 0);
}

#[test]
fn sockets_by_tcp_are_matched_by_name_or_address() {
    let tcp = || std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let (http, metrics) = (tcp(), tcp());
    let at = |listener: &std::net::TcpListener| listener.local_addr().expect("bound").to_string();
    let (http_at, metrics_at) = (at(&http), at(&metrics));
    let running = daemon()
        .config(&format!(
            "a2a: {{listen: [unix, \"http://127.0.0.1:0\"], principals: [{{id: ops, match: {{token: \"{{{{secret:OPS}}}}\"}}, role: operator}}]}}\n\
             observability: {{metrics_addr: \"{metrics_at}\"}}"
        ))
        .env("OPS", "ops-0123456789-abcdef")
        .pass("http", http)
        .pass("agentd.socket", metrics)
        .serve();
    let listen = running.wait_for_event("daemon.start", |_| true)["listen"].clone();
    let listen = listen.as_str().unwrap_or_default();
    assert!(listen.contains(&format!(" http://{http_at} http://{metrics_at}/metrics")), "{listen}");
    let get = |address: String| {
        text(&running.command("curl", &["-sS", &address]).output().expect("curl runs").stdout)
    };
    assert!(get(format!("http://{http_at}/.well-known/agent-card.json")).contains("supportedInterfaces"));
    assert_eq!(get(format!("http://{metrics_at}/healthz")), "ok\n");
    assert!(running.agentd(&["ps"]).status.success(), "its own socket is there too");
    running.agentd(&["drain"]);
    assert_eq!(running.wait().code(), 0);
}

#[test]
fn what_cannot_be_used_is_told_and_nothing_is_begun() {
    let tcp = || std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    for (name, code, says) in [
        ("agentd.socket", 1, "nothing in the configuration is for it (control "),
        ("https", 1, "call it control, http, https or metrics (FileDescriptorName=)"),
        ("a:b", 2, "LISTEN_FDNAMES is \"a:b\""),
    ] {
        let ended = daemon().pass(name, tcp()).try_to_serve().wait();
        assert!(ended.code() == code && ended.log().contains(says), "{name}: {}", ended.log());
    }
    let open = listens(daemon());
    let socket = control_socket(&open);
    fs::set_permissions(open.path("run/control.sock"), fs::Permissions::from_mode(0o666)).expect("set");
    let ended = open.pass("control", socket).try_to_serve().wait();
    assert!(ended.code() == 1 && ended.log().contains("SocketMode=0600 is needed"), "{}", ended.log());
    let ended = daemon().env("NOTIFY_SOCKET", "relative").try_to_serve().wait();
    assert!(
        ended.code() == 2 && ended.log().contains("NOTIFY_SOCKET: \"relative\" is neither"),
        "{}",
        ended.log()
    );
}

#[test]
fn a_manager_that_is_gone_is_complained_of_once_and_missed_by_nobody() {
    let running = daemon().env("NOTIFY_SOCKET", "/nowhere/notify").serve();
    let untold = running.wait_for_event("daemon.untold", |_| true);
    assert!(untold["error"].as_str().is_some_and(|error| error.contains("No such file")), "{untold}");
    running.ask(&["spawn", "--mode", "sync", "look"]);
    running.agentd(&["drain"]);
    let ended = running.wait();
    assert_eq!((ended.code(), ended.events.seen("daemon.untold").len()), (0, 1));
}

#[test]
fn nothing_of_a_manager_reaches_a_child_or_a_server_and_credentials_are_read() {
    let rules = vec![Rule::subagent().says("seen")];
    let command = RunCommand::new(AGENTD, &playbook(rules));
    let credentials = command.path("credentials");
    fs::create_dir(&credentials).expect("made");
    fs::write(credentials.join("OPS"), "ops-0123456789-abcdef\n").expect("written");
    let script = format!(
        "env >server-env; ls -l /proc/self/fd >server-fds; ulimit -Sn >server-limit; exec '{AGENTD}' mcp serve-files --root ."
    );
    let server = json!({"name": "spy", "command": "sh", "args": ["-c", script], "cwd": "."});
    let command = listens(command)
        .config(&format!("mcp: {{servers: [{server}]}}"))
        .config("spawn: {env_passthrough: [NOTIFY_SOCKET, LISTEN_*, WATCHDOG_*, CREDENTIALS_*, SHOWN]}")
        .config("observability: {metrics_addr: \"127.0.0.1:0\"}");
    let manager = Manager::at(&command.path("notify"));
    let socket = control_socket(&command);
    let notify = command.path("notify");
    // The daemon has a door by TCP whose token is a credential.
    let command = command.write(
        "more.yaml",
        "a2a: {listen: [\"http://127.0.0.1:0\"], principals: [{id: ops, match: {token: \"{{secret:OPS}}\"}, role: operator}]}\n",
    );
    let control = command.path("run/control.sock");
    let more = format!(
        "a2a: {{listen: [\"unix://{}\", \"http://127.0.0.1:0\"], principals: [{{id: ops, match: {{token: \"{{{{secret:OPS}}}}\"}}, role: operator}}]}}\n",
        control.display()
    );
    let command = command.write("more.yaml", &more).arg("-c").arg("more.yaml");
    let running = command
        .env("NOTIFY_SOCKET", &notify)
        .env("CREDENTIALS_DIRECTORY", &credentials)
        .env("SHOWN", "to all")
        .watchdog(Duration::from_secs(20))
        .wrapper(["bash", "-c", "ulimit -Sn 200; exec \"$0\" \"$@\""])
        .pass("control", socket)
        .serve();
    manager.heard("READY=1");
    running.agentd(&["spawn", "--mode", "warm", "look"]);
    let child = running.child("sub-1");
    running.wait_for_event("subagent.turn", |e| e["handle"] == "sub-1");
    let environ = text(&fs::read(format!("/proc/{child}/environ")).expect("readable"));
    let server = fs::read_to_string(running.path("server-env")).expect("written");
    for seen in [&environ, &server] {
        for name in ["NOTIFY_SOCKET", "LISTEN_", "WATCHDOG_", "CREDENTIALS_DIRECTORY", "ops-0123456789"] {
            assert!(!seen.contains(name), "{name} in {seen}");
        }
    }
    assert!(environ.contains("SHOWN=to all"), "what is passed on is: {environ}");
    let fds = fs::read_to_string(running.path("server-fds")).expect("written");
    assert!(!fds.contains("socket:"), "no socket of the daemon's is in a server: {fds}");
    assert_eq!(
        fs::read_to_string(running.path("server-limit")).expect("written"),
        "200\n",
        "as the daemon was started"
    );
    let limits = fs::read_to_string(format!("/proc/{}/limits", running.pid())).expect("readable");
    let files = limits.lines().find(|line| line.starts_with("Max open files")).expect("listed");
    let mut words = files.split_whitespace().skip(3);
    assert_eq!(words.next(), words.next(), "the daemon's own is as high as it may be: {files}");
    // The token from the credential lets an operator in.
    let address = running.address("http://");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message":
        {"messageId": "m1", "role": "ROLE_USER", "parts": [{"data": {"agentd": {"op": "ps"}}}]}}});
    let output = running
        .command(
            "curl",
            &["-sS", "-H", "Authorization: Bearer ops-0123456789-abcdef", "-H", "A2A-Version: 1.0"],
        )
        .args(["-H", "Content-Type: application/json", "-d", &body.to_string(), &address])
        .output()
        .expect("curl runs");
    let answer: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    let value = &answer["result"]["message"]["parts"][0]["data"]["agentd"]["value"];
    assert_eq!(rows(value), [("sub-1".to_owned(), "running".to_owned())]);
    let drained = running.agentd(&["drain"]);
    assert_eq!(told(&drained).0, 0, "{drained:?}");
    assert_eq!(running.wait().code(), 0);
}
