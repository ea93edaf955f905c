//! Messages for the tests and the fuzzer: one of each type with every key set. Arbitrary ones are in `arbitrary`.

use super::message::*;
use super::{Down, Up};
use crate::bytes::{Bytes, Json};
use crate::id::{Handle, RunId};

#[cfg(test)]
pub(super) mod arbitrary;

fn run_id() -> RunId {
    "01939f3e-9a31-7c4b-8f00-0123456789ab".parse().expect("a run id")
}

pub(super) fn json(text: &str) -> Json {
    Json(Bytes::from(text.as_bytes()))
}

pub(super) fn spawn() -> Spawn {
    Spawn {
        v: VERSION,
        run_id: run_id(),
        handle: Some(Handle(7)),
        depth: 1,
        attempt: 1,
        role: Role::Subagent,
        mode: Mode::Sync,
        trace: Trace {
            trace_id: "4bf92f3577b34da6a3ce929d0e0e4736".into(),
            span_id: "00f067aa0ba902b7".into(),
            parent_span_id: Some("b7ad6b7169203331".into()),
        },
        system: "You count.".into(),
        instruction: "Count the lines of src.".into(),
        context: vec![ContextMessage { role: ContextRole::User, content: "Ünïcode \u{1F980}".into() }],
        output_contract: Some("one number".into()),
        output_schema: Some(json(r#"{"type":"integer"}"#)),
        servers: vec![stdio_server(), files_server()],
        tools: Some(vec!["files.*".into()]),
        names: vec![ToolName { server: "fs".into(), tool: "grep".into(), name: "files.grep".into() }],
        own_tools: vec![ToolDecl {
            name: "subagent.run".into(),
            description: "Delegates.".into(),
            schema: json(r#"{"type":"object"}"#),
        }],
        model: Model {
            name: "scripted".into(),
            dialect: Dialect::Mock(Bytes::from(b"rules: []".as_slice())),
        },
        limits: RunLimits {
            steps: 500,
            tokens: 2_000_000,
            deadline_ms: 3_600_000,
            repeats: 5,
            tool_result_bytes: 65_536,
        },
        budget: Some(CallBudget { degraded: None }),
        log_level: "info".into(),
        transcript: Some(Transcript {
            path: "/var/lib/agentd/sessions/2026/11/30/rollout-2026-11-30T19-18-29-x.jsonl".into(),
            agent_type: "general-purpose".into(),
            tool_call_id: Some("call_1".into()),
            parent: Some(RunId::NIL),
            session: RunId::NIL,
            turn: 1,
            begins: Begins::Again,
        }),
    }
}

fn stdio_server() -> Server {
    Server {
        name: "shell".into(),
        ns: None,
        transport: Transport::Stdio(Stdio {
            command: "npx".into(),
            args: vec!["-y".into(), "server".into()],
            env: [("TOKEN".to_owned(), "s3cret".to_owned())].into(),
            cwd: Some("/srv/work".into()),
        }),
        allow: None,
        exclude: vec!["rm*".into()],
        timeout_ms: 60_000,
        start_timeout_ms: 60_000,
        required: false,
    }
}

fn files_server() -> Server {
    Server {
        name: "fs".into(),
        ns: Some("files".into()),
        transport: Transport::Files(Files { root: "/srv/work".into(), write: false }),
        allow: Some(vec!["grep".into(), "read".into()]),
        exclude: vec![],
        timeout_ms: 1,
        start_timeout_ms: u64::MAX,
        required: true,
    }
}

/// One of each type, in the order of `Message::TYPES`.
pub(super) fn every_down() -> Vec<Down> {
    vec![
        Down::Spawn(Box::new(spawn())),
        Down::Ping(Ping { seq: 3 }),
        Down::Cancel(Cancel { reason: "operator".into(), turn: Some(2) }),
        Down::ToolResult(ToolResult { id: 9, error: true, value: json(r#""no""#) }),
        Down::Message(Text { id: 2, text: "And the tests?".into() }),
        Down::Steer(Text { id: 3, text: "Leave vendor out.".into() }),
        Down::Finish(Finish { reason: "time is short".into() }),
        Down::Pause(Pause {}),
        Down::Resume(Resume {}),
        Down::Throttle(Throttle { endpoint: "https://api.example/v1".into(), for_ms: 3_000 }),
        Down::BudgetGrant(BudgetGrant { id: 4, verdict: BudgetVerdict::Refused("none left".into()) }),
        Down::Model(Box::new(ModelSwap {
            id: 5,
            model: Some(spawn().model),
            budget: Some(CallBudget { degraded: None }),
            restart: true,
        })),
    ]
}

/// One of each type, in the order of `Message::TYPES`.
pub(super) fn every_up() -> Vec<Up> {
    let evidence = LoopEvidence { model_calls: 3, tool_calls: 2, tool_errors: 1 };
    vec![
        Up::Ready(Ready { v: VERSION }),
        Up::Pong(Pong { seq: 3 }),
        Up::Event(Event {
            level: "info".into(),
            name: "mcp.connect".into(),
            fields: [("server".to_owned(), "fs".to_owned())].into(),
        }),
        Up::State(State {
            waiting_on: WaitingOn::Tools(vec!["files.grep".into()]),
            step: 2,
            evidence: LoopEvidence { model_calls: 2, tool_calls: 1, tool_errors: 0 },
            in_flight: Some(7),
        }),
        Up::Usage(Usage { input: 1200, output: 80, cached: 1000, estimated: true, model: "scripted".into() }),
        Up::Tools(Tools { server: "fs".into(), tools: vec!["grep".into(), "read".into()] }),
        Up::ToolRequest(ToolRequest {
            id: 9,
            call_id: "call_1".into(),
            name: "subagent.run".into(),
            args: json(r#"{"instruction":"x"}"#),
        }),
        Up::Ack(Ack { id: 3 }),
        Up::ModelHealth(ModelHealth {
            endpoint: "https://api.example/v1".into(),
            health: Health::Limited,
            retry_after_ms: Some(3_000),
        }),
        Up::Turn(Turn { id: 2, outcome: TurnOutcome::Result(half()) }),
        Up::Result(half()),
        Up::Failed(Failed { kind: FailKind::Server, error: "fs is gone".into(), text: None, evidence }),
        Up::BudgetRequest(BudgetRequest { id: 4, input: 900, output: 4096 }),
    ]
}

fn half() -> RunResult {
    RunResult {
        end: LoopEnd::ExhaustedSteps,
        text: Some("half".into()),
        partial: true,
        error: Some("out of steps".into()),
        evidence: LoopEvidence { model_calls: 3, tool_calls: 2, tool_errors: 1 },
    }
}
