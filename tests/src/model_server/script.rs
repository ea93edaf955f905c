//! The program `fake-model`: a provider that answers from a script, for a person who points agentd at it.
//!
//! `fake-model --help` prints the form of a script.

use super::{Answer, Exchange, Speaks, accept};
use serde::Deserialize;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

/// How it is called.
const USAGE: &str = "usage: fake-model SCRIPT.json [PORT]";

/// What a script is, with one that can be used as it stands.
const HELP: &str = r#"Prints its address and serves until it is killed. Without PORT it takes a free one.
The script:

{"dialect": "openai", "models": ["m"], "replies": [
  {"calls": [{"name": "list", "args": {"path": "."}}]},
  {"when": "README", "text": "It is a README.", "usage": [120, 8]},
  {"status": 429, "retry_after": "2"},
  {"text": "That is all I know.", "times": 0}
]}

A request takes the first reply that is not used up and whose `when` is in the
text it ends with: the prompt, or what the last tool answered.

  dialect      openai, openai-responses or anthropic
  models       the models it knows; without it, all
  replies      each with any of these:
    when         part of the text that a request ends with; "" (default): any
    times        how often the reply serves; 1 by default, 0 for ever
    text         what the model writes
    calls        tools it calls, each {"name": …, "args": {…}}; a name has _
                 where agentd has a dot
    usage        [input, output] tokens
    finish       why it stopped, in the words of the dialect
    status       answers with this HTTP status and an error instead
    retry_after  the header of that name, with status
"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    dialect: String,
    #[serde(default)]
    models: Option<Vec<String>>,
    replies: Vec<Scripted>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scripted {
    #[serde(default)]
    when: String,
    #[serde(default = "once")]
    times: u32,
    #[serde(default)]
    text: String,
    #[serde(default)]
    calls: Vec<ScriptedCall>,
    usage: Option<(u64, u64)>,
    finish: Option<String>,
    status: Option<u16>,
    retry_after: Option<String>,
    #[serde(skip)]
    used: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedCall {
    name: String,
    #[serde(default)]
    args: Value,
}

fn once() -> u32 {
    1
}

/// The program.
pub fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{USAGE}\n\n{HELP}");
        return ExitCode::SUCCESS;
    }
    match serve(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fake-model: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(args: &[String]) -> Result<(), String> {
    let (path, port) = match args {
        [path] => (path, "0"),
        [path, port] => (path, port.as_str()),
        _ => return Err(format!("{USAGE}; --help shows the form of a script")),
    };
    let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    let script: Script = serde_json::from_str(&text).map_err(|e| format!("{path}: {e}"))?;
    let Some(speaks) = Speaks::ALL.into_iter().find(|speaks| speaks.dialect() == script.dialect) else {
        let known = Speaks::ALL.map(Speaks::dialect).join(", ");
        return Err(format!("{path}: dialect {:?}; known are {known}", script.dialect));
    };
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).map_err(|e| format!("port {port}: {e}"))?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    println!("http://{address}/v1");
    let script = Arc::new(Mutex::new(script));
    for stream in listener.incoming().flatten() {
        let script = Arc::clone(&script);
        std::thread::spawn(move || {
            if let Some(exchange) = accept(stream, None, speaks) {
                answer(&script, exchange);
            }
        });
    }
    Ok(())
}

fn answer(script: &Mutex<Script>, exchange: Exchange) {
    let mut script = script.lock().unwrap_or_else(PoisonError::into_inner);
    let model = exchange.request.body["model"].as_str().unwrap_or_default().to_owned();
    if !exchange.request.problems.is_empty() {
        let message = exchange.request.problems.join("; ");
        drop(exchange.json(400, &error("invalid_request_error", &message)));
        return;
    }
    if script.models.as_ref().is_some_and(|models| !models.contains(&model)) {
        drop(exchange.json(404, &error("not_found_error", &format!("there is no model {model}"))));
        return;
    }
    let said = exchange.request.last_text();
    let fits =
        |reply: &Scripted| (reply.times == 0 || reply.used < reply.times) && said.contains(&reply.when);
    let Some((index, reply)) = script.replies.iter_mut().enumerate().find(|(_, reply)| fits(reply)) else {
        drop(exchange.json(500, &error("api_error", "the script has no reply left for this request")));
        return;
    };
    reply.used += 1;
    if let Some(status) = reply.status {
        let after = reply.retry_after.as_deref().map(|after| ("retry-after", after));
        let headers: Vec<_> = after.into_iter().chain([("content-type", "application/json")]).collect();
        drop(exchange.whole(status, &headers, &error("scripted", "as the script says").to_string()));
        return;
    }
    let mut answer = Answer::text(&reply.text);
    for (nth, call) in reply.calls.iter().enumerate() {
        let args = if call.args.is_null() { json!({}) } else { call.args.clone() };
        answer = answer.call(&format!("call_{index}_{}_{nth}", reply.used), &call.name, &args.to_string());
    }
    if let Some((input, output)) = reply.usage {
        answer = answer.usage(input, output);
    }
    if let Some(finish) = &reply.finish {
        answer = answer.finish(finish.as_str());
    }
    drop(exchange.answer(&answer));
}

fn error(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_of_the_help_is_one() {
        let script = HELP.split("\n\n").find(|part| part.starts_with('{')).expect("a script");
        let script: Script = serde_json::from_str(script).expect("it can be read");
        assert_eq!(script.replies.iter().map(|reply| reply.times).collect::<Vec<_>>(), [1, 1, 1, 0]);
    }
}
