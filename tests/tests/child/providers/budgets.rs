//! Tokens that a provider does not report, reports late, or reports again and again (F05).

use super::{Tools, asking, usages};
use crate::rig::Rig;
use agentd_core::wire::Up;
use agentd_core::wire::message::LoopEnd;
use agentd_tests::model_server::{Answer, ModelServer, Speaks};
use serde_json::json;

/// Four thousand bytes and a call: about a thousand tokens.
fn long() -> Answer {
    Answer::text(&"word".repeat(1_000)).call("", "fake_echo", "{\"text\":\"x\"}")
}

#[test]
fn a_budget_holds_without_any_usage() {
    for refuses_options in [false, true] {
        let (server, tools) = (ModelServer::start(Speaks::Openai), Tools::new());
        let mut rig = Rig::start(tools.give(asking(&server)).change(|spawn| spawn.limits.tokens = 2_000));
        if refuses_options {
            let refused = server.next().json(
                400,
                &json!({"error": {"message": "Unrecognized request argument supplied: stream_options", "type": "invalid_request_error"}}),
            );
            assert_eq!(refused.body["stream_options"], json!({"include_usage": true}));
        }
        let mut calls = 0;
        let end = loop {
            match rig.next().expect("a terminal frame") {
                Up::State(state) if state.waiting_on == agentd_core::wire::message::WaitingOn::Model => {
                    let request = server.next().answer(&long());
                    assert_eq!(
                        request.body.get("stream_options").is_some(),
                        !refuses_options,
                        "it is not asked again"
                    );
                    calls += 1;
                    assert!(calls < 10, "it ends");
                }
                Up::Result(result) => break result,
                _ => {}
            }
        };
        assert_eq!(end.end, LoopEnd::ExhaustedTokens);
        assert!(end.partial);
        assert!(usages(&rig).iter().all(|(_, _, estimated)| *estimated), "{:?}", usages(&rig));
        assert!(rig.events("model.call").iter().all(|event| event.fields["estimated"] == "true"));
        assert!(rig.end().0.success());
    }
}

#[test]
fn usage_in_a_later_chunk_counts_and_the_same_sum_counts_once() {
    let server = ModelServer::start(Speaks::Openai);
    let mut rig = Rig::start(asking(&server));
    let usage = |output: u64| json!({"prompt_tokens": 500, "completion_tokens": output});
    server.next().events(&[
        json!({"choices": [{"delta": {"content": "do"}}], "usage": usage(1)}),
        json!({"choices": [{"delta": {"content": "ne"}, "finish_reason": "stop"}], "usage": usage(2)}),
        json!({"choices": [], "usage": usage(2)}),
    ]);
    assert_eq!(rig.completed(), "done");
    assert_eq!(usages(&rig), [(500, 2, false)]);
    assert!(rig.end().0.success());

    let server = ModelServer::start(Speaks::Anthropic);
    let mut rig = Rig::start(asking(&server));
    let start = json!({"input_tokens": 5, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5, "output_tokens": 1});
    server.next().events(&[
        json!({"type": "message_start", "message": {"content": [], "usage": start}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "done"}}),
        json!({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 4}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"input_tokens": 5, "output_tokens": 7}}),
    ]);
    assert_eq!(rig.completed(), "done");
    let cached =
        rig.seen.iter().find_map(|up| if let Up::Usage(usage) = up { Some(usage.cached) } else { None });
    assert_eq!((usages(&rig), cached), (vec![(100, 7, false)], Some(90)));
    assert!(rig.end().0.success());
}
