//! No cap is passed, whoever asks when and however calls end; and what waits gets its turn.

use super::*;
use crate::id::NodeId;
use crate::money::Usd;
use crate::time::Wall;
use proptest::prelude::*;

const HOUR: u64 = 3_600_000;

fn tokens(tokens: u64) -> Amount {
    Amount { tokens, usd: Usd::ZERO }
}

fn usd(nanos: u64) -> Amount {
    Amount { tokens: 0, usd: Usd::from_nanos(nanos) }
}

fn caps(tokens: u64) -> Caps {
    Caps { tokens: Some(tokens), usd: None }
}

fn ask(own: Amount) -> Ask {
    Ask { own, degraded: None }
}

fn hourly(cap: u64, on_exhausted: OnExhausted) -> Ledger {
    let windows = vec![(Per::Hour, caps(cap))];
    ledger(Budget { windows, on_exhausted, ..Budget::default() })
}

fn ledger(budget: Budget) -> Ledger {
    let mut ledger = Ledger::new(budget, Wall(0));
    for node in 1..=9 {
        ledger.open(NodeId(node), None, Caps::default());
    }
    ledger
}

#[test]
fn the_worst_case_is_reserved_and_the_difference_given_back() {
    let mut l = hourly(100, OnExhausted::Refuse);
    assert_eq!(l.ask(NodeId(1), &ask(tokens(70)), Wall(0)), Decision::Granted(Tariff::Own));
    // It would fit if the first one used nothing, which only its end can tell; or in the next hour.
    let until = Some(Wall(HOUR));
    assert_eq!(l.ask(NodeId(2), &ask(tokens(40)), Wall(0)), Decision::Wait { until });
    l.charge(NodeId(1), tokens(20), Wall(0));
    assert_eq!(l.ask(NodeId(2), &ask(tokens(40)), Wall(0)), Decision::Granted(Tariff::Own));
    l.charge(NodeId(2), tokens(40), Wall(0));
    let Decision::Refused { why } = l.ask(NodeId(1), &ask(tokens(41)), Wall(0)) else { panic!("fits") };
    assert_eq!(
        why,
        "the budget of this hour is used up: 60 of 100 tokens are used or promised, and the call may need 41; \
         raise intelligence.budget.windows"
    );
    assert_eq!(l.ask(NodeId(1), &ask(tokens(40)), Wall(0)), Decision::Granted(Tariff::Own));
}

#[test]
fn each_answer_to_exhaustion_is_its_own() {
    let until = Some(Wall(HOUR));
    for (policy, want) in [
        (OnExhausted::Wait, "wait"),
        (OnExhausted::Slow, "wait"),
        (OnExhausted::Degrade, "refused"),
        (OnExhausted::Refuse, "refused"),
        (OnExhausted::Fail, "failed"),
    ] {
        let mut l = hourly(100, policy);
        l.charge(NodeId(1), tokens(100), Wall(5));
        let said = match l.ask(NodeId(1), &ask(tokens(1)), Wall(5)) {
            Decision::Wait { until: at } => {
                assert_eq!(at, until);
                "wait"
            }
            Decision::WaitForOwn => "wait for its own",
            Decision::Refused { .. } => "refused",
            Decision::Failed { .. } => "failed",
            Decision::Granted(_) => "granted",
        };
        assert_eq!(said, want, "{policy:?}");
        assert_eq!(
            l.ask(NodeId(1), &ask(tokens(100)), Wall(HOUR)),
            match policy {
                // The other half of an hour's budget is not for its first minute.
                OnExhausted::Slow => Decision::Wait { until: Some(Wall(2 * HOUR)) },
                OnExhausted::Wait | OnExhausted::Degrade | OnExhausted::Refuse | OnExhausted::Fail => {
                    Decision::Granted(Tariff::Own)
                }
            }
        );
    }
}

#[test]
fn a_lifetime_and_a_call_that_never_fits_are_not_waited_for() {
    let mut l = ledger(Budget { lifetime: caps(10), ..Budget::default() });
    l.charge(NodeId(1), tokens(10), Wall(0));
    assert!(matches!(l.ask(NodeId(1), &ask(tokens(1)), Wall(0)), Decision::Refused { .. }));
    assert!(l.is_out(Wall(0)).is_some_and(|why| why.starts_with("the lifetime budget is used up")));
    let mut l = hourly(100, OnExhausted::Wait);
    assert!(matches!(l.ask(NodeId(1), &ask(tokens(101)), Wall(0)), Decision::Refused { .. }));
    l.charge(NodeId(1), tokens(100), Wall(0));
    assert_eq!(l.is_out(Wall(0)), None, "it turns");
}

#[test]
fn a_cheaper_model_is_used_where_its_worst_case_fits() {
    let lifetime = Caps { tokens: None, usd: Some(Usd::from_nanos(100)) };
    let mut l = ledger(Budget { lifetime, on_exhausted: OnExhausted::Degrade, ..Budget::default() });
    let both = Ask { own: usd(60), degraded: Some(usd(6)) };
    assert_eq!(l.ask(NodeId(1), &both, Wall(0)), Decision::Granted(Tariff::Own));
    l.charge(NodeId(1), usd(60), Wall(0));
    assert_eq!(l.ask(NodeId(1), &both, Wall(0)), Decision::Granted(Tariff::Degraded));
    l.charge(NodeId(1), usd(6), Wall(0));
    l.charge(NodeId(1), usd(30), Wall(0));
    assert!(matches!(l.ask(NodeId(1), &both, Wall(0)), Decision::Refused { .. }));
}

#[test]
fn slow_spreads_the_second_half_over_what_is_left_of_the_window() {
    let mut l = hourly(1_000, OnExhausted::Slow);
    for _ in 0..5 {
        assert_eq!(l.ask(NodeId(1), &ask(tokens(100)), Wall(1)), Decision::Granted(Tariff::Own));
        l.charge(NodeId(1), tokens(100), Wall(1));
    }
    for tenth in 1..=5 {
        let at = Wall(HOUR * 2 * tenth / 10);
        let early = Wall(at.0 - 1);
        assert_eq!(l.ask(NodeId(1), &ask(tokens(100)), early), Decision::Wait { until: Some(at) });
        if tenth < 5 {
            assert_eq!(l.ask(NodeId(1), &ask(tokens(100)), at), Decision::Granted(Tariff::Own));
            l.charge(NodeId(1), tokens(100), at);
        }
    }
}

#[test]
fn a_run_and_those_above_it_bound_what_is_below() {
    let mut l = Ledger::new(Budget::default(), Wall(0));
    l.open(NodeId(1), None, caps(100));
    l.open(NodeId(2), Some(NodeId(1)), caps(1_000));
    l.open(NodeId(3), Some(NodeId(1)), Caps::default());
    assert_eq!(l.ask(NodeId(2), &ask(tokens(60)), Wall(0)), Decision::Granted(Tariff::Own));
    assert_eq!(l.ask(NodeId(3), &ask(tokens(60)), Wall(0)), Decision::WaitForOwn);
    let Decision::Refused { why } = l.ask(NodeId(3), &ask(tokens(101)), Wall(0)) else { panic!("fits") };
    assert!(why.starts_with("the budget of a run above it is used up"), "{why}");
    l.charge(NodeId(2), tokens(10), Wall(0));
    assert_eq!(l.ask(NodeId(3), &ask(tokens(60)), Wall(0)), Decision::Granted(Tariff::Own));
    l.close(NodeId(3), Wall(0));
    assert!(matches!(l.ask(NodeId(2), &ask(tokens(31)), Wall(0)), Decision::Refused { .. }));
    l.renew(NodeId(1));
    assert_eq!(l.ask(NodeId(2), &ask(tokens(31)), Wall(0)), Decision::Granted(Tariff::Own));
}

#[test]
fn a_call_that_is_cut_off_counts_whole_until_it_is_heard_of() {
    let mut l = hourly(100, OnExhausted::Refuse);
    assert_eq!(l.ask(NodeId(1), &ask(tokens(80)), Wall(0)), Decision::Granted(Tariff::Own));
    l.cut(NodeId(1), Wall(0));
    assert!(matches!(l.ask(NodeId(2), &ask(tokens(30)), Wall(0)), Decision::Refused { .. }));
    l.charge(NodeId(1), tokens(50), Wall(0));
    assert_eq!(l.ask(NodeId(2), &ask(tokens(30)), Wall(0)), Decision::Granted(Tariff::Own));
    l.charge(NodeId(2), tokens(30), Wall(0));
    assert_eq!(l.left(NodeId(1), Wall(0)).windows[0].left, caps(20));
}

#[test]
fn what_is_left_is_told_of_all_that_is_capped_and_of_nothing_else() {
    let windows = vec![(Per::Minute, Caps::default()), (Per::Hour, caps(100))];
    let lifetime = Caps { tokens: Some(1_000), usd: Some(Usd::from_nanos(500)) };
    let mut l = ledger(Budget { lifetime, windows, ..Budget::default() });
    let told = |l: &Ledger, node, now| serde_json::to_value(l.left(NodeId(node), Wall(now))).expect("JSON");
    l.open(NodeId(9), None, caps(60));
    l.charge(NodeId(9), tokens(10), Wall(0));
    assert_eq!(l.ask(NodeId(9), &ask(tokens(20)), Wall(0)), Decision::Granted(Tariff::Own));
    // What a call in flight may still use is not there for others.
    assert_eq!(
        told(&l, 9, 60_000),
        serde_json::json!({
            "run": {"tokens": 30},
            "lifetime": {"tokens": 970, "usd": 5e-7},
            "windows": [{"per": "hour", "tokens": 70, "ends_in_ms": HOUR - 60_000}],
        })
    );
    // A new hour, of which nothing is used but what is in flight.
    assert_eq!(
        told(&l, 1, HOUR)["windows"],
        serde_json::json!([{"per": "hour", "tokens": 80, "ends_in_ms": HOUR}])
    );
    assert_eq!(told(&l, 1, 0).get("run"), None);
    let mut l = ledger(Budget { lifetime: caps(5), ..Budget::default() });
    l.charge(NodeId(1), tokens(7), Wall(0));
    assert_eq!(told(&l, 1, 0), serde_json::json!({"lifetime": {"tokens": 0}}), "never less than nothing");
    assert_eq!(told(&ledger(Budget::default()), 1, 0), serde_json::json!({}));
}

#[test]
fn a_wall_clock_that_is_set_back_opens_no_window_again() {
    let mut l = hourly(100, OnExhausted::Refuse);
    l.charge(NodeId(1), tokens(100), Wall(5 * HOUR));
    assert!(matches!(l.ask(NodeId(1), &ask(tokens(1)), Wall(0)), Decision::Refused { .. }));
    assert_eq!(l.ask(NodeId(1), &ask(tokens(1)), Wall(6 * HOUR)), Decision::Granted(Tariff::Own));
}

/// One thing that happens to one of four runs.
#[derive(Debug, Clone)]
enum Step {
    Ask(u64),
    /// It is answered, having used this share of its worst case, in hundredths.
    Answer(u64),
    Cut,
    GiveBack,
    Pass(u64),
}

fn step() -> impl Strategy<Value = (u64, Step)> {
    let what = prop_oneof![
        4 => (1u64..400).prop_map(Step::Ask),
        4 => (0u64..=100).prop_map(Step::Answer),
        1 => Just(Step::Cut),
        1 => Just(Step::GiveBack),
        1 => (0u64..2 * HOUR).prop_map(Step::Pass),
    ];
    (1u64..5, what)
}

proptest! {
    /// What was truly spent never passes a cap: neither in a life, nor in an hour, nor in a run with what is below it.
    #[test]
    fn no_cap_is_ever_passed(
        steps in prop::collection::vec(step(), 0..200),
        (life, hour, run) in (0u64..5_000, 0u64..1_000, 0u64..1_500),
        policy in prop::sample::select(vec![
            OnExhausted::Wait, OnExhausted::Slow, OnExhausted::Degrade, OnExhausted::Refuse, OnExhausted::Fail,
        ]),
    ) {
        let windows = vec![(Per::Hour, caps(hour))];
        let budget = Budget { lifetime: caps(life), windows, on_exhausted: policy };
        let mut ledger = Ledger::new(budget, Wall(0));
        for node in 1..5 {
            ledger.open(NodeId(node), (node > 1).then_some(NodeId(1)), caps(run));
        }
        let (mut now, mut began, mut spent, mut spent_now) = (0, 0, 0, 0);
        let mut spent_by = [0; 5];
        let mut open = [None; 5];
        for (node, step) in steps {
            let i = node as usize;
            let id = NodeId(node);
            let mut bill = |now: u64, began: &mut u64, used: u64| {
                if now / HOUR > *began {
                    (*began, spent_now) = (now / HOUR, 0);
                }
                spent += used;
                spent_now += used;
                spent_by[i] += used;
                (spent, spent_now)
            };
            let (all, in_window) = match step {
                Step::Ask(worst) if open[i].is_none() => {
                    if let Decision::Granted(_) = ledger.ask(id, &ask(tokens(worst)), Wall(now)) {
                        open[i] = Some(worst);
                    }
                    bill(now, &mut began, 0)
                }
                Step::Answer(share) => {
                    let used = open[i].take().map(|worst| worst * share / 100);
                    if let Some(used) = used {
                        ledger.charge(id, tokens(used), Wall(now));
                    }
                    bill(now, &mut began, used.unwrap_or(0))
                }
                Step::Cut => {
                    // The provider charges all of it.
                    ledger.cut(id, Wall(now));
                    bill(now, &mut began, open[i].take().unwrap_or(0))
                }
                Step::GiveBack => {
                    open[i] = None;
                    ledger.give_back(id);
                    bill(now, &mut began, 0)
                }
                Step::Pass(ms) => {
                    now += ms;
                    bill(now, &mut began, 0)
                }
                Step::Ask(_) => bill(now, &mut began, 0),
            };
            prop_assert!(all <= life, "{all} of {life}");
            prop_assert!(in_window <= hour, "{in_window} of {hour} in an hour");
            prop_assert!(spent_by[i] <= run, "{} of {run}", spent_by[i]);
            prop_assert!(spent_by.iter().sum::<u64>() <= run, "below the first run");
            let left = ledger.left(id, Wall(now)).lifetime;
            let reserved: u64 = open.iter().flatten().sum();
            prop_assert_eq!(left.tokens, Some(life - all - reserved));
        }
    }
}
