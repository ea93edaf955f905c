//! A conversation that no longer fits the model's window, in the words of each provider (S7.7, F35).

use super::asking;
use crate::rig::Rig;
use agentd_core::wire::message::FailKind;
use agentd_tests::model_server::{Answer, Exchange, ModelServer, Speaks};
use serde_json::{Value, json};

/// How a provider says that it is too long.
enum Says {
    Status(u16, Value),
    Event(Value),
}

impl Says {
    fn to(&self, exchange: Exchange) {
        match self {
            Says::Status(status, body) => drop(exchange.json(*status, body)),
            Says::Event(event) => {
                let mut stream = exchange.stream();
                stream.event(event);
                stream.until_closed();
            }
        }
    }
}

fn error(kind: &str, code: Option<&str>, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "code": code, "message": message}})
}

fn words() -> Vec<(Speaks, Says)> {
    use Says::{Event, Status};
    use Speaks::{Anthropic, Openai, Responses};
    let (request, length) = ("invalid_request_error", Some("context_length_exceeded"));
    let tokens =
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.";
    let failed =
        json!({"code": "context_length_exceeded", "message": "Your input exceeds the context window."});
    vec![
        (Openai, Status(400, error(request, length, tokens))),
        (Openai, Status(413, error(request, None, "Request Entity Too Large"))),
        (
            Openai,
            Status(
                400,
                error("exceed_context_size_error", None, "the request exceeds the available context size"),
            ),
        ),
        (Openai, Event(error(request, length, tokens))),
        (
            Responses,
            Status(400, error(request, length, "Your input exceeds the context window of this model.")),
        ),
        (
            Responses,
            Event(json!({"type": "response.failed", "response": {"status": "failed", "error": failed}})),
        ),
        (Anthropic, Status(400, error(request, None, "prompt is too long: 210000 tokens > 200000 maximum"))),
        (
            Anthropic,
            Status(
                400,
                error(
                    request,
                    None,
                    "input length and `max_tokens` exceed context limit: 199000 + 16384 > 200000",
                ),
            ),
        ),
        (Anthropic, Status(413, error("request_too_large", None, "Request exceeds the maximum size"))),
    ]
}

#[test]
fn it_is_compacted_once_and_asked_again() {
    for (speaks, says) in words() {
        let server = ModelServer::start(speaks);
        let mut rig = Rig::start(asking(&server).fake("fake", &["big-result=20000"]));
        for id in ["a", "b", "c"] {
            server.next().answer(&Answer::text("").call(id, "fake_echo", "{}"));
        }
        let whole = server.next();
        let before = whole.request.body.to_string().len();
        says.to(whole);
        // The server refuses what is no valid history.
        let shorter = server.next().answer(&Answer::text("done"));
        let body = shorter.body.to_string();
        assert!(body.len() < before * 2 / 3, "{} of {before}", body.len());
        assert!(
            body.contains("bytes of this earlier result were left out") && body.contains("Do the thing."),
            "{body}"
        );
        assert_eq!(rig.completed(), "done");
        assert_eq!(rig.events("agent.compacted").len(), 1);
        assert_eq!(rig.events("model.retry").len(), 0, "it is not tried again as it was");
        assert!(rig.end().0.success());
    }
}

#[test]
fn too_long_a_second_time_is_a_failure_that_says_so() {
    for (speaks, says) in words() {
        let server = ModelServer::start(speaks);
        let mut rig = Rig::start(asking(&server).fake("fake", &["big-result=20000"]));
        for id in ["a", "b", "c"] {
            server.next().answer(&Answer::text("").call(id, "fake_echo", "{}"));
        }
        says.to(server.next());
        says.to(server.next());
        let failed = rig.failed();
        assert_eq!((failed.kind, failed.text), (FailKind::Reply, None));
        assert!(failed.error.contains("still too long"), "{}", failed.error);
        assert!(rig.end().0.success());
        assert!(server.is_quiet());
    }
}
