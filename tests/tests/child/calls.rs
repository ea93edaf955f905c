//! What reaches a server of the calls a model makes, good and bad (S7.3, S7.4, F02, F03, F16, F17).

use crate::rig::{FAKE, Rig, Run};
use serde_json::{Value, json};

/// The arguments that a server was called with when the model makes these calls in one reply, and what the model
/// reads of each.
fn called(finish: Option<&str>, calls: &Value) -> (Vec<Value>, Vec<Value>) {
    let log = tempfile::NamedTempFile::new().expect("a file");
    let path = log.path().to_str().expect("text");
    let mut reply = json!({"text": "trying", "tool_calls": calls});
    if let Some(finish) = finish {
        reply["finish"] = json!(finish);
    }
    let rules = json!([
        {"turn": 1, "reply": reply},
        {"reply": {"text": {"$for": "results", "$as": "r", "$each": {"error": "{{ r.error }}", "text": "{{ r.text }}"}}}}
    ]);
    let run = Run::new(rules).program("s", &[FAKE, "--log", path]);
    let mut rig = Rig::start(run.change(|spawn| spawn.tools = Some(vec!["s.echo".into()])));
    let read: Value = serde_json::from_str(&rig.completed()).expect("a list");
    assert!(rig.end().0.success());
    let sent = std::fs::read_to_string(path).expect("the log");
    let calls = sent.lines().filter_map(|line| {
        let at = line.find('{')?;
        let message: Value = serde_json::from_str(&line[at..]).ok()?;
        (message["method"] == "tools/call").then(|| message["params"]["arguments"].clone())
    });
    (calls.collect(), read.as_array().expect("a list").clone())
}

#[test]
fn nothing_of_a_cut_reply_reaches_a_server() {
    for arguments in ["{\"text\": \"cu", "{}", "{\"other\": 1}", "{\"text\": \"whole\"}"] {
        let calls =
            json!([{"name": "s_echo", "arguments": arguments}, {"name": "s_echo", "args": {"text": "x"}}]);
        let (sent, read) = called(Some("length"), &calls);
        assert_eq!(sent, Vec::<Value>::new(), "{arguments}");
        assert_eq!(read.len(), 2);
        for result in read {
            assert!(result["text"].as_str().expect("text").contains("cut at its length limit"), "{result}");
        }
    }
    // Cut, whatever the reason says: the half of it is told, the whole one is made.
    let calls = json!([{"name": "s_echo", "arguments": "{\"text\": \"cu"}, {"name": "s_echo", "args": {"text": "x"}}]);
    let (sent, read) = called(Some("tool_calls"), &calls);
    assert_eq!(sent, [json!({"text": "x"})]);
    assert!(read[0]["text"].as_str().expect("text").contains("cut or never finished"), "{read:?}");
    assert_eq!(read[1], json!({"error": false, "text": "x"}));
}

#[test]
fn whole_calls_are_made_whatever_the_finish_reason() {
    let calls = json!([{"name": "s_echo", "args": {"text": "1"}}, {"name": "s_echo", "args": {"text": "2"}}]);
    for finish in ["stop", "tool_calls", "function_call", "missing", "weird"] {
        let (sent, read) = called(Some(finish), &calls);
        assert_eq!(sent, [json!({"text": "1"}), json!({"text": "2"})], "{finish}");
        assert_eq!(read, [json!({"error": false, "text": "1"}), json!({"error": false, "text": "2"})]);
    }
}

#[test]
fn bad_calls_are_told_in_order_and_the_good_one_among_them_is_made() {
    let long = "n".repeat(10_000);
    let megabytes = format!("{{\"text\": \"{}\"}}", "x".repeat(2 * 1024 * 1024));
    let deep = format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    let calls = json!([
        {"name": "unknown"},
        {"name": "s_fail", "args": {"text": "x"}},
        {"name": long},
        {"name": "\u{1b}[2J\u{0}"},
        {"name": "s_echo", "arguments": "{"},
        {"name": "s_echo", "arguments": "[]"},
        {"name": "s_echo", "arguments": "\"x\""},
        {"name": "s_echo", "args": {"text": "good"}},
        {"name": "s_echo", "arguments": "null"},
        {"name": "s_echo", "arguments": megabytes},
        {"name": "s_echo", "arguments": deep},
        {"name": "s_echo", "arguments": "{\"text\": \"a\", \"text\": \"b\"}"},
        {"name": "s_echo", "arguments": "{\"text\": NaN}"}
    ]);
    let (sent, read) = called(None, &calls);
    assert_eq!(sent, [json!({"text": "good"})]);
    assert_eq!(read.len(), 13);
    for (index, result) in read.iter().enumerate() {
        let text = result["text"].as_str().expect("text");
        assert_eq!(result["error"], index != 7, "{index}: {text}");
        assert!(text.len() < 1_000 && !text.contains('\u{1b}'), "{index}: {text}");
    }
    let of = |index: usize| read[index]["text"].as_str().expect("text");
    assert_eq!(of(0).replace("unknown", "X"), of(1).replace("s_fail", "X"), "excluded reads as unknown");
}
