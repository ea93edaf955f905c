//! `agentd run` against a provider's server: the key gets there, and to nobody else.

use crate::secrets::{
    OF_A_FILE, OF_A_MODEL, OF_A_VARIABLE, assert_clean, holds_a_canary, server_with_secrets,
};
use crate::{run, servers};
use agentd_tests::kit::RunCommand;
use agentd_tests::model_server::{Answer, ModelServer, Speaks};
use serde_json::json;

/// A run with this server as its provider; the key is still to be given.
fn asking(server: &ModelServer) -> RunCommand {
    run("rules: [{reply: {text: unused}}]\n")
        .env("AGENTD_INTELLIGENCE_DIALECT", server.speaks().dialect())
        .env("AGENTD_INTELLIGENCE_ENDPOINTS", json!([server.base()]).to_string())
        .env("AGENTD_INTELLIGENCE_MODEL", "the-model")
}

#[test]
fn a_key_is_seen_by_its_provider_and_by_nobody_else() {
    for speaks in Speaks::ALL {
        let server = ModelServer::start(speaks);
        let running = asking(&server)
            .config(&servers(&[server_with_secrets()]))
            .write("key", OF_A_FILE)
            .env("OF_A_VARIABLE", OF_A_VARIABLE)
            .env("THE_TEAM", OF_A_MODEL)
            .env("AGENTD_INTELLIGENCE_TOKEN", OF_A_MODEL)
            .env("AGENTD_INTELLIGENCE_HEADERS", "{X-Team: \"team {{secret:THE_TEAM}}\"}")
            .start("Say {{secret:OF_A_VARIABLE}}.");
        let asked = server.next();
        assert_clean(&running);
        let asked = asked.answer(&Answer::text("Hello.").usage(10, 2));
        let key = match speaks {
            Speaks::Openai | Speaks::Responses => {
                asked.header("authorization").and_then(|value| value.strip_prefix("Bearer "))
            }
            Speaks::Anthropic => asked.header("x-api-key"),
        };
        assert_eq!((key, asked.body["model"].as_str()), (Some(OF_A_MODEL), Some("the-model")));
        assert_eq!(asked.header("x-team"), Some(format!("team {OF_A_MODEL}").as_str()));
        assert!(!holds_a_canary(asked.body.to_string().as_bytes()), "{}", asked.body);
        let ended = running.wait();
        assert_eq!((ended.code(), ended.stdout.as_str()), (0, "Hello.\n"), "{}", ended.log());
        assert!(!holds_a_canary(ended.log().as_bytes()), "{}", ended.log());
    }
}

/// Exit code 4 is for a model that is not to be had (S17.3); one that is, and gives nothing that is of use, is a failure.
#[test]
fn every_failure_of_a_provider_has_its_exit_code() {
    let busy = json!({"error": {"type": "overloaded_error", "message": "busy"}});
    let long = json!({"error": {
        "type": "invalid_request_error", "code": "context_length_exceeded", "message": "prompt is too long: 210000 tokens > 200000 maximum",
    }});
    for (name, status, body, times, code, word) in [
        ("overloaded", 529, busy.to_string(), 3, 4, "busy"),
        ("broken", 500, busy.to_string(), 3, 4, "busy"),
        (
            "credential",
            403,
            json!({"error": {"type": "permission_error", "message": "no"}}).to_string(),
            1,
            4,
            "403",
        ),
        ("request", 400, json!({"error": {"message": "no such field"}}).to_string(), 1, 1, "no such field"),
        ("model", 404, json!({"error": {"message": "no such model"}}).to_string(), 1, 1, "no such model"),
        ("page", 200, "<html>sign in</html>".to_owned(), 3, 1, "sign in"),
        ("too long", 400, long.to_string(), 1, 1, "too long"),
    ] {
        for speaks in Speaks::ALL {
            let server = ModelServer::start(speaks);
            let running = asking(&server).env("AGENTD_INTELLIGENCE_TOKEN", OF_A_MODEL).start("hello");
            for _ in 0..times {
                server.next().whole(status, &[("content-type", "application/json")], &body);
            }
            let ended = running.wait();
            assert_eq!((ended.code(), ended.stdout.as_str()), (code, ""), "{name}: {}", ended.log());
            assert!(ended.log().contains(word), "{name}: {}", ended.log());
            assert!(server.is_quiet(), "{name}");
        }
    }
}

#[test]
fn a_key_that_is_rejected_is_not_shown_and_exits_4() {
    for speaks in Speaks::ALL {
        let server = ModelServer::start(speaks);
        let key = match speaks {
            Speaks::Openai | Speaks::Responses => "OPENAI_API_KEY",
            Speaks::Anthropic => "ANTHROPIC_API_KEY",
        };
        let running = asking(&server).env(key, OF_A_MODEL).start("hello");
        let said = json!({"error": {"type": "authentication_error", "message": format!("Incorrect API key provided: {OF_A_MODEL}")}});
        server.next().json(401, &said);
        let ended = running.wait();
        assert_eq!(ended.code(), 4, "{}", ended.log());
        assert!(!holds_a_canary(ended.log().as_bytes()), "{}", ended.log());
    }
}
