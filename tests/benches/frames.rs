//! What the control protocol costs: frames encoded, sent through a pipe and decoded, against the same bytes through
//! the same pipe without either, in the same run. Ratios are what to compare between machines and versions.
//!
//! `cargo bench -p agentd-tests --bench frames`; without cargo's `--bench` it only checks itself, quickly.

use agentd_core::bytes::{Bytes, Json};
use agentd_core::wire::message::{Event, ToolRequest, ToolResult, Usage};
use agentd_core::wire::{Decoded, Decoder, Down, Encoder, Message, Up};
use std::hint::black_box;
use std::io::{Read, Write, pipe};
use std::time::{Duration, Instant};

/// Bytes that one write carries at least, and one read at most.
const BATCH: usize = 64 * 1024;

fn main() {
    let measuring = std::env::args().any(|argument| argument == "--bench");
    let rounds = if measuring { 15 } else { 1 };
    let (small, large) = if measuring { (400_000, 8_000) } else { (2_000, 40) };
    println!(
        "{:<34} {:>12} {:>12} {:>7} {:>9} {:>9}",
        "frames", "bare pipe/s", "frames/s", "ratio", "encode ns", "decode ns"
    );
    for message in [usage(), event(), tool_request(100)] {
        // The number takes four bytes more from frame 65,536 on.
        report(&sized(message, 96), small, rounds);
    }
    report(&tool_request(64 * 1024), large, rounds);
    report(&Down::ToolResult(ToolResult { id: 1, error: false, value: filler(64 * 1024) }), large, rounds);
}

fn usage() -> Up {
    let model = "a-provider/and-a-model-name".into();
    Up::Usage(Usage { input: 120_000, output: 1_800, cached: 90_000, estimated: false, model })
}

fn event() -> Up {
    let fields = [("server".to_owned(), "files".to_owned()), ("tools".to_owned(), "14".to_owned())];
    Up::Event(Event { level: "info".into(), name: "mcp.connect".into(), fields: fields.into() })
}

fn tool_request(bytes: usize) -> Up {
    let (call_id, name) = ("call_1".to_owned(), "subagent.status".to_owned());
    Up::ToolRequest(ToolRequest { id: 7, call_id, name, args: filler(bytes.saturating_sub(70)) })
}

fn filler(bytes: usize) -> Json {
    Json(Bytes::from(vec![b'x'; bytes]))
}

/// The message with one of its texts made as long as a whole frame of `bytes` needs.
fn sized(mut message: Up, bytes: usize) -> Up {
    loop {
        let frame = Encoder::new().encode_up(&message).expect("fits").len();
        if frame == bytes {
            return message;
        }
        let text = match &mut message {
            Up::Usage(usage) => &mut usage.model,
            Up::Event(event) => &mut event.name,
            Up::ToolRequest(request) => &mut request.call_id,
            other => unreachable!("{} is not measured", other.frame_type()),
        };
        let length = text.len() + bytes - frame.min(text.len() + bytes);
        *text = "m".repeat(length);
    }
}

/// Runs both arms in turn and prints medians.
fn report<M: Message + PartialEq + Sync>(message: &M, frames: u64, rounds: usize) {
    let stream = encode(message, frames);
    let (mut bare, mut full, mut ratio, mut encoding, mut decoding) =
        (vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..rounds {
        let b = through_pipe(|sender| send_bytes(sender, &stream), read_bytes);
        let f = through_pipe(
            |sender| send_frames(sender, message, frames),
            |receiver| receive(receiver, message),
        );
        assert_eq!((b.1, f.1), (stream.len() as u64, frames), "everything arrived");
        let started = Instant::now();
        encode_alone(message, frames);
        encoding.push(started.elapsed().as_secs_f64());
        let started = Instant::now();
        assert_eq!(receive(stream.as_slice(), message), frames);
        decoding.push(started.elapsed().as_secs_f64());
        bare.push(b.0.as_secs_f64());
        full.push(f.0.as_secs_f64());
        ratio.push(f.0.as_secs_f64() / b.0.as_secs_f64());
    }
    let count = frames as f64;
    let name = format!("{} of {} bytes", message.frame_type(), stream.len() as u64 / frames);
    let (bare, full, ratio) = (count / median(bare), count / median(full), median(ratio));
    let (encoding, decoding) = (median(encoding) / count * 1e9, median(decoding) / count * 1e9);
    println!("{name:<34} {bare:>12.0} {full:>12.0} {ratio:>7.2} {encoding:>9.0} {decoding:>9.0}");
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn encode<M: Message>(message: &M, frames: u64) -> Vec<u8> {
    let (mut encoder, mut bytes) = (Encoder::new(), Vec::new());
    for _ in 0..frames {
        encoder.append(black_box(message), &mut bytes).expect("fits");
    }
    bytes
}

/// As a sender does: a batch at a time, in memory that is used again.
fn encode_alone<M: Message>(message: &M, frames: u64) {
    let (mut encoder, mut batch) = (Encoder::new(), Vec::with_capacity(2 * BATCH));
    for _ in 0..frames {
        encoder.append(black_box(message), &mut batch).expect("fits");
        if batch.len() >= BATCH {
            black_box(&mut batch).clear();
        }
    }
}

/// The time from before the first write until the reader has seen the end.
fn through_pipe(
    send: impl FnOnce(&mut std::io::PipeWriter) + Send,
    receive: impl FnOnce(std::io::PipeReader) -> u64,
) -> (Duration, u64) {
    let (receiver, mut sender) = pipe().expect("a pipe");
    let started = Instant::now();
    let seen = std::thread::scope(|scope| {
        scope.spawn(move || send(&mut sender));
        receive(receiver)
    });
    (started.elapsed(), seen)
}

fn send_bytes(sender: &mut std::io::PipeWriter, stream: &[u8]) {
    for batch in stream.chunks(BATCH) {
        sender.write_all(batch).expect("the reader reads to the end");
    }
}

fn send_frames<M: Message>(sender: &mut std::io::PipeWriter, message: &M, frames: u64) {
    let (mut encoder, mut batch) = (Encoder::new(), Vec::with_capacity(2 * BATCH));
    for _ in 0..frames {
        encoder.append(black_box(message), &mut batch).expect("fits");
        if batch.len() >= BATCH {
            sender.write_all(&batch).expect("the reader reads to the end");
            batch.clear();
        }
    }
    sender.write_all(&batch).expect("the reader reads to the end");
}

fn read_bytes(mut receiver: impl Read) -> u64 {
    let (mut buffer, mut seen) = (vec![0; BATCH], 0);
    loop {
        match receiver.read(&mut buffer).expect("reads") {
            0 => return seen,
            bytes => seen += bytes as u64,
        }
    }
}

/// Decodes to the end and counts the frames that were `message`.
fn receive<M: Message + PartialEq>(mut receiver: impl Read, message: &M) -> u64 {
    let (mut decoder, mut buffer, mut seen) = (Decoder::<M>::new(), vec![0; BATCH], 0);
    loop {
        match receiver.read(&mut buffer).expect("reads") {
            0 => break,
            bytes => decoder.push(&buffer[..bytes]),
        }
        for decoded in decoder.by_ref() {
            match decoded.expect("a frame") {
                Decoded::Message(received) => seen += u64::from(black_box(received) == *message),
                Decoded::Ignored => {}
            }
        }
    }
    decoder.finish().expect("whole frames");
    seen
}
