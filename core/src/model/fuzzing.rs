//! The bodies of the fuzz targets of models: `model_stream` for what a provider answers, `playbook` for the scripted
//! model. Each tells what it reached, by which the committed corpora are judged.

use crate::bytes::{Bytes, Json};
use crate::limits::{REFUSAL_QUOTE_BYTES, REPLY_BYTES, REPLY_CALLS};
use crate::model::mock::Playbook;
use crate::model::refusal::refusal;
use crate::model::{
    CallResult, Finish, Message, ModelError, ModelErrorKind, ModelRequest, PastCall, Reply, WireNames,
    anthropic, openai, responses, stream,
};
use crate::sse::{Decoder, Event, SseError};
use crate::wire::message::{Role, ToolDecl};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Reads `data` as a stream of events and as an answer in every dialect, whole and cut in two ways, and as the body of
/// a refusal. The first byte says where it is cut, and the refusal's status. Gives how the replies ended.
///
/// # Panics
///
/// When a cut changes what is read, or a reply or an error outgrows its bound.
pub fn model_stream(data: &[u8]) -> BTreeSet<&'static str> {
    let Some((first, bytes)) = data.split_first() else { return BTreeSet::new() };
    let (cut, size) = (usize::from(*first).min(bytes.len()), usize::from(first % 7) + 1);
    for read in [
        |pieces: &[&[u8]]| format!("{:?}", events(pieces)),
        |pieces: &[&[u8]]| format!("{:?}{:?}{:?}", chat(pieces), items(pieces), messages(pieces)),
    ] {
        let whole = read(&[bytes]);
        assert_eq!(read(&[&bytes[..cut], &bytes[cut..]]), whole, "a cut at {cut}");
        assert_eq!(read(&bytes.chunks(size).collect::<Vec<_>>()), whole, "pieces of {size}");
    }
    let status = 300 + u16::from(*first);
    let header = String::from_utf8_lossy(bytes.split(|byte| *byte == b'\n').next().unwrap_or_default());
    let refused = refusal(status, |_| Some(header.clone().into_owned()), bytes, 1_796_000_000_000);
    [ended(chat(&[bytes])), ended(items(&[bytes])), ended(messages(&[bytes])), failed(&refused)].into()
}

fn ended(reply: Result<Reply, ModelError>) -> &'static str {
    match reply {
        Ok(reply) => {
            let called: usize = reply.calls.iter().map(|call| call.name.len() + call.args.len()).sum();
            assert!(reply.text.as_ref().map_or(0, String::len) + called <= REPLY_BYTES);
            assert!(reply.calls.len() <= REPLY_CALLS);
            match reply.finish {
                _ if !reply.calls.is_empty() => "calls",
                Finish::Stop => "stop",
                Finish::ToolCalls => "tool calls",
                Finish::Length => "length",
                Finish::Refusal => "refusal",
                Finish::Other(_) => "another finish",
                Finish::Missing => "no finish",
            }
        }
        Err(error) => failed(&error),
    }
}

fn failed(error: &ModelError) -> &'static str {
    let text = &error.message;
    assert!(text.len() < 2 * REFUSAL_QUOTE_BYTES + 400, "{text}");
    assert!(!text.chars().any(char::is_control), "{text:?}");
    error.kind.name()
}

fn events(pieces: &[&[u8]]) -> (Vec<Event>, Result<Option<Event>, SseError>) {
    let (mut decoder, mut events) = (Decoder::new(), Vec::new());
    for piece in pieces {
        if decoder.push(piece, &mut events).is_err() {
            break;
        }
    }
    (events, decoder.finish())
}

fn chat(pieces: &[&[u8]]) -> Result<Reply, ModelError> {
    read(openai::Reader::new(), pieces)
}

fn items(pieces: &[&[u8]]) -> Result<Reply, ModelError> {
    read(responses::Reader::new(), pieces)
}

fn messages(pieces: &[&[u8]]) -> Result<Reply, ModelError> {
    read(anthropic::Reader::new(), pieces)
}

fn read<E: stream::Events>(mut reader: stream::Reader<E>, pieces: &[&[u8]]) -> Result<Reply, ModelError> {
    for piece in pieces {
        reader.push(piece);
    }
    reader.finish()
}

/// Work of one template here: a template that loops is found to be bounded without waiting for it.
const FUEL: u64 = 20_000;

/// Reads `data` as a playbook and, when it is one, has it answer a first and a later request of both kinds of children.
/// Gives what came of it.
///
/// # Panics
///
/// When the same request gets two answers, or an answer or a mistake outgrows its bound.
pub fn playbook(data: &[u8]) -> BTreeSet<&'static str> {
    let Ok(value) = serde_json::from_slice(data) else { return ["no JSON"].into() };
    let playbook = match Playbook::with_fuel(&value, FUEL) {
        Ok(playbook) => playbook,
        Err(mistakes) => {
            assert!(!mistakes.problems.is_empty());
            return ["mistakes"].into();
        }
    };
    let mut reached = BTreeSet::new();
    for (request, role) in [(first(), Role::Worker), (first(), Role::Subagent), (later(), Role::Worker)] {
        let outcome = playbook.reply(&request, role);
        assert_eq!(playbook.reply(&request, role), outcome, "the same request");
        reached.insert(match outcome.reply {
            Err(error) if error.kind == ModelErrorKind::Rejected => "no answer",
            Err(_) => "a failure that is asked for",
            Ok(reply) if reply.calls.is_empty() => "text",
            Ok(reply) => {
                assert!(reply.calls.len() <= REPLY_CALLS);
                "calls"
            }
        });
    }
    reached
}

/// A first request, with two tools.
fn first() -> ModelRequest {
    let declared = ["files_grep", "subagent_run"].map(|name| ToolDecl {
        name: name.to_owned(),
        description: String::new(),
        schema: json("{}"),
    });
    let tools: Arc<[ToolDecl]> = Arc::from(declared);
    ModelRequest {
        model: "m".to_owned(),
        degraded: false,
        max_output: None,
        system: String::new(),
        messages: vec![Arc::new(Message::User("Count the lines of src.".to_owned()))],
        context: 0,
        begins: 0,
        turn: 1,
        declared: Arc::clone(&tools),
        tools,
        names: Arc::new(WireNames::new(["files.grep", "subagent.run"])),
        step: 1,
        tokens_left: 1_000,
    }
}

/// The next one: two calls were answered, one of them with an error.
fn later() -> ModelRequest {
    let mut request = first();
    let call = |id: &str| PastCall {
        id: id.to_owned(),
        name: "files_grep".to_owned(),
        args: json(r#"{"pattern":"fn"}"#),
    };
    let answer = |id: &str, error, text: &str| CallResult {
        id: id.to_owned(),
        name: "files_grep".to_owned(),
        error,
        text: text.to_owned(),
    };
    request.messages.push(Arc::new(Message::Assistant { text: None, calls: vec![call("a"), call("b")] }));
    request.messages.push(Arc::new(Message::Results(vec![
        answer("a", false, r#"{"files":[{"path":"a.rs","lines":3},{"path":"b.rs","lines":4}]}"#),
        answer("b", true, "no such folder"),
    ])));
    request.step = 2;
    request
}

fn json(text: &str) -> Json {
    Json(Bytes::from(text.as_bytes()))
}
