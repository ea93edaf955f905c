//! What happened as spans: names and attributes of the semantic conventions for generative AI, what is agentd's own
//! under `agentd.`.

use super::run::{Chat, Process, ToolCall};
use agentd_core::time::Wall;
use agentd_core::transcript::span;
use agentd_core::wire::message::{LoopEnd, TurnOutcome};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};

/// One request to a collector.
pub(super) fn request(spans: Vec<Span>) -> ExportTraceServiceRequest {
    let version = env!("CARGO_PKG_VERSION");
    let scope = InstrumentationScope {
        name: "agentd".to_owned(),
        version: version.to_owned(),
        ..InstrumentationScope::default()
    };
    let attributes = vec![text("service.name", "agentd"), text("service.version", version)];
    let resource = Resource { attributes, ..Resource::default() };
    let scope_spans = ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() };
    let resource_spans = ResourceSpans {
        resource: Some(resource),
        scope_spans: vec![scope_spans],
        ..ResourceSpans::default()
    };
    ExportTraceServiceRequest { resource_spans: vec![resource_spans] }
}

/// A process of a run, its model calls and its tool calls.
pub(super) fn of(process: &Process, content: bool) -> Vec<Span> {
    let mut spans = vec![run(process, content)];
    spans.extend((1..).zip(&process.chats).map(|(n, call)| chat(process, n, call)));
    spans.extend(process.calls.iter().map(|call| tool(process, call, content)));
    spans
}

fn run(process: &Process, content: bool) -> Span {
    let head = &process.head;
    let (how, status) = ending(process);
    let mut attributes = vec![
        text("gen_ai.operation.name", "invoke_agent"),
        text("gen_ai.agent.name", &head.meta.agent_type),
        text("gen_ai.agent.id", &head.run_id.to_string()),
        text("gen_ai.conversation.id", &head.meta.root_session_id.to_string()),
        text("gen_ai.request.model", &head.model),
        number("gen_ai.usage.input_tokens", process.input),
        number("gen_ai.usage.output_tokens", process.output),
        number("gen_ai.usage.cache_read.input_tokens", process.cached),
        flag("agentd.usage.estimated", process.estimated),
        text("agentd.status", how),
        number("agentd.attempt", u64::from(head.attempt)),
        number("agentd.depth", u64::from(head.meta.spawn_depth)),
        number("agentd.turns", process.turns),
    ];
    attributes.extend(head.handle.map(|handle| text("agentd.handle", &handle.to_string())));
    if process.compacted {
        attributes.push(flag("gen_ai.conversation.compacted", true));
    }
    if content {
        attributes.push(texts("agentd.input", said(process, "user")));
        attributes.push(texts("agentd.output", said(process, "assistant")));
    }
    let name = format!("invoke_agent {}", head.meta.agent_type);
    let parent = head.parent_span_id.as_deref().map(id).unwrap_or_default();
    let kind = SpanKind::Internal;
    Span {
        status,
        parent_span_id: parent,
        ..span(process, &head.span_id, name, kind, (process.began, process.last), attributes)
    }
}

/// What one side said, in order.
fn said<'p>(process: &'p Process, who: &'static str) -> impl Iterator<Item = &'p str> {
    process.said.iter().filter(move |(by, _)| *by == who).map(|(_, text)| text.as_str())
}

/// How it ended, and whether that is an error: a cancel is none, and of a run that never said so nothing is known.
fn ending(process: &Process) -> (&'static str, Option<Status>) {
    let error = |message: &str| Some(Status { message: message.to_owned(), code: StatusCode::Error.into() });
    match &process.outcome {
        _ if process.in_turn => ("unterminated", None),
        None => ("unterminated", None),
        Some(TurnOutcome::Failed(failed)) => ("failed", error(&failed.error)),
        Some(TurnOutcome::Result(result)) => {
            let why = result.error.as_deref().unwrap_or_default();
            match result.end {
                LoopEnd::Completed => {
                    ("completed", Some(Status { message: String::new(), code: StatusCode::Ok.into() }))
                }
                LoopEnd::Cancelled => ("cancelled", None),
                LoopEnd::Refused => ("refused", error(why)),
                LoopEnd::ExhaustedSteps => ("exhausted_steps", error(why)),
                LoopEnd::ExhaustedTokens => ("exhausted_tokens", error(why)),
                LoopEnd::Deadline => ("deadline", error(why)),
                LoopEnd::LoopDetected => ("loop_detected", error(why)),
            }
        }
    }
}

fn chat(process: &Process, n: u64, call: &Chat) -> Span {
    let field = |key: &str| call.fields.get(key).map(String::as_str);
    let model = &process.head.model;
    let mut attributes = vec![text("gen_ai.operation.name", "chat"), text("gen_ai.request.model", model)];
    let count = |key: &str| field(key).and_then(|n| n.parse().ok());
    attributes.extend(count("input").map(|n| number("gen_ai.usage.input_tokens", n)));
    attributes.extend(count("output").map(|n| number("gen_ai.usage.output_tokens", n)));
    attributes
        .extend(field("finish").map(|reason| texts("gen_ai.response.finish_reasons", [reason].into_iter())));
    attributes.extend(count("step").map(|n| number("agentd.step", n)));
    let mut status = None;
    if let Some(error) = field("error") {
        attributes.push(text("error.type", field("kind").unwrap_or("_OTHER")));
        status = Some(Status { message: error.to_owned(), code: StatusCode::Error.into() });
    }
    attributes.extend(field("abandoned").map(|why| text("agentd.abandoned", why)));
    let began = Wall(call.ended.0.saturating_sub(call.took_ms));
    let span_id = span::of_chat(&process.head.span_id, n);
    let times = (began, call.ended);
    Span {
        status,
        parent_span_id: id(&process.head.span_id),
        ..self::span(process, &span_id, format!("chat {model}"), SpanKind::Client, times, attributes)
    }
}

fn tool(process: &Process, call: &ToolCall, content: bool) -> Span {
    let mut attributes = vec![
        text("gen_ai.operation.name", "execute_tool"),
        text("gen_ai.tool.name", &call.name),
        text("gen_ai.tool.call.id", &call.id),
    ];
    let mut status = None;
    if call.ended.is_none() {
        attributes.push(text("agentd.status", "unterminated"));
    } else if call.error {
        attributes.push(text("error.type", "tool_error"));
        status = Some(Status { message: String::new(), code: StatusCode::Error.into() });
    }
    if content {
        attributes.push(text("gen_ai.tool.call.arguments", &call.args.to_string()));
        attributes.extend(call.result.as_deref().map(|result| text("gen_ai.tool.call.result", result)));
    }
    let span_id = span::of_call(&process.head.span_id, &call.id);
    let times = (call.began, call.ended.unwrap_or(process.last));
    Span {
        status,
        parent_span_id: id(&process.head.span_id),
        ..self::span(
            process,
            &span_id,
            format!("execute_tool {}", call.name),
            SpanKind::Internal,
            times,
            attributes,
        )
    }
}

fn span(
    process: &Process,
    span_id: &str,
    name: String,
    kind: SpanKind,
    (began, ended): (Wall, Wall),
    attributes: Vec<KeyValue>,
) -> Span {
    let nanos = |at: Wall| at.0.saturating_mul(1_000_000);
    Span {
        trace_id: id(&process.head.trace_id),
        span_id: id(span_id),
        name,
        kind: kind.into(),
        start_time_unix_nano: nanos(began),
        end_time_unix_nano: nanos(ended.max(began)),
        attributes,
        ..Span::default()
    }
}

/// The bytes of an id in hex; none of what is no id.
fn id(hex: &str) -> Vec<u8> {
    let byte = |at: usize| hex.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    (0..hex.len()).step_by(2).map(byte).collect::<Option<Vec<u8>>>().unwrap_or_default()
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

fn texts<'t>(key: &str, values: impl Iterator<Item = &'t str>) -> KeyValue {
    let values = values.map(|value| AnyValue { value: Some(Value::StringValue(value.to_owned())) }).collect();
    attribute(key, Value::ArrayValue(ArrayValue { values }))
}

fn number(key: &str, value: u64) -> KeyValue {
    attribute(key, Value::IntValue(i64::try_from(value).unwrap_or(i64::MAX)))
}

fn flag(key: &str, value: bool) -> KeyValue {
    attribute(key, Value::BoolValue(value))
}
