//! A program that says that its process is the supervisor's alone: signals drain and end what runs, as with `agentd`.

use super::stage::Stage;
use agentd_tests::kit::Rule;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

#[test]
fn the_first_signal_drains_and_the_second_ends_what_runs() {
    let stage = Stage::new([Rule::subagent().after("1h").says("never")], "");
    let mut program = Command::new(env!("CARGO_BIN_EXE_own-process"))
        .arg(stage.path("agentd.yaml"))
        .env_clear()
        .env("HOME", stage.path("agentd.yaml").parent().expect("a folder"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut out = BufReader::new(program.stdout.take().expect("a pipe"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    assert_eq!(line, "sub-1 is up\n");
    let pid = Pid::from_child(&program);
    // Two of a kind that are not read yet are one, so the second is of another.
    for signal in [Signal::TERM, Signal::INT] {
        kill_process(pid, signal).expect("it lives");
    }
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("it ends");
    assert!(program.wait().expect("its status").success());
    assert!(["Some(Term) 0\nparked\n", "Some(Int) 0\nparked\n"].contains(&rest.as_str()), "{rest}");
    stage.assert_nothing_left();
}
