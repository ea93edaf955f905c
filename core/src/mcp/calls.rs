//! The calls that are open at one server, by request id. A call leaves the table exactly once, and whoever takes it
//! out answers it, or puts it in again under a new id: no id is used twice.

use super::preview::preview;
use crate::limits;
use crate::time::{Duration, Instant};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A call without its answer.
#[derive(Debug)]
pub(super) struct Call {
    /// The caller's name for it.
    pub(super) key: u64,
    /// What is asked.
    pub(super) ask: Ask,
    /// As it was asked for, for the message.
    pub(super) timeout: Duration,
    /// When it is given up.
    pub(super) due: Instant,
    /// Past this nothing moves `due`.
    latest: Instant,
    progressed: Option<Instant>,
    /// Times that the server asked for input.
    pub(super) rounds: u32,
    /// It was made once more already, after its answer was lost.
    pub(super) again: bool,
    /// It waits until there is a session to make it in.
    pub(super) parked: bool,
    /// What the server wants to know before it answers, while that is gathered.
    pub(super) inputs: Option<Inputs>,
}

/// What a call asks of the server.
#[derive(Debug, Clone)]
pub(super) enum Ask {
    /// Call this tool with these arguments.
    Tool { name: String, args: Map<String, Value> },
    /// Read the resource at this address.
    Resource { uri: String },
}

/// Answers to what a server asked in the middle of a call.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// By the server's names for its questions; `None` is not answered yet.
    pub(super) responses: BTreeMap<String, Option<Value>>,
    /// To be given back unchanged.
    pub(super) state: Option<String>,
}

impl Ask {
    /// The request's method.
    pub(super) fn method(&self) -> &'static str {
        match self {
            Ask::Tool { .. } => "tools/call",
            Ask::Resource { .. } => "resources/read",
        }
    }

    /// What it is called in a header.
    pub(super) fn name(&self) -> &str {
        match self {
            Ask::Tool { name, .. } => name,
            Ask::Resource { uri } => uri,
        }
    }

    /// What it is called in a sentence.
    pub(super) fn label(&self) -> String {
        preview(self.name())
    }

    /// The request's parameters.
    pub(super) fn params(&self) -> Map<String, Value> {
        let params = match self {
            Ask::Tool { name, args } => json!({"name": name, "arguments": args}),
            Ask::Resource { uri } => json!({"uri": uri}),
        };
        params.as_object().cloned().unwrap_or_default()
    }
}

impl Inputs {
    /// Whether every question is answered.
    pub(super) fn whole(&self) -> bool {
        self.responses.values().all(Option::is_some)
    }

    /// Adds them to the parameters of the call when it is made again.
    pub(super) fn add_to(self, params: &mut Map<String, Value>) {
        if !self.responses.is_empty() {
            let answers = self.responses.into_iter().filter_map(|(name, answer)| Some((name, answer?)));
            params.insert("inputResponses".into(), Value::Object(answers.collect()));
        }
        if let Some(state) = self.state {
            params.insert("requestState".into(), state.into());
        }
    }
}

impl Call {
    /// A call that is made now.
    pub(super) fn new(key: u64, ask: Ask, now: Instant, timeout: Duration) -> Call {
        Call {
            key,
            ask,
            timeout,
            due: now + timeout,
            latest: now + timeout.saturating_mul(limits::MCP_PROGRESS_STRETCH),
            progressed: None,
            rounds: 0,
            again: false,
            parked: false,
            inputs: None,
        }
    }
}

impl Call {
    /// That it was waited for long enough: words about the server.
    pub(super) fn overdue(&self) -> String {
        let (label, timeout) = (self.ask.label(), self.timeout);
        if self.progressed.is_none() {
            return format!(
                "the server did not answer `{label}` within {timeout:?}; the call was cancelled, but it may have had an effect"
            );
        }
        if self.due < self.latest {
            return format!(
                "the server did not answer `{label}` within {timeout:?} of its last sign of progress; the call was \
                 cancelled, but it may have had an effect"
            );
        }
        let most = timeout.saturating_mul(limits::MCP_PROGRESS_STRETCH);
        format!(
            "the server went on reporting progress on `{label}` and gave no answer; the call was ended after {most:?}, but it \
             may have had an effect"
        )
    }
}

/// The table.
#[derive(Debug, Default)]
pub(super) struct Calls(BTreeMap<u64, Call>);

impl Calls {
    /// Whether one more would pass [`limits::MCP_OPEN_CALLS`].
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= limits::MCP_OPEN_CALLS
    }

    /// Puts a call in under an id that was never used.
    pub(super) fn open(&mut self, id: u64, call: Call) {
        self.0.insert(id, call);
    }

    /// The call with this id.
    pub(super) fn find(&mut self, id: u64) -> Option<&mut Call> {
        self.0.get_mut(&id)
    }

    /// Takes the call with this id out.
    pub(super) fn take(&mut self, id: u64) -> Option<Call> {
        self.0.remove(&id)
    }

    /// Takes all out, oldest first.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Call> + use<> {
        std::mem::take(&mut self.0).into_values()
    }

    /// The id of the open call with this key.
    pub(super) fn id_of(&self, key: u64) -> Option<u64> {
        self.0.iter().find(|(_, call)| call.key == key).map(|(id, _)| *id)
    }

    /// The ids of the calls that are due by `now`, oldest first.
    pub(super) fn due(&self, now: Instant) -> Vec<u64> {
        self.0.iter().filter(|(_, call)| call.due <= now).map(|(id, _)| *id).collect()
    }

    /// The ids of the calls that wait for a session, oldest first.
    pub(super) fn parked(&self) -> Vec<u64> {
        self.0.iter().filter(|(_, call)| call.parked).map(|(id, _)| *id).collect()
    }

    /// When the first call is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.0.values().map(|call| call.due).min()
    }

    /// Notes a sign of life, which puts the call's time limit off. `None` when no such call is open; else whether it
    /// is time to pass it on, and for which key.
    pub(super) fn progress(&mut self, id: u64, now: Instant) -> Option<(u64, bool)> {
        let call = self.0.get_mut(&id)?;
        call.due = call.due.max((now + call.timeout).min(call.latest));
        let pass_on = call.progressed.is_none_or(|at| now.since(at) >= limits::MCP_PROGRESS_EVERY);
        if pass_on {
            call.progressed = Some(now);
        }
        Some((call.key, pass_on))
    }
}
