//! The server's stdout, in the shape the modes want it.

use super::modes::{Mode, Options};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::process;
use std::sync::Mutex;

/// Lines of this length make up a flood on stderr.
const FLOOD_LINE: usize = 80;

/// Stdout, shared with the threads of late answers.
#[derive(Debug)]
pub(super) struct Out {
    /// Held while a message goes out, so that answers of several threads stay whole.
    turn: Mutex<()>,
    byte_at_a_time: bool,
    twice: bool,
    junk: bool,
}

impl Out {
    /// As the options want it.
    pub(super) fn new(options: &Options) -> Out {
        Out {
            turn: Mutex::new(()),
            byte_at_a_time: options.has(&Mode::ByteAtATime),
            twice: options.has(&Mode::DuplicateIds),
            junk: options.has(&Mode::StdoutJunk),
        }
    }

    /// An answer, with what goes before and after it.
    pub(super) fn answer(&self, message: &Value) {
        if self.junk {
            self.raw(b"Server v1 running on stdio\n\n\r\n\x1b[32mready\x1b[0m\n\xff\xfe\nnull\n[]\n{\n");
        }
        let line = format!("{message}\n");
        self.raw(line.as_bytes());
        if self.twice {
            self.raw(line.as_bytes());
        }
    }

    /// A message of the server's own.
    pub(super) fn say(&self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes());
    }

    /// Bytes as they are. Nobody left to read them is a reason to end.
    pub(super) fn raw(&self, bytes: &[u8]) {
        let turn = self.turn.lock();
        let mut stdout = io::stdout().lock();
        let pieces = bytes.chunks(if self.byte_at_a_time { 1 } else { bytes.len().max(1) });
        for piece in pieces {
            if stdout.write_all(piece).and_then(|()| stdout.flush()).is_err() {
                process::exit(0);
            }
        }
        drop(turn);
    }

    /// A line without an end, until nobody reads any more.
    pub(super) fn endless(&self) -> ! {
        loop {
            self.raw(&[b'x'; 64 * 1024]);
        }
    }

    /// So many notifications of every kind, in few writes; those of progress are about `token`.
    pub(super) fn flood(&self, count: u64, token: &Value) {
        let kinds = [
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}}),
            json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "flood"}}),
            json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}),
            json!({"jsonrpc": "2.0", "method": "notifications/unheard-of", "params": {}}),
        ];
        let lines = kinds.map(|kind| format!("{kind}\n"));
        let mut batch = String::new();
        for (_, line) in (0..count).zip(lines.iter().cycle()) {
            batch.push_str(line);
            if batch.len() > 256 * 1024 {
                self.raw(batch.as_bytes());
                batch.clear();
            }
        }
        self.raw(batch.as_bytes());
    }
}

/// So many bytes to stderr, in lines or in one.
pub(super) fn flood_stderr(options: &Options) {
    let no_newline = options.has(&Mode::StderrNoNewline);
    let wanted = options.find(|mode| if let Mode::StderrFlood(bytes) = mode { Some(*bytes) } else { None });
    let mut line = [b'e'; FLOOD_LINE];
    if !no_newline {
        line[FLOOD_LINE - 1] = b'\n';
    }
    let block = line.repeat(512);
    let mut left = wanted.unwrap_or(if no_newline { FLOOD_LINE as u64 } else { 0 });
    while left > 0 {
        let piece = &block[..block.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
        if io::stderr().write_all(piece).is_err() {
            return;
        }
        left -= piece.len() as u64;
    }
}
