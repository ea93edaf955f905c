//! Whether a child lives (S9.1–S9.3). The control thread of a child answers pings by itself, so a child that
//! is silent but answers is busy and left alone; one that does neither is stuck.

use crate::config;
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// What is wrong with a child, or what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Send this ping.
    Ping {
        /// Its number.
        seq: u64,
    },
    /// No `ready` in time.
    NeverReady,
    /// Neither frames nor pongs.
    Stuck {
        /// Since the last frame that shows progress.
        silent: Duration,
        /// Since the last pong.
        no_pong: Duration,
    },
    /// Past its run's deadline and the grace.
    HardDeadline,
}

/// One child's signs of life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Liveness {
    /// When it was spawned, moved by what it is not judged by.
    since: Instant,
    ready: bool,
    last_frame: Instant,
    last_pong: Instant,
    next_ping: Instant,
    /// Pings sent so far; their numbers are 1 to this.
    sent: u64,
    /// Highest number answered.
    answered: u64,
    sent_at: Instant,
    /// None while a warm child has no turn in hand.
    hard_deadline: Option<Instant>,
    /// Since when an operator has it pause: that time is not judged (S6.9).
    paused: Option<Instant>,
}

impl Liveness {
    /// A child that was just spawned, whose run may take `deadline`.
    pub fn new(now: Instant, deadline: Duration, keys: &config::Liveness) -> Liveness {
        Liveness {
            since: now,
            ready: false,
            last_frame: now,
            last_pong: now,
            next_ping: now + keys.ping,
            sent: 0,
            answered: 0,
            sent_at: now,
            hard_deadline: Some(now + deadline + keys.hard_deadline_grace),
            paused: None,
        }
    }

    /// A turn that may take `deadline` begins (S9.2).
    pub fn turn_begun(&mut self, now: Instant, deadline: Duration, keys: &config::Liveness) {
        // A pause that goes on gives this turn only what it takes of it.
        if self.paused.is_some() {
            self.resume(now);
            self.pause(now);
        }
        self.hard_deadline = Some(now + deadline + keys.hard_deadline_grace);
    }

    /// The turn in hand has ended: an idle child has no deadline.
    pub fn turn_ended(&mut self) {
        self.hard_deadline = None;
    }

    /// From now on nothing is judged; pings go on.
    pub fn pause(&mut self, now: Instant) {
        self.paused.get_or_insert(now);
    }

    /// It is judged again, by what it does from now on, and has all the time that it had left.
    pub fn resume(&mut self, now: Instant) {
        let Some(paused) = self.paused.take() else { return };
        let gap = now.since(paused);
        self.since = self.since + gap;
        self.hard_deadline = self.hard_deadline.map(|at| at + gap);
        self.last_frame = self.last_frame.max(now);
        self.last_pong = self.last_pong.max(now);
    }

    /// Whether `ready` has come.
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// The child said `ready`. `false` when it had said so before.
    pub fn ready(&mut self, now: Instant) -> bool {
        let first = !self.ready;
        self.ready = true;
        self.frame(now);
        self.last_pong = self.last_pong.max(now);
        first
    }

    /// Any frame but `pong`.
    pub fn frame(&mut self, now: Instant) {
        self.last_frame = self.last_frame.max(now);
    }

    /// A pong. Its round trip when it answers a ping that was sent and not yet answered; a made-up or old
    /// number shows no life.
    pub fn pong(&mut self, now: Instant, seq: u64) -> Option<Duration> {
        if seq == 0 || seq > self.sent || seq <= self.answered {
            return None;
        }
        self.answered = seq;
        self.last_pong = now;
        (seq == self.sent).then(|| now.since(self.sent_at))
    }

    /// Since the last frame that shows progress.
    pub fn silent(&self, now: Instant) -> Duration {
        now.since(self.last_frame)
    }

    /// Since the last pong.
    pub fn no_pong(&self, now: Instant) -> Duration {
        now.since(self.last_pong)
    }

    /// The durations are others from now on. A pong may have had more time until now than it has from here on, so it is
    /// judged by what comes.
    pub fn retime(&mut self, now: Instant, keys: &config::Liveness) {
        self.next_ping = self.next_ping.min(now + keys.ping);
        self.last_pong = self.last_pong.max(now);
    }

    /// Nobody is judged by a gap in which the daemon or the machine stood still (S9.3).
    pub fn forgive(&mut self, gap: Duration) {
        for at in [
            &mut self.since,
            &mut self.last_frame,
            &mut self.last_pong,
            &mut self.next_ping,
            &mut self.sent_at,
        ] {
            *at = *at + gap;
        }
        self.hard_deadline = self.hard_deadline.map(|at| at + gap);
        self.paused = self.paused.map(|at| at + gap);
    }

    /// When [`Liveness::judge`] has something to say.
    pub fn due(&self, keys: &config::Liveness) -> Instant {
        if self.paused.is_some() {
            return self.next_ping;
        }
        let first = self.hard_deadline.map_or(self.next_ping, |at| at.min(self.next_ping));
        if self.ready { first.min(self.stuck_at(keys)) } else { first.min(self.since + keys.ready) }
    }

    /// What is due at `now`, worst first; call until it says `None` or a verdict ends the child.
    pub fn judge(&mut self, now: Instant, keys: &config::Liveness) -> Option<Verdict> {
        if self.paused.is_none()
            && let Some(fault) = self.fault(now, keys)
        {
            return Some(fault);
        }
        if now >= self.next_ping {
            self.next_ping = now + keys.ping;
            self.sent += 1;
            self.sent_at = now;
            return Some(Verdict::Ping { seq: self.sent });
        }
        None
    }

    fn fault(&self, now: Instant, keys: &config::Liveness) -> Option<Verdict> {
        if self.hard_deadline.is_some_and(|at| at <= now) {
            Some(Verdict::HardDeadline)
        } else if !self.ready && now >= self.since + keys.ready {
            Some(Verdict::NeverReady)
        } else if self.ready && now >= self.stuck_at(keys) {
            Some(Verdict::Stuck { silent: self.silent(now), no_pong: self.no_pong(now) })
        } else {
            None
        }
    }

    fn stuck_at(&self, keys: &config::Liveness) -> Instant {
        (self.last_frame + keys.progress).max(self.last_pong + keys.pong)
    }
}

#[cfg(test)]
mod reference;

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> config::Liveness {
        config::Liveness::default()
    }

    fn at(s: u64) -> Instant {
        Instant::from_millis(s * 1_000)
    }

    fn ready_child() -> Liveness {
        let mut l = Liveness::new(at(0), Duration::from_secs(3600), &keys());
        assert!(l.ready(at(0)));
        l
    }

    #[test]
    fn silent_but_answering_is_busy_for_as_long_as_it_answers() {
        let mut l = ready_child();
        for s in 1..=1500 {
            while let Some(v) = l.judge(at(s), &keys()) {
                let Verdict::Ping { seq } = v else { panic!("{v:?} at {s} s") };
                assert!(l.pong(at(s), seq).is_some());
            }
        }
        assert_eq!(l.silent(at(1500)), Duration::from_secs(1500));
    }

    #[test]
    fn neither_frames_nor_pongs_is_stuck_at_the_later_bound() {
        let mut l = ready_child();
        l.frame(at(20));
        assert_eq!(l.stuck_at(&keys()), at(140));
        l.pong(at(20), 1);
        let mut seen = Vec::new();
        for s in 21..=140 {
            while let Some(v) = l.judge(at(s), &keys()) {
                if let Verdict::Ping { .. } = v {
                    continue;
                }
                seen.push((s, v));
                break;
            }
        }
        assert_eq!(seen.len(), 1);
        assert!(matches!(seen[0], (140, Verdict::Stuck { .. })), "{seen:?}");
    }

    #[test]
    fn frames_alone_keep_it_healthy() {
        let mut l = ready_child();
        l.frame(at(119));
        assert_eq!(l.stuck_at(&keys()), at(239));
    }

    #[test]
    fn pongs_must_match_a_ping_that_was_sent() {
        let mut l = ready_child();
        assert_eq!(l.pong(at(1), 1), None, "before any ping");
        assert_eq!(l.judge(at(3), &keys()), Some(Verdict::Ping { seq: 1 }));
        assert_eq!(l.pong(at(3), 2), None);
        assert_eq!(l.pong(at(4), 1), Some(Duration::from_secs(1)));
        assert_eq!(l.pong(at(5), 1), None, "twice");
    }

    #[test]
    fn ready_has_its_own_bound() {
        let mut l = Liveness::new(at(0), Duration::from_secs(3600), &keys());
        while l.judge(at(29), &keys()).is_some() {}
        assert_eq!(l.judge(at(30), &keys()), Some(Verdict::NeverReady));
    }

    #[test]
    fn a_warm_child_has_a_deadline_only_in_a_turn_and_a_new_one_each_time() {
        let mut l = Liveness::new(at(0), Duration::from_secs(10), &keys());
        l.ready(at(1));
        l.turn_ended();
        for s in 2..=500 {
            while let Some(verdict) = l.judge(at(s), &keys()) {
                let Verdict::Ping { seq } = verdict else { panic!("{verdict:?} while idle") };
                l.pong(at(s), seq);
            }
        }
        l.turn_begun(at(500), Duration::from_secs(10), &keys());
        for s in 500..=569 {
            while let Some(verdict) = l.judge(at(s), &keys()) {
                let Verdict::Ping { seq } = verdict else { panic!("{verdict:?} before its time") };
                l.pong(at(s), seq);
            }
        }
        assert_eq!(l.judge(at(570), &keys()), Some(Verdict::HardDeadline));
    }

    #[test]
    fn shorter_times_judge_nobody_by_what_was_before() {
        let mut l = ready_child();
        while l.judge(at(9), &keys()).is_some() {}
        let keys = config::Liveness {
            ping: Duration::from_secs(1),
            pong: Duration::from_secs(2),
            progress: Duration::from_secs(2),
            ..keys()
        };
        l.retime(at(9), &keys);
        assert_eq!(l.judge(at(9), &keys), None);
        assert_eq!(l.due(&keys), at(10));
        let Some(Verdict::Ping { seq }) = l.judge(at(10), &keys) else { panic!("it is asked at once") };
        l.pong(at(10), seq);
        assert_eq!(l.stuck_at(&keys), at(12));
    }

    #[test]
    fn a_gap_is_forgiven() {
        let mut l = ready_child();
        l.forgive(Duration::from_secs(100_000));
        assert_eq!(l.judge(at(100_002), &keys()), None);
        assert_eq!(l.judge(at(100_003), &keys()), Some(Verdict::Ping { seq: 1 }));
    }

    #[test]
    fn the_hard_deadline_is_the_deadline_and_a_minute() {
        let mut l = Liveness::new(at(0), Duration::from_secs(10), &keys());
        l.ready(at(1));
        while let Some(v) = l.judge(at(69), &keys()) {
            assert!(matches!(v, Verdict::Ping { .. }), "{v:?}");
        }
        assert_eq!(l.judge(at(70), &keys()), Some(Verdict::HardDeadline));
    }
}
