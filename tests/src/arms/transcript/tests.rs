//! Transcripts are cut to what counts, and compared to the last character.

use super::*;
use agentd_core::bytes::Bytes;
use agentd_core::time::Now;
use agentd_core::wire::Up;
use agentd_core::wire::message::{Pong, Ready, VERSION};

/// What a child says, in pieces of so many bytes.
fn said(pieces: usize, frames: &[Up]) -> Vec<Turn> {
    let mut encoder = Encoder::new();
    let all: Vec<u8> = frames.iter().flat_map(|up| encoder.encode_up(up).expect("fits")).collect();
    let bytes = |piece: &[u8]| Event::ChildBytes { node: NodeId(7), bytes: Bytes::from(piece) };
    let turn = |event| Turn { now: Now::default(), event, actions: Vec::new() };
    all.chunks(pieces).map(|piece| turn(bytes(piece))).collect()
}

#[test]
fn bytes_may_be_cut_anywhere_and_pongs_do_not_count() {
    let ready = Up::Ready(Ready { v: VERSION });
    let whole = Transcript::of(&said(4_096, std::slice::from_ref(&ready)));
    let pieces = Transcript::of(&said(1, &[ready, Up::Pong(Pong { seq: 3 })]));
    assert_eq!(whole.processes["node-7"].up.len(), 1);
    assert_eq!(whole.difference(&pieces), None);
}

#[test]
fn the_first_difference_is_named_with_both_sides() {
    let lived = |lines: &[&str]| {
        let mut transcript = Transcript::default();
        let life = lines.iter().map(|line| (*line).to_owned()).collect();
        transcript.processes.insert("node-1".to_owned(), Process { life, ..Process::default() });
        transcript
    };
    let one = lived(&["exists", "ended with code 0"]);
    let told = |other: &[&str]| one.difference(&lived(other)).expect("they differ");
    let other = told(&["exists", "ended by signal 9"]);
    assert!(other.contains("/processes/node-1/life/1"), "{other}");
    assert!(other.contains("code 0") && other.contains("signal 9"), "{other}");
    assert!(told(&["exists"]).contains("2 entries and 1"), "{}", told(&["exists"]));
    assert!(told(&["exists", "ended with code 0", "is reaped"]).contains("is reaped"));
}
