//! Counters and histograms, and the text that Prometheus reads (S17.4).
//!
//! Owns the families: names, helps and labels are written down here and nowhere else. Labels take few values, all of them
//! the program's own words, and a family never has more than [`limits::METRIC_SERIES`] series: what would be one more is
//! counted under `other`. Refuses to know a run. Called by `supervisor`.

use crate::limits;
use crate::money::Usd;
use crate::time::Duration;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Counter {
    /// Processes made, by role.
    Spawned,
    /// Processes gone, by role and by what their run had become.
    Exited,
    /// Spawns and handle calls that were turned down, by gate.
    Refused,
    /// Verdicts of liveness that ended a child.
    Verdicts,
    /// Signals sent to process groups.
    Signals,
    /// Children that broke the control protocol.
    ProtocolErrors,
    /// Records that could not be saved, each time.
    StoreFailures,
    /// Tokens used, by direction.
    Tokens,
    /// Answers to HTTP requests, by status.
    Answers,
    /// Connections that were refused at once, by why.
    TurnedAway,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Timing {
    /// From a process's start to its first word.
    SpawnToReady,
    /// From a ping to its pong.
    Ping,
}

/// Everything counted since the daemon began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    counters: BTreeMap<Counter, BTreeMap<Vec<String>, u64>>,
    timings: BTreeMap<Timing, Histogram>,
    /// Nanodollars.
    cost: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Histogram {
    /// Values in each of [`BOUNDS_MS`], and above.
    buckets: [u64; BOUNDS_MS.len() + 1],
    sum_ns: u64,
}

/// Upper bounds of buckets, in milliseconds.
const BOUNDS_MS: [u64; 12] = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 5_000, 30_000];

/// What all model calls used, in tokens and as far as their models have a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Used {
    /// Tokens in.
    pub input: u64,
    /// Tokens out.
    pub output: u64,
    /// What they cost.
    pub usd: Usd,
}

/// A value as of now.
#[derive(Debug, Clone, PartialEq)]
pub struct Gauge {
    /// The family.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
    /// Its label and that label's value, if it has one.
    pub label: Option<(&'static str, &'static str)>,
    /// The value.
    pub value: u64,
}

struct Family {
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
}

impl Counter {
    const ALL: [Counter; 10] = [
        Counter::Spawned,
        Counter::Exited,
        Counter::Refused,
        Counter::Verdicts,
        Counter::Signals,
        Counter::ProtocolErrors,
        Counter::StoreFailures,
        Counter::Tokens,
        Counter::Answers,
        Counter::TurnedAway,
    ];

    fn family(self) -> Family {
        let (name, help, labels): (_, _, &[&str]) = match self {
            Counter::Spawned => ("children_spawned", "Child processes made.", &["role"]),
            Counter::Exited => (
                "children_exited",
                "Child processes gone, by what their run had become.",
                &["role", "status"],
            ),
            Counter::Refused => ("refused", "Spawns and handle calls turned down.", &["gate"]),
            Counter::Verdicts => ("liveness_verdicts", "Children judged unhealthy.", &["verdict"]),
            Counter::Signals => ("kill_signals", "Signals sent to process groups of children.", &["signal"]),
            Counter::ProtocolErrors => ("protocol_errors", "Children that broke the control protocol.", &[]),
            Counter::StoreFailures => ("store_failures", "Records that could not be saved, each time.", &[]),
            Counter::Tokens => ("tokens", "Tokens used by models.", &["direction"]),
            Counter::Answers => ("http_answers", "Answers to HTTP requests.", &["status"]),
            Counter::TurnedAway => ("connections_refused", "Connections refused at once.", &["why"]),
        };
        Family { name, help, labels }
    }
}

impl Timing {
    const ALL: [Timing; 2] = [Timing::SpawnToReady, Timing::Ping];

    fn family(self) -> (&'static str, &'static str) {
        match self {
            Timing::SpawnToReady => ("spawn_ready_seconds", "From a child's start to its first word."),
            Timing::Ping => ("ping_seconds", "From a ping of a child to its pong."),
        }
    }
}

impl Metrics {
    /// Counts one.
    pub fn count(&mut self, counter: Counter, labels: &[&str]) {
        self.add(counter, labels, 1);
    }

    /// Counts so many.
    pub fn add(&mut self, counter: Counter, labels: &[&str], by: u64) {
        debug_assert_eq!(labels.len(), counter.family().labels.len(), "{counter:?}");
        let series = self.counters.entry(counter).or_default();
        let mut labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        if !series.contains_key(&labels) && series.len() >= limits::METRIC_SERIES {
            labels.iter_mut().for_each(|label| *label = "other".to_owned());
        }
        let value = series.entry(labels).or_default();
        *value = value.saturating_add(by);
    }

    /// Tokens in and out and nanodollars of all model calls.
    pub fn used(&self) -> Used {
        let direction = |name: &str| {
            let series = self.counters.get(&Counter::Tokens);
            series.and_then(|series| series.get([name.to_owned()].as_slice())).copied().unwrap_or(0)
        };
        Used { input: direction("input"), output: direction("output"), usd: Usd::from_nanos(self.cost) }
    }

    /// Adds what a model call cost, in nanodollars.
    pub fn spent(&mut self, nanos: u64) {
        self.cost = self.cost.saturating_add(nanos);
    }

    /// Measures once.
    pub fn took(&mut self, timing: Timing, took: Duration) {
        let histogram = self.timings.entry(timing).or_default();
        let bucket = BOUNDS_MS.iter().position(|bound| took <= Duration::from_millis(*bound));
        histogram.buckets[bucket.unwrap_or(BOUNDS_MS.len())] += 1;
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        histogram.sum_ns = histogram.sum_ns.saturating_add(ns);
    }

    /// The text, with values as of now.
    pub fn text(&self, gauges: &[Gauge]) -> String {
        let mut text = String::new();
        for counter in Counter::ALL {
            let Family { name, help, labels } = counter.family();
            head(&mut text, &format!("{name}_total"), help, "counter");
            let none = BTreeMap::new();
            let series = self.counters.get(&counter).unwrap_or(&none);
            if labels.is_empty() && series.is_empty() {
                let _ = writeln!(text, "agentd_{name}_total 0");
            }
            for (values, value) in series {
                let _ = writeln!(text, "agentd_{name}_total{} {value}", shown(labels, values));
            }
        }
        head(
            &mut text,
            "cost_usd_total",
            "What model calls cost, as far as their models have a price.",
            "counter",
        );
        let _ = writeln!(text, "agentd_cost_usd_total {}", decimal(self.cost, 1_000_000_000, 9));
        for timing in Timing::ALL {
            let (name, help) = timing.family();
            head(&mut text, name, help, "histogram");
            let histogram = self.timings.get(&timing).cloned().unwrap_or_default();
            let mut below = 0;
            for (bound, count) in BOUNDS_MS.iter().zip(&histogram.buckets) {
                below += count;
                let _ =
                    writeln!(text, "agentd_{name}_bucket{{le=\"{}\"}} {below}", decimal(*bound, 1_000, 3));
            }
            let all: u64 = histogram.buckets.iter().sum();
            let _ = writeln!(text, "agentd_{name}_bucket{{le=\"+Inf\"}} {all}");
            let _ = writeln!(text, "agentd_{name}_sum {}", decimal(histogram.sum_ns, 1_000_000_000, 9));
            let _ = writeln!(text, "agentd_{name}_count {all}");
        }
        let mut before = "";
        for Gauge { name, help, label, value } in gauges {
            if *name != before {
                head(&mut text, name, help, "gauge");
                before = name;
            }
            let label = label.map(|(name, value)| format!("{{{name}=\"{value}\"}}")).unwrap_or_default();
            let _ = writeln!(text, "agentd_{name}{label} {value}");
        }
        text
    }
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(text, "# HELP agentd_{name} {help}\n# TYPE agentd_{name} {kind}");
}

/// Labels with their values, which are words of this program: what could end the line early is left out of them.
fn shown(labels: &[&str], values: &[String]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let clean = |value: &String| value.replace(|c: char| c.is_control() || c == '"' || c == '\\', "_");
    let pairs = labels.iter().zip(values).map(|(label, value)| format!("{label}=\"{}\"", clean(value)));
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
}

/// `value / unit`, exactly, without the zeros at its end.
fn decimal(value: u64, unit: u64, digits: usize) -> String {
    let text = format!("{}.{:0digits$}", value / unit, value % unit);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_every_family_once_and_exact_numbers() {
        let mut metrics = Metrics::default();
        metrics.count(Counter::Spawned, &["subagent"]);
        metrics.add(Counter::Tokens, &["input"], 7);
        metrics.spent(1_250_000_000);
        metrics.took(Timing::Ping, Duration::from_micros(1_500));
        metrics.took(Timing::Ping, Duration::from_secs(60));
        let gauge = Gauge { name: "runs", help: "Live runs.", label: Some(("role", "worker")), value: 2 };
        let text = metrics.text(&[gauge]);
        for line in [
            "agentd_children_spawned_total{role=\"subagent\"} 1",
            "agentd_tokens_total{direction=\"input\"} 7",
            "agentd_protocol_errors_total 0",
            "agentd_cost_usd_total 1.25",
            "agentd_ping_seconds_bucket{le=\"0.001\"} 0",
            "agentd_ping_seconds_bucket{le=\"0.002\"} 1",
            "agentd_ping_seconds_bucket{le=\"30\"} 1",
            "agentd_ping_seconds_bucket{le=\"+Inf\"} 2",
            "agentd_ping_seconds_sum 60.0015",
            "agentd_ping_seconds_count 2",
            "agentd_runs{role=\"worker\"} 2",
        ] {
            assert!(text.lines().any(|seen| seen == line), "{line} is not in\n{text}");
        }
        let mut helps: Vec<&str> = text.lines().filter(|line| line.starts_with("# HELP")).collect();
        let all = helps.len();
        helps.sort_unstable();
        helps.dedup();
        assert_eq!(helps.len(), all);
    }

    #[test]
    fn labels_are_bounded() {
        let mut metrics = Metrics::default();
        for gate in 0..10_000 {
            metrics.count(Counter::Refused, &[&format!("gate\"{gate}\n")]);
        }
        let text = metrics.text(&[]);
        assert!(text.lines().count() < limits::METRIC_SERIES + 100, "{}", text.lines().count());
        assert!(text.contains("agentd_refused_total{gate=\"other\"}") && text.contains("{gate=\"gate_1_\"}"));
    }
}
