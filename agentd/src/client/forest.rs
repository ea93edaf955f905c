//! Runs as `ps` lists them, in the order of who delegated what.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Levels of the tree; what is deeper stands on the last.
const LEVELS: usize = 64;

/// Every run below the one that asked for it, with its depth. Those whose parent is not in the list stand on the left, but
/// what the conversation delegated stands below its newest worker.
pub(crate) fn forest(runs: &[Value]) -> Vec<(usize, &Value)> {
    let mut below: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    let handles: BTreeSet<&str> = runs.iter().map(|run| word(&run["handle"])).collect();
    let mut tops = Vec::new();
    for run in runs {
        let parent = word(&run["parent"]);
        if parent.is_empty() || !handles.contains(parent) {
            tops.push(run);
        } else {
            below.entry(parent).or_default().push(run);
        }
    }
    let worker = runs.iter().rev().find(|run| is_worker(run));
    let (delegated, mut others): (Vec<&Value>, Vec<&Value>) =
        tops.into_iter().partition(|run| worker.is_some() && !is_worker(run) && run["delegated"] == true);
    let mut rows = Vec::with_capacity(runs.len());
    others.reverse();
    let mut open: Vec<(usize, &Value)> = others.into_iter().map(|run| (0, run)).collect();
    while let Some((depth, run)) = open.pop() {
        rows.push((depth, run));
        // Taken out, so that a list that is no tree ends all the same.
        let mut children = below.remove(word(&run["handle"])).unwrap_or_default();
        if worker.is_some_and(|worker| worker["run_id"] == run["run_id"]) {
            children.extend(&delegated);
        }
        children.reverse();
        open.extend(children.into_iter().map(|child| ((depth + 1).min(LEVELS), child)));
    }
    rows
}

/// Whether a run is a worker of the conversation.
pub(crate) fn is_worker(run: &Value) -> bool {
    run["role"] == "worker"
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names(runs: &[Value]) -> Vec<(usize, String)> {
        let name = |run: &Value| run["handle"].as_str().unwrap_or("root").to_owned();
        forest(runs).into_iter().map(|(depth, run)| (depth, name(run))).collect()
    }

    fn run(handle: &str, parent: Option<&str>, delegated: bool) -> Value {
        json!({"handle": handle, "run_id": handle, "role": "subagent", "parent": parent, "delegated": delegated})
    }

    #[test]
    fn each_run_stands_once_below_the_one_that_asked() {
        let worker = |id: &str| json!({"handle": null, "run_id": id, "role": "worker", "delegated": false});
        let runs = [
            worker("old"),
            run("sub-1", None, true),
            run("sub-2", None, false),
            run("sub-3", Some("sub-1"), true),
            worker("new"),
            run("sub-4", Some("sub-9"), true),
        ];
        let wanted = [(0, "root"), (0, "sub-2"), (0, "root"), (1, "sub-1"), (2, "sub-3"), (1, "sub-4")];
        assert_eq!(names(&runs), wanted.map(|(depth, name)| (depth, name.to_owned())));
        // Without a worker they stand on the left.
        assert_eq!(names(&runs[1..2]), [(0, "sub-1".to_owned())]);
        // A list that is no tree ends.
        assert_eq!(names(&[run("a", Some("b"), true), run("b", Some("a"), true)]), []);
    }
}
