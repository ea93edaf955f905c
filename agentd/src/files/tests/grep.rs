//! `grep` against the real one, on trees made to be awkward.
use super::super::report::LINE_BYTES;
use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::Command;

/// `name NUL count` lines of `grep -rIcZ`, by name; the names as bytes.
fn real_counts(root: &Path, options: &[&str], pattern: &str, operand: &str) -> BTreeMap<Vec<u8>, u64> {
    let out = Command::new("grep")
        .env("LC_ALL", "C.UTF-8")
        .current_dir(root)
        .args(["-rIcZ", "--with-filename", "--exclude-dir=.git"])
        .args(options)
        .args(["-e", pattern, "--", operand])
        .output()
        .unwrap();
    let mut counts = BTreeMap::new();
    let mut rest = &out.stdout[..];
    while let Some(nul) = rest.iter().position(|b| *b == 0) {
        let end = nul + rest[nul..].iter().position(|b| *b == b'\n').unwrap();
        let count = std::str::from_utf8(&rest[nul + 1..end]).unwrap().parse().unwrap();
        counts.insert(rest[..nul].to_vec(), count);
        rest = &rest[end + 1..];
    }
    counts
}

/// A tree, and what the real grep says of all its lines.
struct Planted {
    session: Session,
    root: std::path::PathBuf,
    all: BTreeMap<Vec<u8>, u64>,
}

impl Planted {
    fn new(session: Session) -> Planted {
        let root = session.path("");
        let all = real_counts(&root, &[], "", ".");
        Planted { session, root, all }
    }

    /// Asserts that the counts and the list of matches are those of the real grep; `chosen` tells which file
    /// names take part.
    fn compare(&mut self, options: &[&str], pattern: &str, more: Value, chosen: fn(&str) -> bool) {
        let mut args = json!({"pattern": pattern, "max": 1_000});
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let ours = self.session.ok("grep", args.clone());
        let real = real_counts(&self.root, options, pattern, ".");
        let (mut text, mut binary, mut lines) = (0, 0, 0);
        for (name, count) in self.all.iter().filter(|(name, _)| chosen(&String::from_utf8_lossy(name))) {
            let bytes = std::fs::read(self.root.join(OsStr::from_bytes(name))).unwrap();
            *(if bytes.contains(&0) { &mut binary } else { &mut text }) += 1;
            lines += count;
        }
        let case = format!("{options:?} {args}");
        let want =
            [text, lines, real.values().filter(|n| **n > 0).count() as u64, real.values().sum::<u64>()];
        let keys = ["files_searched", "lines_searched", "matching_files", "matching_lines"];
        assert_eq!(keys.map(|key| ours[key].as_u64().unwrap()), want, "{keys:?} {case}");
        assert_eq!(ours["skipped"]["binary"], binary, "{case}");
        if ours["truncated"] == false {
            let mut listed = BTreeMap::<String, u64>::new();
            for found in ours["matches"].as_array().unwrap() {
                *listed.entry(found["file"].as_str().unwrap().to_owned()).or_default() += 1;
            }
            let mut want = BTreeMap::<String, u64>::new();
            for (name, count) in real.iter().filter(|(_, n)| **n > 0) {
                *want.entry(String::from_utf8_lossy(&name[2..]).into_owned()).or_default() += count;
            }
            assert_eq!(listed, want, "{case}");
        }
    }
}

const NAMES: [&[u8]; 14] = [
    b"plain",
    b"with space",
    b"-dash",
    b"--help",
    b"new\nline",
    b"caf\xc3\xa9",
    b"bad\xff",
    b"quote\"",
    b"back\\slash",
    b".hidden",
    b"glob*",
    b"a.rs",
    b"b.txt",
    b"tab\t",
];

fn name() -> impl Strategy<Value = &'static [u8]> {
    prop::sample::select(NAMES.to_vec())
}

fn folder() -> impl Strategy<Value = &'static [u8]> {
    prop::sample::select(vec![&b"d"[..], b"deep er", b"-x", b".git", b".github", b"\xe2\x82\xac"])
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        &b"foo"[..],
        b"bar",
        b"Foo",
        b" ",
        b"\n",
        b"\n\n",
        b"\r\n",
        b"a.b",
        b"caf\xc3\xa9",
        b"CAF\xc3\x89",
        b"\xff",
        b"\xed\xa0\x80",
        b"\xc3",
        b"x",
        b"[foo]",
        b"\t",
        b"\x1b[1m",
        b"\x7f",
        b"fo",
        b"o",
        b"\xf0\x9f\xa6\x80",
        b"0123456789",
    ]);
    prop_oneof![
        12 => prop::collection::vec(piece.clone(), 0..30).prop_map(|p| p.concat()),
        1 => Just(Vec::new()),
        2 => (prop::collection::vec(piece.clone(), 0..10), 0usize..12).prop_map(|(p, at)| {
            let mut bytes = p.concat();
            bytes.insert(at.min(bytes.len()), 0);
            bytes
        }),
        1 => (prop::collection::vec(piece.clone(), 1..5), 1usize..40_000).prop_map(|(p, n)| {
            // Long lines, and files longer than one read.
            let mut bytes = p.concat().repeat(n / 4 + 1);
            bytes.truncate(200_000);
            bytes
        }),
        1 => (prop::collection::vec(piece, 1..5), 30_000usize..150_000).prop_map(|(p, n)| {
            // A NUL far from the beginning.
            let mut bytes = p.concat().repeat(n / 8);
            bytes.extend(b"\nfoo\n\0");
            bytes
        }),
    ]
}

#[derive(Debug, Clone)]
enum Node {
    File(Vec<u8>),
    Link(&'static str),
    Fifo,
}

fn node() -> impl Strategy<Value = Node> {
    prop_oneof![
        10 => content().prop_map(Node::File),
        1 => prop::sample::select(vec!["plain", "..", ".", "../..", "/etc/passwd", "missing", "d"]).prop_map(Node::Link),
        1 => Just(Node::Fifo),
    ]
}

type Tree = Vec<(Vec<&'static [u8]>, &'static [u8], Node)>;

fn tree() -> impl Strategy<Value = Tree> {
    prop::collection::vec((prop::collection::vec(folder(), 0..4), name(), node()), 0..25)
}

fn plant(root: &Path, tree: &Tree) {
    for (folders, name, node) in tree {
        let mut path = root.to_owned();
        path.extend(folders.iter().map(|f| OsStr::from_bytes(f)));
        if std::fs::create_dir_all(&path).is_err() {
            continue;
        }
        path.push(OsStr::from_bytes(name));
        // The same name twice is not worth a case: the first stays.
        match node {
            _ if std::fs::symlink_metadata(&path).is_ok() => {}
            Node::File(bytes) => std::fs::write(&path, bytes).unwrap(),
            Node::Link(to) => symlink(to, &path).unwrap(),
            Node::Fifo => {
                rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::from(0o644)).unwrap()
            }
        }
    }
}

/// Patterns whose meaning is the same in POSIX extended and in Rust syntax.
const REGEXES: [&str; 14] = [
    "foo",
    "^foo",
    "foo$",
    "^$",
    "f.o",
    "foo|bar",
    "[a-c]+",
    "[^a-z]",
    "^.*$",
    "o{2}",
    "a\\.b",
    "café",
    "caf.",
    "^(foo|bar) *x?$",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn counts_are_those_of_grep(tree in tree()) {
        let session = Session::new(false);
        plant(&session.path(""), &tree);
        let mut planted = Planted::new(session);
        let any = |_: &str| true;
        for pattern in REGEXES {
            planted.compare(&["-E"], pattern, json!({}), any);
        }
        planted.compare(&["-E", "-i"], "FOO|é", json!({"ignore_case": true}), any);
        for literal in ["a.b", "[foo]", "", "foo\r", "*", "\\", "caf\u{e9}"] {
            planted.compare(&["-F"], literal, json!({"literal": true}), any);
        }
        planted.compare(&["-F", "-i"], "CAFÉ", json!({"literal": true, "ignore_case": true}), any);
        planted.compare(&["-E", "--include=*.rs"], "foo", json!({"glob": "*.rs"}), |name| name.ends_with(".rs"));
        let not_a = |name: &str| !name.rsplit('/').next().unwrap_or_default().starts_with('a');
        planted.compare(&["-E", "--include=[!a]*"], "o", json!({"glob": "[!a]*"}), not_a);
    }
}

#[test]
fn one_file_is_searched_by_its_path() {
    let mut session = Session::new(false);
    session.put("d/a", "foo\nbar\nfoo");
    session.put("d/b", "foo\n");
    session.put("bin", "foo\n\0");
    symlink("d/a", session.path("link")).unwrap();
    for path in ["d/a", "link"] {
        let found = session.ok("grep", json!({"pattern": "foo", "path": path}));
        assert_eq!(
            found,
            json!({"files_searched": 1, "lines_searched": 3, "matching_files": 1, "matching_lines": 2, "truncated": false,
                   "matches": [{"file": "d/a", "line": 1, "text": "foo"}, {"file": "d/a", "line": 3, "text": "foo"}],
                   "skipped": {"binary": 0, "unreadable": 0, "long_line": 0, "unreadable_folders": 0}})
        );
    }
    let binary = session.ok("grep", json!({"pattern": "foo", "path": "bin"}));
    assert_eq!((&binary["files_searched"], &binary["skipped"]["binary"]), (&json!(0), &json!(1)));
    assert!(session.err("grep", json!({"pattern": "foo", "path": "nope"})).contains("does not exist"));
    assert_eq!(
        session.ok("grep", json!({"pattern": "foo", "path": "d/a", "glob": "*.rs"}))["files_searched"],
        0
    );
}

#[test]
fn the_list_is_cut_and_the_counts_are_whole() {
    let mut session = Session::new(false);
    session.put("a", "foo\n".repeat(5_000));
    session.put("b", format!("foo {}\n", "é".repeat(3_000)).repeat(500));
    for (max, listed) in [(0, Some(0)), (1, Some(1)), (200, Some(200)), (1_000, None)] {
        let found = session.ok("grep", json!({"pattern": "foo", "max": max}));
        assert_eq!((&found["matching_lines"], &found["matching_files"]), (&json!(5_500), &json!(2)));
        assert_eq!(found["truncated"], true);
        if let Some(listed) = listed {
            assert_eq!(found["matches"].as_array().unwrap().len(), listed);
        }
    }
    let cut = session.ok("grep", json!({"pattern": "é", "max": 1_000}));
    assert!(cut["matches"][0]["text"].as_str().unwrap().ends_with("… [cut]"));
    assert!(cut["matches"].as_array().unwrap().len() < 200, "bounded in bytes too");
}

#[test]
fn a_line_beyond_the_bound_leaves_its_file_out_and_says_so() {
    let mut session = Session::new(false);
    session.put("fits", "x".repeat(LINE_BYTES - 3) + "foo\nfoo");
    session.put("long", "x".repeat(LINE_BYTES - 2) + "foo\nfoo\n");
    let found = session.ok("grep", json!({"pattern": "foo$"}));
    assert_eq!((&found["files_searched"], &found["matching_lines"]), (&json!(1), &json!(2)));
    assert_eq!(found["skipped"]["long_line"], 1);
}

#[test]
fn patterns_that_cannot_work_are_told() {
    let mut session = Session::new(false);
    session.put("a", "a(b\n");
    assert!(session.err("grep", json!({"pattern": "a(b"})).contains("set literal to true"));
    assert_eq!(session.ok("grep", json!({"pattern": "a(b", "literal": true}))["matching_lines"], 1);
    assert!(session.err("grep", json!({"pattern": "a\nb"})).contains("line break"));
    assert!(session.err("grep", json!({"pattern": "(a{1000}){1000}"})).contains("regular expression"));
    assert!(session.err("grep", json!({"pattern": "a", "glob": "{a"})).contains("glob"));
}

/// Deeper than a path may be long, deeper than folders may be open at once.
#[test]
fn deep_trees_are_walked_to_the_bottom_and_back() {
    let mut session = Session::new(false);
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::PATH;
    let mut here = rustix::fs::open(session.path(""), flags, rustix::fs::Mode::empty()).unwrap();
    const DEPTH: u64 = 1_200;
    for _ in 0..DEPTH {
        rustix::fs::mkdirat(&here, "deep-deep", rustix::fs::Mode::from(0o755)).unwrap();
        here = rustix::fs::openat(&here, "deep-deep", flags, rustix::fs::Mode::empty()).unwrap();
        for name in ["before", "zafter"] {
            let create = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
            let file = rustix::fs::openat(&here, name, create, rustix::fs::Mode::from(0o644)).unwrap();
            rustix::io::write(&file, b"foo\n").unwrap();
        }
    }
    let found = session.ok("grep", json!({"pattern": "foo"}));
    assert_eq!(found["matching_files"], 2 * DEPTH);
    let real = real_counts(&session.path(""), &[], "foo", ".");
    assert_eq!(real.values().sum::<u64>(), 2 * DEPTH);
    assert_eq!(session.ok("glob", json!({"pattern": "zafter"}))["total"], DEPTH);
    // A removal that holds every level open would run out of descriptors.
    assert!(Command::new("rm").arg("-rf").arg(session.path("")).status().unwrap().success());
}

#[test]
fn files_that_cannot_be_read_are_counted_not_fatal() {
    let mut session = Session::new(false);
    session.put("ok", "foo\n");
    session.put("closed", "foo\n");
    session.put("closed-dir/x", "foo\n");
    let shut = |name: &str| {
        std::fs::set_permissions(session.path(name), std::os::unix::fs::PermissionsExt::from_mode(0o000))
            .unwrap();
    };
    shut("closed");
    shut("closed-dir");
    // To root nothing is closed; the real grep says what is.
    let real = real_counts(&session.path(""), &[], "foo", ".");
    let found = session.ok("grep", json!({"pattern": "foo"}));
    assert_eq!(found["matching_files"], real.len());
    let skipped = &found["skipped"];
    let missing = skipped["unreadable"].as_u64().unwrap() + skipped["unreadable_folders"].as_u64().unwrap();
    assert_eq!(missing, 3 - real.len() as u64);
    std::fs::set_permissions(session.path("closed-dir"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let names: BTreeSet<_> = real.keys().collect();
    assert!(names.contains(&b"./ok".to_vec()));
}
