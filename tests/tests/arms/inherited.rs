//! F29: what a wrapper left ignored and blocked changes nothing, on both drivers; and a library changes nothing that is
//! the program's around it.

use crate::file;
use crate::perform::in_a_process_of_its_own;
use agentd_tests::arms::{Driver, Scenario, on_the_simulator};
use agentd_tests::kit::skip;
use std::process::{Command, Stdio};

/// Scenarios that need exit causes, SIGTERM to the supervisor, SIGTERM to children, and EPIPE.
const TELLING: &[&str] =
    &["ends_without_a_result", "drain_lets_work_end", "ladder_ends_with_sigterm", "stillborn"];

/// Whether this env(1) can ignore and block signals.
fn can_wrap(wrapper: &[&str]) -> bool {
    let tried = Command::new(wrapper[0]).args(&wrapper[1..]).arg("true").stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success())
}

fn alike_under(test: &str, driver: Driver, wrapper: &[&str]) {
    if !can_wrap(wrapper) {
        return skip(test, "env(1) cannot ignore and block signals here");
    }
    for test in TELLING {
        let path = file(test);
        let scenario = Scenario::read(&path).unwrap_or_else(|e| panic!("{e}"));
        let simulated = on_the_simulator(&scenario).unwrap_or_else(|e| panic!("{test}: {e}"));
        let report = in_a_process_of_its_own(driver, &path, wrapper);
        assert!(report.problems.is_empty(), "{test} on {}: {:#?}", driver.name(), report.problems);
        if let Some(difference) = simulated.difference(&report.transcript) {
            panic!(
                "{test}: the simulator (first) and {} under {wrapper:?} differ: {difference}",
                driver.name()
            );
        }
    }
}

/// All that a wrapper can do to a program that owns its process.
const HOSTILE: &[&str] = &["env", "--ignore-signal=CHLD,PIPE,TERM,HUP,INT", "--block-signal"];

#[test]
fn a_hostile_wrapper_changes_nothing_on_mio() {
    alike_under("a_hostile_wrapper_changes_nothing_on_mio", Driver::Mio, HOSTILE);
}

#[test]
fn a_hostile_wrapper_changes_nothing_on_tokio() {
    alike_under("a_hostile_wrapper_changes_nothing_on_tokio", Driver::Tokio, HOSTILE);
}

/// A library leaves the program's signals, its mask and its being a subreaper as they are (the report says if not),
/// and its children begin with a clean slate all the same. An ignored SIGCHLD is the program's own affair: with it
/// nobody can learn how a child ended.
#[test]
fn a_library_changes_nothing_around_it() {
    let wrappers: [&[&str]; 2] =
        [&["env", "--ignore-signal=PIPE,TERM,HUP,INT", "--block-signal"], &["env", "--default-signal"]];
    for wrapper in wrappers {
        alike_under("a_library_changes_nothing_around_it", Driver::Embedded, wrapper);
    }
}
