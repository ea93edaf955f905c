//! The end of a server's stderr, kept for the sentence that says why it failed (S14.5).
//!
//! Owns the bound on what is kept and the cleaning of what is shown; the server's secrets are masked where its words leave
//! its thread. Used by [`super::account`].

use agentd_core::limits;
use std::collections::VecDeque;

/// What stderr said last.
#[derive(Default)]
pub(super) struct Tail {
    kept: VecDeque<u8>,
    total: u64,
}

impl Tail {
    /// Takes what came, cut anywhere.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let fresh = &bytes[bytes.len().saturating_sub(limits::STDERR_TAIL_BYTES)..];
        let keep = limits::STDERR_TAIL_BYTES - fresh.len();
        self.kept.drain(..self.kept.len().saturating_sub(keep));
        self.kept.extend(fresh);
    }

    /// The end of an error sentence: `; its stderr ends: …`, or that there was nothing.
    pub(super) fn words(&self) -> String {
        let text = self.text();
        match (text.is_empty(), self.total) {
            (true, 0) => "; it wrote nothing to stderr".to_owned(),
            (true, n) => format!("; it wrote {n} blank bytes to stderr"),
            (false, n) if n > self.kept.len() as u64 => format!("; its stderr ({n} bytes) ends: {text}"),
            (false, _) => format!("; its stderr: {text}"),
        }
    }

    fn text(&self) -> String {
        let bytes: Vec<u8> = self.kept.iter().copied().collect();
        let whole = if self.total > bytes.len() as u64 { after_first_break(&bytes) } else { &bytes };
        let text = String::from_utf8_lossy(whole).into_owned();
        let lines = text.lines().map(|line| line.replace(char::is_control, " ")).map(|l| l.trim().to_owned());
        lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" | ")
    }
}

/// What was cut begins mid-line, perhaps mid-secret: shown is what follows the first line break, if any.
fn after_first_break(bytes: &[u8]) -> &[u8] {
    match bytes.iter().position(|b| *b == b'\n') {
        Some(at) if at + 1 < bytes.len() => &bytes[at + 1..],
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(chunks: &[&[u8]]) -> Tail {
        let mut tail = Tail::default();
        for chunk in chunks {
            tail.push(chunk);
        }
        tail
    }

    #[test]
    fn the_end_is_kept_and_the_rest_counted() {
        assert_eq!(tail(&[]).words(), "; it wrote nothing to stderr");
        assert_eq!(tail(&[b"one\n", b"\x1b[31mtw", b"o\r\n"]).words(), "; its stderr: one | [31mtwo");
        let flood = vec![b'x'; 10_000];
        let mut long = tail(&[&flood, b"\nlast words\n"]);
        assert_eq!(long.words(), "; its stderr (10012 bytes) ends: last words");
        long.push(&flood);
        assert_eq!(long.kept.len(), limits::STDERR_TAIL_BYTES);
        assert!(long.words().contains(&"x".repeat(limits::STDERR_TAIL_BYTES)));
        assert_eq!(tail(&[b" \n\n"]).words(), "; it wrote 3 blank bytes to stderr");
    }

    #[test]
    fn bytes_that_are_no_text_do_no_harm() {
        assert_eq!(tail(&[b"\xff\xfe\x00ok\n"]).words(), "; its stderr: \u{fffd}\u{fffd} ok");
    }
}
