//! The blocking shell that a test puts around the client machine.

use crate::shapes;
use agentd_core::bytes::Json;
use agentd_core::mcp::{Client, ClientInfo, Outcome, Output, ToolInfo, Value as Answer};
use agentd_core::time::Instant;
use serde_json::Value;
use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

/// Nothing in these tests takes longer; a wait that does is a hang.
const HANG: Duration = Duration::from_secs(60);

/// A client connected to a server by a reader and a writer.
pub(crate) struct Driver {
    client: Client,
    epoch: std::time::Instant,
    to: Option<Box<dyn Write + Send>>,
    from: Receiver<Vec<u8>>,
    at_end: bool,
    /// What the client gave out, sent bytes left out.
    pub(crate) outputs: Vec<Output>,
    /// Messages it sent.
    pub(crate) sent: Vec<Value>,
}

impl Driver {
    /// Starts the handshake; bytes are handed over in pieces of at most `piece`.
    pub(crate) fn new(
        to: impl Write + Send + 'static,
        from: impl Read + Send + 'static,
        piece: usize,
        start: Duration,
    ) -> Driver {
        let (give, take) = sync_channel(64);
        thread::spawn(move || {
            let (mut from, mut buffer) = (from, vec![0; piece]);
            while let Ok(n @ 1..) = from.read(&mut buffer) {
                if give.send(buffer[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        let info = ClientInfo { name: "agentd-tests".into(), version: "0".into() };
        let mut client = Client::lines(info, Instant::ZERO, start);
        client.start();
        Driver {
            client,
            epoch: std::time::Instant::now(),
            to: Some(Box::new(to)),
            from: take,
            at_end: false,
            outputs: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// Begins a call.
    pub(crate) fn begin(&mut self, key: u64, tool: &str, args: &Value, timeout: Duration) {
        let now = self.now();
        self.client.call(now, key, tool, &Json::of(args), timeout);
    }

    /// Calls and waits for the answer.
    pub(crate) fn call(&mut self, key: u64, tool: &str, args: &Value) -> Outcome {
        self.begin(key, tool, args, HANG);
        self.answer(key)
    }

    /// Waits for the answer to a call.
    pub(crate) fn answer(&mut self, key: u64) -> Outcome {
        self.wait(&format!("the answer to call {key}"), |outputs| {
            outputs.iter().find_map(|o| match o {
                Output::CallDone { key: k, outcome } if *k == key => Some(outcome.clone()),
                _ => None,
            })
        })
    }

    /// Gives a call up.
    pub(crate) fn cancel(&mut self, key: u64) {
        self.client.cancel(key, "a test says so");
        self.flush();
    }

    /// Waits until the server is usable; its tools.
    pub(crate) fn ready(&mut self) -> Vec<ToolInfo> {
        match self.started() {
            Ok(tools) => tools,
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits until the server is usable, or why it is not.
    pub(crate) fn started(&mut self) -> Result<Vec<ToolInfo>, String> {
        self.wait("the start", |outputs| {
            outputs.iter().find_map(|o| match o {
                Output::Ready { tools, .. } => Some(Ok(tools.clone())),
                Output::Failed { error } => Some(Err(error.clone())),
                _ => None,
            })
        })
    }

    /// Waits for the end of the server's output.
    pub(crate) fn drain_to_end(&mut self) {
        while !self.at_end {
            self.turn("the end of the output");
        }
    }

    /// Closes the server's stdin.
    pub(crate) fn close(&mut self) {
        self.to = None;
    }

    /// How often a call was answered.
    pub(crate) fn times_answered(&self, key: u64) -> usize {
        self.outputs.iter().filter(|o| matches!(o, Output::CallDone { key: k, .. } if *k == key)).count()
    }

    /// Log events that came out.
    pub(crate) fn events(&self) -> Vec<&'static str> {
        self.outputs
            .iter()
            .filter_map(|o| if let Output::Log { event, .. } = o { Some(*event) } else { None })
            .collect()
    }

    /// Whether the client asked to take the server down.
    pub(crate) fn closes(&self) -> bool {
        self.outputs.iter().any(|o| matches!(o, Output::Close { .. }))
    }

    fn wait<T>(&mut self, what: &str, found: impl Fn(&[Output]) -> Option<T>) -> T {
        loop {
            self.flush();
            if let Some(found) = found(&self.outputs) {
                return found;
            }
            self.turn(what);
        }
    }

    /// One thing that happens next: bytes, the end, or time.
    fn turn(&mut self, what: &str) {
        self.flush();
        let due = self.client.poll_timeout().map(|due| due.since(self.now()));
        let wait = due.unwrap_or(HANG).min(HANG);
        assert!(!self.at_end || due.is_some(), "waiting for {what} after the end: {:?}", self.outputs);
        match self.from.recv_timeout(wait) {
            Ok(bytes) => {
                let now = self.now();
                self.client.received(now, &bytes);
            }
            Err(RecvTimeoutError::Timeout) if due.is_none_or(|due| due >= HANG) => {
                panic!("hangs waiting for {what}")
            }
            Err(RecvTimeoutError::Timeout) => {
                let now = self.now();
                self.client.tick(now);
            }
            Err(RecvTimeoutError::Disconnected) => {
                self.at_end = true;
                self.client.closed("its output ended");
            }
        }
        self.flush();
    }

    fn flush(&mut self) {
        while let Some(output) = self.client.pop() {
            let Output::Send(bytes) = output else {
                self.outputs.push(output);
                continue;
            };
            for line in bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
                let message = serde_json::from_slice(line).expect("the client sends JSON");
                shapes::check(&message);
                self.sent.push(message);
            }
            let written = self.to.as_mut().map(|to| to.write_all(&bytes).and_then(|()| to.flush()));
            if let Some(Err(e)) = written {
                self.client.closed(&format!("its input is closed: {e}"));
            }
        }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// An answer's text, or its JSON as text.
pub(crate) fn text(outcome: &Outcome) -> String {
    match &outcome.value {
        Answer::Text(text) => text.clone(),
        Answer::Json(json) => String::from_utf8(json.0.to_vec()).expect("JSON is UTF-8"),
    }
}
