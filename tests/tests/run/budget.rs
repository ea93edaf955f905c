//! Budgets (S15.6) against a priced provider: whatever is asked at once and however calls end, the bill stays within the cap.

use crate::stage::{BOTH, PROMPT, Stage, said};
use agentd_tests::kit::Running;
use agentd_tests::model_server::{Answer, Exchange, Speaks};
use serde_json::{Value, json};
use std::time::Duration;

const WIDE: &str = "limits: {run: {repeats: 0}, subagents: {breadth: 20, rate: 100/1s}}";

/// A thousandth of a dollar a token, read or written.
const PRICES: &str = r#"{"the-model": {"input": 1000, "output": 1000}}"#;

/// A run whose calls cost at most so many dollars, each with at most 100 tokens written.
fn start(speaks: Speaks, dollars: &str, on_exhausted: &str, config: &str) -> (Stage, Running) {
    let env = [
        ("AGENTD_INTELLIGENCE_PRICES", PRICES),
        ("AGENTD_INTELLIGENCE_MAX_OUTPUT", "100"),
        ("AGENTD_INTELLIGENCE_BUDGET_LIFETIME_USD", dollars),
        ("AGENTD_INTELLIGENCE_BUDGET_ON_EXHAUSTED", on_exhausted),
    ];
    Stage::start_with(speaks, config, &env)
}

fn twenty() -> Vec<(&'static str, Value)> {
    (0..20).map(|i| ("subagent_run", json!({ "instruction": format!("part {i}"), "mode": "sync" }))).collect()
}

/// Bytes of a request, more than a provider could count tokens in it.
fn bytes(exchange: &Exchange) -> u64 {
    exchange.request.body.to_string().len() as u64
}

#[test]
fn twenty_children_never_pass_the_cap() {
    for speaks in BOTH {
        let (mut stage, running) = start(speaks, "100", "refuse", WIDE);
        let all = stage.calls(&twenty());
        let mut bill = 0;
        let mut calls = 0;
        let asked = stage.root();
        bill += bytes(&asked) / 4 + 100;
        asked.answer(&all.usage(bill - 100, 100));
        // Each child goes on until it may not: a provider that counts much, and one that counts little.
        while let Some(exchange) = stage.any_within(Duration::from_secs(5)) {
            calls += 1;
            let (input, output) = match calls % 3 {
                0 => (bytes(&exchange) / 2, 100),
                1 => (bytes(&exchange) / 4, 20),
                _ => (10, 1),
            };
            bill += input + output;
            assert!(bill <= 100_000, "{bill} thousandths of a dollar in {calls} calls");
            let last = said(&exchange.request).first().is_some_and(|text| text == PROMPT);
            let answer = match last {
                true => Answer::text("done"),
                false => Answer::text("on I go").call(&format!("c{calls}"), "nothing", "{}"),
            };
            exchange.answer(&answer.usage(input, output));
        }
        let ended = running.wait();
        let object = ended.json();
        assert!(calls > 20, "{calls} calls");
        assert_eq!((ended.code(), &object["status"]), (7, &json!("exhausted_tokens")), "{}", ended.log());
        assert!(
            object["error"].as_str().is_some_and(|e| e.contains("lifetime budget is used up")),
            "{object}"
        );
        let usd = object["usage"]["subtree"]["usd"].as_f64().expect("priced");
        assert!((usd * 1_000.0 - bill as f64).abs() < 0.01, "{usd} dollars, and the bill is {bill}");
        let refused = ended.events.all().into_iter().filter(|e| e["event"] == "budget.exhausted").count();
        assert_eq!(refused, 21, "each child and the conversation were told");
    }
}

#[test]
fn a_budget_that_fails_a_run_fails_it() {
    let (mut stage, running) = start(Speaks::Openai, "0.5", "fail", "");
    assert!(stage.any_within(Duration::from_millis(100)).is_none(), "no call fits");
    let ended = running.wait();
    let object = ended.json();
    assert_eq!((ended.code(), &object["status"]), (1, &json!("failed")), "{}", ended.log());
    assert!(object["error"].as_str().is_some_and(|e| e.contains("$0.0000 of $0.5000")), "{object}");
}

/// The cheaper model serves where the own one does not fit, and is paid at its own price.
#[test]
fn a_cheaper_model_takes_over() {
    let env = [
        (
            "AGENTD_INTELLIGENCE_PRICES",
            r#"{"the-model": {"input": 1000, "output": 1000}, "tiny": {"input": 1, "output": 1}}"#,
        ),
        ("AGENTD_INTELLIGENCE_MAX_OUTPUT", "100"),
        ("AGENTD_INTELLIGENCE_MODELS", "{small: {model: tiny}}"),
        ("AGENTD_INTELLIGENCE_BUDGET_LIFETIME_USD", "0.5"),
        ("AGENTD_INTELLIGENCE_BUDGET_ON_EXHAUSTED", "degrade"),
        ("AGENTD_INTELLIGENCE_BUDGET_DEGRADE_MODEL", "small"),
    ];
    let (mut stage, running) = Stage::start_with(Speaks::Openai, "", &env);
    let asked = stage.root();
    assert_eq!(asked.request.body["model"], "tiny");
    asked.answer(&Answer::text("done").usage(1_000, 100));
    let ended = running.wait();
    let object = ended.json();
    assert_eq!((ended.code(), &object["result"]), (0, &json!("done")), "{}", ended.log());
    assert_eq!(object["usage"]["own"]["usd"], json!(0.0011));
    assert!(ended.events.all().iter().any(|e| e["event"] == "budget.degraded"));
}

/// What one run and all below it may spend.
#[test]
fn money_of_a_call_bounds_its_run() {
    let env = [("AGENTD_INTELLIGENCE_PRICES", PRICES), ("AGENTD_INTELLIGENCE_MAX_OUTPUT", "100")];
    let (mut stage, running) = Stage::start_with(Speaks::Anthropic, "", &env);
    let args = |usd: f64| json!({ "instruction": format!("at {usd}"), "limits": { "usd": usd } });
    let (next, told) = stage.root_calls(&[
        ("subagent_run", args(0.2)),
        ("subagent_run", json!({"instruction": "x", "limits": {"usd": 0}})),
    ]);
    assert_eq!(told[0]["status"], "exhausted_tokens", "{told:?}");
    assert!(told[0]["error"].as_str().is_some_and(|e| e.contains("the run's budget is used up")), "{told:?}");
    let refused = told[1]["error"]["message"].as_str().unwrap_or_default();
    assert!(refused.contains("limits.usd: saw 0, accepted is a number of dollars"), "{told:?}");
    next.answer(&Answer::text("done"));
    assert_eq!(running.wait().code(), 0);
}
