//! Servers as children meet them: hostile, slow, dead, missing (S14, F09 to F14), and what they are given (S3.3, S3.4).

use crate::rig::{AGENTD, FAKE, Rig, Run};
use agentd_core::limits;
use agentd_core::wire::Up;
use agentd_core::wire::message::{FailKind, LoopEnd};
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};

/// Calls `tool` once and ends with what came of it.
fn call(tool: &str, args: Value) -> Value {
    calls(&[(tool, args)])
}

/// Makes calls one after the other and ends with what came of the last.
fn calls(calls: &[(&str, Value)]) -> Value {
    let mut rules: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(i, (tool, args))| json!({"turn": i + 1, "reply": {"tool_calls": [{"name": tool, "args": args}]}}))
        .collect();
    rules.push(json!({"reply": {"text": "{{ last.text }}"}}));
    Value::Array(rules)
}

fn echo(server: &str) -> (String, Value) {
    (format!("{server}_echo"), json!({"text": "hello"}))
}

#[test]
fn exactly_the_granted_tools_can_be_called() {
    let log = tempfile::NamedTempFile::new().expect("a file");
    let path = log.path().to_str().expect("text");
    let rules = calls(&[("a_fail", json!({"text": "x"})), ("a_nosuch", json!({}))]);
    let run = Run::new(rules).program("a", &[FAKE, "--log", path]).fake("b", &["ok"]);
    let mut rig =
        Rig::start(run.change(|spawn| spawn.tools = Some(vec!["a.echo".into(), "b.*".into(), "c.*".into()])));
    let unknown = rig.completed();
    let excluded = rig.seen.iter().find_map(|up| match up {
        Up::Event(event)
            if event.name == "tool.call" && event.fields.get("name").is_some_and(|n| n.contains("fail")) =>
        {
            Some(event.fields.clone())
        }
        _ => None,
    });
    assert!(unknown.contains("a_nosuch"), "{unknown}");
    assert!(excluded.is_none_or(|fields| fields["error"] == "true"));
    let sent = std::fs::read_to_string(path).expect("the log");
    assert!(!sent.contains("tools/call"), "nothing was dispatched: {sent}");
    assert_eq!(rig.events("mcp.tools")[0].fields["text"], "tools: 4 from 2 servers");
    assert!(rig.events("agent.grant.unmatched")[0].fields["pattern"] == "c.*");
    let mut tools: Vec<_> =
        rig.seen.iter().filter_map(|up| if let Up::Tools(t) = up { Some(t.clone()) } else { None }).collect();
    tools.sort_by_key(|t| t.server.clone());
    assert_eq!(tools[0].tools, ["echo", "fail", "sleep"]);
    assert_eq!(tools.len(), 2);
    assert!(rig.end().0.success());
}

#[test]
fn noise_on_stderr_and_stdout_changes_no_answer() {
    let noises: [&[&str]; 9] = [
        &["stderr-flood=10000000"],
        &["stderr-flood=10000000", "stderr-no-newline"],
        &["stdout-junk"],
        &["wrong-ids"],
        &["duplicate-ids"],
        &["batch"],
        &["server-requests"],
        &["notification-flood=100000"],
        &["byte-at-a-time"],
    ];
    for modes in noises {
        let (tool, args) = echo("n");
        let mut rig = Rig::start_walled(64, Run::new(call(&tool, args)).fake("n", modes));
        assert_eq!(rig.completed(), "hello", "{modes:?}");
        assert!(rig.end().0.success(), "{modes:?}");
    }
}

#[test]
fn lines_up_to_the_limit_are_answers_and_longer_ones_close_the_server() {
    let limit = limits::MCP_LINE_BYTES;
    for (bytes, fits) in
        [(132_000, true), (5_000_000, true), (limit - 1, true), (limit, true), (limit + 1, false)]
    {
        let rules = calls(&[("s_echo", json!({"text": ""})), ("t_echo", json!({"text": "other"}))]);
        let mode = format!("huge-line={bytes}");
        let mut rig = Rig::start_walled(96, Run::new(rules).fake("s", &[&mode]).fake("t", &["ok"]));
        assert_eq!(rig.completed(), "other", "the other server is usable");
        let errors: Vec<_> = rig.events("tool.call").iter().map(|e| e.fields["error"].clone()).collect();
        assert_eq!(errors, [if fits { "false" } else { "true" }, "false"], "{bytes}");
        assert!(rig.end().0.success());
    }
}

#[test]
fn many_tools_over_many_pages_are_all_offered() {
    let run = Run::new(call("s_tool599", json!({}))).fake("s", &["many-tools=600", "page-size=50"]);
    let mut rig = Rig::start(run);
    assert_eq!(rig.completed(), "tool599");
    assert_eq!(rig.events("mcp.tools")[0].fields["text"], "tools: 603 from 1 server");
    assert!(rig.end().0.success());
}

#[test]
fn a_line_without_an_end_is_a_tool_error_within_bounded_memory() {
    let mut rig =
        Rig::start_walled(64, Run::new(call("s_echo", json!({"text": ""}))).fake("s", &["endless-line"]));
    let text = rig.completed();
    assert!(text.contains("line over"), "{text}");
    assert!(rig.end().0.success());
}

#[test]
fn a_server_that_goes_away_is_a_tool_error_that_names_it() {
    let ways: [(&str, &str); 3] = [
        ("die-on-call=7", "exit status 7"),
        ("close-stdout-live", "closed its output"),
        ("close-stdin-live", "closed its input"),
    ];
    for (mode, word) in ways {
        let rules = calls(&[("s_echo", json!({"text": "1"})), ("s_echo", json!({"text": "2"}))]);
        let mut rig = Rig::start(Run::new(rules).fake("s", &[mode]).fake("t", &["ok"]));
        let asked = Instant::now();
        let text = rig.completed();
        assert!(asked.elapsed() < Duration::from_secs(4), "{mode}");
        for word in [word, "server s (", "fake-mcp"] {
            assert!(text.contains(word), "{mode}: no {word:?} in {text}");
        }
        assert_eq!(rig.events("mcp.exit").len(), 1, "{mode}");
        assert!(rig.end().0.success(), "{mode}");
    }
}

#[test]
fn a_server_that_closes_its_input_with_a_call_in_hand_is_not_waited_for() {
    // Answers the three requests of the start by their numbers, takes the call, and hears no more.
    let script = r#"
        read -r discover
        echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}'
        read -r initialize
        echo '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"deaf","version":"1"}}}'
        read -r initialized
        read -r list
        echo '{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}'
        read -r call
        exec sleep 300 <&-
    "#;
    let mut rig = Rig::start(Run::new(call("s_echo", json!({}))).program("s", &["sh", "-c", script]));
    let text = rig.completed();
    assert!(text.contains("closed its input"), "{text}");
    assert!(rig.end().0.success());
}

#[test]
fn a_server_that_says_its_secrets_is_quoted_without_them() {
    let script = r#"
        read -r discover
        echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}'
        read -r initialize
        echo "junk $API_KEY"
        echo '{"jsonrpc":"2.0","id":"q","method":"ask/'"$API_KEY"'"}'
        echo '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"n '"$API_KEY"'","version":"'"$API_KEY"'"}}}'
        read -r refused
        read -r initialized
        read -r list
        echo '{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"no '"$API_KEY"'"}]}}'
        read -r call
        echo '{"jsonrpc":"2.0","id":4,"error":{"code":1,"message":"bad key '"$API_KEY"'"}}'
        read -r end
    "#;
    let run =
        Run::new(call("s_echo", json!({}))).program("s", &["sh", "-c", script]).env("API_KEY", "canary-4712");
    let mut rig = Rig::start(run);
    let text = rig.completed();
    assert!(text.contains("bad key [API_KEY]"), "{text}");
    for name in ["mcp.connect", "mcp.junk", "mcp.request.refused", "mcp.tools.skipped"] {
        let events = format!("{:?}", rig.events(name));
        assert!(events.contains("[API_KEY]"), "{name}: {events}");
    }
    assert!(!format!("{:?}", rig.seen).contains("canary-4712"));
    assert!(rig.end().0.success());
}

#[test]
fn the_last_words_of_a_dead_server_are_told_but_not_its_secrets() {
    let rules = call("s_echo", json!({"text": "1"}));
    let script = "echo \"bad key $API_KEY\" >&2; exec \"$0\" --mode die-on-call";
    let run = Run::new(rules).program("s", &["sh", "-c", script, FAKE]).env("API_KEY", "canary-4711");
    let mut rig = Rig::start(run);
    let text = rig.completed();
    assert!(text.contains("bad key [API_KEY]") && text.contains("dying with 3"), "{text}");
    assert!(!format!("{:?}", rig.seen).contains("canary-4711"));
    assert!(rig.end().0.success());
}

#[test]
fn a_required_server_that_cannot_be_used_fails_the_run_and_says_why() {
    let ways: [(&[&str], &[&str]); 4] = [
        (&["exit=5"], &["exit status 5", "exiting with 5"]),
        (&["die-after-init=6"], &["exit status 6", "dying with 6"]),
        (&["die-during-list"], &["exit status 0"]),
        (&["wrong-version"], &["1999-01-01"]),
    ];
    for (modes, words) in ways {
        let run = Run::new(json!([{"reply": {"text": "x"}}])).fake("good", &["ok"]).fake("bad", modes);
        let mut rig = Rig::start(run);
        let failed = rig.failed();
        assert_eq!(failed.kind, FailKind::Server, "{modes:?}");
        for word in words.iter().chain(&["server bad (", "fake-mcp"]) {
            assert!(failed.error.contains(word), "{modes:?}: no {word:?} in {}", failed.error);
        }
        assert!(rig.end().0.success());
    }
}

#[test]
fn a_missing_program_is_told_at_once() {
    let run = Run::new(json!([{"reply": {"text": "x"}}]))
        .fake("slow", &["slow-init=60000"])
        .program("gone", &["no-such-program"]);
    let asked = Instant::now();
    let mut rig = Rig::start(run);
    let failed = rig.failed();
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    assert_eq!(failed.kind, FailKind::Server);
    assert!(failed.error.contains("no program no-such-program in PATH ("), "{}", failed.error);
    assert!(rig.end().0.success());
}

#[test]
fn a_run_goes_on_without_what_it_does_not_require() {
    let rules = json!([{"when": "true", "reply": {"text": "going on"}}]);
    let optional = |run: Run| run.server(|server| server.required = false);
    let run = Run::new(rules).fake("a", &["ok"]);
    let run = optional(run.fake("b", &["slow-init=60000"])).server(|server| server.start_timeout_ms = 200);
    let run = optional(run.fake("c", &["exit=1"]));
    let run = optional(run.fake("d", &["wrong-version"]));
    let run = optional(run.program("e", &["/no/such/program"]));
    let mut rig = Rig::start(run);
    assert_eq!(rig.completed(), "going on");
    assert_eq!(rig.events("mcp.tools")[0].fields["text"], "tools: 3 from 1 server");
    let told = |server: &str| {
        let events = rig.events("mcp.connect");
        let found = events.iter().find(|e| e.fields["server"] == server).expect("told");
        (found.fields["outcome"].clone(), found.fields["text"].clone())
    };
    assert_eq!(told("a").0, "connected");
    for (server, word) in
        [("b", "within 200ms"), ("c", "exit status 1"), ("d", "1999-01-01"), ("e", "/no/such/program")]
    {
        let (outcome, text) = told(server);
        assert_eq!(outcome, "failed", "{server}");
        assert!(text.contains(word), "{server}: {text}");
    }
    assert!(told("c").1.contains("exiting with 1 as told"));
    assert!(rig.end().0.success());
}

#[test]
fn a_call_that_never_answers_ends_with_the_deadline_and_the_server_is_told() {
    let log = tempfile::NamedTempFile::new().expect("a file");
    let path = log.path().to_str().expect("text");
    let run = Run::new(call("s_echo", json!({"text": "x"})))
        .program("s", &[FAKE, "--mode", "hang-on-call", "--log", path]);
    let mut rig = Rig::start(run.change(|spawn| spawn.limits.deadline_ms = 1_500));
    rig.until_tool_call();
    rig.ping(5);
    rig.until(|up| matches!(up, Up::Pong(pong) if pong.seq == 5).then_some(()));
    match rig.terminal() {
        Up::Result(result) => assert_eq!(result.end, LoopEnd::Deadline),
        other => panic!("{other:?}"),
    }
    assert!(rig.end().0.success());
    let sent = std::fs::read_to_string(path).expect("the log");
    assert!(sent.contains("notifications/cancelled"), "{sent}");
}

#[test]
fn a_late_answer_is_not_the_answer_of_a_later_call() {
    let rules = calls(&[("s_echo", json!({"text": "first"})), ("s_echo", json!({"text": "second"}))]);
    let run = Run::new(rules).fake("s", &["late-answer=next"]).server(|server| server.timeout_ms = 300);
    let mut rig = Rig::start(run);
    assert_eq!(rig.completed(), "second");
    assert!(rig.end().0.success());
}

#[test]
fn a_cancel_is_noticed_while_servers_start_and_while_a_tool_hangs() {
    let bound = Duration::from_secs(1);
    let run = Run::new(json!([{"reply": {"text": "x"}}])).fake("s", &["slow-init=600000"]);
    let mut rig = Rig::start(run);
    rig.until(|up| matches!(up, Up::State(_)).then_some(()));
    let asked = Instant::now();
    rig.cancel();
    assert!(matches!(rig.terminal(), Up::Result(result) if result.end == LoopEnd::Cancelled));
    assert!(asked.elapsed() < bound, "{:?}", asked.elapsed());
    assert!(rig.end().0.success());

    let run = Run::new(call("s_echo", json!({"text": "x"}))).fake("s", &["hang-on-call"]);
    let mut rig = Rig::start(run);
    rig.until_tool_call();
    let asked = Instant::now();
    rig.cancel();
    assert!(matches!(rig.terminal(), Up::Result(result) if result.end == LoopEnd::Cancelled));
    assert!(asked.elapsed() < bound, "{:?}", asked.elapsed());
    assert!(rig.end().0.success());
}

/// What the server of a run sees of itself.
fn dump(mut command: Command, run: Run) -> Value {
    command.envs((0..20).map(|n| (format!("CANARY_{n}"), format!("canary-{n}"))));
    command.envs([("AWS_SECRET_ACCESS_KEY", "canary-aws"), ("AGENTD_INTELLIGENCE_TOKEN", "canary-token")]);
    let mut rig = Rig::bare(command, run.tag.clone());
    rig.send(&agentd_core::wire::Down::Spawn(Box::new(run.spawn)));
    let seen = serde_json::from_str(&rig.completed()).expect("JSON");
    assert!(rig.end().0.success());
    seen
}

#[test]
fn a_server_sees_the_baseline_and_its_own_variables_and_three_descriptors() {
    let run = Run::new(call("s_dump", json!({})))
        .fake("s", &["dump"])
        .env("OWN", "mine")
        .fake("other", &["ok"])
        .env("THEIRS", "x");
    let seen = dump(Command::new(AGENTD), run);
    let env = seen["env"].as_object().expect("a map");
    assert_eq!(env["OWN"], "mine");
    assert!(env.contains_key("PATH"));
    for (name, value) in env {
        assert!(!value.as_str().is_some_and(|v| v.contains("canary")), "{name}={value}");
        assert!(!name.starts_with("AGENTD") && name != "THEIRS", "{name}");
    }
    let fds: Vec<_> = seen["fds"].as_object().expect("a map").keys().collect();
    assert_eq!(fds, ["0", "1", "2"], "{}", seen["fds"]);
    assert_eq!(seen["no_new_privs"], "1");
    assert_eq!(seen["pgid"], seen["pid"], "a group of its own");
}

#[test]
fn a_server_starts_with_clean_signals_whatever_agentd_was_started_with() {
    let mut dirty = Command::new("env");
    dirty.args(["--ignore-signal", "--block-signal", AGENTD]);
    let seen = dump(dirty, Run::new(call("s_dump", json!({}))).fake("s", &["dump"]));
    let bits = |key: &str| u64::from_str_radix(seen[key].as_str().expect("hex"), 16).expect("hex");
    assert_eq!(bits("sig_blocked"), 0);
    // The fake's own start ignores SIGPIPE (13).
    assert_eq!(bits("sig_ignored") & !(1 << 12), 0, "{}", seen["sig_ignored"]);
}

#[test]
fn the_built_in_file_server_runs_under_a_keeper_and_is_given_its_marker_only() {
    let root = tempfile::tempdir().expect("a folder");
    std::fs::write(root.path().join("one.txt"), "first\nsecond\n").expect("written");
    let rules = json!([
        {"turn": 1, "reply": {"tool_calls": [{"name": "files_read", "args": {"path": "one.txt"}}]}},
        {"turn": 2, "reply": {"text": "{{ last.text }}", "delay": "10m"}}
    ]);
    let mut rig = Rig::start(Run::new(rules).files("files", root.path().to_str().expect("text")));
    rig.until_tool_call();
    rig.until_model_call();
    let calls = rig.events("tool.call");
    assert_eq!(calls[0].fields["error"], "false");
    let (keeper, _) = rig.left().into_iter().next().expect("a keeper");
    let below =
        std::fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children")).expect("its server");
    let server = below.trim();
    assert_eq!(std::fs::read(format!("/proc/{server}/environ")).expect("readable"), b"AGENTD_FILES=1\0");
    let command = std::fs::read_to_string(format!("/proc/{server}/cmdline")).expect("readable");
    assert!(command.contains("serve-files"), "{command}");
    let server = crate::rig::pidfd(server.parse().expect("one pid"));
    rig.kill_and_expect_nothing_left(Duration::from_secs(2));
    assert!(crate::rig::readable(&[&server], Instant::now()), "the file server is left");
}

#[test]
fn the_file_server_ends_with_its_run() {
    let root = tempfile::tempdir().expect("a folder");
    std::fs::write(root.path().join("one.txt"), "first\n").expect("written");
    let run = Run::new(call("files_read", json!({"path": "one.txt"})))
        .files("files", root.path().to_str().expect("text"));
    let mut rig = Rig::start(run);
    assert!(rig.completed().contains("first"));
    assert!(rig.end_within(Duration::from_secs(2)).0.success());

    let run = Run::new(call("files_read", json!({}))).files("files", "/no/such/folder");
    let mut rig = Rig::start(run);
    let failed = rig.failed();
    assert!(
        failed.error.contains("server files (built-in files)") && failed.error.contains("/no/such/folder"),
        "{}",
        failed.error
    );
    assert!(rig.end().0.success());
}

/// The methods that a server's log has, in order.
fn methods(log: &str) -> Vec<String> {
    let log = std::fs::read_to_string(log).unwrap_or_default();
    let messages = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    messages.filter_map(|message| message["method"].as_str().map(str::to_owned)).collect()
}

/// Older servers meet `server/discover` with whatever they have for a request that they do not know. Each is found out,
/// whatever that is, and none by a code (S14.3).
#[test]
fn an_older_server_is_found_out_whatever_it_does_with_the_first_request() {
    for (what, starts) in [
        ("error:-32601", 1),
        ("error:-32602", 1),
        ("error:-32600", 1),
        ("error:-32700", 1),
        ("error:-32000", 1),
        ("error:1", 1),
        ("empty", 1),
        // Found out by silence, within the time for the start.
        ("silence", 1),
        ("junk", 1),
        ("other-id", 1),
        // These end over it, and are started once more.
        ("exit:0", 2),
        ("exit:1", 2),
        ("answer-and-exit:-32601", 2),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
        let (log, pids, mode) = (file("log"), file("pids"), format!("on-unknown={what}"));
        let (tool, args) = echo("old");
        let run = Run::new(call(&tool, args))
            .program("old", &[FAKE, "--log", &log, "--pids", &pids, "--mode", &mode]);
        let mut rig = Rig::start(run);
        assert_eq!(rig.completed(), "hello", "{what}");
        assert_eq!(std::fs::read_to_string(&pids).expect("read").lines().count(), starts, "{what}");
        assert_eq!(rig.events("mcp.again").len(), starts - 1, "{what}");
        assert_eq!(
            methods(&log),
            ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call"],
            "{what}: the second program is not asked what the first one died of"
        );
        assert_eq!(rig.events("mcp.exit").len(), 0, "{what}");
        assert!(rig.end().0.success(), "{what}");
    }
}

#[test]
fn a_server_that_always_ends_is_started_twice_and_no_more() {
    let pids = tempfile::NamedTempFile::new().expect("a file");
    let path = pids.path().to_str().expect("UTF-8");
    let run =
        Run::new(json!([{"reply": {"text": "x"}}])).program("c", &[FAKE, "--pids", path, "--mode", "exit=9"]);
    let mut rig = Rig::start(run);
    let failed = rig.failed();
    assert_eq!(failed.kind, FailKind::Server);
    for word in ["it was started twice", "ended with exit status 9", "exiting with 9 as told", "server c"] {
        assert!(failed.error.contains(word), "{word}: {}", failed.error);
    }
    assert_eq!(std::fs::read_to_string(path).expect("read").lines().count(), 2);
    assert!(rig.end().0.success());
}

/// What the first program left behind is gone before the second one begins, and nothing is left of either.
#[test]
fn what_a_server_left_that_ended_over_the_first_request_is_taken_down() {
    let pids = tempfile::NamedTempFile::new().expect("a file");
    let path = pids.path().to_str().expect("UTF-8");
    let (tool, args) = echo("old");
    let modes = ["--mode", "on-unknown=exit:1", "--mode", "double-fork-sleeper=300"];
    let run = Run::new(call(&tool, args)).program("old", &[&[FAKE, "--pids", path][..], &modes[..]].concat());
    let mut rig = Rig::start(run);
    assert_eq!(rig.completed(), "hello");
    assert!(rig.end().0.success());
    assert_eq!(
        std::fs::read_to_string(path).expect("read").lines().count(),
        4,
        "two programs, a sleeper each"
    );
}

/// The time for the start bounds both programs together.
#[test]
fn the_second_start_has_what_is_left_of_the_first_ones_time() {
    let since = Instant::now();
    let run = Run::new(json!([{"reply": {"text": "x"}}]))
        .fake("old", &["on-unknown=exit:1", "slow-init=600000"])
        .change(|spawn| spawn.servers[0].start_timeout_ms = 1_500);
    let mut rig = Rig::start(run);
    let failed = rig.failed();
    assert!(failed.error.contains("server old") && failed.error.contains("within 1.5s"), "{}", failed.error);
    assert!(since.elapsed() >= Duration::from_millis(1_500));
    assert!(rig.end().0.success());
}
