//! A child's stderr on its way into the log: cut into lines, bounded per second, what is dropped is counted.

use crate::limits;
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// One child's stderr.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Stderr {
    line: Vec<u8>,
    window: Instant,
    in_window: usize,
    dropped: u64,
}

/// What reaches the log.
#[derive(Debug, PartialEq, Eq)]
pub enum Logged {
    /// A line, or a piece of a long one.
    Line(String),
    /// This many bytes did not reach the log.
    Dropped(u64),
}

impl Stderr {
    /// Takes bytes; gives what is whole.
    pub fn push(&mut self, bytes: &[u8], now: Instant) -> Vec<Logged> {
        let mut out = Vec::new();
        if now.since(self.window) >= Duration::from_secs(1) {
            self.window = now;
            self.in_window = 0;
            self.report(&mut out);
        }
        let room = limits::CHILD_STDERR_BYTES_PER_SECOND.saturating_sub(self.in_window);
        let (taken, over) = bytes.split_at(bytes.len().min(room));
        self.in_window += taken.len();
        self.dropped += over.len() as u64;
        for byte in taken {
            if *byte == b'\n' {
                self.flush(&mut out);
            } else {
                self.line.push(*byte);
                if self.line.len() >= limits::STDERR_LINE_BYTES {
                    self.flush(&mut out);
                }
            }
        }
        out
    }

    /// The child is gone: what is left, and what was dropped.
    pub fn finish(&mut self) -> Vec<Logged> {
        let mut out = Vec::new();
        self.flush(&mut out);
        self.report(&mut out);
        out
    }

    fn flush(&mut self, out: &mut Vec<Logged>) {
        if !self.line.is_empty() {
            out.push(Logged::Line(String::from_utf8_lossy(&self.line).trim_end_matches('\r').to_owned()));
            self.line.clear();
        }
    }

    fn report(&mut self, out: &mut Vec<Logged>) {
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            out.push(Logged::Dropped(dropped));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_long_lines_and_floods() {
        let mut s = Stderr::default();
        let t = Instant::from_millis;
        assert_eq!(s.push(b"one\ntw", t(1)), [Logged::Line("one".into())]);
        assert_eq!(s.push(b"o\r\n\n", t(2)), [Logged::Line("two".into())]);
        let pieces = s.push(&vec![b'x'; 10_000], t(3));
        assert_eq!(pieces.len(), 2, "a line without an end is cut, never kept growing");
        let flood = s.push(&vec![b'y'; 1_000_000], t(4));
        let bytes: usize = flood
            .iter()
            .map(|l| match l {
                Logged::Line(l) => l.len(),
                Logged::Dropped(_) => 0,
            })
            .sum();
        assert!(bytes <= limits::CHILD_STDERR_BYTES_PER_SECOND);
        assert!(matches!(s.push(b"z\n", t(1_005))[0], Logged::Dropped(n) if n > 900_000));
        assert_eq!(s.push(b"rest", t(1_006)), []);
        assert_eq!(s.finish(), [Logged::Line("rest".into())]);
    }
}
