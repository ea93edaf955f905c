//! The documented example, as a user runs it.

use agentd::journal::{Reader, Recording};
use agentd::replay::{Story, Who, replay};
use agentd_tests::kit::Subtree;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../agentd/examples");

fn example(config: &Path, home: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_embed-example"));
    command.arg(config).env_clear().env("HOME", home);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.output().expect("it runs")
}

#[test]
fn the_example_gives_the_answers_it_shows() {
    let home = tempfile::tempdir().expect("a folder");
    let said = example(&Path::new(FILES).join("embed.yaml"), home.path());
    let out = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success(), "{said:?}");
    assert_eq!(
        out,
        "sub-1 completed: \"Ada has 3 open tickets.\"\n\
         sub-2 completed: \"Grace has 0 open tickets.\"\n\
         the conversation completed: \"You asked: Who has the most open tickets?\"\n\
         0 processes left\n"
    );
    let left = Subtree::marked("HOME", &home.path().to_string_lossy()).wait_for_end(Duration::from_secs(2));
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[test]
fn a_journal_that_is_configured_is_written() {
    let home = tempfile::tempdir().expect("a folder");
    let config = home.path().join("agentd.yaml");
    let text = format!(
        "intelligence: {{dialect: mock, endpoints: [{FILES}/embed.playbook.yaml]}}\nlifecycle: {{journal: flight}}\n"
    );
    std::fs::write(&config, &text).expect("a file");
    let said = example(&config, home.path());
    assert!(said.status.success(), "{said:?}");
    let journal = Reader::open(&home.path().join("flight")).expect("a journal");
    let config = journal.header().config.clone();
    assert_eq!(config.host.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(), ["crm"]);
    assert!(!config.one_shot, "what the core was made of, not what the file says");
    let kept = journal.collect::<Result<Vec<_>, _>>().expect("whole to its end");
    assert!(kept.len() > 20, "{}", kept.len());
    let mut story = Story::of(Who::Root);
    let verdict = replay(&Recording::open(&home.path().join("flight")).expect("a journal"), &mut story);
    assert!(verdict.is_same() && !verdict.unanswered, "it is decided again: {verdict:?}");

    std::fs::write(home.path().join("agentd.yaml"), text.replace("flight", "agentd.yaml")).expect("a file");
    let said = example(&home.path().join("agentd.yaml"), home.path());
    let err = String::from_utf8_lossy(&said.stderr);
    assert!(
        !said.status.success() && err.contains("the journal") && err.contains("is not a journal"),
        "{err}"
    );
}
