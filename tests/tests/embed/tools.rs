//! The program's own tools, called by agents.

use super::stage::{Stage, askers, on_both};
use agentd::embed::{CallError, ToolCall, Tools, Work};
use agentd_core::record::Status;
use agentd_tests::kit::{Rule, call};
use serde_json::json;

#[test]
fn a_run_calls_the_program_and_answers_with_what_it_says() {
    on_both(|| async {
        let stage = Stage::new(askers(), "");
        let (supervisor, driving, mut asks) = stage.start();
        let run = supervisor.run("what is new?").await.expect("a run");
        let asked = asks.next().await;
        assert_eq!(asked.call.handle, Some(run.handle()));
        assert_eq!(json!(asked.call.args), json!({ "q": "what is new?" }));
        asked.answer.send(Ok(json!({ "new": 3 }))).expect("it waits");
        let result = run.result().await.expect("a result");
        assert_eq!(
            (result.status, &result.result),
            (Status::Completed, &json!({ "new": 3 })),
            "{:?}",
            result.error
        );
        assert_eq!(run.result().await.expect("the same").result, result.result);
        supervisor.shutdown().await;
        assert_eq!(driving.await.expect("no panic").expect("it ends well").leaked, 0);
        stage.assert_nothing_left();
    });
}

#[test]
fn the_conversation_calls_it_too_and_errors_and_panics_are_what_the_model_reads() {
    on_both(|| async {
        let rules = vec![
            Rule::worker().turn(1).calls([call("app.fail", json!({})), call("app.panic", json!({}))]),
            Rule::worker().says("{{ results | map(attribute='text') | join(' / ') }}"),
        ];
        let stage = Stage::new(rules, "");
        let schema = || json!({ "type": "object" });
        let tools = Tools::new("app")
            .tool("fail", "", schema(), |call: ToolCall| async move {
                assert_eq!(call.handle, None, "the conversation has no handle");
                Err("no such thing".to_owned())
            })
            .tool("panic", "", schema(), |_| async {
                panic!("a test's panic, which is to be seen on stderr")
            });
        let (supervisor, driver) = stage.builder().tools(tools).start().expect("it starts");
        let driving = tokio::spawn(driver);
        let answer = supervisor.prompt("try both").await.expect("an answer");
        let text = answer.result.to_string();
        assert!(text.contains("no such thing") && text.contains("broke off inside the program"), "{text}");
        assert_eq!(answer.evidence.tool_errors, 2);
        stage.ends_well(supervisor, driving).await;
    });
}

#[test]
fn a_run_that_is_not_granted_them_does_not_have_them() {
    on_both(|| async {
        let stage = Stage::new(askers(), "");
        let (supervisor, driving, _asks) = stage.start();
        for work in [Work::new("x").servers(Vec::<String>::new()), Work::new("x").tools(Vec::<String>::new())]
        {
            let result = supervisor.run(work).await.expect("a run").result().await.expect("a result");
            assert!(result.result.to_string().contains("no tool"), "{}", result.result);
        }
        for work in [Work::new("x").servers(["apps"]), Work::new("x").tools(["app.asks"])] {
            let refused = supervisor.run(work).await.expect_err("there is none of that name");
            assert!(matches!(&refused, CallError::Refused(_)), "{refused}");
            assert!(refused.to_string().contains("app") || refused.to_string().contains("ask"), "{refused}");
        }
        stage.ends_well(supervisor, driving).await;
    });
}

#[test]
fn the_call_of_a_run_that_is_killed_is_dropped() {
    on_both(|| async {
        let stage = Stage::new(askers(), "");
        let (supervisor, driving, mut asks) = stage.start();
        let run = supervisor.run("wait").await.expect("a run");
        let mut asked = asks.next().await;
        let result = run.kill("enough").await.expect("a result");
        assert_eq!(result.status, Status::Cancelled);
        assert!(result.error.as_deref().is_some_and(|error| error.contains("enough")), "{:?}", result.error);
        asked.answer.closed().await;
        stage.ends_well(supervisor, driving).await;
    });
}
