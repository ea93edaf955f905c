//! One daemon for one state directory and one socket (F33), and what a dead one leaves.

use crate::stage::{daemon, told};
use rustix::process::Signal;
use std::fs;

#[test]
fn a_second_daemon_is_refused_while_the_first_lives_stopped_or_not() {
    let first = daemon().serve();
    let pid = first.pid();
    for stopped in [false, true] {
        if stopped {
            first.signal(Signal::STOP);
        }
        let second = first.agentd(&["serve", "-c", "agentd.yaml"]);
        let (code, said) = told(&second);
        assert!(code == 6 && said.contains(&format!("pid {pid} since")), "{second:?}");
        assert!(first.state().join("control.sock").exists(), "nobody touched its socket");
    }
    // Another state directory and the same socket.
    let socket = first.state().join("control.sock");
    fs::write(first.path("other.yaml"), format!(
        "agent: {{name: other}}\nintelligence: {{dialect: mock, endpoints: [playbook.yaml]}}\na2a: {{listen: [\"unix://{}\"]}}\n",
        socket.display()
    ))
    .expect("written");
    let other = first.agentd(&["serve", "-c", "other.yaml"]);
    assert!(told(&other).0 == 6 && told(&other).1.contains(&format!("pid {pid} since")), "{other:?}");
    first.signal(Signal::CONT);
    assert!(first.agentd(&["ps"]).status.success(), "the first is as it was");
    first.agentd(&["drain"]);
    assert_eq!(first.wait().code(), 0);
}

#[test]
fn what_a_killed_daemon_left_is_replaced_and_a_file_in_the_way_is_not() {
    let first = daemon().serve();
    let state = first.state();
    let token = fs::read_to_string(state.join("control.token")).expect("a token");
    let folder = first.give_up_folder();
    assert!(state.join("control.sock").exists(), "a killed daemon cleans nothing up");
    let second = daemon().in_folder(folder).serve();
    assert!(second.agentd(&["ps"]).status.success());
    assert_ne!(
        fs::read_to_string(state.join("control.token")).expect("a token"),
        token,
        "a new one each time"
    );
    let folder = second.give_up_folder();
    fs::remove_file(state.join("control.sock")).expect("removed");
    fs::write(state.join("control.sock"), "mine").expect("written");
    let third = daemon().in_folder(folder).try_to_serve().wait();
    assert_eq!(third.code(), 1);
    assert!(third.log().contains("is there and is no socket"), "{}", third.log());
    assert_eq!(
        fs::read_to_string(state.join("control.sock")).unwrap_or_default(),
        third.file(".local/state/agentd/agentd/control.sock")
    );
}
