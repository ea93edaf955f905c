//! Usage over any tree of runs: what each used is its own and everybody's above it, once, in whatever order it is told
//! and however the runs end (S8.5).

use super::*;
use crate::money::{Price, Usd};
use crate::record::Tokens;
use proptest::prelude::*;

/// One thing that happens; an index picks one of the runs there are.
#[derive(Debug, Clone)]
enum Step {
    Spawn(prop::sample::Index),
    Use(prop::sample::Index, u64, u64, u64),
    Finish(prop::sample::Index),
    Die(prop::sample::Index),
    /// By the conversation.
    Kill(prop::sample::Index),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let one = any::<prop::sample::Index>;
    let tokens = || prop_oneof![9 => 0u64..100_000, 1 => any::<u64>()];
    prop_oneof![
        5 => one().prop_map(Step::Spawn),
        8 => (one(), tokens(), tokens(), tokens()).prop_map(|(i, a, b, c)| Step::Use(i, a, b, c)),
        2 => one().prop_map(Step::Finish),
        2 => one().prop_map(Step::Die),
        1 => one().prop_map(Step::Kill),
        1 => (0u64..4_000).prop_map(Step::Pass),
    ]
}

/// The account beside the core's: who asked for whom, and what each and everybody below it used.
#[derive(Default)]
struct Books {
    above: BTreeMap<NodeId, NodeId>,
    own: BTreeMap<NodeId, Tokens>,
    subtree: BTreeMap<NodeId, Tokens>,
}

impl Books {
    fn enter(&mut self, node: NodeId, tokens: &Tokens) {
        self.own.entry(node).or_default().add(tokens);
        let mut at = Some(node);
        while let Some(node) = at {
            self.subtree.entry(node).or_default().add(tokens);
            at = self.above.get(&node).copied();
        }
    }

    /// Every run that is still known has the sums it must have.
    fn compare(&self, core: &Core) {
        for (node, run) in &core.runs {
            let sum = |sums: &BTreeMap<NodeId, Tokens>| sums.get(node).copied().unwrap_or_default();
            assert_eq!((run.record.usage, run.subtree), (sum(&self.own), sum(&self.subtree)), "{node}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_subtree_is_the_sum_of_what_is_below(steps in prop::collection::vec(step(), 0..80)) {
        let mut config = config();
        config.subagents = SubagentLimits { breadth: 100, total: 1_000, depth: 5, ..config.subagents };
        let usd = |dollars| Usd::from_dollars(dollars).expect("an amount");
        let price = Price { input: usd(1.0), output: usd(3.33), cached: usd(0.07) };
        config.model.price = Some(price);
        let (mut desk, worker) = Desk::with_worker(config);
        let mut books = Books::default();
        // Who can say something; the worker is the first and stays.
        let mut alive = vec![worker];
        for step in steps {
            let chosen = |which: prop::sample::Index| alive[which.index(alive.len())];
            match step {
                Step::Spawn(who) => {
                    let (above, known) = (chosen(who), desk.children.len());
                    let args = json!({"instruction": "x", "mode": "async", "delegate": true});
                    desk.call(above, "subagent.run", args);
                    let newest = desk.children.keys().next_back().copied();
                    if let Some(node) = newest.filter(|_| desk.children.len() > known) {
                        desk.ready(node);
                        books.above.insert(node, above);
                        alive.push(node);
                    }
                }
                Step::Use(who, input, output, cached) => {
                    let node = chosen(who);
                    let usage = Usage { input, output, cached, estimated: false, model: "mock".into() };
                    desk.up(node, &Up::Usage(usage));
                    let used = Tokens { input, output, cached, ..Tokens::default() };
                    books.enter(node, &Tokens { usd: price.of(&used), ..used });
                }
                Step::Finish(who) | Step::Die(who) if chosen(who) != worker => {
                    let node = chosen(who);
                    alive.retain(|other| *other != node);
                    if let Step::Finish(_) = step {
                        desk.result(node, "x");
                    }
                    desk.exit(node, Exit::Signal(9));
                }
                Step::Kill(who) => {
                    let run = desk.core.runs.get(&chosen(who));
                    if let Some(handle) = run.and_then(|run| run.record.handle) {
                        desk.call(worker, "subagent.kill", json!({"handle": handle}));
                    }
                }
                Step::Pass(ms) => desk.advance_to(desk.now_ms + ms),
                Step::Finish(_) | Step::Die(_) => {}
            }
            books.compare(&desk.core);
        }
        for node in alive.into_iter().skip(1).rev() {
            desk.finish(node, "x");
        }
        desk.finish(worker, "x");
        let Some(Action::Exit { usage, .. }) = desk.exit.take() else { panic!("it ends") };
        let sum = |sums: &BTreeMap<NodeId, Tokens>| sums.get(&worker).copied().unwrap_or_default();
        prop_assert_eq!((usage.own, usage.subtree), (sum(&books.own), sum(&books.subtree)));
    }
}
