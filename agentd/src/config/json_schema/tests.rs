use super::super::load::{Sources, load};
use super::super::{json, source::Source, table, yaml};
use super::*;
use jsonschema::Validator;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

fn schema() -> Value {
    serde_json::from_str(&json_schema()).expect("JSON")
}

fn validator() -> &'static Validator {
    static VALIDATOR: LazyLock<Validator> =
        LazyLock::new(|| jsonschema::draft202012::new(&schema()).expect("a schema"));
    &VALIDATOR
}

fn value_of(yaml: &str) -> Value {
    let mut problems = Vec::new();
    let source = Source::file(Path::new("a.yaml"), 0, yaml.to_owned());
    json::of(&yaml::parse(&source, &mut problems).expect("a tree"))
}

/// Whether `check` finds nothing in it.
fn is_accepted(text: &str) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.json"), text).expect("written");
    fs::write(folder.path().join("p.yaml"), "rules: [{reply: {text: hi}}]\n").expect("written");
    let sources = Sources {
        files: vec![PathBuf::from("a.json")],
        here: folder.path().to_owned(),
        ..Sources::default()
    };
    load(&sources).is_ok()
}

/// Paths of all keys, as the documents write them.
fn keys(schema: &Value, under: &str, found: &mut BTreeSet<String>) {
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let path = if under.is_empty() { name.clone() } else { format!("{under}.{name}") };
        let (items, each) = (&inner["items"], &inner["additionalProperties"]);
        if inner["properties"].is_object() {
            keys(inner, &path, found);
        } else {
            found.insert(path.clone());
        }
        if items["properties"].is_object() {
            keys(items, &format!("{path}[]"), found);
        }
        if each["properties"].is_object() {
            keys(each, &format!("{path}.NAME"), found);
        }
    }
}

#[test]
fn the_schema_has_every_documented_key_and_no_other() {
    let mut of_schema = BTreeSet::new();
    keys(&schema(), "", &mut of_schema);
    let rows = table();
    let documented: BTreeSet<String> =
        rows.lines().skip(2).filter_map(|row| Some(row.split('`').nth(1)?.to_owned())).collect();
    assert_eq!(of_schema, documented);
    assert!(documented.len() > 60, "{documented:?}");
}

#[test]
fn every_default_is_one_that_the_schema_accepts() {
    fn walk(schema: &Value, path: &str, seen: &mut u32) {
        if let Some(default) = schema.get("default") {
            assert!(jsonschema::is_valid(schema, default), "{path}: {default}");
            *seen += 1;
        }
        let inner = schema["properties"].as_object().into_iter().flatten();
        for (name, schema) in inner {
            walk(schema, &format!("{path}.{name}"), seen);
        }
        let below = [&schema["items"], &schema["additionalProperties"]];
        below.iter().filter(|schema| schema.is_object()).for_each(|schema| walk(schema, path, seen));
    }
    let mut seen = 0;
    walk(&schema(), "", &mut seen);
    assert!(seen > 25, "{seen}");
}

#[test]
fn the_examples_of_the_documents_are_valid() {
    let (validator, docs) = (validator(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs"));
    let mut files: Vec<PathBuf> =
        fs::read_dir(&docs).expect("docs").map(|entry| entry.expect("an entry").path()).collect();
    files.push(docs.join("../README.md"));
    let mut examples = 0;
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "md")) {
        let text = fs::read_to_string(file).expect("a document");
        for block in text.split("\n```yaml agentd\n").skip(1) {
            let example = block.split("\n```").next().expect("a block");
            let errors: Vec<String> =
                validator.iter_errors(&value_of(example)).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{}:\n{example}\n{errors:?}", file.display());
            examples += 1;
        }
    }
    assert!(examples >= 6, "{examples}");
}

/// Every key that is built, with a value that is accepted.
fn whole() -> Value {
    json!({
        "agent": {"name": "a.b", "instruction": "x", "workspace": ".", "wake_on": ["human_reply"], "worker_idle": "1m"},
        "intelligence": {
            "dialect": "mock", "endpoints": ["p.yaml"], "model": "m", "token": "{{secret:A}}", "headers": {"X-A": "1"},
            "timeout": "5s", "max_output": 7, "prices": {"a/b": {"input": 1, "output": 0.5, "cached": 0}},
            "models": {"small": {"model": "x", "timeout": "1s", "headers": {"a": 1}}},
        },
        "mcp": {"servers": [
            {"name": "f", "builtin": "files", "root": ".", "write": true, "tags": {"*": ["sensitive"]}},
            {"name": "c", "command": "sh", "args": ["-c", 1], "env": {"A": 1}, "cwd": ".", "ns": "n", "allow": ["a*"],
             "exclude": ["b"], "timeout": "1s", "required": false},
        ]},
        "limits": {
            "run": {"steps": 1, "tokens": 1, "deadline": "1h", "repeats": 0, "tool_result_bytes": "1KiB"},
            "subagents": {"breadth": 1, "total": 1, "depth": 0, "rate": "1/1s", "queue": 0},
        },
        "subagents": {"defaults": {"mode": "warm", "priority": "low", "model": "small", "limits": {
            "steps": 1, "tokens": 1, "deadline": "1s", "memory": "64MiB", "cpu": "1s"}}},
        "spawn": {"env_passthrough": ["A*"]},
        "lifecycle": {
            "drain_timeout": "1s", "journal": "off",
            "liveness": {"ping": "1s", "pong": "2s", "progress": "1s", "ready": "1s", "hard_deadline_grace": "1s"},
            "kill": {"term_after": "1s", "kill_after": "1s", "exit_after_result": "1s"},
        },
        "observability": {"log_level": "info", "log_format": "json"},
    })
}

/// Paths of every place in a value.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(fields) => {
            fields
                .iter()
                .for_each(|(key, inner)| places(inner, &format!("{at}/{}", key.replace('/', "~1")), found));
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, inner)| places(inner, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

#[test]
fn a_configuration_with_every_key_is_accepted_by_both() {
    let whole = whole();
    assert!(validator().is_valid(&whole), "{:?}", validator().iter_errors(&whole).next());
    assert!(is_accepted(&whole.to_string()));
}

#[test]
fn what_the_schema_rejects_check_rejects() {
    let (validator, whole) = (validator(), whole());
    let mut all = Vec::new();
    places(&whole, "", &mut all);
    let odd = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(""),
        json!("x"),
        json!("5"),
        json!("a b"),
        json!([]),
        json!([[1]]),
        json!({}),
        json!({"x": 1}),
        json!({"A B": "{{secret:K}}"}),
    ];
    let mut rejected = 0;
    for place in &all {
        for value in &odd {
            let mut mutated = whole.clone();
            *mutated.pointer_mut(place.as_str()).expect("a place") = value.clone();
            if !validator.is_valid(&mutated) {
                rejected += 1;
                assert!(!is_accepted(&mutated.to_string()), "{place} = {value}");
            }
        }
        let mut mutated = whole.clone();
        if let Some(Value::Object(fields)) = mutated.pointer_mut(place.as_str()) {
            fields.insert("no such key".to_owned(), json!(1));
            if !validator.is_valid(&mutated) {
                rejected += 1;
                assert!(!is_accepted(&mutated.to_string()), "a key in {place}");
            }
        }
    }
    assert!(rejected > 500, "{rejected}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nothing_that_is_generated_is_only_rejected_by_the_schema(
        place in any::<prop::sample::Index>(),
        text in "[0-9a-zA-Z*/.{}:_ -]{0,12}",
        number in any::<f64>().prop_filter("JSON has no others", |n| n.is_finite()),
        as_text in any::<bool>(),
    ) {
        let mut mutated = whole();
        let mut all = Vec::new();
        places(&mutated, "", &mut all);
        let value = if as_text { json!(text) } else { json!(number) };
        *mutated.pointer_mut(place.get(&all).as_str()).expect("a place") = value;
        if !validator().is_valid(&mutated) {
            prop_assert!(!is_accepted(&mutated.to_string()), "{}", mutated);
        }
    }
}
