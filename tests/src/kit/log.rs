//! What a process logs, as it logs it: one JSON object a line, and whatever else is on its stderr.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A log that is being read.
#[derive(Clone, Default)]
pub struct Events(Arc<(Mutex<Seen>, Condvar)>);

#[derive(Default)]
struct Seen {
    events: Vec<Value>,
    other: Vec<String>,
    ended: bool,
}

impl Events {
    /// Reads `from` to its end on a thread of its own.
    pub fn of(from: impl Read + Send + 'static) -> (Events, JoinHandle<()>) {
        let events = Events::default();
        let reader = events.clone();
        let thread = std::thread::spawn(move || {
            for line in BufReader::new(from).split(b'\n') {
                let Ok(line) = line else { break };
                reader.line(&line);
            }
            reader.lock().ended = true;
            reader.0.1.notify_all();
        });
        (events, thread)
    }

    fn line(&self, line: &[u8]) {
        let mut read = self.lock();
        match serde_json::from_slice::<Value>(line) {
            Ok(event) if event["event"].is_string() => read.events.push(event),
            Ok(_) | Err(_) => read.other.push(String::from_utf8_lossy(line).into_owned()),
        }
        drop(read);
        self.0.1.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The first event of this name for which `which` holds, read already or still to come.
    ///
    /// # Panics
    /// When it does not come in time, or the log ends without it: with the log.
    pub fn wait_for(&self, name: &str, which: impl Fn(&Value) -> bool, patience: Duration) -> Value {
        let until = Instant::now() + patience;
        let mut read = self.lock();
        loop {
            if let Some(event) = read.events.iter().find(|e| e["event"] == name && which(e)) {
                return event.clone();
            }
            let left = until.saturating_duration_since(Instant::now());
            if read.ended || left.is_zero() {
                let why = if read.ended { "the log ended" } else { "it is late" };
                let lines: Vec<String> = read.events.iter().map(Value::to_string).collect();
                let other = read.other.join("\n");
                drop(read);
                panic!("no {name} that was waited for: {why}\n{}\n{other}", lines.join("\n"));
            }
            read = self.0.1.wait_timeout(read, left).unwrap_or_else(|e| e.into_inner()).0;
        }
    }

    /// Events of this name so far.
    pub fn seen(&self, name: &str) -> Vec<Value> {
        self.lock().events.iter().filter(|e| e["event"] == name).cloned().collect()
    }

    /// All events so far.
    pub fn all(&self) -> Vec<Value> {
        self.lock().events.clone()
    }

    /// Lines on stderr that are no events.
    pub fn other(&self) -> Vec<String> {
        self.lock().other.clone()
    }
}
