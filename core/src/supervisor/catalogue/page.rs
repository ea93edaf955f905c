//! Prints `docs/tools.md`'s reference from the declarations, and holds the page to it.

use super::worker_tools;
use crate::wire::message::ToolDecl;
use serde_json::Value;
use std::fmt::Write;

const PAGE: &str = include_str!("../../../../docs/tools.md");

/// What stands before and after the part that is printed.
const MARKS: (&str, &str) = ("<!-- printed from the code -->\n", "<!-- to here -->\n");

fn reference() -> String {
    let mut text = String::new();
    for tool in worker_tools(true) {
        section(&mut text, &tool).expect("text takes text");
    }
    text
}

fn section(text: &mut String, tool: &ToolDecl) -> std::fmt::Result {
    writeln!(text, "\n### `{}`\n\n{}\n", tool.name, tool.description)?;
    let schema: Value = tool.schema.parse().expect("JSON");
    let rows = rows("", &schema);
    if rows.is_empty() {
        return writeln!(text, "No arguments.");
    }
    writeln!(text, "| argument | what | |\n|---|---|---|")?;
    rows.into_iter().try_for_each(|row| writeln!(text, "{row}"))
}

/// A row for each key of an object schema, the keys of objects inside it under their path.
fn rows(path: &str, schema: &Value) -> Vec<String> {
    let needed: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut rows = Vec::new();
    for (key, value) in schema["properties"].as_object().into_iter().flatten() {
        let name = format!("{path}{key}");
        let required = if path.is_empty() && needed.contains(&key.as_str()) { ", required" } else { "" };
        let about = value["description"].as_str().unwrap_or_default();
        rows.push(format!("| `{name}` | {}{required} | {about} |", kind(value)));
        rows.extend(self::rows(&format!("{name}."), value));
        rows.extend(self::rows(&format!("{name}[]."), &value["items"]));
    }
    rows
}

fn kind(schema: &Value) -> String {
    if let Some(names) = schema["enum"].as_array() {
        let names: Vec<String> = names.iter().filter_map(Value::as_str).map(|n| format!("`{n}`")).collect();
        return names.join(", ");
    }
    match (schema["type"].as_str(), schema["items"]["type"].as_str()) {
        (Some("array"), Some(of)) => format!("list of {of}s"),
        (Some(kind), _) => kind.to_owned(),
        (None, _) => "anything".to_owned(),
    }
}

#[test]
fn the_page_is_what_models_are_told() {
    let (before, rest) = PAGE.split_once(MARKS.0).expect("the first mark");
    let (printed, _) = rest.split_once(MARKS.1).expect("the second mark");
    let wanted = reference();
    assert!(printed == wanted, "docs/tools.md is stale; between its marks belongs:\n{wanted}");
    assert!(before.contains("# Tools"));
}
