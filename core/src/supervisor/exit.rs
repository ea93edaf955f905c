//! From the observed exit to the free pid: sweep while the zombie pins the pid, read what it wrote, decide what
//! it became, reap, give the permit back. Also what a run's timer does.

use super::Core;
use crate::action::{Action, Actions};
use crate::event::Exit;
use crate::id::NodeId;
use crate::limits;
use crate::metrics::Counter;
use crate::note::Level;
use crate::record::Status;
use crate::run::channel::Sent;
use crate::run::ladder::{Push, Rung};
use crate::run::liveness::Verdict;
use crate::run::process::{Process, Sweep, SweepNext, exit_words};
use crate::run::{Ending, Outcome};
use crate::wire::message::{Down, Ping};

impl Core {
    /// The process ended. From here on it is never signalled.
    pub(super) fn exit_observed(&mut self, node: NodeId, exit: Exit, out: &mut Actions) {
        let now = self.now.mono;
        let Some(run) = self.run(node) else { return };
        if !matches!(run.process, Process::Alive(_)) {
            return;
        }
        run.process = Process::Sweeping(Sweep::begin(exit, now));
        run.channel.close();
        out.push(Action::Sweep { node, keepers: false });
        out.push(self.note(node, Level::Debug, "child.exit").with("exit", exit_words(exit)).into());
        self.output_ended(node, out);
    }

    /// One pass over what it left behind.
    pub(super) fn swept(&mut self, node: NodeId, killed: u32, remaining: u32, out: &mut Actions) {
        let now = self.now.mono;
        let Some(run) = self.run(node) else { return };
        let Process::Sweeping(sweep) = &mut run.process else { return };
        let next = sweep.pass(killed, remaining, now);
        let (exit, since, total) = (sweep.exit, sweep.since, sweep.killed);
        match next {
            SweepNext::Again(_) => return,
            SweepNext::Clean if total > 0 => {
                out.push(self.note(node, Level::Info, "child.swept").with("killed", total).into());
            }
            SweepNext::Clean => {}
            SweepNext::GiveUp(left) => {
                self.leaked = self.leaked.saturating_add(left);
                out.push(self.note(node, Level::Warn, "child.sweep_gave_up").with("left", left).into());
            }
        }
        if let Some(run) = self.run(node) {
            run.process = Process::Draining { exit, until: since + limits::END_OF_FILE_WAIT };
        }
        self.reap_when_read(node, out);
    }

    /// Its stdout ended, or nobody waits for that any longer: what it said is all it said.
    pub(super) fn output_ended(&mut self, node: NodeId, out: &mut Actions) {
        let now = self.now.mono;
        let Some(run) = self.runs.get(&node) else { return };
        let (exit, waited) = match &run.process {
            Process::Sweeping(sweep) => (sweep.exit, now >= sweep.since + limits::END_OF_FILE_WAIT),
            Process::Draining { exit, until } => (*exit, now >= *until),
            Process::Held { .. }
            | Process::Restored { .. }
            | Process::Recording
            | Process::Spawning { .. }
            | Process::Retrying { .. }
            | Process::Alive(_)
            | Process::Reaping
            | Process::Gone => return,
        };
        if run.channel.ended || waited {
            self.conclude(node, exit, out);
            self.reap_when_read(node, out);
        }
    }

    /// A process that ended without a terminal frame failed, whatever its exit code (S2.6, S8.2).
    fn conclude(&mut self, node: NodeId, exit: Exit, out: &mut Actions) {
        let Some(run) = self.runs.get(&node) else { return };
        if run.outcome.is_decided() {
            return;
        }
        let cut = run.channel.cut().map(|e| format!(", {e}")).unwrap_or_default();
        // A process that hits its memory limit dies in whatever way the missing memory makes it.
        let walls = run.walls.memory.filter(|_| exit != Exit::Code(0));
        let wall = walls.map(|bytes| format!("; its limits.memory was {bytes} bytes")).unwrap_or_default();
        let why = format!("exited without a result ({}{cut}{wall})", exit_words(exit));
        self.decide(node, Ending::without_result(Status::Failed, why), out);
    }

    /// Reaps what is swept and read to the end.
    fn reap_when_read(&mut self, node: NodeId, out: &mut Actions) {
        let now = self.now.mono;
        let Some(run) = self.run(node) else { return };
        let Process::Draining { exit, until } = run.process else { return };
        if !run.channel.ended && now < until {
            return;
        }
        let rest = run.stderr.finish();
        run.process = Process::Reaping;
        let ignored = run.channel.ignored();
        if ignored.types + ignored.keys > 0 {
            out.push(
                self.note(node, Level::Info, "child.ignored")
                    .with("types", ignored.types)
                    .with("keys", ignored.keys)
                    .into(),
            );
        }
        self.conclude(node, exit, out);
        self.log_stderr(node, rest, out);
        out.push(Action::Reap { node });
    }

    /// The pid is free, and so is the permit (S4.7).
    pub(super) fn reaped(&mut self, node: NodeId, out: &mut Actions) {
        let Some(run) = self.run(node) else { return };
        if !matches!(run.process, Process::Reaping) {
            return;
        }
        run.process = Process::Gone;
        let (role, status) = (run.record.role, run.record.status.name());
        if let Some(permit) = run.permit.take() {
            self.admission.give_back(permit);
        }
        self.meter_exited(role, status);
        self.tell_gone(node, out);
    }

    /// What is due for one run.
    pub(super) fn tick_run(&mut self, node: NodeId, out: &mut Actions) {
        let now = self.now.mono;
        self.give_up_awaits(node, out);
        let Some(run) = self.run(node) else { return };
        if let Outcome::Unsaved { at, .. } = run.outcome
            && at <= now
        {
            self.save_again(node, out);
        }
        let Some(run) = self.run(node) else { return };
        match &mut run.process {
            Process::Retrying { tries, at } if *at <= now => {
                let tries = *tries;
                self.fork_again(node, tries, out);
            }
            Process::Restored { at } if *at <= now => self.begin_again(node, out),
            Process::Alive(_) => {
                self.climb(node, out);
                self.judge(node, out);
            }
            Process::Sweeping(sweep) => {
                if sweep.next.is_some_and(|at| at <= now) {
                    sweep.next = None;
                    let keepers = sweep.keepers(now);
                    out.push(Action::Sweep { node, keepers });
                }
                self.output_ended(node, out);
            }
            Process::Draining { .. } => self.output_ended(node, out),
            Process::Held { .. }
            | Process::Restored { .. }
            | Process::Recording
            | Process::Spawning { .. }
            | Process::Retrying { .. }
            | Process::Reaping
            | Process::Gone => {}
        }
    }

    fn judge(&mut self, node: NodeId, out: &mut Actions) {
        let (now, keys) = (self.now.mono, self.config.liveness);
        while let Some(run) = self.run(node)
            && let Process::Alive(alive) = &mut run.process
            && alive.ladder.rung() < Rung::Term
            && let Some(verdict) = alive.liveness.judge(now, &keys)
        {
            let (word, why) = match verdict {
                Verdict::Ping { seq } => {
                    // A ping that does not fit is not sent: a child that does not read is judged by its silence.
                    if let Sent::Frame(frame) = run.channel.send(&Down::Ping(Ping { seq })) {
                        self.queue(node, frame, out);
                    }
                    continue;
                }
                Verdict::NeverReady => {
                    let ready = keys.ready.as_millis();
                    ("never_ready", format!("never became ready: nothing within {ready} ms of its start"))
                }
                Verdict::Stuck { silent, no_pong } => {
                    let (silent, no_pong) = (silent.as_millis(), no_pong.as_millis());
                    ("stuck", format!("stuck: no frame for {silent} ms and no pong for {no_pong} ms"))
                }
                Verdict::HardDeadline => {
                    let (own, grace) = (run.deadline.as_millis(), keys.hard_deadline_grace.as_millis());
                    let why = format!(
                        "hard deadline: its deadline of {own} ms and {grace} ms of grace have passed"
                    );
                    ("hard_deadline", why)
                }
            };
            self.meter(Counter::Verdicts, &[word]);
            out.push(self.note(node, Level::Warn, "child.unhealthy").with("verdict", why.as_str()).into());
            self.decide(node, Ending::without_result(Status::Failed, why), out);
            self.push_ladder(node, Push::Insist, out);
        }
    }
}
