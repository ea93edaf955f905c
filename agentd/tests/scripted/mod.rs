//! Runs a playbook without processes: the agent loop, the scripted model, a function for the servers' tools, and
//! `subagent.run` as a run of its own.

use agentd::config::{Sources, load, render};
use agentd_core::agent::{Input, Loop, Output, Terminal, Tool, ToolOutcome, ToolSource, ToolValue};
use agentd_core::bytes::{Bytes, Json};
use agentd_core::distill::distill;
use agentd_core::model::mock::Playbook;
use agentd_core::time::Instant;
use agentd_core::wire::message::{
    Dialect, LoopEnd, Mode, Model, Role, RunLimits, Spawn, ToolDecl, Trace, VERSION,
};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs;

/// What a server tool answers: whether it is an error, and its value.
pub(crate) type Answer = (bool, Value);

/// The JSON of a playbook, read as agentd reads it: `mock:builtin`, or YAML text.
fn playbook(yaml: &str) -> Bytes {
    let folder = tempfile::tempdir().expect("a folder");
    let endpoint = if yaml == BUILTIN { yaml } else { "playbook.yaml" };
    fs::write(folder.path().join("playbook.yaml"), yaml).expect("a file");
    let text = format!("intelligence: {{dialect: mock, endpoints: [\"{endpoint}\"]}}\n");
    fs::write(folder.path().join("agentd.yaml"), text).expect("a file");
    let here = folder.path().to_owned();
    let sources = Sources { files: vec![here.join("agentd.yaml")], here, ..Sources::default() };
    match load(&sources).unwrap_or_else(|problems| panic!("{}", render(&problems))).config.model.model.dialect
    {
        Dialect::Mock(json) => json,
        other => panic!("not a playbook: {other:?}"),
    }
}

/// The playbook inside agentd.
pub(crate) const BUILTIN: &str = "mock:builtin";

/// A playbook and the tools of its only server.
pub(crate) struct Script<'t> {
    playbook: Playbook,
    tool_names: Vec<String>,
    tools: &'t dyn Fn(&str, &Value) -> Answer,
    /// Bytes of a result that enter the window.
    pub(crate) result_bytes: u64,
    /// Refuses the spawn of this number, counted from 0.
    pub(crate) refuse: Option<usize>,
    /// Arguments of every `subagent.run`.
    pub(crate) spawned: RefCell<Vec<Value>>,
    /// Every call of a server tool.
    pub(crate) called: RefCell<Vec<(String, Value)>>,
}

impl<'t> Script<'t> {
    pub(crate) fn new(
        yaml: &str,
        tool_names: &[&str],
        tools: &'t dyn Fn(&str, &Value) -> Answer,
    ) -> Script<'t> {
        Script {
            playbook: Playbook::from_json(&playbook(yaml)).unwrap_or_else(|error| panic!("{error}")),
            tool_names: tool_names.iter().map(|name| (*name).to_owned()).collect(),
            tools,
            result_bytes: 65_536,
            refuse: None,
            spawned: RefCell::default(),
            called: RefCell::default(),
        }
    }

    /// Runs a conversation to its answer.
    pub(crate) fn answer(&self, prompt: &str) -> String {
        match self.run(Role::Worker, prompt, None) {
            Terminal::Result(result) if result.end == LoopEnd::Completed => result.text.expect("an answer"),
            other => panic!("{other:?}"),
        }
    }

    /// Runs a conversation to its end.
    pub(crate) fn run(&self, role: Role, instruction: &str, tools: Option<Vec<String>>) -> Terminal {
        let spec = self.spec(role, instruction, tools);
        let mut machine = Loop::new(&spec, self.catalogue(role), Vec::new(), None, Instant::ZERO);
        let mut outputs = Vec::new();
        machine.handle(Instant::ZERO, Input::Start, &mut outputs);
        loop {
            let mut next = Vec::new();
            for output in std::mem::take(&mut outputs) {
                let input = match output {
                    Output::CallModel { call, request } => {
                        Input::ModelReply { call, reply: self.playbook.reply(&request, role).reply }
                    }
                    Output::CallTool { call, source, name, args, .. } => {
                        let (error, value) = self.call(&source, &name, &args.parse().expect("JSON"));
                        let value = match value {
                            Value::String(text) => ToolValue::Text(text),
                            value => ToolValue::Json(Json::of(&value)),
                        };
                        Input::ToolDone { call, outcome: ToolOutcome { error, value } }
                    }
                    Output::Finish(terminal) => return terminal,
                    Output::Turn(turn) => panic!("no run here is warm: {turn:?}"),
                    Output::Emit(_)
                    | Output::Record(_)
                    | Output::AbandonModel { .. }
                    | Output::UseModel { .. }
                    | Output::GoOnModel { .. }
                    | Output::AbandonTool { .. } => continue,
                };
                machine.handle(Instant::ZERO, input, &mut next);
            }
            assert!(!next.is_empty(), "the run stands still");
            outputs = next;
        }
    }

    fn call(&self, source: &ToolSource, name: &str, args: &Value) -> Answer {
        match source {
            ToolSource::Server { tool, .. } => {
                self.called.borrow_mut().push((tool.clone(), args.clone()));
                (self.tools)(tool, args)
            }
            ToolSource::Supervisor => {
                assert_eq!(name, "subagent.run");
                let number = self.spawned.borrow().len();
                self.spawned.borrow_mut().push(args.clone());
                if self.refuse == Some(number) {
                    let message = "8 of 8 subagents are running";
                    return (
                        true,
                        json!({"error": {"gate": "breadth", "message": message, "hint": "await one"}}),
                    );
                }
                let tools =
                    args.get("tools").map(|list| serde_json::from_value(list.clone()).expect("names"));
                let instruction = args["instruction"].as_str().expect("an instruction");
                self.delegated(number, self.run(Role::Subagent, instruction, tools))
            }
        }
    }

    /// What the supervisor makes of a subagent's end (S6.1).
    fn delegated(&self, number: usize, terminal: Terminal) -> Answer {
        let object = |status: &str, result: Value, error: Value| {
            json!({"handle": format!("sub-{}", number + 1), "status": status, "result": result, "error": error,
                   "partial": false, "attempt": 1})
        };
        match terminal {
            Terminal::Result(result) => {
                let value = result.text.as_deref().map_or(Value::Null, distill);
                (false, object("completed", value, Value::Null))
            }
            Terminal::Failed(failed) => (false, object("failed", Value::Null, failed.error.into())),
        }
    }

    fn catalogue(&self, role: Role) -> Vec<Tool> {
        let decl = |name: &str| ToolDecl {
            name: name.to_owned(),
            description: String::new(),
            schema: Json::of(&json!({"type": "object"})),
        };
        let mut tools: Vec<Tool> = self
            .tool_names
            .iter()
            .map(|name| Tool {
                decl: decl(name),
                source: ToolSource::Server { server: "files".to_owned(), tool: name.clone() },
            })
            .collect();
        if role == Role::Worker {
            tools.push(Tool { decl: decl("subagent.run"), source: ToolSource::Supervisor });
        }
        tools
    }

    fn spec(&self, role: Role, instruction: &str, tools: Option<Vec<String>>) -> Spawn {
        Spawn {
            v: VERSION,
            run_id: "01234567-89ab-7000-8000-000000000000".parse().expect("a run id"),
            handle: None,
            depth: u32::from(role == Role::Subagent),
            attempt: 1,
            role,
            mode: Mode::Sync,
            trace: Trace { trace_id: "0".repeat(32), span_id: "0".repeat(16), parent_span_id: None },
            system: String::new(),
            instruction: instruction.to_owned(),
            context: Vec::new(),
            output_schema: None,
            output_contract: None,
            servers: Vec::new(),
            tools,
            names: Vec::new(),
            own_tools: Vec::new(),
            model: Model { name: "scripted".to_owned(), dialect: Dialect::Mock(Bytes::default()) },
            limits: RunLimits {
                steps: 500,
                tokens: 2_000_000,
                deadline_ms: 3_600_000,
                repeats: 5,
                tool_result_bytes: self.result_bytes,
            },
            budget: None,
            log_level: "info".to_owned(),
            transcript: None,
        }
    }
}
