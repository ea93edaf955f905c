use super::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

fn text(session: &Session, name: &str) -> String {
    std::fs::read_to_string(session.path(name)).unwrap()
}

#[test]
fn an_edit_needs_a_read_of_that_file() {
    let mut session = Session::new(true);
    session.put("a", "one two\n");
    session.put("b", "one two\n");
    session.put("d/x", "");
    let edit = |path: &str| json!({"path": path, "old": "two", "new": "three"});
    assert!(session.err("edit", edit("a")).contains("read it first"));
    session.ok("read", json!({"path": "b"}));
    assert!(session.err("edit", edit("a")).contains("read it first"), "the interlock is per file");
    session.ok("read", json!({"path": "d/.././a", "limit": 1}));
    assert_eq!(session.ok("edit", edit("a")), json!({"path": "a", "replaced": 1, "bytes": 10}));
    assert_eq!(text(&session, "a"), "one three\n");
    session.ok("edit", json!({"path": "a", "old": "three", "new": "four"}));
    session.ok("write", json!({"path": "new/er/c", "text": "five\n"}));
    session.ok("edit", json!({"path": "new/er/c", "old": "five", "new": "six"}));
    assert_eq!(text(&session, "new/er/c"), "six\n");
}

#[test]
fn a_change_by_someone_else_voids_the_read() {
    let mut session = Session::new(true);
    session.put("a", "one two\n");
    session.ok("read", json!({"path": "a"}));
    session.put("a", "one TWO two\n");
    let edit = json!({"path": "a", "old": "two", "new": "three"});
    assert!(session.err("edit", edit.clone()).contains("has changed since it was read"));
    assert!(session.err("edit", edit.clone()).contains("has changed since it was read"));
    assert_eq!(text(&session, "a"), "one TWO two\n");
    session.ok("read", json!({"path": "a"}));
    session.ok("edit", edit);
    assert_eq!(text(&session, "a"), "one TWO three\n");
}

#[test]
fn a_file_that_only_got_a_new_time_is_still_as_it_was_read() {
    let mut session = Session::new(true);
    session.put("a", format!("{}two", "one\n".repeat(100_000)));
    session.ok("read", json!({"path": "a", "limit": 1}));
    session.put("a", format!("{}two", "one\n".repeat(100_000)));
    session.ok("edit", json!({"path": "a", "old": "two", "new": "three"}));
}

#[test]
fn old_text_must_name_one_place() {
    let mut session = Session::new(true);
    session.put("a", "aaaa b b\n");
    session.ok("read", json!({"path": "a"}));
    assert!(session.err("edit", json!({"path": "a", "old": "c", "new": "d"})).contains("does not occur"));
    assert!(session.err("edit", json!({"path": "a", "old": "b", "new": "d"})).contains("occurs 2 times"));
    assert!(session.err("edit", json!({"path": "a", "old": "", "new": "d"})).contains("must be some text"));
    assert!(session.err("edit", json!({"path": "a", "old": "b", "new": "b"})).contains("differs"));
    assert_eq!(session.ok("edit", json!({"path": "a", "old": "aa", "new": "a", "all": true}))["replaced"], 2);
    assert_eq!(text(&session, "a"), "aa b b\n");
}

#[test]
fn edits_touch_only_the_bytes_they_name() {
    let mut session = Session::new(true);
    session.put("a", b"\xff\r\nold\r\n\xfe");
    session.ok("read", json!({"path": "a"}));
    session.ok("edit", json!({"path": "a", "old": "old", "new": "n\u{e9}w"}));
    assert_eq!(std::fs::read(session.path("a")).unwrap(), b"\xff\r\nn\xc3\xa9w\r\n\xfe");
}

#[test]
fn a_replaced_file_keeps_its_permissions_and_leaves_nothing_beside_it() {
    let mut session = Session::new(true);
    session.put("d/run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(session.path("d/run.sh"), std::fs::Permissions::from_mode(0o750)).unwrap();
    std::os::unix::fs::symlink("d/run.sh", session.path("link")).unwrap();
    let made = session.ok("write", json!({"path": "link", "text": "#!/bin/bash\n"}));
    assert_eq!(made, json!({"path": "d/run.sh", "bytes": 12, "created": false}));
    assert_eq!(std::fs::metadata(session.path("d/run.sh")).unwrap().mode() & 0o7777, 0o750);
    assert!(std::fs::symlink_metadata(session.path("link")).unwrap().is_symlink());
    assert_eq!(std::fs::read_dir(session.path("d")).unwrap().count(), 1);
    assert!(session.err("write", json!({"path": "d", "text": ""})).contains("is not a file"));
    assert!(session.err("write", json!({"path": "link/x", "text": ""})).contains("not a folder"));
    assert_eq!(session.ok("write", json!({"path": "empty", "text": ""}))["created"], true);
}

#[test]
fn a_write_that_fails_leaves_the_old_file() {
    let mut session = Session::new(true);
    session.put("a", "old");
    let long = "n".repeat(300);
    assert!(session.err("write", json!({"path": long, "text": "x"})).contains("too long"));
    assert!(session.err("edit", json!({"path": "a/b", "old": "x", "new": "y"})).contains("not a folder"));
    assert_eq!(text(&session, "a"), "old");
    assert_eq!(std::fs::read_dir(session.path(".")).unwrap().count(), 1);
}

#[test]
fn without_write_nothing_can_be_changed() {
    let mut session = Session::new(false);
    session.put("a", "x");
    for tool in ["write", "edit"] {
        let request = json!({"id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {"path": "a", "text": "y", "old": "x", "new": "y"}}});
        let answer: Value =
            serde_json::from_slice(&session.server.answer(request.to_string().as_bytes()).unwrap()).unwrap();
        assert_eq!(answer["error"]["code"], -32602);
    }
    assert_eq!(text(&session, "a"), "x");
}
