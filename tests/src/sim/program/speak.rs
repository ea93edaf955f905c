//! What a fake child says: its frames, the arguments of its calls, and bytes that are no frame.

use super::{Phase, Program};
use crate::sim::plan::{Answer, Flaw, ItemStatus, Mode, Rank, Rubbish};
use agentd_core::bytes::Json;
use agentd_core::event::Exit;
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::message::{
    Event, FailKind, Failed, LoopEnd, LoopEvidence, Pong, Ready, RunResult, State, ToolRequest, Usage,
    VERSION, WaitingOn,
};
use agentd_core::wire::{Encoder, Up};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The instruction of a run: which script it follows, and a token that nobody else has.
pub(crate) fn instruction(script: usize, token: &str) -> String {
    format!("script={script} token={token}")
}

/// Takes an instruction or a message apart again; `id` is the message's number. What tells the conversation of ended
/// runs is taken by the first script, under a token of its own.
pub(crate) fn read_instruction(text: &str, id: u64) -> Option<(usize, String)> {
    if text.starts_with("subagent") {
        return Some((0, format!("n{id}")));
    }
    let (script, token) = text.strip_prefix("script=")?.split_once(" token=")?;
    Some((script.parse().ok()?, token.to_owned()))
}

/// The token in a text.
pub(crate) fn token_of(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("token=")?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len());
    rest.get(..end)
}

pub(super) fn run_args(
    script: usize,
    token: &str,
    mode: Mode,
    delegate: bool,
    flaw: Option<Flaw>,
    rank: Rank,
) -> Value {
    let mut args = json!({"instruction": instruction(script, token), "mode": mode.name()});
    if delegate {
        args["delegate"] = json!(true);
    }
    match rank {
        Rank::Low => args["priority"] = json!("low"),
        Rank::Normal => {}
        Rank::High => args["priority"] = json!("high"),
    }
    match flaw {
        None => {}
        Some(Flaw::Empty) => args["instruction"] = json!(" "),
        Some(Flaw::Mode) => args["mode"] = json!("sideways"),
        Some(Flaw::Key) => args["speed"] = json!(11),
        Some(Flaw::Zero) => args["limits"] = json!({"steps": 0}),
        Some(Flaw::Server) => args["servers"] = json!(["nowhere"]),
        Some(Flaw::Depth) => args["depth"] = json!(0),
    }
    args
}

pub(super) fn await_args(handles: &[u64], any: bool, timeout_ms: Option<u64>, message: Option<u64>) -> Value {
    let mut args = match handles {
        [one] => json!({"handle": format!("sub-{one}")}),
        many => json!({"handles": many.iter().map(|n| format!("sub-{n}")).collect::<Vec<_>>()}),
    };
    if any {
        args["until"] = json!("any");
    }
    if let Some(ms) = timeout_ms {
        args["timeout"] = json!(format!("{ms}ms"));
    }
    if let Some(message) = message {
        args["message_id"] = json!(message);
    }
    args
}

pub(super) fn talk_args(handle: u64, token: &str) -> Value {
    json!({"handle": format!("sub-{handle}"), "text": instruction(0, token)})
}

pub(super) fn handle_args(handle: u64) -> Value {
    json!({"handle": format!("sub-{handle}")})
}

pub(super) fn kill_args(handle: u64, only: bool) -> Value {
    let mut args = json!({"handle": format!("sub-{handle}"), "reason": "the plan says so"});
    if only {
        args["only"] = json!(true);
    }
    args
}

pub(super) fn plan_args(items: u32) -> Value {
    let items: Vec<Value> = (1..=items).map(|i| json!({"title": format!("item {i}")})).collect();
    json!({"goal": "as the script says", "items": items})
}

pub(super) fn item_args(item: u32, bind: Option<u64>, status: Option<ItemStatus>) -> Value {
    let mut args = json!({"item": item});
    if let Some(handle) = bind {
        args["bind"] = json!(format!("sub-{handle}"));
    }
    if let Some(status) = status {
        args["status"] = json!(status.name());
    }
    args
}

/// How a result reads: its end, its text, which always holds the token, and its error.
pub(super) fn answer(token: &str, answer: Answer) -> (LoopEnd, String, Option<String>) {
    let line = format!("token={token}");
    match answer {
        Answer::Text => (LoopEnd::Completed, line, None),
        Answer::Object => (LoopEnd::Completed, json!({"said": line}).to_string(), None),
        Answer::Long => (LoopEnd::Completed, line + &" and more".repeat(1_000), None),
        Answer::Huge => {
            let value = json!({"said": line, "filler": "x".repeat(3 << 20)});
            (LoopEnd::Completed, value.to_string(), None)
        }
        Answer::Exhausted => (LoopEnd::ExhaustedSteps, line, Some("out of steps".into())),
        Answer::Refused => (LoopEnd::Refused, line, Some("the provider refused".into())),
    }
}

/// Lines on stderr, some of them no UTF-8, the last without its newline.
pub(super) fn muttering(lines: u32) -> Vec<u8> {
    let lines = (0..lines)
        .map(|i| [b"warning \xff ".as_slice(), "again ".repeat(i as usize % 900).as_bytes()].concat());
    lines.collect::<Vec<_>>().join(&b'\n')
}

impl Program {
    pub(super) fn send(&mut self, up: &Up) {
        if matches!(self.phase, Phase::Hung) {
            return;
        }
        match self.encoder.encode_up(up) {
            Ok(frame) => self.out.extend(frame),
            Err(_) => self.complain("a frame of its own that is too large".into()),
        }
    }

    pub(super) fn say_ready(&mut self) {
        self.send(&Up::Ready(Ready { v: VERSION }));
    }

    pub(super) fn pong(&mut self, seq: u64) {
        self.ponged = seq;
        self.send(&Up::Pong(Pong { seq }));
    }

    /// Says again what it said last.
    pub(super) fn parrot(&mut self, now: Instant) {
        let seq = self.ponged.max(1);
        self.send(&Up::Pong(Pong { seq }));
        self.phase = Phase::Parroting(now + Duration::from_millis(self.plan.knobs.ping_ms.div_ceil(2)));
    }

    pub(super) fn ask(&mut self, name: &str, call_id: &str, args: Value) {
        self.calls += 1;
        self.open.insert(self.calls);
        self.send(&Up::ToolRequest(ToolRequest {
            id: self.calls,
            call_id: format!("call-{call_id}"),
            name: name.into(),
            args: Json::of(&args),
        }));
    }

    pub(super) fn ask_about(&mut self, name: &str, step: usize, args: Value) {
        let id = self.call_token(step);
        self.ask(name, &id, args);
    }

    pub(super) fn progress(&mut self, i: u32) {
        let progress = match i % 3 {
            0 => Up::State(State::of(WaitingOn::Model, i)),
            // Who has to ask has made no call.
            1 if !self.model_calls.asks => Up::Usage(self.used_something()),
            _ => Up::Event(Event {
                level: "info".into(),
                name: "sim.progress".into(),
                fields: BTreeMap::new(),
            }),
        };
        self.send(&progress);
    }

    /// No two reports of a process are alike, so that a sum shows what it is made of.
    fn used_something(&mut self) -> Usage {
        self.used += 1;
        Usage {
            input: 10 + 7 * self.used,
            output: 3 + self.used,
            cached: self.used % 5,
            estimated: self.used.is_multiple_of(9),
            model: "sim".into(),
        }
    }

    /// A model call begins.
    pub(super) fn think(&mut self) {
        if self.model_calls.asks {
            return;
        }
        let in_flight = Some(25 + self.used);
        self.send(&Up::State(State { in_flight, ..State::of(WaitingOn::Model, 1) }));
    }

    pub(super) fn end_with(&mut self, end: LoopEnd, text: Option<String>, error: Option<String>) {
        self.ended = true;
        let partial = end != LoopEnd::Completed;
        let evidence = LoopEvidence { model_calls: 1, ..LoopEvidence::default() };
        self.send(&Up::Result(RunResult { end, text, partial, error, evidence }));
    }

    pub(super) fn fail(&mut self) {
        self.ended = true;
        let error = format!("the script of {} says so", self.token);
        let evidence = LoopEvidence::default();
        self.send(&Up::Failed(Failed { kind: FailKind::Internal, error, text: None, evidence }));
    }

    pub(super) fn rubbish(&mut self, what: Rubbish, now: Instant) {
        match what {
            Rubbish::Text => self.out.extend(b"Traceback (most recent call last):\n"),
            Rubbish::Zero => self.out.extend([0; 4]),
            Rubbish::Huge => self.out.extend([0xff; 4]),
            Rubbish::Gap => {
                let mut other = Encoder::new();
                let pong = Up::Pong(Pong { seq: 0 });
                let frames: Vec<Vec<u8>> = (0..2).filter_map(|_| other.encode_up(&pong).ok()).collect();
                // Numbers 1 and 2 again, when this program has sent at least its `ready`.
                self.out.extend(frames.concat());
            }
            Rubbish::SameId => {
                self.ask("subagent.list", "first", json!({}));
                self.calls -= 1;
                self.ask("subagent.list", "second", json!({}));
            }
            Rubbish::Cut => {
                self.out.extend([0, 0, 1, 0, 0xa3]);
                self.leave(now, Exit::Code(0));
            }
        }
    }
}
