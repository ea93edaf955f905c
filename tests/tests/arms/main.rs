//! Every scenario of `tests/scenarios` on its three arms: the simulator, mio and tokio. What can be seen must be equal.
//!
//! One scenario: `cargo test -p agentd-tests --test arms kill_of_a_subtree`. With `ARMS_SHOW=1` its transcript is
//! printed (`-- --nocapture`).

mod inherited;
mod perform;

use agentd_tests::arms::{Driver, Scenario, on_the_simulator};
use agentd_tests::sim::plan::OnCancel;
use std::path::PathBuf;
use std::time::Instant;

/// One test a scenario; a test below holds that none is forgotten.
macro_rules! scenarios {
    ($($name:ident),+ $(,)?) => {
        const ALL: &[&str] = &[$(stringify!($name)),+];
        $(
            #[test]
            fn $name() {
                three_arms(stringify!($name));
            }
        )+
    };
}

scenarios! {
    answers_of_all_kinds,
    await_any_and_in_vain,
    breadth_of_two,
    calls_that_are_wrong,
    cancel_is_obeyed_without_a_word,
    detached_run_outlives_the_answer,
    drain_lets_work_end,
    drain_runs_out_of_time,
    ends_without_a_result,
    escapee,
    escapees_of_a_killed_run,
    exit_before_the_result_is_saved,
    exits_instead_of_ready,
    first_frame_cannot_be_made,
    fork_fails_for_a_while,
    forty_die_at_once,
    forty_end_at_once,
    grandchild_holds_the_pipe,
    grandchild_holds_the_pipe_of_a_failure,
    hang_up_where_nothing_reloads,
    hard_deadline,
    kill_after_the_result,
    kill_before_the_result,
    kill_during_spawn,
    kill_of_a_subtree,
    kill_of_one_only,
    kill_while_the_result_is_saved,
    killed_from_outside,
    ladder_ends_with_sigkill,
    ladder_ends_with_sigterm,
    never_ready,
    one_answer,
    operator_hangs_up,
    operator_kills_a_run,
    operator_steers_and_finishes,
    operator_waits_for_a_run,
    parallel_runs_end_in_reverse,
    program_cannot_be_started,
    prompt_taken_back,
    protocol_errors,
    queue_by_priority,
    queued_run_is_killed,
    rate_and_total,
    record_cannot_be_saved,
    result_is_saved_later,
    result_of_megabytes,
    result_then_no_exit,
    second_signal,
    signal_during_spawn,
    sigterm_is_obeyed_by_an_exit,
    stderr_of_a_child,
    stdout_is_closed,
    steer_and_finish,
    stillborn,
    stuck_by_a_hang,
    stuck_by_deafness,
    stuck_by_sigstop,
    sync_run,
    terminated_from_outside,
    told_of_an_ended_run,
    too_deep,
    total_is_used_up,
    two_prompts,
    warm_run_dies_in_a_turn,
    warm_turn_fails,
    warm_turns_in_order,
    worker_dies_in_its_turn,
    worker_is_replaced,
}

/// The file of a scenario, whose name has dashes.
fn file(test: &str) -> PathBuf {
    let name = test.replace('_', "-");
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(format!("{name}.json"))
}

fn three_arms(test: &str) {
    let path = file(test);
    let scenario = Scenario::read(&path).unwrap_or_else(|e| panic!("{e}"));
    let mut times = vec![Instant::now()];
    let simulated = on_the_simulator(&scenario).unwrap_or_else(|e| panic!("{test} on the simulator: {e}"));
    times.push(Instant::now());
    if std::env::var_os("ARMS_SHOW").is_some() {
        println!("{}", serde_json::to_string_pretty(&simulated).expect("a transcript serialises"));
    }
    scenario.judge(&simulated).unwrap_or_else(|e| panic!("{test}: {}\n{e}", scenario.why));
    for driver in [Driver::Mio, Driver::Tokio] {
        let report = perform::in_a_process_of_its_own(driver, &path, &[]);
        assert!(report.problems.is_empty(), "{test} on {}: {:#?}", driver.name(), report.problems);
        if let Some(difference) = simulated.difference(&report.transcript) {
            panic!("{test}: the simulator (first) and {} differ: {difference}", driver.name());
        }
        times.push(Instant::now());
    }
    let took: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect();
    println!("{test}: ms on the simulator, mio, tokio: {took:?}");
}

/// The comparison bites: another way to take a kill is another transcript, in the simulator and with real processes.
#[test]
fn another_script_is_another_transcript() {
    let mut told = Scenario::read(&file("kill_before_the_result")).unwrap_or_else(|e| panic!("{e}"));
    let simulated = on_the_simulator(&told).unwrap_or_else(|e| panic!("{e}"));
    told.plan.scripts[1].nature.on_cancel = OnCancel::Leaves(1);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("kill-before-the-result.json");
    std::fs::write(&path, serde_json::to_vec(&told).expect("a scenario serialises")).expect("a file");
    let other = perform::in_a_process_of_its_own(Driver::Mio, &path, &[]);
    assert!(other.problems.is_empty(), "{:?}", other.problems);
    let difference =
        simulated.difference(&other.transcript).expect("one says a last word, the other does not");
    assert!(difference.contains("/node-2/"), "{difference}");
    assert!(told.judge(&other.transcript).is_err(), "the log does not say `child.late_result`");
}

/// Every file is a test, and every test is a file.
#[test]
fn no_scenario_is_forgotten() {
    let folder = file("x");
    let folder = folder.parent().expect("it is in a folder");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("the scenarios are there")
        .map(|entry| entry.expect("a folder's entry").path())
        .filter_map(|path| Some(path.file_stem()?.to_str()?.replace('-', "_")))
        .collect();
    files.sort();
    let only_in = |some: &[&str], others: &[&str]| -> Vec<String> {
        some.iter().filter(|name| !others.contains(name)).map(|name| name.to_string()).collect()
    };
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    assert_eq!(only_in(&names, ALL), [""; 0], "these files are not in the list at the top of this file");
    assert_eq!(only_in(ALL, &names), [""; 0], "these names of the list have no file");
    assert!(ALL.is_sorted(), "the list is in the order of the alphabet");
}
