//! What a service manager hands over, and the limit of descriptors: both are the whole process's.

use crate::harness::{Part, Scenario};
use agentd_host::{descriptors, service};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("descriptors_that_are_passed_on_are_taken_once", passed),
    ("a_promise_of_descriptors_that_are_not_there_is_an_error", promised),
    ("the_limit_of_descriptors_is_raised_and_the_old_one_told", raised),
];

pub(crate) const PARTS: &[Part] =
    &[("takes", takes_part), ("takes-nothing", takes_nothing_part), ("raises", raises_part)];

/// This program as a part, started through a shell that keeps its pid: so it is in `LISTEN_PID`.
fn started(part: &str, script: &str) -> std::process::ExitStatus {
    let me = std::env::current_exe().expect("this program has a path");
    let mut shell = Command::new("/bin/bash");
    shell.args(["-c", script, "bash"]).arg(me).args(["--play", part]).arg0("bash");
    shell.status().expect("bash starts")
}

fn passed() {
    let script = "exec 3</dev/null 4<<<handed; LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=null:text \
                  NOTIFY_SOCKET=@there WATCHDOG_USEC=2000000 WATCHDOG_PID=$$ exec \"$@\"";
    assert!(started("takes", script).success());
}

fn takes_part(_: &[String]) -> ExitCode {
    let handed = service::take().expect("it can be read");
    assert_eq!(handed.notify, Some("@there".into()));
    assert_eq!(handed.watchdog, Some(std::time::Duration::from_secs(2)));
    let names: Vec<&str> = handed.sockets.iter().map(|passed| passed.name.as_str()).collect();
    assert_eq!(names, ["null", "text"]);
    for passed in &handed.sockets {
        let flags = rustix::io::fcntl_getfd(passed.socket.as_fd()).expect("it is open");
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC), "nobody inherits {passed:?}");
    }
    for (name, _) in std::env::vars_os() {
        assert!(!service::is_own(&name), "{name:?} is still there");
    }
    let again = service::take().expect("it can be read");
    assert!(again.notify.is_none() && again.sockets.is_empty(), "what is taken is taken");
    let mut text = String::new();
    let last = handed.sockets.into_iter().next_back().expect("two");
    std::fs::File::from(last.socket).read_to_string(&mut text).expect("it reads");
    assert_eq!(text, "handed\n");
    ExitCode::SUCCESS
}

fn promised() {
    let script = "exec 3</dev/null 4<&-; LISTEN_PID=$$ LISTEN_FDS=2 exec \"$@\"";
    assert!(started("takes-nothing", script).success());
}

fn takes_nothing_part(_: &[String]) -> ExitCode {
    let said = service::take().expect_err("one is not there").to_string();
    assert!(said.contains("promises 2 sockets") && said.contains("descriptor 4 is not open"), "{said}");
    // What is there was nobody's, so it stays open and is nobody's.
    assert!(std::fs::metadata("/proc/self/fd/3").is_ok());
    ExitCode::SUCCESS
}

fn raised() {
    assert!(started("raises", "ulimit -Sn 60; exec \"$@\"").success());
}

fn raises_part(_: &[String]) -> ExitCode {
    let limit = || rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let hard = limit().maximum;
    assert_eq!(descriptors::raise().expect("up to the hard limit"), Some(60));
    assert_eq!((limit().current, limit().maximum), (hard, hard));
    assert_eq!(descriptors::raise().expect("nothing is left to do"), hard);
    ExitCode::SUCCESS
}
