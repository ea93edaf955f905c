use super::*;
use proptest::prelude::*;

const A: &str = "https://a.example/v1";

fn at(ms: u64) -> Instant {
    Instant::from_millis(1_000_000 + ms)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn waits(change: Change, least: Duration) {
    match change {
        Change::LeaveAlone(wait) => {
            assert!(wait >= least && wait <= least + least / 8, "{wait:?} for {least:?}")
        }
        Change::Nothing | Change::GoOn => panic!("{change:?}, not a wait of {least:?}"),
    }
}

#[test]
fn a_time_that_was_asked_for_is_told_once_and_up_to_a_bound() {
    let mut known = Throttles::default();
    waits(known.limited(A, Some(secs(3)), at(0)), secs(3));
    // Thirty calls were in flight: each says the same a little later.
    for ms in 1..30 {
        assert_eq!(known.limited(A, Some(secs(3)), at(ms * 10)), Change::Nothing, "{ms}");
    }
    assert!(known.left(A, at(100)).is_some_and(|left| left >= Duration::from_millis(2_900)));
    assert_eq!(known.left(A, at(3_400)), None);
    waits(known.limited(A, Some(secs(86_400)), at(1_000)), RETRY_AFTER);
    assert_eq!(known.left("https://b.example", at(1_000)), None);
    assert_eq!(Throttles::default().limited(A, Some(Duration::ZERO), at(0)), Change::Nothing);
}

#[test]
fn three_failures_in_a_row_open_the_breaker_and_each_further_one_longer() {
    let mut known = Throttles::default();
    let mut now = 0;
    assert_eq!(known.failed(A, at(now)), Change::Nothing);
    assert_eq!(known.limited(A, None, at(now)), Change::Nothing, "no time was named: a failure");
    waits(known.failed(A, at(now)), secs(5));
    for [rest, next] in [[5, 10], [10, 20], [20, 40], [40, 60], [60, 60]] {
        assert_eq!(known.failed(A, at(now + rest * 1_000 - 1)), Change::Nothing, "it was in flight");
        now += rest * 1_000;
        waits(known.failed(A, at(now)), secs(next));
    }
}

#[test]
fn an_answer_closes_the_breaker_but_not_what_was_asked_for() {
    let mut known = Throttles::default();
    for _ in 0..2 {
        known.failed(A, at(0));
    }
    assert_eq!(known.answered(A, at(1)), Change::Nothing);
    for _ in 0..2 {
        assert_eq!(known.failed(A, at(2)), Change::Nothing, "in a row");
    }
    waits(known.failed(A, at(2)), secs(5));
    assert_eq!(known.answered(A, at(100)), Change::GoOn);
    assert_eq!(known.left(A, at(100)), None);

    waits(known.limited(A, Some(secs(4)), at(200)), secs(4));
    assert_eq!(known.answered(A, at(300)), Change::Nothing, "of a call that was in flight");
    assert!(known.left(A, at(300)).is_some());
    assert_eq!(known.answered(A, at(5_000)), Change::Nothing);
    assert!(known.0.is_empty(), "what is well is not kept");
}

#[test]
fn an_answer_ends_the_wait_for_the_breaker_and_leaves_the_shorter_one_asked_for() {
    let mut known = Throttles::default();
    for _ in 0..ENDPOINT_FAILURES {
        known.failed(A, at(0));
    }
    assert_eq!(known.limited(A, Some(secs(1)), at(100)), Change::Nothing, "they wait longer already");
    waits(known.answered(A, at(100)), secs(1));
    assert!(known.left(A, at(100)).is_some_and(|left| left < secs(2)), "not the five of the breaker");
}

#[test]
fn who_came_after_a_wait_is_told_of_the_next_one() {
    let mut known = Throttles::default();
    waits(known.limited(A, Some(secs(30)), at(0)), secs(30));
    assert_eq!(known.left(A, at(31_000)), None, "a run that starts now is told nothing");
    waits(known.limited(A, Some(secs(2)), at(31_000)), secs(2));
}

#[test]
fn no_more_is_kept_than_the_bound() {
    let mut known = Throttles::default();
    for n in 0..ENDPOINTS {
        known.limited(&format!("https://{n}.example"), Some(secs(3)), at(0));
    }
    assert_eq!(known.limited(A, Some(secs(3)), at(0)), Change::Nothing, "all the others are waited for");
    assert_eq!(known.0.len(), ENDPOINTS);
    waits(known.limited(A, Some(secs(3)), at(4_000)), secs(3));
    assert_eq!(known.0.len(), ENDPOINTS);
}

proptest! {
    /// Whatever is reported: nobody waits for ever, and who is told to wait is told until the end of the wait.
    #[test]
    fn every_wait_ends(steps in proptest::collection::vec((0..3u8, 0..20_000u64, 0..100_000u64), 1..200)) {
        let mut known = Throttles::default();
        let (mut now, mut told) = (0, at(0));
        for (what, passes, asked) in steps {
            now += passes;
            let change = match what {
                0 => known.limited(A, Some(Duration::from_millis(asked)), at(now)),
                1 => known.failed(A, at(now)),
                _ => known.answered(A, at(now)),
            };
            match change {
                Change::Nothing => {}
                Change::LeaveAlone(wait) => {
                    prop_assert!(!wait.is_zero() && wait <= Duration::from_millis(67_500));
                    told = told.max(at(now) + wait);
                }
                Change::GoOn => told = at(now),
            }
            if let Some(left) = known.left(A, at(now)) {
                prop_assert!(at(now) + left <= told, "a later run is told no longer than the others");
            }
        }
        prop_assert_eq!(known.left(A, at(now + 70_000)), None);
    }
}
