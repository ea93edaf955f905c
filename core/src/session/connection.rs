//! One connection: what came, what is answered, and by when something has to happen.

use crate::action::{Action, Actions};
use crate::bytes::Bytes;
use crate::event::Door;
use crate::http::{self, Fault, Framing, Heard, Phase, Request, Response, Server};
use crate::id::ConnId;
use crate::limits;
use crate::time::Instant;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// One connection.
#[derive(Debug, Serialize, Deserialize)]
pub struct Connection {
    id: ConnId,
    door: Door,
    server: Server,
    /// Came, and is not begun.
    waiting: VecDeque<Waiting>,
    /// How the answer that is due is framed: its request is with the supervisor.
    due: Option<Framing>,
    /// The answer is a stream that has begun; when it was last told anything.
    streaming: Option<Instant>,
    /// Bytes that the driver has and the client has not.
    queued: u64,
    /// When the client last took any of them, or the first was queued.
    taken: Instant,
    /// Since when it waits for what it waits for.
    since: Instant,
    /// Nothing more is read and nothing more is said; gone at the latest then.
    shut: Option<Instant>,
    /// Its client has said all it will say.
    ended: bool,
}

#[derive(Debug, Serialize, Deserialize)]
enum Waiting {
    Request(Box<Request>),
    Continue,
    Fault { status: u16, reason: String },
}

/// What is to be answered next.
#[derive(Debug, PartialEq)]
pub struct Turn(pub Box<Request>);

impl Connection {
    /// A new one.
    pub fn new(id: ConnId, door: Door, now: Instant) -> Connection {
        Connection {
            id,
            door,
            server: Server::default(),
            waiting: VecDeque::new(),
            due: None,
            streaming: None,
            queued: 0,
            taken: now,
            since: now,
            shut: None,
            ended: false,
        }
    }

    /// Where it came in.
    pub fn door(&self) -> Door {
        self.door
    }

    /// Bytes queued towards its client.
    pub fn queued(&self) -> u64 {
        self.queued
    }

    /// A request is with the supervisor.
    pub fn is_asking(&self) -> bool {
        self.due.is_some()
    }

    /// Bytes came.
    pub fn heard(&mut self, bytes: &[u8], now: Instant) {
        // Behind a fault nothing is of use any more.
        if self.shut.is_some() || matches!(self.waiting.back(), Some(Waiting::Fault { .. })) {
            return;
        }
        let before = self.server.phase();
        let mut heard = Vec::new();
        self.server.take(bytes, &mut heard);
        for one in heard {
            let one = match one {
                Heard::Request(request) => Waiting::Request(request),
                Heard::Continue => Waiting::Continue,
                Heard::Fault(Fault { status, reason }) => Waiting::Fault { status, reason },
            };
            if matches!(one, Waiting::Request(_)) && self.is_too_far_ahead() {
                let reason =
                    "too much is asked on this connection before it was answered; read some".to_owned();
                self.waiting.push_back(Waiting::Fault { status: 429, reason });
                break;
            }
            self.waiting.push_back(one);
        }
        if before != self.server.phase() || self.server.phase() == Phase::Idle {
            self.since = now;
        }
    }

    /// What waits is as much as may wait.
    fn is_too_far_ahead(&self) -> bool {
        let requests = self.waiting.iter().filter_map(|one| match one {
            Waiting::Request(request) => Some(request.body.len()),
            Waiting::Continue | Waiting::Fault { .. } => None,
        });
        let (count, bytes) = requests.fold((0, 0), |(count, bytes), body| (count + 1, bytes + body));
        count >= limits::REQUESTS_AHEAD || bytes >= limits::HTTP_BODY_BYTES
    }

    /// The next request that nothing stands before; a fault is answered here.
    pub fn next(&mut self, now: Instant, out: &mut Actions) -> Option<Turn> {
        while self.due.is_none() && self.shut.is_none() {
            match self.waiting.pop_front()? {
                Waiting::Request(request) => {
                    self.due = Some(Framing {
                        keep_alive: request.keep_alive,
                        chunks: request.chunks,
                        head_only: request.method == "HEAD",
                    });
                    return Some(Turn(request));
                }
                Waiting::Continue => {
                    let go_on = b"HTTP/1.1 100 Continue\r\n\r\n".as_slice();
                    self.send(Bytes::from(go_on), now, out);
                }
                Waiting::Fault { status, reason } => {
                    self.refuse(&Response::text(status, &reason), now, out);
                }
            }
        }
        None
    }

    /// Answers what is due. Says whether the answer could be queued.
    pub fn answer(&mut self, response: &Response, now: Instant, out: &mut Actions) {
        let Some(framing) = self.due.take() else { return };
        self.since = now;
        self.send(response.bytes(framing), now, out);
        if !framing.keep_alive {
            self.shut(now, out);
        }
    }

    /// Answers with a stream, whose events follow.
    pub fn begin_stream(&mut self, now: Instant, out: &mut Actions) {
        let Some(framing) = self.due else { return };
        self.streaming = Some(now);
        self.send(http::stream_head(framing), now, out);
    }

    /// One event of the stream. A client that is too far behind loses it.
    pub fn event(&mut self, data: &[u8], now: Instant, out: &mut Actions) {
        let Some(framing) = self.due.filter(|_| self.streaming.is_some()) else { return };
        if self.queued > limits::STREAM_BEHIND_BYTES {
            self.drop_now(out);
            return;
        }
        self.streaming = Some(now);
        let mut event = b"data: ".to_vec();
        event.extend_from_slice(data);
        event.extend_from_slice(b"\n\n");
        self.send(http::chunk(framing, &event), now, out);
    }

    /// The stream has said all.
    pub fn end_stream(&mut self, now: Instant, out: &mut Actions) {
        if self.streaming.take().is_none() {
            return;
        }
        let Some(framing) = self.due.take() else { return };
        self.since = now;
        let last = http::last_chunk(framing);
        if !last.is_empty() {
            self.send(last, now, out);
        }
        if !framing.keep_alive || !framing.chunks {
            self.shut(now, out);
        }
    }

    /// Says something that nobody asked for, or that ends what was asked, and shuts.
    pub fn refuse(&mut self, response: &Response, now: Instant, out: &mut Actions) {
        self.due = None;
        self.streaming = None;
        let framing = Framing { keep_alive: false, chunks: true, head_only: false };
        self.send(response.bytes(framing), now, out);
        self.shut(now, out);
    }

    /// The client took bytes.
    pub fn wrote(&mut self, bytes: u64, now: Instant) {
        self.queued = self.queued.saturating_sub(bytes);
        self.taken = now;
    }

    /// The client will say no more, so it waits for nothing either: a client that is gone cannot be told from one that
    /// has only closed its sending side. What is queued still leaves.
    pub fn ended(&mut self, now: Instant, out: &mut Actions) {
        self.ended = true;
        self.waiting.clear();
        self.due = None;
        self.streaming = None;
        self.shut(now, out);
    }

    /// Closes once what is queued has left.
    fn shut(&mut self, now: Instant, out: &mut Actions) {
        if self.shut.is_none() {
            self.shut = Some(now + limits::CONN_LINGER);
            self.waiting.clear();
            out.push(Action::ConnShut { conn: self.id, at_once: false });
        }
    }

    /// Closes whatever is queued.
    pub fn drop_now(&mut self, out: &mut Actions) {
        self.due = None;
        self.streaming = None;
        self.waiting.clear();
        // The close is answered by `ConnClosed`; until then it is not due again.
        self.shut = Some(Instant::from_nanos(u64::MAX));
        out.push(Action::ConnShut { conn: self.id, at_once: true });
    }

    /// When one of its clocks wants a tick. `lasting`: it may be idle without limit.
    pub fn wants(&self, lasting: bool) -> Option<Instant> {
        if let Some(at) = self.shut {
            return (at.nanos() < u64::MAX).then_some(at.max(self.stalled()));
        }
        let stall = (self.queued > 0).then_some(self.taken + limits::CONN_STALL);
        let stream = self.streaming.map(|told| told + limits::STREAM_COMMENT);
        let read = match self.server.phase() {
            _ if self.due.is_some() => None,
            Phase::Reading => Some(self.since + limits::REQUEST_WAIT),
            Phase::Idle if lasting => None,
            Phase::Idle | Phase::Failed => Some(self.since + limits::CONN_IDLE),
        };
        [stall, stream, read].into_iter().flatten().min()
    }

    /// While a client takes what is queued, a shut goes on.
    fn stalled(&self) -> Instant {
        if self.queued > 0 { self.taken + limits::CONN_STALL } else { Instant::ZERO }
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Instant, lasting: bool, out: &mut Actions) {
        if self.wants(lasting).is_none_or(|at| at > now) {
            return;
        }
        if self.shut.is_some() || (self.queued > 0 && self.taken + limits::CONN_STALL <= now) {
            self.drop_now(out);
        } else if let Some(framing) = self.due.filter(|_| self.streaming.is_some()) {
            self.streaming = Some(now);
            self.send(http::chunk(framing, b": \n\n"), now, out);
        } else if self.server.phase() == Phase::Reading {
            let seconds = limits::REQUEST_WAIT.as_secs();
            let sentence = format!("the request did not come within {seconds} seconds");
            self.refuse(&Response::text(408, &sentence), now, out);
        } else {
            self.shut(now, out);
        }
    }

    fn send(&mut self, bytes: Bytes, now: Instant, out: &mut Actions) {
        if self.queued == 0 {
            self.taken = now;
        }
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.queued = self.queued.saturating_add(length);
        out.push(Action::ConnSend { conn: self.id, bytes });
    }
}
