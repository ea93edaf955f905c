//! What a process is told: its first frame, what was to be said before there was anybody to hear it, and anything after.

use super::spawn::mode_name;
use super::{Core, ms};
use crate::action::{Action, Actions, SpawnFrame};
use crate::id::NodeId;
use crate::limits;
use crate::note::Level;
use crate::record::Status;
use crate::run::channel::Sent;
use crate::run::ladder::{Ladder, Push};
use crate::run::liveness::Liveness;
use crate::run::process::{Alive, Process};
use crate::run::{Ending, Request};
use crate::wire::message::{Down, Mode, Role};

impl Core {
    /// The process exists: hand it its frame, or end it if nobody wants it any more.
    pub(super) fn child_spawned(&mut self, node: NodeId, pid: u32, out: &mut Actions) {
        let (now, keys) = (self.now.mono, self.config.liveness);
        let Some(run) = self.run(node) else { return };
        if !matches!(run.process, Process::Spawning { .. }) {
            return;
        }
        let mut liveness = Liveness::new(now, run.deadline, &keys);
        if run.paused {
            liveness.pause(now);
        }
        run.process = Process::Alive(Box::new(Alive { pid, since: now, liveness, ladder: Ladder::new() }));
        if run.outcome.is_decided() {
            // Killed while it was being forked: it has read nothing and holds nothing.
            self.push_ladder(node, Push::Force, out);
            return;
        }
        let Some(payload) = run.payload.take() else { return };
        let message = Down::Spawn(payload);
        let sent = run.channel.send(&message);
        let Down::Spawn(payload) = message else { return };
        if sent == Sent::Full {
            // The gate measured it; only a bug in that measure leads here.
            self.push_ladder(node, Push::Force, out);
            self.decide(node, Ending::without_result(Status::Failed, "its first frame is too large"), out);
            return;
        }
        out.push(Action::SendSpawn { node, payload: SpawnFrame(payload) });
        // A run that retires stays so.
        if run.record.status == Status::Spawned {
            run.record.status = Status::Running;
        }
        run.pid = Some(pid);
        let (role, mode, depth) = (run.record.role, run.record.mode, run.record.depth);
        let event = match role {
            Role::Worker => "worker.spawn",
            Role::Subagent => "subagent.spawn",
        };
        let after = ms(now.since(run.admitted));
        self.meter_spawned(role);
        out.push(
            self.note(node, Level::Info, event)
                .with("pid", pid)
                .with("mode", mode_name(mode))
                .with("depth", depth)
                .with("after_ms", after)
                .into(),
        );
        self.tell_throttles(node, out);
        self.tell_early(node, out);
        self.answer_started(node, out);
    }

    /// Says what was to be said before there was anybody to hear it.
    fn tell_early(&mut self, node: NodeId, out: &mut Actions) {
        let early = self.run(node).map(|run| std::mem::take(&mut run.early)).unwrap_or_default();
        for down in early {
            if let Err(why) = self.tell_child(node, down, out) {
                out.push(self.note(node, Level::Warn, "child.not_told").with("why", why).into());
            }
        }
    }

    /// Says something to a child: now, or as soon as it has its first frame.
    ///
    /// # Errors
    /// It can be told nothing any more, or does not read: why.
    pub(super) fn tell_child(&mut self, node: NodeId, down: Down, out: &mut Actions) -> Result<(), String> {
        let Some(run) = self.run(node) else { return Err("it has ended".to_owned()) };
        if run.outcome.is_decided() || run.process.has_ended() {
            return Err("it has ended".to_owned());
        }
        if run.payload.is_some() {
            // Asked to finish twice is asked to finish.
            if !matches!(down, Down::Finish(_)) || !run.early.iter().any(|d| matches!(d, Down::Finish(_))) {
                run.early.push(down);
            }
            return Ok(());
        }
        match run.channel.send(&down) {
            Sent::Frame(frame) => self.queue(node, frame, out),
            Sent::Closed => return Err("it has ended".to_owned()),
            Sent::Full => {
                return Err(format!("it does not read: {} bytes wait for it", limits::CHILD_QUEUE_BYTES));
            }
        }
        Ok(())
    }

    /// Its first frame could not be made: it was handed nothing.
    pub(super) fn spawn_frame_failed(&mut self, node: NodeId, error: &str, out: &mut Actions) {
        out.push(self.note(node, Level::Warn, "child.spawn_failed").with("error", error).into());
        let why = format!("could not be handed its work: {error}");
        self.decide(node, Ending::without_result(Status::Failed, why), out);
        self.push_ladder(node, Push::Force, out);
    }

    /// An asynchronous caller hears the handle.
    pub(super) fn answer_started(&mut self, node: NodeId, out: &mut Actions) {
        let Some(run) = self.run(node) else { return };
        if run.record.mode == Mode::Sync {
            return;
        }
        let value = run.unfinished();
        // Told once: from here on it is `await` that waits.
        for waiter in std::mem::take(&mut run.waiters) {
            if matches!(self.asked_by(waiter), Some(Request::Run { child, .. }) if *child == node) {
                self.answer(waiter.node, waiter.request, false, &value, out);
            } else if let Some(run) = self.run(node) {
                run.waiters.push(waiter);
            }
        }
    }
}
