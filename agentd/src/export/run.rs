//! One transcript as what happened when: its processes, and the model and tool calls of each.

use crate::sessions::Teller;
use agentd_core::time::Wall;
use agentd_core::transcript::{AgentEvent, Entry, Item, ItemCall, Record, SessionMeta};
use agentd_core::wire::message::TurnOutcome;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;

/// One process of a run; those that share a span are one.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) head: SessionMeta,
    pub(super) began: Wall,
    /// When the last line was written.
    pub(super) last: Wall,
    pub(super) turns: u64,
    /// A turn is in hand.
    pub(super) in_turn: bool,
    /// How the last turn ended.
    pub(super) outcome: Option<TurnOutcome>,
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cached: u64,
    pub(super) estimated: bool,
    pub(super) compacted: bool,
    pub(super) chats: Vec<Chat>,
    pub(super) calls: Vec<ToolCall>,
    /// What was asked and what was answered, in order.
    pub(super) said: Vec<(&'static str, String)>,
}

/// A model call.
#[derive(Debug)]
pub(super) struct Chat {
    pub(super) ended: Wall,
    pub(super) took_ms: u64,
    pub(super) fields: BTreeMap<String, String>,
}

/// A tool call.
#[derive(Debug)]
pub(super) struct ToolCall {
    pub(super) id: String,
    pub(super) began: Wall,
    /// When its result came; none did where this is absent.
    pub(super) ended: Option<Wall>,
    /// The registry's name, or the wire's while it is not known.
    pub(super) name: String,
    pub(super) error: bool,
    pub(super) args: Value,
    pub(super) result: Option<String>,
}

/// Takes a transcript's lines.
#[derive(Debug, Default)]
pub(super) struct Reader {
    processes: Vec<Process>,
}

impl Teller for Reader {
    fn record(&mut self, record: &Record, _: &[u8]) -> io::Result<()> {
        let before = self.processes.last().map_or(Wall(0), |process| process.last);
        // A clock that was set back must not end a span before it began.
        let at = Wall::parse(&record.timestamp).unwrap_or(before);
        if let Entry::SessionMeta(head) = &record.entry {
            let same = self.processes.iter_mut().find(|process| process.head.span_id == head.span_id);
            match same {
                Some(process) => process.last = process.last.max(at),
                None => self.processes.push(Process::new(head.as_ref().clone(), at)),
            }
        }
        let Some(process) = self.processes.last_mut() else { return Ok(()) };
        process.last = process.last.max(at);
        match &record.entry {
            Entry::SessionMeta(_) => {}
            Entry::ResponseItem(item) => process.item(at, item),
            Entry::AgentEvent(event) => process.event(at, event),
        }
        Ok(())
    }
}

impl Reader {
    pub(super) fn finish(self) -> Vec<Process> {
        self.processes
    }
}

impl Process {
    fn new(head: SessionMeta, began: Wall) -> Process {
        Process {
            head,
            began,
            last: began,
            turns: 0,
            in_turn: false,
            outcome: None,
            input: 0,
            output: 0,
            cached: 0,
            estimated: false,
            compacted: false,
            chats: Vec::new(),
            calls: Vec::new(),
            said: Vec::new(),
        }
    }

    fn item(&mut self, at: Wall, item: &Item) {
        match item {
            Item::Context { .. } => {}
            Item::Turn { text, .. } => {
                self.turns += 1;
                (self.in_turn, self.outcome) = (true, None);
                self.said.push(("user", text.clone()));
            }
            Item::Told { text } => self.said.push(("user", text.clone())),
            Item::Assistant { text, calls, .. } => {
                // A process that goes on with a turn begins in the middle of it.
                self.in_turn = true;
                self.said.extend(text.clone().map(|text| ("assistant", text)));
                self.calls.extend(calls.iter().map(|call| ToolCall::begun(at, call)));
            }
            Item::ToolResult(result) => {
                if let Some(call) = self.open_call(&result.id) {
                    (call.ended, call.error) = (Some(at), result.error);
                    call.result = Some(result.text.clone());
                }
            }
            Item::Compacted { .. } => self.compacted = true,
            Item::Ended { outcome, .. } => (self.in_turn, self.outcome) = (false, Some(outcome.clone())),
        }
    }

    fn event(&mut self, at: Wall, event: &AgentEvent) {
        let number = |key: &str| event.fields.get(key).and_then(Value::as_u64).unwrap_or(0);
        let text = |key: &str| event.fields.get(key).and_then(Value::as_str).map(str::to_owned);
        match event.event.as_str() {
            "usage" => {
                self.input = self.input.saturating_add(number("input"));
                self.output = self.output.saturating_add(number("output"));
                self.cached = self.cached.saturating_add(number("cached"));
                self.estimated |= event.fields.get("estimated").and_then(Value::as_bool).unwrap_or(false);
            }
            "model.call" => {
                let fields: BTreeMap<String, String> = event
                    .fields
                    .iter()
                    .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
                    .collect();
                let took_ms = fields.get("ms").and_then(|ms| ms.parse().ok()).unwrap_or(0);
                self.chats.push(Chat { ended: at, took_ms, fields });
            }
            "tool.call" => {
                let (id, name) = (text("call_id").unwrap_or_default(), text("name"));
                if let (Some(call), Some(name)) = (self.calls.iter_mut().rfind(|call| call.id == id), name) {
                    call.name = name;
                }
            }
            _ => {}
        }
    }

    fn open_call(&mut self, id: &str) -> Option<&mut ToolCall> {
        self.calls.iter_mut().rfind(|call| call.id == id && call.ended.is_none())
    }
}

impl ToolCall {
    fn begun(at: Wall, call: &ItemCall) -> ToolCall {
        ToolCall {
            id: call.id.clone(),
            began: at,
            ended: None,
            name: call.name.clone(),
            error: false,
            args: call.args.clone(),
            result: None,
        }
    }
}
