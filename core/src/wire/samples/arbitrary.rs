//! Any message, for properties.

use super::{run_id, spawn};
use crate::bytes::{Bytes, Json};
use crate::id::Handle;
use crate::wire::message::*;
use crate::wire::{Down, Up};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![4 => ".{0,12}", 1 => "x{300,900}"]
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(text(), 0..4)
}

fn blob() -> impl Strategy<Value = Bytes> {
    prop_oneof![4 => vec(any::<u8>(), 0..20), 1 => vec(any::<u8>(), 300..3000)].prop_map(Bytes::from)
}

/// Integers around every length that a head can have.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0u32..64, 0u64..3).prop_map(|(shift, less)| (1u64 << shift).wrapping_sub(less)),
        20u64..30,
    ]
}

fn small() -> impl Strategy<Value = u32> {
    number().prop_map(|n| u32::try_from(n & 0xffff_ffff).unwrap_or_default())
}

fn transport() -> impl Strategy<Value = Transport> {
    let stdio = (text(), texts(), btree_map(text(), text(), 0..4), option::of(text()))
        .prop_map(|(command, args, env, cwd)| Transport::Stdio(Stdio { command, args, env, cwd }));
    let files = (text(), any::<bool>()).prop_map(|(root, write)| Transport::Files(Files { root, write }));
    let http = (text(), btree_map(text(), text(), 0..4), option::of(text()))
        .prop_map(|(url, headers, ca)| Transport::Http(HttpServer { url, headers, ca }));
    prop_oneof![stdio, files, http]
}

fn server() -> impl Strategy<Value = Server> {
    let lists = (option::of(texts()), texts());
    (text(), option::of(text()), transport(), lists, (number(), number()), any::<bool>()).prop_map(
        |(name, ns, transport, (allow, exclude), (timeout_ms, start_timeout_ms), required)| Server {
            name,
            ns,
            transport,
            allow,
            exclude,
            timeout_ms,
            start_timeout_ms,
            required,
        },
    )
}

prop_compose! {
    fn any_spawn()(
        handle in option::of(number().prop_map(Handle)),
        (depth, attempt, minor) in (small(), small(), any::<u16>()),
        role in prop_oneof![Just(Role::Worker), Just(Role::Subagent)],
        mode in prop_oneof![Just(Mode::Sync), Just(Mode::Async), Just(Mode::Detached), Just(Mode::Warm)],
        (system, instruction, log_level) in (text(), text(), text()),
        context in vec((any::<bool>(), text()), 0..3),
        (output_contract, output_schema) in (option::of(text()), option::of(blob())),
        servers in vec(server(), 0..3),
        tools in option::of(texts()),
        names in vec((text(), text(), text()), 0..3),
        own_tools in vec((text(), text(), blob()), 0..3),
        dialect in dialect(),
        budget in option::of(option::of((text(), dialect()).prop_map(|(name, dialect)| Model { name, dialect }))),
        transcript in option::of((text(), text(), option::of(text()), any::<bool>(), begins()).prop_map(
            |(path, agent_type, tool_call_id, parent, begins)| Transcript {
                path, agent_type, tool_call_id, parent: parent.then(run_id), session: run_id(), turn: 1, begins,
            },
        )),
        (steps, tokens, deadline_ms, repeats, tool_result_bytes) in (small(), number(), number(), small(), number()),
    ) -> Spawn {
        let who = |user| if user { ContextRole::User } else { ContextRole::Assistant };
        Spawn {
            v: [1, minor],
            run_id: run_id(),
            handle,
            depth,
            attempt,
            role,
            mode,
            trace: spawn().trace,
            system,
            instruction,
            context: context.into_iter().map(|(u, content)| ContextMessage { role: who(u), content }).collect(),
            output_contract,
            output_schema: output_schema.map(Json),
            servers,
            tools,
            names: names.into_iter().map(|(server, tool, name)| ToolName { server, tool, name }).collect(),
            own_tools: own_tools
                .into_iter()
                .map(|(name, description, schema)| ToolDecl { name, description, schema: Json(schema) })
                .collect(),
            model: Model { name: "m".into(), dialect },
            limits: RunLimits { steps, tokens, deadline_ms, repeats, tool_result_bytes },
            budget: budget.map(|degraded| CallBudget { degraded }),
            log_level,
            transcript,
        }
    }
}

fn begins() -> impl Strategy<Value = Begins> {
    prop_oneof![Just(Begins::Anew), Just(Begins::Again), Just(Begins::After)]
}

fn dialect() -> impl Strategy<Value = Dialect> {
    let endpoint = (text(), option::of(text())).prop_map(|(url, token)| Endpoint { url, token });
    let parts =
        (text(), vec(endpoint, 1..3), btree_map(text(), text(), 0..3), number(), option::of(number()));
    let remote = parts.prop_map(|(model, endpoints, headers, timeout_ms, max_output)| Remote {
        model,
        endpoints,
        headers,
        timeout_ms,
        max_output,
    });
    prop_oneof![
        blob().prop_map(Dialect::Mock),
        (0..3, remote).prop_map(|(which, remote)| match which {
            0 => Dialect::Openai(remote),
            1 => Dialect::OpenaiResponses(remote),
            _ => Dialect::Anthropic(remote),
        }),
    ]
}

fn said() -> impl Strategy<Value = Text> {
    (number(), text()).prop_map(|(id, text)| Text { id, text })
}

/// Any message of the supervisor.
pub(in crate::wire) fn any_down() -> impl Strategy<Value = Down> {
    prop_oneof![
        any_spawn().prop_map(|spawn| Down::Spawn(Box::new(spawn))),
        number().prop_map(|seq| Down::Ping(Ping { seq })),
        (text(), option::of(number())).prop_map(|(reason, turn)| Down::Cancel(Cancel { reason, turn })),
        said().prop_map(Down::Message),
        said().prop_map(Down::Steer),
        text().prop_map(|reason| Down::Finish(Finish { reason })),
        Just(Down::Pause(Pause {})),
        Just(Down::Resume(Resume {})),
        (number(), any_verdict()).prop_map(|(id, verdict)| Down::BudgetGrant(BudgetGrant { id, verdict })),
        (text(), number()).prop_map(|(endpoint, for_ms)| Down::Throttle(Throttle { endpoint, for_ms })),
        (number(), any_spawn(), option::of(Just(())), any::<bool>()).prop_map(|(id, spawn, has, restart)| {
            let model = has.map(|()| spawn.model);
            Down::Model(Box::new(ModelSwap { id, model, budget: spawn.budget, restart }))
        }),
        (number(), any::<bool>(), blob()).prop_map(|(id, error, value)| Down::ToolResult(ToolResult {
            id,
            error,
            value: Json(value)
        })),
    ]
}

fn any_verdict() -> impl Strategy<Value = BudgetVerdict> {
    prop_oneof![
        Just(BudgetVerdict::Own),
        Just(BudgetVerdict::Degraded),
        text().prop_map(BudgetVerdict::Refused),
        text().prop_map(BudgetVerdict::Failed),
    ]
}

fn any_evidence() -> impl Strategy<Value = LoopEvidence> {
    (small(), small(), small()).prop_map(|(model_calls, tool_calls, tool_errors)| LoopEvidence {
        model_calls,
        tool_calls,
        tool_errors,
    })
}

fn any_waiting() -> impl Strategy<Value = WaitingOn> {
    prop_oneof![
        Just(WaitingOn::Servers),
        Just(WaitingOn::Model),
        texts().prop_map(WaitingOn::Tools),
        Just(WaitingOn::Supervisor),
        number().prop_map(WaitingOn::Throttled),
        Just(WaitingOn::Message),
        Just(WaitingOn::Paused),
        Just(WaitingOn::Budget),
        Just(WaitingOn::Closing),
    ]
}

fn any_end() -> impl Strategy<Value = LoopEnd> {
    prop_oneof![
        Just(LoopEnd::Completed),
        Just(LoopEnd::Cancelled),
        Just(LoopEnd::Refused),
        Just(LoopEnd::ExhaustedSteps),
        Just(LoopEnd::ExhaustedTokens),
        Just(LoopEnd::Deadline),
        Just(LoopEnd::LoopDetected),
    ]
}

fn any_kind() -> impl Strategy<Value = FailKind> {
    prop_oneof![
        Just(FailKind::Spawn),
        Just(FailKind::Server),
        Just(FailKind::Model),
        Just(FailKind::Reply),
        Just(FailKind::EmptyReply),
        Just(FailKind::Schema),
        Just(FailKind::Budget),
        Just(FailKind::Internal),
    ]
}

fn any_result() -> impl Strategy<Value = RunResult> {
    let parts = (any_end(), option::of(text()), any::<bool>(), option::of(text()), any_evidence());
    parts.prop_map(|(end, text, partial, error, evidence)| RunResult { end, text, partial, error, evidence })
}

fn any_failed() -> impl Strategy<Value = Failed> {
    (any_kind(), text(), option::of(text()), any_evidence())
        .prop_map(|(kind, error, text, evidence)| Failed { kind, error, text, evidence })
}

fn any_health() -> impl Strategy<Value = ModelHealth> {
    let health = prop_oneof![Just(Health::Answered), Just(Health::Failed), Just(Health::Limited)];
    (text(), health, option::of(number())).prop_map(|(endpoint, health, retry_after_ms)| ModelHealth {
        endpoint,
        health,
        retry_after_ms,
    })
}

/// Any message of a child.
pub(in crate::wire) fn any_up() -> impl Strategy<Value = Up> {
    let usage = (number(), number(), number(), any::<bool>(), text());
    prop_oneof![
        any::<u16>().prop_map(|minor| Up::Ready(Ready { v: [1, minor] })),
        number().prop_map(|seq| Up::Pong(Pong { seq })),
        (text(), text(), btree_map(text(), text(), 0..30))
            .prop_map(|(level, name, fields)| Up::Event(Event { level, name, fields })),
        (any_waiting(), small()).prop_map(|(waiting_on, step)| Up::State(State::of(waiting_on, step))),
        usage.prop_map(|(input, output, cached, estimated, model)| {
            Up::Usage(Usage { input, output, cached, estimated, model })
        }),
        (text(), vec(text(), 0..40)).prop_map(|(server, tools)| Up::Tools(Tools { server, tools })),
        (number(), text(), text(), blob()).prop_map(|(id, call_id, name, args)| {
            Up::ToolRequest(ToolRequest { id, call_id, name, args: Json(args) })
        }),
        number().prop_map(|id| Up::Ack(Ack { id })),
        any_health().prop_map(Up::ModelHealth),
        (number(), any_result()).prop_map(|(id, r)| Up::Turn(Turn { id, outcome: TurnOutcome::Result(r) })),
        (number(), any_failed()).prop_map(|(id, f)| Up::Turn(Turn { id, outcome: TurnOutcome::Failed(f) })),
        any_result().prop_map(Up::Result),
        any_failed().prop_map(Up::Failed),
    ]
}
