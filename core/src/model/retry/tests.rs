use super::*;

fn error(kind: ModelErrorKind) -> ModelError {
    ModelError::new(kind, "no")
}

fn asking(seconds: u64) -> ModelError {
    ModelError { retry_after: Some(Duration::from_secs(seconds)), ..error(ModelErrorKind::Overloaded) }
}

/// Lets every attempt fail with `error` at the time it is due: endpoint and wait of each further one.
fn play(retry: &mut Retry, error: &ModelError) -> Vec<(usize, Duration)> {
    let (mut now, mut seen) = (Instant::from_millis(1_000_000), Vec::new());
    retry.begin(now);
    while let Next::Again { endpoint, at } = retry.after(error, now) {
        seen.push((endpoint, at.since(now)));
        now = at;
        assert!(seen.len() < 1_000, "it ends");
    }
    seen
}

fn between(wait: Duration, least_ms: u64, most_ms: u64) -> bool {
    wait >= Duration::from_millis(least_ms) && wait <= Duration::from_millis(most_ms)
}

#[test]
fn what_cannot_get_better_is_not_tried_again() {
    for kind in [ModelErrorKind::Credential, ModelErrorKind::Rejected, ModelErrorKind::TooLong] {
        for patient in [false, true] {
            let mut retry = Retry::new(2, patient, 1);
            assert_eq!(play(&mut retry, &error(kind)), []);
            assert_eq!(retry.attempts(), 1);
        }
    }
}

#[test]
fn two_retries_in_place_then_the_next_endpoint() {
    for kind in [ModelErrorKind::Unreachable, ModelErrorKind::Overloaded, ModelErrorKind::Malformed] {
        for seed in 0..50 {
            let mut retry = Retry::new(2, false, seed);
            let seen = play(&mut retry, &error(kind));
            assert_eq!(seen.iter().map(|s| s.0).collect::<Vec<_>>(), [0, 0, 1, 1, 1]);
            assert_eq!(retry.attempts(), 6);
            for (at, least, most) in [(0, 125, 375), (1, 250, 750), (2, 0, 0), (3, 125, 375), (4, 250, 750)] {
                assert!(between(seen[at].1, least, most), "{at}: {seen:?}");
            }
        }
    }
}

#[test]
fn children_that_fail_together_do_not_come_back_together() {
    for error in [error(ModelErrorKind::Overloaded), asking(3)] {
        let first = |seed| play(&mut Retry::new(1, false, seed), &error)[0].1;
        let mut waits: Vec<_> = (0..8).map(first).collect();
        waits.sort();
        waits.dedup();
        assert_eq!(waits.len(), 8);
    }
}

#[test]
fn a_provider_that_names_a_time_is_left_alone_for_it() {
    let seen = play(&mut Retry::new(1, false, 7), &asking(3));
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|(_, wait)| between(*wait, 3_000, 3_375)), "{seen:?}");
    assert!(play(&mut Retry::new(1, false, 7), &asking(0)).iter().all(|(_, wait)| !wait.is_zero()));
}

#[test]
fn a_day_is_cut_to_the_bound_or_gives_the_next_endpoint_its_turn() {
    let alone = play(&mut Retry::new(1, false, 7), &asking(86_400));
    assert!(alone.iter().all(|(_, wait)| between(*wait, 30_000, 33_750)), "{alone:?}");
    let two = play(&mut Retry::new(2, false, 7), &asking(86_400));
    assert_eq!(two.iter().map(|s| s.0).collect::<Vec<_>>(), [1, 1, 1]);
    assert!(two[0].1.is_zero() && between(two[1].1, 30_000, 33_750), "{two:?}");
}

#[test]
fn a_patient_one_rides_it_out_for_eight_rounds() {
    let seen = play(&mut Retry::new(2, true, 3), &error(ModelErrorKind::Unreachable));
    let endpoints: Vec<_> = seen.iter().map(|s| s.0).collect();
    let rounds = [0, 1].repeat(8);
    assert_eq!(endpoints, [vec![0, 0, 1, 1, 1], rounds].concat());
    let waits: Vec<_> = seen[5..].iter().step_by(2).map(|s| s.1).collect();
    for (wait, seconds) in waits.iter().zip([1, 2, 4, 8, 16, 30, 30, 30]) {
        assert!(between(*wait, seconds * 500, seconds * 1_500), "{waits:?}");
    }
    assert!(seen[6..].iter().step_by(2).all(|s| s.1.is_zero()), "the other endpoint's turn comes at once");
}

#[test]
fn an_endpoint_that_gave_out_rests_while_another_serves() {
    let mut retry = Retry::new(2, false, 1);
    let now = Instant::from_millis(1_000);
    let down = error(ModelErrorKind::Unreachable);
    assert_eq!(retry.begin(now), 0);
    for _ in 0..ENDPOINT_ATTEMPTS {
        retry.after(&down, now);
    }
    retry.answered();
    assert_eq!(retry.begin(now + Duration::from_secs(4)), 1, "it rests");
    retry.answered();
    let later = now + Duration::from_secs(5);
    assert_eq!(retry.begin(later), 0, "it is tried again");
    for _ in 0..ENDPOINT_ATTEMPTS {
        retry.after(&down, later);
    }
    retry.answered();
    assert_eq!(retry.begin(later + Duration::from_secs(9)), 1, "and rests longer");
    assert_eq!(retry.begin(later + Duration::from_secs(10)), 0);
    retry.answered();
    assert_eq!(retry.begin(later + Duration::from_secs(10)), 0, "an answer makes it well");
}

#[test]
fn an_endpoint_that_is_held_is_passed_over_and_when_all_are_the_soonest_is_waited_for() {
    let (now, later) = (Instant::from_millis(1_000), Instant::from_millis(9_000));
    let mut retry = Retry::new(3, false, 1);
    retry.hold(0, later);
    assert_eq!((retry.begin(now), retry.held_until(1)), (1, Instant::ZERO));
    retry.answered();
    retry.hold(1, Instant::from_millis(5_000));
    retry.hold(2, later);
    assert_eq!((retry.begin(now), retry.held_until(1)), (1, Instant::from_millis(5_000)));
    assert_eq!(retry.begin(Instant::from_millis(5_000)), 1, "held no longer");
    retry.hold(0, now);
    assert_eq!(retry.begin(now), 0, "the last word stands");
    retry.hold(7, later);
    assert_eq!(retry.held_until(7), Instant::ZERO, "there is no such endpoint");
}

#[test]
fn a_hold_outlasts_an_answer_and_a_rest_comes_after_it() {
    let now = Instant::from_millis(1_000);
    let mut retry = Retry::new(2, false, 1);
    retry.begin(now);
    retry.hold(0, Instant::from_millis(4_000));
    retry.answered();
    assert_eq!(retry.begin(now), 1);
    let down = error(ModelErrorKind::Unreachable);
    for _ in 0..ENDPOINT_ATTEMPTS {
        retry.after(&down, now);
    }
    assert_eq!(retry.begin(now), 1, "one that only rests is asked before one that is held");
    assert_eq!(retry.begin(Instant::from_millis(4_000)), 0);
}

#[test]
fn an_endpoint_that_is_held_for_long_gives_the_next_one_its_turn() {
    let now = Instant::from_millis(1_000);
    let mut retry = Retry::new(2, false, 1);
    retry.begin(now);
    retry.hold(0, now + RETRY_AFTER + Duration::from_secs(1));
    let next = retry.after(&error(ModelErrorKind::Unreachable), now);
    assert_eq!(next, Next::Again { endpoint: 1, at: now });
}
