//! What a daemon wrote of its conversation, listed (F37): children are not among the sessions, and a broken file of one breaks
//! nothing.

use crate::stage::{AGENTD, text};
use agentd_tests::kit::{Rule, RunCommand, call, playbook};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const CHILDREN: usize = 40;

/// Every file below a folder whose name ends so.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    found
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn f37_many_children_are_one_session_and_broken_ones_stop_nobody() {
    let starts =
        (0..CHILDREN).map(|n| call("subagent.run", json!({"instruction": format!("part {n} of the work")})));
    let rules = [
        Rule::worker().told("^delegate$").turn(1).calls(starts),
        Rule::worker().says("all is done"),
        Rule::subagent().says("a child's own words"),
    ];
    let running = RunCommand::new(AGENTD, &playbook(rules))
        .config(&format!("limits: {{subagents: {{breadth: {CHILDREN}, rate: {CHILDREN}/1s}}}}"))
        .serve();
    let answer = running.agentd(&["send", "root", "delegate"]);
    assert_eq!(text(&answer.stdout), "all is done\n", "{answer:?}");
    let sessions = |args: &[&str]| {
        let output = running.agentd(&[&["sessions"], args].concat());
        assert!(output.status.success(), "{args:?}: {output:?}");
        text(&output.stdout)
    };
    let listed = lines(&sessions(&["list", "--json"]));
    assert_eq!(listed.len(), 1, "{listed:?}");
    let root = listed[0]["id"].as_str().expect("an id").to_owned();
    let children = lines(&sessions(&["children", &root, "--json"]));
    assert_eq!(children.len(), CHILDREN);
    // A child is shown to whoever names it, and its words are in nobody else's transcript.
    let child = children[0]["id"].as_str().expect("an id");
    assert!(sessions(&["show", child]).contains("a child's own words"));
    let told = lines(&sessions(&["show", &root, "--json"]));
    let said = |line: &&Value| {
        line["payload"]["kind"] != "result" && line.to_string().contains("a child's own words")
    };
    let spoken: Vec<&Value> =
        told.iter().filter(|line| line["type"] == "response_item").filter(said).collect();
    assert!(
        spoken.iter().all(|line| line.to_string().contains("sub-")),
        "only as results of calls: {spoken:?}"
    );

    // Broken in every way: cut in its first line, empty, no text, a folder in its place, gone.
    let broken = files(&running.state().join("sessions"), ".jsonl");
    let broken: Vec<&PathBuf> =
        broken.iter().filter(|path| path.to_string_lossy().contains("subagents")).collect();
    assert_eq!(broken.len(), CHILDREN);
    fs::write(broken[0], "{\"timest").expect("written");
    fs::write(broken[1], "").expect("written");
    fs::write(broken[2], [0xff, 0x00, b'\n']).expect("written");
    fs::remove_file(broken[3]).expect("removed");
    fs::create_dir(broken[3]).expect("made");
    for meta in files(&running.state().join("sessions"), ".meta.json").iter().take(5) {
        fs::write(meta, "{").expect("written");
    }
    assert_eq!(lines(&sessions(&["list", "--json"])).len(), 1);
    assert!(sessions(&["show", &root]).contains("all is done"));
    let still = lines(&sessions(&["children", &root, "--json"]));
    assert!(still.len() >= CHILDREN - 1, "{} are left", still.len());
    running.agentd(&["drain"]);
    assert_eq!(running.wait().code(), 0);
}
