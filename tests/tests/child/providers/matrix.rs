//! Why a model stopped, beside what it said, beside what became of the stream: what a run makes of it (S7.4, F02, F03).
//! Each cell goes through the dialect's reader and the loop, as in a child; nothing here is a process.
//!
//! | word | what the run does |
//! |---|---|
//! | answer, partial | ends with the text; it is not all of it |
//! | makes n | makes n calls |
//! | cut n | makes none of n calls, and tells the model that they were cut |
//! | told n | makes none of n calls, and tells the model what is wrong with them |
//! | again | asks once more |
//! | refused | ends as refused |
//! | failed | nothing of it is used: the attempt has failed |

use super::run;
use agentd_core::agent::{Input, Loop, Output, Terminal, Tool, ToolSource};
use agentd_core::bytes::Json;
use agentd_core::model::Message;
use agentd_core::model::api::Api;
use agentd_core::time::Instant;
use agentd_core::wire::message::{LoopEnd, ToolDecl};
use agentd_tests::model_server::{Answer, Speaks};
use serde_json::{Value, json};

const CONTENTS: [&str; 6] = ["nothing", "text", "call", "calls", "both", "half"];

fn content(name: &str) -> Answer {
    let call = |answer: Answer, id: &str| answer.call(id, "fake_echo", "{\"text\":\"x\"}");
    match name {
        "nothing" => Answer::text(""),
        "text" => Answer::text("said"),
        "call" => call(Answer::text(""), "a"),
        "calls" => call(call(Answer::text(""), "a"), "b"),
        "both" => call(Answer::text("said"), "a"),
        "half" => Answer::text("").call("a", "fake_echo", "{\"text\":\"ha"),
        other => panic!("{other}"),
    }
}

/// What a run does with an answer whose body is this.
fn outcome(speaks: Speaks, body: &str) -> String {
    let spawn = run(speaks, &["http://127.0.0.1:1/v1"]).spawn;
    let (api, _) = Api::of(&spawn.model.dialect).expect("a provider's");
    let mut reader = api.reader();
    reader.push(body.as_bytes());
    let Ok(reply) = reader.finish() else { return "failed".to_owned() };
    let schema = Json::of(&json!({"type": "object", "properties": {"text": {"type": "string"}}}));
    let decl = ToolDecl { name: "fake.echo".into(), description: String::new(), schema };
    let source = ToolSource::Server { server: "fake".into(), tool: "echo".into() };
    let mut machine = Loop::new(&spawn, vec![Tool { decl, source }], Vec::new(), None, Instant::ZERO);
    let mut out = Vec::new();
    machine.handle(Instant::ZERO, Input::Start, &mut out);
    let asked = |out: &[Output]| {
        let mut requests = out.iter().filter_map(|output| match output {
            Output::CallModel { call, request } => Some((*call, request.messages.clone())),
            _ => None,
        });
        requests.next_back()
    };
    let (call, before) = asked(&out).expect("the first call");
    out.clear();
    machine.handle(Instant::ZERO, Input::ModelReply { call, reply: Ok(reply) }, &mut out);
    let made = out.iter().filter(|output| matches!(output, Output::CallTool { .. })).count();
    if made > 0 {
        return format!("makes {made}");
    }
    let ended = out.iter().find_map(|output| match output {
        Output::Finish(Terminal::Result(result)) => Some(result),
        _ => None,
    });
    match (ended, asked(&out)) {
        (Some(result), _) if result.end == LoopEnd::Refused => "refused".to_owned(),
        (Some(result), _) if result.partial => "partial".to_owned(),
        (Some(_), _) => "answer".to_owned(),
        (None, Some((_, after))) if after.len() == before.len() => "again".to_owned(),
        (None, Some((_, after))) => match after.last().map(AsRef::as_ref) {
            Some(Message::Results(results)) => {
                let cut = results
                    .iter()
                    .all(|result| result.error && result.text.contains("was cut at its length limit"));
                format!("{} {}", if cut { "cut" } else { "told" }, results.len())
            }
            other => panic!("{other:?}"),
        },
        (None, None) => panic!("{out:?}"),
    }
}

/// The table of one dialect: a row for each reason to stop, as `body` makes the answer's body.
fn table(speaks: Speaks, reasons: &[Value], body: impl Fn(&Answer) -> String) -> String {
    let row = |name: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!("{cell:<9}")).collect();
        format!("{name:<20}{}\n", cells.trim_end())
    };
    let mut table = row("reason", &CONTENTS.map(str::to_owned));
    for reason in reasons {
        let cells = CONTENTS.map(|name| outcome(speaks, &body(&content(name).finish(reason.clone()))));
        table += &row(reason.as_str().unwrap_or("null"), &cells);
    }
    table
}

fn reasons(speaks: Speaks) -> Vec<Value> {
    let words: &[&str] = match speaks {
        Speaks::Openai => &["stop", "tool_calls", "function_call", "length", "content_filter", "weird", ""],
        Speaks::Responses => &["", "max_output_tokens", "content_filter", "weird"],
        Speaks::Anthropic => {
            &["end_turn", "tool_use", "stop_sequence", "pause_turn", "max_tokens", "refusal", "weird", ""]
        }
    };
    words.iter().map(|word| json!(word)).chain([Value::Null]).collect()
}

/// Of responses the first row, and the last, are of one that is completed: it has reasons only to be incomplete.
fn wanted(speaks: Speaks) -> &'static str {
    match speaks {
        Speaks::Openai => {
            "\
reason              nothing  text     call     calls    both     half
stop                again    answer   makes 1  makes 2  makes 1  told 1
tool_calls          again    answer   makes 1  makes 2  makes 1  told 1
function_call       again    answer   makes 1  makes 2  makes 1  told 1
length              again    partial  cut 1    cut 2    cut 1    cut 1
content_filter      refused  refused  refused  refused  refused  refused
weird               again    answer   makes 1  makes 2  makes 1  told 1
                    again    answer   makes 1  makes 2  makes 1  told 1
null                again    answer   makes 1  makes 2  makes 1  told 1
"
        }
        Speaks::Responses => {
            "\
reason              nothing  text     call     calls    both     half
                    again    answer   makes 1  makes 2  makes 1  told 1
max_output_tokens   again    partial  cut 1    cut 2    cut 1    cut 1
content_filter      refused  refused  refused  refused  refused  refused
weird               again    partial  cut 1    cut 2    cut 1    cut 1
null                again    answer   makes 1  makes 2  makes 1  told 1
"
        }
        Speaks::Anthropic => {
            "\
reason              nothing  text     call     calls    both     half
end_turn            again    answer   makes 1  makes 2  makes 1  told 1
tool_use            again    answer   makes 1  makes 2  makes 1  told 1
stop_sequence       again    answer   makes 1  makes 2  makes 1  told 1
pause_turn          again    answer   makes 1  makes 2  makes 1  told 1
max_tokens          again    partial  cut 1    cut 2    cut 1    cut 1
refusal             refused  refused  refused  refused  refused  refused
weird               again    answer   makes 1  makes 2  makes 1  told 1
                    again    answer   makes 1  makes 2  makes 1  told 1
null                again    answer   makes 1  makes 2  makes 1  told 1
"
        }
    }
}

/// A table in which every cell is this word.
fn all(word: &str, like: &str) -> String {
    let mut lines = like.lines();
    let head = lines.next().unwrap_or_default().to_owned() + "\n";
    lines.fold(head, |table, line| {
        let cells = CONTENTS.map(|_| format!("{word:<9}")).concat();
        table + &format!("{:<20}{}\n", line.get(..20).unwrap_or_default().trim_end(), cells.trim_end())
    })
}

#[test]
fn a_stream_that_is_whole() {
    for speaks in Speaks::ALL {
        let seen = table(speaks, &reasons(speaks), |answer| answer.stream(speaks));
        assert_eq!(seen, wanted(speaks), "{speaks:?}:\n{seen}");
    }
}

#[test]
fn an_answer_in_one_piece_means_the_same() {
    for speaks in Speaks::ALL {
        let seen = table(speaks, &reasons(speaks), |answer| answer.whole(speaks).to_string());
        // Input that is no JSON cannot be in one piece of it: messages carry it as a value.
        let want = match speaks {
            Speaks::Anthropic => wanted(speaks).replace("told 1", "makes 1"),
            Speaks::Openai | Speaks::Responses => wanted(speaks).to_owned(),
        };
        let lines = |table: &str| table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
        assert_eq!(lines(&seen), lines(&want), "{speaks:?}:\n{seen}");
    }
}

/// What becomes of a stream's events.
type Fault = fn(&mut Vec<String>);

#[test]
fn a_stream_that_breaks_is_nothing_whatever_came_before() {
    for speaks in Speaks::ALL {
        let faults: [(&str, Fault); 3] = [
            ("cut before its end", |events| events.truncate(events.len().saturating_sub(2))),
            ("an error after 200", |events| {
                events.truncate(events.len().saturating_sub(2));
                let error =
                    json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
                events.push(format!("data: {error}\n\n"));
            }),
            ("an event that is no JSON", |events| {
                events.truncate(events.len().saturating_sub(2));
                events.push("data: {\"choices\": [\n\n".to_owned());
            }),
        ];
        for (name, fault) in faults {
            let seen = table(speaks, &reasons(speaks), |answer| {
                let stream = answer.stream(speaks);
                let mut events: Vec<String> = stream.split_inclusive("\n\n").map(str::to_owned).collect();
                fault(&mut events);
                events.concat()
            });
            assert_eq!(seen, all("failed", wanted(speaks)), "{speaks:?}, {name}:\n{seen}");
        }
    }
}

/// Only chat completions have a second end: a finish reason and a body that ends properly. Where there is no reason,
/// nothing says that the model was done.
#[test]
fn a_stream_without_its_terminal_event() {
    for speaks in Speaks::ALL {
        let seen = table(speaks, &reasons(speaks), |answer| {
            let stream = answer.stream(speaks);
            let events: Vec<&str> = stream.split_inclusive("\n\n").collect();
            events[..events.len() - 1].concat()
        });
        let failed = all("failed", wanted(speaks));
        let want: String = match speaks {
            Speaks::Openai => {
                let has_reason = |line: &&str| !line.starts_with("   ") && !line.starts_with("null");
                let rows = wanted(speaks).lines().zip(failed.lines()).enumerate();
                let row = |(nth, (whole, failed))| {
                    let ends = nth == 0 || has_reason(&whole);
                    format!("{}\n", if ends { whole } else { failed })
                };
                rows.map(row).collect()
            }
            Speaks::Responses | Speaks::Anthropic => failed,
        };
        assert_eq!(seen, want, "{speaks:?}:\n{seen}");
    }
}
