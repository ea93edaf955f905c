use super::*;
use rustix::fs::{CWD, RenameFlags};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};

/// A session whose folder has a neighbour with a secret.
fn with_secret(write: bool) -> Session {
    let session = Session::new(write);
    std::fs::create_dir(session.dir.path().join("outside")).unwrap();
    std::fs::write(session.dir.path().join("outside/secret"), "canary\n").unwrap();
    session
}

#[test]
fn every_way_out_is_refused() {
    let mut session = with_secret(true);
    session.put("in/file", "x");
    let out = session.dir.path().join("outside");
    symlink(&out, session.path("abs")).unwrap();
    symlink("../outside", session.path("rel")).unwrap();
    symlink("../../outside/secret", session.path("in/file-link")).unwrap();
    symlink("rel/../../outside", session.path("twice")).unwrap();
    symlink("/proc/self/root", session.path("magic")).unwrap();
    symlink("/dev/null", session.path("null")).unwrap();
    let absolute = out.join("secret").to_string_lossy().into_owned();
    let sibling = format!("{}-not/x", session.path("").to_string_lossy().trim_end_matches('/'));
    for path in [
        "..",
        "../",
        "../outside/secret",
        "in/../../outside/secret",
        "./.././outside",
        "/",
        "/etc/passwd",
        &absolute,
        &sibling,
        "abs",
        "abs/secret",
        "rel/secret",
        "in/file-link",
        "twice/secret",
        "magic/etc/passwd",
        "null",
        "rel/..",
        "abs/new",
    ] {
        for (tool, args) in [
            ("read", json!({"path": path})),
            ("list", json!({"path": path})),
            ("stat", json!({"path": path})),
            ("grep", json!({"path": path, "pattern": ""})),
            ("glob", json!({"path": path, "pattern": "*"})),
            ("write", json!({"path": path, "text": "x"})),
            ("edit", json!({"path": path, "old": "x", "new": "y"})),
        ] {
            let told = session.err(tool, args);
            assert!(told.contains("leads out of the served folder"), "{tool} {path}: {told}");
        }
    }
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 1);
    assert_eq!(session.ok("grep", json!({"pattern": "canary"}))["matching_lines"], 0);
}

#[test]
fn links_that_stay_inside_are_followed_when_asked_for() {
    let mut session = with_secret(true);
    session.put("real/file", "hello\n");
    symlink("real", session.path("dir-link")).unwrap();
    symlink("../dir-link/file", session.path("real/up-and-down")).unwrap();
    symlink(session.path("real"), session.path("abs-inside")).unwrap();
    symlink("../outside", session.path("out")).unwrap();
    for path in ["dir-link/file", "real/up-and-down", "abs-inside/file", "dir-link/../real/file"] {
        assert_eq!(session.ok("read", json!({"path": path}))["path"], "real/file", "{path}");
    }
    let absolute = session.path("real/file").to_string_lossy().into_owned();
    assert_eq!(session.ok("read", json!({"path": absolute}))["path"], "real/file");
    let root = session.path("").to_string_lossy().into_owned();
    assert_eq!(session.ok("list", json!({"path": root}))["path"], ".");
    session.ok("write", json!({"path": "dir-link/new", "text": "x"}));
    assert!(session.path("real/new").exists());
}

#[test]
fn loops_and_broken_links_end() {
    let mut session = Session::new(false);
    symlink("b", session.path("a")).unwrap();
    symlink("a", session.path("b")).unwrap();
    symlink("self/x", session.path("self")).unwrap();
    symlink("missing", session.path("broken")).unwrap();
    for path in ["a", "b/c", "self"] {
        assert!(session.err("read", json!({"path": path})).contains("symbolic links"), "{path}");
    }
    assert!(session.err("read", json!({"path": "broken"})).contains("does not exist"));
    assert_eq!(session.ok("grep", json!({"pattern": ""}))["files_searched"], 0);
    for path in ["", "a\0b", &"x/".repeat(3_000)] {
        assert!(session.err("read", json!({"path": path})).contains("a path is 1 to 4096 bytes"));
    }
}

#[test]
fn only_files_and_folders_are_served() {
    let mut session = Session::new(true);
    rustix::fs::mkfifoat(CWD, session.path("fifo"), rustix::fs::Mode::from(0o666)).unwrap();
    let _socket = UnixListener::bind(session.path("socket")).unwrap();
    session.put("file", "x\n");
    for path in ["fifo", "socket"] {
        for (tool, args) in [
            ("read", json!({"path": path})),
            ("list", json!({"path": path})),
            ("stat", json!({"path": path})),
            ("grep", json!({"path": path, "pattern": ""})),
            ("edit", json!({"path": path, "old": "x", "new": "y"})),
            ("write", json!({"path": path, "text": "x"})),
        ] {
            let told = session.err(tool, args);
            assert!(told.contains("served") || told.contains("is not a file"), "{told}");
        }
    }
    assert_eq!(
        session.ok("grep", json!({"pattern": ""}))["files_searched"],
        1,
        "a pipe does not block a walk"
    );
    assert_eq!(session.ok("list", json!({}))["entries"][0]["kind"], "other");
    let null = Path::new("/dev/null");
    let mut devices = Server::new(Root::open(null.parent().unwrap()).unwrap(), false);
    let request =
        json!({"id": 1, "method": "tools/call", "params": {"name": "read", "arguments": {"path": "null"}}});
    let answer: Value =
        serde_json::from_slice(&devices.answer(request.to_string().as_bytes()).unwrap()).unwrap();
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("is a device"), "{answer}");
}

/// Someone swaps a folder for a link to the outside, and a file for one, as fast as they can.
#[test]
fn a_race_between_folder_and_link_never_leads_out() {
    let mut session = with_secret(false);
    session.put("d/secret", "inside\n");
    session.put("f", "inside\n");
    symlink("../outside", session.path("d2")).unwrap();
    symlink("../outside/secret", session.path("f2")).unwrap();
    let (root, stop) = (session.path(""), AtomicBool::new(false));
    let swaps = std::thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            let mut swaps = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                for (a, b) in [("d", "d2"), ("f", "f2")] {
                    rustix::fs::renameat_with(CWD, root.join(a), CWD, root.join(b), RenameFlags::EXCHANGE)
                        .unwrap();
                }
                swaps += 1;
            }
            swaps
        });
        let mut inside = 0;
        for _ in 0..1_000 {
            for path in ["d/secret", "f"] {
                match session.call("read", json!({"path": path})) {
                    Ok(value) => {
                        assert_eq!(value["text"], "inside\n");
                        inside += 1;
                    }
                    Err(told) => assert!(!told.contains("canary")),
                }
            }
            assert_eq!(
                session
                    .call("grep", json!({"pattern": "canary"}))
                    .map_or(json!(0), |v| v["matching_lines"].clone()),
                0
            );
        }
        stop.store(true, Ordering::Relaxed);
        assert!(inside > 0);
        swapper.join().unwrap()
    });
    assert!(swaps > 0);
}
