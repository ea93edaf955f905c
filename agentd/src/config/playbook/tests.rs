use super::*;
use agentd_core::bytes::Json;
use agentd_core::model::{CallResult, Message, ModelRequest, PastCall, WireNames};
use agentd_core::wire::message::Role;
use serde_json::json;

fn place(text: &str, path: &str) -> (u32, u32) {
    let mut problems = Vec::new();
    let source = Source::file(Path::new("p.yaml"), 0, text.to_owned());
    let tree = yaml::parse(&source, &mut problems).expect("a tree");
    let place = place_of(&tree, path);
    (place.line, place.column)
}

#[test]
fn a_path_leads_back_to_its_line() {
    let text = "rules:\n  - match: {turn: 1}\n    reply:\n      text: hi\n      calls:\n        - {name: a.b, args: {a.b: 1, a: {b: 2}}}\n";
    assert_eq!(place(text, "rules[0].reply.text"), (4, 13));
    assert_eq!(place(text, "rules[0].match"), (2, 5));
    assert_eq!(place(text, "rules[0].reply.calls[0].args.a.b"), (6, 35));
    assert_eq!(place(text, "rules[0].reply.calls[7].name"), (5, 7));
    assert_eq!(place(text, "rules[0].nothing.here"), (2, 5));
    assert_eq!(place(text, ""), (1, 1));
    assert_eq!(place(text, "]][[.."), (1, 1));
}

#[test]
fn the_playbook_inside_agentd_has_no_problems() {
    let mut problems = Vec::new();
    let json = builtin(&mut problems);
    assert!(problems.is_empty(), "{}", super::super::problem::render(&problems));
    assert!(json.is_some());
}

/// A run of the playbook inside agentd: what it said and called last.
struct Play {
    playbook: Playbook,
    role: Role,
    messages: Vec<Arc<Message>>,
    step: u32,
}

impl Play {
    fn new(role: Role, prompt: &str) -> Play {
        let json = builtin(&mut Vec::new()).expect("no problems");
        let playbook = Playbook::from_json(&json).expect("no problems");
        Play { playbook, role, messages: vec![Arc::new(Message::User(prompt.to_owned()))], step: 0 }
    }

    /// The next reply: its text and its calls' names and arguments.
    fn reply(&mut self) -> (String, Vec<(String, serde_json::Value)>) {
        self.step += 1;
        let request = ModelRequest {
            model: "mock".into(),
            system: String::new(),
            messages: self.messages.clone(),
            context: 0,
            tools: Vec::new().into(),
            names: Arc::new(WireNames::new([])),
            step: self.step,
            tokens_left: 1_000_000,
        };
        let reply = self.playbook.reply(&request, self.role).reply.expect("a reply");
        let past = |(n, call): (usize, &agentd_core::model::Call)| PastCall {
            id: format!("{n}"),
            name: call.name.clone(),
            args: Json::of(&serde_json::from_str(&call.args).expect("JSON")),
        };
        let calls: Vec<PastCall> = reply.calls.iter().enumerate().map(past).collect();
        let seen = calls.iter().map(|c| (c.name.clone(), c.args.parse().expect("JSON"))).collect();
        self.messages.push(Arc::new(Message::Assistant { text: reply.text.clone(), calls }));
        (reply.text.unwrap_or_default(), seen)
    }

    fn results(&mut self, results: &[(bool, serde_json::Value)]) {
        let answer = |(n, (error, value)): (usize, &(bool, serde_json::Value))| CallResult {
            id: format!("{n}"),
            name: String::new(),
            error: *error,
            text: value.as_str().map_or_else(|| value.to_string(), str::to_owned),
        };
        self.messages.push(Arc::new(Message::Results(results.iter().enumerate().map(answer).collect())));
    }
}

const PROMPT: &str = r#"Count the lines that hold "TO\"DO" in every part of this folder."#;

fn entries(names: &[(&str, &str)]) -> serde_json::Value {
    let entry = |(name, kind): &(&str, &str)| json!({"name": name, "kind": kind, "bytes": 1});
    json!({"path": ".", "entries": names.iter().map(entry).collect::<Vec<_>>(), "truncated": false})
}

#[test]
fn the_demo_shares_a_folder_out_and_adds_up() {
    let mut play = Play::new(Role::Worker, PROMPT);
    assert_eq!(play.reply().1, [("list".to_owned(), json!({"path": "."}))]);
    play.results(&[(false, entries(&[(".git", "dir"), ("a b", "dir"), ("c\"d", "file"), ("link", "link")]))]);
    let (_, calls) = play.reply();
    let instructions: Vec<&str> = calls.iter().filter_map(|(_, args)| args["instruction"].as_str()).collect();
    assert_eq!(
        instructions,
        [
            r#"Count the lines that hold "TO\"DO" below ["a b"]"#,
            r#"Count the lines that hold "TO\"DO" below ["c\"d"]"#
        ]
    );
    let part = |path: &str, lines: u32| json!({"path": path, "lines": lines, "files": 1});
    play.results(&[
        (false, json!({"handle": "sub-1", "status": "completed", "result":
            {"lines": 7, "files": 1, "searched": 9, "parts": [part("a b", 7)], "unread": [{"path": "x", "why": "no"}]}})),
        (false, json!({"handle": "sub-2", "status": "failed", "result": null, "error": "exited"})),
    ]);
    let (text, calls) = play.reply();
    assert!(calls.is_empty());
    assert_eq!(
        text.trim_end(),
        "7 lines in 1 files hold \"TO\\\"DO\"; 9 files were searched by 1 subagents.\n  7 in a b\nnot counted: x: no\n\
         not counted: sub-2: exited"
    );
}

#[test]
fn the_demo_takes_a_folder_whole_when_its_parts_cannot_all_be_named() {
    let mut cut = entries(&[("a", "dir")]);
    cut["truncated"] = json!(true);
    for listed in [cut, entries(&[("a\u{fffd}", "file")]), json!("cut … text")] {
        let mut play = Play::new(Role::Worker, PROMPT);
        play.reply();
        play.results(&[(false, listed)]);
        let (_, calls) = play.reply();
        assert_eq!(calls.len(), 1, "{calls:?}");
        assert!(calls[0].1["instruction"].as_str().is_some_and(|text| text.ends_with(r#"below ["."]"#)));
    }
    let mut play = Play::new(Role::Worker, PROMPT);
    play.reply();
    play.results(&[(false, entries(&[(".git", "dir")]))]);
    assert!(play.reply().0.starts_with("0 lines"));
}

#[test]
fn a_subagent_of_the_demo_searches_a_hundred_parts_at_a_time() {
    let paths: Vec<String> = (0..250).map(|n| format!("p{n}")).collect();
    let instruction = format!(r#"Count the lines that hold "x" below {}"#, json!(paths));
    let mut play = Play::new(Role::Subagent, &instruction);
    for wanted in [100, 100, 50] {
        let (_, calls) = play.reply();
        assert_eq!(calls.len(), wanted);
        assert_eq!(calls[0].1["pattern"], "x");
        let found = json!({"files_searched": 2, "matching_files": 1, "matching_lines": 3});
        let mut results = vec![(false, found); wanted - 1];
        results.push((true, json!("no such file")));
        play.results(&results);
    }
    let (text, calls) = play.reply();
    assert!(calls.is_empty());
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        (&report["lines"], &report["files"], &report["searched"]),
        (&json!(741), &json!(247), &json!(494))
    );
    assert_eq!(report["parts"].as_array().map(Vec::len), Some(247));
    assert_eq!(report["unread"][0], json!({"path": "p99", "why": "no such file"}));
}

#[test]
fn another_prompt_is_told_what_this_is() {
    assert!(Play::new(Role::Worker, "Write a poem").reply().0.contains("not a model"));
}
