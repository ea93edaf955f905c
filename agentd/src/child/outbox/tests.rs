//! The writer over a pipe that nobody reads at first.

use super::*;
use agentd_core::bytes::{Bytes, Json};
use agentd_core::wire::message::{LoopEnd, RunResult, ToolRequest};
use agentd_core::wire::{Decoded, UpDecoder};
use std::io::{PipeReader, Read};
use std::time::Duration;

struct Rig {
    outbox: Outbox,
    pongs: Pongs,
    reader: PipeReader,
    inbox: Receiver<Inbox>,
}

/// A writer on a thread, its pipe unread.
fn rig() -> Rig {
    let (reader, pipe) = std::io::pipe().expect("a pipe");
    let (sender, inbox) = channel();
    let (outbox, pongs, writer) = outbox(pipe, Encoder::new(), sender);
    std::thread::spawn(move || writer.run());
    Rig { outbox, pongs, reader, inbox }
}

fn request(id: u64, bytes: usize) -> Up {
    let args = Json(Bytes::from(vec![b' '; bytes]));
    Up::ToolRequest(ToolRequest { id, call_id: "c".into(), name: "n".into(), args })
}

fn result(text: String) -> Up {
    let text = Some(text);
    Up::Result(RunResult {
        end: LoopEnd::Completed,
        text,
        partial: false,
        error: None,
        evidence: Default::default(),
    })
}

fn event(name: &str) -> Up {
    Up::Event(Event { level: "info".into(), name: name.into(), fields: BTreeMap::new() })
}

/// Reads to the end of file; every frame must decode, so frames are whole and numbered without a gap.
fn read_all(mut reader: PipeReader) -> Vec<Up> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).expect("readable");
    let mut decoder = UpDecoder::new();
    decoder.push(&bytes);
    let frames: Vec<Up> = std::iter::from_fn(|| decoder.next())
        .map(|frame| match frame.expect("a whole frame") {
            Decoded::Message(up) => up,
            Decoded::Ignored => panic!("an unknown frame"),
        })
        .collect();
    decoder.finish().expect("nothing is cut");
    frames
}

fn wait_for(inbox: &Receiver<Inbox>, wanted: fn(&Inbox) -> bool) {
    loop {
        let message = inbox.recv_timeout(Duration::from_secs(20)).expect("the writer says so");
        if wanted(&message) {
            return;
        }
    }
}

#[test]
fn pongs_go_before_frames_that_wait_and_never_between_the_bytes_of_one() {
    let Rig { mut outbox, pongs, mut reader, inbox } = rig();
    // The first frame fills the pipe and the writer stands in the middle of it.
    outbox.push(request(1, 300_000));
    let mut first = [0; 1];
    reader.read_exact(&mut first).expect("the first byte");
    for id in 2..5 {
        outbox.push(request(id, 300_000));
    }
    for seq in 0..100 {
        pongs.push(seq);
    }
    outbox.push(result("done".into()));
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).expect("readable");
    wait_for(&inbox, |message| matches!(message, Inbox::TerminalWritten));
    let mut decoder = UpDecoder::new();
    decoder.push(&first);
    decoder.push(&rest);
    let order: Vec<String> = std::iter::from_fn(|| decoder.next())
        .map(|frame| match frame.expect("a whole frame") {
            Decoded::Message(Up::Pong(pong)) => format!("p{}", pong.seq),
            Decoded::Message(Up::ToolRequest(request)) => format!("r{}", request.id),
            Decoded::Message(Up::Result(_)) => "end".to_owned(),
            other => panic!("{other:?}"),
        })
        .collect();
    let wanted: Vec<String> = ["r1".to_owned()]
        .into_iter()
        .chain((0..100).map(|seq| format!("p{seq}")))
        .chain(["r2", "r3", "r4", "end"].map(str::to_owned))
        .collect();
    assert_eq!(order, wanted);
}

#[test]
fn an_unread_pipe_bounds_pongs_and_events_and_holds_nobody_up() {
    let Rig { mut outbox, pongs, reader, inbox } = rig();
    outbox.push(request(1, 2 * FRAME_BYTES_WAITING));
    let mut dropped = 0;
    for _ in 0..100_000 {
        pongs.push(7);
        outbox.push(event("noise"));
        dropped += u64::from(outbox.is_full());
    }
    assert!(dropped > 0, "what waits is bounded");
    assert!(outbox.waiting.pongs.load(Ordering::Relaxed) <= PONGS_WAITING);
    assert!(outbox.waiting.frame_bytes.load(Ordering::Relaxed) <= 4 * FRAME_BYTES_WAITING);
    let drained = std::thread::spawn(move || read_all(reader));
    while outbox.is_full() {
        wait_for(&inbox, |message| matches!(message, Inbox::Writable));
    }
    outbox.push(event("last"));
    outbox.push(result("done".into()));
    let frames = drained.join().expect("all decode");
    let (mut seen, mut told) = (0, 0);
    for up in &frames {
        match up {
            Up::Event(event) if event.name == "noise" => seen += 1,
            Up::Event(event) if event.name == "agent.events_dropped" => {
                told += event.fields["count"].parse::<usize>().expect("a count");
            }
            _ => {}
        }
    }
    assert_eq!(seen + told, 100_000, "every event arrives or is counted");
}

#[test]
fn nothing_follows_the_terminal_frame() {
    let Rig { mut outbox, pongs, reader, inbox } = rig();
    outbox.push(result("first".into()));
    outbox.push(result("second".into()));
    outbox.push(event("late"));
    wait_for(&inbox, |message| matches!(message, Inbox::TerminalWritten));
    pongs.push(1);
    assert_eq!(read_all(reader), [result("first".into())]);
}

#[test]
fn a_result_that_fits_no_frame_becomes_word_of_that() {
    let Rig { mut outbox, reader, .. } = rig();
    outbox.push(result("x".repeat(limits::FRAME_BYTES)));
    let frames = read_all(reader);
    let [Up::Failed(failed)] = frames.as_slice() else { panic!("{}", frames.len()) };
    assert!(failed.error.contains("cannot be sent"), "{}", failed.error);
    assert_eq!(failed.text.as_deref().map(str::len), Some(limits::RESULT_TEXT_BYTES));
}

#[test]
fn a_reader_that_is_gone_is_told() {
    let Rig { mut outbox, reader, inbox, .. } = rig();
    drop(reader);
    outbox.push(event("x"));
    wait_for(&inbox, |message| matches!(message, Inbox::OutputGone));
}
