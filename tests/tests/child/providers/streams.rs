//! Streams that break, fall silent (F43) or are not wanted any more (S7.9).

use super::{Tools, asking, change};
use crate::rig::Rig;
use agentd_core::wire::Up;
use agentd_core::wire::message::{FailKind, LoopEnd};
use agentd_tests::model_server::{Answer, ModelServer, Speaks, Stream};
use serde_json::json;

/// Begins an answer: everything but its last events.
fn begun(server: &ModelServer, answer: &Answer) -> Stream {
    let mut stream = server.next().stream();
    let events = answer.events(server.speaks());
    let keep = events.len()
        - match server.speaks() {
            Speaks::Openai => 1,
            Speaks::Responses => 2,
            Speaks::Anthropic => 3,
        };
    events[..keep].iter().for_each(|event| stream.event(event));
    stream
}

#[test]
fn a_stream_without_its_end_is_asked_for_again_and_nothing_of_it_is_used() {
    for speaks in Speaks::ALL {
        let (server, tools) = (ModelServer::start(speaks), Tools::new());
        let mut rig = Rig::start(tools.give(asking(&server)));
        let half = Answer::text("half").call("a", "fake_echo", "{\"text\":\"half\"}");
        // Once the body ends properly, once the connection breaks.
        begun(&server, &half).end();
        drop(begun(&server, &half));
        server.next().answer(&Answer::text("").call("b", "fake_echo", "{\"text\":\"whole\"}"));
        server.next().answer(&Answer::text("done"));
        assert_eq!(rig.completed(), "done");
        let retries = rig.events("model.retry");
        assert_eq!(retries.len(), 2);
        assert!(retries[0].fields["error"].contains("terminal event"), "{retries:?}");
        assert!(retries[1].fields["error"].contains("middle of the answer"), "{retries:?}");
        assert!(rig.end().0.success());
        assert_eq!(tools.calls(), [("echo".to_owned(), json!({"text": "whole"}))]);
    }
}

/// Servers exist that never send `[DONE]`: the finish reason and a body that ends properly are an end too, and a
/// connection that breaks after it is none.
#[test]
fn a_chat_may_end_without_its_last_word_but_not_break_off() {
    let server = ModelServer::start(Speaks::Openai);
    let mut rig = Rig::start(asking(&server));
    let answer = Answer::text("done").usage(20, 3);
    let say = || {
        let mut stream = server.next().stream();
        answer.events(Speaks::Openai).iter().for_each(|event| stream.event(event));
        stream
    };
    drop(say());
    say().end();
    assert_eq!(rig.completed(), "done");
    // What broke off is paid for as the provider said, and is an estimate all the same.
    assert_eq!(super::usages(&rig), [(20, 3, true), (20, 3, false)]);
    let retries = rig.events("model.retry");
    assert_eq!(retries.len(), 1);
    assert!(retries[0].fields["error"].contains("middle of the answer"), "{retries:?}");
    assert!(rig.end().0.success());
}

#[test]
fn an_error_after_the_beginning_is_a_failed_call() {
    let error =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "too much", "code": 529}});
    for speaks in Speaks::ALL {
        let server = ModelServer::start(speaks);
        let mut rig = Rig::start(asking(&server));
        for _ in 0..3 {
            let mut stream = begun(&server, &Answer::text("half"));
            stream.event(&error);
            stream.until_closed();
        }
        let failed = rig.failed();
        assert_eq!((failed.kind, failed.text), (FailKind::Model, None));
        assert!(failed.error.contains("too much"), "{}", failed.error);
        assert!(rig.end().0.success());
    }
}

#[test]
fn what_is_no_answer_says_what_it_is() {
    for (body, kind, word) in [
        ("<html>Please sign in</html>", "text/html", "Please sign in"),
        ("{\"hello\":1}", "application/json", "is this the address of a"),
        ("", "text/event-stream", "empty"),
        ("data: {\"choices\":\n\n", "text/event-stream", "not valid JSON"),
    ] {
        let server = ModelServer::start(Speaks::Openai);
        let mut rig = Rig::start(asking(&server));
        for _ in 0..3 {
            server.next().whole(200, &[("content-type", kind)], body);
        }
        let failed = rig.failed();
        assert!(failed.error.contains(word), "{}", failed.error);
        assert!(rig.end().0.success());
    }
    let server = ModelServer::start(Speaks::Openai);
    let mut rig = Rig::start(asking(&server));
    for _ in 0..2 {
        server.next().raw("SSH-2.0-OpenSSH_9.2\r\n");
    }
    server.next().whole(200, &[("content-encoding", "gzip")], "\x1f…");
    let failed = rig.failed();
    assert!(failed.error.contains("gzip"), "{}", failed.error);
    let first = &rig.events("model.retry")[0].fields["error"];
    assert!(first.contains("HTTP") || first.contains("middle"), "{first}");
    assert!(rig.end().0.success());
}

#[test]
fn a_silent_stream_is_dead_and_comments_do_not_keep_it_alive() {
    for speaks in Speaks::ALL {
        let server = ModelServer::start(speaks);
        let mut rig = Rig::start(change(asking(&server), |remote| remote.timeout_ms = 400));
        // Nothing at all.
        server.next().until_closed();
        // The beginning, then nothing.
        begun(&server, &Answer::text("half")).until_closed();
        // The beginning, then signs of life that mean nothing.
        let mut stream = begun(&server, &Answer::text("half"));
        let idle = match speaks {
            Speaks::Openai => ": keep-alive\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\"}}]}\n\n",
            Speaks::Responses => {
                ": keep-alive\n\ndata: {\"type\":\"response.in_progress\",\"response\":{}}\n\n"
            }
            Speaks::Anthropic => ": keep-alive\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n",
        };
        stream.repeat_until_closed(idle);
        let failed = rig.failed();
        assert_eq!(failed.kind, FailKind::Model);
        assert!(failed.error.contains("fell silent") && failed.error.contains("0.4 s"), "{}", failed.error);
        assert!(rig.events("model.retry")[0].fields["error"].contains("no answer within 0.4 s"));
        assert!(rig.end().0.success());
    }
}

/// Bytes that never come to an event are silence, however steadily they come (F43).
#[test]
fn a_trickle_of_bytes_is_silence() {
    for speaks in Speaks::ALL {
        let server = ModelServer::start(speaks);
        let mut rig = Rig::start(change(asking(&server), |remote| remote.timeout_ms = 400));
        for begins in [false, true, true] {
            let mut stream =
                if begins { begun(&server, &Answer::text("half")) } else { server.next().stream() };
            stream.repeat_until_closed("x");
        }
        let failed = rig.failed();
        assert!(failed.error.contains("fell silent"), "{}", failed.error);
        assert!(rig.events("model.retry")[0].fields["error"].contains("no answer within 0.4 s"));
        assert!(rig.end().0.success());
    }
}

#[test]
fn a_stream_that_gets_on_outlives_its_silence_limit() {
    let server = ModelServer::start(Speaks::Openai);
    let mut rig = Rig::start(change(asking(&server), |remote| remote.timeout_ms = 1_000));
    let mut stream = server.next().stream();
    let since = std::time::Instant::now();
    while since.elapsed() < std::time::Duration::from_millis(2_500) {
        stream.event(&json!({"choices": [{"delta": {"reasoning_content": "hm"}}]}));
        // The pace of a model, not a wait for anything.
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    stream.send(Answer::text("done").stream(Speaks::Openai));
    stream.end();
    assert_eq!(rig.completed(), "done");
    assert_eq!(rig.events("model.retry").len(), 0);
    assert!(rig.end().0.success());
}

#[test]
fn a_cancel_shuts_the_connection_wherever_it_is() {
    for speaks in Speaks::ALL {
        for in_the_middle in [false, true] {
            let server = ModelServer::start(speaks);
            let mut rig = Rig::start(asking(&server));
            if in_the_middle {
                let stream = begun(&server, &Answer::text("half"));
                rig.cancel();
                stream.until_closed();
            } else {
                let exchange = server.next();
                rig.cancel();
                exchange.until_closed();
            }
            match rig.terminal() {
                Up::Result(result) => assert_eq!((result.end, result.text), (LoopEnd::Cancelled, None)),
                other => panic!("{other:?}"),
            }
            assert_eq!(rig.events("model.retry").len(), 0, "a connection that was shut is not tried again");
            assert!(rig.end().0.success());
        }
    }
}

#[test]
fn a_deadline_shuts_the_connection() {
    for speaks in Speaks::ALL {
        let server = ModelServer::start(speaks);
        let mut rig = Rig::start(asking(&server).change(|spawn| spawn.limits.deadline_ms = 700));
        begun(&server, &Answer::text("half")).until_closed();
        match rig.terminal() {
            Up::Result(result) => assert_eq!(result.end, LoopEnd::Deadline),
            other => panic!("{other:?}"),
        }
        assert!(rig.end().0.success());
    }
}

#[test]
fn a_flood_is_cut_off_and_costs_no_more_memory_than_it_must() {
    for (speaks, what) in [
        (Speaks::Openai, "text"),
        (Speaks::Responses, "text"),
        (Speaks::Anthropic, "text"),
        (Speaks::Openai, "line"),
    ] {
        let server = ModelServer::start(speaks);
        // A flood is paid for, too.
        let run = asking(&server).change(|spawn| spawn.limits.tokens = u64::MAX);
        let mut rig = Rig::start_walled(64, run);
        let piece = "x".repeat(256 * 1024);
        for _ in 0..3 {
            let mut stream = server.next().stream();
            match (what, speaks) {
                ("line", _) => stream.repeat_until_refused(&piece),
                (_, Speaks::Openai) => {
                    let event = json!({"choices": [{"delta": {"content": piece}}]});
                    stream.repeat_until_refused(&format!("data: {event}\n\n"));
                }
                (_, Speaks::Responses) => {
                    let event =
                        json!({"type": "response.output_text.delta", "output_index": 0, "delta": piece});
                    stream.repeat_until_refused(&format!("data: {event}\n\n"));
                }
                (_, Speaks::Anthropic) => {
                    let delta = json!({"type": "text_delta", "text": piece});
                    let event = json!({"type": "content_block_delta", "index": 0, "delta": delta});
                    stream.repeat_until_refused(&format!("data: {event}\n\n"));
                }
            }
        }
        let failed = rig.failed();
        let word = if what == "line" { "a line of the stream is longer" } else { "more than 6291456 bytes" };
        assert!(failed.error.contains(word), "{}", failed.error);
        assert!(rig.end().0.success());
    }
}
