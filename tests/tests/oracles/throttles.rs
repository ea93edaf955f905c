//! Faults in what runs are told of providers' limits.

use crate::tamper::{misquoted, misread};
use agentd_core::wire::message::{Health, Throttle};
use agentd_core::wire::{Down, Up};

const TOLD: &[&str] = &["a limit that one run learned of reaches the others"];
const OUTLIVED: &[&str] = &["nobody is held back for what is over"];
const REASON: &[&str] = &["a throttle has a reason and an end"];

/// Changes for how long a run is to leave an endpoint alone.
fn scaled(down: Down, change: fn(u64) -> u64) -> Vec<Down> {
    vec![match down {
        Down::Throttle(told) => Down::Throttle(Throttle { for_ms: change(told.for_ms), ..told }),
        down => down,
    }]
}

#[test]
fn a_limit_that_is_not_passed_on_or_not_in_full() {
    let kept = |down| match down {
        Down::Throttle(_) => vec![],
        down => vec![down],
    };
    misquoted(kept, TOLD);
    misquoted(|down| scaled(down, |ms| ms / 2), TOLD);
}

#[test]
fn an_end_of_a_wait_that_is_not_passed_on() {
    let held = |down| match down {
        Down::Throttle(told) if told.for_ms == 0 => vec![],
        down => vec![down],
    };
    misquoted(held, OUTLIVED);
}

#[test]
fn a_wait_that_nobody_asked_for() {
    misquoted(|down| scaled(down, |ms| ms + 60_000), REASON);
    misquoted(|down| scaled(down, |ms| if ms == 0 { 1 } else { ms }), REASON);
}

#[test]
fn reports_that_are_misread() {
    let well = |up| match up {
        Up::ModelHealth(mut report) => {
            report.health = Health::Answered;
            Up::ModelHealth(report)
        }
        up => up,
    };
    misread(well, TOLD);
    let hasty = |up| match up {
        Up::ModelHealth(mut report) if report.health == Health::Limited => {
            report.retry_after_ms = report.retry_after_ms.map(|ms| ms.saturating_add(20_000));
            Up::ModelHealth(report)
        }
        up => up,
    };
    misread(hasty, REASON);
}
