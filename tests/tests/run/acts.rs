//! Every mode and act of delegation (S6), as a real model would ask for it: `agentd run` against a provider's server in
//! both dialects, the right value in each.

use crate::stage::{BOTH, PROMPT, Stage, results, said};
use agentd_tests::model_server::{Answer, Speaks};
use serde_json::{Value, json};

const WIDE: &str = "limits: {subagents: {breadth: 12, rate: 100/1s, depth: 2}}";

fn spawn(instruction: &str, more: Value) -> (&'static str, Value) {
    let mut args = json!({ "instruction": instruction });
    if let (Value::Object(args), Value::Object(more)) = (&mut args, more) {
        args.extend(more);
    }
    ("subagent_run", args)
}

/// F26, F27: a message's calls run side by side, and each result is its caller's own, in call order.
#[test]
fn sync_calls_answer_each_with_its_own() {
    for speaks in BOTH {
        let (mut stage, running) = Stage::start(speaks, WIDE);
        let calls: Vec<_> = (0..6).map(|i| spawn(&format!("part {i}"), json!({}))).collect();
        let answer = stage.calls(&calls);
        stage.root().answer(&answer);
        // Answered in another order than asked.
        for i in [3, 0, 5, 1, 4, 2] {
            stage.of(&format!("part {i}")).answer(&Answer::text(&format!("token {i}")).usage(10, 1));
        }
        let next = stage.root();
        let told: Vec<String> = results(&next.request)
            .iter()
            .map(|r| {
                format!("{} {}", r["status"].as_str().unwrap_or("?"), r["result"].as_str().unwrap_or("?"))
            })
            .collect();
        assert_eq!(told, (0..6).map(|i| format!("completed token {i}")).collect::<Vec<_>>());
        next.answer(&Answer::text("done").usage(100, 5));
        let ended = running.wait();
        let object = ended.json();
        assert_eq!((ended.code(), object["result"].as_str()), (0, Some("done")), "{}", ended.log());
        assert_eq!(object["evidence"]["children"], 6);
        let usage = &object["usage"];
        assert_eq!(usage["subtree"]["output"].as_u64(), usage["own"]["output"].as_u64().map(|own| own + 6));
    }
}

#[test]
fn async_is_collected_and_detached_is_nobodys() {
    for speaks in BOTH {
        let (mut stage, running) = Stage::start(speaks, "lifecycle: {drain_timeout: 1s}");
        let calls =
            [spawn("collect me", json!({"mode": "async"})), spawn("leave me", json!({"mode": "detached"}))];
        let (next, told) = stage.root_calls(&calls);
        for (object, handle) in told.iter().zip(["sub-1", "sub-2"]) {
            let keys: Vec<&str> = object.as_object().expect("an object").keys().map(String::as_str).collect();
            assert_eq!(keys, ["handle", "run_id", "status"], "{object}");
            assert_eq!((&object["handle"], &object["status"]), (&json!(handle), &json!("running")));
        }
        let answer = stage.calls(&[("subagent_await", json!({"handle": "sub-1", "timeout": "50ms"}))]);
        next.answer(&answer);
        let next = stage.root();
        let late = &results(&next.request)[0];
        assert_eq!((&late["timed_out"], &late["status"]), (&json!(true), &json!("running")));
        let answer = stage.calls(&[("subagent_await", json!({"handle": "sub-1"}))]);
        next.answer(&answer);
        stage.of("collect me").answer(&Answer::text("[1, 2]"));
        let next = stage.root();
        assert_eq!(results(&next.request)[0]["result"], json!([1, 2]));
        next.answer(&Answer::text("enough"));
        // The detached one hangs at its model: it gets the drain's time and is stopped.
        let hangs = stage.of("leave me");
        let ended = running.wait();
        hangs.until_closed();
        assert_eq!(ended.code(), 0, "{}", ended.log());
        let parked = ended
            .events
            .all()
            .into_iter()
            .find(|e| e["event"] == "subagent.result" && e["handle"] == "sub-2");
        assert_eq!(parked.expect("its end is logged")["status"], "parked");
    }
}

/// F25: fifty messages during one turn, in order, each exactly one turn.
#[test]
fn fifty_sends_during_one_turn_are_fifty_turns_in_order() {
    for speaks in BOTH {
        let (mut stage, running) = Stage::start(speaks, WIDE);
        let (next, told) = stage.root_calls(&[spawn("first", json!({"mode": "warm"}))]);
        assert_eq!(told[0]["status"], "running");
        let first = stage.of("first");
        let sends: Vec<_> = (1..=50)
            .map(|i| ("subagent_send", json!({"handle": "sub-1", "text": format!("message {i}")})))
            .collect();
        let answer = stage.calls(&sends);
        next.answer(&answer);
        let next = stage.root();
        for (i, sent) in (1..).zip(results(&next.request)) {
            assert_eq!(sent, json!({"handle": "sub-1", "message_id": i + 1, "queued": i}));
        }
        first.answer(&Answer::text("turn 1"));
        for i in 1..=50 {
            let asked = stage.of("first");
            let texts = said(&asked.request);
            assert_eq!(texts.len(), i + 1, "one message a turn: {texts:?}");
            assert_eq!(texts[i], format!("message {i}"));
            asked.answer(&Answer::text(&format!("turn {}", i + 1)));
        }
        let answer = stage.calls(&[
            ("subagent_await", json!({"handle": "sub-1", "message_id": 51})),
            ("subagent_await", json!({"handle": "sub-1", "message_id": 7})),
            ("subagent_retire", json!({"handle": "sub-1"})),
        ]);
        next.answer(&answer);
        let next = stage.root();
        let told = results(&next.request);
        assert_eq!((&told[0]["result"], &told[0]["message_id"]), (&json!("turn 51"), &json!(51)));
        assert_eq!(told[1]["result"], "turn 7");
        assert_eq!((&told[2]["status"], &told[2]["dropped"]), (&json!("retiring"), &json!([])));
        let answer = stage.calls(&[
            ("subagent_await", json!({"handle": "sub-1"})),
            ("subagent_send", json!({"handle": "sub-1", "text": "too late"})),
        ]);
        next.answer(&answer);
        let next = stage.root();
        let told = results(&next.request);
        assert_eq!((&told[0]["status"], &told[0]["result"]), (&json!("completed"), &json!("turn 51")));
        assert!(
            told[1]["error"]["message"].as_str().is_some_and(|m| m.contains("ended as completed")),
            "{}",
            told[1]
        );
        next.answer(&Answer::text("done"));
        let ended = running.wait();
        assert_eq!(ended.code(), 0, "{}", ended.log());
    }
}

#[test]
fn a_steer_is_told_at_the_next_step_and_work_is_kept() {
    for speaks in BOTH {
        let (mut stage, running) = Stage::start(speaks, WIDE);
        let (next, _) = stage.root_calls(&[spawn("dig", json!({"mode": "async"}))]);
        let digging = stage.of("dig");
        let answer =
            stage.calls(&[("subagent_steer", json!({"handle": "sub-1", "text": "leave vendor out"}))]);
        next.answer(&answer);
        let next = stage.root();
        assert_eq!(results(&next.request)[0]["status"], "running");
        running.wait_for_event("subagent.steer", |_| true);
        // It would have ended with this text; now it makes one more step.
        digging.answer(&Answer::text("found it all"));
        let again = stage.of("dig");
        assert_eq!(said(&again.request), ["dig", "leave vendor out"]);
        let kept = again
            .request
            .messages()
            .iter()
            .any(|m| m["role"] == "assistant" && m.to_string().contains("found it all"));
        assert!(kept, "{:#}", again.request.body);
        again.answer(&Answer::text("found it without vendor"));
        let answer = stage.calls(&[("subagent_await", json!({"handle": "sub-1"}))]);
        next.answer(&answer);
        let next = stage.root();
        assert_eq!(results(&next.request)[0]["result"], "found it without vendor");
        next.answer(&Answer::text("done"));
        assert_eq!(running.wait().code(), 0);
    }
}

#[test]
fn finish_is_one_last_call_without_tools() {
    for speaks in BOTH {
        let files = "mcp: {servers: [{name: files, builtin: files, root: .}]}";
        let (mut stage, running) = Stage::start(speaks, files);
        let (next, _) = stage.root_calls(&[spawn("read a lot", json!({"mode": "async"}))]);
        let reading = stage.of("read a lot");
        assert!(reading.request.tools().contains(&"list"), "{:?}", reading.request.tools());
        let answer =
            stage.calls(&[("subagent_finish", json!({"handle": "sub-1", "reason": "time is short"}))]);
        next.answer(&answer);
        let next = stage.root();
        running.wait_for_event("subagent.finish", |_| true);
        let answer = stage.calls(&[("list", json!({}))]);
        reading.answer(&answer);
        let last = stage.of("read a lot");
        // Declared, for the history has calls of them, and not to be called.
        let none = match speaks {
            Speaks::Openai | Speaks::Responses => json!("none"),
            Speaks::Anthropic => json!({"type": "none"}),
        };
        assert_eq!(last.request.body["tool_choice"], none, "no tools any more");
        assert!(last.request.body.to_string().contains("time is short"));
        last.answer(&Answer::text("as far as I came"));
        let answer = stage.calls(&[("subagent_await", json!({"handle": "sub-1"}))]);
        next.answer(&answer);
        let next = stage.root();
        let object = &results(&next.request)[0];
        assert_eq!(
            (&object["status"], &object["partial"], &object["result"]),
            (&json!("completed"), &json!(true), &json!("as far as I came"))
        );
        next.answer(&Answer::text("done"));
        assert_eq!(running.wait().code(), 0);
    }
}

/// S7.9: a kill reaches a child inside a model call, whose connection is shut.
#[test]
fn a_kill_cuts_a_model_call_and_is_charged_by_estimate() {
    for speaks in BOTH {
        let (mut stage, running) = Stage::start(speaks, WIDE);
        let (next, _) = stage.root_calls(&[spawn("think for ever", json!({"mode": "async"}))]);
        let mut thinking = stage.of("think for ever").stream();
        thinking.send(": still here\n\n");
        let answer = stage.calls(&[("subagent_kill", json!({"handle": "sub-1", "reason": "no more"}))]);
        next.answer(&answer);
        thinking.until_closed();
        let next = stage.root();
        let object = &results(&next.request)[0];
        assert_eq!(object["status"], "cancelled");
        assert!(object["error"].as_str().is_some_and(|e| e.contains("no more")), "{object}");
        next.answer(&Answer::text("done").usage(1, 1));
        let ended = running.wait();
        let usage = &ended.json()["usage"]["subtree"];
        assert_eq!(usage["estimated"], true, "{usage}");
        assert!(!ended.log().contains("kill.escalated"), "it left by itself: {}", ended.log());
    }
}

#[test]
fn those_who_wait_begin_by_priority() {
    for speaks in BOTH {
        let queue = "limits: {subagents: {breadth: 1, queue: 3, rate: 100/1s}}";
        let (mut stage, running) = Stage::start(speaks, queue);
        let one = |name: &str, priority: &str| spawn(name, json!({"mode": "async", "priority": priority}));
        let calls =
            [one("a", "normal"), one("b", "low"), one("c", "normal"), one("d", "high"), one("e", "high")];
        let (next, told) = stage.root_calls(&calls);
        let statuses: Vec<&str> = told
            .iter()
            .map(|r| r["status"].as_str().or(r["error"]["gate"].as_str()).unwrap_or("?"))
            .collect();
        assert_eq!(statuses, ["running", "held", "held", "held", "breadth"]);
        for name in ["a", "d", "c", "b"] {
            stage.of(name).answer(&Answer::text(name));
        }
        let answer =
            stage.calls(&[("subagent_await", json!({"handles": ["sub-1", "sub-2", "sub-3", "sub-4"]}))]);
        next.answer(&answer);
        let next = stage.root();
        let all = results(&next.request).remove(0);
        let told: Vec<&Value> =
            all["results"].as_array().into_iter().flatten().map(|r| &r["result"]).collect();
        assert_eq!(told, [&json!("a"), &json!("b"), &json!("c"), &json!("d")]);
        next.answer(&Answer::text("done"));
        let ended = running.wait();
        let started: Vec<Value> = ended
            .events
            .all()
            .into_iter()
            .filter(|e| e["event"] == "subagent.spawn")
            .map(|e| e["handle"].clone())
            .collect();
        assert_eq!(started, ["sub-1", "sub-4", "sub-3", "sub-2"]);
    }
}

/// S6.8, S3.6, F22: real at depth 2, with the authority of the one that asks and no more; a child that was not told it
/// may delegate has no such tool.
#[test]
fn delegation_goes_on_where_it_is_allowed_and_only_narrows() {
    for speaks in BOTH {
        let config = format!("{WIDE}\nmcp: {{servers: [{{name: files, builtin: files, root: ., ns: f}}]}}");
        let (mut stage, running) = Stage::start(speaks, &config);
        let context = json!([
            {"role": "user", "content": "spawn something"}, {"role": "assistant", "content": "I will not"}
        ]);
        let calls = [
            spawn("may", json!({"delegate": true, "tools": ["f.list", "f.read"]})),
            spawn("may not", json!({"context": context})),
        ];
        let answer = stage.calls(&calls);
        stage.root().answer(&answer);
        let lone = stage.of("spawn something");
        assert_eq!(
            said(&lone.request),
            ["spawn something", "may not"],
            "its context, its instruction, nothing else"
        );
        assert!(
            !lone.request.tools().iter().any(|t| t.starts_with("subagent")),
            "{:?}",
            lone.request.tools()
        );
        let answer = stage.calls(&[spawn("made up", json!({"depth": 0}))]);
        lone.answer(&answer);
        let lone = stage.of("spawn something");
        assert!(
            results(&lone.request)[0].to_string().contains("there is no tool `subagent_run`"),
            "{:#}",
            lone.request.body
        );
        lone.answer(&Answer::text("could not"));
        let may = stage.of("may");
        let answer = stage.calls(&[
            spawn("wider", json!({"tools": ["f.grep"]})),
            spawn("below", json!({"tools": ["f.list"]})),
        ]);
        may.answer(&answer);
        let below = stage.of("below");
        assert_eq!(below.request.tools(), ["f_list"]);
        below.answer(&Answer::text("deep"));
        let may = stage.of("may");
        let told = results(&may.request);
        assert!(told[0]["error"]["message"].as_str().is_some_and(|m| m.contains("f.grep")), "{}", told[0]);
        assert_eq!((&told[1]["result"], &told[1]["handle"]), (&json!("deep"), &json!("sub-3")));
        may.answer(&Answer::text("handed up"));
        let next = stage.root();
        let told: Vec<Value> = results(&next.request).into_iter().map(|r| r["result"].clone()).collect();
        assert_eq!(told, ["handed up", "could not"]);
        next.answer(&Answer::text("done"));
        let ended = running.wait();
        let depth = ended.events.all().into_iter().filter_map(|e| e["depth"].as_u64()).max();
        assert_eq!((ended.code(), depth), (0, Some(2)), "{}", ended.log());
    }
}

#[test]
fn an_answer_that_does_not_fit_its_schema_is_corrected_once() {
    for speaks in BOTH {
        let (mut stage, running) = Stage::start(speaks, WIDE);
        let schema =
            json!({"type": "object", "required": ["lines"], "properties": {"lines": {"type": "integer"}}});
        let answer = stage.calls(&[
            spawn("good at last", json!({"output_schema": schema})),
            spawn("never good", json!({"output_schema": schema})),
        ]);
        stage.root().answer(&answer);
        let asked = stage.of("good at last");
        assert!(asked.request.body.to_string().contains("lines"), "the schema is shown");
        asked.answer(&Answer::text("seven lines"));
        let asked = stage.of("good at last");
        assert_eq!(said(&asked.request).len(), 2, "the mismatch is returned: {:#}", asked.request.body);
        asked.answer(&Answer::text("```json\n{\"lines\": 7}\n```"));
        stage.of("never good").answer(&Answer::text("{\"lines\": \"7\"}"));
        stage.of("never good").answer(&Answer::text("{\"lines\": null}"));
        let next = stage.root();
        let told = results(&next.request);
        assert_eq!(
            (&told[0]["status"], &told[0]["result"]),
            (&json!("completed"), &json!({"lines": 7})),
            "{}",
            told[0]
        );
        assert_eq!((&told[1]["status"], &told[1]["partial"]), (&json!("failed"), &json!(true)));
        assert!(told[1]["error"].as_str().is_some_and(|e| e.starts_with("schema")), "{}", told[1]);
        assert_eq!(told[1]["result"], json!({"lines": null}), "the text is kept");
        next.answer(&Answer::text("done"));
        assert_eq!(running.wait().code(), 0);
    }
}

#[test]
fn the_plan_settles_and_the_turn_ends_with_data() {
    for speaks in BOTH {
        let (mut stage, running) = Stage::start(speaks, WIDE);
        let items = json!([{"title": "count"}, {"title": "compare"}]);
        let (next, told) = stage.root_calls(&[("plan_create", json!({"goal": "ship", "items": items}))]);
        assert_eq!(told[0]["items"][0]["status"], "pending");
        let answer = stage
            .calls(&[spawn("count", json!({"plan_item": 1})), spawn("compare", json!({"plan_item": 2}))]);
        next.answer(&answer);
        stage.of("count").answer(&Answer::text("12"));
        stage
            .of("compare")
            .json(400, &json!({"error": {"message": "no such thing", "type": "invalid_request_error"}}));
        let next = stage.root();
        let told = results(&next.request);
        assert_eq!((&told[0]["result"], &told[1]["status"]), (&json!("12"), &json!("failed")));
        let answer = stage.calls(&[("plan_get", json!({})), ("status", json!({}))]);
        next.answer(&answer);
        let next = stage.root();
        let told = results(&next.request);
        let statuses: Vec<&Value> =
            told[0]["items"].as_array().into_iter().flatten().map(|i| &i["status"]).collect();
        assert_eq!(statuses, [&json!("done"), &json!("blocked")], "{}", told[0]);
        assert_eq!((&told[1]["ended"]["all"], &told[1]["budget"]["spawns_left"]), (&json!(2), &json!(62)));
        let answer = stage.calls(&[("finish", json!({"result": {"counted": 12}}))]);
        next.answer(&answer);
        let ended = running.wait();
        assert_eq!((ended.code(), &ended.json()["result"]), (0, &json!({"counted": 12})), "{}", ended.log());
    }
}

/// S8.5, S15.3: each run is priced by its own model; the sums hold.
#[test]
fn models_are_chosen_and_what_they_cost_adds_up() {
    for speaks in BOTH {
        let prices = "{the-model: {input: 2, output: 10}, tiny: {input: 0.5, output: 1}}";
        let env = [
            ("AGENTD_INTELLIGENCE_PRICES", prices),
            ("AGENTD_INTELLIGENCE_MODELS", "{small: {model: tiny}}"),
        ];
        let (mut stage, running) = Stage::start_with(speaks, "subagents: {defaults: {model: small}}", &env);
        let answer = stage.calls(&[
            spawn("small by default", json!({})),
            spawn("like me", json!({"model": "inherit"})),
            spawn("x", json!({"model": "huge"})),
        ]);
        stage.root().answer(&answer.usage(1_000, 100));
        for (first, model) in [("small by default", "tiny"), ("like me", "the-model")] {
            let asked = stage.of(first);
            assert_eq!(asked.request.body["model"], model);
            asked.answer(&Answer::text("ok").usage(10_000, 1_000));
        }
        let next = stage.root();
        let told = results(&next.request);
        assert_eq!(told[0]["usage"]["own"]["usd"], json!(0.006));
        assert_eq!(told[1]["usage"]["own"]["usd"], json!(0.03));
        assert!(
            told[2]["error"]["message"].as_str().is_some_and(|m| m.contains("unknown huge")),
            "{}",
            told[2]
        );
        next.answer(&Answer::text("done").usage(1_000, 100));
        let object = running.wait().json();
        assert_eq!(object["usage"]["own"]["usd"], json!(0.006));
        assert_eq!(object["usage"]["subtree"]["usd"], json!(0.042));
    }
}

/// S6.7, F40: a worker that dies ends what its turn waits for, and nothing else.
#[test]
fn a_worker_that_dies_takes_its_sync_runs_along() {
    for speaks in BOTH {
        let (mut stage, running) = Stage::start(speaks, WIDE);
        let answer =
            stage.calls(&[spawn("waited for", json!({})), spawn("on its own", json!({"mode": "async"}))]);
        let asked = stage.root();
        asked.answer(&answer);
        let waited = stage.of("waited for");
        let own = stage.of("on its own");
        let worker = running.wait_for_event("worker.spawn", |_| true)["pid"].as_i64().expect("a pid");
        running.signal_child(i32::try_from(worker).expect("a pid"), rustix::process::Signal::KILL);
        waited.until_closed();
        own.answer(&Answer::text("went on"));
        let ended = running.wait();
        let status = |handle: &str| {
            let events = ended.events.all();
            let found = events.iter().find(|e| e["event"] == "subagent.result" && e["handle"] == handle);
            found.map(|e| e["status"].clone())
        };
        assert_eq!((status("sub-1"), status("sub-2")), (Some(json!("cancelled")), Some(json!("completed"))));
        assert_eq!(ended.json()["status"], "failed", "{PROMPT}: {}", ended.log());
    }
}
