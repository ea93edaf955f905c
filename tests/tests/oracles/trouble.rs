//! Faults in what is counted, planned and called for; in what the wall clock may do; and in how it all ends.

use crate::tamper::{caught, deceived, misquoted, persisted, tampered};
use agentd_core::action::{Action, Actions};
use agentd_core::bytes::Json;
use agentd_core::config::Config;
use agentd_core::event::Event;
use agentd_core::id::NodeId;
use agentd_core::machine::{Deadline, Machine};
use agentd_core::supervisor::Core;
use agentd_core::time::Now;
use agentd_core::wire::Down;
use agentd_core::wire::message::{Pause, ToolResult};
use agentd_tests::sim::draw;
use agentd_tests::sim::plan::Fault;
use agentd_tests::sim::replay::{self, Keep};
use serde_json::{Value, json};

const OWN: &[&str] = &["a run is charged what it used"];
const SUBTREE: &[&str] = &["a subtree is the sum of what is below it"];
const PLAN: &[&str] = &["a plan's items are what calls and ends made of them"];
const ONCE: &[&str] = &["every operator's call is answered exactly once"];

fn answered(down: Down, change: impl FnOnce(&mut bool, &mut Value)) -> Vec<Down> {
    let Down::ToolResult(ToolResult { id, mut error, value }) = down else { return vec![down] };
    let mut value = value.parse().expect("an answer is JSON");
    change(&mut error, &mut value);
    vec![Down::ToolResult(ToolResult { id, error, value: Json::of(&value) })]
}

#[test]
fn a_charge_too_many_or_too_few() {
    tampered(|_, out| persisted(out, |r| r.usage.input += 1), OWN);
    tampered(|_, out| persisted(out, |r| r.usage = Default::default()), OWN);
    tampered(|_, out| persisted(out, |r| r.usage.unpriced ^= true), OWN);
    tampered(|_, out| persisted(out, |r| r.usage.usd = r.usage.usd.plus(r.usage.usd)), OWN);
}

#[test]
fn a_sum_that_is_none() {
    tampered(
        |_, out| {
            for action in out {
                if let Action::Exit { usage, .. } = action {
                    usage.subtree = usage.own;
                }
            }
        },
        SUBTREE,
    );
    let doubled = |down| {
        answered(down, |_, value| {
            if let Some(input) = value["usage"]["subtree"]["input"].as_u64() {
                value["usage"]["subtree"]["input"] = json!(input + 1);
            }
        })
    };
    misquoted(doubled, SUBTREE);
    tampered(
        |_, out| {
            for action in out {
                if let Action::Exit { costliest, .. } = action {
                    *costliest = None;
                }
            }
        },
        &["the costliest run is named"],
    );
}

#[test]
fn a_plan_that_says_something_else() {
    let forgets = |down| {
        answered(down, |_, value| {
            for item in value["items"].as_array_mut().into_iter().flatten() {
                item["status"] = json!("pending");
            }
        })
    };
    misquoted(forgets, PLAN);
    let blocks = |down| {
        answered(down, |_, value| {
            for item in value["plan"]["items"].as_array_mut().into_iter().flatten() {
                if item["status"] == "done" {
                    item["status"] = json!("blocked");
                }
            }
        })
    };
    misquoted(blocks, PLAN);
    let refuses = |down| {
        answered(down, |error, value| {
            if value["goal"].is_string() {
                (*error, *value) = (true, json!({"error": {"gate": "plan", "message": "no"}}));
            }
        })
    };
    misquoted(refuses, &["only a call that makes no sense is refused"]);
}

#[test]
fn an_operator_who_hears_nothing_or_twice() {
    tampered(
        |_, out| out.retain(|a| !matches!(a, Action::Answer { .. })),
        &["a request is answered in time", ONCE[0]],
    );
    tampered(
        |_, out| crate::tamper::add(out, |a| matches!(a, Action::Answer { .. }).then(|| a.clone())),
        ONCE,
    );
    tampered(
        |_, out| {
            for action in out {
                if let Action::Answer { call, .. } = action {
                    *call += 7_000;
                }
            }
        },
        ONCE,
    );
}

#[test]
fn a_kill_that_spares_what_was_delegated() {
    let only = |event, _: &mut Vec<Event>| match event {
        Event::OperatorCalled { call, tool, args } if tool == "subagent.kill" => {
            let mut args = args.parse().unwrap_or_default();
            args["only"] = json!(true);
            vec![Event::OperatorCalled { call, tool, args: Json::of(&args) }]
        }
        event => vec![event],
    };
    deceived(only, &["a kill ends all that was delegated"]);
}

#[test]
fn who_is_paused_is_judged() {
    let pauses = |down| match down {
        Down::Ping(_) => vec![down, Down::Pause(Pause {})],
        down => vec![down],
    };
    misquoted(pauses, &["a signal has a reason", "an outcome has a cause"]);
}

#[test]
fn a_decision_by_the_wall_clock() {
    /// Says nothing while the wall clock is behind where it was.
    struct Hasty(Core, u64);
    impl Machine for Hasty {
        fn handle(&mut self, now: Now, event: Event, out: &mut Actions) {
            let skips = event == Event::Tick && now.wall.0 < self.1;
            self.1 = self.1.max(now.wall.0);
            self.0.handle(now, event, out);
            if skips {
                out.retain(|action| !matches!(action, Action::Note(_)));
            }
        }
        fn poll_timeout(&self) -> Option<Deadline> {
            self.0.poll_timeout()
        }
    }
    let make = |config: Config, now: Now| -> Box<dyn Machine> { Box::new(Hasty(Core::new(config, now), 0)) };
    caught(&make, &["no decision depends on the wall clock"]);
    let late = |down| {
        answered(down, |_, value| {
            if let Some(ms) = value["evidence"]["duration_ms"].as_u64() {
                value["evidence"]["duration_ms"] = json!(ms + 1);
            }
        })
    };
    misquoted(late, &["a duration is measured"]);
}

/// A core that never hears that the pid of the worker is free, and shows nobody how it stands.
struct HardOfHearing(Core);

impl Machine for HardOfHearing {
    fn handle(&mut self, now: Now, event: Event, out: &mut Actions) {
        if event != (Event::Reaped { node: NodeId(1) }) {
            self.0.handle(now, event, out);
        }
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.0.poll_timeout()
    }
}

#[test]
fn no_rest_once_all_is_well() {
    let waits =
        |config: Config, now: Now| -> Box<dyn Machine> { Box::new(HardOfHearing(Core::new(config, now))) };
    caught(&waits, &["all comes to rest once nothing goes wrong"]);
}

/// Without the parent-death signal, what the daemon made lives on after it.
#[test]
fn a_daemon_that_is_outlived() {
    let core = |config: Config, now: Now| -> Box<dyn Machine> { Box::new(Core::new(config, now)) };
    let crashes = (0..2_000).map(draw::plan).filter(|plan| {
        plan.faults.iter().any(|fault| matches!(fault, Fault::Crash { at_action } if *at_action > 20))
    });
    let mut seen = 0;
    for mut plan in crashes.take(60) {
        plan.knobs.parent_death = false;
        let violation = replay::live(&plan, &core, Keep::Verdict).violation;
        seen += u32::from(violation.is_some_and(|v| v.rule == "nothing outlives the daemon"));
    }
    assert!(seen > 0, "children that hang live on, and nobody saw it");
}
