//! A model behind a provider's endpoints.
//!
//! Owns the call in hand: its attempts one after another, the waits between them, and the watch over a stream that
//! falls silent (S15.4). The policy is the core's; here it is obeyed. Refuses to outlast an order to abandon: that
//! shuts the connection, or ends the wait, at once (S7.9).

use super::attempt::{Ask, Attempt, wall_ms};
use super::came::Came;
use super::{Inbox, Order};
use crate::child::clock::Clock;
use crate::child::inbox;
use crate::http::dial::Trust;
use crate::http::mask::Mask;
use agentd_core::address::host;
use agentd_core::model::api::Api;
use agentd_core::model::retry::{Next, Retry};
use agentd_core::model::{ModelError, ModelErrorKind, ModelRequest, Reply};
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::message::{Event, Health, Mode, ModelHealth, Remote, Throttle};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};

/// What joins the thread to the others.
pub(super) struct Line {
    pub(super) orders: Receiver<Order>,
    /// Where attempts report: the same queue as the orders, so that one wait serves both.
    pub(super) back: Sender<Order>,
    pub(super) inbox: Sender<Inbox>,
    pub(super) clock: Clock,
    /// For the main thread: what has come of the attempt in hand.
    pub(super) came: Came,
}

/// The thread's state.
pub(super) struct Connection {
    api: Api,
    remote: Remote,
    retry: Retry,
    trust: Arc<Trust>,
    line: Line,
    /// Attempts begun.
    attempts: u64,
}

/// How a wait ended early.
struct Abandoned;

impl Connection {
    /// A connection that nothing was asked of yet. A warm run rides it out when every endpoint is down (S7.10).
    pub(super) fn new(api: Api, remote: Remote, mode: Mode, line: Line) -> Connection {
        let patient = match mode {
            Mode::Warm => true,
            Mode::Sync | Mode::Async | Mode::Detached => false,
        };
        // The hasher is seeded by the operating system: enough to keep children apart.
        let seed = RandomState::new().hash_one(std::process::id());
        let retry = Retry::new(remote.endpoints.len(), patient, seed);
        Connection { api, remote, retry, trust: Arc::default(), line, attempts: 0 }
    }

    /// Serves orders until the process ends.
    pub(super) fn run(&mut self) {
        while let Ok(order) = self.line.orders.recv() {
            // What is to be abandoned here has been answered already, and attempts that end have been given up.
            let (call, request) = match order {
                Order::Call { call, request } => (call, request),
                Order::Throttle(throttle) => {
                    self.hold(&throttle);
                    continue;
                }
                Order::End => return,
                Order::Abandon { .. } | Order::GoOn { .. } | Order::Ended { .. } => continue,
            };
            if let Ok(reply) = self.call(call, &request) {
                // Without a receiver the process is ending.
                let _ended = self.line.inbox.send(Inbox::Model { call, reply });
            }
        }
    }

    fn call(&mut self, call: u64, request: &ModelRequest) -> Result<Result<Reply, ModelError>, Abandoned> {
        let mut endpoint = self.retry.begin(self.line.clock.now());
        let mut said = BTreeMap::new();
        self.wait(call, endpoint, Instant::ZERO, true)?;
        loop {
            let error = match self.attempt(call, endpoint, request)? {
                Ok(reply) => {
                    self.retry.answered();
                    self.report(endpoint, Health::Answered, None);
                    return Ok(Ok(reply));
                }
                Err(error) => error,
            };
            match error.kind {
                ModelErrorKind::Overloaded => self.report(endpoint, Health::Limited, error.retry_after),
                ModelErrorKind::Unreachable | ModelErrorKind::Malformed => {
                    self.report(endpoint, Health::Failed, None);
                }
                // What it does not accept of this run says nothing to the others.
                ModelErrorKind::Rejected | ModelErrorKind::Credential | ModelErrorKind::TooLong => {}
            }
            if self.api.learn(&error) {
                self.note(endpoint, endpoint, &error, Duration::ZERO);
                continue;
            }
            let now = self.line.clock.now();
            let next = self.retry.after(&error, now);
            said.insert(endpoint, error.message.clone());
            match next {
                Next::GiveUp => return Ok(Err(self.failed(&said, error))),
                Next::Again { endpoint: next, at } => {
                    self.note(endpoint, next, &error, at.since(now));
                    if let Some(came) = error.came {
                        self.tell(Inbox::ModelCut { call, attempt: self.attempts, came });
                    }
                    self.wait(call, next, at, error.came.is_none())?;
                    endpoint = next;
                }
            }
        }
    }

    /// One attempt. What comes of it is the main thread's to know meanwhile.
    fn attempt(
        &mut self,
        call: u64,
        endpoint: usize,
        request: &ModelRequest,
    ) -> Result<Result<Reply, ModelError>, Abandoned> {
        self.attempts += 1;
        self.line.came.begin(call, self.attempts);
        self.watched(call, endpoint, request)
    }

    /// The attempt, watched: who only keeps the connection alive is silent.
    fn watched(
        &mut self,
        call: u64,
        endpoint: usize,
        request: &ModelRequest,
    ) -> Result<Result<Reply, ModelError>, Abandoned> {
        let target = &self.remote.endpoints[endpoint];
        let (attempt, body) = Attempt::new(Ask {
            number: self.attempts,
            base: target.url.clone(),
            request: self.api.request(&self.remote, target, request),
            reader: self.api.reader(),
            mask: Mask::of_endpoint(target.token.as_deref(), &self.remote.headers),
            trust: Arc::clone(&self.trust),
            clock: self.line.clock,
            came: self.line.came.clone(),
            back: self.line.back.clone(),
        });
        if let Err(why) = inbox::thread("model attempt".into(), self.line.inbox.clone(), body) {
            return Ok(Err(ModelError::new(ModelErrorKind::Unreachable, why)));
        }
        let silence = Duration::from_millis(self.remote.timeout_ms);
        loop {
            let until = attempt.last_sign() + silence;
            match self.next(call, until, &attempt)? {
                Some(outcome) => return Ok(outcome),
                None if attempt.last_sign() + silence <= self.line.clock.now() => {
                    attempt.shut();
                    let came = self.line.came.so_far().map(|so_far| so_far.came);
                    return Ok(Err(ModelError { came, ..silent(silence, attempt.events()) }));
                }
                // Something came meanwhile.
                None => {}
            }
        }
    }

    /// What comes of the attempt; `None` when `until` is reached first.
    fn next(
        &mut self,
        call: u64,
        until: Instant,
        attempt: &Attempt,
    ) -> Result<Option<Result<Reply, ModelError>>, Abandoned> {
        loop {
            match self.line.orders.recv_timeout(self.line.clock.until(until)) {
                Ok(Order::Ended { attempt: number, outcome }) if number == attempt.number => {
                    return Ok(Some(outcome));
                }
                Ok(Order::Abandon { call: abandoned }) if abandoned == call => {
                    attempt.shut();
                    return Err(Abandoned);
                }
                // The attempt goes on; the next one will wait.
                Ok(Order::Throttle(throttle)) => self.hold(&throttle),
                // Of earlier calls and attempts; a second call at a time is never asked for.
                Ok(Order::Ended { .. } | Order::Abandon { .. } | Order::GoOn { .. } | Order::Call { .. }) => {
                }
                // A call is abandoned before nothing is asked of its model any more.
                Ok(Order::End) => {}
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => return Err(Abandoned),
            }
        }
    }

    /// Waits until `at`, and until the endpoint may be asked; tells the loop for what. Without `leave` it also waits
    /// for the loop's.
    fn wait(&mut self, call: u64, endpoint: usize, at: Instant, mut leave: bool) -> Result<(), Abandoned> {
        let mut told = None;
        loop {
            let until = at.max(self.retry.held_until(endpoint));
            let mut left = self.line.clock.until(until);
            if left.is_zero() && leave {
                break;
            }
            if left.is_zero() {
                left = Duration::MAX;
            } else if told != Some(until) {
                let until_ms = wall_ms().saturating_add(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
                self.tell(Inbox::ModelWaits { call, until_ms: Some(until_ms) });
                told = Some(until);
            }
            match self.line.orders.recv_timeout(left) {
                Ok(Order::Abandon { call: abandoned }) if abandoned == call => return Err(Abandoned),
                Ok(Order::GoOn { call: of }) => leave |= of == call,
                Ok(Order::Throttle(throttle)) => self.hold(&throttle),
                Ok(Order::Ended { .. } | Order::Abandon { .. } | Order::Call { .. } | Order::End) => {}
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Abandoned),
            }
        }
        if told.is_some() {
            self.tell(Inbox::ModelWaits { call, until_ms: None });
        }
        Ok(())
    }

    /// What the supervisor says of an endpoint.
    fn hold(&mut self, throttle: &Throttle) {
        let until = self.line.clock.now() + Duration::from_millis(throttle.for_ms);
        let endpoints = self.remote.endpoints.iter().enumerate();
        for (index, _) in endpoints.filter(|(_, endpoint)| endpoint.url == throttle.endpoint) {
            self.retry.hold(index, until);
        }
    }

    /// Tells the supervisor how an endpoint is, for the other runs.
    fn report(&self, endpoint: usize, health: Health, retry_after: Option<Duration>) {
        let endpoint = self.remote.endpoints[endpoint].url.clone();
        let retry_after_ms = retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        self.tell(Inbox::ModelHealth(ModelHealth { endpoint, health, retry_after_ms }));
    }

    /// The error of a call that is given up: what each endpoint said last, and how often it was tried.
    fn failed(&self, said: &BTreeMap<usize, String>, last: ModelError) -> ModelError {
        let each: Vec<String> =
            said.iter().map(|(endpoint, message)| format!("{}: {message}", self.host(*endpoint))).collect();
        let tried = match self.retry.attempts() {
            0 | 1 => String::new(),
            attempts => format!(" ({attempts} attempts)"),
        };
        ModelError { message: format!("{}{tried}", each.join("; ")), ..last }
    }

    /// Tells people that the call is tried again.
    fn note(&self, endpoint: usize, next: usize, error: &ModelError, wait: Duration) {
        let fields = [
            ("tries", self.retry.attempts().to_string()),
            ("endpoint", self.host(endpoint)),
            ("next", self.host(next)),
            ("kind", error.kind.name().to_owned()),
            ("error", error.message.clone()),
            ("wait_ms", wait.as_millis().to_string()),
        ];
        self.tell(Inbox::ModelEvent(Event {
            level: "warn".to_owned(),
            name: "model.retry".to_owned(),
            fields: fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        }));
    }

    fn tell(&self, message: Inbox) {
        // Without a receiver the process is ending.
        let _ended = self.line.inbox.send(message);
    }

    fn host(&self, endpoint: usize) -> String {
        agentd_core::preview::preview(host(&self.remote.endpoints[endpoint].url), 200)
    }
}

fn silent(silence: Duration, events: u64) -> ModelError {
    let seconds = silence.as_secs_f64();
    let message = match events {
        0 => format!("no answer within {seconds} s (the model's timeout)"),
        1 => {
            format!("the stream fell silent: nothing for {seconds} s after 1 event (the model's timeout)")
        }
        _ => format!(
            "the stream fell silent: nothing for {seconds} s after {events} events (the model's timeout)"
        ),
    };
    ModelError::new(ModelErrorKind::Unreachable, message)
}
