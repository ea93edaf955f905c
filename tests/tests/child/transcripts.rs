//! Transcripts of real children (S11.2, S11.6): whole at any death, taken up by the next process, and nobody else's.

use crate::rig::{FAKE, Rig, Run};
use agentd_core::id::RunId;
use agentd_core::transcript::{Entry, Item, Past, Reader, read_line};
use agentd_core::wire::Up;
use agentd_core::wire::message::{Begins, Transcript};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Calls `echo` three times, each time with the number of the call, and answers with what came of the last.
fn three_calls() -> Value {
    let mut rules: Vec<Value> = (1..=3)
        .map(|n| json!({"turn": n, "reply": {"tool_calls": [{"name": "a_echo", "args": {"text": format!("n{n}")}}]}}))
        .collect();
    rules.push(json!({"reply": {"text": "all: {{ last.text }}"}}));
    Value::Array(rules)
}

fn with_transcript(run: Run, path: &Path, begins: Begins) -> Run {
    run.change(|spawn| {
        spawn.transcript = Some(Transcript {
            path: path.to_string_lossy().into_owned(),
            agent_type: "general-purpose".into(),
            tool_call_id: Some("call_7".into()),
            parent: Some(RunId::NIL),
            session: RunId::NIL,
            turn: 1,
            begins,
        });
    })
}

fn run(path: &Path, log: &Path, begins: Begins) -> Run {
    let run = Run::new(three_calls()).program("a", &[FAKE, "--log", log.to_str().expect("text")]);
    with_transcript(run, path, begins)
}

fn items(path: &Path) -> Vec<Item> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let items = text.lines().filter_map(|line| match read_line(line.as_bytes()).ok()?.entry {
        Entry::ResponseItem(item) => Some(item),
        Entry::SessionMeta(_) | Entry::AgentEvent(_) => None,
    });
    items.collect()
}

fn past(path: &Path) -> Past {
    let mut reader = Reader::default();
    fs::read(path).unwrap_or_default().split(|byte| *byte == b'\n').for_each(|line| reader.take(line));
    reader.finish()
}

fn answers(path: &Path) -> usize {
    items(path).iter().filter(|item| matches!(item, Item::Assistant { .. })).count()
}

fn usages(path: &Path) -> usize {
    fs::read_to_string(path).unwrap_or_default().matches("\"event\":\"usage\"").count()
}

fn folder() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, log) = (folder.path().join("s/agent-x.jsonl"), folder.path().join("log"));
    (folder, path, log)
}

#[test]
fn a_run_is_written_down_as_it_was() {
    let (_folder, path, log) = folder();
    let mut rig = Rig::start(run(&path, &log, Begins::Anew));
    assert_eq!(rig.completed(), "all: n3");
    assert!(rig.end().0.success());
    let past = past(&path);
    assert!(!past.is_in_turn() && past.damaged == 0 && past.orphans.is_empty());
    assert_eq!((past.messages.len(), answers(&path), usages(&path)), (8, 4, 4));
    assert!(matches!(items(&path).last(), Some(Item::Ended { turn: 1, .. })));
}

#[test]
fn killed_at_any_time_the_next_process_makes_no_call_twice_that_is_written_down() {
    at_every_frame(4, |child| child.process.kill().expect("killed"));
}

/// The same for one that is told to end, or whose supervisor is gone: the run has not ended, whatever its process says.
#[test]
fn ended_at_any_time_the_next_process_goes_on_where_it_was() {
    // A call that it gave up is charged, and made again.
    at_every_frame(5, |child| child.stdin = None);
    at_every_frame(5, Rig::cancel);
}

/// Ends a child after each of its frames, and has the next one go on; so many model calls are charged at most.
fn at_every_frame(most: usize, end: impl Fn(&mut Rig)) {
    // As many frames as a whole run has, and one more: then it has ended by itself.
    let mut frames = 0;
    loop {
        let (_folder, path, log) = folder();
        let mut first = Rig::start(run(&path, &log, Begins::Anew));
        let ended = (0..frames).any(|_| matches!(first.next(), Some(Up::Result(_) | Up::Failed(_))));
        end(&mut first);
        first.end_within(Duration::from_secs(5));
        let written = answers(&path);
        let mut next = Rig::start(run(&path, &log, Begins::Again));
        let said = next.completed();
        assert!(said.starts_with("all: "), "killed after {frames} frames: {said}");
        assert!(next.end().0.success());
        let past = past(&path);
        assert!(!past.is_in_turn() && past.orphans.is_empty(), "killed after {frames} frames");
        // Four model calls are made and charged, whichever process made them. Death can come between a charge and its
        // answer, once.
        let (answered, charged) = (answers(&path), usages(&path));
        let story = || fs::read_to_string(&path).unwrap_or_default();
        assert!((4..=most).contains(&charged), "killed after {frames} frames: {}", story());
        assert!(answered >= written.max(3), "killed after {frames} frames, {written} answers: {}", story());
        // Every call has one result.
        let ids: Vec<String> = items(&path)
            .into_iter()
            .filter_map(|item| if let Item::ToolResult(result) = item { Some(result.id) } else { None })
            .collect();
        let mut once = ids.clone();
        once.dedup();
        assert_eq!(ids, once, "killed after {frames} frames");
        if ended {
            return;
        }
        frames += 1;
    }
}

#[test]
fn two_processes_never_write_one_transcript() {
    let (_folder, path, log) = folder();
    let rules = json!([{"reply": {"text": "late", "delay": "60s"}}]);
    let mut first = Rig::start(with_transcript(Run::new(rules), &path, Begins::Anew));
    first.until_model_call();
    let mut second = Rig::start(run(&path, &log, Begins::Again));
    let failed = second.failed();
    assert!(failed.error.contains("another process still writes it"), "{}", failed.error);
    assert!(second.end().0.success());
    first.cancel();
    first.terminal();
    assert!(first.end().0.success());
}
