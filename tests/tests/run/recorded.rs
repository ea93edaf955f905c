//! The journal of a real run is decided again to the byte, whatever was done to the run and its daemon.

use crate::{AGENTD, run};
use agentd_tests::kit::{Rule, call, playbook};
use rustix::process::Signal;
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A replay of this journal finds every action as it was recorded.
pub(crate) fn decides_the_same(journal: &Path) {
    let replayed = Command::new(AGENTD).args(["replay", "--quiet"]).arg(journal).output().expect("it starts");
    let said = String::from_utf8_lossy(&replayed.stdout);
    assert!(replayed.status.success(), "{said}\n{}", String::from_utf8_lossy(&replayed.stderr));
    assert!(said.contains("every action is as recorded"), "{said}");
}

/// The story of a run, as far as the journal goes; `None` while there is none of it.
fn explained(journal: &Path, who: &str) -> Option<String> {
    let told =
        Command::new(AGENTD).args(["replay", "--explain", who]).arg(journal).output().expect("it starts");
    told.status.success().then(|| String::from_utf8_lossy(&told.stdout).into_owned())
}

#[test]
fn a_kill_a_standstill_and_a_forced_drain() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = folder.path().join("flight");
    let start = |text: &str| call("subagent.run", json!({"instruction": text, "mode": "async"}));
    let running = run(&playbook([
        Rule::worker().turn(1).calls([start("wait"), start("linger")]),
        Rule::worker().turn(2).calls([call("subagent.kill", json!({"handle": "sub-1", "reason": "enough"}))]),
        Rule::worker().after("1h").says("never"),
        Rule::subagent().after("1h").says("never"),
    ]))
    .env("AGENTD_LIFECYCLE_JOURNAL", &journal)
    .start("go");
    running.wait_for_event("subagent.kill", |e| e["handle"] == "sub-1");
    running.child("sub-2");
    // Longer than the gap that is told as a standstill: this is the scenario, not a wait for something.
    running.signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(6_500));
    running.signal(Signal::CONT);
    running.wait_for_event("daemon.stalled", |_| true);
    running.signal(Signal::TERM);
    running.wait_for_event("drain.start", |_| true);
    running.signal(Signal::TERM);
    let ended = running.wait();
    assert_eq!(ended.code(), 143, "{}", ended.log());
    decides_the_same(&journal);
    let story = explained(&journal, "sub-1").expect("it is there");
    assert!(story.contains("it is killed by the conversation:") && story.contains("enough"), "{story}");
    let story = explained(&journal, "sub-2").expect("it is there");
    for part in [
        "the machine stood still for",
        "the supervisor got SIGTERM",
        "SIGKILL to its process group",
        "its process ended by SIGKILL",
    ] {
        assert!(story.contains(part), "{part}:\n{story}");
    }
}

/// What is in the file when the daemon dies without a word is whole up to its last moments.
#[test]
fn a_daemon_that_is_killed_leaves_a_journal_that_can_be_replayed() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = folder.path().join("flight");
    let running = run(&playbook([
        Rule::worker().calls([call("subagent.run", json!({"instruction": "wait"}))]),
        Rule::subagent().after("1h").says("never"),
    ]))
    .env("AGENTD_LIFECYCLE_JOURNAL", &journal)
    .start("go");
    running.child("sub-1");
    // The recorder has a thread of its own, and a process is seen before it is written of.
    let begun = Instant::now();
    while !explained(&journal, "sub-1").is_some_and(|story| story.contains("its process is made")) {
        assert!(begun.elapsed() < Duration::from_secs(30), "never recorded");
    }
    running.signal(Signal::KILL);
    running.wait();
    decides_the_same(&journal);
    let story = explained(&journal, "sub-1").expect("it is there");
    assert!(story.contains("its process is made") && story.contains("the run is not over"), "{story}");
}
