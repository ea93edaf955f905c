//! The thread that gives the daemon orders, one after the other, each on a connection of its own: one that takes long keeps
//! neither the screen nor the looks waiting. A question to the conversation takes as long as its turn, so it has a thread of
//! its own.

use super::News;
use super::keys::Order;
use crate::client::{ClientError, Daemon, answer_of, end_of};
use serde_json::Value;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

/// Characters of an answer of the conversation that the screen is given.
const ANSWER_CHARS: usize = 1_000;

/// Gives orders until there are no more.
pub(super) fn run(daemon: &Arc<Daemon>, orders: &Receiver<Order>, news: &Sender<News>) {
    for order in orders {
        let done = match order {
            Order::Op { op, args } => done(daemon.op(op, args).map(|told| words(op, &told))),
            Order::Ask(text) => match ask(daemon, text, news) {
                Ok(()) => News::Done("root is asked; its answer comes here".to_owned(), false),
                Err(error) => News::Done(format!("root cannot be asked: {error}"), true),
            },
        };
        if news.send(done).is_err() {
            return;
        }
    }
}

/// Asks the conversation on a thread of its own.
fn ask(daemon: &Arc<Daemon>, text: String, news: &Sender<News>) -> io::Result<()> {
    let (daemon, news) = (Arc::clone(daemon), news.clone());
    std::thread::Builder::new().name("agentd:ask".into()).spawn(move || {
        // Nobody wants the answer once the screen is gone.
        let _ended = news.send(done(daemon.ask(&text).map(|task| answer(&task))));
    })?;
    Ok(())
}

fn done(result: Result<String, ClientError>) -> News {
    match result {
        Ok(words) => News::Done(words, false),
        Err(error) => News::Done(error.to_string(), true),
    }
}

/// The beginning of an answer on one line, or how the turn ended.
fn answer(task: &Value) -> String {
    let (state, why) = end_of(task);
    match answer_of(task) {
        Some(said) if state == "completed" => {
            let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
            let said: String = lines.collect::<Vec<_>>().join(" ⏎ ").chars().take(ANSWER_CHARS).collect();
            format!("root: {said}")
        }
        _ => format!("root {state}: {why}"),
    }
}

/// What was done, in a few words.
fn words(op: &str, told: &Value) -> String {
    let name = told["handle"].as_str().unwrap_or_default();
    let status = told["status"].as_str().unwrap_or_default();
    match op {
        "subagent.send" => format!("message {} to {name}, {} waiting", told["message_id"], told["queued"]),
        "subagent.steer" => format!("{name} is told at its next step"),
        "subagent.finish" => format!("{name} is asked for its result"),
        "subagent.pause" => format!("{name} pauses at its next step"),
        "subagent.resume" => format!("{name} goes on"),
        _ => format!("{name} {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_is_one_line_and_a_failure_says_why() {
        let task = |state: &str, parts: Value| json!({"status": {"state": state, "message": {"parts": [{"text": "no model"}]}}, "artifacts": [{"parts": parts}]});
        let text = json!([{"text": "# Three\n\n- one\n- two\n"}]);
        assert_eq!(answer(&task("TASK_STATE_COMPLETED", text)), "root: # Three ⏎ - one ⏎ - two");
        assert_eq!(answer(&task("TASK_STATE_COMPLETED", json!([{"data": {"n": 3}}]))), "root: {\"n\":3}");
        assert_eq!(answer(&task("TASK_STATE_FAILED", json!([]))), "root failed: no model");
        assert_eq!(
            answer(&task("TASK_STATE_COMPLETED", json!([{"text": "x".repeat(5_000)}]))).len(),
            6 + ANSWER_CHARS
        );
    }
}
