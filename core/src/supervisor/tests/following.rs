//! `logs`: numbers without gaps, requests that wait for the next event, and what the ring forgets.

use super::control::{command, op_value, operator, own, request, token};
use super::*;
use crate::event::{Door, SupervisorSignal};
use crate::limits;
use crate::wire::message::Event as ChildEvent;

const GATHER: u64 = limits::LOG_GATHER.as_millis() as u64;

/// A desk with one live subagent.
fn desk() -> Desk {
    let mut desk = operator();
    desk.commanded(1, "subagent.run", json!({ "instruction": "look", "mode": "async" }));
    desk.ready(NodeId(1));
    desk
}

impl Desk {
    /// The child logs so many events.
    fn says(&mut self, node: NodeId, count: usize) {
        for n in 0..count {
            let fields = BTreeMap::from([("n".to_owned(), n.to_string())]);
            self.up(node, &Up::Event(ChildEvent { level: "info".into(), name: "tool.call".into(), fields }));
        }
    }

    fn asks(&mut self, conn: u64, args: Value) {
        self.bytes(conn, &request(&token(0), &command("logs", args)));
    }

    /// The value of an answer that has come.
    fn heard(&mut self, conn: u64) -> Value {
        let answer = self.json(conn);
        let (error, value) = op_value(&answer);
        assert!(!error, "{value}");
        value
    }
}

fn numbers(page: &Value) -> Vec<u64> {
    page["events"].as_array().expect("events").iter().map(|e| e["seq"].as_u64().expect("a number")).collect()
}

fn sub(more: Value) -> Value {
    let mut args = json!({ "handle": "sub-1" });
    args.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    args
}

#[test]
fn pages_follow_one_another_without_a_gap_or_a_repetition() {
    let mut desk = desk();
    desk.says(NodeId(1), 10);
    let all = desk.commanded(1, "logs", sub(json!({})));
    assert_eq!(numbers(&all), (1..=11).collect::<Vec<u64>>(), "the spawn and ten of its own");
    assert_eq!((&all["last"], &all["lost"], &all["ended"]), (&json!(11), &json!(0), &json!(false)));
    assert!(all["events"][3]["ts"].is_string() && all["events"][3]["event"] == "tool.call", "{all}");
    let (mut after, mut seen) = (0, Vec::new());
    while after < 11 {
        let page = desk.commanded(1, "logs", sub(json!({ "after": after, "lines": 4 })));
        seen.extend(numbers(&page));
        after = page["last"].as_u64().expect("a number");
    }
    assert_eq!(seen, (1..=11).collect::<Vec<u64>>());
    let newest = desk.commanded(1, "logs", sub(json!({ "lines": 2 })));
    assert_eq!(
        (numbers(&newest), &newest["lost"]),
        (vec![10, 11], &json!(0)),
        "what was not asked for is not lost"
    );
    // Another run has numbers of its own.
    desk.commanded(1, "subagent.run", json!({ "instruction": "look", "mode": "async" }));
    assert_eq!(numbers(&desk.commanded(1, "logs", json!({ "handle": "sub-2" }))), [1]);
}

#[test]
fn a_request_that_waits_is_answered_with_the_burst_that_comes_next() {
    let mut desk = desk();
    desk.asks(1, sub(json!({ "after": 1, "wait": "30s" })));
    assert_eq!(desk.got(1), "", "nothing is new");
    desk.says(NodeId(1), 3);
    assert_eq!(desk.got(1), "", "a burst is gathered");
    desk.advance_to(GATHER);
    let page = desk.heard(1);
    assert_eq!((numbers(&page), &page["last"]), (vec![2, 3, 4], &json!(4)));
    // What is there already is told at once, and what another run logs concerns nobody here.
    desk.asks(1, sub(json!({ "after": 3, "wait": "30s" })));
    assert_eq!(numbers(&desk.heard(1)), [4]);
    desk.asks(1, sub(json!({ "after": 4, "wait": "2s" })));
    desk.open(2, Door::Control, own());
    desk.commanded(2, "subagent.run", json!({ "instruction": "look", "mode": "async" }));
    desk.advance_to(GATHER + 1_999);
    assert_eq!(desk.got(1), "");
    desk.advance_to(GATHER + 2_000);
    let page = desk.heard(1);
    assert_eq!(
        (numbers(&page), &page["last"], &page["ended"]),
        (vec![], &json!(4), &json!(false)),
        "the time is up"
    );
}

#[test]
fn what_is_asked_behind_a_request_that_waits_is_begun_when_it_is_answered() {
    let mut desk = desk();
    let wait = request(&token(0), &command("logs", sub(json!({ "after": 1, "wait": "30s" }))));
    let kill = request(&token(0), &command("subagent.kill", json!({ "handle": "sub-1" })));
    desk.bytes(1, &[wait, kill].concat());
    assert_eq!(desk.statuses_of(1), Status::Running);
    desk.says(NodeId(1), 1);
    desk.advance_to(GATHER);
    assert_eq!(desk.statuses_of(1), Status::Cancelled);
    assert_eq!(desk.got(1).matches("HTTP/1.1 200 OK").count(), 2);
}

#[test]
fn the_end_of_a_run_is_told_when_nothing_more_comes() {
    let mut desk = desk();
    desk.asks(1, sub(json!({ "after": 1, "wait": "30s" })));
    desk.result(NodeId(1), "seen");
    desk.advance_to(GATHER);
    let page = desk.heard(1);
    assert_eq!(page["ended"], false, "its process is there and may log more: {page}");
    let last = page["last"].clone();
    desk.asks(1, sub(json!({ "after": last, "wait": "30s" })));
    desk.exit(NodeId(1), Exit::Code(0));
    desk.advance_to(2 * GATHER + 5);
    let page = desk.heard(1);
    assert_eq!(page["ended"], true, "{page}");
    // Whoever comes later is told at once, and the last page of several says so.
    let late = desk.commanded(1, "logs", sub(json!({ "after": page["last"], "wait": "30s" })));
    assert_eq!((numbers(&late), &late["ended"]), (vec![], &json!(true)));
    let first = desk.commanded(1, "logs", sub(json!({ "after": 0, "lines": 1 })));
    assert_eq!((numbers(&first), &first["ended"]), (vec![1], &json!(false)), "there is another page");
}

#[test]
fn what_the_ring_forgot_in_between_is_counted() {
    let mut desk = desk();
    desk.commanded(1, "subagent.run", json!({ "instruction": "talk", "mode": "async" }));
    desk.ready(NodeId(2));
    desk.says(NodeId(1), 9);
    // All of the first run's are forgotten for those of the second.
    desk.says(NodeId(2), limits::KEPT_NOTES);
    let page = desk.commanded(1, "logs", sub(json!({ "after": 4 })));
    assert_eq!((numbers(&page), &page["last"], &page["lost"]), (vec![], &json!(10), &json!(6)));
    desk.says(NodeId(1), 2);
    let page = desk.commanded(1, "logs", sub(json!({ "after": 4 })));
    assert_eq!((numbers(&page), &page["lost"]), (vec![11, 12], &json!(6)));
    let newest = desk.commanded(1, "logs", sub(json!({})));
    assert_eq!((numbers(&newest), &newest["lost"]), (vec![11, 12], &json!(10)));
    assert_eq!(desk.commanded(1, "logs", sub(json!({ "after": 10 })))["lost"], 0);
}

#[test]
fn followers_are_bounded_and_one_that_goes_away_makes_room() {
    let mut desk = desk();
    let most = limits::LOG_FOLLOWERS as u64;
    for conn in 2..=most + 2 {
        desk.open(conn, Door::Control, own());
        desk.asks(conn, sub(json!({ "after": 1, "wait": "60s" })));
    }
    let refused = desk.json(most + 2);
    let (error, value) = op_value(&refused);
    assert!(error && value["error"]["gate"] == "followers" && value["error"]["limit"] == "32", "{value}");
    // Without a wait nobody is turned away.
    assert_eq!(numbers(&desk.commanded(most + 2, "logs", sub(json!({ "after": 0 })))), [1]);
    desk.event(Event::ConnClosed { conn: ConnId(2), error: None });
    desk.asks(most + 2, sub(json!({ "after": 1, "wait": "60s" })));
    desk.says(NodeId(1), 1);
    desk.advance_to(GATHER);
    for conn in 3..=most + 2 {
        assert_eq!(numbers(&desk.heard(conn)), [2], "{conn}");
    }
    assert!(!desk.sent.contains_key(&ConnId(2)));
}

#[test]
fn who_follows_when_the_daemon_ends_has_the_rest_and_is_told() {
    let mut desk = desk();
    desk.asks(1, json!({ "handle": "root", "after": 0, "wait": "60s" }));
    desk.event(Event::Signalled { signal: SupervisorSignal::Term });
    desk.finish(NodeId(1), "seen");
    assert!(matches!(desk.exit, Some(Action::Exit { .. })), "{:?}", desk.exit);
    assert_eq!(desk.heard(1)["ended"], true);
}

#[test]
fn mistakes_name_what_is_accepted() {
    let mut desk = desk();
    for (args, says) in [
        (json!({ "after": -1 }), "after: accepted is the number of an event"),
        (json!({ "after": 2 }), "after: 2 is beyond its last event, 1"),
        (json!({ "wait": "1s" }), "wait: accepted is beside `after`"),
        (json!({ "after": 0, "wait": "61s" }), "wait: accepted is a duration from 0s to 60s"),
        (json!({ "after": 0, "wait": 1 }), "wait: accepted is a duration from 0s to 60s"),
        (json!({ "lines": 1_001 }), "lines: accepted is 1 to 1000"),
        (json!({ "follow": true }), "follow: unknown; accepted are handle, lines, after, wait"),
    ] {
        let answer = desk.called(1, &command("logs", sub(args.clone())));
        let (error, value) = op_value(&answer);
        let said = value["error"]["message"].as_str().unwrap_or_default();
        assert!(error && said.contains(says), "{args}: {value}");
    }
}

#[test]
fn a_request_that_waits_survives_a_checkpoint() {
    let mut desk = desk();
    desk.asks(1, sub(json!({ "after": 1, "wait": "30s" })));
    desk.core = Core::restore(&desk.core.checkpoint().expect("written")).expect("read");
    desk.says(NodeId(1), 1);
    desk.advance_to(GATHER);
    assert_eq!(numbers(&desk.heard(1)), [2]);
}
