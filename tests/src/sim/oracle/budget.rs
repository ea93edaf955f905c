//! Budgets (S15.6): what was spent and what calls in flight may still spend never pass a cap, in any ending; a call is
//! refused only where what was spent leaves no room for it; and nobody waits while there is room.
//!
//! Two sums are kept where it cannot be seen from outside what became of a call: the least that it can have cost, which is
//! held against the caps, and the most, which excuses a refusal.

use super::facts::{Facts, Run};
use super::{Verdict, unless};
use crate::sim::plan::{EPOCH_MS, Purse};
use crate::sim::replay::{CHEAPER, price};
use agentd_core::budget::OnExhausted;
use agentd_core::id::{NodeId, RunId};
use agentd_core::record::Tokens;
use agentd_core::time::Instant;
use agentd_core::wire::message::{BudgetGrant, BudgetRequest, BudgetVerdict, Mode, Usage};
use std::collections::BTreeMap;
use std::ops::Add;

const PASSED: &str = "no budget is ever passed";
const REFUSED: &str = "a call is refused only where a budget has no room for it";
const WAITS: &str = "a call that fits is made";
const NEVER: &str = "a call that no waiting helps is refused";
const ASKED: &str = "a grant answers a question";

/// Tokens, and billionths of a dollar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    tokens: u64,
    nanos: u64,
}

impl Sum {
    fn of(priced: bool, model: &str, tokens: &Tokens) -> Sum {
        let nanos = if priced { price(model).of(tokens).nanos() } else { 0 };
        Sum { tokens: tokens.input + tokens.output, nanos }
    }

    /// Of tokens read.
    fn read(priced: bool, model: &str, input: u64) -> Sum {
        Sum::of(priced, model, &Tokens { input, ..Tokens::default() })
    }

    fn less(self, other: Sum) -> Sum {
        Sum {
            tokens: self.tokens.saturating_sub(other.tokens),
            nanos: self.nanos.saturating_sub(other.nanos),
        }
    }
}

impl Add for Sum {
    type Output = Sum;
    fn add(self, other: Sum) -> Sum {
        Sum { tokens: self.tokens + other.tokens, nanos: self.nanos + other.nanos }
    }
}

impl std::iter::Sum for Sum {
    fn sum<I: Iterator<Item = Sum>>(all: I) -> Sum {
        all.fold(Sum::default(), Add::add)
    }
}

/// A question that is open.
#[derive(Debug, Clone, Copy)]
struct Asked {
    node: NodeId,
    id: u64,
    input: u64,
}

/// A call that was granted and of which nothing was heard.
#[derive(Debug, Clone, Copy)]
struct Call {
    worst: Sum,
    /// Its run's end was decided for it, and it counts as spent.
    cut: bool,
}

/// What was spent, at least and at most.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    least: Sum,
    /// Beyond that.
    doubtful: Sum,
}

impl Spent {
    fn most(self) -> Sum {
        self.least + self.doubtful
    }
}

/// What is known of calls.
#[derive(Debug, Default)]
pub(super) struct Purses {
    /// In the order of asking.
    asks: Vec<Asked>,
    /// Questions of the event in hand whose turn ended in it: they may be answered before that.
    withdrawn: Vec<Asked>,
    calls: BTreeMap<NodeId, Call>,
    by_node: BTreeMap<NodeId, Spent>,
    all: Spent,
    /// Which minute it is, and what was spent in it.
    minute: (u64, Spent),
}

impl Purses {
    fn spend(&mut self, node: NodeId, change: impl Fn(&mut Spent)) {
        change(self.by_node.entry(node).or_default());
        change(&mut self.all);
        change(&mut self.minute.1);
    }

    fn turn(&mut self, now: Instant) {
        let minute = (EPOCH_MS + now.millis()) / 60_000;
        if minute > self.minute.0 {
            self.minute = (minute, Spent::default());
        }
    }

    /// A run that is heard wants to make a call.
    pub(super) fn asked(&mut self, node: NodeId, ask: &BudgetRequest) {
        self.unreported(node);
        self.asks.retain(|open| open.node != node);
        self.asks.push(Asked { node, id: ask.id, input: ask.input });
    }

    /// A run that is heard tells what a call used.
    pub(super) fn used(&mut self, now: Instant, priced: bool, node: NodeId, usage: &Usage) {
        self.turn(now);
        let tokens = Tokens { input: usage.input, output: usage.output, ..Tokens::default() };
        let used = Sum::of(priced, &usage.model, &tokens);
        match self.calls.remove(&node) {
            Some(call) if call.cut => {
                self.spend(node, |spent| spent.least = spent.least.less(call.worst) + used)
            }
            Some(_) | None => self.spend(node, |spent| spent.least = spent.least + used),
        }
    }

    /// A run that is heard ends its turn, or itself.
    pub(super) fn turn_ended(&mut self, now: Instant, node: NodeId) {
        self.turn(now);
        self.withdrawn.extend(self.asks.extract_if(.., |open| open.node == node));
        self.unreported(node);
    }

    /// What it was granted and did not report it has not made, if it was not cut off before it could say so.
    fn unreported(&mut self, node: NodeId) {
        match self.calls.remove(&node) {
            Some(call) if call.cut => self.spend(node, |spent| {
                spent.least = spent.least.less(call.worst);
                spent.doubtful = spent.doubtful + call.worst;
            }),
            Some(call) => self.spend(node, |spent| spent.doubtful = spent.doubtful + call.worst),
            None => {}
        }
    }

    /// A run's end is decided: what it was granted counts as spent.
    pub(super) fn decided(&mut self, now: Instant, node: NodeId) {
        self.turn(now);
        self.asks.retain(|open| open.node != node);
        let Some(call) = self.calls.get_mut(&node).filter(|call| !call.cut) else { return };
        call.cut = true;
        let worst = call.worst;
        self.spend(node, |spent| spent.least = spent.least + worst);
    }

    /// What calls in flight may yet cost.
    fn promised(&self, whose: impl Fn(NodeId) -> bool) -> Sum {
        self.calls.iter().filter(|(node, call)| !call.cut && whose(**node)).map(|(_, call)| call.worst).sum()
    }
}

/// The caps of a plan: what each bounds, and what stands against it.
struct Account {
    what: String,
    cap: Sum,
    /// Tokens, or money.
    money: bool,
    spent: Spent,
    promised: Sum,
    /// It bounds one run and those below it.
    of_run: bool,
    /// It begins anew.
    turns: bool,
    /// It bounds each turn, and what was spent in this one is not known from outside.
    is_vague: bool,
}

impl Account {
    fn holds(&self, sum: Sum) -> bool {
        match self.money {
            true => sum.nanos <= self.cap.nanos,
            false => sum.tokens <= self.cap.tokens,
        }
    }

    /// Whether there is surely room for a call.
    fn has_room(&self, worst: Sum) -> bool {
        self.holds(self.spent.most() + self.promised + worst)
    }
}

fn accounts(facts: &Facts, purse: &Purse, node: NodeId) -> Vec<Account> {
    let purses = &facts.purses;
    let promised = purses.promised(|_| true);
    let mut all = Vec::new();
    let mut add = |what: String, tokens: u64, money: bool, spent, promised, of_run, turns, is_vague| {
        if tokens > 0 {
            let cap = Sum::read(true, "sim", tokens);
            all.push(Account { what, cap, money, spent, promised, of_run, turns, is_vague });
        }
    };
    add("the lifetime".into(), purse.lifetime, purse.money, purses.all, promised, false, false, false);
    add("the minute".into(), purse.minute, purse.money, purses.minute.1, promised, false, true, false);
    let mut at = facts.run_of(node);
    while let Some(run) = at {
        let below = subtree(facts, run.record.run_id);
        let of = |node: &NodeId| purses.by_node.get(node).copied().unwrap_or_default();
        let least = below.iter().map(|node| of(node).least).sum();
        let doubtful = below.iter().map(|node| of(node).doubtful).sum();
        let promised = purses.promised(|node| below.contains(&node));
        let what = format!("the run of {}", run.record.node);
        let spent = Spent { least, doubtful };
        add(what, purse.run, true, spent, promised, true, false, run.record.mode == Mode::Warm);
        at = run.record.parent.and_then(|id| facts.runs.get(&id));
    }
    all
}

/// The nodes of a run and of all below it.
fn subtree(facts: &Facts, id: RunId) -> Vec<NodeId> {
    let (mut nodes, mut open) = (Vec::new(), vec![id]);
    while let Some(id) = open.pop() {
        nodes.extend(facts.runs.get(&id).map(|run| run.record.node));
        open.extend(facts.children.get(&id).into_iter().flatten());
    }
    nodes
}

/// Judges the answer to a question as it is sent, and remembers it.
pub(super) fn judge(facts: &mut Facts, now: Instant, node: NodeId, grant: &BudgetGrant) -> Verdict {
    facts.purses.turn(now);
    let purse = facts.plan.knobs.purse.unwrap_or_default();
    let priced = facts.plan.knobs.priced;
    let is_it = |ask: &Asked| ask.node == node && ask.id == grant.id;
    let Some(found) = facts.purses.asks.iter().position(is_it) else {
        if facts.purses.withdrawn.iter().any(is_it) {
            return Ok(());
        }
        return Err((ASKED, format!("{node} is answered {grant:?}")));
    };
    let ask = facts.purses.asks.remove(found);
    let own = Sum::read(priced, "sim", ask.input);
    let cheaper = Sum::read(priced, CHEAPER, ask.input);
    let accounts = accounts(facts, &purse, node);
    let worst = match &grant.verdict {
        BudgetVerdict::Own => own,
        BudgetVerdict::Degraded => cheaper,
        BudgetVerdict::Refused(why) | BudgetVerdict::Failed(why) => {
            let fails = matches!(grant.verdict, BudgetVerdict::Failed(_));
            let least = if purse.policy == OnExhausted::Degrade { cheaper } else { own };
            let waits = matches!(purse.policy, OnExhausted::Wait | OnExhausted::Slow);
            let reason = accounts.iter().any(|account| match account.of_run {
                true => !fails && !account.holds(account.spent.most() + own),
                false if account.turns && waits => !fails && !account.holds(own),
                false => {
                    fails == (purse.policy == OnExhausted::Fail)
                        && !account.holds(account.spent.most() + least)
                }
            });
            return unless(reason, REFUSED, || {
                format!("{node} asks for {own:?} and is told {why:?} under {:?}", purse.policy)
            });
        }
    };
    for account in accounts.iter().filter(|account| !account.is_vague) {
        let all = account.spent.least + account.promised + worst;
        unless(account.holds(all), PASSED, || {
            format!("{node} may spend {worst:?}: {} has {:?} and comes to {all:?}", account.what, account.cap)
        })?;
    }
    facts.purses.calls.insert(node, Call { worst, cut: false });
    Ok(())
}

/// What must hold once an event is done: who asked first, and fits or never will, has its answer.
pub(super) fn judge_settled(facts: &mut Facts, now: Instant) -> Verdict {
    let Some(purse) = facts.plan.knobs.purse else { return Ok(()) };
    facts.purses.turn(now);
    facts.purses.withdrawn.clear();
    if purse.policy == OnExhausted::Slow {
        // Its pace is held to by tests of its own.
        return Ok(());
    }
    for ask in &facts.purses.asks {
        if !hears(facts, ask.node) {
            // Whether it is answered, and whom it holds up, cannot be seen.
            return Ok(());
        }
        let own = Sum::read(facts.plan.knobs.priced, "sim", ask.input);
        let accounts = accounts(facts, &purse, ask.node);
        let mut full = accounts.iter().filter(|account| account.of_run && !account.has_room(own)).peekable();
        if full.peek().is_some() {
            // Who waits for its own bound is overtaken; who may have begun a turn meanwhile may stand in the way.
            if full.all(|account| account.is_vague) {
                return Ok(());
            }
            continue;
        }
        let fits = accounts.iter().all(|account| account.has_room(own));
        unless(!fits, WAITS, || format!("{} waits for {own:?}", ask.node))?;
        let least = match purse.policy {
            OnExhausted::Degrade => Sum::read(facts.plan.knobs.priced, CHEAPER, ask.input),
            OnExhausted::Wait | OnExhausted::Slow | OnExhausted::Refuse | OnExhausted::Fail => own,
        };
        let never = accounts.iter().any(|account| {
            // The next window is worth waiting for under one policy only.
            let ends = account.turns && purse.policy == OnExhausted::Wait && account.holds(own);
            !account.of_run && !ends && !account.holds(account.spent.least + least)
        });
        return unless(!never, NEVER, || format!("{} waits for {own:?} under {:?}", ask.node, purse.policy));
    }
    Ok(())
}

/// Whether an answer would reach a run.
fn hears(facts: &Facts, node: NodeId) -> bool {
    let listens = facts
        .nodes
        .get(&node)
        .is_some_and(|n| n.exit.is_none() && n.broken.is_none() && !n.write_failed && n.terminal.is_none());
    listens && facts.run_of(node).is_some_and(|run| run.terminal.is_none() && run.doomed.is_none())
}

/// A new run is refused over a budget only when nothing is left of one.
pub(super) fn is_out(facts: &Facts, run: &Run) -> bool {
    let Some(purse) = facts.plan.knobs.purse else { return false };
    let one = Sum { tokens: 1, nanos: 1 };
    accounts(facts, &purse, run.record.node)
        .iter()
        .any(|account| !account.of_run && !account.holds(account.spent.most() + one))
}
