//! `read`: lines of a text file.

use super::edit::Print;
use super::params::Args;
use super::report::{Failure, RESULT_BYTES, fitting};
use super::rpc::Server;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

/// Bytes of one line that are held at once; more of it goes by unseen, for a result never holds as much.
const PIECE_BYTES: usize = 4 * RESULT_BYTES;

/// Lines of a file, and its fingerprint for a later `edit`.
pub(super) fn read(server: &mut Server, args: &Args) -> Result<Value, Failure> {
    let asked = args.text("path");
    let (file, _, place) = server.root.file(asked)?;
    let mut page = Page::new(args.count("offset"), args.count("limit"));
    let print = page.fill(file).map_err(|e| Failure::new(format!("cannot read {asked:?}: {e}")))?;
    if page.binary {
        return Err(Failure::new(format!(
            "{asked:?} is a binary file of {} bytes; only text is read",
            print.bytes
        )));
    }
    server.reads.remember(place.path(), &print);
    let next = page.offset + page.lines;
    let truncated = next < page.total;
    Ok(json!({
        "path": place.text(),
        "text": page.text,
        "lines": page.lines,
        "offset": page.offset,
        "total_lines": page.total,
        "truncated": truncated || page.line_cut,
        "next_offset": truncated.then_some(next),
        "line_cut": page.line_cut,
        "lossy": page.lossy,
    }))
}

/// The lines that are wanted, gathered while the whole file goes by.
struct Page {
    offset: u64,
    limit: u64,
    room: usize,
    text: String,
    lines: u64,
    total: u64,
    /// The one line of this page is longer than a result may be.
    line_cut: bool,
    /// Bytes that are not UTF-8 were replaced.
    lossy: bool,
    binary: bool,
    full: bool,
}

impl Page {
    fn new(offset: u64, limit: u64) -> Page {
        Page {
            offset,
            limit,
            room: RESULT_BYTES,
            text: String::new(),
            lines: 0,
            total: 0,
            line_cut: false,
            lossy: false,
            binary: false,
            full: false,
        }
    }

    /// Reads to the end, for the count of lines and the fingerprint; a line is held only up to a bound.
    fn fill(&mut self, file: File) -> io::Result<Print> {
        let mut input = BufReader::with_capacity(64 * 1024, file);
        let (mut print, mut line, mut in_line) = (Print::new(), Vec::new(), false);
        loop {
            line.clear();
            if (&mut input).take(PIECE_BYTES as u64).read_until(b'\n', &mut line)? == 0 {
                return Ok(print);
            }
            print.add(&line);
            self.binary |= line.contains(&0);
            if !in_line {
                self.line(&line);
            }
            in_line = line.last() != Some(&b'\n');
        }
    }

    fn line(&mut self, line: &[u8]) {
        self.total += 1;
        if self.total <= self.offset || self.full {
            return;
        }
        let text = String::from_utf8_lossy(line);
        let fits = fitting(&text, self.room);
        if fits.len() == text.len() {
            self.room -= serde_json::to_string(fits).map_or(self.room, |json| json.len() - 2);
        } else if self.lines == 0 {
            self.line_cut = true;
            self.full = true;
        } else {
            self.full = true;
            return;
        }
        // A character cut by the end of the piece is not a bad one.
        self.lossy |= std::str::from_utf8(line).is_err_and(|e| e.error_len().is_some());
        self.text.push_str(fits);
        self.lines += 1;
        self.full |= self.lines == self.limit;
    }
}
