//! What is told once it is durable, and what is told when a store fails instead (S6.3, S10.2, S10.7).

use super::control::{command, daemon, own, request, rpc, token};
use super::*;
use crate::event::Door;

fn keeping() -> Config {
    let mut config = daemon().core.config.clone();
    config.store.keeps = true;
    config
}

/// A daemon with a connection of its operator.
fn served() -> Desk {
    let mut desk = Desk::new(keeping());
    desk.event(Event::Seeded { seed: 7 });
    desk.open(1, Door::Control, own());
    desk
}

impl Desk {
    fn ask_over(&mut self, body: &Value) {
        self.bytes(1, &request(&token(0), body));
    }

    /// The JSON of the response that came, if one came.
    fn told(&mut self) -> Option<Value> {
        let text = String::from_utf8(self.sent.remove(&ConnId(1))?).expect("text");
        let (_, body) = text.split_once("\r\n\r\n").expect("a head");
        Some(serde_json::from_str(body).unwrap_or_else(|error| panic!("{error} in {body}")))
    }

    /// The value of a command's answer, if it came.
    fn op_told(&mut self) -> Option<Value> {
        Some(self.told()?["result"]["message"]["parts"][0]["data"]["agentd"]["value"].clone())
    }
}

fn message(id: &str, at_once: bool) -> Value {
    let parts = json!([{ "text": id }]);
    rpc(
        "SendMessage",
        json!({
            "message": { "messageId": id, "role": "ROLE_USER", "parts": parts },
            "configuration": { "returnImmediately": at_once },
        }),
    )
}

/// A run that takes messages, up and in its first turn.
fn with_warm() -> Desk {
    let mut desk = served();
    desk.ask_over(&command("subagent.run", json!({ "instruction": "stay", "mode": "warm" })));
    assert_eq!(desk.op_told().expect("it is recorded")["handle"], "sub-1");
    let run = desk.node_of(1);
    desk.ready(run);
    desk
}

#[test]
fn a_message_is_acknowledged_once_it_is_durable_and_its_number_is_given_once() {
    let mut desk = with_warm();
    desk.hold_stored = true;
    desk.ask_over(&command("subagent.send", json!({ "handle": "sub-1", "text": "more" })));
    assert_eq!(desk.told(), None, "a crash now would forget it");
    desk.release();
    let told = desk.op_told().expect("it is durable");
    assert_eq!((&told["message_id"], &told["saved"]), (&json!(2), &Value::Null), "{told}");
    let mut desk = desk.reborn();
    desk.open(1, Door::Control, own());
    desk.ask_over(&command("subagent.send", json!({ "handle": "sub-1", "text": "again" })));
    assert_eq!(desk.op_told().expect("told")["message_id"], 3);
}

#[test]
fn a_message_that_cannot_be_saved_is_told_and_the_next_one_is_refused_until_the_store_heals() {
    let mut desk = with_warm();
    desk.fails = Some(("disk full", true));
    let send = command("subagent.send", json!({ "handle": "sub-1", "text": "more" }));
    desk.ask_over(&send);
    assert_eq!(desk.op_told().expect("nobody waits for a disk")["saved"], false);
    desk.ask_over(&send);
    let refused = desk.op_told().expect("told");
    assert_eq!(refused["error"]["gate"], "store", "{refused}");
    desk.ask_over(&message("m-1", true));
    let refused = desk.told().expect("told");
    assert!(refused["error"]["message"].as_str().is_some_and(|said| said.contains("disk full")), "{refused}");
    desk.fails = None;
    let due = desk.core.poll_timeout().expect("it is tried again").at;
    desk.advance_to(due.millis() + 1_000);
    desk.ask_over(&send);
    assert_eq!(desk.op_told().expect("told")["message_id"], 3);
}

#[test]
fn a_task_is_told_of_once_it_is_durable_and_so_is_its_end() {
    let mut desk = served();
    desk.hold_stored = true;
    desk.ask_over(&message("m-1", true));
    assert_eq!(desk.told(), None, "a crash now would forget it");
    desk.release();
    let told = desk.told().expect("it is durable");
    let task = told["result"]["task"]["id"].as_str().expect("a task").to_owned();
    desk.ready(NodeId(1));
    // The same message again waits for its end.
    desk.ask_over(&message("m-1", false));
    desk.hold_stored = true;
    desk.turn(NodeId(1), 1, "three");
    assert_eq!(desk.told(), None, "a restart now would make the turn again");
    desk.open(2, Door::Control, own());
    desk.bytes(2, &request(&token(0), &rpc("GetTask", json!({ "id": task }))));
    let seen = String::from_utf8(desk.sent.remove(&ConnId(2)).expect("an answer")).expect("text");
    assert!(seen.contains("TASK_STATE_WORKING") && !seen.contains("three"), "{seen}");
    desk.release();
    let told = desk.told().expect("it is durable");
    assert_eq!(told["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{told}");
}

#[test]
fn a_turn_that_cannot_be_begun_for_want_of_a_store_is_answered() {
    let mut desk = served();
    desk.fails = Some(("disk full", true));
    desk.ask_over(&message("m-1", false));
    let told = desk.told().expect("nobody waits for a disk");
    assert_eq!(told["result"]["task"]["status"]["state"], "TASK_STATE_FAILED", "{told}");
    assert!(told.to_string().contains("disk full"), "{told}");
}

/// S10.7: kills work while the disk is full. That it is not recorded is said.
#[test]
fn a_kill_that_cannot_be_recorded_is_told_once_the_run_is_gone() {
    let mut desk = with_warm();
    let run = desk.node_of(1);
    desk.fails = Some(("disk full", true));
    desk.ask_over(&command("subagent.kill", json!({ "handle": "sub-1", "gone": true })));
    assert_eq!(desk.told(), None, "it is not gone");
    desk.exit(run, Exit::Code(0));
    let told = desk.op_told().expect("it is gone");
    assert_eq!((&told["status"], &told["recorded"]), (&json!("cancelled"), &json!(false)), "{told}");
    desk.fails = None;
    let due = desk.core.poll_timeout().expect("it is tried again").at;
    desk.advance_to(due.millis() + 60_000);
    assert_eq!(desk.statuses_of(1), Status::Cancelled);
    let desk = desk.reborn();
    assert_eq!(desk.statuses_of(1), Status::Cancelled, "nothing revives it");
}
