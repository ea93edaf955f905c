//! The documented example, as a user runs it.

use agentd_tests::kit::Subtree;
use std::process::Command;
use std::time::Duration;

#[test]
fn the_example_gives_the_answers_it_shows() {
    let home = tempfile::tempdir().expect("a folder");
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/../agentd/examples/embed.yaml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_embed-example"));
    command.arg(config).env_clear().env("HOME", home.path());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let said = command.output().expect("it runs");
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
