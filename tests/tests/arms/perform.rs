//! Starts `one-arm`, waits for its report, and looks that nothing of it is left anywhere.

use agentd_tests::arms::{Driver, Report};
use agentd_tests::kit::{PATIENCE, Subtree};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The report of a scenario on a driver; `wrapper` is a program, and its arguments, that starts it.
pub(crate) fn in_a_process_of_its_own(driver: Driver, scenario: &Path, wrapper: &[&str]) -> Report {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let one_arm = env!("CARGO_BIN_EXE_one-arm");
    let mut command = match wrapper {
        [] => Command::new(one_arm),
        [program, args @ ..] => {
            let mut command = Command::new(program);
            command.args(args).arg(one_arm);
            command
        }
    };
    command.arg(driver.name()).arg(scenario).arg(folder.path());
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("one-arm starts");
    let said = said_in_time(&mut child);
    let status = child.wait().expect("it is ours to wait for");
    let mark = folder.path().join("gates");
    let left = Subtree::marked("AGENTD_ARMS_GATES", mark.to_str().expect("a path of text"));
    let left = left.wait_for_end(Duration::from_secs(2));
    assert!(left.is_empty(), "still alive after {}: {left:?}", driver.name());
    let said = said.unwrap_or_else(|| panic!("{} has not ended in time: {status}", driver.name()));
    serde_json::from_str(&said).unwrap_or_else(|e| panic!("{}: {status}: {e}: {said}", driver.name()))
}

/// All that it says until it ends; one that does not end is killed.
fn said_in_time(child: &mut Child) -> Option<String> {
    let mut stdout = child.stdout.take().expect("stdout is piped");
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut said = String::new();
        let read = stdout.read_to_string(&mut said);
        // Whoever waited may have given up.
        let _unheard = tell.send(read.map(|_| said));
    });
    let said = told.recv_timeout(PATIENCE).ok();
    if said.is_none() {
        child.kill().expect("it is ours to kill");
    }
    said.map(|read| read.expect("stdout is text"))
}
