//! `intelligence.budget` and `limits…usd` (S15.6).

use super::*;
use agentd_core::budget::{Caps, OnExhausted, Per};
use agentd_core::money::Usd;

/// A scripted agent with this more in `intelligence`.
fn load_with(intelligence: &str, more: &str) -> Result<Loaded, Vec<String>> {
    let text = format!(
        "intelligence: {{dialect: mock, endpoints: [\"mock:builtin\"], prices: {{mock: {{input: 1, output: 2}}, \
         cheap: {{input: 0.1, output: 0.2}}}}, models: {{small: {{model: cheap}}, free: {{model: free}}}}, \
         {intelligence}}}\n{more}"
    );
    let folder = Folder::new(&[("a.yaml", &text)]);
    load(&folder.sources).map_err(|problems| {
        problems.iter().map(|p| format!("{:?} {}: {}", p.code, p.path, p.message)).collect()
    })
}

fn usd(dollars: f64) -> Option<Usd> {
    Usd::from_dollars(dollars)
}

#[test]
fn a_budget_is_read_whole() {
    let budget = "budget: {lifetime: {tokens: 20000000, usd: 200}, windows: [{per: hour, tokens: 900000}, \
                  {per: day, usd: 25}], on_exhausted: degrade, degrade: {model: small}}";
    let more = "limits: {run: {usd: 5}}\nsubagents: {defaults: {limits: {usd: 0.5}}}\n";
    let config = load_with(budget, more).expect("it loads").config;
    assert_eq!(config.budget.lifetime, Caps { tokens: Some(20_000_000), usd: usd(200.0) });
    let hour = (Per::Hour, Caps { tokens: Some(900_000), usd: None });
    assert_eq!(config.budget.windows, [hour, (Per::Day, Caps { tokens: None, usd: usd(25.0) })]);
    assert_eq!(config.budget.on_exhausted, OnExhausted::Degrade);
    assert_eq!(config.degraded.map(|choice| choice.model.name).as_deref(), Some("small"));
    assert_eq!((config.run_usd, config.defaults.limits.usd), (usd(5.0), usd(0.5)));
    let none = load_with("timeout: 1m", "").expect("it loads").config;
    assert!(none.budget.is_empty() && none.degraded.is_none() && none.run_usd.is_none());
}

#[test]
fn what_makes_no_sense_is_named() {
    for (budget, said) in [
        ("{lifetime: {usd: 0}}", "InvalidValue intelligence.budget.lifetime.usd: is nothing"),
        ("{windows: [{usd: 1}]}", "Missing intelligence.budget.windows[0].per: is required"),
        ("{windows: [{per: day}]}", "Missing intelligence.budget.windows[0].tokens: is required"),
        (
            "{on_exhausted: degrade, lifetime: {usd: 1}}",
            "Missing intelligence.budget.degrade.model: is required",
        ),
        (
            "{on_exhausted: degrade, degrade: {model: tiny}, lifetime: {usd: 1}}",
            "InvalidValue intelligence.budget.degrade.model: there is no model \"tiny\"",
        ),
        (
            "{degrade: {model: small}, lifetime: {usd: 1}}",
            "InvalidValue intelligence.budget.degrade: is used only with on_exhausted: degrade",
        ),
        (
            "{on_exhausted: slow, lifetime: {usd: 1}}",
            "InvalidValue intelligence.budget.on_exhausted: slow spreads calls over a window, and there is none",
        ),
        (
            "{on_exhausted: degrade, degrade: {model: free}, lifetime: {usd: 1}}",
            "Missing intelligence.budget: is in dollars, and the model \"free\" has no price",
        ),
    ] {
        let problems = load_with(&format!("budget: {budget}"), "").expect_err(budget);
        assert_eq!(problems, [said], "{budget}");
    }
    let problems = one("limits: {run: {usd: 1}}\n").problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].message.contains("has no price"), "{}", problems[0].message);
}
