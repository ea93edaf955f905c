use super::*;
use crate::bytes::Json;
use crate::model::{CallResult, Finish, Message, PastCall, ReplyUsage, WireNames};
use crate::wire::message::ToolDecl;
use serde_json::{Value, json};
use std::sync::Arc;

mod mistakes;
mod replies;

/// A playbook of these rules.
fn playbook(rules: Value) -> Playbook {
    Playbook::from_value(&json!({ "rules": rules })).unwrap_or_else(|error| panic!("{error}"))
}

/// What a playbook of this one reply answers to `request`.
fn answer(reply: Value, request: &ModelRequest) -> Result<Reply, ModelError> {
    playbook(json!([{ "reply": reply }])).reply(request, Role::Worker).reply
}

fn text(reply: Value, request: &ModelRequest) -> String {
    answer(reply, request).unwrap().text.unwrap()
}

fn failure(reply: Value, request: &ModelRequest) -> String {
    answer(reply, request).unwrap_err().message
}

/// A first request: an instruction, and the tools `files.grep` and `subagent.run`.
fn request(instruction: &str) -> ModelRequest {
    let names = WireNames::new(["files.grep", "subagent.run"]);
    let tools = ["files_grep", "subagent_run"].map(|name| ToolDecl {
        name: name.to_owned(),
        description: String::new(),
        schema: Json::of(&json!({})),
    });
    ModelRequest {
        model: "m".to_owned(),
        degraded: false,
        max_output: None,
        system: String::new(),
        messages: vec![Arc::new(Message::User(instruction.to_owned()))],
        context: 0,
        begins: 0,
        turn: 1,
        declared: Arc::from([]),
        tools: Arc::new(tools),
        names: Arc::new(names),
        step: 1,
        tokens_left: 1000,
    }
}

/// The request after one more step: calls of (wire name, arguments, result, is an error).
fn step(mut request: ModelRequest, calls: &[(&str, Value, &str, bool)]) -> ModelRequest {
    let id = |index: usize| format!("c{}-{index}", request.step);
    let made = calls.iter().enumerate().map(|(i, (name, args, _, _))| PastCall {
        id: id(i),
        name: (*name).to_owned(),
        args: Json::of(args),
    });
    let answers = calls.iter().enumerate().map(|(i, (name, _, text, error))| CallResult {
        id: id(i),
        name: (*name).to_owned(),
        error: *error,
        text: (*text).to_owned(),
    });
    let (made, answers) = (made.collect(), answers.collect());
    request.messages.push(Arc::new(Message::Assistant { text: None, calls: made }));
    request.messages.push(Arc::new(Message::Results(answers)));
    request.step += 1;
    request
}
