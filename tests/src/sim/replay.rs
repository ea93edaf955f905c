//! Lives from seeds and traces, and the report of one that broke a rule.

use super::draw;
use super::lives;
use super::oracle::Violation;
use super::plan::{Fault, Knobs, Limits, Plan, Purse};
use super::shrink::shrink;
use super::story::Story;
use super::world::{Outcome, World};
use agentd_core::budget::{Budget, Caps, OnExhausted, Per};
use agentd_core::bytes::Bytes;
use agentd_core::config::{
    Commit, Config, Kill, Liveness, ModelChoice, Rate, Reloaded, Store, SubagentLimits,
};
use agentd_core::machine::Machine;
use agentd_core::money::{Price, Usd};
use agentd_core::record::Tokens;
use agentd_core::time::{Duration, Instant, Now};
use agentd_core::wire::message::{Dialect, Endpoint, Model, Remote, RunLimits};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes the machine under test.
pub type Maker<'a> = &'a (dyn Fn(Config, Now) -> Box<dyn Machine> + Sync);

/// A plan that once broke a rule, kept for ever.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Trace {
    /// What the race is called.
    pub name: String,
    /// What it was, and what must happen instead.
    pub why: String,
    /// How to live through it.
    pub plan: Plan,
}

/// How much of a life is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Only whether a rule broke.
    Verdict,
    /// And a digest by which two lives are told equal.
    Digest,
    /// And a digest of all that is decided, without ids and dates.
    Decisions,
    /// And every event and action as a line.
    Story,
}

/// Lives one life. Where somebody sets the wall clock in it, the same life is lived once more without that: what is
/// decided must be the same.
pub fn live(plan: &Plan, make: Maker<'_>, keep: Keep) -> Outcome {
    let mut outcome = once(plan, make, keep);
    let is_set = |fault: &Fault| matches!(fault, Fault::Wall { by_ms, .. } if *by_ms != 0);
    // Ids have dates in them, and a restart finds runs in the order of their ids.
    let begins_again = plan.faults.iter().any(|fault| matches!(fault, Fault::Restart { .. }));
    if outcome.violation.is_some() || begins_again || !plan.faults.iter().any(is_set) {
        return outcome;
    }
    let mut steady = plan.clone();
    for fault in &mut steady.faults {
        if let Fault::Wall { by_ms, .. } = fault {
            *by_ms = 0;
        }
    }
    let [set, steady] = [plan, &steady].map(|plan| once(plan, make, Keep::Decisions));
    if set.digest != steady.digest {
        let seen = format!("{} events, and {} with a steady clock", set.events, steady.events);
        let rule = "no decision depends on the wall clock";
        outcome.violation = Some(Violation { rule, at: Instant::ZERO, seen });
    }
    outcome
}

fn once(plan: &Plan, make: Maker<'_>, keep: Keep) -> Outcome {
    lives::live(plan, make, keep)
}

/// Lives one life in which the order of what is due together is chosen.
pub fn live_in_order(plan: &Plan, make: Maker<'_>, choices: Vec<usize>, keep: Keep) -> Outcome {
    let plan = Arc::new(plan.clone());
    let mut machine = make(config(&plan.knobs), Now::default());
    World::new(plan, machine.as_mut(), Story::new(keep)).with_choices(choices).live()
}

/// Every order of what is due together, in the first `depth` places where there is a choice. Gives the number of
/// lives, or the choices that broke a rule and how it ended.
pub fn every_order(plan: &Plan, make: Maker<'_>, depth: usize) -> Result<u64, Box<(Vec<usize>, Outcome)>> {
    let mut lives = 0;
    let mut choices: Vec<usize> = Vec::new();
    loop {
        let outcome = live_in_order(plan, make, choices.clone(), Keep::Verdict);
        lives += 1;
        if outcome.violation.is_some() {
            let outcome = live_in_order(plan, make, choices.clone(), Keep::Story);
            return Err(Box::new((choices, outcome)));
        }
        // The next in counting order: the last place that has another option, and the first option after it.
        let mut taken: Vec<usize> = outcome.options.iter().map(|_| 0).take(depth).collect();
        for (place, choice) in taken.iter_mut().zip(&choices) {
            *place = *choice;
        }
        let next = (0..taken.len()).rev().find(|i| taken[*i] + 1 < outcome.options[*i]);
        let Some(place) = next else { return Ok(lives) };
        taken.truncate(place + 1);
        taken[place] += 1;
        choices = taken;
    }
}

/// What many lives were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lived {
    /// How many.
    pub lives: u64,
    /// Events that cores were fed in them.
    pub events: u64,
}

/// Lives the lives of many seeds on all processors.
///
/// # Errors
/// The lowest seed in whose life a rule breaks, however the work was shared out.
pub fn seeds(seeds: Range<u64>, make: Maker<'_>) -> Result<Lived, u64> {
    let (next, events) = (AtomicU64::new(seeds.start), AtomicU64::new(0));
    let broken = AtomicU64::new(u64::MAX);
    let work = || {
        loop {
            // Seeds are handed out in order, so whatever is below a broken one is lived before anybody stops.
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end || seed > broken.load(Ordering::Relaxed) {
                return;
            }
            let outcome = live(&draw::plan(seed), make, Keep::Verdict);
            events.fetch_add(outcome.events, Ordering::Relaxed);
            if outcome.violation.is_some() {
                broken.fetch_min(seed, Ordering::Relaxed);
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    match broken.into_inner() {
        u64::MAX => Ok(Lived { lives: seeds.end - seeds.start, events: events.into_inner() }),
        seed => Err(seed),
    }
}

/// Lives the life of a seed. A broken rule is reported with the smallest plan that breaks it.
pub fn seed(seed: u64, make: Maker<'_>) -> Result<Outcome, String> {
    let plan = draw::plan(seed);
    let outcome = live(&plan, make, Keep::Verdict);
    if outcome.violation.is_none() {
        return Ok(outcome);
    }
    Err(report(&format!("seed {seed}"), Some(seed), &plan, make))
}

/// The report of a plan that breaks a rule: which, the smallest such plan, its story, how to see it again.
pub fn report(what: &str, seed: Option<u64>, plan: &Plan, make: Maker<'_>) -> String {
    let rule = |p: &Plan| live(p, make, Keep::Verdict).violation.map(|v| v.rule);
    let broken = rule(plan);
    let small = shrink(plan.clone(), |p| rule(p) == broken);
    let outcome = live(&small, make, Keep::Story);
    let violation = outcome.violation.map(|v| v.to_string()).unwrap_or_else(|| "nothing".into());
    let plan = serde_json::to_string(&small).unwrap_or_else(|e| e.to_string());
    let again = seed.map_or(String::new(), |s| {
        format!("\nreplay: SIM_SEED={s} cargo test -p agentd-tests --test sim -- seeds --nocapture")
    });
    format!(
        "{what} breaks the rule: {violation}\n{}\nshrunk plan: {plan}{again}\n",
        tail(&outcome.story, 120)
    )
}

/// The last lines of a story, cut in width.
fn tail(story: &[String], lines: usize) -> String {
    let from = story.len().saturating_sub(lines);
    let cut = |line: &String| line.chars().take(300).collect::<String>();
    let left = if from > 0 { format!("({from} lines before)\n") } else { String::new() };
    left + &story[from..].iter().map(cut).collect::<Vec<_>>().join("\n")
}

/// The model that calls may be told to make do with.
pub(super) const CHEAPER: &str = "cheaper";

/// What a model costs where it costs anything: a whole number of billionths a token, so that sums are exact.
pub(super) fn price(model: &str) -> Price {
    let usd = |cents: u64| Usd::from_nanos(cents * 10_000_000);
    match model {
        CHEAPER => Price { input: usd(100), output: usd(500), cached: usd(10) },
        _ => Price { input: usd(300), output: usd(1_500), cached: usd(30) },
    }
}

/// What so many tokens cost that the run's own model reads.
fn worth(tokens: u64) -> Usd {
    price("sim").of(&Tokens { input: tokens, ..Tokens::default() })
}

fn budget(purse: &Purse) -> Budget {
    let caps = |tokens: u64| match (tokens, purse.money) {
        (0, _) => Caps::default(),
        (tokens, false) => Caps { tokens: Some(tokens), usd: None },
        (tokens, true) => Caps { tokens: None, usd: Some(worth(tokens)) },
    };
    Budget {
        lifetime: caps(purse.lifetime),
        windows: (purse.minute > 0).then(|| (Per::Minute, caps(purse.minute))).into_iter().collect(),
        on_exhausted: purse.policy,
    }
}

/// The same with other limits, as a reload brings it.
pub(crate) fn reloaded(knobs: &Knobs, limits: Limits) -> Reloaded {
    let Limits { breadth, total, depth, burst, refill_ms, queue } = limits;
    Reloaded {
        config: config(&Knobs { breadth, total, depth, burst, refill_ms, queue, ..knobs.clone() }),
        applied: vec!["limits.subagents".to_owned()],
        restart_needed: Vec::new(),
        models: BTreeSet::new(),
        servers: BTreeSet::new(),
    }
}

/// The configuration that a plan's knobs mean.
pub(crate) fn config(knobs: &Knobs) -> Config {
    let ms = Duration::from_millis;
    let endpoint = |n| Endpoint { url: format!("https://{n}.example/v1"), token: None };
    let dialect = match knobs.endpoints {
        0 => Dialect::Mock(Bytes::from(b"{}".as_slice())),
        endpoints => Dialect::Openai(Remote {
            model: "sim".into(),
            endpoints: (0..endpoints).map(endpoint).collect(),
            headers: Default::default(),
            timeout_ms: 60_000,
            max_output: None,
        }),
    };
    let model = Model { name: "sim".into(), dialect };
    let choice = |model: Model| {
        let price = knobs.priced.then(|| price(&model.name));
        ModelChoice { price, ..ModelChoice::of(model) }
    };
    let purse = knobs.purse.unwrap_or_default();
    let cheaper = Model { name: CHEAPER.into(), ..model.clone() };
    Config {
        model: choice(model.clone()),
        degraded: (purse.policy == OnExhausted::Degrade).then(|| choice(cheaper)),
        budget: budget(&purse),
        run_usd: (purse.run > 0).then(|| worth(purse.run)),
        one_shot: knobs.one_shot,
        worker_idle: ms(knobs.idle_ms),
        wake_on_results: knobs.wake,
        run: RunLimits { deadline_ms: knobs.deadline_ms, ..RunLimits::default() },
        subagents: SubagentLimits {
            breadth: knobs.breadth,
            total: knobs.total,
            depth: knobs.depth,
            rate: Rate { burst: knobs.burst, per: ms(knobs.refill_ms) },
            queue: knobs.queue,
        },
        liveness: Liveness {
            ping: ms(knobs.ping_ms),
            pong: ms(knobs.pong_ms),
            progress: ms(knobs.progress_ms),
            ready: ms(knobs.ready_ms),
            hard_deadline_grace: ms(knobs.grace_ms),
        },
        kill: Kill {
            term_after: ms(knobs.term_ms),
            kill_after: ms(knobs.kill_ms),
            exit_after_result: ms(knobs.exit_ms),
        },
        drain_timeout: ms(knobs.drain_ms),
        reap_orphans_always: knobs.pids.is_multiple_of(8),
        store: Store {
            keeps: knobs.keeps,
            commit: if knobs.relaxed { Commit::Relaxed } else { Commit::Strict },
            work: !knobs.ephemeral,
        },
        ..Config::of("sim", model)
    }
}
