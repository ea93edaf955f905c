//! What is paid for a call that gave no whole reply (S7.5, S8.5): each attempt that had brought a part of one, once, by
//! estimate, however it broke off and however the call went on; nothing for one that brought nothing.

use super::refusals::dead;
use super::{asking, change, run, usages};
use crate::rig::Rig;
use agentd_core::wire::message::{BudgetGrant, BudgetVerdict, CallBudget, LoopEnd};
use agentd_core::wire::{Down, Up};
use agentd_tests::model_server::{Answer, ModelServer, Speaks, Stream};
use serde_json::{Value, json};

/// Events that write so many bytes, as each dialect does in the middle of a reply.
fn text(speaks: Speaks, bytes: usize) -> Value {
    let piece = "x".repeat(bytes);
    match speaks {
        Speaks::Openai => json!({"choices": [{"index": 0, "delta": {"content": piece}}]}),
        Speaks::Responses => json!({
            "type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": piece,
        }),
        Speaks::Anthropic => {
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}})
        }
    }
}

/// Begins an answer: its first event, which tells the tokens in where the dialect does, and 40 bytes of text.
fn begun(server: &ModelServer) -> Stream {
    let mut stream = server.next().stream();
    stream.event(&Answer::text("").usage(30, 0).events(server.speaks())[0]);
    stream.event(&text(server.speaks(), 40));
    stream
}

/// What that is charged, of a request that is estimated to be so long.
fn part(speaks: Speaks, sent: u64) -> (u64, u64, bool) {
    match speaks {
        Speaks::Openai | Speaks::Responses => (sent, 10, true),
        Speaks::Anthropic => (30, 10, true),
    }
}

/// What the model call in flight is estimated to have sent.
fn sent(rig: &Rig) -> u64 {
    let states = rig.seen.iter().rev().filter_map(|up| match up {
        Up::State(state) => state.in_flight,
        _ => None,
    });
    states.take(1).sum()
}

/// Every way in which a stream breaks, three times in a row and at two endpoints.
#[test]
fn every_attempt_that_broke_off_is_charged_once() {
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "too much"}});
    for speaks in Speaks::ALL {
        let (first, second) = (ModelServer::start(speaks), ModelServer::start(speaks));
        let bases = [first.base(), second.base()];
        let mut rig = Rig::start(change(run(speaks, &[&bases[0], &bases[1]]), |remote| {
            remote.timeout_ms = 400;
        }));
        // The connection breaks; the body ends properly; the provider says that it failed; then the other endpoint, where
        // it falls silent, and at last there is an answer.
        drop(begun(&first));
        begun(&first).end();
        let mut stream = begun(&first);
        stream.event(&error);
        stream.until_closed();
        begun(&second).until_closed();
        second.next().answer(&Answer::text("done").usage(50, 5));
        assert_eq!(rig.completed(), "done");
        let part = part(speaks, sent(&rig));
        assert_eq!(usages(&rig), [part, part, part, part, (50, 5, false)], "{speaks:?}");
        assert!(rig.end().0.success());
    }
}

#[test]
fn a_call_that_fails_for_good_is_charged_its_last_attempt_too() {
    for speaks in Speaks::ALL {
        let server = ModelServer::start(speaks);
        let mut rig = Rig::start(asking(&server));
        for _ in 0..3 {
            drop(begun(&server));
        }
        assert!(rig.failed().error.contains("3 attempts"));
        let part = part(speaks, sent(&rig));
        assert_eq!(usages(&rig), [part, part, part]);
        assert!(rig.end().0.success());
    }
}

/// No connection, refusals of every kind, and answers that are none: nobody is paid for those.
#[test]
fn an_attempt_that_brought_nothing_costs_nothing() {
    let error = json!({"error": {"type": "api_error", "message": "no"}});
    for speaks in Speaks::ALL {
        let mut rig = Rig::start(run(speaks, &[&dead()]));
        rig.failed();
        assert_eq!(usages(&rig), []);
        assert!(rig.end().0.success());
        for (status, attempts) in
            [(400, 1), (401, 1), (403, 1), (404, 1), (429, 3), (500, 3), (503, 3), (529, 3)]
        {
            let server = ModelServer::start(speaks);
            let mut rig = Rig::start(asking(&server));
            for _ in 0..attempts {
                server.next().json(status, &error);
            }
            rig.failed();
            assert_eq!(usages(&rig), [], "{status}");
            assert!(rig.end().0.success());
        }
        // An answer of 200 that is an error, a page or nothing, a stream that begins with an error, and a head with
        // nothing after it.
        for body in [error.to_string(), "<html>sign in</html>".to_owned(), String::new()] {
            let server = ModelServer::start(speaks);
            let mut rig = Rig::start(change(asking(&server), |remote| remote.timeout_ms = 400));
            server.next().whole(200, &[], &body);
            let mut stream = server.next().stream();
            stream.event(&json!({"type": "error", "error": {"type": "overloaded_error", "message": "no"}}));
            stream.until_closed();
            server.next().stream().until_closed();
            rig.failed();
            assert_eq!(usages(&rig), [], "{body}");
            assert!(rig.end().0.success());
        }
    }
}

#[test]
fn an_answer_in_one_piece_that_breaks_off_is_estimated_from_its_bytes() {
    for speaks in Speaks::ALL {
        let server = ModelServer::start(speaks);
        let mut rig = Rig::start(asking(&server));
        let body = Answer::text(&"x".repeat(400)).whole(speaks).to_string();
        let head = format!(
            "HTTP/1.1 200 x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{}",
            body.len(),
            &body[..400]
        );
        server.next().raw(head);
        server.next().answer(&Answer::text("done").usage(50, 5));
        assert_eq!(rig.completed(), "done");
        assert_eq!(usages(&rig), [(sent(&rig), 100, true), (50, 5, false)]);
        assert!(rig.end().0.success());
    }
}

#[test]
fn a_cancel_and_a_deadline_in_the_middle_charge_what_had_come() {
    for speaks in Speaks::ALL {
        let server = ModelServer::start(speaks);
        let mut rig = Rig::start(asking(&server));
        let mut stream = begun(&server);
        stream.until_taken();
        // Whoever reads this has read what came before it.
        stream.event(&text(speaks, 4));
        stream.until_taken();
        rig.cancel();
        stream.until_closed();
        rig.terminal();
        let (input, output, estimated) = part(speaks, sent(&rig));
        let charged = usages(&rig);
        let with = |more| vec![(input, output + more, estimated)];
        assert!(charged == with(0) || charged == with(1), "{charged:?}");
        assert!(rig.end().0.success());

        let server = ModelServer::start(speaks);
        let mut rig = Rig::start(asking(&server).change(|spawn| spawn.limits.deadline_ms = 700));
        begun(&server).until_closed();
        match rig.terminal() {
            Up::Result(result) => assert_eq!(result.end, LoopEnd::Deadline),
            other => panic!("{other:?}"),
        }
        assert_eq!(usages(&rig), [part(speaks, sent(&rig))]);
        assert!(rig.end().0.success());
    }
}

/// A thought is paid for like what is said.
#[test]
fn thoughts_count() {
    let thought = "x".repeat(40);
    for (speaks, event) in [
        (Speaks::Openai, json!({"choices": [{"delta": {"reasoning_content": thought}}]})),
        (Speaks::Openai, json!({"choices": [{"delta": {"reasoning": thought}}]})),
        (Speaks::Responses, json!({"type": "response.reasoning_summary_text.delta", "delta": thought})),
        (
            Speaks::Anthropic,
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": thought}}),
        ),
    ] {
        let server = ModelServer::start(speaks);
        let mut rig = Rig::start(asking(&server));
        let mut stream = server.next().stream();
        stream.event(&event);
        drop(stream);
        server.next().answer(&Answer::text("done").usage(50, 5));
        assert_eq!(rig.completed(), "done");
        assert_eq!(usages(&rig), [(sent(&rig), 10, true), (50, 5, false)]);
        assert!(rig.end().0.success());
    }
}

/// Where calls are asked for, an attempt that follows one that is paid waits for its own grant, and is not made without.
#[test]
fn the_next_attempt_is_asked_for() {
    for speaks in Speaks::ALL {
        for verdict in [BudgetVerdict::Own, BudgetVerdict::Refused("used up".to_owned())] {
            let server = ModelServer::start(speaks);
            let budget = Some(CallBudget { degraded: None });
            let mut rig = Rig::start(asking(&server).change(|spawn| spawn.budget = budget));
            let asked = |rig: &mut Rig| {
                rig.until(|up| match up {
                    Up::BudgetRequest(ask) => Some(ask.id),
                    _ => None,
                })
            };
            let id = asked(&mut rig);
            rig.send(&Down::BudgetGrant(BudgetGrant { id, verdict: BudgetVerdict::Own }));
            drop(begun(&server));
            let id = asked(&mut rig);
            assert_eq!(usages(&rig), [part(speaks, sent(&rig))], "it is paid before the next is asked for");
            assert!(server.is_quiet());
            rig.send(&Down::BudgetGrant(BudgetGrant { id, verdict: verdict.clone() }));
            if verdict == BudgetVerdict::Own {
                server.next().answer(&Answer::text("done").usage(50, 5));
                assert_eq!(rig.completed(), "done");
                assert_eq!(usages(&rig).len(), 2);
            } else {
                match rig.terminal() {
                    Up::Result(result) => assert_eq!(result.end, LoopEnd::ExhaustedTokens),
                    other => panic!("{other:?}"),
                }
                assert_eq!(usages(&rig).len(), 1);
            }
            assert!(rig.end().0.success());
            assert!(server.is_quiet());
        }
    }
}
