//! However it ends: nothing is left.

use super::stage::{Stage, askers, current_thread, multi_thread, on_both};
use agentd::embed::{BuildError, CallError, Tools};
use agentd_core::record::Status;
use agentd_tests::kit::{Rule, call};
use agentd_tests::mcp_server::Options;
use serde_json::json;
use std::process::Command;

#[test]
fn a_drain_lets_what_runs_end_by_itself_and_takes_nothing_new() {
    on_both(|| async {
        let stage = Stage::new(askers(), "");
        let (supervisor, driving, mut asks) = stage.start();
        let run = supervisor.run("wait").await.expect("a run");
        let asked = asks.next().await;
        let closing = tokio::spawn({
            let supervisor = supervisor.clone();
            async move { supervisor.shutdown().await }
        });
        let refused = loop {
            // The drain begins when the driver has heard of it.
            match supervisor.run("too late").await {
                Err(refused) => break refused,
                Ok(early) => drop(early.kill("").await),
            }
        };
        assert!(matches!(&refused, CallError::Refused(_)), "{refused}");
        asked.answer.send(Ok(json!("done"))).expect("it waits");
        assert_eq!(run.result().await.expect("a result").result, json!("done"));
        closing.await.expect("no panic");
        assert_eq!(driving.await.expect("no panic").expect("it ends well").leaked, 0);
        assert_eq!(run.result().await.expect_err("it has ended"), CallError::Ended);
        stage.assert_nothing_left();
    });
}

#[test]
fn shutdown_now_ends_what_runs_and_answers_who_waits() {
    on_both(|| async {
        let stage = Stage::new(askers(), "");
        let (supervisor, driving, mut asks) = stage.start();
        let run = supervisor.run("wait").await.expect("a run");
        let mut asked = asks.next().await;
        let waiting = tokio::spawn(async move { run.result().await });
        supervisor.shutdown_now().await;
        asked.answer.closed().await;
        let ended = waiting.await.expect("no panic");
        assert!(
            ended.as_ref().map_or_else(|e| *e == CallError::Ended, |r| r.status != Status::Completed),
            "{ended:?}"
        );
        assert_eq!(driving.await.expect("no panic").expect("it ends well").leaked, 0);
        supervisor.shutdown().await;
        supervisor.shutdown_now().await;
        stage.assert_nothing_left();
    });
}

#[test]
fn when_the_last_handle_is_dropped_the_driver_ends() {
    on_both(|| async {
        let stage = Stage::new(askers(), "");
        let (supervisor, driving, mut asks) = stage.start();
        let run = supervisor.run("wait").await.expect("a run");
        let mut news = supervisor.subscribe();
        let mut asked = asks.next().await;
        drop(supervisor);
        assert_eq!(run.status().await.expect("a run is a handle too").status, Status::Running);
        drop(run);
        assert_eq!(driving.await.expect("no panic").expect("it ends well").leaked, 0);
        asked.answer.closed().await;
        while news.next().await.is_some() {}
        stage.assert_nothing_left();
    });
}

/// A run whose server holds a process of its own.
fn with_servers() -> Stage {
    let server = Options { modes: Vec::new(), log: None, pids: None, ready_file: None };
    let server =
        json!([{ "name": "fake", "command": env!("CARGO_BIN_EXE_fake-mcp"), "args": server.args() }]);
    Stage::new(askers(), &format!("mcp: {{servers: {server}}}"))
}

#[test]
fn a_driver_that_is_dropped_takes_its_children_and_their_servers_with_it() {
    on_both(|| async {
        let stage = with_servers();
        let (supervisor, driving, mut asks) = stage.start();
        for i in 0..3 {
            supervisor.run(format!("wait {i}")).await.expect("a run");
        }
        let mut asked = asks.next().await;
        assert!(stage.processes().0.len() >= 3, "{:?}", stage.processes());
        driving.abort();
        assert!(driving.await.is_err_and(|error| error.is_cancelled()));
        asked.answer.closed().await;
        stage.assert_nothing_left();
        assert_eq!(supervisor.run("x").await.expect_err("it has ended"), CallError::Ended);
        assert_eq!(supervisor.prompt("x").await.expect_err("it has ended"), CallError::Ended);
        supervisor.shutdown().await;
    });
}

#[test]
fn a_driver_that_was_never_polled_has_made_nothing() {
    on_both(|| async {
        let stage = Stage::new(askers(), "");
        let (supervisor, driver, _asks) = stage.undriven();
        let waiting = tokio::spawn({
            let supervisor = supervisor.clone();
            async move { supervisor.run("x").await.map(|run| run.handle()) }
        });
        tokio::task::yield_now().await;
        assert!(stage.processes().0.is_empty());
        drop(driver);
        assert_eq!(waiting.await.expect("no panic"), Err(CallError::Ended));
    });
}

#[test]
fn a_runtime_that_is_shut_down_takes_the_children_with_it() {
    for (runtime, in_background) in
        [(current_thread(), false), (multi_thread(), false), (current_thread(), true), (multi_thread(), true)]
    {
        let stage = with_servers();
        let (supervisor, _asked) = runtime.block_on(async {
            let (supervisor, _driving, mut asks) = stage.start();
            supervisor.run("wait").await.expect("a run");
            (supervisor, asks.next().await)
        });
        assert!(!stage.processes().0.is_empty());
        if in_background {
            runtime.shutdown_background();
        } else {
            drop(runtime);
        }
        // In the background a worker may still be about it.
        current_thread().block_on(supervisor.shutdown());
        stage.assert_nothing_left();
    }
}

#[test]
fn what_cannot_be_is_refused_before_there_is_anything() {
    let taken =
        with_servers().builder().tools(Tools::new("fake")).start().map(drop).expect_err("a server's name");
    assert!(matches!(&taken, BuildError::Tool { tool, .. } if tool == "fake"), "{taken}");
}

#[test]
fn a_child_whose_main_went_past_its_work_makes_no_children() {
    if std::env::var_os("AGENTD_SUBAGENT").is_some() {
        let stage = Stage::new([Rule::subagent().calls([call("x", json!({}))])], "");
        let refused = stage.builder().start().map(drop).expect_err("it is a child");
        assert!(matches!(refused, BuildError::IsChild));
        assert!(refused.to_string().contains("agentd::child_main()"), "{refused}");
        println!("refused, as it should be");
        return;
    }
    let mut again = Command::new(std::env::current_exe().expect("this test"));
    again.env("AGENTD_SUBAGENT", "1").args(["--nocapture", "--exact"]);
    let said =
        again.arg("ends::a_child_whose_main_went_past_its_work_makes_no_children").output().expect("it runs");
    let out = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success() && out.contains("refused, as it should be"), "{said:?}");
}
