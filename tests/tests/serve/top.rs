//! `agentd top` on a real terminal, before a real daemon: what a person sees and does, and that the terminal is as before
//! whatever ends it.

use crate::stage::{AGENTD, daemon, told};
use agentd_tests::kit::{OnTerminal, Running};
use rustix::process::Signal;

fn top(running: &Running, args: &[&str]) -> OnTerminal {
    let mut command = running.command(AGENTD, &[&["top"], args].concat());
    command.env("TERM", "xterm-256color");
    OnTerminal::start(command, 100, 24)
}

#[test]
fn a_person_watches_sends_kills_and_leaves() {
    let running = daemon().serve();
    running.ask(&["spawn", "--mode", "warm", "first"]);
    running.ask(&["spawn", "stay here"]);
    running.wait_for_event("subagent.turn", |e| e["handle"] == "sub-1");
    let pid = running.child("sub-2");
    let mut top = top(&running, &[]);
    let seen = top.wait_for("two runs", |seen| seen.contains("message ") && seen.contains("stay here"));
    assert!(seen.starts_with("agentd agentd · 2 live · ") && seen.contains("q quit"), "{seen}");
    assert!(top.has_own_screen() && top.has_colors());

    top.press("ssecond\r");
    top.wait_for_text("message 2 to sub-1");
    running.wait_for_event("subagent.turn", |e| e["handle"] == "sub-1" && e["message"] == 2);

    // Its events, as they come.
    top.press("\u{1b}[B\r");
    top.wait_for("its events", |seen| {
        seen.contains("events of sub-2 · following") && seen.contains("subagent.spawn")
    });
    top.press("thurry\r");
    top.wait_for_text("subagent.steer");

    // Killed once it is confirmed, and not before. A paste answers nothing.
    top.press("k");
    top.wait_for_text("kill sub-2? y kills");
    top.press("\u{1b}[200~y\u{1b}[201~n");
    top.wait_for_text("sub-2 is not killed");
    assert_eq!(running.ask(&["show", "sub-2"])["status"], "running");
    top.press("k");
    top.wait_for_text("kill sub-2? y kills");
    top.press("y");
    let killed = running.wait_for_event("subagent.kill", |e| e["handle"] == "sub-2");
    assert!(killed["reason"].as_str().is_some_and(|reason| reason.contains("in top")), "{killed}");
    top.wait_for("its end", |seen| seen.contains("events of sub-2 · all there is"));
    assert!(!agentd_tests::kit::alive(pid), "its process is gone when its log is over");
    top.press("a");
    top.wait_for("ended ones", |seen| seen.contains("ended ones too") && seen.contains("cancelled"));

    // A turn of the conversation, from the row of the conversation.
    running.agentd(&["send", "root", "hello"]);
    top.wait_for_text("root ");
    top.press("/root\r");
    top.wait_for("the filter", |seen| seen.contains("filter \"root\"") && !seen.contains("stay here"));
    top.press("sonce more\r");
    top.wait_for_text("root: heard");

    top.resize(40, 10);
    top.wait_for("a small screen", |seen| seen.contains("q quit") && seen.lines().count() <= 10);
    top.press("q");
    assert_eq!(top.wait(), 0);
    top.assert_as_before();
    running.agentd(&["drain"]);
    assert_eq!(running.wait().code(), 0);
}

#[test]
fn the_terminal_is_put_back_whatever_ends_or_stops_it() {
    let running = daemon().serve();
    running.ask(&["spawn", "stay here"]);
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129), (Signal::QUIT, 131)] {
        let mut top = top(&running, &[]);
        top.wait_for_text("stay here");
        top.signal(signal);
        assert_eq!(top.wait(), code, "{signal:?}");
        top.assert_as_before();
    }
    // Stopped by its shell and gone on with, by the key and by the signal.
    let mut stopped = top(&running, &[]);
    stopped.wait_for_text("stay here");
    for by_key in [true, false] {
        if by_key {
            stopped.press("\u{1a}");
        } else {
            stopped.signal(Signal::TSTP);
        }
        stopped.wait_for_stop();
        stopped.assert_as_before();
        stopped.signal(Signal::CONT);
        stopped.wait_for("the screen again", |seen| seen.contains("stay here"));
        assert!(stopped.has_own_screen());
    }
    stopped.press("\u{3}");
    assert_eq!(stopped.wait(), 0);
    stopped.assert_as_before();
    // The terminal goes away under it.
    let mut gone = top(&running, &[]);
    gone.wait_for_text("stay here");
    gone.hang_up();
    assert_eq!(gone.wait(), 129);
    running.ask(&["kill", "sub-1"]);
    running.agentd(&["drain"]);
    assert_eq!(running.wait().code(), 0);
}

#[test]
fn a_daemon_that_goes_away_is_told_and_found_again() {
    let running = daemon().serve();
    running.ask(&["spawn", "stay here"]);
    running.child("sub-1");
    let (socket, token) = (running.state().join("control.sock"), running.state().join("control.token"));
    // A person elsewhere, whose process is none of the daemon's folder.
    let elsewhere = tempfile::tempdir().expect("a folder");
    let mut command = running.command(AGENTD, &["top", "--socket"]);
    command.arg(&socket).arg("--token-file").arg(&token).current_dir(elsewhere.path());
    command.env("HOME", elsewhere.path()).env("TERM", "xterm").env("NO_COLOR", "1");
    let mut top = OnTerminal::start(command, 160, 24);
    top.wait_for_text("stay here");
    top.press("\r");
    top.wait_for_text("subagent.spawn");
    assert!(!top.has_colors(), "NO_COLOR");
    let folder = running.give_up_folder();
    let seen = top.wait_for_text("gone for ");
    assert!(seen.contains("stay here"), "as it was last seen: {seen}");
    let running = daemon().in_folder(folder).serve();
    top.wait_for("the next life", |seen| !seen.contains("gone for ") && seen.contains("subagent.respawn"));
    running.ask(&["spawn", "stay, another one"]);
    top.wait_for_text("another one");
    top.press("q");
    assert_eq!(top.wait(), 0);
    top.assert_as_before();
    running.ask(&["kill", "sub-1"]);
    running.agentd(&["drain"]);
    assert_eq!(running.wait().code(), 0);
}

#[test]
fn without_a_terminal_or_a_daemon_it_says_so() {
    let running = daemon().serve();
    let piped = running.agentd(&["top"]);
    let (code, said) = told(&piped);
    assert!(code == 2 && said.contains("stdout is none") && said.contains("agentd ps"), "{piped:?}");
    let mut command = running.command(AGENTD, &["top"]);
    command.env("TERM", "dumb");
    let mut dumb = OnTerminal::start(command, 80, 24);
    assert_eq!(dumb.wait(), 2);
    dumb.wait_for_text("TERM is \"dumb\"");
    let mut nobody = top(&running, &["--socket", "nowhere.sock"]);
    assert_eq!(nobody.wait(), 6);
    nobody.wait_for_text("no agentd runs here");
    nobody.assert_as_before();
    running.agentd(&["drain"]);
    assert_eq!(running.wait().code(), 0);
}
