//! A process can begin only once, so each case runs this test binary again as the process under test: `inside`
//! plays the part that `AGENTD_ENTRY_TEST` names and prints what it sees of itself.

use super::*;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::process::Stdio;

const PART: &str = "AGENTD_ENTRY_TEST";

/// Not a test of its own: without the variable there is nothing to play.
#[test]
fn inside() {
    let Ok(part) = std::env::var(PART) else { return };
    // The harness has left its own line open.
    println!();
    let words: Vec<&str> = part.split(' ').collect();
    let parent = words[1].parse().expect("a pid");
    match words[0] {
        "child" => match child(parent, "") {
            Ok(()) => report_self(),
            Err(e) => println!("error={e}"),
        },
        "keeper" => match keeper(parent, words[2].parse().expect("a descriptor")) {
            Ok(mut line) => {
                report_self();
                line.write_all(b"alive").expect("the lifeline is usable");
            }
            Err(e) => println!("error={e}"),
        },
        "server" => {
            reset_signals().expect("a keeper has done so");
            let mut command = Command::new("cat");
            command.arg("/proc/self/status");
            clean_slate(&mut command);
            assert!(command.status().expect("cat starts").success());
        }
        "server-fds" => {
            reset_signals().expect("a keeper has done so");
            let mut command = Command::new("ls");
            command.arg("/proc/self/fd");
            clean_slate(&mut command);
            assert!(command.status().expect("ls starts").success());
        }
        other => panic!("no such part: {other}"),
    }
}

/// Prints `key=value` lines about the calling thread and process. Reads before it prints: stdout is fd 1.
fn report_self() {
    let status = fs::read_to_string("/proc/thread-self/status").expect("own status");
    let mut fds: Vec<String> = fs::read_dir("/proc/self/fd")
        .expect("own descriptors")
        .filter_map(|e| e.ok().and_then(|e| e.file_name().into_string().ok()))
        .collect();
    // The one that listed the folder is closed again by now.
    fds.retain(|fd| fs::symlink_metadata(format!("/proc/self/fd/{fd}")).is_ok());
    for line in status.lines() {
        println!("{}", line.replacen(":\t", "=", 1));
    }
    println!("fds={}", fds.join(","));
    println!("subreaper={}", prctl::get_child_subreaper().expect("subreaper"));
    println!("pdeathsig={:?}", prctl::get_pdeathsig().expect("parent-death signal"));
}

struct Seen(String);

impl Seen {
    fn value(&self, key: &str) -> &str {
        let found = self.0.lines().find_map(|l| {
            let rest =
                l.split(key).nth(1).filter(|_| l.starts_with(key) || l.contains(&format!(" {key}")))?;
            rest.strip_prefix('=').or(rest.strip_prefix(":\t"))
        });
        found.unwrap_or_else(|| panic!("no {key} in {}", self.0)).trim()
    }

    fn bits(&self, key: &str) -> u64 {
        u64::from_str_radix(self.value(key), 16).expect("hex bits")
    }
}

/// Runs `inside` under coreutils' env, so that it begins with everything blocked and ignored (F29).
fn play(part: &str, dirty: bool) -> Seen {
    let mut command = Command::new("env");
    if dirty {
        command.args(["--ignore-signal", "--block-signal"]);
    }
    command
        .arg(std::env::current_exe().expect("own path"))
        .args(["--exact", "entry::tests::inside", "--nocapture", "--test-threads=1"])
        .env(PART, part)
        .stdin(Stdio::null());
    let out = command.output().expect("env starts");
    Seen(String::from_utf8(out.stdout).expect("text") + &String::from_utf8_lossy(&out.stderr))
}

#[test]
fn a_child_begins_clean_however_its_parent_was_started() {
    let seen = play(&format!("child {}", std::process::id()), true);
    assert_eq!(seen.bits("SigBlk"), 0, "{}", seen.0);
    // posix_spawn of the C library leaves its own signal 32 ignored.
    assert_eq!(seen.bits("SigIgn") & !(1 << 31), 1 << (libc::SIGPIPE - 1), "{}", seen.0);
    assert_eq!(seen.value("NoNewPrivs"), "1");
    assert_eq!(seen.value("fds"), "0,1,2");
    assert_eq!(seen.value("subreaper"), "true");
    assert_eq!(seen.value("pdeathsig"), "Some(SIGKILL)");
    assert!(seen.0.contains("agentd:child"), "{}", seen.0);
}

#[test]
fn a_child_whose_parent_is_another_one_does_not_begin() {
    let seen = play("child 1", false);
    let error = seen.value("error");
    assert!(error.contains("not process 1"), "{error}");
}

#[test]
#[allow(unsafe_code)]
fn a_keeper_keeps_its_lifeline_and_nothing_else() {
    let (ours, theirs) = UnixStream::pair().expect("a socket pair");
    let fd = theirs.as_raw_fd();
    // SAFETY: F_SETFD reads no memory; the descriptor is open and ours.
    assert_ne!(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) }, -1);
    let seen = play(&format!("keeper {} {fd}", std::process::id()), true);
    drop(theirs);
    assert_eq!(seen.value("fds"), format!("0,1,2,{fd}"));
    assert_eq!(seen.value("pdeathsig"), "Some(SIGTERM)");
    assert_eq!(seen.bits("SigBlk"), 0);
    let mut said = String::new();
    (&ours).read_to_string(&mut said).expect("the lifeline ends with its process");
    assert_eq!(said, "alive");
}

#[test]
fn a_keeper_without_its_lifeline_says_so() {
    for fd in ["-1", "0", "2", "7777"] {
        let seen = play(&format!("keeper {} {fd}", std::process::id()), false);
        assert!(seen.value("error").contains("no open lifeline"), "{fd}: {}", seen.0);
    }
}

#[test]
fn a_server_starts_from_a_clean_slate() {
    let seen = play(&format!("server {}", std::process::id()), true);
    for key in ["SigBlk", "SigIgn", "SigCgt"] {
        assert_eq!(seen.bits(key), 0, "{key} in {}", seen.0);
    }
    let fds = play(&format!("server-fds {}", std::process::id()), true);
    let numbers: BTreeMap<&str, ()> =
        fds.0.lines().filter(|l| l.parse::<u32>().is_ok()).map(|l| (l, ())).collect();
    // 3 is the folder that ls itself reads.
    assert_eq!(numbers.into_keys().collect::<Vec<_>>(), ["0", "1", "2", "3"], "{}", fds.0);
}

#[test]
fn names_are_cut_at_a_character_boundary() {
    std::thread::spawn(|| {
        for (given, kept) in [
            ("agentd:sub-7", "agentd:sub-7"),
            ("agentd:sub-123456", "sub-123456"),
            ("a-server-with-a-name", "a-server-with-a"),
            ("agentd:äöüäöü", "äöüäöü"),
            ("a\0b", "a"),
        ] {
            name(given).expect("a name");
            assert_eq!(prctl::get_name().expect("the name").to_str(), Ok(kept));
        }
    })
    .join()
    .expect("the thread ends well");
}
