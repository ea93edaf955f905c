//! What a reload can change while a daemon lives (S10.8): one line for every key of the table, which a test holds to it, so
//! that whoever adds a key says what becomes of it.

use super::effective::Effective;
use std::collections::BTreeSet;

/// When a key that was changed counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counts {
    /// From the reload on.
    Live,
    /// From the next start of the daemon on: what it governs is made once, as a daemon begins.
    AfterRestart,
}

use Counts::{AfterRestart, Live};

/// Every key that is built.
const KEYS: &[(&str, Counts)] = &[
    ("agent.name", AfterRestart),
    ("agent.instruction", Live),
    ("agent.workspace", Live),
    ("agent.wake_on", Live),
    ("agent.worker_idle", Live),
    ("intelligence.dialect", Live),
    ("intelligence.endpoints", Live),
    ("intelligence.model", Live),
    ("intelligence.token", Live),
    ("intelligence.token_file", Live),
    ("intelligence.headers", Live),
    ("intelligence.timeout", Live),
    ("intelligence.max_output", Live),
    ("intelligence.models", Live),
    ("intelligence.prices", Live),
    ("intelligence.swap_policy", Live),
    ("intelligence.budget.lifetime.tokens", Live),
    ("intelligence.budget.lifetime.usd", Live),
    ("intelligence.budget.windows", Live),
    ("intelligence.budget.on_exhausted", Live),
    ("intelligence.budget.degrade.model", Live),
    ("mcp.servers", Live),
    ("limits.run.steps", Live),
    ("limits.run.tokens", Live),
    ("limits.run.deadline", Live),
    ("limits.run.repeats", Live),
    ("limits.run.tool_result_bytes", Live),
    ("limits.run.usd", Live),
    ("limits.subagents.breadth", Live),
    ("limits.subagents.total", Live),
    ("limits.subagents.depth", Live),
    ("limits.subagents.rate", Live),
    ("limits.subagents.queue", Live),
    ("subagents.defaults.mode", Live),
    ("subagents.defaults.priority", Live),
    ("subagents.defaults.limits.steps", Live),
    ("subagents.defaults.limits.tokens", Live),
    ("subagents.defaults.limits.deadline", Live),
    ("subagents.defaults.limits.memory", Live),
    ("subagents.defaults.limits.cpu", Live),
    ("subagents.defaults.limits.usd", Live),
    ("subagents.defaults.model", Live),
    ("subagents.defaults.durable", Live),
    ("subagents.max_attempts", Live),
    ("spawn.env_passthrough", AfterRestart),
    ("store.kind", AfterRestart),
    ("store.path", AfterRestart),
    ("store.min_free", AfterRestart),
    ("store.durability.commit", AfterRestart),
    ("store.durability.work", Live),
    ("lifecycle.drain_timeout", Live),
    ("lifecycle.liveness.ping", Live),
    ("lifecycle.liveness.pong", Live),
    ("lifecycle.liveness.progress", Live),
    ("lifecycle.liveness.ready", Live),
    ("lifecycle.liveness.hard_deadline_grace", Live),
    ("lifecycle.kill.term_after", Live),
    ("lifecycle.kill.kill_after", Live),
    ("lifecycle.kill.exit_after_result", Live),
    ("lifecycle.journal", AfterRestart),
    ("a2a.listen", AfterRestart),
    ("a2a.tls.cert", AfterRestart),
    ("a2a.tls.key", AfterRestart),
    ("a2a.principals", AfterRestart),
    ("observability.log_level", Live),
    ("observability.log_format", Live),
    ("observability.metrics_addr", AfterRestart),
];

/// The keys that differ between what is in use and what was read: those that count from now on, and those that need a
/// restart. A key that is in no line needs one.
pub(crate) fn changes(in_use: &Effective, new: &Effective) -> (BTreeSet<String>, BTreeSet<String>) {
    let is_live = |path: &String| KEYS.iter().any(|(key, counts)| key == path && *counts == Live);
    in_use.changes(new).into_iter().partition(is_live)
}

#[cfg(test)]
mod tests {
    use super::super::schema::{self, Shape};
    use super::super::{Loaded, load_text};
    use super::*;
    use std::path::Path;

    #[test]
    fn every_key_that_is_built_has_one_line_and_no_other_has() {
        let built = schema::leaves().into_iter().filter(|leaf| !matches!(leaf.key.shape, Shape::Later));
        let built: Vec<String> = built.map(|leaf| leaf.path).collect();
        let lines: Vec<&str> = KEYS.iter().map(|(key, _)| *key).collect();
        let missing: Vec<&String> = built.iter().filter(|key| !lines.contains(&key.as_str())).collect();
        assert!(missing.is_empty(), "say in config/live.rs what a reload makes of {missing:?}");
        let unknown: Vec<&&str> = lines.iter().filter(|key| !built.iter().any(|path| path == *key)).collect();
        assert!(unknown.is_empty(), "{unknown:?} are no keys");
        assert_eq!(lines.len(), built.len(), "a key has two lines");
    }

    #[test]
    fn the_page_lists_the_keys_that_need_a_restart() {
        let page = include_str!("../../../docs/configuration.md");
        let (_, section) = page.split_once("## What a reload changes\n").expect("the section");
        let (section, _) = section.split_once("\n## ").expect("its end");
        let listed = section.lines().filter_map(|line| line.strip_prefix("- `")?.strip_suffix('`'));
        let wanted = KEYS.iter().filter(|(_, counts)| *counts == AfterRestart).map(|(key, _)| *key);
        assert_eq!(listed.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
    }

    fn effective(text: &str) -> Effective {
        let base = "intelligence: {dialect: mock, endpoints: [mock:builtin]}\n";
        let Loaded { effective, .. } =
            load_text("agentd.yaml", &format!("{base}{text}"), Path::new("/srv")).expect("it loads");
        effective
    }

    fn changed(before: &str, after: &str) -> (Vec<String>, Vec<String>) {
        let (live, restart) = changes(&effective(before), &effective(after));
        (live.into_iter().collect(), restart.into_iter().collect())
    }

    #[test]
    fn what_is_spelled_otherwise_and_means_the_same_is_no_change() {
        for (before, after) in [
            ("", "agent: {worker_idle: 1m}"),
            ("limits: {subagents: {rate: 8/2s}}", "limits: {subagents: {rate: 8/2000ms}}"),
            ("store: {min_free: 256MiB}", "store: {min_free: 268435456B}"),
            ("", "agent: {wake_on: [a2a_message, human_reply, workflow_failed]}"),
            ("", "mcp: {servers: []}"),
            ("", "a2a: {listen: [unix]}"),
            ("", "limits: {run: {deadline: 60m, steps: 500}}"),
            ("store: {path: state}", "store: {path: /srv/./state}"),
            (
                "mcp: {servers: [{name: f, builtin: files, root: /tmp}]}",
                "mcp: {servers: [{root: /tmp, timeout: 1m, builtin: files, name: f, write: false}]}",
            ),
        ] {
            assert_eq!(changed(before, after), (vec![], vec![]), "{before} and {after}");
        }
    }

    #[test]
    fn what_changes_is_named_with_when_it_counts() {
        let (live, restart) = changed(
            "limits: {subagents: {breadth: 4}}\nstore: {kind: memory}",
            "limits: {subagents: {breadth: 5}}\nagent: {name: other, instruction: hi}\nmcp: {servers: [{name: f, builtin: files, root: /tmp}]}",
        );
        assert_eq!(live, ["agent.instruction", "limits.subagents.breadth", "mcp.servers"]);
        assert_eq!(restart, ["agent.name", "store.kind"]);
    }

    #[test]
    fn a_key_that_needs_a_restart_is_named_until_there_is_one() {
        let (started, new) = (effective(""), effective("agent: {name: other, worker_idle: 9s}"));
        let mut in_use = started.clone();
        let (live, restart) = changes(&in_use, &new);
        in_use.take(&live, &new);
        let again = changes(&in_use, &new);
        assert_eq!((again.0.len(), &again.1), (0, &restart));
        assert_eq!(changes(&in_use, &started).0, live, "and taking it back is a change too");
    }
}
