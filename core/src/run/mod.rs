//! One run in the supervisor's table: its record, its process, its channel and who waits for it.
//!
//! Two lives run side by side and must not be confused. The **outcome** is what the record says: it is decided
//! once, made durable, and then told to whoever waits. The **process** is what the kernel has: it may live on
//! for seconds after the outcome is decided, and holds the permit until it is gone.

pub mod channel;
pub mod ladder;
pub mod liveness;
pub mod process;
pub mod stderr;
pub mod swap;
pub mod warm;

use crate::action::Walls;
use crate::admit::{Permit, Place};
use crate::budget::Caps;
use crate::bytes::Json;
use crate::config::Priority;
use crate::id::NodeId;
use crate::money::Price;
use crate::policy::grant::Grant;
use crate::record::{Evidence, Record, ResultObject, Status, Tokens, UsageSum};
use crate::store::{RunRow, Work};
use crate::time::{Duration, Instant};
use crate::transcript::Location;
use crate::wire::Down;
use crate::wire::message::{BudgetRequest, FailKind, LoopEvidence, Spawn, WaitingOn};
use channel::Channel;
use process::Process;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use stderr::Stderr;
use swap::{Cheaper, Swap};
use warm::{FIRST_TURN, Warm};

/// One run, in one process life.
#[derive(Debug, Serialize, Deserialize)]
pub struct Run {
    /// The durable row.
    pub record: Record,
    /// The run that asked, by node.
    pub parent: Option<NodeId>,
    /// Runs it asked for, in order.
    pub children: Vec<NodeId>,
    /// What the child will be handed; taken when it is.
    #[serde(serialize_with = "payload_without_values")]
    pub payload: Option<Box<Spawn>>,
    /// For the log.
    pub trace_id: String,
    /// This run's span.
    pub span_id: String,
    /// Kernel limits.
    pub walls: Walls,
    /// Its own time limit.
    pub deadline: Duration,
    /// Servers it was granted.
    pub servers: Vec<String>,
    /// Tools it was granted.
    pub grant: Grant,
    /// The supervisor's tools it was offered.
    pub offered: BTreeSet<String>,
    /// It may delegate onward.
    pub delegates: bool,
    /// The right to be live; given back when the process is gone.
    #[serde(skip)]
    pub permit: Option<Permit>,
    /// The right to wait for a permit, while it does.
    #[serde(skip)]
    pub place: Option<Place>,
    /// Among those who wait.
    pub priority: Priority,
    /// Reference of its model.
    pub model: String,
    /// Base addresses of that model's endpoints; none where it is a playbook.
    pub endpoints: Vec<String>,
    /// What its tokens cost.
    pub price: Option<Price>,
    /// The model that a call of it can be told to use instead.
    pub cheaper: Option<Cheaper>,
    /// Models that its child was sent and has not taken yet, oldest first.
    pub swaps: VecDeque<Swap>,
    /// Its child asks before each model call.
    pub asks: bool,
    /// What it asks for, until it is answered.
    pub asking: Option<BudgetRequest>,
    /// Highest number of such a request.
    pub last_ask: u64,
    /// The beginning of its instruction, for people.
    pub title: String,
    /// Its turns, when it has many.
    pub warm: Option<Warm>,
    /// Highest id of a message or steer to it.
    pub last_text: u64,
    /// Steers it has not taken yet.
    pub steers: BTreeSet<u64>,
    /// What it is told as soon as it has its first frame.
    pub early: Vec<Down>,
    /// An operator has told it to pause.
    pub paused: bool,
    /// What the kernel has.
    pub process: Process,
    /// What is said.
    pub channel: Channel,
    /// What it grumbles.
    pub stderr: Stderr,
    /// What the record says, and how far that has come.
    pub outcome: Outcome,
    /// What the loop counted.
    pub counted: LoopEvidence,
    /// What gave out, when the child itself said so.
    pub fault: Option<FailKind>,
    /// Own use and everything below.
    pub subtree: Tokens,
    /// Tokens that its model call in flight is estimated to have sent.
    pub in_flight: Option<u64>,
    /// A call that was still in flight when its outcome was decided, charged by estimate: what the child reports
    /// of it later counts only where it is more.
    pub charged_ahead: u64,
    /// What it waits on, since when, at which step.
    pub waiting: Option<(WaitingOn, Instant, u32)>,
    /// Its open calls of supervisor tools.
    pub requests: BTreeMap<u64, Request>,
    /// Highest request id seen: ids are never used twice.
    pub last_request: u64,
    /// Who is told when its outcome is final.
    pub waiters: Vec<Waiter>,
    /// Of its process, for people.
    pub pid: Option<u32>,
    /// When it was admitted.
    pub admitted: Instant,
    /// When its outcome was decided.
    pub decided: Option<Instant>,
    /// What earlier attempts came to; of a run that ended in an earlier life of the daemon, all there is.
    pub before: Evidence,
    /// How often a start took it up since it last got anywhere.
    pub restarts: u32,
    /// It was killed with all that it delegated.
    pub takes_below: bool,
    /// A restart takes it up.
    pub durable: bool,
    /// Its transcript is gone on with, where there is one.
    pub resume: bool,
    /// Where it writes what it says and does.
    pub transcript: Option<Location>,
    /// Caps on what it and all below it may use.
    pub caps: Caps,
    /// Messages that have changed since they were last saved.
    pub unkept: BTreeSet<u64>,
    /// It has changed while it could not be saved.
    pub changed: bool,
}

/// What the record says about the end.
#[derive(Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// Nothing yet.
    Open,
    /// Decided and being made durable.
    Saving {
        /// The wait before another try, should this one fail.
        wait: Duration,
    },
    /// Decided; saving failed and is tried again.
    Unsaved {
        /// When.
        at: Instant,
        /// The wait after that.
        wait: Duration,
    },
    /// Durable. The object every reader gets, the same bytes each time.
    Final(Json),
}

impl Outcome {
    /// Nothing changes it any more, durable or not.
    pub fn is_decided(&self) -> bool {
        match self {
            Outcome::Open => false,
            Outcome::Saving { .. } | Outcome::Unsaved { .. } | Outcome::Final(_) => true,
        }
    }
}

/// An open call of a supervisor tool.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// `subagent.run`: told when the run is up (async, detached) or has ended (sync).
    Run {
        /// The run that was made.
        child: NodeId,
        /// The caller waits for the end.
        sync: bool,
    },
    /// `subagent.await`.
    Await {
        /// Whom for.
        nodes: Vec<NodeId>,
        /// One is enough.
        any: bool,
        /// Asked with `handle` and not `handles`: the answer is one object.
        single: bool,
        /// When it gives up.
        until: Option<Instant>,
    },
    /// `subagent.await` of one turn of a warm run.
    Turn {
        /// Whose.
        node: NodeId,
        /// The message that begins it.
        message: u64,
        /// When it gives up.
        until: Option<Instant>,
    },
    /// `subagent.kill`: told when the mark is durable.
    Kill {
        /// Whom.
        node: NodeId,
    },
    /// `subagent.send`: told when the message is durable.
    Sent {
        /// To whom.
        node: NodeId,
        /// The message.
        message: u64,
    },
    /// A tool of the embedding program.
    Host {
        /// Of the `CallHostTool`.
        call: u64,
    },
}

impl Request {
    /// When it is answered at the latest.
    pub fn due(&self) -> Option<Instant> {
        match self {
            Request::Await { until, .. } | Request::Turn { until, .. } => *until,
            Request::Run { .. } | Request::Kill { .. } | Request::Sent { .. } | Request::Host { .. } => None,
        }
    }
}

/// Someone to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiter {
    /// The caller.
    pub node: NodeId,
    /// Its request.
    pub request: u64,
}

impl Run {
    /// A run without a process and without anything to give one.
    pub fn resting(record: Record, now: Instant) -> Run {
        Run {
            record,
            parent: None,
            children: Vec::new(),
            payload: None,
            trace_id: String::new(),
            span_id: String::new(),
            walls: Walls::default(),
            deadline: Duration::ZERO,
            servers: Vec::new(),
            grant: Grant::NOTHING,
            offered: BTreeSet::new(),
            delegates: false,
            permit: None,
            place: None,
            priority: Priority::Normal,
            model: String::new(),
            endpoints: Vec::new(),
            price: None,
            cheaper: None,
            swaps: VecDeque::new(),
            asks: false,
            asking: None,
            last_ask: 0,
            title: String::new(),
            warm: None,
            last_text: FIRST_TURN,
            steers: BTreeSet::new(),
            early: Vec::new(),
            paused: false,
            process: Process::Gone,
            channel: Channel::new(),
            stderr: Stderr::default(),
            outcome: Outcome::Open,
            counted: LoopEvidence::default(),
            fault: None,
            subtree: Tokens::default(),
            in_flight: None,
            charged_ahead: 0,
            waiting: None,
            requests: BTreeMap::new(),
            last_request: 0,
            waiters: Vec::new(),
            pid: None,
            admitted: now,
            decided: None,
            before: Evidence::default(),
            restarts: 0,
            takes_below: false,
            durable: true,
            resume: true,
            transcript: None,
            caps: Caps::default(),
            unkept: BTreeSet::new(),
            changed: false,
        }
    }

    /// The one result object (S6.1), as things stand.
    pub fn object(&self) -> ResultObject {
        ResultObject {
            handle: self.record.handle,
            run_id: self.record.run_id,
            status: self.record.status,
            result: self.record.result.clone(),
            partial: self.record.partial,
            error: self.record.error.clone(),
            usage: UsageSum { own: self.record.usage, subtree: self.subtree },
            evidence: self.evidence(),
            attempt: self.record.attempt,
        }
    }

    /// The one result object of a run that goes on, with the ending of a turn of it. The turn's result is in the
    /// record already.
    pub fn object_with(&self, ending: &Ending) -> ResultObject {
        ResultObject { status: ending.status, error: ending.error.clone(), ..self.object() }
    }

    /// The result object of a warm run's turn: the run's so far, with the turn's end, number and duration.
    pub fn turn_object(&self, message: u64, ending: &Ending, took: Duration) -> Value {
        let mut value = serde_json::to_value(self.object_with(ending)).unwrap_or(Value::Null);
        value["message_id"] = message.into();
        value["evidence"]["duration_ms"] = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).into();
        value
    }

    /// Takes what the child's loop counted so far. Once the outcome is decided its evidence is what it was then: a
    /// result that was told already reads the same each time (S6.4).
    pub fn count(&mut self, counted: LoopEvidence) {
        if !self.outcome.is_decided() {
            self.counted = counted;
        }
    }

    /// What an unfinished run answers (S6.1).
    pub fn unfinished(&self) -> Value {
        serde_json::json!({
            "handle": self.record.handle,
            "run_id": self.record.run_id,
            "status": self.record.status,
        })
    }

    fn evidence(&self) -> Evidence {
        // Measured: the record's own times are the wall clock's, which anybody may set meanwhile.
        let took = self.decided.map_or(Duration::ZERO, |at| at.since(self.admitted));
        let children = u32::try_from(self.children.len()).unwrap_or(u32::MAX);
        let (before, took) = (&self.before, u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        Evidence {
            model_calls: before.model_calls.saturating_add(self.counted.model_calls),
            tool_calls: before.tool_calls.saturating_add(self.counted.tool_calls),
            tool_errors: before.tool_errors.saturating_add(self.counted.tool_errors),
            // Those of earlier attempts are in the table again, but for those that are forgotten.
            children: before.children.max(children),
            duration_ms: before.duration_ms.saturating_add(took),
        }
    }

    /// What is kept of it, as things stand.
    pub fn row(&self) -> RunRow {
        RunRow {
            record: self.record.clone(),
            subtree: self.subtree,
            evidence: self.evidence(),
            restarts: self.restarts,
            takes_below: self.takes_below,
            turns: self.warm.as_ref().map(Warm::turns),
            last_text: self.last_text,
            title: self.title.clone(),
        }
    }

    /// What it takes to begin it again, as long as it was not handed its payload.
    pub fn work(&self) -> Option<Work> {
        let payload = self.payload.as_ref()?;
        Some(Work {
            run_id: self.record.run_id,
            instruction: payload.instruction.clone(),
            context: payload.context.clone(),
            output_contract: payload.output_contract.clone(),
            output_schema: payload.output_schema.clone(),
            servers: self.servers.clone(),
            tools: payload.tools.clone(),
            delegates: self.delegates,
            model: self.model.clone(),
            own_model: false,
            limits: payload.limits.clone(),
            walls: self.walls,
            priority: self.priority,
            caps: self.caps,
            trace: payload.trace.clone(),
            durable: self.durable,
            resume: self.resume,
            transcript: self.transcript.clone(),
        })
    }

    /// When it wants a tick: its process, or a record that must be saved again.
    pub fn due(&self, keys: &crate::config::Liveness) -> Option<Instant> {
        let outcome = match &self.outcome {
            Outcome::Unsaved { at, .. } => Some(*at),
            Outcome::Open | Outcome::Saving { .. } | Outcome::Final(_) => None,
        };
        let requests = self.requests.values().filter_map(Request::due);
        outcome.into_iter().chain(self.process.due(keys)).chain(requests).min()
    }
}

/// Nice value of a priority (S5.6).
pub const fn nice(priority: Priority) -> i32 {
    match priority {
        Priority::Low => 10,
        Priority::Normal => 0,
        Priority::High => -5,
    }
}

/// A terminal state as it is decided, before it is in the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// What it became.
    pub status: Status,
    /// Distilled value.
    pub result: Value,
    /// `result` is not a full answer.
    pub partial: bool,
    /// Why it is not `completed`.
    pub error: Option<String>,
}

impl Ending {
    /// An ending without a value.
    pub fn without_result(status: Status, error: impl Into<String>) -> Ending {
        Ending { status, result: Value::Null, partial: false, error: Some(error.into()) }
    }
}

/// Writes a payload that was not handed over yet, without values.
fn payload_without_values<S: Serializer>(payload: &Option<Box<Spawn>>, to: S) -> Result<S::Ok, S::Error> {
    let mut payload = payload.clone();
    if let Some(payload) = &mut payload {
        payload.leave_out_values();
    }
    payload.serialize(to)
}
