//! A child against a provider's server that this test controls, in every dialect.

mod answers;
mod budgets;
mod cells;
mod cut;
mod matrix;
#[cfg(feature = "real-model")]
mod real;
mod refusals;
mod streams;
mod throttles;
mod tls;
mod windows;

use crate::rig::{FAKE, Rig, Run};
use agentd_core::wire::Up;
use agentd_core::wire::message::{Dialect, Endpoint, Remote};
use agentd_tests::model_server::{ModelServer, Speaks};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use tempfile::TempDir;

/// The credential of every endpoint here.
const KEY: &str = "sk-canary-0123456789";

/// A run whose model is behind these addresses, in this order. Silence ends after ten minutes: no test waits for it.
fn run(speaks: Speaks, bases: &[&str]) -> Run {
    let remote = Remote {
        model: "the-model".into(),
        endpoints: bases.iter().map(|url| Endpoint { url: (*url).into(), token: Some(KEY.into()) }).collect(),
        headers: BTreeMap::new(),
        timeout_ms: 600_000,
        max_output: None,
    };
    let dialect = match speaks {
        Speaks::Openai => Dialect::Openai(remote),
        Speaks::Responses => Dialect::OpenaiResponses(remote),
        Speaks::Anthropic => Dialect::Anthropic(remote),
    };
    Run::new(json!([])).change(|spawn| spawn.model.dialect = dialect)
}

/// A run against one server.
fn asking(server: &ModelServer) -> Run {
    run(server.speaks(), &[&server.base()])
}

fn change(run: Run, change: impl FnOnce(&mut Remote)) -> Run {
    run.change(|spawn| change(spawn.model.dialect.remote_mut().expect("a remote model")))
}

/// A server of tools that remembers what it was called with.
struct Tools {
    folder: TempDir,
}

impl Tools {
    fn new() -> Tools {
        Tools { folder: tempfile::tempdir().expect("a folder") }
    }

    /// Gives the run the server, as `fake`.
    fn give(&self, run: Run) -> Run {
        let log = self.folder.path().join("log");
        run.program("fake", &[FAKE, "--log", log.to_str().expect("UTF-8")])
    }

    /// Name and arguments of each call that reached it, in order.
    fn calls(&self) -> Vec<(String, Value)> {
        let log = fs::read_to_string(self.folder.path().join("log")).expect("a log");
        let messages = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let calls = messages.filter(|message| message["method"] == "tools/call");
        calls
            .map(|m| {
                (m["params"]["name"].as_str().expect("a name").to_owned(), m["params"]["arguments"].clone())
            })
            .collect()
    }
}

/// The texts of the model calls' usage frames: input, output, estimated.
fn usages(rig: &Rig) -> Vec<(u64, u64, bool)> {
    let usages = rig.seen.iter().filter_map(|up| match up {
        Up::Usage(usage) => Some((usage.input, usage.output, usage.estimated)),
        _ => None,
    });
    usages.collect()
}
