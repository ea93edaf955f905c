//! Why something was done, for the log. The core's only way to speak to people.

use crate::id::{Handle, NodeId, RunId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How much a note matters. `Error` is a bug or data loss and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// A bug, or something lost.
    Error,
    /// Someone should look.
    Warn,
    /// The story of the daemon.
    Info,
    /// For finding faults.
    Debug,
}

/// One log event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// How much it matters.
    pub level: Level,
    /// A stable dotted name; every one is listed in `note::names` and in the docs.
    pub event: String,
    /// The run it is about.
    pub run_id: Option<RunId>,
    /// Its handle.
    pub handle: Option<Handle>,
    /// Its process.
    pub node: Option<NodeId>,
    /// Its attempt.
    pub attempt: Option<u32>,
    /// Its trace.
    pub trace_id: Option<String>,
    /// The rest, values as JSON scalars.
    pub fields: BTreeMap<String, serde_json::Value>,
}

impl Note {
    /// A note about the daemon itself, without fields.
    pub fn of_daemon(level: Level, event: &str) -> Note {
        Note {
            level,
            event: event.to_owned(),
            run_id: None,
            handle: None,
            node: None,
            attempt: None,
            trace_id: None,
            fields: BTreeMap::new(),
        }
    }
}

/// Every event name the program logs, with its meaning. The documents list the same, and a test holds both.
pub mod names {
    /// Name and meaning, sorted by name.
    pub const ALL: &[(&str, &str)] = &[
        ("agent.answer.misfit", "an answer does not fit `output_schema`; the model is told once"),
        ("agent.compacted", "a run's history no longer fitted the model's window and was made shorter"),
        ("agent.events_dropped", "a child's log events that its supervisor did not take in time"),
        ("agent.grant.unmatched", "a pattern of a run's tools matches none of them and grants nothing"),
        ("agent.grant.unreadable", "a run's list of tools cannot be read, so nothing is granted"),
        ("agent.resumed", "a run goes on with what an earlier process of it wrote in its transcript"),
        ("agent.transcript", "a run's transcript takes no more lines, and why; the run goes on"),
        (
            "budget.degraded",
            "a model call is made with the cheaper model, for the budget has no room for the run's own",
        ),
        ("budget.exhausted", "a model call was not granted: which budget is used up, and how far"),
        ("budget.waited", "a model call had to wait for room in a budget"),
        ("child.after_terminal", "a child sent frames after its terminal one; they are dropped"),
        ("child.event", "a child's own event under a name that is not its kind to use"),
        ("child.exit", "a child's process ended, and how"),
        ("child.ignored", "frame types and keys of a newer child that this version does not know, counted"),
        ("child.late_result", "a result came after the run's outcome was decided; it is dropped"),
        ("child.not_told", "something for a child could not be said to it"),
        ("child.protocol_error", "a child broke the control protocol and is killed"),
        ("child.ready", "a child has read its first frame"),
        ("child.spawn_failed", "a process could not be made"),
        ("child.spawn_retry", "a process could not be made for want of resources; it is tried again"),
        ("child.stderr", "a line of a child's stderr"),
        ("child.stderr_dropped", "bytes of a child's stderr that were over the rate"),
        ("child.stdin_closed", "a child takes no more frames"),
        ("child.sweep_gave_up", "processes a dead child left could not be killed in time"),
        ("child.swept", "processes a dead child left were killed"),
        ("child.unhealthy", "a child was judged stuck, never ready, or past its hard deadline"),
        ("config.model_unusable", "a model whose key cannot be had; a run that wants it is refused"),
        (
            "config.reload",
            "a configuration that was read again is in use: the keys that count from now on, and those that do not",
        ),
        (
            "config.reload.failed",
            "the configuration that was read again cannot be used, and why; the one in use stays",
        ),
        ("config.reload.refused", "a reload that a drain does not allow any more"),
        ("config.reload.start", "the configuration is read again, and who asked for it"),
        ("config.restart_needed", "keys that have changed and count only once the daemon is started anew"),
        ("daemon.cost", "what a run used and cost in all, and the run that used most"),
        ("daemon.end", "a daemon ends"),
        ("daemon.stalled", "the daemon or the machine stood still; nobody is judged by it"),
        ("daemon.start", "a daemon begins: its name, and where it is reached"),
        ("daemon.untold", "a service manager did not take what it was to be told; it is told again"),
        ("drain.done", "a drain ended; nothing is left"),
        ("drain.forced", "a drain's time is up or a second signal came; the rest is killed"),
        ("drain.start", "a drain began: no new runs"),
        (
            "endpoint.recovered",
            "an endpoint of a model that was left alone has answered; it may be asked again",
        ),
        (
            "endpoint.throttled",
            "an endpoint of a model asked for less or gave out: no run asks it for a while",
        ),
        ("journal.stopped", "the journal cannot be written any more; events from here on are not in it"),
        ("log.dropped", "log lines that were lost because nobody read them in time"),
        ("mcp.again", "a server ended over the first request, and is started once more"),
        ("mcp.call.duplicate", "a call's number was used twice; a bug"),
        (
            "mcp.call.repeated",
            "a call whose answer was lost is made once more, for its server says that this is harmless",
        ),
        ("mcp.connect", "a server is connected, or is not, and why"),
        ("mcp.elicitation.accepted", "a server asked a person and got a scripted answer; `mcp probe` only"),
        ("mcp.elicitation.declined", "a server asked a person, and agentd declined for them"),
        ("mcp.exit", "a server's process ended before it was asked to"),
        ("mcp.junk", "lines on a server's stdout that are no messages; they are skipped"),
        ("mcp.listen.none", "a server has no stream, or none any more, on which it tells of changes"),
        ("mcp.message", "a log message of a server"),
        ("mcp.message.dropped", "log messages of a server that came too fast"),
        ("mcp.notification.ignored", "notifications of a server that nothing acts on"),
        ("mcp.notification.refused", "a server at an address did not take a notification"),
        ("mcp.request.dropped", "requests of a server that came faster than they can be refused"),
        ("mcp.request.refused", "a server asked for something that is not offered to servers"),
        ("mcp.session.expired", "a server at an address has forgotten the session; a new one is begun"),
        ("mcp.stray", "an answer of a server to a call that is not open"),
        ("mcp.tools", "what a run's servers offer after its grants"),
        (
            "mcp.tools.collision",
            "tools that wanted one name, and what they are called now, everywhere or by the model",
        ),
        ("mcp.tools.none", "a server that declares no tools"),
        (
            "mcp.tools.skipped",
            "what is not taken as a server lists it: a tool that is left out or offered with a corrected schema, or a list that is cut",
        ),
        ("mcp.tools.stale", "the tools of a server could not be listed again; the old list stays in use"),
        ("mcp.tools.unusable", "a tool whose name no grant could spell; it is not offered"),
        ("model.call", "a model call ended, failed or was given up, and what it used"),
        (
            "model.retry",
            "an attempt at a model call failed and is made again: where, why, and after which wait",
        ),
        ("model.swap", "a run goes on with another model that a reload gave it"),
        ("model.swap_failed", "a run could not be given the model of a reload, and goes on with its own"),
        ("operator.refused", "somebody at the control surface was turned away, and why"),
        ("operator.repeated", "a call of an operator has the number of one that is open; it is not taken"),
        ("prompt.ignored", "a prompt that a one-shot conversation does not take"),
        ("prompt.replayed", "the turn that the daemon's death cut off is made again"),
        ("restore.done", "what a start took up again of an earlier life, and what it could not"),
        ("restore.ignored", "what the store held came too late to be taken up; a bug"),
        ("store.down", "what must be durable cannot be made so, and why"),
        ("store.failed", "a save failed; it is tried again"),
        ("store.gave_up", "the daemon ends without what could not be saved in time"),
        ("store.healed", "what must be durable is made so again"),
        ("store.quarantined", "something in the store cannot be read and was put aside"),
        ("subagent.finish", "a run is asked for its result now"),
        ("subagent.kill", "a run was killed, by whom and why"),
        ("subagent.kill.escalated", "a signal was sent to a child's process group"),
        ("subagent.message", "a warm run's next turn begins with this message"),
        ("subagent.messages_dropped", "messages to a warm run that never get a turn"),
        ("subagent.pause", "an operator has a run pause at its next step"),
        ("subagent.promoted", "a run that waited for a permit has one"),
        ("subagent.refused", "a spawn or a handle call was turned down"),
        ("subagent.respawn", "a run of an earlier life of the daemon is begun again"),
        ("subagent.result", "a run ended, and how"),
        ("subagent.resume", "an operator lets a run go on"),
        ("subagent.retire", "a warm run takes no more messages and ends with the turn in hand"),
        ("subagent.spawn", "a run's process is up"),
        ("subagent.steer", "a run is told something at its next step"),
        ("subagent.turn", "a turn of a warm run ended, and how"),
        ("tool.call", "a tool call has its result"),
        ("tool.progress", "a server says that a call is getting on"),
        ("worker.result", "a conversation's turn ended, and how"),
        ("worker.spawn", "a conversation's worker is up"),
        ("worker.turn", "a turn of a conversation ended, and how"),
    ];
}
