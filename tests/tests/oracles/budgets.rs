//! Faults in what model calls may cost, and in what becomes of them.

use crate::tamper::{misled, misquoted, misread};
use agentd_core::budget::{Caps, OnExhausted};
use agentd_core::money::Usd;
use agentd_core::wire::message::{BudgetGrant, BudgetVerdict};
use agentd_core::wire::{Down, Up};

const PASSED: &[&str] = &["no budget is ever passed"];
const REFUSED: &[&str] = &["a call is refused only where a budget has no room for it"];
const WAITS: &[&str] = &["a call that fits is made"];
const NEVER: &[&str] = &["a call that no waiting helps is refused"];
const GHOST: &[&str] = &["only who is over a limit is refused"];

fn scaled(caps: &mut Caps, by: fn(u64) -> u64) {
    caps.tokens = caps.tokens.map(by);
    caps.usd = caps.usd.map(|usd| Usd::from_nanos(by(usd.nanos())));
}

#[test]
fn caps_that_are_taken_for_larger_ones() {
    misled(|config| scaled(&mut config.budget.lifetime, |cap| cap * 2), PASSED);
    misled(
        |config| config.budget.windows.iter_mut().for_each(|(_, caps)| scaled(caps, |cap| cap * 2)),
        PASSED,
    );
    misled(|config| config.run_usd = config.run_usd.map(|usd| Usd::from_nanos(usd.nanos() * 2)), PASSED);
}

#[test]
fn caps_that_are_taken_for_smaller_ones() {
    misled(|config| scaled(&mut config.budget.lifetime, |cap| cap / 2), REFUSED);
    misled(|config| config.run_usd = config.run_usd.map(|usd| Usd::from_nanos(usd.nanos() / 2)), REFUSED);
}

#[test]
fn another_answer_to_exhaustion_than_was_asked_for() {
    misled(|config| config.budget.on_exhausted = OnExhausted::Fail, REFUSED);
    misled(|config| config.budget.on_exhausted = OnExhausted::Refuse, REFUSED);
    misled(|config| config.budget.on_exhausted = OnExhausted::Wait, NEVER);
}

#[test]
fn a_call_that_is_granted_where_it_was_refused() {
    let generous = |down| match down {
        Down::BudgetGrant(BudgetGrant { id, verdict: BudgetVerdict::Refused(_) }) => {
            vec![Down::BudgetGrant(BudgetGrant { id, verdict: BudgetVerdict::Own })]
        }
        down => vec![down],
    };
    misquoted(generous, PASSED);
}

#[test]
fn a_call_that_is_refused_where_it_was_granted() {
    let mean = |down| match down {
        Down::BudgetGrant(BudgetGrant { id, verdict: BudgetVerdict::Own }) => {
            vec![Down::BudgetGrant(BudgetGrant { id, verdict: BudgetVerdict::Refused("no".into()) })]
        }
        down => vec![down],
    };
    misquoted(mean, REFUSED);
}

#[test]
fn an_answer_that_is_not_sent() {
    let silent = |down| match down {
        Down::BudgetGrant(_) => vec![],
        down => vec![down],
    };
    misquoted(silent, WAITS);
}

#[test]
fn an_answer_that_nobody_asked_for() {
    let twice = |down| match down {
        Down::BudgetGrant(grant) => vec![Down::BudgetGrant(grant.clone()), Down::BudgetGrant(grant)],
        down => vec![down],
    };
    misquoted(twice, &["a grant answers a question"]);
}

#[test]
fn questions_that_are_misread() {
    let less = |up| match up {
        Up::BudgetRequest(mut ask) => {
            ask.input /= 2;
            Up::BudgetRequest(ask)
        }
        up => up,
    };
    misread(less, PASSED);
}

#[test]
fn calls_that_are_charged_too_much() {
    let more = |up| match up {
        Up::Usage(mut usage) => {
            usage.input *= 100;
            Up::Usage(usage)
        }
        up => up,
    };
    misread(more, REFUSED);
    misread(more, GHOST);
}
