use super::*;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// A child in a group of its own that runs `script` in sh.
fn sh(script: &str) -> (std::process::Child, Process) {
    let child = Command::new("/bin/sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("sh starts");
    let pid = Pid::new(child.id() as i32).expect("a pid is positive");
    (child, Process::open(pid).expect("the pidfd opens"))
}

/// Waits until the pidfd is readable; fails the test after 20 s.
fn ended(process: &Process) {
    let limit = Timespec { tv_sec: 20, tv_nsec: 0 };
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    assert_eq!(rustix::event::poll(&mut fds, Some(&limit)).expect("poll works"), 1, "no exit in 20 s");
}

#[test]
fn pids_are_positive() {
    for raw in [0, -1, i32::MIN] {
        assert_eq!(Pid::new(raw), None);
    }
    assert_eq!(Pid::new(7).map(|p| p.to_string()), Some("7".to_owned()));
    assert_eq!(Pid::own().rustix(), rustix::process::getpid());
}

#[test]
fn exit_is_seen_as_often_as_asked_and_reaped_once() {
    let (_child, mut process) = sh("exit 7");
    ended(&process);
    for _ in 0..3 {
        assert_eq!(process.exit().expect("waitid works"), Some(Exit::Code(7)));
    }
    assert!(process.reap().expect("waitid works"));
    assert_eq!(process.exit().expect("waitid works"), Some(Exit::Unknown), "the status went with the zombie");
    assert!(process.reap().expect("reaping again is no error"));
    let gone = process.signal_group(ChildSignal::Kill).expect_err("nobody is left to signal");
    assert_eq!(gone.raw_os_error(), Some(nix::libc::ESRCH));
}

#[test]
fn a_running_process_has_no_exit_and_is_not_reaped() {
    let (_child, mut process) = sh("read _");
    assert_eq!(process.exit().expect("waitid works"), None);
    assert!(!process.reap().expect("waitid works"));
    process.signal_group(ChildSignal::Kill).expect("the group is there");
    ended(&process);
    assert_eq!(process.exit().expect("waitid works"), Some(Exit::Signal(9)));
    assert!(process.reap().expect("waitid works"));
}

#[test]
fn the_whole_group_gets_the_signal_and_a_stopped_one_can_act_on_it() {
    let (mut child, mut process) =
        sh("sleep 1000 & trap 'echo term; exit 3' TERM; echo up; kill -STOP $$; wait");
    let mut out = std::io::BufReader::new(child.stdout.take().expect("stdout is piped"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut out, &mut line).expect("sh writes");
    assert_eq!(line, "up\n");
    let stopped = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
    rustix::process::waitid(WaitId::PidFd(process.as_fd()), stopped).expect("it stops");
    process.signal_group(ChildSignal::TermCont).expect("the group is there");
    ended(&process);
    assert_eq!(process.exit().expect("waitid works"), Some(Exit::Code(3)));
    // End of file says that the sleeper, who held the pipe too, is gone with the group.
    line.clear();
    std::io::Read::read_to_string(&mut out, &mut line).expect("the pipe ends");
    assert_eq!(line, "term\n");
    assert!(process.reap().expect("waitid works"));
}

#[test]
fn a_status_that_somebody_else_took_is_unknown() {
    let (mut child, mut process) = sh("exit 4");
    child.wait().expect("the foreign wait works");
    assert_eq!(process.exit().expect("waitid works"), Some(Exit::Unknown));
    assert!(process.reap().expect("waitid works"));
}

#[test]
fn killing_and_reaping_in_one_leaves_no_zombie() {
    let (_child, process) = sh("trap '' TERM; read _");
    let pid = process.pid();
    process.kill_and_reap().expect("waitid works");
    assert_eq!(crate::tree::stat(pid).expect("stat reads"), None);
}
