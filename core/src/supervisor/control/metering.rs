//! What is counted of runs, and the text of `/metrics`.

use super::super::Core;
use crate::event::Door;
use crate::metrics::{Counter, Gauge, Timing};
use crate::record::Tokens;
use crate::run::process::Process;
use crate::time::Duration;
use crate::wire::message::Role;

impl Core {
    /// A process is up.
    pub(in crate::supervisor) fn meter_spawned(&mut self, role: Role) {
        self.surface.metrics.count(Counter::Spawned, &[role_name(role)]);
    }

    /// A process is gone.
    pub(in crate::supervisor) fn meter_exited(&mut self, role: Role, status: &str) {
        self.surface.metrics.count(Counter::Exited, &[role_name(role), status]);
    }

    /// A child has said its first word.
    pub(in crate::supervisor) fn meter_ready(&mut self, after: Duration) {
        self.surface.metrics.took(Timing::SpawnToReady, after);
    }

    /// A ping was answered.
    pub(in crate::supervisor) fn meter_ping(&mut self, took: Option<Duration>) {
        if let Some(took) = took {
            self.surface.metrics.took(Timing::Ping, took);
        }
    }

    /// A model call was charged.
    pub(in crate::supervisor) fn meter_tokens(&mut self, tokens: &Tokens) {
        self.surface.metrics.add(Counter::Tokens, &["input"], tokens.input);
        self.surface.metrics.add(Counter::Tokens, &["output"], tokens.output);
        self.surface.metrics.spent(tokens.usd.nanos());
    }

    /// One of anything else.
    pub(in crate::supervisor) fn meter(&mut self, counter: Counter, labels: &[&str]) {
        self.surface.metrics.count(counter, labels);
    }

    pub(super) fn metrics_text(&self) -> String {
        let amount = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let live = |role| {
            let alive = self.busy.iter().filter_map(|node| self.runs.get(node)).filter(|run| {
                run.record.role == role && !matches!(run.process, Process::Held { .. } | Process::Gone)
            });
            amount(alive.count())
        };
        let held = self.busy.iter().filter_map(|node| self.runs.get(node));
        let held = held.filter(|run| matches!(run.process, Process::Held { .. })).count();
        let mut gauges = Vec::new();
        for role in [Role::Worker, Role::Subagent] {
            gauges.push(Gauge {
                name: "children",
                help: "Child processes that are not gone yet.",
                label: Some(("role", role_name(role))),
                value: live(role),
            });
        }
        let plain = |name, help, value| Gauge { name, help, label: None, value };
        gauges.push(plain("runs_held", "Runs that wait for a permit.", amount(held)));
        let waiting = amount(self.conversation.waiting.len());
        gauges.push(plain("prompts_waiting", "Prompts that wait for their turn.", waiting));
        gauges.push(plain("draining", "1 while the daemon drains.", u64::from(self.drain.is_some())));
        for door in Door::ALL {
            let open = self.surface.connections.values().filter(|one| one.door() == door).count();
            gauges.push(Gauge {
                name: "connections",
                help: "Open connections.",
                label: Some(("door", door.name())),
                value: amount(open),
            });
        }
        self.surface.metrics.text(&gauges)
    }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Worker => "worker",
        Role::Subagent => "subagent",
    }
}
