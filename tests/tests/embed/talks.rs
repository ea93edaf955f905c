//! What a program asks of its runs and its conversation.

use super::stage::{Stage, askers, on_both};
use agentd::embed::{CallError, News, Work};
use agentd_core::record::Status;
use agentd_tests::kit::{Rule, call};
use serde_json::json;

#[test]
fn a_wait_that_is_dropped_ends_and_the_run_goes_on() {
    on_both(|| async {
        let stage = Stage::new(askers(), "");
        let (supervisor, driving, mut asks) = stage.start();
        let run = supervisor.run("wait").await.expect("a run");
        let asked = asks.next().await;
        tokio::select! {
            biased;
            ended = run.result() => panic!("{ended:?}"),
            status = run.status() => assert_eq!(status.expect("a status").status, Status::Running),
        }
        let listed = supervisor.list().await.expect("a list");
        assert_eq!(
            listed.iter().map(|r| (r.handle, r.status)).collect::<Vec<_>>(),
            [(run.handle(), Status::Running)]
        );
        asked.answer.send(Ok(json!("done"))).expect("it waits");
        let again = supervisor.of_handle(run.handle());
        assert_eq!(again.result().await.expect("a result").result, json!("done"));
        assert_eq!(again.status().await.expect("a status").status, Status::Completed);
        stage.ends_well(supervisor, driving).await;
    });
}

#[test]
fn a_run_is_steered_and_asked_to_finish() {
    on_both(|| async {
        let rules = vec![
            Rule::subagent().told("steered").says("heard: {{ text }}"),
            Rule::subagent().turn(1).calls([call("app.ask", json!({}))]),
            Rule::subagent().says("finished"),
        ];
        let stage = Stage::new(rules, "");
        let (supervisor, driving, mut asks) = stage.start();
        let steered = supervisor.run("work").await.expect("a run");
        let asked = asks.next().await;
        steered.steer("you are steered").await.expect("it takes it");
        asked.answer.send(Ok(json!(1))).expect("it waits");
        let result = steered.result().await.expect("a result");
        assert_eq!(result.result, json!("heard: you are steered"), "{:?}", result.error);

        let finished = supervisor.run("work").await.expect("a run");
        let asked = asks.next().await;
        finished.finish("time is up").await.expect("it takes it");
        asked.answer.send(Ok(json!(1))).expect("it waits");
        let result = finished.result().await.expect("a result");
        assert_eq!((result.partial, &result.result), (true, &json!("finished")), "{:?}", result.error);
        let late = finished.steer("too late").await.expect_err("it has ended");
        assert!(matches!(&late, CallError::Refused(refusal) if refusal.gate == "handle"), "{late}");
        stage.ends_well(supervisor, driving).await;
    });
}

#[test]
fn a_warm_run_has_a_turn_for_each_message() {
    on_both(|| async {
        let stage = Stage::new([Rule::subagent().says("turn {{ message }}: {{ text }}")], "");
        let (supervisor, driving, _asks) = stage.start();
        let run = supervisor.run(Work::new("a").warm()).await.expect("a run");
        let turns =
            [run.first_turn(), run.send("b").await.expect("sent"), run.send("c").await.expect("sent")];
        let mut said = Vec::new();
        for turn in &turns {
            said.push(turn.result().await.expect("a turn").result);
        }
        assert_eq!(said.len(), 3);
        for (said, text) in said.iter().zip(["a", "b", "c"]) {
            assert!(said.as_str().is_some_and(|said| said.ends_with(&format!(": {text}"))), "{said}");
        }
        run.retire().await.expect("it is warm");
        let result = run.result().await.expect("a result");
        assert_eq!((result.status, &result.result), (Status::Completed, &said[2]));
        assert!(run.send("d").await.is_err());
        stage.ends_well(supervisor, driving).await;
    });
}

#[test]
fn a_conversation_has_its_prompts_in_order_and_a_dropped_one_is_taken_back() {
    on_both(|| async {
        let stage = Stage::new(askers(), "");
        let (supervisor, driving, mut asks) = stage.start();
        // Three at once: the first has its turn, the second is taken back while it waits, the third comes after.
        let first = tokio::spawn({
            let s = supervisor.clone();
            async move { s.prompt("one").await }
        });
        let asked = asks.next().await;
        let second = tokio::spawn({
            let s = supervisor.clone();
            async move { s.prompt("two").await }
        });
        tokio::task::yield_now().await;
        second.abort();
        assert!(second.await.is_err_and(|error| error.is_cancelled()));
        let third = tokio::spawn({
            let s = supervisor.clone();
            async move { s.prompt("three").await }
        });
        asked.answer.send(Ok(json!("1"))).expect("it waits");
        assert_eq!(first.await.expect("no panic").expect("an answer").result, json!("1"));
        let asked = asks.next().await;
        assert_eq!(json!(asked.call.args), json!({ "q": "three" }));
        asked.answer.send(Ok(json!("3"))).expect("it waits");
        assert_eq!(third.await.expect("no panic").expect("an answer").result, json!("3"));
        // One that is taken back in its turn: the tool's call goes with it, and the worker stays.
        let fourth = tokio::spawn({
            let s = supervisor.clone();
            async move { s.prompt("four").await }
        });
        let mut asked = asks.next().await;
        fourth.abort();
        asked.answer.closed().await;
        let fifth = tokio::spawn({
            let s = supervisor.clone();
            async move { s.prompt("five").await }
        });
        let asked = asks.next().await;
        assert_eq!(json!(asked.call.args), json!({ "q": "five" }));
        asked.answer.send(Ok(json!("5"))).expect("it waits");
        assert_eq!(fifth.await.expect("no panic").expect("an answer").result, json!("5"));
        stage.ends_well(supervisor, driving).await;
    });
}

#[test]
fn subscribers_hear_what_happens_and_that_it_ended() {
    on_both(|| async {
        let stage = Stage::new([Rule::subagent().says("x")], "");
        let (supervisor, driver, _asks) = stage.undriven();
        let mut news = supervisor.subscribe();
        let driving = tokio::spawn(driver);
        supervisor.run("x").await.expect("a run").result().await.expect("a result");
        supervisor.shutdown().await;
        driving.await.expect("no panic").expect("it ends well");
        let mut events = Vec::new();
        while let Some(news) = news.next().await {
            match news {
                News::Note(note) => events.push(note.event),
                other => panic!("{other:?}"),
            }
        }
        for name in ["subagent.spawn", "child.ready", "subagent.result", "drain.start", "drain.done"] {
            assert!(events.iter().any(|event| event == name), "{name}: {events:?}");
        }
        assert_eq!(supervisor.subscribe().next().await, None, "it has ended");
        assert_eq!(supervisor.run("x").await.expect_err("it has ended"), CallError::Ended);
        stage.assert_nothing_left();
    });
}
