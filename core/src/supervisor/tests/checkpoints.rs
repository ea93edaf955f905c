//! What a checkpoint holds and refuses. That a restored core decides the same is shown over whole lives by the
//! simulator.

use super::*;
use crate::supervisor::CheckpointError;
use crate::wire::message::Stdio;

const CANARY: &str = "canary-91ab";

/// A worker, a run that is being saved before it has a process, and one that waits for a permit.
fn busy() -> Desk {
    let mut config = config();
    config.subagents.breadth = 1;
    config.subagents.queue = 1;
    let env = [("TOKEN".to_owned(), CANARY.to_owned())].into();
    config.servers[0].transport =
        Transport::Stdio(Stdio { command: "server".into(), args: vec![], env, cwd: None });
    let (mut desk, worker) = Desk::with_worker(config);
    desk.hold_stored = true;
    desk.call(worker, "subagent.run", json!({"instruction": "one", "mode": "async"}));
    desk.call(worker, "subagent.run", json!({"instruction": "two", "mode": "async"}));
    desk
}

#[test]
fn permits_and_places_come_back_and_values_do_not() {
    let desk = busy();
    let bytes = Core::checkpoint(&desk.core).expect("a state");
    assert!(!bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes()));
    let core = Core::restore(&bytes).expect("a checkpoint");
    assert_eq!(core.permits_out(), 1);
    let holders = |which: fn(&Run) -> bool| core.runs.values().filter(|run| which(run)).count();
    assert_eq!((holders(|run| run.permit.is_some()), holders(|run| run.place.is_some())), (1, 1));
    let payload =
        core.runs.values().find_map(|run| run.payload.as_ref()).expect("one is not handed over yet");
    let Transport::Stdio(stdio) = &payload.servers[0].transport else { panic!("{payload:?}") };
    assert_eq!(stdio.env["TOKEN"], "*".repeat(CANARY.len()));
}

#[test]
fn a_child_is_heard_on_in_the_middle_of_a_frame() {
    let (desk, worker) = Desk::with_worker(config());
    let mut desk = desk;
    let frame = desk.child(worker).encoder.encode_up(&Up::Pong(Pong { seq: 1 })).expect("fits");
    let (head, tail) = frame.split_at(5);
    desk.event(Event::ChildBytes { node: worker, bytes: Bytes::from(head) });
    desk.core = Core::restore(&Core::checkpoint(&desk.core).expect("a state")).expect("a checkpoint");
    let (_, mut listener) = desk.core.listeners().remove(&worker).expect("it lives");
    listener.push(tail);
    assert!(matches!(listener.next(), Some(Ok(Decoded::Message(Up::Pong(_))))));
    desk.event(Event::ChildBytes { node: worker, bytes: Bytes::from(tail) });
    desk.result(worker, "done");
    assert_eq!(desk.delivered.len(), 1, "no frame was lost");
}

#[test]
fn damaged_checkpoints_are_refused() {
    let desk = busy();
    let bytes = Core::checkpoint(&desk.core).expect("a state");
    for length in (0..bytes.len()).step_by(97) {
        let refused = Core::restore(&bytes[..length]);
        assert!(matches!(refused, Err(CheckpointError::Unreadable(_))), "{length}");
    }
    let longer = [bytes.as_slice(), b"x"].concat();
    assert!(matches!(Core::restore(&longer), Err(CheckpointError::Unreadable(_))));
    // A permit more than the gates have given out: `out` is 1 in the bytes, and becomes 0.
    let field = [b"cout".as_slice(), &[1]].concat();
    let at = bytes.windows(field.len()).position(|window| window == field).expect("the gates' count");
    let mut forged = bytes.clone();
    forged[at + field.len() - 1] = 0;
    let refused = Core::restore(&forged).map(|_| ()).expect_err("a permit that nobody gave out");
    assert!(matches!(refused, CheckpointError::Damaged(_)), "{refused}");
    assert!(refused.to_string().contains("1 permits and 1 places are held where the gates count 0 and 1"));
    let mut odd = 0;
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x41;
        odd += usize::from(Core::restore(&changed).is_err());
    }
    assert!(odd > bytes.len() / 3, "{odd} of {} changes are seen", bytes.len());
}
