//! Servers at an address, in both eras: S14 over HTTP from a configuration file to the exit code (F09 to F14 where they
//! have a meaning without a process of ours).

use crate::stage::Stage;
use crate::{run, server, servers};
use agentd_tests::kit::{Ended, Rule, call, playbook};
use agentd_tests::mcp_http::{Era, HttpMcp};
use agentd_tests::mcp_server::Mode;
use agentd_tests::model_server::{Answer, Exchange, Speaks};
use serde_json::{Value, json};

const ERAS: [Era; 2] = [Era::Session, Era::Stateless];

fn at(url: &str, more: Value) -> String {
    let mut server = json!({"name": "net", "ns": "net", "url": url});
    server.as_object_mut().expect("a map").extend(more.as_object().cloned().unwrap_or_default());
    server.to_string()
}

fn say(tool: &str, text: &str) -> Value {
    call(&format!("net.{tool}"), json!({ "text": text }))
}

/// A conversation that makes these calls, one a message, and answers with all results.
fn conversation(server: &HttpMcp, more: Value, calls: &[Value]) -> Ended {
    let mut rules: Vec<Rule> =
        (1..).zip(calls).map(|(turn, call)| Rule::worker().turn(turn).calls([call.clone()])).collect();
    rules.push(Rule::worker().says("{{ results | tojson }}"));
    let ended = run(&playbook(rules)).config(&servers(&[at(&server.url(), more)])).run("go");
    assert_eq!(ended.code(), 0, "{}", ended.log());
    ended
}

fn text(results: &Value, n: usize) -> (bool, &str) {
    (results[n]["error"] == true, results[n]["text"].as_str().unwrap_or_default())
}

#[test]
fn tools_and_resources_of_a_server_at_an_address() {
    for era in ERAS {
        let server = HttpMcp::start(era);
        let calls = [
            say("echo", "hello"),
            say("look", "in pieces"),
            call("net.resource.read", json!({"uri": "note://1"})),
            say("twice", "once"),
            say("stray", "mine"),
        ];
        let ended = conversation(&server, json!({}), &calls);
        let results = ended.json();
        for (n, said) in ["hello", "in pieces", "what the note says", "once", "mine"].iter().enumerate() {
            assert_eq!(text(&results, n), (false, *said), "{era:?}: {results}");
        }
        let methods = server.methods();
        match era {
            Era::Session => {
                assert_eq!(
                    methods[..4],
                    ["server/discover", "initialize", "notifications/initialized", "tools/list"]
                );
                assert_eq!(
                    methods.last().map(String::as_str),
                    Some("DELETE"),
                    "the session is ended: {methods:?}"
                );
            }
            Era::Stateless | Era::Old => {
                assert_eq!(methods[..2], ["server/discover", "tools/list"]);
                assert!(!methods.iter().any(|m| m == "initialize" || m == "DELETE"), "{methods:?}");
            }
        }
    }
}

#[test]
fn every_way_an_answer_can_go_wrong_costs_that_call_alone() {
    for era in ERAS {
        let server = HttpMcp::start(era);
        let wrong = [
            ("cut", "outcome is unknown"),
            ("html", "text/html"),
            ("huge", "over 8388608 bytes"),
            ("accepted", "gave no answer"),
            ("no-such-tool", "net.no-such-tool"),
        ];
        let mut calls: Vec<Value> = wrong.iter().map(|(tool, _)| say(tool, "x")).collect();
        calls.extend([say("look_cut", "asked again"), say("echo", "still here")]);
        let ended = conversation(&server, json!({}), &calls);
        let results = ended.json();
        for (n, (tool, says)) in wrong.iter().enumerate() {
            let (error, said) = text(&results, n);
            assert!(error && said.contains(says), "{era:?} {tool}: {said}");
        }
        assert_eq!(text(&results, wrong.len()), (false, "asked again"), "{era:?}: {results}");
        assert_eq!(text(&results, wrong.len() + 1), (false, "still here"), "{era:?}: {results}");
        let made =
            |name: &str| server.seen().iter().filter(|seen| seen.message["params"]["name"] == name).count();
        assert_eq!((made("cut"), made("look_cut")), (1, 2), "only what is read-only is asked for again");
    }
}

#[test]
fn a_stream_that_never_ends_ends_with_the_call() {
    for era in ERAS {
        let server = HttpMcp::start(era);
        let ended = conversation(&server, json!({"timeout": "1s"}), &[say("endless", "x")]);
        let results = ended.json();
        let (error, said) = text(&results, 0);
        assert!(error && said.contains("did not answer `endless` within 1s"), "{era:?}: {said}");
        let told = server.methods().iter().any(|method| method == "notifications/cancelled");
        assert_eq!(told, era == Era::Session, "the stateless era closes the stream");
    }
}

#[test]
fn a_session_that_is_forgotten_is_begun_anew_and_the_call_made_in_it() {
    let server = HttpMcp::start(Era::Session);
    let ended = conversation(&server, json!({}), &[say("forget", "a"), say("echo", "b")]);
    assert_eq!((text(&ended.json(), 0), text(&ended.json(), 1)), ((false, "a"), (false, "b")));
    let sessions: Vec<_> = server
        .seen()
        .iter()
        .filter(|s| s.message["params"]["name"] == "echo")
        .map(|s| s.header("mcp-session-id").map(str::to_owned))
        .collect();
    assert_eq!(sessions, [Some("session-1".to_owned()), Some("session-2".to_owned())]);
}

#[test]
fn a_stream_that_the_server_ends_first_is_taken_up_where_it_was() {
    let server = HttpMcp::start(Era::Session);
    let ended = conversation(&server, json!({}), &[say("poll", "later")]);
    assert_eq!(text(&ended.json(), 0), (false, "later"));
    let resumed =
        server.seen().into_iter().filter(|seen| seen.header("last-event-id") == Some("here")).count();
    assert_eq!(resumed, 1);
}

#[test]
fn tools_that_change_are_seen_in_a_later_step_and_only_within_the_grant() {
    for era in ERAS {
        let server = HttpMcp::start(era);
        let rules = [
            Rule::worker()
                .turn(1)
                .calls([call("subagent.run", json!({"instruction": "look", "tools": ["net.*"]}))]),
            Rule::worker().turn(2).calls([call(
                "subagent.run",
                json!({"instruction": "look", "tools": ["net.change", "net.listed", "net.echo"]}),
            )]),
            Rule::worker().says("{{ results | tojson }}"),
            Rule::subagent().turn(1).calls([say("change", "x")]),
            Rule::subagent().turn(2).calls([say("listed", "x")]),
            Rule::subagent().turn(3).calls([say("echo", "x")]),
            Rule::subagent().says("{{ tools | sort | join(' ') }}"),
        ];
        let ended = run(&playbook(rules)).config(&servers(&[at(&server.url(), json!({}))])).run("go");
        assert_eq!(ended.code(), 0, "{}", ended.log());
        let results = ended.json();
        let tools = |n: usize| results[n]["value"]["result"].as_str().unwrap_or_default().to_owned();
        assert!(tools(0).contains("net.added"), "{era:?}: {results}");
        assert_eq!(tools(1), "net.change net.echo net.listed", "{era:?}: {results}");
    }
}

#[test]
fn nobody_is_there_to_be_asked_and_the_server_is_told_so() {
    for era in ERAS {
        let server = HttpMcp::start(era);
        let ended = conversation(&server, json!({}), &[say("ask", "")]);
        assert_eq!(text(&ended.json(), 0), (false, "they said decline"), "{era:?}");
        assert!(ended.log().contains("mcp.elicitation.declined"), "{}", ended.log());
    }
}

#[test]
fn slow_and_broken_servers_beside_a_good_one() {
    let (good, slow) = (HttpMcp::start(Era::Stateless), HttpMcp::start_held(Era::Session));
    let mut wanted = at(&slow.url(), json!({"name": "slow", "ns": "slow", "required": true}));
    let dead = server("dead", &[Mode::Exit(1)]).replacen('{', "{\"required\": false, ", 1);
    let other = server("other", &[Mode::WrongVersion("1999-01-01".into())]).replacen(
        '{',
        "{\"required\": false, ",
        1,
    );
    let all = servers(&[at(&good.url(), json!({})), std::mem::take(&mut wanted), dead, other]);
    let running =
        run(&playbook([Rule::worker().says("{{ tools | sort | join(' ') }}")])).config(&all).start("go");
    let is = |name: &'static str, outcome: &'static str| {
        move |event: &Value| event["server"] == name && event["outcome"] == outcome
    };
    for (name, says) in [("dead", "status 1"), ("other", "1999-01-01")] {
        let failed = running.wait_for_event("mcp.connect", is(name, "failed"));
        assert!(
            failed["text"].as_str().is_some_and(|text| text.contains(name) && text.contains(says)),
            "{failed}"
        );
    }
    running.wait_for_event("mcp.connect", is("net", "connected"));
    slow.release();
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{}", ended.log());
    let tools = &ended.stdout;
    assert!(tools.contains("net.echo") && tools.contains("slow.echo"), "{tools}");
}

/// A server whose certificate an authority of one's own vouches for: usable with `ca`, refused without, and under a name that
/// is not the certificate's; its header goes to it and is found nowhere else.
#[test]
fn a_server_behind_tls_is_trusted_by_its_own_authority_only() {
    const CANARY: &str = "canary-of-a-header";
    for era in ERAS {
        let here = HttpMcp::start_tls(era, &["127.0.0.1"]);
        let elsewhere = HttpMcp::start_tls(era, &["mcp.example"]);
        let rules = || {
            playbook([
                Rule::worker().turn(1).calls([say("echo", "hello")]),
                Rule::worker().says("{{ results | tojson }}"),
            ])
        };
        let header = json!({"Authorization": "Bearer {{secret:THE_TOKEN}}"});
        for (server, ca, works, says) in [
            (&here, Some(here.authority()), true, vec![]),
            (&here, None, false, vec!["certificate", "`ca` of an MCP server"]),
            (&here, Some(elsewhere.authority()), false, vec!["certificate", "`ca` of an MCP server"]),
            (&elsewhere, Some(elsewhere.authority()), false, vec!["mcp.example", "under a name"]),
        ] {
            let more = match ca {
                Some(_) => json!({"headers": header, "ca": "ca.pem"}),
                None => json!({"headers": header}),
            };
            let before = server.seen().len();
            let running = run(&rules())
                .config(&servers(&[at(&server.url(), more)]))
                .write("ca.pem", ca.unwrap_or_default())
                .env("THE_TOKEN", CANARY)
                .start("go");
            let ended = running.wait();
            assert_eq!(ended.code(), if works { 0 } else { 6 }, "{era:?} {says:?}: {}", ended.log());
            for word in says {
                assert!(ended.log().contains(word), "{word}: {}", ended.log());
            }
            let seen = server.seen().split_off(before);
            assert_eq!(!seen.is_empty(), works, "a header does not go to who is not trusted");
            let bearer = format!("Bearer {CANARY}");
            assert!(seen.iter().all(|seen| seen.header("authorization") == Some(&bearer)), "{seen:?}");
            assert!(!seen.iter().any(|seen| seen.message.to_string().contains(CANARY)), "{seen:?}");
            assert!(!ended.log().contains(CANARY) && !ended.stdout.contains(CANARY), "{}", ended.log());
            if works {
                assert_eq!(text(&ended.json(), 0), (false, "hello"), "{era:?}");
            }
        }
    }
}

/// F14 in the whole program: A is fine, B is slow and required, C ends at once, D has another version, and neither of those is
/// required. The person reads it in the log, the model in its first request, and a run that names only A waits for nobody.
#[test]
fn a_slow_server_delays_only_runs_that_name_it_and_the_model_is_told_what_is_missing() {
    let (a, b) = (HttpMcp::start(Era::Stateless), HttpMcp::start(Era::Session));
    let optional = |server: String| server.replacen('{', "{\"required\": false, ", 1);
    let all = servers(&[
        at(&a.url(), json!({"name": "a", "ns": "a"})),
        at(&b.url(), json!({"name": "b", "ns": "b"})),
        optional(server("c", &[Mode::Exit(1)])),
        optional(server("d", &[Mode::WrongVersion("1999-01-01".into())])),
    ]);
    let (mut stage, running) = Stage::start(Speaks::Openai, &all);
    let root = stage.root();
    let system = root.request.messages()[0]["content"].as_str().unwrap_or_default().to_owned();
    assert!(system.contains("These servers could not be used") && system.contains(": c, d."), "{system}");
    let offered = |exchange: &Exchange, server: &str| {
        let tools = exchange.request.body["tools"].as_array().cloned().unwrap_or_default();
        let prefix = format!("{server}_");
        tools
            .iter()
            .filter(|t| t["function"]["name"].as_str().is_some_and(|n| n.starts_with(&prefix)))
            .count()
    };
    assert!(offered(&root, "a") > 0 && offered(&root, "b") > 0);
    assert_eq!((offered(&root, "c"), offered(&root, "d")), (0, 0));
    b.hold();
    let call = |who: &str, servers: &[&str]| {
        ("subagent_run", json!({"instruction": who, "servers": servers, "mode": "sync"}))
    };
    let calls = stage.calls(&[call("only a", &["a"]), call("both", &["a", "b"])]);
    root.answer(&calls);
    let only = stage.of("only a");
    assert_eq!((offered(&only, "a") > 0, offered(&only, "b")), (true, 0));
    only.answer(&Answer::text("a is there"));
    running.wait_for_event("subagent.result", |event| event["handle"] == "sub-1");
    b.release();
    let both = stage.of("both");
    assert!(offered(&both, "a") > 0 && offered(&both, "b") > 0, "never a part of the list");
    both.answer(&Answer::text("both are there"));
    stage.root().answer(&Answer::text("done"));
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{}", ended.log());
    for word in ["exiting with 1 as told", "1999-01-01", "server c (", "server d ("] {
        assert!(ended.log().contains(word), "{word}: {}", ended.log());
    }
}

#[test]
fn what_cannot_be_used_says_why_and_shows_no_secret() {
    let old = HttpMcp::start(Era::Old);
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port");
    for (url, says) in [
        (old.url(), "HTTP+SSE transport of 2024-11-05"),
        (format!("http://{nobody}/mcp"), "nothing listens there"),
    ] {
        let config = at(&url, json!({"headers": {"Authorization": "Bearer {{secret:TOKEN}}"}}));
        let ended = run(&playbook([Rule::worker().says("never")]))
            .config(&servers(&[config]))
            .env("TOKEN", "canary-of-a-token")
            .run("go");
        assert_eq!(ended.code(), 6, "{}", ended.log());
        assert!(ended.log().contains(says), "{}", ended.log());
        assert!(!ended.log().contains("canary-of-a-token"), "{}", ended.log());
    }
    let sent = old.seen().iter().all(|seen| seen.header("authorization") == Some("Bearer canary-of-a-token"));
    assert!(sent, "the header goes with every request");
}
