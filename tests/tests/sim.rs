//! The simulator as a test: seeds, committed traces, every order of small plans.
//!
//! `SIM_SEED=<n>` replays one seed with its story, `SIM_TRACE=<name>` one trace; `SIM_SEEDS=<n>` says how many
//! seeds are lived, `SIM_FIRST=<n>` from which, `SIM_SHRINK=0` leaves a broken one as it is, and `SIM_SURVEY=1` counts
//! broken rules instead of stopping at the first. Without them a fixed range is lived, so that a red run is red again.

use agentd_core::config::Config;
use agentd_core::machine::Machine;
use agentd_core::supervisor::Core;
use agentd_core::time::Now;
use agentd_tests::sim::draw;
use agentd_tests::sim::plan::Plan;
use agentd_tests::sim::replay::{self, Keep, Trace};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

/// Lives of an ordinary run of this test.
const SEEDS: u64 = 5_000;

fn core(config: Config, now: Now) -> Box<dyn Machine> {
    Box::new(Core::new(config, now))
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text:?}: accepted is a whole number")))
}

/// The seeds to be lived.
fn range() -> Range<u64> {
    let (first, count) = (number("SIM_FIRST").unwrap_or(0), number("SIM_SEEDS").unwrap_or(SEEDS));
    let end = first.checked_add(count).filter(|end| *end > first);
    first..end.unwrap_or_else(|| panic!("SIM_SEEDS={count} from SIM_FIRST={first} on: there is no such seed"))
}

#[test]
fn seeds() {
    if let Some(seed) = number("SIM_SEED") {
        let broken = tell(&draw::plan(seed));
        assert!(!broken, "{}", replay::seed(seed, &core).err().unwrap_or_default());
        return;
    }
    if std::env::var_os("SIM_SURVEY").is_some() {
        return survey();
    }
    let begun = Instant::now();
    let lived = replay::seeds(range(), &core).unwrap_or_else(|seed| fails(seed));
    let took = begun.elapsed().as_secs_f64();
    let rate = lived.events as f64 / took;
    println!("{} lives, {} events in {took:.1} s: {rate:.0} events/s", lived.lives, lived.events);
}

/// Says how a seed's life breaks a rule: at length, with the smallest plan that does so, or shortly.
fn fails(seed: u64) -> ! {
    if std::env::var("SIM_SHRINK").is_ok_and(|value| value == "0") {
        let violation = replay::live(&draw::plan(seed), &core, Keep::Verdict).violation;
        panic!("seed {seed} breaks the rule: {}", violation.map(|v| v.to_string()).unwrap_or_default());
    }
    panic!("{}", replay::seed(seed, &core).err().unwrap_or_else(|| format!("seed {seed} broke a rule once")))
}

/// Prints the life of a plan; whether it breaks a rule.
fn tell(plan: &Plan) -> bool {
    let outcome = replay::live(plan, &core, Keep::Story);
    println!("{}", serde_json::to_string(plan).expect("a plan serialises"));
    outcome.story.iter().for_each(|line| println!("{line}"));
    outcome.violation.is_some()
}

/// Which rules break how often, and the first seed of each: for whoever changes the core or the rules.
fn survey() {
    let mut broken: BTreeMap<&str, Vec<(u64, String)>> = BTreeMap::new();
    for seed in range() {
        if let Some(v) = replay::live(&draw::plan(seed), &core, Keep::Verdict).violation {
            broken.entry(v.rule).or_default().push((seed, v.to_string()));
        }
    }
    for (rule, seen) in &broken {
        println!("{} × {rule}", seen.len());
        seen.iter().take(4).for_each(|(seed, what)| println!("    {seed}: {what:.300}"));
    }
    assert!(broken.is_empty(), "{} rules are broken", broken.len());
}

/// The same plan is the same life, to the byte: nothing in the core or the world is left to chance.
#[test]
fn a_life_repeats() {
    for seed in 0..40 {
        let plan = draw::plan(seed);
        let digests = [(); 2].map(|()| replay::live(&plan, &core, Keep::Digest).digest);
        assert_eq!(digests[0], digests[1], "seed {seed}");
    }
}

/// Plans that once broke a rule: each is a race with a name.
#[test]
fn traces() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces");
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .expect("the traces are there")
        .map(|entry| entry.expect("a folder's entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    names.sort();
    assert!(!names.is_empty(), "no trace in {}", folder.display());
    let shown = std::env::var("SIM_TRACE").ok();
    if let Some(name) = &shown {
        let known: Vec<_> = names.iter().filter_map(|path| path.file_stem()?.to_str()).collect();
        assert!(
            known.contains(&name.as_str()),
            "SIM_TRACE={name}: there is no such trace; there are {known:#?}"
        );
    }
    for path in names {
        let text = std::fs::read_to_string(&path).expect("a trace is readable");
        let trace: Trace = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(path.file_stem().and_then(|s| s.to_str()), Some(trace.name.as_str()));
        if shown.as_ref() == Some(&trace.name) {
            tell(&trace.plan);
        }
        let outcome = replay::live(&trace.plan, &core, Keep::Verdict);
        if outcome.violation.is_some() {
            panic!("{}\n{}", trace.why, replay::report(&trace.name, None, &trace.plan, &core));
        }
    }
}

/// S2.7: a child that asks and does not read gets its queue filled, and is ended for it; everybody else is served.
#[test]
fn who_does_not_read_is_ended() {
    let plan = r#"{"seed": 7, "knobs": {"depth": 2}, "scripts": [
        {"steps": [{"run": {"script": 1, "mode": "sync"}}, "collect",
                   {"run": {"script": 2, "mode": "sync", "delegate": true}}, {"run": {"script": 3, "mode": "sync"}},
                   "collect"]},
        {"steps": [{"finish": {"answer": "huge"}}]},
        {"nature": {"deaf": true}, "steps": [
            {"await": {"handles": [1]}}, {"await": {"handles": [1]}}, {"await": {"handles": [1]}},
            {"await": {"handles": [1]}}, {"await": {"handles": [1]}}, {"await": {"handles": [1]}}, "collect"]},
        {"steps": [{"wait": 50}]}]}"#;
    let plan: Plan = serde_json::from_str(plan).expect("a plan");
    let outcome = replay::live(&plan, &core, Keep::Story);
    let ended = |line: &str| outcome.story.iter().any(|l| l.contains(line));
    assert!(outcome.violation.is_none(), "{:?}", outcome.violation);
    assert!(ended(r#"sub-2 failed Some("does not read")"#), "{}", outcome.story.join("\n"));
    assert!(ended("sub-3 completed None") && ended("root completed None"), "{}", outcome.story.join("\n"));
}

/// F07: a child that exits exactly between SIGTERM and SIGKILL, seen in time or late, on a machine on which its pid is
/// somebody else's at once. No signal follows its reaping, so the bystander lives.
#[test]
fn f07_a_pid_that_is_somebody_elses() {
    for (exits_ms, late_ms) in
        [1_999, 2_000, 2_001].into_iter().flat_map(|e| [0, 1, 3, 2_500].map(|l| (e, l)))
    {
        let plan = format!(
            r#"{{"seed": {exits_ms}, "knobs": {{"pids": 8, "strangers": true, "breadth": 1}}, "scripts": [
                {{"steps": [{{"run": {{"script": 1, "mode": "async"}}}}, "collect", {{"kill": {{"handle": 1}}}},
                            "collect", {{"wait": 12000}}, {{"run": {{"script": 2, "mode": "sync"}}}}, "collect"]}},
                {{"nature": {{"on_cancel": "ignores", "on_term": {{"exits": {exits_ms}}}}}, "steps": [{{"wait": 600000}}]}},
                {{}}],
                "faults": [{{"exit_late": {{"nth": 1, "ms": {late_ms}}}}}]}}"#
        );
        let plan: Plan = serde_json::from_str(&plan).unwrap_or_else(|e| panic!("{plan}: {e}"));
        let outcome = replay::live(&plan, &core, Keep::Story);
        let story = outcome.story.join("\n");
        assert!(outcome.violation.is_none(), "{:?}\n{story}", outcome.violation);
        let at = |what: &str| outcome.story.iter().position(|line| line.contains(what));
        let reaped = at("Reap { node: NodeId(2) }").expect("it is reaped");
        let signals =
            outcome.story.iter().skip(reaped).filter(|line| line.contains("Signal { node: NodeId(2)"));
        assert_eq!(signals.count(), 0, "{story}");
        assert!(at("TermCont").is_some_and(|at| at < reaped), "{story}");
        assert!(at("sub-2 completed").is_some(), "its slot is free again\n{story}");
    }
}

/// F28: 40 children die at the same instant: 40 right records within three seconds, and nobody is left.
#[test]
fn f28_forty_die_at_once() {
    let run = r#"{"run": {"script": 1, "mode": "async"}}, "#.repeat(40);
    for (turn_ms, sweeps) in [(0, ""), (100, r#"{"fork": {"escapes": true, "holds": true}}, "#)] {
        let plan = format!(
            r#"{{"seed": 28, "knobs": {{"breadth": 40, "burst": 64, "pids": 96, "turn_ms": {turn_ms}, "strangers": true}},
                "scripts": [{{"steps": [{run}"collect", {{"wait": 9000}}]}},
                            {{"steps": [{sweeps}{{"wait": 600000}}]}}],
                "faults": [{{"kill_all": {{"at_ms": 5000}}}}]}}"#
        );
        let plan: Plan = serde_json::from_str(&plan).unwrap_or_else(|e| panic!("{plan}: {e}"));
        let outcome = replay::live(&plan, &core, Keep::Story);
        assert!(outcome.violation.is_none(), "{:?}", outcome.violation);
        let failed = |line: &&String| line.contains(r#"failed Some("exited without a result (SIGKILL)")"#);
        assert_eq!(outcome.story.iter().filter(failed).count(), 40, "one record each, with the right cause");
        let reaped = |line: &&String| line.contains("Reaped {");
        let times = outcome.story.iter().filter(reaped).filter_map(|line| line.split_whitespace().next());
        let in_time = times.filter_map(|at| at.parse::<f64>().ok()).filter(|at| (5.0..8.0).contains(at));
        assert_eq!(in_time.count(), 40, "no zombie is left after three seconds");
    }
}

/// Every order of what is due together, in the first places where two runs can meet.
#[test]
fn small_orders() {
    for text in SMALL {
        let plan: Plan = serde_json::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        match replay::every_order(&plan, &core, 7) {
            Ok(lives) => println!("{lives} orders of {text}"),
            Err(broken) => {
                let (choices, outcome) = *broken;
                let violation = outcome.violation.map(|v| v.to_string()).unwrap_or_default();
                panic!("{text}\nin the order {choices:?}: {violation}\n{}", outcome.story.join("\n"))
            }
        }
    }
}

/// Two runs each, in the ways they can meet: results, kills, deaths, drains, messages, the queue, a turn taken back.
const SMALL: [&str; 9] = [
    r#"{"seed": 1, "scripts": [
        {"steps": [{"run": {"script": 1, "mode": "sync"}}, {"run": {"script": 1, "mode": "sync"}}, "collect"]}, {}]}"#,
    r#"{"seed": 2, "scripts": [
        {"steps": [{"run": {"script": 1, "mode": "async"}}, {"kill": {"handle": 1}}, "collect"]}, {}]}"#,
    r#"{"seed": 3, "scripts": [
        {"steps": [{"run": {"script": 1, "mode": "async"}}, {"run": {"script": 2, "mode": "sync"}},
                   {"await": {"handles": [1, 2]}}, {"kill": {"handle": 2}}, "collect"]},
        {"steps": [{"die": 9}]}, {"steps": [{"finish": {"exit_ms": null}}]}]}"#,
    r#"{"seed": 4, "knobs": {"drain_ms": 1000}, "scripts": [
        {"steps": [{"run": {"script": 1, "mode": "sync"}}, {"run": {"script": 1, "mode": "detached"}}, "collect"]}, {}],
        "faults": [{"signal": {"at_ms": 1, "signal": "term"}}, {"signal": {"at_ms": 2, "signal": "term"}}]}"#,
    r#"{"seed": 5, "knobs": {"breadth": 1, "pids": 8, "strangers": true}, "scripts": [
        {"steps": [{"run": {"script": 1, "mode": "sync"}}, "collect", {"run": {"script": 1, "mode": "sync"}}, "collect"]},
        {"steps": [{"fork": {"escapes": true, "holds": true}}, {"rubbish": "text"}]}]}"#,
    r#"{"seed": 6, "knobs": {"depth": 2}, "scripts": [
        {"steps": [{"run": {"script": 1, "mode": "sync", "delegate": true}}, {"kill": {"handle": 1}}, "collect"]},
        {"steps": [{"run": {"script": 2, "mode": "sync"}}, "collect"]}, {}]}"#,
    r#"{"seed": 7, "scripts": [
        {"steps": [{"run": {"script": 1, "mode": "warm"}}, {"send": {"handle": 1, "times": 2}}, {"retire": 1}, "collect"]},
        {}]}"#,
    r#"{"seed": 8, "knobs": {"breadth": 1, "queue": 1}, "scripts": [
        {"steps": [{"run": {"script": 1, "mode": "async"}}, {"run": {"script": 1, "mode": "async"}},
                   {"kill": {"handle": 2}}, "collect"]}, {}]}"#,
    r#"{"seed": 9, "knobs": {"one_shot": false, "stop_ms": 50}, "scripts": [
        {"steps": [{"run": {"script": 1, "mode": "sync"}}, "collect"]}, {}],
        "prompts_ms": [1], "faults": [{"cancel_prompt": {"prompt": 1, "at_ms": 3}}]}"#,
];
