//! One run as `ps` tells it, read once and made harmless: from here on nothing in it can act on a terminal.

use crate::cells::plain;
use crate::client::ROOT;
use crate::client::forest::{forest, is_worker};
use agentd_core::money::Usd;
use serde_json::Value;

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Run {
    /// Its run id, which is its for ever.
    pub(super) id: String,
    /// Its handle; the conversation's worker is `root`.
    pub(super) name: String,
    pub(super) status: String,
    pub(super) mode: String,
    /// What it waits on, with its age; of one that has ended, why.
    pub(super) about: String,
    /// It has not ended.
    pub(super) is_live: bool,
    pub(super) step: Option<u64>,
    pub(super) title: String,
    pub(super) own: Used,
    /// Its own use and all below.
    pub(super) subtree: Used,
    /// Levels below the left.
    pub(super) depth: usize,
    /// It delegated something that is in the list.
    pub(super) has_children: bool,
}

/// Tokens in and out, and what they cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Used {
    pub(super) tokens: u64,
    pub(super) usd: Usd,
    pub(super) unpriced: bool,
}

impl Run {
    /// It is a worker of the conversation.
    pub(super) fn is_root(&self) -> bool {
        self.name == ROOT
    }
}

impl Used {
    /// As the daemon says it; what is missing is nothing.
    pub(super) fn of(value: &Value) -> Used {
        let tokens = |key: &str| value[key].as_u64().unwrap_or(0);
        Used {
            tokens: tokens("input").saturating_add(tokens("output")),
            usd: value["usd"].as_f64().and_then(Usd::from_dollars).unwrap_or_default(),
            unpriced: value["unpriced"] == true,
        }
    }
}

/// All runs of an answer of `ps`, each below the one that asked for it.
pub(super) fn runs(told: &Value) -> Vec<Run> {
    let rows = forest(told["runs"].as_array().map_or(&[], Vec::as_slice));
    let mut runs: Vec<Run> = rows.into_iter().map(|(depth, run)| read(run, depth)).collect();
    for at in 1..runs.len() {
        runs[at - 1].has_children = runs[at].depth > runs[at - 1].depth;
    }
    runs
}

fn read(run: &Value, depth: usize) -> Run {
    let word = |key: &str| plain(run[key].as_str().unwrap_or_default());
    let is_live = run["waits"].is_string();
    Run {
        id: word("run_id"),
        name: if is_worker(run) { ROOT.to_owned() } else { word("handle") },
        status: word("status"),
        mode: word("mode"),
        about: if is_live { word("waits") } else { word("error") },
        is_live,
        step: run["step"].as_u64(),
        title: word("title"),
        own: Used::of(&run["usage"]["own"]),
        subtree: Used::of(&run["usage"]["subtree"]),
        depth,
        has_children: false,
    }
}
