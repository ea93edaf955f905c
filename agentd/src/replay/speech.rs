//! Messages between a supervisor and a child, in words.

use super::words::{plain, quoted};
use agentd_core::address::host;
use agentd_core::wire::message::{
    BudgetVerdict, Failed, Health, LoopEnd, RunResult, Throttle, TurnOutcome, WaitingOn,
};
use agentd_core::wire::{Down, Up};

/// What a child says.
pub fn up(message: &Up) -> String {
    match message {
        Up::Ready(_) => "it is ready".to_owned(),
        Up::Pong(pong) => format!("pong {}", pong.seq),
        Up::Event(event) => {
            let fields: String = event
                .fields
                .iter()
                .map(|(key, value)| format!(" {}={}", plain(key), quoted(value)))
                .collect();
            format!("{}{fields}", plain(&event.name))
        }
        Up::State(state) => format!("at step {} it waits for {}", state.step, waiting(&state.waiting_on)),
        Up::Usage(usage) => {
            format!("a call of {} used {} tokens in, {} out", plain(&usage.model), usage.input, usage.output)
        }
        Up::Tools(tools) => format!("its server {} offers {} tools", plain(&tools.server), tools.tools.len()),
        Up::ToolRequest(request) => {
            format!("call {} of {} with {}", request.id, plain(&request.name), plain(&*request.args.0))
        }
        Up::BudgetRequest(ask) => {
            format!("it asks for a model call of up to {} tokens in and {} out", ask.input, ask.output)
        }
        Up::Ack(ack) => format!("it has taken message {}", ack.id),
        Up::ModelHealth(report) => {
            let endpoint = plain(host(&report.endpoint));
            match (report.health, report.retry_after_ms) {
                (Health::Answered, _) => format!("{endpoint} answered"),
                (Health::Failed, _) => format!("{endpoint} failed"),
                (Health::Limited, None) => format!("{endpoint} asks for less"),
                (Health::Limited, Some(ms)) => format!("{endpoint} asks to be left alone for {ms} ms"),
            }
        }
        Up::Turn(turn) => format!("its turn {} ended, {}", turn.id, turn_outcome(&turn.outcome)),
        Up::Result(result) => ended(result),
        Up::Failed(failed) => gave_up(failed),
    }
}

fn turn_outcome(outcome: &TurnOutcome) -> String {
    match outcome {
        TurnOutcome::Result(result) => ended(result),
        TurnOutcome::Failed(failed) => gave_up(failed),
    }
}

fn ended(result: &RunResult) -> String {
    let text = result.text.as_ref().map_or_else(String::new, |text| format!(" with {}", quoted(text)));
    let error = result.error.as_ref().map_or_else(String::new, |error| format!(": {}", plain(error)));
    let partial = if result.partial { ", not complete" } else { "" };
    format!("{}{text}{partial}{error}", loop_end(result.end))
}

fn gave_up(failed: &Failed) -> String {
    format!("failed: {}", plain(&failed.error))
}

fn loop_end(end: LoopEnd) -> &'static str {
    match end {
        LoopEnd::Completed => "completed",
        LoopEnd::Cancelled => "cancelled",
        LoopEnd::Refused => "refused by the model",
        LoopEnd::ExhaustedSteps => "out of steps",
        LoopEnd::ExhaustedTokens => "out of tokens",
        LoopEnd::Deadline => "out of time",
        LoopEnd::LoopDetected => "going in circles",
    }
}

fn waiting(on: &WaitingOn) -> String {
    match on {
        WaitingOn::Servers => "its servers".to_owned(),
        WaitingOn::Model => "the model".to_owned(),
        WaitingOn::Tools(names) => format!("tools: {}", plain(names.join(", "))),
        WaitingOn::Supervisor => "the supervisor".to_owned(),
        WaitingOn::Throttled(_) => "a provider that asked for patience".to_owned(),
        WaitingOn::Message => "the next message".to_owned(),
        WaitingOn::Paused => "a resume".to_owned(),
        WaitingOn::Budget => "room in a budget".to_owned(),
        WaitingOn::Closing => "its servers to end".to_owned(),
    }
}

/// What a child is told.
pub fn down(message: &Down) -> String {
    match message {
        Down::Spawn(spawn) => format!("its work: {}", quoted(&spawn.instruction)),
        Down::Ping(ping) => format!("ping {}", ping.seq),
        Down::Cancel(cancel) => format!("stop: {}", quoted(&cancel.reason)),
        Down::ToolResult(result) => {
            let error = if result.error { ", an error" } else { "" };
            format!("the answer to call {}{error}: {}", result.id, plain(&*result.value.0))
        }
        Down::Message(text) => format!("message {}: {}", text.id, quoted(&text.text)),
        Down::Steer(text) => format!("at its next step: {}", quoted(&text.text)),
        Down::Finish(finish) => format!("finish now: {}", quoted(&finish.reason)),
        Down::Pause(_) => "pause".to_owned(),
        Down::Resume(_) => "go on".to_owned(),
        Down::BudgetGrant(grant) => match &grant.verdict {
            BudgetVerdict::Own => "the model call may be made".to_owned(),
            BudgetVerdict::Degraded => "the model call may be made, with the cheaper model".to_owned(),
            BudgetVerdict::Refused(why) | BudgetVerdict::Failed(why) => {
                format!("the model call may not be made: {}", plain(why))
            }
        },
        Down::Model(swap) => match &swap.model {
            None => "go on with the model that it has".to_owned(),
            Some(model) => {
                let when = if swap.restart { "at once" } else { "from the next turn on" };
                format!("model {}: {}, {when}", swap.id, plain(&model.name))
            }
        },
        Down::Throttle(Throttle { endpoint, for_ms: 0 }) => format!("ask {} again", plain(host(endpoint))),
        Down::Throttle(Throttle { endpoint, for_ms }) => {
            format!("leave {} alone for {for_ms} ms", plain(host(endpoint)))
        }
    }
}
