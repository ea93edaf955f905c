//! Calls that say something to a run: `subagent.send`, `steer`, `finish` and `retire` (S6.3, S6.5, S6.9).

use super::handles::handle_arg;
use super::{Call, accept_only, arguments};
use crate::action::Actions;
use crate::bytes::Json;
use crate::error::Refusal;
use crate::id::NodeId;
use crate::limits;
use crate::note::Level;
use crate::run::process::Process;
use crate::run::{Run, Waiter};
use crate::supervisor::Core;
use crate::supervisor::spawn::mode_name;
use crate::wire::Down;
use crate::wire::message::{Finish, Pause, Resume, Text};
use serde_json::{Map, Value};

impl Core {
    pub(super) fn subagent_send(&mut self, call: &Call<'_>, out: &mut Actions) -> Result<(), Refusal> {
        let Call { node, id, args } = *call;
        accept_only(args, &["handle", "text"])?;
        let target = self.talked_to(node, args)?;
        let text = text_arg(args)?;
        self.only_warm(target, "takes no messages", "subagent_steer tells any live run something")?;
        self.can_keep(node)?;
        let Some(run) = self.run(target) else { return Err(over("it has ended")) };
        let message = run.next_text();
        let Some(warm) = &mut run.warm else { return Err(over("it has ended")) };
        if !warm.push(Text { id: message, text }) {
            let (waiting, retiring) = (warm.waiting(), warm.is_retiring());
            return Err(if retiring {
                over("it is retiring and takes no more messages")
            } else {
                full(waiting)
            });
        }
        self.mark_letter(target, message);
        self.hand_next(target, out);
        self.message_taken(Waiter { node, request: id }, target, message, out);
        Ok(())
    }

    pub(super) fn subagent_steer(&mut self, call: &Call<'_>, out: &mut Actions) -> Result<(), Refusal> {
        let Call { node, id, args } = *call;
        accept_only(args, &["handle", "text"])?;
        let target = self.talked_to(node, args)?;
        let text = text_arg(args)?;
        let steer = self.steer(target, text, out).map_err(|why| over(&why))?;
        out.push(self.note(target, Level::Info, "subagent.steer").with("message", steer).into());
        let mut answer = self.runs.get(&target).map_or(Value::Null, Run::unfinished);
        answer["steer_id"] = steer.into();
        self.answer(node, id, false, &answer, out);
        Ok(())
    }

    pub(super) fn subagent_finish(&mut self, call: &Call<'_>, out: &mut Actions) -> Result<(), Refusal> {
        let Call { node, id, args } = *call;
        accept_only(args, &["handle", "reason"])?;
        let target = self.owned(node, handle_arg(args)?)?;
        let reason = text_or_empty(args, "reason")?;
        // One that has ended has its result already: what was asked for is there.
        if let Some(object) = self.final_object(target) {
            self.answer_json(node, id, false, object, out);
            return Ok(());
        }
        let idle = self.runs.get(&target).and_then(|run| run.warm.as_ref());
        if idle.is_some_and(|warm| warm.in_hand().is_none()) {
            return Err(over("it is between turns, so there is nothing to finish; subagent_retire ends it"));
        }
        self.tell_child(target, Down::Finish(Finish { reason }), out).map_err(|why| over(&why))?;
        out.push(self.note(target, Level::Info, "subagent.finish").into());
        let answer = self.runs.get(&target).map_or(Value::Null, Run::unfinished);
        self.answer(node, id, false, &answer, out);
        Ok(())
    }

    pub(super) fn subagent_pause(&mut self, call: &Call<'_>, out: &mut Actions) -> Result<(), Refusal> {
        self.set_paused(call, true, out)
    }

    pub(super) fn subagent_resume(&mut self, call: &Call<'_>, out: &mut Actions) -> Result<(), Refusal> {
        self.set_paused(call, false, out)
    }

    /// Pauses a run from its next boundary on, or lets it go on (S6.9). What is so already stays so.
    fn set_paused(&mut self, call: &Call<'_>, paused: bool, out: &mut Actions) -> Result<(), Refusal> {
        let Call { node, id, args } = *call;
        accept_only(args, &["handle"])?;
        let target = self.talked_to(node, args)?;
        if self.runs.get(&target).is_some_and(|run| run.paused != paused) {
            let down = if paused { Down::Pause(Pause {}) } else { Down::Resume(Resume {}) };
            self.tell_child(target, down, out).map_err(|why| over(&why))?;
            let now = self.now.mono;
            if let Some(run) = self.run(target) {
                run.paused = paused;
                if let Process::Alive(alive) = &mut run.process {
                    if paused { alive.liveness.pause(now) } else { alive.liveness.resume(now) }
                }
            }
            let event = if paused { "subagent.pause" } else { "subagent.resume" };
            out.push(self.note(target, Level::Info, event).into());
        }
        let answer = self.runs.get(&target).map_or(Value::Null, Run::unfinished);
        self.answer(node, id, false, &answer, out);
        Ok(())
    }

    pub(super) fn subagent_retire(&mut self, call: &Call<'_>, out: &mut Actions) -> Result<(), Refusal> {
        let Call { node, id, args } = *call;
        accept_only(args, &["handle"])?;
        let target = self.owned(node, handle_arg(args)?)?;
        if let Some(object) = self.final_object(target) {
            self.answer_json(node, id, false, object, out);
            return Ok(());
        }
        self.only_warm(
            target,
            "ends by itself",
            "subagent_finish asks for its result now, subagent_kill stops it",
        )?;
        // An end that is decided and not yet durable is an end: nothing changes it any more.
        self.talked_to(node, args)?;
        let dropped = self.retire(target, out);
        out.push(self.note(target, Level::Info, "subagent.retire").into());
        let mut answer = self.runs.get(&target).map_or(Value::Null, Run::unfinished);
        answer["dropped"] = dropped.into();
        // What it says of the end is read once that is durable.
        answer["status"] = "retiring".into();
        self.answer_json(node, id, false, Json::of(&answer), out);
        Ok(())
    }

    /// The run behind the call's handle, as long as it can be told something.
    fn talked_to(&self, caller: NodeId, args: &Map<String, Value>) -> Result<NodeId, Refusal> {
        let target = self.owned(caller, handle_arg(args)?)?;
        match self.runs.get(&target) {
            Some(run) if run.outcome.is_decided() => {
                Err(over(&format!("it has ended as {}", run.record.status.name())))
            }
            Some(_) | None => Ok(target),
        }
    }

    fn only_warm(&self, target: NodeId, what: &str, hint: &str) -> Result<(), Refusal> {
        let Some(run) = self.runs.get(&target).filter(|run| run.warm.is_none()) else { return Ok(()) };
        let mut refusal = over(&format!("it is {} and {what}", mode_name(run.record.mode)));
        refusal.hint = hint.to_owned();
        Err(refusal)
    }
}

fn text_arg(args: &Map<String, Value>) -> Result<String, Refusal> {
    let text = match args.get("text") {
        Some(Value::String(text)) if !text.trim().is_empty() => text,
        Some(Value::String(_)) => return Err(arguments("text: it is empty".into())),
        Some(_) | None => return Err(arguments("text: accepted is a string that is not empty".into())),
    };
    if text.len() > limits::MESSAGE_BYTES {
        let (seen, most) = (text.len(), limits::MESSAGE_BYTES);
        return Err(arguments(format!("text: {seen} bytes, at most {most} are accepted")));
    }
    Ok(text.clone())
}

/// An optional text, for the log and the model.
pub(super) fn text_or_empty(args: &Map<String, Value>, key: &str) -> Result<String, Refusal> {
    match args.get(key) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) if text.len() <= limits::MESSAGE_BYTES => Ok(text.clone()),
        Some(_) => {
            Err(arguments(format!("{key}: accepted is a string of at most {} bytes", limits::MESSAGE_BYTES)))
        }
    }
}

fn over(why: &str) -> Refusal {
    Refusal {
        gate: "handle".into(),
        message: format!("the run cannot be told this: {why}"),
        limit: None,
        observed: None,
        hint: "subagent_status shows how it stands".into(),
    }
}

fn full(waiting: usize) -> Refusal {
    Refusal {
        gate: "messages".into(),
        message: format!("{waiting} of {} messages wait already", limits::WARM_QUEUE),
        limit: Some(limits::WARM_QUEUE.to_string()),
        observed: Some(waiting.to_string()),
        hint: "await a turn with subagent_await {handle, message_id}, then send again".into(),
    }
}
