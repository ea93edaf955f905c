//! What a child says, and what it grumbles on stderr.

use super::keeping::Shelf;
use super::{Core, ms};
use crate::action::{Action, Actions};
use crate::distill::{distill, undistilled};
use crate::id::NodeId;
use crate::metrics::Counter;
use crate::note::Level;
use crate::record::{Status, Tokens};
use crate::run::Ending;
use crate::run::ladder::Push;
use crate::run::process::Process;
use crate::run::stderr::Logged;
use crate::wire::message::Up;
use crate::wire::message::{
    Event, FailKind, Failed, LoopEnd, LoopEvidence, Ready, Role, RunResult, Tools, TurnOutcome, Usage,
    VERSION,
};
use serde_json::Value;

impl Core {
    /// Bytes of a child's stdout, also those it wrote before it died (S2.6).
    pub(super) fn child_bytes(&mut self, node: NodeId, bytes: &[u8], out: &mut Actions) {
        let Some(run) = self.run(node) else { return };
        run.channel.push(bytes);
        while let Some(next) = self.run(node).and_then(|run| run.channel.next_message()) {
            match next {
                Ok(up) => self.said(node, up, out),
                Err(error) => self.protocol_error(node, &error.0, out),
            }
        }
    }

    fn said(&mut self, node: NodeId, up: Up, out: &mut Actions) {
        let now = self.now.mono;
        let Some(run) = self.run(node) else { return };
        if let Process::Alive(alive) = &mut run.process {
            match &up {
                Up::Pong(pong) => {
                    let took = alive.liveness.pong(now, pong.seq);
                    self.meter_ping(took);
                    return;
                }
                Up::Ready(_)
                | Up::Event(_)
                | Up::State(_)
                | Up::Usage(_)
                | Up::Tools(_)
                | Up::ToolRequest(_)
                | Up::BudgetRequest(_)
                | Up::Ack(_)
                | Up::ModelHealth(_)
                | Up::Turn(_)
                | Up::Result(_)
                | Up::Failed(_) => alive.liveness.frame(now),
            }
        }
        if run.channel.terminal {
            run.channel.late += 1;
            if run.channel.late == 1 {
                out.push(self.note(node, Level::Warn, "child.after_terminal").into());
            }
            return;
        }
        match up {
            Up::Ready(ready) => self.ready(node, &ready, out),
            Up::Pong(_) => {}
            Up::Event(event) => self.child_event(node, event, out),
            Up::State(state) => {
                run.in_flight = state.in_flight;
                run.count(state.evidence);
                run.waiting = Some((state.waiting_on, now, state.step));
            }
            Up::Usage(usage) => self.used(node, &usage),
            Up::Tools(tools) => self.tools_offered(node, tools, out),
            Up::Ack(ack) => {
                run.steers.remove(&ack.id);
                self.steer_taken(node, ack.id);
                self.model_taken(node, ack.id, out);
            }
            Up::Turn(turn) => {
                self.not_called(node);
                self.turn_ended(node, turn, out);
            }
            Up::BudgetRequest(ask) => self.budget_requested(node, ask, out),
            Up::ModelHealth(report) => self.model_health(node, report, out),
            Up::ToolRequest(request) => self.tool_request(node, request, out),
            Up::Result(result) => self.terminal_result(node, result, out),
            Up::Failed(failed) => self.terminal_failed(node, failed, out),
        }
    }

    fn ready(&mut self, node: NodeId, ready: &Ready, out: &mut Actions) {
        let now = self.now.mono;
        if ready.v[0] != VERSION[0] {
            let why = format!(
                "it speaks control protocol {}.{}, this supervisor speaks {}.{}",
                ready.v[0], ready.v[1], VERSION[0], VERSION[1]
            );
            self.protocol_error(node, &why, out);
            return;
        }
        let Some(run) = self.run(node) else { return };
        let Process::Alive(alive) = &mut run.process else { return };
        if !alive.liveness.ready(now) {
            self.protocol_error(node, "a second `ready`", out);
            return;
        }
        let took = now.since(alive.since);
        let after = ms(took);
        self.meter_ready(took);
        out.push(self.note(node, Level::Debug, "child.ready").with("after_ms", after).into());
    }

    /// A child's own log event. It may name only events of its own kind, so that no child can write the
    /// supervisor's lines.
    fn child_event(&mut self, node: NodeId, event: Event, out: &mut Actions) {
        let own = ["tool.", "model.", "mcp.", "agent."].iter().any(|p| event.name.starts_with(p));
        let level = match event.level.as_str() {
            "error" | "warn" => Level::Warn,
            "debug" => Level::Debug,
            _ => Level::Info,
        };
        let name = if own && event.name.len() <= 64 { event.name.as_str() } else { "child.event" };
        let mut note = self.note(node, level, name);
        if name == "child.event" {
            note = note.with("name", event.name.chars().take(64).collect::<String>());
        }
        for (key, value) in event.fields {
            let typed = typed(&key, value);
            note = note.with(&key, typed);
        }
        out.push(note.into());
    }

    fn used(&mut self, node: NodeId, usage: &Usage) {
        let mut tokens = self.priced(node, usage);
        self.called(node, &tokens);
        if let Some(run) = self.run(node) {
            run.in_flight = None;
            let ahead = std::mem::take(&mut run.charged_ahead);
            if ahead > 0 {
                let rest = usage.input.saturating_sub(ahead);
                tokens = self.priced(node, &Usage { input: rest, ..usage.clone() });
            }
        }
        self.charge(node, &tokens);
    }

    /// A model call that is still in flight when a run's outcome is decided for it: nobody may ever report it, so
    /// what it has sent is charged now, by estimate (S8.5).
    pub(super) fn charge_in_flight(&mut self, node: NodeId) {
        self.call_cut(node);
        let Some(run) = self.run(node) else { return };
        if let Some(input) = run.in_flight.take() {
            run.charged_ahead = input;
            let (output, cached, estimated, model) = (0, 0, true, run.model.clone());
            let tokens = self.priced(node, &Usage { input, output, cached, estimated, model });
            self.charge(node, &tokens);
        }
    }

    fn charge(&mut self, node: NodeId, tokens: &Tokens) {
        if let Some(run) = self.run(node) {
            run.record.usage.add(tokens);
            self.meter_tokens(tokens);
        }
        self.mark(Shelf::Ledger);
        // A subtree equals the sum of everything below it, so what one uses is added all the way up.
        let mut at = Some(node);
        while let Some(run) = at.and_then(|n| self.run(n)) {
            run.subtree.add(tokens);
            at = run.parent;
            let of = run.record.node;
            self.mark_progress(of);
        }
    }

    /// A worker reports what a server offers; from then on names are checked at the gate (S3.6).
    fn tools_offered(&mut self, node: NodeId, tools: Tools, out: &mut Actions) {
        // The embedding program's tools are known without any child.
        let is_host = self.config.host.iter().any(|group| group.name == tools.server);
        let Some(run) = self.run(node) else { return };
        if is_host || !run.servers.contains(&tools.server) {
            self.protocol_error(node, "`tools` for a server it was not given", out);
            return;
        }
        if run.record.role == Role::Worker {
            self.offered.insert(tools.server, tools.tools);
        }
    }

    fn terminal_result(&mut self, node: NodeId, result: RunResult, out: &mut Actions) {
        let evidence = result.evidence;
        let ending = ending_of(self.is_worker(node), TurnOutcome::Result(result));
        self.terminal(node, ending, None, evidence, out);
    }

    fn terminal_failed(&mut self, node: NodeId, failed: Failed, out: &mut Actions) {
        let (kind, evidence) = (failed.kind, failed.evidence);
        let ending = ending_of(self.is_worker(node), TurnOutcome::Failed(failed));
        self.terminal(node, ending, Some(kind), evidence, out);
    }

    /// The first terminal frame stands; one that comes after a kill changes nothing.
    fn terminal(
        &mut self,
        node: NodeId,
        ending: Ending,
        fault: Option<FailKind>,
        evidence: LoopEvidence,
        out: &mut Actions,
    ) {
        let Some(run) = self.run(node) else { return };
        run.channel.terminal = true;
        run.count(evidence);
        // The child has told what its calls used; one that failed used nothing it knows of.
        run.in_flight = None;
        self.not_called(node);
        let Some(run) = self.run(node) else { return };
        if run.outcome.is_decided() {
            out.push(self.note(node, Level::Debug, "child.late_result").into());
        } else {
            run.fault = fault;
            self.decide(node, ending, out);
        }
        self.push_ladder(node, Push::Leave, out);
    }

    /// Ends this child only, at once (S2.5).
    pub(super) fn protocol_error(&mut self, node: NodeId, why: &str, out: &mut Actions) {
        let Some(run) = self.run(node) else { return };
        run.channel.break_with(why);
        self.meter(Counter::ProtocolErrors, &[]);
        out.push(self.note(node, Level::Warn, "child.protocol_error").with("error", why).into());
        let ending = Ending::without_result(Status::Failed, format!("protocol error: {why}"));
        self.decide(node, ending, out);
        self.push_ladder(node, Push::Force, out);
    }

    /// End of file is not death: the exit is, or silence.
    pub(super) fn child_eof(&mut self, node: NodeId, out: &mut Actions) {
        let Some(run) = self.run(node) else { return };
        run.channel.ended = true;
        self.output_ended(node, out);
    }

    /// Its stdin is closed. Not death either: a child that reads nothing answers no ping.
    pub(super) fn child_write_failed(&mut self, node: NodeId, error: &str, out: &mut Actions) {
        let Some(run) = self.run(node) else { return };
        run.channel.close();
        out.push(self.note(node, Level::Debug, "child.stdin_closed").with("error", error).into());
    }

    /// A child's stderr, into the log.
    pub(super) fn child_stderr(&mut self, node: NodeId, bytes: &[u8], out: &mut Actions) {
        let now = self.now.mono;
        let Some(run) = self.run(node) else { return };
        let logged = run.stderr.push(bytes, now);
        self.log_stderr(node, logged, out);
    }

    pub(super) fn log_stderr(&mut self, node: NodeId, logged: Vec<Logged>, out: &mut Actions) {
        for piece in logged {
            let note = match piece {
                Logged::Line(line) => self.note(node, Level::Info, "child.stderr").with("line", line),
                Logged::Dropped(bytes) => {
                    self.note(node, Level::Warn, "child.stderr_dropped").with("bytes", bytes)
                }
            };
            out.push(note.into());
        }
    }

    /// Queues a frame for a child that is expected to read it.
    pub(super) fn queue(&mut self, node: NodeId, frame: crate::bytes::Bytes, out: &mut Actions) {
        out.push(Action::SendToChild { node, frame });
    }
}

/// An ending as the record holds it. A subagent's text is distilled for the run that asked (S8.1); a conversation's
/// answer is for a person, who gets all of it.
pub(super) fn ending_of(whole: bool, outcome: TurnOutcome) -> Ending {
    let value =
        |text: Option<String>| text.as_deref().map_or(Value::Null, if whole { undistilled } else { distill });
    match outcome {
        TurnOutcome::Result(RunResult { end, text, partial, error, .. }) => {
            Ending { status: status_of(end), result: value(text), partial, error }
        }
        TurnOutcome::Failed(Failed { text, error, .. }) => {
            let partial = text.is_some();
            Ending { status: Status::Failed, result: value(text), partial, error: Some(error) }
        }
    }
}

fn status_of(end: LoopEnd) -> Status {
    match end {
        LoopEnd::Completed => Status::Completed,
        LoopEnd::Cancelled => Status::Cancelled,
        LoopEnd::Refused => Status::Refused,
        LoopEnd::ExhaustedSteps => Status::ExhaustedSteps,
        LoopEnd::ExhaustedTokens => Status::ExhaustedTokens,
        LoopEnd::Deadline => Status::Deadline,
        LoopEnd::LoopDetected => Status::LoopDetected,
    }
}

/// A child's fields travel as text; those that are numbers or truth values by their key are so in the log too.
fn typed(key: &str, value: String) -> Value {
    match key {
        "attempt" | "bytes" | "calls" | "cached" | "count" | "dropped" | "folded" | "input" | "left"
        | "ms" | "output" | "own" | "servers" | "step" | "tools" | "tries" | "wait_ms" => {
            value.parse::<u64>().map_or(Value::String(value), Value::from)
        }
        "error" | "estimated" | "summary" if value == "true" || value == "false" => {
            Value::from(value == "true")
        }
        _ => Value::String(value),
    }
}
