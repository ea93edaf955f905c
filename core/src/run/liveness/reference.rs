//! The verdicts against a second, naive account of them: a list of all that a child did, in a time that stands still
//! while the daemon does, looked through from the beginning each time.

use super::*;
use proptest::prelude::*;

/// One thing that happens.
#[derive(Debug, Clone)]
enum Step {
    /// Time passes, in milliseconds.
    Pass(u64),
    Ready,
    Frame,
    /// An answer to the n-th ping from the last; 0 is one that was never sent.
    Pong(u64),
    /// The daemon or the machine stands still for so long.
    Gap(u64),
    TurnEnds,
    TurnBegins(u64),
    Pause,
    Resume,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => prop_oneof![Just(1), 0u64..50, 0u64..2_000].prop_map(Step::Pass),
        1 => Just(Step::Ready),
        2 => Just(Step::Frame),
        4 => prop_oneof![4 => Just(1), 1 => 0u64..5].prop_map(Step::Pong),
        1 => (0u64..20_000).prop_map(Step::Gap),
        1 => Just(Step::TurnEnds),
        1 => (0u64..5_000).prop_map(Step::TurnBegins),
        1 => Just(Step::Pause),
        1 => Just(Step::Resume),
    ]
}

fn keys() -> impl Strategy<Value = config::Liveness> {
    let ms = Duration::from_millis;
    (1u64..300, 1u64..900, 1u64..3_000, 1u64..2_000, 0u64..1_000).prop_map(
        move |(ping, pong, progress, ready, grace)| config::Liveness {
            ping: ms(ping),
            pong: ms(pong),
            progress: ms(progress),
            ready: ms(ready),
            hard_deadline_grace: ms(grace),
        },
    )
}

/// What a child did, and when by its own time.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Did {
    Ready,
    Frame,
    Pong(u64),
    /// What the supervisor did: it sent the next ping.
    Pinged,
    /// What the operator did: it goes on after a pause, and is judged as one that has just said something.
    Resumed,
}

/// The naive account, in milliseconds of a clock that a gap does not move.
#[derive(Debug, Default)]
struct Naive {
    now: u64,
    did: Vec<(u64, Did)>,
    deadline: Option<u64>,
    /// Since when it pauses.
    paused: Option<u64>,
    /// Pauses so far: time that it had not to be ready in.
    rested: u64,
    /// When the turn in hand began.
    begun: u64,
}

impl Naive {
    fn last(&self, which: impl Fn(Did) -> bool) -> Option<u64> {
        self.did.iter().rev().find(|(_, did)| which(*did)).map(|(at, _)| *at)
    }

    fn pings(&self) -> u64 {
        self.did.iter().filter(|(_, did)| *did == Did::Pinged).count() as u64
    }

    /// A pong that shows life: of a ping that was sent, and later than every one answered.
    fn pong(&mut self, seq: u64) -> bool {
        let answered = self.did.iter().filter_map(|(_, did)| match did {
            Did::Pong(seq) => Some(*seq),
            Did::Ready | Did::Frame | Did::Pinged | Did::Resumed => None,
        });
        let fresh = seq > answered.max().unwrap_or(0) && seq <= self.pings();
        if fresh {
            self.did.push((self.now, Did::Pong(seq)));
        }
        fresh
    }

    fn is_ready(&self) -> bool {
        self.last(|did| did == Did::Ready).is_some()
    }

    fn verdict(&self, keys: &config::Liveness) -> Option<Verdict> {
        let key = |duration: Duration| duration.as_millis() as u64;
        let grace = key(keys.hard_deadline_grace);
        let pinged = self.last(|did| did == Did::Pinged).unwrap_or(0);
        let ping = (self.now >= pinged + key(keys.ping)).then(|| Verdict::Ping { seq: self.pings() + 1 });
        if self.paused.is_some() {
            return ping;
        }
        if self.deadline.is_some_and(|deadline| self.now >= deadline + grace) {
            return Some(Verdict::HardDeadline);
        }
        if !self.is_ready() && self.now >= self.rested + key(keys.ready) {
            return Some(Verdict::NeverReady);
        }
        let frame = self.last(|did| matches!(did, Did::Ready | Did::Frame | Did::Resumed)).unwrap_or(0);
        let pong = self.last(|did| matches!(did, Did::Ready | Did::Pong(_) | Did::Resumed)).unwrap_or(0);
        let (silent, no_pong) = (self.now - frame, self.now - pong);
        if self.is_ready() && silent >= key(keys.progress) && no_pong >= key(keys.pong) {
            let ms = Duration::from_millis;
            return Some(Verdict::Stuck { silent: ms(silent), no_pong: ms(no_pong) });
        }
        ping
    }

    fn resume(&mut self) {
        let Some(paused) = self.paused.take() else { return };
        self.rested += self.now - paused;
        // A turn that began during the pause gives only the rest of it.
        self.deadline = self.deadline.map(|at| at + (self.now - paused.max(self.begun)));
        self.did.push((self.now, Did::Resumed));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn verdicts_are_those_of_a_naive_account(
        keys in keys(), deadline in 0u64..20_000, steps in prop::collection::vec(step(), 0..150),
    ) {
        let mut ms = 7;
        let ms_of = Duration::from_millis;
        let mut child = Liveness::new(Instant::from_millis(ms), ms_of(deadline), &keys);
        let mut naive = Naive { deadline: Some(deadline), ..Naive::default() };
        for step in steps {
            let now = Instant::from_millis(ms);
            match step {
                Step::Pass(more) => {
                    ms += more;
                    naive.now += more;
                }
                Step::Ready => {
                    prop_assert_eq!(child.ready(now), !naive.is_ready());
                    // Said again it is a frame like any other, and an answer.
                    naive.did.push((naive.now, Did::Ready));
                }
                Step::Frame => {
                    child.frame(now);
                    naive.did.push((naive.now, Did::Frame));
                }
                Step::Pong(back) => {
                    let seq = if back == 0 { naive.pings() + 1 } else { (naive.pings() + 1).saturating_sub(back) };
                    let last = naive.pings();
                    let trip = child.pong(now, seq);
                    let fresh = naive.pong(seq);
                    prop_assert_eq!(trip.is_some(), fresh && seq == last);
                }
                Step::Gap(gap) => {
                    ms += gap;
                    child.forgive(ms_of(gap));
                }
                Step::TurnEnds => {
                    child.turn_ended();
                    naive.deadline = None;
                }
                Step::TurnBegins(deadline) => {
                    child.turn_begun(now, ms_of(deadline), &keys);
                    (naive.deadline, naive.begun) = (Some(naive.now + deadline), naive.now);
                }
                Step::Pause => {
                    child.pause(now);
                    naive.paused.get_or_insert(naive.now);
                }
                Step::Resume => {
                    child.resume(now);
                    naive.resume();
                }
            }
            let now = Instant::from_millis(ms);
            loop {
                let due = child.due(&keys) <= now;
                let expected = naive.verdict(&keys);
                prop_assert_eq!(due, expected.is_some(), "due when there is something to say");
                let verdict = child.judge(now, &keys);
                prop_assert_eq!(&verdict, &expected);
                match verdict {
                    Some(Verdict::Ping { .. }) => naive.did.push((naive.now, Did::Pinged)),
                    Some(Verdict::NeverReady | Verdict::Stuck { .. } | Verdict::HardDeadline) => return Ok(()),
                    None => break,
                }
            }
        }
    }
}
