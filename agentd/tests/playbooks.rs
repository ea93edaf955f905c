//! The examples of `docs/playbooks.md` do what it says, and it leaves nothing out.

mod scripted;

use agentd_core::model::ModelErrorKind;
use agentd_core::model::mock::Playbook;
use scripted::{Answer, Script};
use serde_json::{Map, Value, json};

const DOCUMENT: &str = include_str!("../../docs/playbooks.md");

/// One `## Example` of the document.
struct Example {
    title: &'static str,
    playbook: &'static str,
    tools: Map<String, Value>,
    prompt: &'static str,
    answer: &'static str,
}

fn examples() -> Vec<Example> {
    let sections = DOCUMENT.split("\n## Example: ").skip(1);
    sections
        .map(|section| {
            let (_, asked) = section.split_once("sked `").expect("a prompt");
            Example {
                title: section.lines().next().expect("a title"),
                playbook: fenced(section, "yaml").expect("a playbook"),
                tools: fenced(section, "json")
                    .map_or_else(Map::new, |t| serde_json::from_str(t).expect("JSON")),
                prompt: asked.split('`').next().expect("a prompt"),
                answer: fenced(section, "text").expect("an answer"),
            }
        })
        .collect()
}

fn fenced(section: &'static str, kind: &str) -> Option<&'static str> {
    let (_, rest) = section.split_once(&format!("```{kind}\n"))?;
    rest.split_once("```").map(|(block, _)| block)
}

#[test]
fn every_example_answers_as_it_says() {
    let examples = examples();
    assert_eq!(examples.len(), 5);
    for example in examples {
        let tools = |tool: &str, args: &Value| -> Answer {
            let of_path = args["path"].as_str().map(|path| format!("{tool} {path}"));
            let found = of_path.and_then(|key| example.tools.get(&key)).or(example.tools.get(tool));
            found.map_or((true, json!("no such path")), |value| (false, value.clone()))
        };
        let script = Script::new(example.playbook, &["list", "count"], &tools);
        assert_eq!(script.answer(example.prompt).trim_end(), example.answer.trim_end(), "{}", example.title);
    }
}

#[test]
fn an_example_tells_of_failures_too() {
    let example = examples().remove(1);
    let tools = |_: &str, _: &Value| (true, json!("permission denied"));
    let script = Script::new(example.playbook, &["list", "count"], &tools);
    assert_eq!(script.answer("x"), "That did not work: permission denied");
    let example = examples().remove(3);
    let tools = |tool: &str, args: &Value| -> Answer {
        let found = if tool == "list" { &example.tools["list"] } else { &example.tools["count a"] };
        (args["path"] == "c", found.clone())
    };
    let mut script = Script::new(example.playbook, &["list", "count"], &tools);
    script.refuse = Some(0);
    let answer = script.answer("x");
    assert!(answer.starts_with("1 lines, counted by 1 subagents\nnot counted: "), "{answer}");
}

#[test]
fn nothing_is_left_out() {
    // What is accepted, as a playbook with a mistake in each place is told.
    let mistakes = Playbook::from_value(
        &json!({"x": 1, "rules": [{"x": 1, "turn": {"x": 1}, "last": {"x": 1},
        "text": "", "when": "no_such_variable", "reply": {"x": 1, "usage": {"x": 1}, "tool_calls": [{"x": 1}]}},
        {"reply": {"error": {"x": 1}}}, {"reply": {"text": {"$for": "[]", "$x": 1}}}]}),
    );
    let told = mistakes.unwrap_err().to_string();
    let mut words: Vec<&str> = ModelErrorKind::ALL.map(ModelErrorKind::name).into();
    for line in told.lines() {
        if let Some((_, list)) = line.split_once("accepted are ").or(line.split_once("there are ")) {
            words.extend(list.split(", "));
        }
    }
    assert!(words.len() > 40, "{told}");
    for word in words {
        assert!(
            DOCUMENT.contains(&format!("`{word}`"))
                || DOCUMENT.split(['{', '}', ',', ' ', ':']).any(|w| w == word),
            "docs/playbooks.md says nothing of {word}"
        );
    }
}
