//! Keys, and what is said without one.

use crate::place::{Place, said};
use serde_json::Value;
use std::process::Stdio;

#[test]
fn without_any_key_it_exits_4_and_says_where_it_looked() {
    let place = Place::new();
    for (args, words) in [
        (&["run", "hi"][..], &["agentd.yaml", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "agentd demo"][..]),
        (
            &["run", "--dialect", "anthropic", "--model", "m", "hi"],
            &[
                "https://api.anthropic.com",
                "ANTHROPIC_API_KEY",
                "AGENTD_INTELLIGENCE_TOKEN_FILE",
                "agentd demo",
            ],
        ),
        (
            &["run", "--dialect", "openai", "--model", "m", "--endpoint", "https://gateway.example/v1", "hi"],
            &["https://gateway.example/v1", "OPENAI_API_KEY", "intelligence.token_file", "agentd demo"],
        ),
    ] {
        let ran = place.agentd(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(4), ""), "{args:?}: {}", ran.err);
        for word in words {
            assert!(ran.err.contains(word), "{word}: {}", ran.err);
        }
    }
    place
        .write("agentd.yaml", "intelligence: {dialect: openai, model: m, token: \"{{secret:MODEL_KEY}}\"}\n");
    let ran = place.agentd(&["run", "hi"]);
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert!(
        ran.err.contains("agentd.yaml:1:50: intelligence.token: the secret MODEL_KEY is not there"),
        "{}",
        ran.err
    );
    assert_eq!(place.agentd(&["check"]).code, Some(2), "for check it is a mistake as any other");
    place.write("agentd.yaml", "intelligence: {dialect: openai, model: m, tokn: x}\n");
    assert_eq!(place.agentd(&["run", "hi"]).code, Some(2), "a mistake besides is the caller's to mend first");
}

#[test]
fn a_key_alone_needs_the_name_of_a_model() {
    let place = Place::new();
    let run = |keys: &[&str], args: &[&str]| {
        let mut command = place.command(args);
        keys.iter().for_each(|key| {
            command.env(key, "canary-4711");
        });
        let ran = said(command.output().expect("agentd starts"));
        assert!(!ran.err.contains("canary") && !ran.out.contains("canary"), "{} {}", ran.err, ran.out);
        ran
    };
    let ran = run(&["ANTHROPIC_API_KEY"], &["run", "hi"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("--model NAME"), "{}", ran.err);
    let ran = run(&["ANTHROPIC_API_KEY", "OPENAI_API_KEY"], &["run", "--model", "m", "hi"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("--dialect"), "{}", ran.err);
    // Nothing listens there; with a key and a model there is nothing left to say about the configuration.
    let args = ["run", "--model", "m", "--endpoint", "http://127.0.0.1:1/v1", "hi"];
    let ran = run(&["OPENAI_API_KEY"], &args);
    assert!(ran.code != Some(2) && ran.err.contains("worker.spawn"), "{:?} {}", ran.code, ran.err);
}

#[test]
fn a_stdout_that_is_closed_is_told_before_any_work() {
    let place = Place::with("rules: [{reply: {text: hi}}]\n", "");
    for args in ["run hi", "demo", "check", "schema", "man", "completions bash"] {
        let script = format!("exec \"$0\" {args} >&-");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_agentd-under-test")]).current_dir(place.path("."));
        let ran = said(command.stdin(Stdio::null()).output().expect("sh starts"));
        assert_eq!(ran.code, Some(1), "{args}: {}", ran.err);
        assert!(ran.err.contains("closed") && ran.err.lines().count() == 1, "{args}: {}", ran.err);
        // Somebody who wants no output has said so.
        let null = format!("exec \"$0\" {args} 1<>/dev/null");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &null, env!("CARGO_BIN_EXE_agentd-under-test")]).current_dir(place.path("."));
        let ran = said(command.stdin(Stdio::null()).output().expect("sh starts"));
        assert_eq!(ran.code, Some(0), "{args}: {}", ran.err);
    }
}

#[test]
fn the_program_describes_itself() {
    let place = Place::new();
    let schema = place.agentd(&["schema"]);
    let value: Value = serde_json::from_str(&schema.out).expect("JSON");
    assert_eq!(value["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(value["properties"]["intelligence"]["properties"]["models"].is_object());
    for (args, words) in [
        (&["man"][..], ".SS \"agentd mcp serve\\-files\""),
        (&["completions", "bash"], "serve-files"),
        (&["completions", "zsh"], "#compdef agentd"),
        (&["completions", "fish"], "complete -c agentd"),
    ] {
        let ran = place.agentd(args);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{args:?}");
        assert!(ran.out.contains(words) || ran.out.contains(&words.replace("\\-", "-")), "{args:?}");
    }
    assert_eq!(place.agentd(&["completions", "csh"]).code, Some(2));
}
