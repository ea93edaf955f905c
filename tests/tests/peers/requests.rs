//! What is sent validates against the providers' published schemas (S15.5): every form of request that a dialect makes is
//! held to the parameter types of the provider's own SDK, which are generated from them.

use super::{below, python};
use agentd_core::bytes::{Bytes, Json};
use agentd_core::model::api::Api;
use agentd_core::model::openai::Manner;
use agentd_core::model::{CallResult, Message, ModelRequest, PastCall, WireNames};
use agentd_core::wire::message::{Endpoint, Remote, ToolDecl};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;

fn json_of(value: &Value) -> Json {
    Json(Bytes::from(value.to_string().as_bytes()))
}

fn tools() -> Arc<[ToolDecl]> {
    let decl = |name: &str, schema: Value| ToolDecl {
        name: name.to_owned(),
        description: format!("What {name} does."),
        schema: json_of(&schema),
    };
    Arc::from([
        decl(
            "files_read",
            json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
        ),
        // Servers send these too.
        decl("nothing", json!({})),
        decl(
            "odd",
            json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "anyOf": [{}]}),
        ),
    ])
}

/// The histories that a run can have.
fn histories() -> Vec<(&'static str, Vec<Message>)> {
    let user = |text: &str| Message::User(text.to_owned());
    let call = |id: &str, args: Value| PastCall {
        id: id.to_owned(),
        name: "files_read".to_owned(),
        args: json_of(&args),
    };
    let asked = |text: Option<&str>, calls| Message::Assistant { text: text.map(str::to_owned), calls };
    let answer = |id: &str, error, text: &str| CallResult {
        id: id.to_owned(),
        name: "files_read".to_owned(),
        error,
        text: text.to_owned(),
    };
    let called = |text| {
        vec![
            user("look"),
            asked(text, vec![call("a", json!({"path": "x"})), call("b", json!({}))]),
            Message::Results(vec![answer("a", false, "text"), answer("b", true, "")]),
        ]
    };
    let mut steered = called(Some("I look."));
    steered.extend([user("and be brief"), user("and quick")]);
    let mut long = called(None);
    long.extend([asked(Some("done"), Vec::new()), user("again"), user("")]);
    vec![
        ("one message", vec![user("hello")]),
        ("context", vec![user("earlier"), asked(Some("yes"), Vec::new()), user("now")]),
        ("context that ends with an answer", vec![asked(Some("yes"), Vec::new()), user("now")]),
        ("calls without text", called(None)),
        ("calls with text", called(Some("I look."))),
        ("steers after results", steered),
        ("a later turn", long),
    ]
}

/// A dialect as a configuration names it, and how it is spoken: chat completions in each manner that a server may want.
fn apis() -> Vec<(&'static str, &'static str, Api)> {
    let chat = |usage, completion_tokens| Api::ChatCompletions(Manner { usage, completion_tokens });
    vec![
        ("openai", "with usage", chat(true, false)),
        ("openai", "without usage", chat(false, false)),
        ("openai", "newer bound", chat(true, true)),
        ("openai-responses", "", Api::Responses),
        ("anthropic", "", Api::Messages),
    ]
}

#[test]
fn what_is_sent_is_what_the_published_schemas_take() {
    let endpoint = Endpoint { url: "https://model.example/v1".into(), token: None };
    let mut lines = String::new();
    let mut forms = 0;
    for (dialect, manner, api) in apis() {
        for (history, messages) in histories() {
            // Tools on offer, none at all, and a last call whose history has calls.
            for (offer, offered, declared) in [
                ("tools", tools(), tools()),
                ("no tools", Arc::default(), Arc::default()),
                ("last", Arc::default(), tools()),
            ] {
                for (system, max_output) in [("", None), ("Be brief.", Some(4_096)), ("Be brief.", Some(1))] {
                    let request = ModelRequest {
                        model: "m".to_owned(),
                        degraded: false,
                        max_output,
                        system: system.to_owned(),
                        messages: messages.iter().cloned().map(Arc::new).collect(),
                        context: 0,
                        begins: 0,
                        turn: 1,
                        tools: offered.clone(),
                        declared: declared.clone(),
                        names: Arc::new(WireNames::new(["files.read", "nothing", "odd"])),
                        step: 1,
                        tokens_left: 100_000,
                    };
                    let remote = Remote {
                        model: "the-model".into(),
                        endpoints: vec![endpoint.clone()],
                        headers: Default::default(),
                        timeout_ms: 1_000,
                        max_output: None,
                    };
                    let body = api.request(&remote, &endpoint, &request).body;
                    let body: Value = serde_json::from_slice(&body).expect("JSON");
                    let name = format!("{manner} {history} {offer} {system:?} {max_output:?}");
                    lines += &format!("{}\n", json!({"name": name, "dialect": dialect, "body": body}));
                    forms += 1;
                }
            }
        }
    }
    let mut judge = Command::new(python("python"))
        .arg(below("python/requests.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    judge.stdin.take().expect("a pipe").write_all(lines.as_bytes()).expect("it reads");
    let output = judge.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert_eq!(forms, 5 * 7 * 3 * 3);
}
