//! The thread that asks the daemon: what runs, what is left of budgets, and the events of the run that is looked at. All on one
//! connection that is kept; where it breaks, that life of the daemon is over and the daemon is looked for again.

use super::News;
use super::state::Watch;
use crate::client::{ClientError, Daemon, Kept};
use serde_json::{Value, json};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// A look may take one part in so many of the time: with thousands of ended runs the looks become rarer.
const SHARE: u32 = 50;

/// Looks between two at budgets.
const BUDGET_EVERY: u32 = 5;

/// Events that are asked for at first, and at once.
const FIRST: u64 = 500;

/// Pages of events in one look.
const PAGES: usize = 4;

/// Asks until nobody wants to know any more.
pub(super) fn run(daemon: &Daemon, wanted: &Receiver<Watch>, news: &Sender<News>) {
    let mut watcher = Watcher { kept: daemon.keep(), watch: Watch::default(), log: None, looks: 0 };
    loop {
        let began = Instant::now();
        for one in watcher.look() {
            if news.send(one).is_err() {
                return;
            }
        }
        let pause = EVERY.max(began.elapsed() * SHARE);
        match wanted.recv_timeout(pause) {
            Ok(watch) => watcher.watch = wanted.try_iter().last().unwrap_or(watch),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

struct Watcher<'a> {
    kept: Kept<'a>,
    watch: Watch,
    /// The run whose events are followed, and the number of the last that was told.
    log: Option<(String, u64)>,
    looks: u32,
}

impl Watcher<'_> {
    /// All news of one look. What a daemon turns down is said and is no reason to take it for gone.
    fn look(&mut self) -> Vec<News> {
        let mut news = Vec::new();
        let looked =
            self.runs(&mut news).and_then(|()| self.budget(&mut news)).and_then(|()| self.events(&mut news));
        if let Err(error) = looked {
            news.push(match error {
                ClientError::Refused { .. } => News::Said(error.to_string(), true),
                ClientError::Broken(why) => News::Lost(why),
                ClientError::NoDaemon { error, .. } => News::Lost(error.to_string()),
                ClientError::Config(_) | ClientError::NoToken { .. } | ClientError::NotPermitted { .. } => {
                    News::Lost(error.to_string())
                }
            });
        }
        news
    }

    fn runs(&mut self, news: &mut Vec<News>) -> Result<(), ClientError> {
        if !self.kept.is_open() {
            // Numbers of events are those of one life.
            (self.log, self.looks) = (None, 0);
        }
        news.push(News::Runs(self.kept.op("ps", json!({ "all": self.watch.all }))?));
        Ok(())
    }

    fn budget(&mut self, news: &mut Vec<News>) -> Result<(), ClientError> {
        if self.looks.is_multiple_of(BUDGET_EVERY) {
            let mut status = self.kept.op("status", json!({}))?;
            news.push(News::Budget(status["budget"].take()));
        }
        self.looks = self.looks.wrapping_add(1);
        Ok(())
    }

    fn events(&mut self, news: &mut Vec<News>) -> Result<(), ClientError> {
        let Some(name) = self.watch.log.clone() else {
            self.log = None;
            return Ok(());
        };
        for _ in 0..PAGES {
            let after = self.log.as_ref().filter(|(followed, _)| *followed == name).map(|(_, last)| *last);
            let asked = match after {
                Some(after) => json!({ "handle": name, "after": after }),
                None => json!({ "handle": name, "lines": FIRST }),
            };
            let page = match self.kept.op("logs", asked) {
                // Forgotten meanwhile, or never asked anything: there is nothing to show.
                Err(ClientError::Refused { .. }) => json!({ "ended": true }),
                page => page?,
            };
            self.log = Some((name.clone(), page["last"].as_u64().unwrap_or(0)));
            let is_last = page["events"].as_array().is_none_or(Vec::is_empty);
            news.push(News::Events { name: name.clone(), page, fresh: after.is_none() });
            if is_last {
                break;
            }
        }
        Ok(())
    }
}

/// What is left of budgets, in words; nothing where nothing is capped.
pub(super) fn budget_words(budget: &Value) -> Option<String> {
    let left = &budget["left"];
    let windows = left["windows"].as_array().into_iter().flatten();
    let windows = windows.filter_map(|window| Some((window["per"].as_str()?, window)));
    let caps = windows.chain([("life", &left["lifetime"])]);
    let words: Vec<String> = caps.filter_map(|(per, cap)| cap_words(per, cap)).collect();
    (!words.is_empty()).then(|| format!("left {}", words.join(", ")))
}

fn cap_words(per: &str, cap: &Value) -> Option<String> {
    let tokens = cap["tokens"].as_u64().map(|tokens| format!("{} tokens", crate::cells::amount(tokens)));
    let usd = cap["usd"].as_f64().map(|usd| format!("${usd:.2}"));
    let parts: Vec<String> = [tokens, usd].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("this {per} {}", parts.join(" and ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_read_as_what_is_left() {
        let budget = json!({"left": {
            "lifetime": {"tokens": 1_250_000},
            "windows": [{"per": "hour", "usd": 3.1, "tokens": 900, "ends_in_ms": 5}, {"per": "day", "ends_in_ms": 5}],
        }});
        let words = budget_words(&budget).expect("words");
        assert_eq!(words, "left this hour 900 tokens and $3.10, this life 1.2M tokens");
        assert_eq!(budget_words(&json!({"live": 3})), None);
    }
}
