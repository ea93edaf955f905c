//! Providers that refuse, are down, or ask for patience (F19), and where the child turns then.

use super::{KEY, Tools, asking, run};
use crate::rig::Rig;
use agentd_core::wire::Up;
use agentd_core::wire::message::{FailKind, LoopEnd, Mode, TurnOutcome};
use agentd_tests::model_server::{Answer, ModelServer, Speaks};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::time::{Duration, Instant, SystemTime};

fn error(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

/// An address where nothing listens.
pub(super) fn dead() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    format!("http://{}/v1", listener.local_addr().expect("an address"))
}

#[test]
fn a_credential_that_is_rejected_fails_at_once() {
    for (speaks, status) in Speaks::ALL.into_iter().zip([401, 403, 401]) {
        let server = ModelServer::start(speaks);
        let mut rig = Rig::start(asking(&server));
        server.next().json(status, &error("authentication_error", &format!("bad key {KEY}")));
        let failed = rig.failed();
        assert_eq!(failed.kind, FailKind::Model);
        for word in ["127.0.0.1:", &status.to_string(), "bad key [secret]", "authentication_error", "model m"]
        {
            assert!(failed.error.contains(word), "{word}: {}", failed.error);
        }
        assert!(rig.end().0.success());
        assert!(server.is_quiet(), "it is asked once");
    }
}

#[test]
fn what_the_provider_does_not_accept_is_not_sent_again() {
    for (status, message) in [
        (400, "no such field"),
        (404, "no such model"),
        (422, "bad"),
        (413, "too large"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
    ] {
        let server = ModelServer::start(Speaks::Anthropic);
        let mut rig = Rig::start(asking(&server));
        server.next().json(status, &error("invalid_request_error", message));
        let failed = rig.failed();
        assert_eq!(failed.kind, FailKind::Reply);
        assert!(
            failed.error.contains(message) && failed.error.contains(&status.to_string()),
            "{}",
            failed.error
        );
        assert!(rig.end().0.success());
        assert!(server.is_quiet());
    }
}

#[test]
fn an_overloaded_provider_is_asked_again_in_place() {
    for statuses in [[429, 529], [503, 500], [408, 409], [502, 425]] {
        let server = ModelServer::start(Speaks::Openai);
        let mut rig = Rig::start(asking(&server));
        for status in statuses {
            server.next().json(status, &error("overloaded_error", "busy"));
        }
        server.next().answer(&Answer::text("done"));
        assert_eq!(rig.completed(), "done");
        let retries = rig.events("model.retry");
        assert_eq!(retries.len(), 2);
        assert!(
            retries[0].fields["error"].contains("busy")
                && retries[0].fields["endpoint"].starts_with("127.0.0.1:")
        );
        assert!(rig.end().0.success());
    }
}

#[test]
fn a_run_that_nobody_keeps_fails_after_three_attempts() {
    let server = ModelServer::start(Speaks::Openai);
    let mut rig = Rig::start(asking(&server));
    for _ in 0..3 {
        server.next().json(503, &error("api_error", "busy"));
    }
    let failed = rig.failed();
    assert_eq!(failed.kind, FailKind::Model);
    assert!(failed.error.contains("busy") && failed.error.contains("3 attempts"), "{}", failed.error);
    assert!(rig.end().0.success());
    assert!(server.is_quiet());
}

#[test]
fn a_warm_run_rides_it_out() {
    let server = ModelServer::start(Speaks::Openai);
    let mut rig = Rig::start(asking(&server).change(|spawn| spawn.mode = Mode::Warm));
    for _ in 0..4 {
        server.next().json(503, &error("api_error", "busy"));
    }
    server.next().answer(&Answer::text("done"));
    let text = rig.until(|up| match up {
        Up::Result(result) => Some(result.text.clone()),
        Up::Turn(turn) => match &turn.outcome {
            TurnOutcome::Result(result) => Some(result.text.clone()),
            TurnOutcome::Failed(failed) => panic!("{failed:?}"),
        },
        _ => None,
    });
    assert_eq!(text.as_deref(), Some("done"));
    rig.stdin = None;
    rig.end();
}

/// The time between two requests, of which the first is refused with this `Retry-After`.
fn gap(retry_after: &str) -> Duration {
    let server = ModelServer::start(Speaks::Openai);
    let mut rig = Rig::start(asking(&server));
    let first = server.next();
    let refused_at = Instant::now();
    first.whole(429, &[("retry-after", retry_after)], "");
    let second = server.next();
    let gap = refused_at.elapsed();
    second.answer(&Answer::text("done"));
    assert_eq!(rig.completed(), "done");
    assert!(rig.end().0.success());
    gap
}

#[test]
fn a_provider_that_names_a_time_is_not_asked_before() {
    assert!(gap("2") >= Duration::from_secs(2));
    let at = SystemTime::now() + Duration::from_secs(3);
    let since = at.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
    // A date has whole seconds: up to one is lost.
    assert!(gap(&http_date(since)) >= Duration::from_millis(1_500));
    gap("soon");
}

/// An HTTP date, by the calendar of the C library.
fn http_date(seconds: u64) -> String {
    let out = std::process::Command::new("date")
        .env("LC_ALL", "C")
        .args(["-u", "-d", &format!("@{seconds}"), "+%a, %d %b %Y %H:%M:%S GMT"])
        .output()
        .expect("date runs");
    String::from_utf8(out.stdout).expect("UTF-8").trim().to_owned()
}

#[test]
fn a_cancel_and_a_deadline_end_the_wait_for_a_provider() {
    for by_deadline in [false, true] {
        let server = ModelServer::start(Speaks::Openai);
        let deadline_ms = if by_deadline { 700 } else { 600_000 };
        let mut rig = Rig::start(asking(&server).change(|spawn| spawn.limits.deadline_ms = deadline_ms));
        server.next().whole(429, &[("retry-after", "86400")], "");
        rig.until(|up| matches!(up, Up::Event(event) if event.name == "model.retry").then_some(()));
        let since = Instant::now();
        if !by_deadline {
            rig.cancel();
        }
        let wanted = if by_deadline { LoopEnd::Deadline } else { LoopEnd::Cancelled };
        match rig.terminal() {
            Up::Result(result) => assert_eq!(result.end, wanted),
            other => panic!("{other:?}"),
        }
        assert!(rig.end().0.success());
        assert!(since.elapsed() < Duration::from_secs(25), "the wait itself would have been longer");
    }
}

#[test]
fn the_next_endpoint_has_its_turn_and_keeps_it() {
    for speaks in Speaks::ALL {
        let (server, tools) = (ModelServer::start(speaks), Tools::new());
        let first = dead();
        let mut rig = Rig::start(tools.give(run(speaks, &[&first, &server.base()])));
        server.next().answer(&Answer::text("").call("a", "fake_echo", "{\"text\":\"x\"}"));
        server.next().answer(&Answer::text("done"));
        assert_eq!(rig.completed(), "done");
        let retries = rig.events("model.retry");
        assert_eq!(retries.len(), 3, "the dead one is not tried again for the second call: {retries:?}");
        assert!(
            retries.iter().all(|event| event.fields["error"].contains("connection refused")),
            "{retries:?}"
        );
        assert!(rig.end().0.success());
    }
}

#[test]
fn a_day_of_patience_gives_the_next_endpoint_its_turn() {
    let (one, two) = (ModelServer::start(Speaks::Openai), ModelServer::start(Speaks::Openai));
    let mut rig = Rig::start(run(Speaks::Openai, &[&one.base(), &two.base()]));
    one.next().whole(429, &[("retry-after", "86400")], "");
    two.next().answer(&Answer::text("done"));
    assert_eq!(rig.completed(), "done");
    assert!(rig.end().0.success());
    assert!(one.is_quiet());
}

#[test]
fn a_model_that_nobody_serves_is_told_with_every_address() {
    let (one, two) = (dead(), dead());
    let mut rig = Rig::start(run(Speaks::Openai, &[&one, &two]));
    let failed = rig.failed();
    assert_eq!(failed.kind, FailKind::Model);
    for base in [&one, &two] {
        let host = base.trim_start_matches("http://").trim_end_matches("/v1");
        assert!(failed.error.contains(&format!("{host}: connection refused")), "{}", failed.error);
    }
    assert!(failed.error.contains("6 attempts"), "{}", failed.error);
    assert!(rig.end().0.success());
}

#[test]
fn a_redirect_is_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let (here, there) = (ModelServer::start(Speaks::Openai), ModelServer::start(Speaks::Openai));
        let mut rig = Rig::start(asking(&here));
        here.next().whole(status, &[("location", &format!("{}/chat/completions", there.base()))], "");
        let failed = rig.failed();
        assert!(
            failed.error.contains("not followed") && failed.error.contains(&there.base()),
            "{}",
            failed.error
        );
        assert!(rig.end().0.success());
        assert!(there.is_quiet(), "a credential stays where it belongs");
    }
}

#[test]
fn a_credential_does_not_go_out_in_the_clear() {
    let mut rig = Rig::start(run(Speaks::Openai, &["http://192.0.2.1/v1"]));
    let failed = rig.failed();
    assert!(failed.error.contains("192.0.2.1") && failed.error.contains("https"), "{}", failed.error);
    assert!(rig.end().0.success());
}

#[test]
fn a_header_that_cannot_be_sent_is_named_and_not_shown() {
    let server = ModelServer::start(Speaks::Openai);
    let run = super::change(asking(&server), |remote| {
        remote.endpoints[0].token = Some(format!("{KEY}\nwith-a-second-line"));
    });
    let mut rig = Rig::start(run);
    let failed = rig.failed();
    assert!(failed.error.contains("`authorization`") && !failed.error.contains(KEY), "{}", failed.error);
    assert!(rig.end().0.success());
    assert!(server.is_quiet());
}

#[test]
fn a_run_without_an_endpoint_is_no_run() {
    let mut rig = Rig::start(run(Speaks::Openai, &[]));
    assert_eq!(rig.failed().kind, FailKind::Spawn);
    assert!(rig.end().0.success());
}
