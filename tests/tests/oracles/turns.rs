//! Faults in what is said to a run, and in what its turns give.

use crate::tamper::{misquoted, persisted, tampered};
use agentd_core::action::Action;
use agentd_core::bytes::Json;
use agentd_core::record::Status;
use agentd_core::store::record_in;
use agentd_core::wire::Down;
use agentd_core::wire::message::{Cancel, Text, ToolResult};
use serde_json::{Value, json};

const TAKEN: &[&str] = &["what is taken is handed on"];
const ORDER: &[&str] = &["messages keep their order"];
const NEVER: &[&str] = &["a message has its turn or a word that it has none"];
const OWN: &[&str] = &["a turn's result goes to who awaits that message"];

/// An answer of a tool, changed.
fn answered(down: Down, change: impl FnOnce(&mut bool, &mut Value)) -> Vec<Down> {
    let Down::ToolResult(ToolResult { id, mut error, value }) = down else { return vec![down] };
    let mut value = value.parse().expect("an answer is JSON");
    change(&mut error, &mut value);
    vec![Down::ToolResult(ToolResult { id, error, value: Json::of(&value) })]
}

fn twice(down: Down, which: fn(&Down) -> bool) -> Vec<Down> {
    if which(&down) { vec![down.clone(), down] } else { vec![down] }
}

fn never(down: Down, which: fn(&Down) -> bool) -> Vec<Down> {
    if which(&down) { vec![] } else { vec![down] }
}

#[test]
fn what_was_taken_is_not_handed_on() {
    misquoted(|down| never(down, |d| matches!(d, Down::Message(_))), TAKEN);
    misquoted(|down| never(down, |d| matches!(d, Down::Steer(_))), TAKEN);
    misquoted(|down| never(down, |d| matches!(d, Down::Finish(_))), TAKEN);
    let other = |down| match down {
        Down::Message(text) => vec![Down::Message(Text { text: "script=0 token=z".into(), ..text })],
        down => vec![down],
    };
    misquoted(other, TAKEN);
}

#[test]
fn what_was_taken_is_handed_on_twice() {
    misquoted(|down| twice(down, |d| matches!(d, Down::Message(_))), &["one message is in hand at a time"]);
    misquoted(|down| twice(down, |d| matches!(d, Down::Steer(_))), ORDER);
}

#[test]
fn something_is_said_after_the_end() {
    let after = |down| match down {
        Down::Cancel(Cancel { turn: None, .. }) => {
            vec![down, Down::Steer(Text { id: 9_999, text: "late".into() })]
        }
        down => vec![down],
    };
    misquoted(after, &["nothing is said to a run that is decided"]);
    let message = |down| match down {
        Down::Cancel(Cancel { turn: None, .. }) => {
            vec![down, Down::Message(Text { id: 9_999, text: "late".into() })]
        }
        down => vec![down],
    };
    misquoted(message, &["nothing is said to a run that is decided"]);
}

#[test]
fn a_turn_that_nobody_took_back_is_cancelled() {
    let cancelled = |down| match down {
        Down::Message(Text { id, .. }) => {
            let cancel = Cancel { reason: "who knows".into(), turn: Some(id) };
            vec![down, Down::Cancel(cancel)]
        }
        down => vec![down],
    };
    misquoted(cancelled, &["only a turn that was taken back is cancelled"]);
}

#[test]
fn an_answer_that_miscounts_or_lies() {
    let miscounted = |down| {
        answered(down, |_, value| {
            if let Some(queued) = value["queued"].as_u64() {
                value["queued"] = json!(queued + 1);
            }
        })
    };
    misquoted(miscounted, &["an answer counts what waits"]);
    let refused = |down| {
        answered(down, |error, value| {
            if value["queued"].is_u64() {
                (*error, *value) = (true, json!({"error": {"gate": "handle", "message": "no"}}));
            }
        })
    };
    misquoted(refused, &["only who cannot be told is refused"]);
    let granted = |down| {
        answered(down, |error, value| {
            let message = value["error"]["message"].as_str().unwrap_or_default();
            if message.contains("takes no messages") {
                (*error, *value) = (false, json!({"message_id": 9_999, "queued": 1}));
            }
        })
    };
    misquoted(granted, &["who cannot be told is refused"]);
}

#[test]
fn a_turns_result_goes_astray() {
    let other = |down| {
        answered(down, |_, value| {
            if value["message_id"].is_u64() && value["result"].is_string() {
                value["result"] = json!("token=9.9");
            }
        })
    };
    misquoted(other, OWN);
    let number = |down| {
        answered(down, |_, value| {
            if let (Some(id), true) = (value["message_id"].as_u64(), value["result"].is_string()) {
                value["message_id"] = json!(id + 1);
            }
        })
    };
    misquoted(number, OWN);
    let lost = |down| {
        answered(down, |error, value| {
            if value["message_id"].is_u64() && value["result"].is_string() {
                (*error, *value) = (true, json!({"error": {"gate": "message", "message": "no"}}));
            }
        })
    };
    misquoted(lost, NEVER);
}

#[test]
fn messages_are_dropped_in_silence() {
    tampered(
        |_, out| {
            out.retain(|a| !matches!(a, Action::Note(note) if note.event == "subagent.messages_dropped"));
        },
        NEVER,
    );
    tampered(
        |_, out| {
            for action in out {
                if let Action::Note(note) = action
                    && note.event == "subagent.messages_dropped"
                {
                    note.fields.insert("messages".into(), json!([9_999]));
                }
            }
        },
        NEVER,
    );
}

#[test]
fn a_retirement_that_goes_wrong() {
    tampered(
        |_, out| {
            persisted(out, |r| {
                let turned = r.status == Status::Running && r.result.is_string();
                r.status = if turned { Status::Spawned } else { r.status };
            });
        },
        &["a live run does not go back"],
    );
    tampered(
        |_, out| {
            persisted(out, |r| {
                if r.status == Status::Completed && r.mode == agentd_core::wire::message::Mode::Warm {
                    r.result = "token=9.9".into();
                }
            });
        },
        &["an outcome has a cause"],
    );
    let forgotten = |down| {
        answered(down, |_, value| {
            if value["status"] == "retiring" {
                value["status"] = json!("running");
            }
        })
    };
    misquoted(forgotten, &["who cannot be told is refused"]);
}

#[test]
fn a_turns_sync_runs_go_on() {
    tampered(
        |_, out| {
            out.retain(|a| match a {
                Action::Persist { writes, .. } => {
                    let Some(record) = record_in(writes) else { return true };
                    record.error.as_deref() != Some("the run that waited for it has ended")
                }
                _ => true,
            });
        },
        &["a turn's sync runs end with it"],
    );
}
