//! Kills at random instants, life after life on one state directory. `KILLS=200` makes as many; 20 without.

use super::daemon::Home;
use serde_json::json;
use std::collections::BTreeMap;

#[test]
fn random_kills_lose_and_double_nothing() {
    let kills: u64 = std::env::var("KILLS").map_or(20, |text| text.parse().expect("a number"));
    let home = Home::new();
    let mut given: BTreeMap<String, String> = BTreeMap::new();
    let mut ended: BTreeMap<String, String> = BTreeMap::new();
    // Not chance: each life is killed after another number of lines, so that a failure can be seen again.
    for life in 0..kills {
        let mut daemon = home.start();
        daemon.note("restore.done", None).expect("it starts");
        daemon.prompt("begin");
        daemon.call(1, "subagent.run", &json!({"instruction": "turn", "mode": "warm"}));
        let lines = 3 + (life * 7) % 41;
        for line in 0..lines {
            // So that there is always one more to come.
            daemon.call(100 + line, "subagent.list", &json!({}));
            daemon.next_line().expect("it lives");
        }
        daemon.kill();
        let (_, seen) = daemon.ended();
        for line in &seen {
            let ends = line["note"] == "subagent.result";
            if let (true, Some(handle)) = (ends, line["handle"].as_str()) {
                ended.entry(handle.to_owned()).or_default();
            }
        }
        let records = home.records();
        for (handle, record) in &records {
            let run = record["run_id"].as_str().expect("an id").to_owned();
            let first = given.entry(handle.clone()).or_insert_with(|| run.clone());
            assert_eq!(*first, run, "life {life}: {handle} was given twice");
            let status = record["status"].as_str().expect("a status");
            let terminal = !["held", "spawned", "running", "retiring", "parked"].contains(&status);
            if let Some(was) = ended.get(handle).filter(|was| !was.is_empty()) {
                assert_eq!(was, status, "life {life}: {handle} had ended");
            }
            if terminal {
                ended.insert(handle.clone(), status.to_owned());
            }
        }
    }
    assert!(given.len() >= 4, "{given:?}");
    let mut last = home.start();
    let done = last.note("restore.done", None).expect("it starts");
    println!(
        "{kills} kills, {} runs, {} ended; the last start: {}",
        given.len(),
        ended.len(),
        done["fields"]
    );
    last.drain();
    let (code, _) = last.ended();
    assert_eq!(code, Some(0));
}
