//! Child mode by hand, and bytes that no supervisor sends (F32).

use crate::rig::{AGENTD, Rig, Run, tag, walled};
use agentd_core::wire::message::{Ping, ToolResult};
use agentd_core::wire::{Down, Up};
use serde_json::json;
use std::io::Write;
use std::process::{Command, ExitStatus, Stdio};

/// Feeds `bytes` to a fresh child and ends its input.
fn feed(bytes: &[u8]) -> (ExitStatus, String) {
    let mut rig = Rig::bare(walled(64), tag());
    // It may end before it has read everything.
    let _rest_unread = rig.stdin.as_mut().expect("open").write_all(bytes);
    rig.stdin = None;
    let mut said = Vec::new();
    std::io::Read::read_to_end(&mut rig.stdout, &mut said).expect("readable");
    assert_eq!(said, b"", "stdout says nothing");
    rig.end()
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(body.len()).expect("short").to_be_bytes().to_vec();
    bytes.extend_from_slice(body);
    bytes
}

#[test]
fn what_is_no_spawn_frame_is_one_line_and_exit_2() {
    let mut deep = vec![0x81; 1_000_000];
    deep.push(0);
    let mut deep_map = Vec::new();
    for _ in 0..100_000 {
        deep_map.extend_from_slice(b"\xa1\x61t");
    }
    deep_map.push(0xf6);
    let inputs: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("text", b"hello?\n".to_vec()),
        ("a prefix of zeroes", vec![0; 4]),
        ("a length of 2^32-1", vec![0xff; 1_000]),
        ("a length of 2^63", 0x8000_0000_0000_0000u64.to_be_bytes().to_vec()),
        ("a cut frame", framed(&[0xa1])[..5].iter().copied().chain([0xff; 0]).collect()),
        ("a frame cut after its prefix", 4_000_000u32.to_be_bytes().to_vec()),
        ("arrays a million deep", framed(&deep)),
        ("maps a hundred thousand deep", framed(&deep_map)),
        ("a string of 4 GB with 3 bytes", framed(b"\x7a\xff\xff\xff\xffabc")),
        ("a byte string of 2^63 with 3 bytes", framed(b"\x5b\x80\0\0\0\0\0\0\0abc")),
        ("an array that claims 2^62 items", framed(b"\x9b\x40\0\0\0\0\0\0\0")),
        ("a map that claims 2^62 pairs", framed(b"\xbb\x40\0\0\0\0\0\0\0")),
        ("an indefinite map", framed(b"\xbf\x61t\x65spawn\xff")),
        ("duplicate keys", framed(b"\xa2\x61t\x65spawn\x61t\x65spawn")),
        ("trailing bytes", framed(b"\xa0\x00")),
        ("a tag", framed(b"\xc1\xa0")),
        ("a NaN", framed(b"\xa1\x61t\xf9\x7e\x00")),
        ("eight megabytes of nothing", framed(&vec![0; 8 * 1024 * 1024])),
        ("ten megabytes of ones", vec![1; 10_000_000]),
    ];
    for (name, bytes) in inputs {
        let (status, said) = feed(&bytes);
        assert_eq!(status.code(), Some(2), "{name}: {status}: {said}");
        assert_eq!(said.lines().count(), 1, "{name}: {said}");
        assert!(said.contains("AGENTD_SUBAGENT"), "{name}: {said}");
    }
}

#[test]
fn a_ping_is_no_first_frame() {
    let mut encoder = agentd_core::wire::Encoder::new();
    let ping = encoder.encode_down(&Down::Ping(Ping { seq: 1 })).expect("it fits");
    let (status, said) = feed(&ping);
    assert_eq!(status.code(), Some(2));
    assert!(said.contains("ping"), "{said}");
}

#[test]
fn without_the_parents_pid_there_is_no_child() {
    for pid in [None, Some(""), Some("1"), Some("-1"), Some("4294967296")] {
        let mut command = Command::new(AGENTD);
        command.env("AGENTD_SUBAGENT", "1").env_remove("AGENTD_PARENT_PID").stdin(Stdio::null());
        command.envs(pid.map(|pid| ("AGENTD_PARENT_PID", pid)));
        let out = command.output().expect("it starts");
        assert_eq!(out.status.code(), Some(2), "{pid:?}");
        assert_eq!(String::from_utf8_lossy(&out.stderr).lines().count(), 1, "{pid:?}");
    }
}

#[test]
fn a_keeper_is_not_started_by_hand_either() {
    for (pid, fd) in [
        ("", "3"),
        ("1", "3"),
        (&std::process::id().to_string(), "77"),
        (&std::process::id().to_string(), "x"),
    ] {
        let out = Command::new(AGENTD)
            .env("AGENTD_PARENT_PID", pid)
            .env("AGENTD_KEEPER", fd)
            .stdin(Stdio::null())
            .output()
            .expect("it starts");
        assert_eq!(out.status.code(), Some(2), "{pid} {fd}");
        assert!(String::from_utf8_lossy(&out.stderr).contains("not by hand"));
    }
}

#[test]
fn floods_of_small_frames_are_survived_within_the_wall() {
    let rules = json!([{"reply": {"text": "too late", "delay": "10m"}}]);
    let run = Run::new(rules);
    let mut rig = Rig::start_walled(64, run);
    rig.until_model_call();
    let mut flood = Vec::new();
    for id in 0..100_000u64 {
        let strays = ToolResult { id, error: false, value: agentd_core::bytes::Json::of(&json!({"a": "b"})) };
        rig.encoder.append(&Down::ToolResult(strays), &mut flood).expect("it fits");
        rig.encoder.append(&Down::Ping(Ping { seq: id }), &mut flood).expect("it fits");
    }
    rig.stdin.as_mut().expect("open").write_all(&flood).expect("it goes on reading");
    rig.cancel();
    assert!(matches!(rig.terminal(), Up::Result(_)));
    assert!(rig.end().0.success());
}

#[test]
fn hostile_bytes_after_the_spawn_frame_end_the_run_in_a_failed_frame() {
    let hostile = [
        framed(b"\xa0"),
        vec![0xff; 64],
        framed(b"\xa2\x61t\x64ping\x61n\x19\x03\xe7"),
        framed(&[0x81; 100_000]),
    ];
    for bytes in hostile {
        let run = Run::new(json!([{"reply": {"text": "too late", "delay": "10m"}}]));
        let mut rig = Rig::start_walled(64, run);
        rig.until_model_call();
        rig.stdin.as_mut().expect("open").write_all(&bytes).expect("read");
        let failed = rig.failed();
        assert!(failed.error.contains("control protocol"), "{}", failed.error);
        assert!(rig.end().0.success());
    }
}
