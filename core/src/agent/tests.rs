// A test picks the outputs it looks at.
#![allow(clippy::wildcard_enum_match_arm)]

use super::*;
use crate::bytes::{Bytes, Json};
use crate::id::RunId;
use crate::json::schema::Schema;
use crate::model::{Call, Finish, Message, ModelErrorKind, Partial, ReplyUsage};
use crate::time::Instant;
use crate::transcript::{self, Entry, ItemCall, ItemResult, Past, Reader, Said};
use crate::wire::message::{
    Begins, Dialect, Event, FailKind, LoopEnd, Mode, Model, Role, RunLimits, Spawn, State, ToolDecl, Trace,
    Transcript, Turn, TurnOutcome, Usage, VERSION, WaitingOn,
};
use std::sync::Arc;

mod calls;
mod compaction;
mod cutting;
mod endings;
mod finishing;
mod orders;
mod resuming;
mod schema;
mod steering;
mod swapping;
mod telling;
mod turns;

/// A loop and everything it asked for.
struct Run {
    machine: Loop,
    now: Instant,
    outputs: Vec<Output>,
}

impl Run {
    fn of(spec: &Spawn) -> Run {
        let mut offered = tools();
        offered.extend(
            spec.own_tools.iter().map(|decl| Tool { decl: decl.clone(), source: ToolSource::Supervisor }),
        );
        let schema = spec.output_schema.as_ref().map(|text| Schema::read(&text.0).unwrap());
        let machine = Loop::new(spec, offered, Vec::new(), schema, Instant::ZERO);
        let mut run = Run { machine, now: Instant::ZERO, outputs: Vec::new() };
        run.input(Input::Start);
        run
    }

    /// A run with the past that these lines tell.
    fn with_past(spec: &Spawn, items: &[Item]) -> Run {
        let past = Past { run: Some(spec.run_id), ..past_of(items) };
        let machine = Loop::new(spec, tools(), Vec::new(), None, Instant::ZERO).taking_up(past, spec);
        let mut run = Run { machine, now: Instant::ZERO, outputs: Vec::new() };
        run.input(Input::Start);
        run
    }

    /// What went to the transcript.
    fn recorded(&self) -> Vec<Item> {
        let items = self.outputs.iter().filter_map(|output| match output {
            Output::Record(item) => Some(item.as_ref().clone()),
            _ => None,
        });
        items.collect()
    }

    fn start() -> Run {
        Run::of(&spec())
    }

    fn input(&mut self, input: Input) {
        self.machine.handle(self.now, input, &mut self.outputs);
    }

    fn at(&mut self, ms: u64) -> &mut Run {
        self.now = Instant::from_millis(ms);
        self
    }

    /// Answers the model call in flight.
    fn reply(&mut self, reply: Reply) {
        let call = self.thinking().expect("a model call in flight");
        self.input(Input::ModelReply { call, reply: Ok(reply) });
    }

    /// Gives the tool call of this id its result.
    fn done(&mut self, id: &str, text: &str) {
        self.settle(id, false, text);
    }

    fn settle(&mut self, id: &str, error: bool, text: &str) {
        let call = self.number(id);
        let outcome = ToolOutcome { error, value: ToolValue::Text(text.to_owned()) };
        self.input(Input::ToolDone { call, outcome });
    }

    /// The number of the tool call of this id.
    fn number(&self, id: &str) -> u64 {
        let made = self.made();
        made.iter().find(|c| c.1 == id).unwrap_or_else(|| panic!("no call {id} in {made:?}")).0
    }

    /// Tool calls made so far: number, id, name, arguments.
    fn made(&self) -> Vec<(u64, String, String, String)> {
        let calls = self.outputs.iter().filter_map(|output| match output {
            Output::CallTool { call, call_id, name, args, .. } => {
                Some((*call, call_id.clone(), name.clone(), String::from_utf8_lossy(&args.0).into_owned()))
            }
            _ => None,
        });
        calls.collect()
    }

    /// Model requests so far, with their numbers.
    fn requests(&self) -> Vec<(u64, &ModelRequest)> {
        let requests = self.outputs.iter().filter_map(|output| match output {
            Output::CallModel { call, request } => Some((*call, request.as_ref())),
            _ => None,
        });
        requests.collect()
    }

    fn last_request(&self) -> &ModelRequest {
        self.requests().last().expect("a request").1
    }

    /// The number of the model call in flight.
    fn thinking(&self) -> Option<u64> {
        self.requests().last().map(|(call, _)| *call)
    }

    fn terminals(&self) -> Vec<&Terminal> {
        let terminals = self.outputs.iter().filter_map(|output| match output {
            Output::Finish(terminal) => Some(terminal),
            _ => None,
        });
        terminals.collect()
    }

    /// The result it ended with.
    fn result(&self) -> RunResult {
        match self.terminals().as_slice() {
            [Terminal::Result(result)] => result.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn failure(&self) -> Failed {
        match self.terminals().as_slice() {
            [Terminal::Failed(failed)] => failed.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn emitted(&self) -> impl Iterator<Item = &Up> {
        self.outputs.iter().filter_map(|output| match output {
            Output::Emit(up) => Some(up),
            _ => None,
        })
    }

    /// The turns that have ended.
    fn turns(&self) -> Vec<Turn> {
        let turns = self.outputs.iter().filter_map(|output| match output {
            Output::Turn(turn) => Some(turn.clone()),
            _ => None,
        });
        turns.collect()
    }

    /// The result of the turn that ended last.
    fn turn_result(&self) -> (u64, RunResult) {
        match self.turns().pop() {
            Some(Turn { id, outcome: TurnOutcome::Result(result) }) => (id, result),
            other => panic!("{other:?}"),
        }
    }

    fn acks(&self) -> Vec<u64> {
        let acks = self.emitted().filter_map(|up| match up {
            Up::Ack(ack) => Some(ack.id),
            _ => None,
        });
        acks.collect()
    }

    fn message(&mut self, id: u64, text: &str) {
        self.input(Input::Message { id, text: text.to_owned() });
    }

    fn steer(&mut self, id: u64, text: &str) {
        self.input(Input::Steer { id, text: text.to_owned() });
    }

    /// What the model is told in the last request, oldest first: who and the text, calls by their ids.
    fn told(&self) -> Vec<String> {
        let told = self.last_request().messages.iter().map(|message| match message.as_ref() {
            Message::User(text) => format!("user: {text}"),
            Message::Assistant { text, calls } => {
                let ids: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
                format!("assistant: {}{}", text.as_deref().unwrap_or_default(), ids.join(" "))
            }
            Message::Results(results) => {
                let texts: Vec<&str> = results.iter().map(|result| result.text.as_str()).collect();
                format!("results: {}", texts.join(" "))
            }
        });
        told.collect()
    }

    fn waits(&self) -> Option<WaitingOn> {
        self.states().pop().map(|state| state.waiting_on)
    }

    fn states(&self) -> Vec<State> {
        let states = self.emitted().filter_map(|up| match up {
            Up::State(state) => Some(state.clone()),
            _ => None,
        });
        states.collect()
    }

    fn usages(&self) -> Vec<Usage> {
        let usages = self.emitted().filter_map(|up| match up {
            Up::Usage(usage) => Some(usage.clone()),
            _ => None,
        });
        usages.collect()
    }

    fn events(&self, name: &str) -> Vec<&Event> {
        let events = self.emitted().filter_map(|up| match up {
            Up::Event(event) if event.name == name => Some(event),
            _ => None,
        });
        events.collect()
    }

    /// Results in the history, in order: id, is an error, text.
    fn results(&self) -> Vec<(String, bool, String)> {
        let results = self.machine.history().iter().filter_map(|message| match message.as_ref() {
            Message::Results(results) => Some(results.clone()),
            _ => None,
        });
        results.flatten().map(|r| (r.id, r.error, r.text)).collect()
    }

    fn is_over(&self) -> bool {
        !self.terminals().is_empty()
    }
}

fn warm() -> Spawn {
    Spawn { mode: Mode::Warm, ..spec() }
}

fn spec() -> Spawn {
    Spawn {
        v: VERSION,
        run_id: "01234567-89ab-7000-8000-000000000000".parse::<RunId>().unwrap(),
        handle: None,
        depth: 0,
        attempt: 1,
        role: Role::Worker,
        mode: Mode::Sync,
        trace: Trace { trace_id: "0".repeat(32), span_id: "0".repeat(16), parent_span_id: None },
        system: String::new(),
        instruction: "do it".to_owned(),
        context: Vec::new(),
        output_schema: None,
        output_contract: None,
        servers: Vec::new(),
        tools: None,
        names: Vec::new(),
        own_tools: Vec::new(),
        model: Model { name: "m".to_owned(), dialect: Dialect::Mock(Bytes::default()) },
        limits: RunLimits {
            steps: 50,
            tokens: 1_000_000,
            deadline_ms: 60_000,
            repeats: 5,
            tool_result_bytes: 65_536,
        },
        budget: None,
        log_level: "info".to_owned(),
        transcript: None,
    }
}

/// With a transcript, which the rig keeps.
fn recorded(spec: Spawn, begins: Begins) -> Spawn {
    let transcript = Transcript {
        path: "/t".to_owned(),
        agent_type: "general-purpose".to_owned(),
        tool_call_id: None,
        parent: None,
        session: spec.run_id,
        turn: 1,
        begins,
    };
    Spawn { transcript: Some(transcript), ..spec }
}

/// What a transcript of these lines is read as.
fn past_of(items: &[Item]) -> Past {
    let mut reader = Reader::default();
    for item in items {
        let line = transcript::line(crate::time::Wall(0), &Entry::ResponseItem(item.clone()));
        reader.take(line.strip_suffix(b"\n").expect("a line"));
    }
    reader.finish()
}

/// The history as it is read back.
fn said_by(messages: &[Arc<Message>]) -> Vec<Said> {
    let said = messages.iter().map(|message| match message.as_ref() {
        Message::User(text) => Said::User(text.clone()),
        Message::Assistant { text, calls } => {
            let calls = calls.iter().map(|call| ItemCall {
                id: call.id.clone(),
                name: call.name.clone(),
                args: call.args.parse().expect("an object"),
            });
            Said::Assistant { text: text.clone(), calls: calls.collect() }
        }
        Message::Results(results) => Said::Results(
            results
                .iter()
                .map(|r| ItemResult {
                    id: r.id.clone(),
                    name: r.name.clone(),
                    error: r.error,
                    text: r.text.clone(),
                })
                .collect(),
        ),
    });
    said.collect()
}

/// `files.read` and `web.get` of two servers, `subagent.run` and `subagent.await` of the supervisor.
fn tools() -> Vec<Tool> {
    let decl = |name: &str| ToolDecl {
        name: name.to_owned(),
        description: "d".to_owned(),
        schema: Json(Bytes::from(b"{}".as_slice())),
    };
    let server = |server: &str, tool: &str| Tool {
        decl: decl(&format!("{server}.{tool}")),
        source: ToolSource::Server { server: server.to_owned(), tool: tool.to_owned() },
    };
    let own = |name: &str| Tool { decl: decl(name), source: ToolSource::Supervisor };
    vec![server("files", "read"), server("web", "get"), own("subagent.run"), own("subagent.await")]
}

/// A reply of text and calls (id, wire name, arguments).
fn said(text: &str, calls: &[(&str, &str, &str)], finish: Finish) -> Reply {
    let calls = calls.iter().map(|(id, name, args)| Call {
        id: (*id).to_owned(),
        name: (*name).to_owned(),
        args: (*args).to_owned(),
    });
    Reply {
        text: (!text.is_empty()).then(|| text.to_owned()),
        calls: calls.collect(),
        finish,
        usage: ReplyUsage { input: Some(10), output: Some(5), cached: None },
    }
}

fn answer(text: &str) -> Reply {
    said(text, &[], Finish::Stop)
}

fn calls(calls: &[(&str, &str, &str)]) -> Reply {
    said("", calls, Finish::ToolCalls)
}

/// Panics unless every call id is unique and answered exactly once, in order, right after its message.
fn assert_valid(messages: &[Arc<Message>]) {
    let mut seen = std::collections::BTreeSet::new();
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        match message.as_ref() {
            Message::Results(results) => {
                let ids: Vec<String> = results.iter().map(|r| r.id.clone()).collect();
                assert_eq!(ids, open, "{messages:#?}");
                open.clear();
                continue;
            }
            Message::Assistant { calls, text } => {
                assert!(open.is_empty(), "{messages:#?}");
                open = calls.iter().map(|c| c.id.clone()).collect();
                assert!(open.iter().all(|id| seen.insert(id.clone())), "{messages:#?}");
                assert!(text.is_some() || !calls.is_empty(), "{messages:#?}");
                for call in calls {
                    assert!(!call.id.is_empty() && !call.name.is_empty() && call.name.len() <= 64);
                    assert!(call.args.parse().unwrap().is_object());
                }
            }
            Message::User(_) => assert!(open.is_empty(), "{messages:#?}"),
        }
    }
    assert!(open.is_empty(), "{messages:#?}");
}
