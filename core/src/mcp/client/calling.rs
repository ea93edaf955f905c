//! Calls: made, answered, asked back about, given up, lost.
//!
//! Owns the rule for an answer that was lost: what a server says is harmless to repeat is made once more, of anything else
//! the caller is told that nobody knows what came of it.

use super::{Asker, Client, Phase};
use crate::bytes::Json;
use crate::limits;
use crate::mcp::calls::{Ask, Call, Inputs};
use crate::mcp::elicit::{self, Reply};
use crate::mcp::http::{Broken, End};
use crate::mcp::jsonrpc::{Answer, object};
use crate::mcp::preview::preview;
use crate::mcp::resources::READ_TOOL;
use crate::mcp::{Outcome, Output, content, resources};
use crate::note::Level;
use crate::time::{Duration, Instant};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

impl Client {
    /// Calls a tool by the server's own name. `key` is the caller's and comes back in the one `CallDone`;
    /// a key that is still open is a caller's error and gets no second answer.
    pub fn call(&mut self, now: Instant, key: u64, tool: &str, args: &Json, timeout: Duration) {
        self.now = now;
        if self.calls.id_of(key).is_some() {
            let text = format!("call key {key} is open already; the second call was not made");
            return self.log(Level::Error, "mcp.call.duplicate", text);
        }
        if let Some(refusal) = self.refuses() {
            return self.answer(key, Outcome::failed(format!("{refusal}; nothing was called")));
        }
        let args = match args.parse() {
            Ok(Value::Object(args)) => args,
            Ok(_) => {
                return self
                    .answer(key, Outcome::failed("arguments must be a JSON object; nothing was called"));
            }
            Err(e) => {
                let text = format!("arguments are not JSON ({e}); nothing was called");
                return self.answer(key, Outcome::failed(text));
            }
        };
        match self.ask(tool, args) {
            Ok(ask) => self.make(Call::new(key, ask, now, timeout), None),
            Err(why) => self.answer(key, Outcome::failed(format!("{why}; nothing was read"))),
        }
    }

    fn ask(&self, tool: &str, args: Map<String, Value>) -> Result<Ask, String> {
        if !self.reads_resources || tool != READ_TOOL {
            return Ok(Ask::Tool { name: tool.to_owned(), args });
        }
        if let Some(other) = args.keys().find(|key| *key != "uri") {
            return Err(format!("{:?} is not a parameter of {READ_TOOL}; it takes uri", preview(other)));
        }
        match args.get("uri") {
            Some(Value::String(uri)) if !uri.is_empty() && uri.len() <= limits::MCP_URI_BYTES => {
                Ok(Ask::Resource { uri: uri.clone() })
            }
            Some(_) | None => Err(format!(
                "uri must be the address of a resource, a text of at most {} bytes",
                limits::MCP_URI_BYTES
            )),
        }
    }

    /// Makes a call under a new id, or keeps it until there is a session to make it in.
    pub(super) fn make(&mut self, mut call: Call, inputs: Option<Inputs>) {
        let id = self.next_id();
        call.parked = self.must_renew();
        if call.parked {
            call.inputs = inputs;
            return self.calls.open(id, call);
        }
        let ask = call.ask.clone();
        match self.send_call(id, &ask, inputs) {
            Ok(()) => self.calls.open(id, call),
            Err(why) => self.answer(call.key, Outcome::failed(format!("{why}; nothing was called"))),
        }
    }

    /// Gives a call up: the server is told, the call is answered with an error, a late answer is dropped. An
    /// unknown or answered key does nothing.
    pub fn cancel(&mut self, key: u64, reason: &str) {
        if let Some(id) = self.calls.id_of(key) {
            self.abandon(id, reason, |call| {
                format!(
                    "the call of `{}` was cancelled: {reason}; it may have had an effect",
                    call.ask.label()
                )
            });
        }
    }

    pub(super) fn expire_calls(&mut self) {
        for id in self.calls.due(self.now) {
            self.abandon(id, "timed out", Call::overdue);
        }
    }

    /// Drops an open call: tells the server, answers the caller. Over HTTP the stateless era has no other word for it
    /// than the end of the exchange.
    fn abandon(&mut self, id: u64, reason: &str, text: impl FnOnce(&Call) -> String) {
        let Some(call) = self.calls.take(id) else { return };
        let is_out = !call.parked && call.inputs.is_none();
        if is_out && !(self.is_stateless() && matches!(self.wire, super::Wire::Http(_))) {
            let params = json!({"requestId": id, "reason": preview(reason)});
            self.notify("notifications/cancelled", params);
        }
        self.shut(id);
        self.forget_questions(id);
        self.answer(call.key, Outcome::failed(text(&call)));
    }

    /// Why no call can be made now, if none can.
    fn refuses(&self) -> Option<String> {
        match &self.phase {
            Phase::Ready { .. } if self.calls.is_full() => {
                Some(format!("{} calls are open at this server; wait for one to end", limits::MCP_OPEN_CALLS))
            }
            Phase::Ready { .. } => None,
            Phase::Closed { why } => Some(format!("the server is gone: {why}")),
            Phase::New
            | Phase::Discovering { .. }
            | Phase::Initializing { .. }
            | Phase::Settling { .. }
            | Phase::Sniffing { .. }
            | Phase::Listing { .. } => Some("the server has not started yet".into()),
        }
    }

    /// The server's answer to an open call.
    pub(super) fn answered(&mut self, id: u64, answer: Answer<'_>) {
        self.shut(id);
        let Some(call) = self.calls.take(id) else { return };
        let outcome = match answer {
            Answer::Error(error) => {
                Outcome::failed(format!("the server answered `{}` with {error}", call.ask.label()))
            }
            Answer::Result(raw) => match object::<Typed<'_>>(raw.get()).ok().and_then(|typed| typed.kind) {
                Some(kind) if self.is_stateless() && kind == "input_required" => {
                    return self.asked_back(id, call, raw);
                }
                Some(kind) if self.is_stateless() && kind != "complete" => Outcome::failed(format!(
                    "the server answered `{}` with a result of type {:?}, which agentd does not know; it may have had an effect",
                    call.ask.label(),
                    preview(&kind)
                )),
                Some(_) | None => match &call.ask {
                    Ask::Tool { name, .. } => content::outcome(name, raw),
                    Ask::Resource { .. } => resources::outcome(raw),
                },
            },
        };
        self.answer(call.key, outcome);
    }

    /// The server wants to know something before it answers.
    fn asked_back(&mut self, id: u64, mut call: Call, raw: &RawValue) {
        let label = call.ask.label();
        let questions = match questions(raw) {
            Ok(questions) => questions,
            Err(why) => {
                return self.answer(
                    call.key,
                    Outcome::failed(format!("the server asked back about `{label}` {why}")),
                );
            }
        };
        call.rounds += 1;
        if call.rounds > limits::MCP_INPUT_ROUNDS {
            let text =
                format!("the server asked back about `{label}` more than {} times", limits::MCP_INPUT_ROUNDS);
            return self.answer(call.key, Outcome::failed(text));
        }
        let (asked, state) = questions;
        let responses = asked.iter().map(|(name, _)| (name.clone(), None)).collect();
        let inputs = Inputs { responses, state };
        if asked.is_empty() {
            return self.make(call, Some(inputs));
        }
        call.inputs = Some(inputs);
        self.calls.open(id, call);
        for (name, params) in asked {
            match params.as_deref().and_then(|params| elicit::read(Some(params))) {
                Some(question) if self.questions.len() < limits::MCP_ELICITATIONS => {
                    self.question(Asker::Call { id, name }, question);
                }
                Some(_) | None => self.input(id, name, Reply::Cancel.result()),
            }
        }
    }

    /// Puts a question to whoever answers for a person.
    pub(super) fn question(&mut self, asker: Asker, elicitation: elicit::Elicitation) {
        self.last_question += 1;
        self.questions.insert(self.last_question, asker);
        self.out.push_back(Output::Elicit { question: self.last_question, elicitation });
    }

    /// One of a call's questions is answered. With the last of them the call goes on.
    pub(super) fn input(&mut self, id: u64, name: String, answer: Value) {
        let Some(inputs) = self.calls.find(id).and_then(|call| call.inputs.as_mut()) else { return };
        inputs.responses.insert(name, Some(answer));
        if inputs.whole()
            && let Some(mut call) = self.calls.take(id)
        {
            let inputs = call.inputs.take();
            self.make(call, inputs);
        }
    }

    /// Nobody waits for the answers to what was asked about this call.
    fn forget_questions(&mut self, of: u64) {
        self.questions.retain(|_, asker| !matches!(asker, Asker::Call { id, .. } if *id == of));
    }

    /// The exchange of a request ended without its answer.
    pub(super) fn lost(&mut self, id: u64, end: &End) {
        if self.starts_with(id) {
            return self.start_lost(id, end);
        }
        if self.relists_with(id) {
            return self.relist_lost(end);
        }
        if self.renews_with(id) {
            return self.renewal_lost(&end.words());
        }
        if self.listening.is(id) {
            return self.unheard(&end.words());
        }
        match self.calls.find(id) {
            Some(call) if !call.parked && call.inputs.is_none() => {}
            Some(_) | None => return,
        }
        let Some(mut call) = self.calls.take(id) else { return };
        if let End::Refused { status: 404, session: Some(session), resumed, .. } = end
            && !self.is_stateless()
            && (*resumed || !call.again)
        {
            self.expired(*session);
            // One whose answer had begun may have been carried out.
            if !resumed {
                call.again = true;
                return self.make(call, None);
            }
        }
        let label = call.ask.label();
        let text = match end {
            End::Broken(Broken { reached: false, why }) => {
                format!("the server could not be reached for `{label}`: {why}; nothing was called")
            }
            End::Refused { status: ..=499, resumed: false, .. } => {
                format!("`{label}` was refused: {}", end.words())
            }
            End::Whole { .. } | End::Odd(_) | End::Broken(_) | End::Refused { .. }
                if !call.again && self.is_repeatable(&call.ask) =>
            {
                let text = format!(
                    "`{label}` is called once more, which its server says is harmless: {}",
                    end.words()
                );
                self.log(Level::Info, "mcp.call.repeated", text);
                call.again = true;
                return self.make(call, None);
            }
            End::Whole { .. } | End::Odd(_) | End::Broken(_) | End::Refused { .. } => format!(
                "the answer to `{label}` was lost ({}), so its outcome is unknown: it may have had an effect",
                end.words()
            ),
        };
        self.answer(call.key, Outcome::failed(text));
    }

    fn is_repeatable(&self, ask: &Ask) -> bool {
        match ask {
            Ask::Tool { name, .. } => self.traits.get(name).is_some_and(|traits| traits.repeatable),
            Ask::Resource { .. } => true,
        }
    }
}

/// What a result with questions in it asks, by the server's names for it, and what it wants back unchanged.
type Questions = (Vec<(String, Option<Box<RawValue>>)>, Option<String>);

/// The error follows "the server asked back about …".
fn questions(raw: &RawValue) -> Result<Questions, String> {
    let said: InputRequired<'_> = object(raw.get())
        .map_err(|e| format!("in a way that cannot be read ({e}): {}", preview(raw.get())))?;
    if said.input_requests.is_none() && said.request_state.is_none() {
        return Err("without saying what it wants".to_owned());
    }
    let asked = said.input_requests.unwrap_or_default();
    if asked.len() > limits::MCP_ELICITATIONS {
        return Err(format!("with more than {} questions", limits::MCP_ELICITATIONS));
    }
    let mut questions = Vec::new();
    for (name, raw) in asked {
        let question: Question<'_> = object(raw.get())
            .map_err(|e| format!("with a question that cannot be read ({e}): {}", preview(raw.get())))?;
        if question.method != "elicitation/create" {
            return Err(format!(
                "with a request of {:?}, which agentd does not serve",
                preview(&question.method)
            ));
        }
        questions.push((name, question.params.map(ToOwned::to_owned)));
    }
    Ok((questions, said.request_state))
}

#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(default, borrow, rename = "resultType")]
    kind: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InputRequired<'a> {
    #[serde(default, borrow)]
    input_requests: Option<BTreeMap<String, &'a RawValue>>,
    #[serde(default)]
    request_state: Option<String>,
}

#[derive(Deserialize)]
struct Question<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
}
