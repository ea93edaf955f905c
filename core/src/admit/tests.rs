//! Each gate says no at its bound and not before, in order, and refusals cost nothing.

use super::*;
use crate::config::Rate;
use crate::time::Duration;
use serde_json::json;

mod reference;

const LIMITS: SubagentLimits = SubagentLimits {
    breadth: 3,
    total: 5,
    depth: 1,
    rate: Rate { burst: 8, per: Duration::from_secs(2) },
    queue: 0,
};

fn args(value: serde_json::Value) -> RunArgs {
    RunArgs::read(value.as_object().expect("an object"))
}

fn good() -> RunArgs {
    args(json!({"instruction": "x"}))
}

fn apply(a: &mut Admission, args: &RunArgs, depth: u32, draining: bool) -> Result<Verdict, Refusal> {
    let live: Vec<Handle> = (1..=u64::from(a.permits_out())).map(Handle).collect();
    let applicant = Applicant {
        args,
        requester_depth: depth,
        draining,
        may_wait: depth == 0,
        no_budget: None,
        problems: &[],
        live: &mut live.into_iter(),
    };
    a.admit(applicant, Instant::ZERO)
}

fn ask(a: &mut Admission, args: &RunArgs, depth: u32, draining: bool) -> Result<Permit, Refusal> {
    apply(a, args, depth, draining).map(|verdict| match verdict {
        Verdict::Admit(permit) => permit,
        Verdict::Hold(_) => panic!("nothing waits without a queue"),
    })
}

#[test]
fn breadth_names_who_runs_and_what_helps() {
    let mut a = Admission::new(LIMITS, None, Instant::ZERO);
    let mut permits: Vec<Permit> = (0..3).map(|_| ask(&mut a, &good(), 0, false).expect("fits")).collect();
    let no = ask(&mut a, &good(), 0, false).unwrap_err();
    assert_eq!(
        no.message,
        "breadth: 3 of 3 running (sub-1, sub-2, sub-3); await one or raise limits.subagents.breadth"
    );
    assert_eq!((no.limit.as_deref(), no.observed.as_deref()), (Some("3"), Some("3")));
    a.give_back(permits.pop().expect("three"));
    assert!(ask(&mut a, &good(), 0, false).is_ok());
}

#[test]
fn the_first_gate_in_order_speaks() {
    let bad = args(json!({"instruction": " ", "mode": "warp", "speed": 1}));
    let mut a = Admission::new(LIMITS, None, Instant::ZERO);
    assert_eq!(ask(&mut a, &bad, 9, true).unwrap_err().gate, "draining");
    assert_eq!(ask(&mut a, &bad, 9, false).unwrap_err().gate, "instruction");
    let bad = args(json!({"instruction": "x", "mode": "warp", "speed": 1}));
    assert_eq!(ask(&mut a, &bad, 9, false).unwrap_err().gate, "mode");
    let bad = args(json!({"instruction": "x", "speed": 1}));
    assert_eq!(ask(&mut a, &bad, 9, false).unwrap_err().gate, "depth");
    assert_eq!(ask(&mut a, &bad, 0, false).unwrap_err().gate, "well_formed");
}

#[test]
fn a_long_list_of_runs_is_told_by_its_ends() {
    for (breadth, names) in
        [(4, "sub-1, sub-2, sub-3, sub-4"), (5, "sub-1 … sub-5"), (6, "sub-1 … sub-6"), (1, "sub-1")]
    {
        let mut a = Admission::new(SubagentLimits { breadth, total: 9, ..LIMITS }, None, Instant::ZERO);
        let permits: Vec<Permit> =
            (0..breadth).map(|_| ask(&mut a, &good(), 0, false).expect("fits")).collect();
        let no = ask(&mut a, &good(), 0, false).unwrap_err();
        let running = format!("breadth: {breadth} of {breadth} running ({names});");
        assert!(no.message.starts_with(&running), "{}", no.message);
        permits.into_iter().for_each(|permit| a.give_back(permit));
    }
}

#[test]
fn depth_says_how_deep_the_run_would_be() {
    let limits = SubagentLimits { depth: 2, ..LIMITS };
    let mut a = Admission::new(limits, None, Instant::ZERO);
    assert!(ask(&mut a, &good(), 1, false).is_ok());
    let no = ask(&mut a, &good(), 2, false).unwrap_err();
    assert_eq!(no.message, "depth: this run is at depth 2 of 2");
    assert_eq!((no.limit.as_deref(), no.observed.as_deref()), (Some("2"), Some("3")));
}

#[test]
fn total_counts_admissions_not_refusals() {
    let mut a = Admission::new(SubagentLimits { breadth: 100, ..LIMITS }, None, Instant::ZERO);
    for _ in 0..20 {
        assert!(ask(&mut a, &args(json!({"instruction": ""})), 0, false).is_err());
    }
    for _ in 0..5 {
        assert!(ask(&mut a, &good(), 0, false).is_ok());
    }
    assert_eq!(ask(&mut a, &good(), 0, false).unwrap_err().gate, "total");
}

#[test]
fn a_refusal_never_costs_a_rate_token() {
    let mut a = Admission::new(SubagentLimits { breadth: 100, total: 100, ..LIMITS }, None, Instant::ZERO);
    for _ in 0..50 {
        assert_eq!(
            ask(&mut a, &args(json!({"instruction": "x", "tools": 3})), 0, false).unwrap_err().gate,
            "well_formed"
        );
    }
    for _ in 0..8 {
        assert!(ask(&mut a, &good(), 0, false).is_ok());
    }
    let no = ask(&mut a, &good(), 0, false).unwrap_err();
    assert_eq!(no.gate, "rate");
    assert!(no.message.contains("free in 250 ms"), "{}", no.message);
    assert_eq!(a.permits_out(), 8);
}
