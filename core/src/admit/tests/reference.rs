//! The gates against a second, naive account of them: a list of who runs, a list of who waits, a count, and a bucket that
//! is told by when the next token is owed instead of by how many there are.

use super::*;
use proptest::prelude::*;

/// How long a spawn of a daemon counts here, in nanoseconds.
const WINDOW: u64 = 5_000_000_000;

/// One thing that happens.
#[derive(Debug, Clone)]
enum Step {
    /// Time passes, in nanoseconds.
    Pass(u64),
    Ask {
        depth: u32,
        may_wait: bool,
        draining: bool,
        flaw: Option<&'static str>,
    },
    GiveBack(prop::sample::Index),
    Promote(prop::sample::Index),
    Leave(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    let flaw = prop::sample::select(vec![
        r#"{"instruction": ""}"#,
        r#"{"instruction": "x", "mode": "warp"}"#,
        r#"{"instruction": "x", "speed": 1}"#,
    ]);
    let flaw = prop_oneof![5 => Just(None), 1 => flaw.prop_map(Some)];
    let ask = (0u32..4, any::<bool>(), prop::bool::weighted(0.03), flaw)
        .prop_map(|(depth, may_wait, draining, flaw)| Step::Ask { depth, may_wait, draining, flaw });
    prop_oneof![
        2 => prop_oneof![Just(1), 0u64..3_000_000, 0u64..3_000_000_000, Just(WINDOW), Just(WINDOW - 1)].prop_map(Step::Pass),
        5 => ask,
        2 => any::<prop::sample::Index>().prop_map(Step::GiveBack),
        2 => any::<prop::sample::Index>().prop_map(Step::Promote),
        1 => any::<prop::sample::Index>().prop_map(Step::Leave),
    ]
}

fn limits() -> impl Strategy<Value = SubagentLimits> {
    (0u32..4, 0u32..30, 0u32..3, 1u32..5, 1u64..2_000_000_000, 0u32..4).prop_map(
        |(breadth, total, depth, burst, per, queue)| {
            let rate = Rate { burst, per: Duration::from_nanos(per) };
            SubagentLimits { breadth, total, depth, rate, queue }
        },
    )
}

/// What was said.
#[derive(Debug, PartialEq)]
enum Said {
    Admitted,
    Held,
    Refused(String),
}

/// The naive account.
struct Naive {
    limits: SubagentLimits,
    /// Nanoseconds times the burst, so that the time of one token is whole.
    now: u128,
    /// When the bucket would be full again.
    full_at: u128,
    /// When spawns were admitted, in nanoseconds, and whether they are forgotten after a while.
    admitted: Vec<u64>,
    rolls: bool,
}

impl Naive {
    fn token(&self) -> u128 {
        self.limits.rate.per.as_nanos()
    }

    /// A token is there when all but one can be owed.
    fn has_token(&self) -> bool {
        let owed = self.full_at.saturating_sub(self.now);
        owed + self.token() <= self.token() * u128::from(self.limits.rate.burst)
    }

    /// Spawns that count towards the total.
    fn used(&self) -> u32 {
        let now = self.nanos();
        let counts = |at: &&u64| !self.rolls || now - **at < WINDOW;
        self.admitted.iter().filter(counts).count() as u32
    }

    fn nanos(&self) -> u64 {
        (self.now / u128::from(self.limits.rate.burst)) as u64
    }

    fn take(&mut self) {
        self.full_at = self.full_at.max(self.now) + self.token();
    }

    fn ask(&mut self, step: &Step, live: usize, waiting: usize) -> Said {
        let Step::Ask { depth, may_wait, draining, flaw } = step else { unreachable!("asked") };
        let no = |gate: &str| Said::Refused(gate.to_owned());
        let (limits, flaw) = (self.limits, flaw.unwrap_or_default());
        let room = *may_wait && waiting < limits.queue as usize;
        let breadth = live >= limits.breadth as usize;
        let behind = *may_wait && waiting > 0;
        if *draining {
            return no("draining");
        }
        if flaw.contains("\"\"") {
            return no("instruction");
        }
        if flaw.contains("warp") {
            return no("mode");
        }
        if (breadth || behind) && !room {
            return no("breadth");
        }
        if self.used() >= limits.total {
            return no("total");
        }
        if *depth >= limits.depth {
            return no("depth");
        }
        if flaw.contains("speed") {
            return no("well_formed");
        }
        let waits = if breadth || behind {
            true
        } else if self.has_token() {
            self.take();
            false
        } else if room {
            true
        } else {
            return no("rate");
        };
        self.admitted.push(self.nanos());
        if waits { Said::Held } else { Said::Admitted }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_gates_say_what_a_naive_account_of_them_says(
        limits in limits(), rolls in any::<bool>(), steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut gates = Admission::new(limits, rolls.then_some(Duration::from_nanos(WINDOW)), Instant::ZERO);
        let mut naive = Naive { limits, now: 0, full_at: 0, admitted: Vec::new(), rolls };
        let (mut live, mut waiting, mut now) = (Vec::new(), Vec::new(), 0);
        for step in &steps {
            match step {
                Step::Pass(ns) => {
                    now += ns;
                    naive.now = u128::from(now) * u128::from(limits.rate.burst);
                }
                Step::Ask { depth, may_wait, draining, flaw } => {
                    let call = flaw.unwrap_or(r#"{"instruction": "x"}"#);
                    let call = args(serde_json::from_str(call).expect("JSON"));
                    let applicant = Applicant {
                        args: &call,
                        requester_depth: *depth,
                        draining: *draining,
                        may_wait: *may_wait,
                        no_budget: None,
                        problems: &[],
                        live: &mut std::iter::empty(),
                    };
                    let expected = naive.ask(step, live.len(), waiting.len());
                    let said = match gates.admit(applicant, Instant::from_nanos(now)) {
                        Ok(Verdict::Admit(permit)) => { live.push(permit); Said::Admitted }
                        Ok(Verdict::Hold(place)) => { waiting.push(place); Said::Held }
                        Err(refusal) => Said::Refused(refusal.gate),
                    };
                    prop_assert_eq!(said, expected);
                }
                Step::GiveBack(which) if !live.is_empty() => {
                    gates.give_back(live.swap_remove(which.index(live.len())));
                }
                Step::Promote(which) if !waiting.is_empty() => {
                    let may = live.len() < limits.breadth as usize && naive.has_token();
                    let place = waiting.swap_remove(which.index(waiting.len()));
                    match gates.promote(place, Instant::from_nanos(now)) {
                        Ok(permit) => {
                            prop_assert!(may, "promoted over a limit");
                            naive.take();
                            live.push(permit);
                        }
                        Err(place) => {
                            prop_assert!(!may, "kept waiting without need");
                            waiting.push(place);
                        }
                    }
                }
                Step::Leave(which) if !waiting.is_empty() => {
                    gates.leave(waiting.swap_remove(which.index(waiting.len())));
                }
                Step::GiveBack(_) | Step::Promote(_) | Step::Leave(_) => {}
            }
            prop_assert_eq!(gates.permits_out() as usize, live.len());
            prop_assert_eq!(gates.spawns_left(Instant::from_nanos(now)), limits.total.saturating_sub(naive.used()));
            let at = gates.promotes_at();
            prop_assert_eq!(at.is_some(), !waiting.is_empty() && live.len() < limits.breadth as usize);
            if let Some(at) = at {
                // Then, and not a nanosecond before.
                let has = |ns: u64| {
                    let at = u128::from(ns) * u128::from(limits.rate.burst);
                    Naive { now: at, admitted: Vec::new(), ..naive }.has_token()
                };
                let at = at.nanos().max(now);
                prop_assert!(has(at), "no token at {at}");
                prop_assert!(at == now || !has(at - 1), "a token before {at}");
            }
        }
    }
}
