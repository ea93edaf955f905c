//! One attempt at a model call: a thread of its own that dials, asks and reads.
//!
//! Owns the connection and when it last said something that means anything. Whoever waits for it may shut it at any
//! time, whatever it is doing: its thread then ends by itself, and what it still says has no listener. (A name that
//! is being resolved and a connection that is being made end at their own time limits.)

use super::Order;
use super::came::Came;
use crate::child::clock::Clock;
use crate::http::dial::{self, Failure, Kind, Trust};
use crate::http::headers;
use crate::http::line::Line;
use crate::http::mask::Mask;
use agentd_core::limits::REFUSAL_BYTES;
use agentd_core::model::api::Reader;
use agentd_core::model::http::{self, HttpRequest};
use agentd_core::model::refusal::refusal;
use agentd_core::model::{ModelError, ModelErrorKind, Reply};
use agentd_core::preview::preview;
use agentd_core::time::Instant;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::SystemTime;
use ureq::http::{Request, Response};

const READ_BYTES: usize = 16 * 1024;

/// What an attempt needs.
pub(super) struct Ask {
    pub(super) number: u64,
    /// The endpoint's base address.
    pub(super) base: String,
    pub(super) request: HttpRequest,
    pub(super) reader: Reader,
    /// What no error may quote.
    pub(super) mask: Mask,
    pub(super) trust: Arc<Trust>,
    pub(super) clock: Clock,
    /// Where it says what has come.
    pub(super) came: Came,
    pub(super) back: Sender<Order>,
}

/// The waiting side's half.
#[derive(Clone)]
pub(super) struct Attempt {
    pub(super) number: u64,
    shared: Arc<Shared>,
}

struct Shared {
    /// When something that means anything last came, in nanoseconds of the child's clock.
    last_sign: AtomicU64,
    /// Events that meant something.
    events: AtomicU64,
    /// When the answer's head came; 0 before.
    headed: AtomicU64,
    /// Its status; 0 before.
    status: AtomicU16,
    /// What came is a stream of events.
    streamed: AtomicBool,
    line: Line,
}

impl Attempt {
    /// An attempt and its thread's body.
    pub(super) fn new(mut ask: Ask) -> (Attempt, impl FnOnce() + Send) {
        let shared = Arc::new(Shared {
            last_sign: AtomicU64::new(ask.clock.now().nanos()),
            events: AtomicU64::new(0),
            headed: AtomicU64::new(0),
            status: AtomicU16::new(0),
            streamed: AtomicBool::new(false),
            line: Line::default(),
        });
        let attempt = Attempt { number: ask.number, shared };
        let own = attempt.clone();
        let body = move || {
            let (number, back, mask) = (ask.number, ask.back.clone(), std::mem::take(&mut ask.mask));
            let outcome = own.run(ask).map_err(|mut error| {
                error.message = mask.text(error.message);
                error
            });
            // Without a receiver the process is ending.
            let _ended = back.send(Order::Ended { attempt: number, outcome });
        };
        (attempt, body)
    }

    /// When something that means anything last came; at first, when it began.
    pub(super) fn last_sign(&self) -> Instant {
        Instant::from_nanos(self.shared.last_sign.load(Ordering::Relaxed))
    }

    /// Events so far that meant something.
    pub(super) fn events(&self) -> u64 {
        self.shared.events.load(Ordering::Relaxed)
    }

    /// When the head of an answer came, if it has.
    pub(super) fn headed(&self) -> Option<Instant> {
        Some(self.shared.headed.load(Ordering::Relaxed)).filter(|at| *at > 0).map(Instant::from_nanos)
    }

    /// The HTTP status of the answer, if there is one.
    pub(super) fn status(&self) -> Option<u16> {
        Some(self.shared.status.load(Ordering::Relaxed)).filter(|status| *status > 0)
    }

    /// Whether what came is a stream of events.
    pub(super) fn streamed(&self) -> bool {
        self.shared.streamed.load(Ordering::Relaxed)
    }

    /// Ends it, whatever it is doing.
    pub(super) fn shut(&self) {
        self.shared.line.shut();
    }

    fn run(&self, ask: Ask) -> Result<Reply, ModelError> {
        let url = http::url(&ask.base, &ask.request.path);
        let request = built(&url, ask.request)?;
        let agent = ask.trust.agent(&url).map_err(error)?;
        if !self.shared.line.open(agent.clone()) {
            return Err(ModelError::new(ModelErrorKind::Unreachable, "the attempt was given up"));
        }
        let response = agent.run(request).map_err(|e| error(dial::failure(e)))?;
        self.sign(ask.clock, 0);
        self.shared.headed.store(self.last_sign().nanos().max(1), Ordering::Relaxed);
        self.shared.status.store(response.status().as_u16(), Ordering::Relaxed);
        match response.status().as_u16() {
            200..=299 => self.read(response, ask.reader, ask.clock, &ask.came),
            status => Err(refused(status, response)),
        }
    }

    fn read(
        &self,
        response: Response<ureq::Body>,
        mut reader: Reader,
        clock: Clock,
        came: &Came,
    ) -> Result<Reply, ModelError> {
        if let Some(coding) = header(&response, "content-encoding").filter(|c| c != "identity") {
            let message =
                format!("the answer is compressed ({}), which was not asked for", preview(coding, 40));
            return Err(ModelError::new(ModelErrorKind::Malformed, message));
        }
        let mut body = response.into_body().into_reader();
        let mut bytes = [0; READ_BYTES];
        while !reader.is_done() {
            match body.read(&mut bytes) {
                Ok(0) => break,
                Ok(n) => {
                    let events = reader.push(&bytes[..n]);
                    if events > 0 {
                        self.sign(clock, events);
                        came.grow(self.number, reader.came());
                    }
                }
                Err(e) => return Err(ModelError { came: reader.came(), ..error(dial::broken(&e)) }),
            }
        }
        self.shared.streamed.store(reader.is_stream(), Ordering::Relaxed);
        reader.finish()
    }

    fn sign(&self, clock: Clock, events: usize) {
        self.shared.last_sign.store(clock.now().nanos(), Ordering::Relaxed);
        self.shared.events.fetch_add(u64::try_from(events).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

fn built(url: &str, request: HttpRequest) -> Result<Request<Vec<u8>>, ModelError> {
    let unusable = |_| Failure::unsent(Kind::Rejected, "the address is no URL that can be dialled");
    let mut built = Request::post(url).body(request.body).map_err(unusable).map_err(error)?;
    let own = request.headers.iter().map(|(name, value)| (name, value));
    headers::put(built.headers_mut(), own).map_err(error)?;
    Ok(built)
}

/// What went wrong on the way, as a model call's failure.
fn error(failure: Failure) -> ModelError {
    let kind = match failure.kind {
        Kind::Rejected => ModelErrorKind::Rejected,
        Kind::Malformed => ModelErrorKind::Malformed,
        Kind::Unreachable => ModelErrorKind::Unreachable,
    };
    ModelError::new(kind, failure.message)
}

/// What the provider says with its refusal, as much of it as comes.
fn refused(status: u16, mut response: Response<ureq::Body>) -> ModelError {
    let mut body = Vec::new();
    let bound = u64::try_from(REFUSAL_BYTES).unwrap_or(u64::MAX);
    // A refusal that breaks off is still one.
    let _cut = response.body_mut().as_reader().take(bound).read_to_end(&mut body);
    refusal(status, |name| header(&response, name), &body, wall_ms())
}

fn header(response: &Response<ureq::Body>, name: &str) -> Option<String> {
    response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// The wall clock, in milliseconds since 1970.
pub(super) fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
