//! `grep`: the lines of text files that match. Counts what `grep -rIc` counts: a file with a NUL byte anywhere is
//! binary and has no matches, a last line without a newline is a line, a carriage return belongs to its line,
//! links met on the way are not followed.

use super::glob::{Filter, below};
use super::params::Args;
use super::report::{Budget, Failure, LINE_BYTES, MATCH_TEXT_BYTES};
use super::root::open_file;
use super::rpc::Server;
use super::walk::walk;
use regex::bytes::{Regex, RegexBuilder};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Searches a folder or one file.
pub(super) fn grep(server: &mut Server, args: &Args) -> Result<serde_json::Value, Failure> {
    let mut search = Search {
        pattern: pattern(args)?,
        max: usize::try_from(args.count("max")).unwrap_or(usize::MAX),
        budget: Budget::new(),
        report: Report::default(),
    };
    let filter = args.maybe_text("glob").map(Filter::parse).transpose()?;
    let asked = args.text("path");
    if server.root.place(asked)?.kind == Some(rustix::fs::FileType::RegularFile) {
        let (file, _, place) = server.root.file(asked)?;
        if filter.is_none_or(|filter| filter.chooses(Path::new(&place.name))) {
            search.file(file, &place.text());
        }
    } else {
        let (dir, place) = server.root.folder(asked)?;
        let base = place.path();
        let unreadable = walk(dir, &base, &mut |seen| {
            if filter.as_ref().is_none_or(|filter| filter.chooses(seen.path)) {
                match open_file(seen.folder, seen.name) {
                    Ok(Some((file, _))) => search.file(file, &below(&base, seen.path)),
                    // Gone or swapped since its name was read: as if it had never been there.
                    Ok(None) | Err(rustix::io::Errno::NOENT) => {}
                    Err(_) => search.report.skipped.unreadable += 1,
                }
            }
            Ok(())
        })?;
        search.report.skipped.unreadable_folders = unreadable;
    }
    let mut report = search.report;
    report.truncated = (report.matches.len() as u64) < report.matching_lines;
    serde_json::to_value(report).map_err(|e| Failure::new(format!("cannot print the matches: {e}")))
}

/// What `grep` answers.
#[derive(Debug, Default, Serialize)]
struct Report {
    /// Text files that were read to their end.
    files_searched: u64,
    /// Their lines.
    lines_searched: u64,
    /// Of the files, those with a match.
    matching_files: u64,
    /// Of the lines, those that match.
    matching_lines: u64,
    /// The first of them.
    matches: Vec<Match>,
    /// There are more than are listed.
    truncated: bool,
    skipped: Skipped,
}

/// Files that were not searched, by reason.
#[derive(Debug, Default, Serialize)]
struct Skipped {
    binary: u64,
    unreadable: u64,
    long_line: u64,
    unreadable_folders: u64,
}

#[derive(Debug, Serialize)]
struct Match {
    file: String,
    line: u64,
    text: String,
}

struct Search {
    pattern: Regex,
    max: usize,
    budget: Budget,
    report: Report,
}

/// What one file came to.
enum Searched {
    /// Lines, and the numbers and texts of those that match: the count, and the first few.
    Text { lines: u64, matching: u64, first: Vec<(u64, String)> },
    /// It has a NUL byte.
    Binary,
    /// It has a line over [`LINE_BYTES`].
    LongLine,
}

impl Search {
    fn file(&mut self, file: File, path: &str) {
        let room = self.max - self.report.matches.len();
        match search(file, &self.pattern, room) {
            Ok(Searched::Text { lines, matching, first }) => {
                self.report.files_searched += 1;
                self.report.lines_searched += lines;
                self.report.matching_files += u64::from(matching > 0);
                self.report.matching_lines += matching;
                for (line, text) in first {
                    let found = Match { file: path.to_owned(), line, text };
                    if !self.budget.take(&found) {
                        self.max = self.report.matches.len();
                        break;
                    }
                    self.report.matches.push(found);
                }
            }
            Ok(Searched::Binary) => self.report.skipped.binary += 1,
            Ok(Searched::LongLine) => self.report.skipped.long_line += 1,
            Err(_) => self.report.skipped.unreadable += 1,
        }
    }
}

fn search(file: File, pattern: &Regex, room: usize) -> io::Result<Searched> {
    let mut input = BufReader::with_capacity(64 * 1024, file);
    let (mut line, mut lines, mut matching, mut first) = (Vec::new(), 0, 0, Vec::new());
    loop {
        line.clear();
        if (&mut input).take(LINE_BYTES as u64 + 1).read_until(b'\n', &mut line)? == 0 {
            return Ok(Searched::Text { lines, matching, first });
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if text.contains(&0) {
            return Ok(Searched::Binary);
        }
        if text.len() > LINE_BYTES {
            return Ok(Searched::LongLine);
        }
        lines += 1;
        if pattern.is_match(text) {
            matching += 1;
            if first.len() < room {
                first.push((lines, shown(text)));
            }
        }
    }
}

/// A matching line in a result: bad bytes replaced, long ones cut.
fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(4 * MATCH_TEXT_BYTES)]);
    let kept = &text[..text.floor_char_boundary(MATCH_TEXT_BYTES)];
    if kept.len() < text.len() { format!("{kept}… [cut]") } else { kept.to_owned() }
}

fn pattern(args: &Args) -> Result<Regex, Failure> {
    let given = args.text("pattern");
    if given.contains('\n') {
        return Err(Failure::new(
            "lines are searched one by one, so a pattern with a line break matches nothing",
        ));
    }
    let regex = if args.flag("literal") { regex::escape(given) } else { given.to_owned() };
    RegexBuilder::new(&regex).case_insensitive(args.flag("ignore_case")).build().map_err(|e| {
        Failure::new(format!(
            "the pattern is not a regular expression: {e}\nFor plain text set literal to true."
        ))
    })
}
