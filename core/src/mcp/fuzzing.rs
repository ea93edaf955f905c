//! What must hold for any bytes of a server, whatever its client does meanwhile: the body of the fuzz target
//! `mcp_client`, and the books that a property keeps too.

use super::elicit::Reply;
use super::http::{Broken, Exchange};
use super::{Client, ClientInfo, Era, Outcome, Output};
use crate::bytes::{Bytes, Json};
use crate::time::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that are no part of any line but begin a step of the client's own.
const CALL: u8 = 1;
const CANCEL: u8 = 2;
const TICK: u8 = 3;
const CLOSED: u8 = 4;

/// One thing that happens to a client.
enum Step<'a> {
    Line(&'a [u8]),
    Call(u64),
    Cancel(u64),
    Tick(u64),
    Closed,
}

/// Reads `data` as what happens to a client: the first byte says how lines are cut, the rest is lines of the server,
/// each after a newline; a line that begins with a byte from 1 to 4 is a call, a cancel, a tick or the end of the
/// connection, with its next byte for the key or the time. From 128 on the first byte has the client find out which era
/// the server is of; below, that is the one of `initialize`. Gives what came of it.
///
/// # Panics
///
/// When a call is not answered exactly once, a start has not one outcome, something is due in the past, something is
/// said after a close, or a cut changes any of it.
pub fn mcp_client(data: &[u8]) -> BTreeSet<&'static str> {
    let Some((cut, script)) = data.split_first() else { return BTreeSet::new() };
    let finds_out = *cut >= 128;
    let whole = live(script, finds_out, usize::MAX);
    let size = usize::from(cut % 7) + 1;
    assert_eq!(live(script, finds_out, size), whole, "pieces of {size}");
    whole.iter().map(kind).collect()
}

fn live(script: &[u8], finds_out: bool, size: usize) -> Vec<Output> {
    let info = ClientInfo { name: "agentd".into(), version: "1.2.3".into() };
    let mut now = Instant::from_millis(1);
    let client = Client::lines(info, now, Duration::from_secs(60));
    let mut client = if finds_out { client } else { client.only(Era::Initialize) };
    let (mut books, mut all) = (Books::default(), Vec::new());
    client.start();
    for step in script.split(|byte| *byte == b'\n').map(step).chain([Step::Closed]) {
        match step {
            Step::Line(line) => {
                line.chunks(size).for_each(|piece| client.received(now, piece));
                client.received(now, b"\n");
            }
            // A key that is open may not be used again; the driver never does.
            Step::Call(key) if books.is_open(key) => {}
            Step::Call(key) => {
                books.ask(key);
                let args = Json(Bytes::from(b"{}".as_slice()));
                client.call(now, key, "echo", &args, Duration::from_secs(5));
            }
            Step::Cancel(key) => client.cancel(key, "why"),
            Step::Tick(ms) => {
                now = now + Duration::from_millis(ms);
                client.tick(now);
                assert!(client.poll_timeout().is_none_or(|due| due > now), "due in the past");
            }
            Step::Closed => client.closed("over"),
        }
        while let Some(output) = client.pop() {
            books.enter(&output);
            all.push(output);
        }
    }
    books.close();
    assert_eq!(client.poll_timeout(), None, "nothing is due after the end");
    all
}

fn step(line: &[u8]) -> Step<'_> {
    let with = u64::from(line.get(1).copied().unwrap_or_default());
    match line.first() {
        Some(&CALL) => Step::Call(with % 8),
        Some(&CANCEL) => Step::Cancel(with % 8),
        // Up to a minute, which is past every bound.
        Some(&TICK) => Step::Tick(with * 256),
        Some(&CLOSED) => Step::Closed,
        Some(_) | None => Step::Line(line),
    }
}

/// Steps of [`mcp_http`] beyond those of [`mcp_client`].
const HEAD: u8 = 5;
const ENDED: u8 = 6;
const BROKEN: u8 = 7;
const REPLY: u8 = 8;

/// What a server can answer an exchange with.
const HEADS: [(u16, &str); 10] = [
    (200, "application/json"),
    (200, "text/event-stream"),
    (202, ""),
    (200, "text/html"),
    (400, "application/json"),
    (404, "text/plain"),
    (401, ""),
    (307, ""),
    (500, "application/json"),
    (405, ""),
];

/// The same over HTTP. A line is a piece of the body of the oldest exchange that has its head; a line that begins with
/// one of the further steps gives the oldest exchange its head, its end or its break, or answers a question.
///
/// # Panics
///
/// As [`mcp_client`]; and when an exchange's number comes twice, or more are open at once than the bound allows.
pub fn mcp_http(data: &[u8]) -> BTreeSet<&'static str> {
    let Some((cut, script)) = data.split_first() else { return BTreeSet::new() };
    let whole = live_http(script, *cut >= 128, usize::MAX);
    let size = usize::from(cut % 7) + 1;
    assert_eq!(live_http(script, *cut >= 128, size), whole, "pieces of {size}");
    whole.iter().map(kind).collect()
}

fn live_http(script: &[u8], finds_out: bool, size: usize) -> Vec<Output> {
    let info = ClientInfo { name: "agentd".into(), version: "1.2.3".into() };
    let mut now = Instant::from_millis(1);
    let client = Client::http(info, now, Duration::from_secs(60));
    let mut client = if finds_out { client } else { client.only(Era::Initialize) };
    let (mut books, mut all) = (Books::default(), Vec::new());
    // Exchanges that are open, and whether each has its head.
    let mut open: BTreeMap<u64, bool> = BTreeMap::new();
    let mut last = 0;
    client.start();
    // An empty line does nothing: it lets the first exchange be asked for.
    let lines = std::iter::once(&b""[..]).chain(script.split(|byte| *byte == b'\n'));
    for line in lines.map(Some).chain([None]) {
        let with = line.and_then(|line| line.get(1)).copied().unwrap_or_default();
        let oldest = open.keys().next().copied();
        match (line.and_then(|line| line.first()).copied(), line.map(step)) {
            (_, None) => client.closed("over"),
            (Some(HEAD), _) => {
                if let Some(number) = open.iter().find(|(_, head)| !**head).map(|(number, _)| *number) {
                    let (status, kind) = HEADS[usize::from(with) % HEADS.len()];
                    let headers = [
                        ("Content-Type".to_owned(), kind.to_owned()),
                        ("Mcp-Session-Id".to_owned(), "s".to_owned()),
                    ];
                    open.insert(number, true);
                    client.head(now, number, status, &headers);
                }
            }
            (Some(ENDED), _) => {
                if let Some(number) = oldest {
                    open.remove(&number);
                    client.ended(now, number, Ok(()));
                }
            }
            (Some(BROKEN), _) => {
                if let Some(number) = oldest {
                    open.remove(&number);
                    let broken = Broken { reached: with % 2 == 0, why: "it broke".to_owned() };
                    client.ended(now, number, Err(broken));
                }
            }
            (Some(REPLY), _) => client.reply(now, u64::from(with), &Reply::Decline),
            (_, Some(Step::Line(line))) => {
                if let Some(number) = open.iter().find(|(_, head)| **head).map(|(number, _)| *number) {
                    line.chunks(size).for_each(|piece| client.body(now, number, piece));
                    client.body(now, number, b"\n");
                }
            }
            (_, Some(Step::Call(key))) if books.is_open(key) => {}
            (_, Some(Step::Call(key))) => {
                books.ask(key);
                let args = Json(Bytes::from(b"{}".as_slice()));
                client.call(now, key, "echo", &args, Duration::from_secs(5));
            }
            (_, Some(Step::Cancel(key))) => client.cancel(key, "why"),
            (_, Some(Step::Tick(ms))) => {
                now = now + Duration::from_millis(ms);
                client.tick(now);
                assert!(client.poll_timeout().is_none_or(|due| due > now), "due in the past");
            }
            (_, Some(Step::Closed)) => client.farewell(now),
        }
        while let Some(output) = client.pop() {
            books.enter(&output);
            match &output {
                Output::Open(Exchange { number, .. }) => {
                    assert!(
                        *number > last || open.insert(*number, false).is_none(),
                        "exchange {number} twice"
                    );
                    open.insert(*number, false);
                    last = last.max(*number);
                    assert!(open.len() <= crate::limits::MCP_EXCHANGES + 1, "too many exchanges");
                }
                Output::Shut { exchange } => {
                    open.remove(exchange);
                }
                Output::Send(_) => panic!("a line over HTTP"),
                Output::Ready { .. }
                | Output::Changed { .. }
                | Output::Failed { .. }
                | Output::CallDone { .. }
                | Output::Progress { .. }
                | Output::Elicit { .. }
                | Output::Log { .. }
                | Output::Close { .. } => {}
            }
            all.push(output);
        }
    }
    books.close();
    assert_eq!(client.poll_timeout(), None, "nothing is due after the end");
    all
}

fn kind(output: &Output) -> &'static str {
    match output {
        Output::Send(_) => "sent",
        Output::Ready { tools, .. } if tools.is_empty() => "ready without tools",
        Output::Ready { .. } => "ready",
        Output::Failed { .. } => "failed",
        Output::CallDone { outcome: Outcome { error: true, .. }, .. } => "a call failed",
        Output::CallDone { outcome: Outcome { error: false, .. }, .. } => "a call answered",
        Output::Progress { .. } => "progress",
        Output::Log { event, .. } => event,
        Output::Close { .. } => "closed by us",
        Output::Changed { .. } => "changed",
        Output::Elicit { .. } => "asked",
        Output::Open(_) => "opened",
        Output::Shut { .. } => "shut",
    }
}

/// Keys asked and answered so far, and what else may happen only once.
#[derive(Debug, Default)]
pub(super) struct Books {
    asked: BTreeMap<u64, u32>,
    answered: BTreeMap<u64, u32>,
    started: u32,
    closes: u32,
}

impl Books {
    /// Books of a client that is ready already, or of a new one.
    #[cfg(test)]
    pub(super) fn of(started: bool) -> Books {
        Books { started: u32::from(started), ..Books::default() }
    }

    /// Whether a call of this key waits for its answer.
    pub(super) fn is_open(&self, key: u64) -> bool {
        self.asked.get(&key).unwrap_or(&0) > self.answered.get(&key).unwrap_or(&0)
    }

    /// A call was made.
    pub(super) fn ask(&mut self, key: u64) {
        *self.asked.entry(key).or_default() += 1;
    }

    /// The client wants something done.
    pub(super) fn enter(&mut self, output: &Output) {
        match output {
            Output::CallDone { key, .. } => {
                assert!(self.is_open(*key), "key {key} was answered unasked");
                *self.answered.entry(*key).or_default() += 1;
            }
            Output::Ready { .. } | Output::Failed { .. } => self.started += 1,
            Output::Close { .. } => self.closes += 1,
            Output::Progress { key } => assert!(self.is_open(*key), "progress of nothing open"),
            Output::Send(line) => {
                assert_eq!(self.closes, 0, "nothing is sent after a close");
                assert!(line.ends_with(b"\n") && !line[..line.len() - 1].contains(&b'\n'), "one line");
            }
            Output::Changed { .. } => assert_eq!(self.started, 1, "changed before it began"),
            Output::Elicit { .. } | Output::Open(_) | Output::Shut { .. } => {}
            Output::Log { text, .. } => assert!(text.len() < 2_000, "{text}"),
        }
    }

    /// The connection is over.
    pub(super) fn close(&self) {
        assert_eq!(self.asked, self.answered, "every key is answered as often as it was asked");
        assert_eq!(self.started, 1, "exactly one of ready and failed");
        assert!(self.closes <= 1);
    }
}
