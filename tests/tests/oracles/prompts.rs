//! Faults in the conversation: prompts, their answers, its end; and in what people are shown.

use crate::tamper::{Tampered, caught, deceived, misled, tampered};
use agentd_core::action::Action;
use agentd_core::config::Config;
use agentd_core::event::Event;
use agentd_core::machine::Machine;
use agentd_core::record::Status;
use agentd_core::time::Now;

const ONCE: &[&str] = &["the answer is delivered once"];
const OWN: &[&str] = &["the answer is the turn's"];

#[test]
fn prompts_that_are_lost_or_made_up() {
    deceived(
        |event, _| if let Event::PromptSubmitted { .. } = event { vec![] } else { vec![event] },
        &["everything comes to rest", "the answer is delivered"],
    );
    deceived(
        |event, _| {
            if let Event::PromptSubmitted { .. } = event { vec![event.clone(), event] } else { vec![event] }
        },
        ONCE,
    );
    let swapped = |event: Event, kept: &mut Vec<Event>| match (&event, kept.pop()) {
        (Event::PromptSubmitted { .. }, None) => {
            kept.push(event);
            vec![]
        }
        (Event::PromptSubmitted { .. }, Some(first)) => vec![event, first],
        (_, kept_back) => {
            kept.extend(kept_back);
            vec![event]
        }
    };
    deceived(swapped, &["prompts begin in order", "the answer is the turn's"]);
}

#[test]
fn a_cancel_that_nobody_hears() {
    deceived(
        |event, _| if let Event::TurnCancelled { .. } = event { vec![] } else { vec![event] },
        &["a cancelled turn ends in time"],
    );
}

#[test]
fn an_answer_that_is_anothers() {
    tampered(
        |_, out| {
            for action in out {
                if let Action::Deliver { result, .. } = action
                    && result.status == Status::Completed
                {
                    result.result = "token=9.9".into();
                }
            }
        },
        OWN,
    );
    tampered(
        |_, out| {
            for action in out {
                if let Action::Deliver { prompt, .. } = action {
                    *prompt += 1;
                }
            }
        },
        &["the answer is delivered once", "the answer is the turn's", "a prompt without a turn has a cause"],
    );
    tampered(
        |_, out| {
            for action in out {
                if let Action::Deliver { result, .. } = action
                    && result.error.as_deref() == Some("the daemon is stopping")
                {
                    result.status = Status::Completed;
                }
            }
        },
        &["a prompt without a turn has a cause"],
    );
}

#[test]
fn a_daemon_that_ends_by_itself_and_a_worker_that_stays() {
    misled(|c| c.one_shot = true, &["a daemon ends only by a drain"]);
    misled(|c| c.worker_idle *= 20, &["an idle worker goes"]);
    misled(|c| c.worker_idle /= 3, &["an outcome has a cause"]);
}

#[test]
fn a_conversation_that_is_not_told() {
    misled(|c| c.wake_on_results = false, &["the conversation is told of what ended"]);
}

#[test]
fn a_snapshot_that_hides_or_invents() {
    let hides = |config: Config, now: Now| -> Box<dyn Machine> {
        Box::new(Tampered::new(config, now).with_shown(|mut snapshot| {
            snapshot.runs.pop();
            snapshot
        }))
    };
    caught(&hides, &["a snapshot shows what is not over"]);
    let doubles = |config: Config, now: Now| -> Box<dyn Machine> {
        Box::new(Tampered::new(config, now).with_shown(|mut snapshot| {
            snapshot.runs.extend(snapshot.runs.first().cloned());
            snapshot
        }))
    };
    caught(&doubles, &["a snapshot shows what is not over"]);
}
