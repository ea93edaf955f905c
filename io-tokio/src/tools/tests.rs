use super::*;
use agentd_core::id::NodeId;
use agentd_core::wire::message::{Files, Transport};
use serde_json::json;
use std::future::{pending, poll_fn};
use tokio::sync::oneshot;

fn schema() -> Value {
    json!({ "type": "object" })
}

fn files() -> Server {
    Server {
        name: "files".into(),
        ns: Some("fs".into()),
        transport: Transport::Files(Files { root: "/".into(), write: false }),
        allow: None,
        exclude: Vec::new(),
        timeout_ms: 1,
        start_timeout_ms: 1,
        required: true,
    }
}

fn call(call: u64, tool: &str, args: &Value) -> HostCall {
    let args = Json::of(args);
    HostCall { call, node: NodeId(1), handle: Some(Handle(3)), server: "app".into(), tool: tool.into(), args }
}

fn toolbox(tools: Tools) -> Toolbox {
    Toolbox::new(vec![tools], &[]).expect("they can be offered").0
}

async fn answer(toolbox: &mut Toolbox) -> (u64, bool, Value) {
    match poll_fn(|context| toolbox.poll_answer(context)).await {
        Event::HostToolAnswered { call, error, value } => (call, error, value.parse().expect("JSON")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn values_errors_panics_and_floods_are_all_answers() {
    let panics_at_once = |_: ToolCall| -> std::future::Ready<Answer> { panic!("before there is a future") };
    let mut toolbox = toolbox(
        Tools::new("app")
            .tool("echo", "", schema(), |call: ToolCall| async move {
                Ok(json!({ "who": call.handle, "what": call.args, "tool": call.tool }))
            })
            .tool("fail", "", schema(), |_| async { Err("no such customer".to_owned()) })
            .tool("panic", "", schema(), |_| async { panic!("inside") })
            .tool("panics", "", schema(), panics_at_once)
            .tool("flood", "", schema(), |_| async { Ok(Value::String("x".repeat(ANSWER_BYTES))) }),
    );
    toolbox.call(call(1, "echo", &json!({ "a": [1] })));
    let echoed = json!({ "who": "sub-3", "what": { "a": [1] }, "tool": "echo" });
    assert_eq!(answer(&mut toolbox).await, (1, false, echoed));
    for (number, tool, words) in [
        (2, "fail", "no such customer"),
        (3, "panic", "panic broke off inside the program"),
        (4, "panics", "panics broke off inside the program"),
        (5, "flood", "flood gave 4194306 bytes, at most 4194304"),
        (6, "gone", "no such tool"),
    ] {
        toolbox.call(call(number, tool, &json!({})));
        let (answered, error, said) = answer(&mut toolbox).await;
        assert!(answered == number && error && said.to_string().contains(words), "{tool}: {said}");
    }
    toolbox.call(call(7, "echo", &json!([1])));
    assert_eq!(answer(&mut toolbox).await, (7, true, json!("accepted is a JSON object")));
    assert!(toolbox.calls.is_empty() && toolbox.tasks.is_empty(), "nothing is remembered");
}

#[tokio::test]
async fn a_call_that_is_taken_back_is_dropped_and_not_answered() {
    struct Told(Option<oneshot::Sender<()>>);
    impl Drop for Told {
        fn drop(&mut self) {
            let _heard = self.0.take().map(|told| told.send(()));
        }
    }
    let (told, dropped) = oneshot::channel();
    let told = std::sync::Mutex::new(Some(told));
    let mut toolbox = toolbox(
        Tools::new("app")
            .tool("hang", "", schema(), move |_| {
                let guard = Told(told.lock().expect("whole").take());
                async move {
                    let _guard = guard;
                    pending().await
                }
            })
            .tool("ok", "", schema(), |_| async { Ok(json!(1)) }),
    );
    toolbox.call(call(1, "hang", &json!({})));
    tokio::task::yield_now().await;
    toolbox.cancel(1);
    toolbox.cancel(1);
    toolbox.cancel(77);
    dropped.await.expect("its future was dropped");
    toolbox.call(call(2, "ok", &json!({})));
    assert_eq!(answer(&mut toolbox).await, (2, false, json!(1)), "the only answer");
    toolbox.cancel(2);
}

#[test]
fn what_cannot_be_offered_is_named() {
    let one = |name: &str| Tools::new("app").tool(name, "", schema(), |_| async { Ok(Value::Null) });
    let big = "x".repeat(limits::MCP_DESCRIPTION_BYTES + 1);
    for (tools, words) in [
        (vec![Tools::new("")], ": its name cannot be granted"),
        (vec![Tools::new("a b")], "a b: its name cannot be granted"),
        (vec![Tools::new("*")], "cannot be granted"),
        (vec![Tools::new("plan")], "plan: the supervisor's own tools"),
        (vec![Tools::new("files")], "files: a server, or its tools, have this name already"),
        (vec![Tools::new("fs")], "fs: a server, or its tools, have this name already"),
        (vec![one("x"), one("y")], "app: a server, or its tools, have this name already"),
        (
            vec![one("b.c"), Tools::new("app.b").tool("c", "", schema(), |_| async { Ok(Value::Null) })],
            "app.b.c: it is registered twice",
        ),
        (vec![one(&"x".repeat(253))], "its name cannot be granted"),
        (vec![one("x*")], "app.x*: its name cannot be granted"),
        (
            vec![one("x").tool("x", "", schema(), |_| async { Ok(Value::Null) })],
            "app.x: it is registered twice",
        ),
        (
            vec![one("x").tool("y", "", json!(7), |_| async { Ok(Value::Null) })],
            "app.y: its schema is no JSON object",
        ),
        (
            vec![one("x").tool("y", big, schema(), |_| async { Ok(Value::Null) })],
            "its description has 16385 bytes",
        ),
    ] {
        let error = Toolbox::new(tools, &[files()]).map(|_| ()).expect_err(words);
        assert!(error.to_string().contains(words), "{words}: {error}");
    }
    let (_, servers) = Toolbox::new(vec![one("x"), Tools::new("none")], &[]).expect("they can be offered");
    assert_eq!(
        servers.iter().map(|s| (s.name.as_str(), s.tools.len())).collect::<Vec<_>>(),
        [("app", 1), ("none", 0)]
    );
}

#[test]
fn arguments_that_do_not_fit_are_told_to_the_model() {
    #[derive(Debug, serde::Deserialize)]
    struct Find {
        name: String,
    }
    let call = |args: Value| ToolCall {
        tool: "find".into(),
        handle: None,
        args: args.as_object().cloned().expect("an object"),
    };
    assert_eq!(call(json!({ "name": "x" })).parse::<Find>().expect("fits").name, "x");
    let said = call(json!({ "nam": "x" })).parse::<Find>().expect_err("does not fit");
    assert_eq!(said, "the arguments do not fit: missing field `name`");
}
