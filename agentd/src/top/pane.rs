//! The events of one run, as they come: a bounded list that shows its end unless somebody has scrolled up.

use crate::client::event;
use serde_json::Value;
use std::collections::VecDeque;

/// Lines that are kept; the oldest go first. `agentd logs` has more.
const LINES: usize = 2_000;

/// The events of one run.
#[derive(Debug, Default)]
pub(super) struct Pane {
    /// The run's.
    pub(super) name: String,
    lines: VecDeque<String>,
    /// Lines between the last one shown and the newest; 0 follows.
    pub(super) back: usize,
    /// Nothing more will come.
    pub(super) ended: bool,
    /// The daemon has been asked at least once.
    pub(super) heard: bool,
}

impl Pane {
    pub(super) fn of(name: &str) -> Pane {
        Pane { name: name.to_owned(), ..Pane::default() }
    }

    /// A page of `logs`; `fresh` takes the place of all before.
    pub(super) fn take(&mut self, page: &Value, fresh: bool) {
        if fresh {
            self.lines.clear();
            self.back = 0;
        }
        self.heard = true;
        let lost = page["lost"].as_u64().unwrap_or(0);
        if lost > 0 {
            self.push(format!("… {lost} events are no longer kept"));
        }
        for event in page["events"].as_array().into_iter().flatten() {
            self.push(event::line(event));
        }
        self.ended = page["ended"] == true;
    }

    fn push(&mut self, line: String) {
        if self.lines.len() >= LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
        // What somebody reads stays where it is.
        if self.back > 0 {
            self.back = (self.back + 1).min(self.lines.len().saturating_sub(1));
        }
    }

    /// Scrolls so many lines towards the beginning, or the end.
    pub(super) fn scroll(&mut self, back: isize) {
        self.back = self.back.saturating_add_signed(back).min(self.lines.len().saturating_sub(1));
    }

    /// The lines for this many rows, oldest first.
    pub(super) fn shown(&self, rows: usize) -> impl Iterator<Item = &str> {
        // The oldest lines fill the rows: nothing is scrolled past them.
        let back = self.back.min(self.lines.len().saturating_sub(rows));
        let end = self.lines.len() - back;
        self.lines.range(end.saturating_sub(rows)..end).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn page(from: u64, to: u64) -> Value {
        let events: Vec<Value> = (from..=to).map(|n| json!({"event": format!("e{n}")})).collect();
        json!({"events": events, "last": to, "lost": 0, "ended": false})
    }

    fn shown(pane: &Pane, rows: usize) -> Vec<String> {
        pane.shown(rows).map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn it_follows_unless_somebody_reads_further_up() {
        let mut pane = Pane::of("sub-1");
        pane.take(&page(1, 5), true);
        assert_eq!(shown(&pane, 2), ["e4", "e5"]);
        pane.scroll(2);
        assert_eq!(shown(&pane, 2), ["e2", "e3"]);
        pane.take(&page(6, 7), false);
        assert_eq!(shown(&pane, 2), ["e2", "e3"], "what comes does not move what is read");
        pane.scroll(99);
        assert_eq!(shown(&pane, 2), ["e1", "e2"]);
        pane.scroll(-99);
        assert_eq!(shown(&pane, 2), ["e6", "e7"]);
        assert_eq!(shown(&pane, 99).len(), 7);
        pane.take(&page(1, 1), true);
        assert_eq!(shown(&pane, 9), ["e1"], "a daemon that began anew");
    }

    #[test]
    fn it_is_bounded_and_says_what_is_missing() {
        let mut pane = Pane::of("sub-1");
        pane.take(&page(1, 3_000), true);
        assert_eq!(pane.lines.len(), LINES);
        pane.take(&json!({"events": [], "lost": 7, "ended": true}), false);
        assert_eq!(shown(&pane, 1), ["… 7 events are no longer kept"]);
        assert!(pane.ended);
    }
}
