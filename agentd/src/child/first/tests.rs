//! First frames, good and hostile (F32).

use super::*;
use agentd_core::bytes::Bytes;
use agentd_core::id::RunId;
use agentd_core::rng::Rng;
use agentd_core::time::Wall;
use agentd_core::wire::Encoder;
use agentd_core::wire::message::{Cancel, Dialect, Mode, Model, Ping, Role, RunLimits, Trace, VERSION};

pub(in crate::child) fn spawn(v: [u16; 2]) -> Spawn {
    Spawn {
        v,
        run_id: RunId::mint(Wall(1), &mut Rng::new(1)),
        handle: None,
        depth: 0,
        attempt: 1,
        role: Role::Worker,
        mode: Mode::Sync,
        trace: Trace { trace_id: "0".repeat(32), span_id: "0".repeat(16), parent_span_id: None },
        system: String::new(),
        instruction: "x".repeat(100_000),
        context: Vec::new(),
        output_schema: None,
        output_contract: None,
        servers: Vec::new(),
        tools: None,
        names: Vec::new(),
        own_tools: Vec::new(),
        model: Model { name: "m".into(), dialect: Dialect::Mock(Bytes::default()) },
        limits: RunLimits { steps: 1, tokens: 1, deadline_ms: 1, repeats: 0, tool_result_bytes: 1 },
        budget: None,
        log_level: "info".into(),
        transcript: None,
    }
}

fn frame(message: &Down) -> Vec<u8> {
    Encoder::new().encode_down(message).expect("it fits")
}

fn refusal(bytes: &[u8]) -> String {
    match read(&mut { bytes }) {
        Err(NoSpawn::NotASupervisor(seen)) => seen,
        other => panic!("{other:?} of {} bytes", bytes.len()),
    }
}

#[test]
fn exactly_the_first_frame_is_read() {
    let mut bytes = frame(&Down::Spawn(Box::new(spawn(VERSION))));
    let whole = bytes.len();
    bytes.extend_from_slice(b"the next one");
    let mut rest = bytes.as_slice();
    let (read, _decoder) = read(&mut rest).expect("a spawn frame");
    assert_eq!(*read, spawn(VERSION));
    assert_eq!(rest.len(), bytes.len() - whole);
}

#[test]
fn another_major_version_is_told_to_the_supervisor() {
    let minor = frame(&Down::Spawn(Box::new(spawn([VERSION[0], 99]))));
    assert!(read(&mut minor.as_slice()).is_ok());
    let major = frame(&Down::Spawn(Box::new(spawn([VERSION[0] + 1, 0]))));
    let Err(NoSpawn::OtherVersion(error)) = read(&mut major.as_slice()) else { panic!("accepted") };
    assert!(error.contains(&format!("{}.0", VERSION[0] + 1)), "{error}");
    // A frame of which only the version can be understood: {t: "spawn", n: 1, v: [9, 0]}.
    let mut foreign = b"\xa3\x61t\x65spawn\x61n\x01\x61v\x82\x09\x00".to_vec();
    foreign.splice(0..0, u32::try_from(foreign.len()).expect("short").to_be_bytes());
    assert!(matches!(read(&mut foreign.as_slice()), Err(NoSpawn::OtherVersion(_))));
    // No supervisor of any version writes these: a list too long, a key twice, another first number, an open map.
    for body in [
        b"\xa3\x61t\x65spawn\x61n\x01\x61v\x83\x09\x00\x00".as_slice(),
        b"\xa4\x61t\x65spawn\x61n\x01\x61v\x82\x09\x00\x61v\x82\x09\x00",
        b"\xa3\x61t\x65spawn\x61n\x02\x61v\x82\x09\x00",
        b"\xbf\x61t\x65spawn\x61n\x01\x61v\x82\x09\x00\xff",
    ] {
        let mut frame = u32::try_from(body.len()).expect("short").to_be_bytes().to_vec();
        frame.extend_from_slice(body);
        refusal(&frame);
    }
}

#[test]
fn what_is_no_spawn_frame_is_named() {
    assert!(refusal(b"").contains("nothing came"));
    assert!(refusal(b"\0\0").contains("2 bytes"));
    assert!(refusal(b"help\n").contains("claims"));
    assert!(refusal(&[0; 64]).contains("claims 0 bytes"));
    assert!(
        refusal(&u64::MAX.to_be_bytes()).contains("at most")
            || refusal(&u64::MAX.to_be_bytes()).contains("1 to")
    );
    assert!(refusal(b"\0\0\0\x09abc").contains("3 of 9"));
    assert!(refusal(&frame(&Down::Ping(Ping { seq: 1 }))).contains("ping"));
    assert!(refusal(&frame(&Down::Cancel(Cancel { reason: String::new(), turn: None }))).contains("cancel"));
    // A body that is no CBOR map at all.
    assert!(!refusal(b"\0\0\0\x01\xff").is_empty());
}
