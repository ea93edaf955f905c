//! Admission: the one function every spawn goes through (S4.1), its gates in order (S4.2), and the permits
//! that make "over the limit" impossible to write down (S4.7).
//!
//! Called by the supervisor for each `subagent.run`. A refusal makes no process, record or handle.

mod args;
mod rate;
mod total;

pub use args::RunArgs;

use crate::config::SubagentLimits;
use crate::error::Refusal;
use crate::id::Handle;
use crate::time::{Duration, Instant};
use rate::Bucket;
use serde::{Deserialize, Serialize};
use total::Total;

/// The gates in the order they are tried. Those of later issues have their place here and no code: a spawn
/// that would need one is refused by name in `well_formed`, never waved through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gate {
    /// Spawning is possible at all (S6.8): no drain has begun.
    Draining,
    // Template or surface resolves: its place is here.
    /// There is something to do.
    Instruction,
    /// A mode this caller may ask for.
    Mode,
    /// Live subagents in the daemon.
    Breadth,
    /// Spawns of this one-shot run, or of a daemon's last day.
    Total,
    /// Depth minted from the requester's record (S4.4).
    Depth,
    /// The daemon's budget is not used up.
    Budget,
    // Trifecta over the narrowed tools: its place is here.
    /// Limits, priority and names are well-formed, nothing unknown was said.
    WellFormed,
    // Pressure: its place is here.
    /// Token bucket; last, so that a refusal never costs a token.
    Rate,
}

impl Gate {
    /// Every gate that is built, in order.
    pub const ORDER: [Gate; 9] = [
        Gate::Draining,
        Gate::Instruction,
        Gate::Mode,
        Gate::Breadth,
        Gate::Total,
        Gate::Depth,
        Gate::Budget,
        Gate::WellFormed,
        Gate::Rate,
    ];

    /// Its name in refusals and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Gate::Draining => "draining",
            Gate::Instruction => "instruction",
            Gate::Mode => "mode",
            Gate::Breadth => "breadth",
            Gate::Total => "total",
            Gate::Depth => "depth",
            Gate::Budget => "budget",
            Gate::WellFormed => "well_formed",
            Gate::Rate => "rate",
        }
    }
}

/// The right to be one live run. It cannot be cloned or made elsewhere, and a run cannot be made without one.
#[derive(Debug, PartialEq, Eq)]
pub struct Permit(());

/// The right to wait for a permit (S4.8). Like a permit it cannot be cloned or made elsewhere, and is given up once.
#[derive(Debug, PartialEq, Eq)]
pub struct Place(());

/// Permits or places that a checkpoint speaks of and the gates did not count out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Uncounted {
    /// Their numbers differ.
    #[error("{held} permits and {kept} places are held where the gates count {out} and {waiting}")]
    Number {
        /// Permits that runs hold.
        held: usize,
        /// Places that runs hold.
        kept: usize,
        /// Permits that are out.
        out: u32,
        /// Places that are out.
        waiting: u32,
    },
    /// A holder that is no run, or holds one already.
    #[error("a permit or a place is held by nobody, or one run holds two")]
    Nobody,
}

/// What the gates say to a spawn that none of them refuses.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may begin.
    Admit(Permit),
    /// It waits for breadth or rate.
    Hold(Place),
}

/// What the gates look at besides their own counters.
pub struct Applicant<'a> {
    /// The call, parsed; what is wrong with it waits for its gate.
    pub args: &'a RunArgs,
    /// Depth of the run that asks, from its record.
    pub requester_depth: u32,
    /// A drain has begun.
    pub draining: bool,
    /// It may wait for breadth and rate: a conversation asks, not a run that was delegated itself.
    pub may_wait: bool,
    /// Why no model call could be made, if the daemon's budget is used up.
    pub no_budget: Option<String>,
    /// What is wrong with names and limits (servers, tools, sizes), found by the caller of `admit`.
    pub problems: &'a [String],
    /// Handles of the live runs, for the breadth refusal.
    pub live: &'a mut dyn Iterator<Item = Handle>,
}

/// Counters behind the gates.
#[derive(Debug, Serialize, Deserialize)]
pub struct Admission {
    limits: SubagentLimits,
    out: u32,
    /// Places that are out.
    waiting: u32,
    total: Total,
    bucket: Bucket,
}

impl Admission {
    /// Empty counters, a full bucket. `window` is how long a spawn counts towards the total; `None` is for ever.
    pub fn new(limits: SubagentLimits, window: Option<Duration>, now: Instant) -> Admission {
        let (total, bucket) = (Total::new(limits.total, window), Bucket::new(limits.rate, now));
        Admission { limits, out: 0, waiting: 0, total, bucket }
    }

    /// Other limits from `now` on. What was used stays used, and who is admitted stays so: a limit below what is out
    /// ends nobody, and lets nobody in until enough have ended.
    pub fn set_limits(&mut self, limits: SubagentLimits, now: Instant) {
        self.limits = limits;
        self.total.set_limit(limits.total);
        self.bucket.set_rate(limits.rate, now);
    }

    /// Permits that are out: admitted runs whose process is not yet known to be gone.
    pub fn permits_out(&self) -> u32 {
        self.out
    }

    /// Whether a run at `depth` may delegate at all: one more level fits.
    pub fn depth_allows(&self, depth: u32) -> bool {
        depth < self.limits.depth
    }

    /// Spawns that are left of the total, for people.
    pub fn spawns_left(&self, now: Instant) -> u32 {
        self.total.left(now)
    }

    /// Tries the gates in order; the first that says no decides. Where that is breadth or rate and the queue has
    /// room, the spawn waits instead, and so does one that would overtake those who wait already.
    pub fn admit(&mut self, applicant: Applicant<'_>, now: Instant) -> Result<Verdict, Refusal> {
        let mut applicant = applicant;
        let mut waits = false;
        for gate in Gate::ORDER {
            match gate {
                Gate::Breadth if applicant.may_wait && self.waiting > 0 => {
                    self.queue_has_room()?;
                    waits = true;
                }
                // The token is taken when it begins.
                Gate::Rate if waits => {}
                Gate::Breadth | Gate::Rate => {
                    let no = self.pass(gate, &mut applicant, now).err();
                    match no {
                        Some(_) if applicant.may_wait && self.waiting < self.limits.queue => waits = true,
                        Some(refusal) => return Err(refusal),
                        None => {}
                    }
                }
                Gate::Draining
                | Gate::Instruction
                | Gate::Mode
                | Gate::Total
                | Gate::Depth
                | Gate::Budget
                | Gate::WellFormed => self.pass(gate, &mut applicant, now)?,
            }
        }
        self.total.count(now);
        if waits {
            self.waiting += 1;
            Ok(Verdict::Hold(Place(())))
        } else {
            self.out += 1;
            Ok(Verdict::Admit(Permit(())))
        }
    }

    /// A permit for a place, if breadth and rate have one now.
    ///
    /// # Errors
    /// They have none: the place is kept.
    pub fn promote(&mut self, place: Place, now: Instant) -> Result<Permit, Place> {
        if self.out >= self.limits.breadth || self.bucket.take(now).is_err() {
            return Err(place);
        }
        self.leave(place);
        self.out += 1;
        Ok(Permit(()))
    }

    /// When the rate has a token for the next one who waits; `None` while breadth has no room anyway.
    pub fn promotes_at(&self) -> Option<Instant> {
        (self.waiting > 0 && self.out < self.limits.breadth).then(|| self.bucket.free_at())
    }

    /// Takes a place back from one who waits no longer.
    pub fn leave(&mut self, place: Place) {
        let Place(()) = place;
        debug_assert!(self.waiting > 0, "a place came back that never went out");
        self.waiting = self.waiting.saturating_sub(1);
    }

    /// A permit for a run of an earlier life of the daemon, which passed the gates then: it counts in breadth, and not in
    /// total or rate (S10.3). There may be more of them than a breadth that was lowered meanwhile allows.
    pub(crate) fn permit_again(&mut self) -> Permit {
        self.out += 1;
        Permit(())
    }

    /// A place for one that waited then.
    pub(crate) fn place_again(&mut self) -> Place {
        self.waiting += 1;
        Place(())
    }

    /// Makes what is counted out anew, for the runs of a checkpoint that were written without theirs.
    ///
    /// # Errors
    /// They hold more or less than is out.
    pub(crate) fn give_again(
        &self,
        held: usize,
        kept: usize,
    ) -> Result<(Vec<Permit>, Vec<Place>), Uncounted> {
        let (out, waiting) = (self.out, self.waiting);
        if u32::try_from(held) != Ok(out) || u32::try_from(kept) != Ok(waiting) {
            return Err(Uncounted::Number { held, kept, out, waiting });
        }
        let permits = (0..held).map(|_| Permit(())).collect();
        Ok((permits, (0..kept).map(|_| Place(())).collect()))
    }

    fn queue_has_room(&self) -> Result<(), Refusal> {
        let (limit, waiting) = (self.limits.queue, self.waiting);
        if waiting < limit {
            return Ok(());
        }
        Err(refuse(
            Gate::Breadth,
            format!(
                "queue: {waiting} of {limit} spawns wait already; await one or raise limits.subagents.queue"
            ),
            Some((limit.to_string(), waiting.to_string())),
            "await one of them, then call again".into(),
        ))
    }

    /// Takes a permit back; its run's process is gone or was never made.
    pub fn give_back(&mut self, permit: Permit) {
        let Permit(()) = permit;
        debug_assert!(self.out > 0, "a permit came back that never went out");
        self.out = self.out.saturating_sub(1);
    }

    fn pass(&mut self, gate: Gate, a: &mut Applicant<'_>, now: Instant) -> Result<(), Refusal> {
        match gate {
            Gate::Draining if a.draining => Err(refuse(
                gate,
                "draining: this daemon is stopping and starts no new runs".into(),
                None,
                "answer with what you have".into(),
            )),
            Gate::Instruction => match &a.args.instruction {
                Ok(_) => Ok(()),
                Err(problem) => Err(refuse(
                    gate,
                    format!("instruction: {problem}"),
                    None,
                    "say in `instruction` what the subagent is to do and what to return".into(),
                )),
            },
            Gate::Mode => match &a.args.mode {
                Ok(_) => Ok(()),
                Err(problem) => Err(refuse(
                    gate,
                    format!("mode: {problem}"),
                    None,
                    "use sync, async, detached or warm".into(),
                )),
            },
            Gate::Breadth if self.out >= self.limits.breadth => Err(self.breadth(a.live)),
            Gate::Total if self.total.left(now) == 0 => Err(refuse(
                gate,
                self.total.problem(now),
                Some((self.limits.total.to_string(), self.total.used(now).to_string())),
                "do the rest yourself, or raise limits.subagents.total".into(),
            )),
            Gate::Depth if !self.depth_allows(a.requester_depth) => Err(refuse(
                gate,
                format!("depth: this run is at depth {} of {}", a.requester_depth, self.limits.depth),
                Some((self.limits.depth.to_string(), (u64::from(a.requester_depth) + 1).to_string())),
                "do the work in this run, or raise limits.subagents.depth".into(),
            )),
            Gate::Budget => a.no_budget.take().map_or(Ok(()), |why| {
                Err(refuse(gate, format!("budget: {why}"), None, "answer with what you have".into()))
            }),
            Gate::WellFormed if !(a.args.problems.is_empty() && a.problems.is_empty()) => {
                let all: Vec<&str> = a.args.problems.iter().chain(a.problems).map(String::as_str).collect();
                Err(refuse(gate, all.join("; "), None, "correct these and call again".into()))
            }
            Gate::Rate => self.bucket.take(now).map_err(|wait| {
                let rate = self.limits.rate;
                refuse(
                    gate,
                    format!(
                        "rate: {} spawns per {} ms are used up; the next is free in {} ms",
                        rate.burst,
                        rate.per.as_millis(),
                        wait.as_millis()
                    ),
                    Some((format!("{}/{}ms", rate.burst, rate.per.as_millis()), "0 left".into())),
                    "wait that long, start fewer at once, or raise limits.subagents.rate".into(),
                )
            }),
            Gate::Draining | Gate::Breadth | Gate::Total | Gate::Depth | Gate::WellFormed => Ok(()),
        }
    }

    fn breadth(&self, live: &mut dyn Iterator<Item = Handle>) -> Refusal {
        let limit = self.limits.breadth;
        let names: Vec<String> = live.map(|h| h.to_string()).collect();
        let names = match names.as_slice() {
            [first, .., last] if names.len() > 4 => format!("{first} … {last}"),
            few => few.join(", "),
        };
        let what = if names.is_empty() { String::new() } else { format!(" ({names})") };
        refuse(
            Gate::Breadth,
            format!(
                "breadth: {} of {limit} running{what}; await one or raise limits.subagents.breadth",
                self.out
            ),
            Some((limit.to_string(), self.out.to_string())),
            "await one of them, then call again".into(),
        )
    }
}

fn refuse(gate: Gate, message: String, against: Option<(String, String)>, hint: String) -> Refusal {
    let (limit, observed) = against.unzip();
    Refusal { gate: gate.name().into(), message, limit, observed, hint }
}

#[cfg(test)]
mod tests;
