//! A store of the program's own: records are saved one after another, and nobody hears of what is not saved.

use super::stage::{Stage, askers, current_thread, on_both};
use agentd::embed::{CallError, Record, SaveError};
use agentd_core::record::Status;
use agentd_tests::kit::Rule;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

#[test]
fn records_come_in_order_and_a_save_that_fails_is_tried_again() {
    on_both(|| async {
        let stage = Stage::new([Rule::subagent().says("x")], "");
        let saved: Arc<Mutex<Vec<Record>>> = Arc::default();
        let (list, mut fails) = (Arc::clone(&saved), 3);
        let builder = stage.builder().store(move |record: Record| {
            // The end of a run fails by an error, by a panic, and by a panic before there is a future.
            let fail = if record.status.is_terminal() && fails > 0 {
                fails -= 1;
                Some(fails)
            } else {
                None
            };
            let list = Arc::clone(&list);
            assert_ne!(fail, Some(1), "a test's panic, which is to be seen on stderr");
            async move {
                match fail {
                    Some(0) => panic!("a test's panic, which is to be seen on stderr"),
                    Some(_) => return Err(SaveError::retryable("the disk is full")),
                    None => {}
                }
                tokio::task::yield_now().await;
                list.lock().expect("whole").push(record);
                Ok(())
            }
        });
        let (supervisor, driver) = builder.start().expect("it starts");
        let driving = tokio::spawn(driver);
        let run = supervisor.run("x").await.expect("a run");
        assert!(!saved.lock().expect("whole").is_empty(), "it was saved before its handle was told");
        let result = run.result().await.expect("a result");
        assert_eq!(result.status, Status::Completed);
        let statuses: Vec<Status> = saved.lock().expect("whole").iter().map(|record| record.status).collect();
        assert!(statuses.is_sorted() && statuses.last() == Some(&Status::Completed), "{statuses:?}");
        stage.ends_well(supervisor, driving).await;
    });
}

#[test]
fn secrets_that_cannot_be_put_in_fail_the_run_and_nothing_else() {
    on_both(|| async {
        let stage = Stage::new([Rule::subagent().says("{{ instruction }}")], "");
        let builder = stage.builder().secrets(|spawn| match spawn.instruction.as_str() {
            "gone" => Err("the vault is sealed".to_owned()),
            "panic" => panic!("a test's panic, which is to be seen on stderr"),
            _ => {
                spawn.instruction.push_str(" with a secret");
                Ok(())
            }
        });
        let (supervisor, driver) = builder.start().expect("it starts");
        let driving = tokio::spawn(driver);
        for (instruction, words) in [("gone", "the vault is sealed"), ("panic", "broke off (a panic)")] {
            let result = supervisor.run(instruction).await.expect("a run").result().await.expect("a result");
            let error = result.error.unwrap_or_default();
            assert!(result.status == Status::Failed && error.contains(words), "{instruction}: {error}");
        }
        let result = supervisor.run("fine").await.expect("a run").result().await.expect("a result");
        assert_eq!(result.result, serde_json::json!("fine with a secret"));
        stage.ends_well(supervisor, driving).await;
    });
}

#[test]
fn a_run_that_cannot_be_saved_is_refused() {
    on_both(|| async {
        let stage = Stage::new(askers(), "");
        let builder = stage.builder().store(|_record| async {
            Err(SaveError { error: "this store takes nothing".into(), retryable: false })
        });
        let (supervisor, driver) = builder.start().expect("it starts");
        let driving = tokio::spawn(driver);
        let refused = supervisor.run("x").await.expect_err("it cannot be saved");
        assert!(
            matches!(&refused, CallError::Refused(refusal) if refusal.message.contains("takes nothing")),
            "{refused}"
        );
        supervisor.shutdown_now().await;
        driving.await.expect("no panic").expect("it ends well");
        stage.assert_nothing_left();
    });
}

#[test]
fn a_store_that_hangs_holds_up_nothing_else_and_no_end() {
    current_thread().block_on(async {
        let stage = Stage::new(askers(), "");
        let (asked, mut asks) = mpsc::unbounded_channel();
        let builder = stage.builder().store(move |record: Record| {
            let _over = asked.send(record);
            std::future::pending()
        });
        let (supervisor, driver) = builder.start().expect("it starts");
        let driving = tokio::spawn(driver);
        let waiting = tokio::spawn({
            let supervisor = supervisor.clone();
            async move { supervisor.run("x").await.map(drop) }
        });
        asks.recv().await.expect("a record");
        assert_eq!(supervisor.list().await.expect("a list").len(), 1, "others are served");
        driving.abort();
        assert!(driving.await.is_err());
        assert_eq!(waiting.await.expect("no panic"), Err(CallError::Ended));
        stage.assert_nothing_left();
    });
}
