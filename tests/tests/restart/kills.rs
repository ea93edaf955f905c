//! Kills at instants all over a daemon's life, life after life on one state directory. `KILLS=200` makes as many; 20 without.

use super::daemon::{Daemon, Home};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What a life is killed after. Not chance, so that a failure can be seen again.
const MOMENTS: [&str; 8] = [
    "restore.done",
    "subagent.spawn",
    "subagent.respawn",
    "child.ready",
    "subagent.result",
    "worker.turn",
    "child.exit",
    "subagent.turn",
];

/// What is known of all lives so far.
#[derive(Default)]
struct Books {
    /// The run of each handle.
    runs: BTreeMap<String, String>,
    /// How each that ended did.
    ended: BTreeMap<String, String>,
    /// Usage and attempt as they were last.
    last: BTreeMap<String, (u64, u64)>,
    /// Those that had not ended.
    live: BTreeSet<String>,
}

#[test]
fn kills_lose_and_double_nothing() {
    let kills: usize = std::env::var("KILLS").map_or(20, |text| text.parse().expect("a number"));
    let home = Home::new();
    let mut books = Books::default();
    for life in 0..kills {
        let mut daemon = home.start();
        let killed = begin(&mut daemon, &books);
        // The further of these need time: the daemon is killed somewhere on its way to it.
        let moment = MOMENTS[life % MOMENTS.len()];
        daemon.find(|line| line["note"] == moment);
        for line in 0..life % 7 {
            daemon.call(1_000 + line as u64, "subagent.list", &json!({}));
            daemon.next_line().expect("it lives");
        }
        daemon.kill();
        let (_, seen) = daemon.ended();
        books.look(life, &home.records(), &seen, &killed);
    }
    let mut last = home.start();
    let done = last.note("restore.done", None).expect("it starts");
    assert_eq!(done["fields"]["quarantined"], 0);
    println!(
        "{kills} kills, {} runs, {} of them ended; the last start: {}",
        books.runs.len(),
        books.ended.len(),
        done["fields"]
    );
    assert!(books.ended.len() >= kills / 2, "{:?}", books.ended);
    last.drain();
    let (code, _) = last.ended();
    assert_eq!(code, Some(0));
}

/// Asks for a bit of everything, and kills the oldest runs there are; the calls of these kills.
fn begin(daemon: &mut Daemon, books: &Books) -> BTreeMap<u64, String> {
    daemon.note("restore.done", None).expect("it starts");
    let oldest: Vec<&String> = books.live.iter().take(3).collect();
    let kills: BTreeMap<u64, String> = (50..).zip(oldest.into_iter().cloned()).collect();
    for (call, handle) in &kills {
        daemon.call(*call, "subagent.kill", &json!({"handle": handle}));
    }
    daemon.prompt("begin");
    daemon.call(1, "subagent.run", &json!({"instruction": "quick", "mode": "async"}));
    daemon.call(2, "subagent.run", &json!({"instruction": "turn", "mode": "warm"}));
    if let Some(again) = books.live.iter().next_back() {
        // So that there is one to be taken up, where the moment is that.
        daemon.call(3, "subagent.status", &json!({"handle": again}));
    }
    kills
}

impl Books {
    fn look(
        &mut self,
        life: usize,
        records: &BTreeMap<String, Value>,
        seen: &[Value],
        killed: &BTreeMap<u64, String>,
    ) {
        for (call, handle) in killed {
            let told =
                seen.iter().any(|line| line["answer"] == *call && line["value"]["status"] == "cancelled");
            let is = records.get(handle).map(|record| record["status"].clone());
            assert!(
                !told || is == Some(json!("cancelled")),
                "life {life}: {handle} was killed and is {is:?}"
            );
        }
        self.live.clear();
        for (handle, record) in records {
            let run = record["run_id"].as_str().expect("an id").to_owned();
            let first = self.runs.entry(handle.clone()).or_insert_with(|| run.clone());
            assert_eq!(*first, run, "life {life}: {handle} was given twice");
            let status = record["status"].as_str().expect("a status");
            if let Some(was) = self.ended.get(handle) {
                assert_eq!(was, status, "life {life}: {handle} had ended");
            }
            let number = |value: &Value| value.as_u64().expect("a number");
            let now = (number(&record["usage"]["input"]), number(&record["attempt"]));
            let (used, attempt) = self.last.insert(handle.clone(), now).unwrap_or(now);
            // A quick one is one call of 100 tokens in each attempt; nothing is counted twice.
            assert!(
                used <= now.0 && now.0 <= 100 * now.1,
                "life {life}: {handle} used {} in {}",
                now.0,
                now.1
            );
            assert!((attempt..=attempt + 1).contains(&now.1), "life {life}: {handle}: {attempt}, {}", now.1);
            if ["held", "spawned", "running", "retiring", "parked"].contains(&status) {
                self.live.insert(handle.clone());
            } else {
                self.ended.insert(handle.clone(), status.to_owned());
            }
        }
        let gone = self.runs.keys().filter(|handle| !records.contains_key(*handle));
        for handle in gone.cloned().collect::<Vec<_>>() {
            // One that was not to outlive its daemon.
            self.ended.remove(&handle);
        }
    }
}
