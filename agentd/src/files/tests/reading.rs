use super::*;

#[test]
fn lines_are_counted_and_paged() {
    let mut session = Session::new(false);
    session.put("a.txt", "one\r\ntwo\n\nfour");
    let all = session.ok("read", json!({"path": "a.txt"}));
    assert_eq!(
        all,
        json!({"path": "a.txt", "text": "one\r\ntwo\n\nfour", "lines": 4, "offset": 0, "total_lines": 4,
               "truncated": false, "next_offset": null, "line_cut": false, "lossy": false})
    );
    let page = session.ok("read", json!({"path": "a.txt", "offset": 1, "limit": 2}));
    assert_eq!(
        (&page["text"], &page["lines"], &page["next_offset"]),
        (&json!("two\n\n"), &json!(2), &json!(3))
    );
    assert_eq!(page["truncated"], true);
    let beyond = session.ok("read", json!({"path": "a.txt", "offset": 9}));
    assert_eq!(
        (&beyond["text"], &beyond["lines"], &beyond["total_lines"]),
        (&json!(""), &json!(0), &json!(4))
    );
    assert_eq!(beyond["truncated"], false);
    session.put("empty", "");
    assert_eq!(session.ok("read", json!({"path": "empty"}))["total_lines"], 0);
}

#[test]
fn pages_put_together_are_the_file() {
    let mut session = Session::new(false);
    let text: String = (0..20_000).map(|i| format!("line {i} \"quoted\" \u{1} é\n")).collect();
    session.put("big", &text);
    let (mut whole, mut offset, mut pages) = (String::new(), 0, 0);
    loop {
        let page = session.ok("read", json!({"path": "big", "offset": offset}));
        whole.push_str(page["text"].as_str().unwrap());
        pages += 1;
        match page["next_offset"].as_u64() {
            Some(next) => offset = next,
            None => break,
        }
    }
    assert!(whole == text && pages > 5, "{pages}");
}

#[test]
fn long_lines_are_cut_and_marked_without_losing_the_next() {
    let mut session = Session::new(false);
    session.put("long", format!("{}\nnext\n", "é".repeat(300_000)));
    let cut = session.ok("read", json!({"path": "long"}));
    assert_eq!((&cut["line_cut"], &cut["lines"], &cut["total_lines"]), (&json!(true), &json!(1), &json!(2)));
    assert_eq!(
        (&cut["truncated"], &cut["next_offset"], &cut["lossy"]),
        (&json!(true), &json!(1), &json!(false))
    );
    assert_eq!(session.ok("read", json!({"path": "long", "offset": 1}))["text"], "next\n");
    session.put("control", "\u{1}".repeat(100_000));
    assert_eq!(session.ok("read", json!({"path": "control"}))["line_cut"], true);
}

#[test]
fn bytes_that_are_no_text_are_said_so() {
    let mut session = Session::new(false);
    session.put("latin1", b"caf\xe9\n");
    let lossy = session.ok("read", json!({"path": "latin1"}));
    assert_eq!((&lossy["text"], &lossy["lossy"]), (&json!("caf\u{fffd}\n"), &json!(true)));
    session.put("binary", b"abc\n\0");
    assert!(session.err("read", json!({"path": "binary"})).contains("binary file of 5 bytes"));
}

#[test]
fn folders_are_listed_by_name_with_kind_and_size() {
    let mut session = Session::new(false);
    session.put("b.txt", "12345");
    session.put(".hidden", "");
    session.put("a/x", "");
    std::os::unix::fs::symlink("b.txt", session.path("link")).unwrap();
    let list = session.ok("list", json!({}));
    assert_eq!(
        list,
        json!({"path": ".", "total": 4, "truncated": false, "entries": [
            {"name": ".hidden", "kind": "file", "bytes": 0},
            {"name": "a", "kind": "dir", "bytes": 0},
            {"name": "b.txt", "kind": "file", "bytes": 5},
            {"name": "link", "kind": "link", "bytes": 0}]})
    );
    assert_eq!(session.ok("list", json!({"path": "a/../a/"}))["path"], "a");
    assert!(session.err("list", json!({"path": "b.txt"})).contains("is a file"));
    assert!(session.err("read", json!({"path": "a"})).contains("is a folder"));
    let stat = session.ok("stat", json!({"path": "link"}));
    assert_eq!((&stat["path"], &stat["kind"], &stat["bytes"]), (&json!("b.txt"), &json!("file"), &json!(5)));
    assert!(stat["modified"].as_str().unwrap().ends_with('Z'));
    assert_eq!(session.ok("stat", json!({"path": "."}))["kind"], "dir");
    assert!(session.err("stat", json!({"path": "nope"})).contains("does not exist"));
}

#[test]
fn folders_with_very_many_names_give_a_bounded_list() {
    let mut session = Session::new(false);
    for i in 0..1_500 {
        session.put(&format!("d/{i:04}-{}", "n".repeat(120)), "");
    }
    let list = session.ok("list", json!({"path": "d"}));
    assert_eq!((&list["total"], &list["truncated"]), (&json!(1_500), &json!(true)));
    let glob = session.ok("glob", json!({"pattern": "*"}));
    assert_eq!((&glob["total"], &glob["truncated"]), (&json!(1_500), &json!(true)));
    assert!(glob["paths"].as_array().unwrap().len() > 100);
}

#[test]
fn globs_match_names_anywhere_or_whole_paths() {
    let mut session = Session::new(false);
    for name in [
        "a.rs",
        "src/b.rs",
        "src/deep/c.rs",
        "src/deep/c.txt",
        ".git/d.rs",
        "x/.git",
        "src/.e.rs",
        "src/f g.rs",
    ] {
        session.put(name, "");
    }
    std::os::unix::fs::symlink("src", session.path("link")).unwrap();
    let mut find = |args: Value| -> Vec<String> {
        let found = session.ok("glob", args);
        found["paths"].as_array().unwrap().iter().map(|p| p.as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        find(json!({"pattern": "*.rs"})),
        ["a.rs", "src/.e.rs", "src/b.rs", "src/deep/c.rs", "src/f g.rs"]
    );
    assert_eq!(find(json!({"pattern": "src/*.rs"})), ["src/.e.rs", "src/b.rs", "src/f g.rs"]);
    assert_eq!(find(json!({"pattern": "**/*.{txt,md}"})), ["src/deep/c.txt"]);
    assert_eq!(find(json!({"pattern": "./a.rs"})), ["a.rs"]);
    assert_eq!(find(json!({"pattern": "deep/*", "path": "src"})), ["src/deep/c.rs", "src/deep/c.txt"]);
    assert_eq!(find(json!({"pattern": "c.*", "path": "link/deep"})), ["src/deep/c.rs", "src/deep/c.txt"]);
    assert_eq!(find(json!({"pattern": ".git"})), ["x/.git"], "a file of that name is a file");
    assert_eq!(find(json!({"pattern": "d.rs", "path": ".git"})), [".git/d.rs"], "asked for by name");
    assert!(session.err("glob", json!({"pattern": "[a"})).contains("not a glob pattern"));
}

#[test]
fn a_name_that_is_not_utf_8_is_shown_and_said_to_be_out_of_reach() {
    use std::os::unix::ffi::OsStrExt;
    let mut session = Session::new(false);
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
    std::fs::write(session.path("").join(name), "x").unwrap();
    let listed = session.ok("list", json!({"path": "."}));
    let shown = listed["entries"][0]["name"].as_str().unwrap().to_owned();
    assert_eq!(shown, "caf\u{fffd}.txt");
    for tool in ["read", "stat", "list", "grep"] {
        let mut args = json!({"path": shown});
        if tool == "grep" {
            args["pattern"] = json!("x");
        }
        let said = session.err(tool, args);
        assert!(said.contains("not UTF-8") && !said.contains("does not exist"), "{tool}: {said}");
    }
    // A file that really has that character in its name is one like any other.
    session.put("a\u{fffd}", "x");
    assert_eq!(session.ok("read", json!({"path": "a\u{fffd}"}))["text"], "x");
}
