//! The playbook of `agentd demo`, over real folders and the real file server: its answer is true, and the command
//! it prints confirms it.

mod scripted;

use agentd_core::agent::Terminal;
use agentd_core::wire::message::Role;
use scripted::{Answer, BUILTIN, Script};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

/// One call of the file server over `root`.
fn files(root: &Path, tool: &str, args: &Value) -> Answer {
    let requests = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
               "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": tool, "arguments": args}}),
    ];
    let input: Vec<String> = requests.iter().map(|request| format!("{request}\n")).collect();
    let mut output = Vec::new();
    agentd::files::serve(root, false, input.concat().as_bytes(), &mut output).expect("the server runs");
    let lines = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let answers: Vec<Value> = lines.map(|line| serde_json::from_slice(line).expect("JSON")).collect();
    let result = &answers.iter().find(|answer| answer["id"] == 2).expect("an answer")["result"];
    let text = || result["content"][0]["text"].clone();
    (result["isError"] == true, result.get("structuredContent").cloned().unwrap_or_else(text))
}

/// Asks for `word` over `root`; gives the answer and how many subagents were asked for.
fn ask(root: &Path, word: &str) -> (String, usize) {
    let tools = |tool: &str, args: &Value| files(root, tool, args);
    let script = Script::new(BUILTIN, &["list", "grep", "read"], &tools);
    let folder = root.to_str().expect("UTF-8");
    let prompt = format!("Which lines mention {}?\nFolder: {}", json!(word), json!(folder));
    let answer = script.answer(&prompt);
    let spawned = script.spawned.borrow();
    assert!(spawned.iter().all(|args| args["tools"] == json!(["grep"])));
    (answer, spawned.len())
}

/// Text files, lines, and lines with `word` below `path`, counted by other means than the server's.
fn count(path: &Path, word: &str) -> [u64; 3] {
    let kind = fs::symlink_metadata(path).expect("it exists").file_type();
    if kind.is_dir() {
        let below = fs::read_dir(path).expect("readable").map(|entry| entry.expect("an entry").path());
        let below = below.filter(|p| !(p.is_dir() && p.file_name() == Some(OsStr::new(".git"))));
        return below.map(|p| count(&p, word)).fold([0; 3], |a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2]]);
    }
    let bytes = if kind.is_file() { fs::read(path).expect("readable") } else { vec![0] };
    if bytes.contains(&0) {
        return [0; 3];
    }
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let hits = lines.iter().filter(|line| String::from_utf8_lossy(line).contains(word)).count();
    [1, lines.len() as u64, hits as u64]
}

/// The table of an answer: numbers by the name as it is printed.
fn table(answer: &str) -> BTreeMap<String, [u64; 3]> {
    let start = answer.find("\nentry").expect("a table");
    let rows = answer[start + 1..].split("\n\n").next().expect("a table").lines().skip(1);
    rows.map(|row| {
        let mut cells: Vec<&str> = row.split_whitespace().collect();
        let mut number = || cells.pop().expect("a number").parse().expect("a number");
        let (hits, lines, files) = (number(), number(), number());
        (cells.join(" "), [files, lines, hits])
    })
    .collect()
}

/// The total is what `count` and the printed command say.
fn assert_true(answer: &str, root: &Path, word: &str) {
    let total = table(answer)["total"];
    assert_eq!(total, count(root, word), "{answer}");
    let command = answer.lines().find_map(|line| line.strip_prefix("To confirm it: ")).expect("a command");
    let said = Command::new("bash").arg("-c").arg(command).output().expect("bash");
    let lines: u64 = String::from_utf8_lossy(&said.stdout).trim().parse().expect("a number");
    assert_eq!(lines, total[2], "{command}\n{answer}");
}

#[test]
fn an_ordinary_folder() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("src/deep/.git")).unwrap();
    fs::create_dir(root.path().join("empty")).unwrap();
    fs::create_dir(root.path().join(".git")).unwrap();
    for (path, text) in [
        ("README.md", "an error\nno\nerrors and error\nlast without end: error"),
        ("src/a.rs", "error\n\n\n"),
        ("src/deep/b.rs", "fine\n"),
        ("src/deep/.git/c", "error\n"),
        ("src/bin", "error\0\nerror\n"),
        (".git/config", "error\n"),
        ("latin1", "error caf\n"),
        ("one/only", "Error\nerror\r\n"),
    ] {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::write(root.path().join("latin1"), b"error caf\xe9\n\xff\n").unwrap();
    std::os::unix::fs::symlink("README.md", root.path().join("link")).unwrap();
    std::os::unix::fs::symlink("/nowhere", root.path().join("broken")).unwrap();
    assert!(Command::new("mkfifo").arg(root.path().join("pipe")).status().unwrap().success());
    let (answer, subagents) = ask(root.path(), "error");
    assert_eq!(subagents, 5);
    let rows = table(&answer);
    for (name, want) in [
        ("README.md", [1, 4, 3]),
        ("src", [2, 4, 1]),
        ("empty", [0, 0, 0]),
        ("latin1", [1, 2, 1]),
        ("one", [1, 2, 1]),
    ] {
        assert_eq!(rows[name], want, "{name}\n{answer}");
    }
    assert_eq!(rows.len(), 6);
    assert!(
        answer.contains("1 binary, .git, broken (a link), link (a link), pipe (neither file nor folder)"),
        "{answer}"
    );
    assert!(
        answer.starts_with("error: mentioned on 6 of 12 lines, in 5 text files; counted by 5 subagents.\n"),
        "{answer}"
    );
    assert_true(&answer, root.path(), "error");
}

#[test]
fn odd_names() {
    let root = tempfile::tempdir().unwrap();
    let names = [
        "a b",
        "größe",
        "日本語",
        "it's",
        "say \"hi\"",
        "-rf",
        "--help",
        "$(touch x)",
        "back\\slash",
        "new\nline",
        "tab\there",
        "{{ 7 * 7 }}",
        "{% raw %}",
        "*",
        "?",
        "[x]",
        "~",
        "\u{202e}txt",
        "\u{1b}[2J",
        "…",
        "&amp;<b>",
        "#",
        ".hidden",
        "'",
        "trailing ",
        " leading",
        "a,b;c|d&e",
    ];
    for (index, name) in names.iter().enumerate() {
        let path = root.path().join(name);
        if index % 2 == 0 {
            fs::write(path, "error\n".repeat(index)).unwrap();
        } else {
            fs::create_dir(&path).unwrap();
            fs::write(path.join(name), "error\n".repeat(index)).unwrap();
        }
    }
    let (answer, subagents) = ask(root.path(), "error");
    assert_eq!(subagents, 8);
    assert_true(&answer, root.path(), "error");
    assert!(!answer.contains("not counted"), "{answer}");
    assert!(!answer.contains(['\u{1b}', '\u{202e}', '\t']), "{answer}");
    let rows = table(&answer);
    assert_eq!(rows.len(), names.len() + 1, "{answer}");
    assert_eq!(rows["'{{ 7 * 7 }}'"], [1, 11, 11]);
    assert_eq!(rows["$'new\\nline'"], [1, 9, 9]);
    // The command works where the folder's own name is odd, too.
    for name in names.iter().skip(1).step_by(2).filter(|name| !name.contains(['\u{1b}', '\u{202e}'])) {
        let below = root.path().join(name);
        let (answer, _) = ask(&below, "error");
        assert_true(&answer, &below, "error");
    }
}

#[test]
fn names_that_are_not_utf8_are_counted_as_the_rest() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join(OsStr::from_bytes(b"caf\xe9")), "error\nerror\n").unwrap();
    fs::write(root.path().join("plain"), "error\n").unwrap();
    // A character that only looks as if it stood in for one.
    fs::write(root.path().join("real \u{fffd}"), "no\n").unwrap();
    let (answer, _) = ask(root.path(), "error");
    assert_true(&answer, root.path(), "error");
    let rows = table(&answer);
    assert_eq!(rows["(everything else)"], [1, 2, 2], "{answer}");
    assert_eq!(rows["'real \u{fffd}'"], [1, 1, 0], "{answer}");
    assert!(answer.contains("Counted in (everything else)"), "{answer}");
}

#[test]
fn every_number_of_entries() {
    for (entries, want) in [(1, 1), (3, 3), (4, 4), (7, 7), (8, 8), (9, 8), (41, 8), (250, 8)] {
        let root = tempfile::tempdir().unwrap();
        for n in 0..entries {
            fs::write(root.path().join(format!("f{n}")), "error\n".repeat(n)).unwrap();
        }
        let (answer, subagents) = ask(root.path(), "error");
        assert_eq!(subagents, want, "{entries} entries");
        assert_true(&answer, root.path(), "error");
        assert!(answer.len() < 8_000, "an answer is cut at 8,000 bytes");
        if entries > 40 {
            assert!(table(&answer).contains_key(&format!("({} more)", entries - 40)), "{answer}");
        }
    }
}

#[test]
fn more_entries_than_a_list_shows() {
    let root = tempfile::tempdir().unwrap();
    for n in 0..1_300 {
        fs::write(root.path().join(format!("{n:04}{}", "x".repeat(60))), "error\nno\n").unwrap();
    }
    let (answer, subagents) = ask(root.path(), "error");
    assert_eq!(subagents, 8);
    assert_true(&answer, root.path(), "error");
    let rest = table(&answer)["(everything else)"];
    assert!(rest[0] > 0 && rest[0] < 1_300 && rest[1] == 2 * rest[0], "{answer}");
}

#[test]
fn nothing_to_search() {
    let root = tempfile::tempdir().unwrap();
    let (answer, subagents) = ask(root.path(), "error");
    assert_eq!(subagents, 0);
    assert!(
        answer.starts_with("error: mentioned on 0 of 0 lines, in 0 text files; counted by 0 subagents."),
        "{answer}"
    );
    assert_true(&answer, root.path(), "error");
    fs::create_dir(root.path().join(".git")).unwrap();
    fs::write(root.path().join(".git/x"), "error\n").unwrap();
    let (answer, subagents) = ask(root.path(), "error");
    assert_eq!(subagents, 0);
    assert_true(&answer, root.path(), "error");
}

#[test]
fn a_folder_called_git_is_searched_when_it_is_the_one_asked_for() {
    let root = tempfile::tempdir().unwrap();
    let git = root.path().join(".git");
    fs::create_dir(&git).unwrap();
    fs::write(git.join("x"), "error\n").unwrap();
    let (answer, _) = ask(&git, "error");
    assert_true(&answer, &git, "error");
    assert_eq!(table(&answer)["total"], [1, 1, 1]);
}

#[test]
fn the_word_comes_from_the_prompt() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("f"), "a.c\nabc\nsay \"TODO\"\nerror\n  --flag\n").unwrap();
    for (word, hits) in
        [("a.c", 1), ("say \"TODO\"", 1), ("$(x)", 0), ("--flag", 1), ("'", 0), ("  ", 1), ("größe", 0)]
    {
        let (answer, _) = ask(root.path(), word);
        assert_eq!(table(&answer)["total"][2], hits, "{answer}");
        assert_true(&answer, root.path(), word);
    }
    let tools = |tool: &str, args: &Value| files(root.path(), tool, args);
    let script = Script::new(BUILTIN, &["list", "grep"], &tools);
    for prompt in ["", "hello", "a broken \"\\q\" quote", "an empty \"\" one", "\n\nthree \"abc\" lines"] {
        let answer = script.answer(prompt);
        assert!(
            answer.starts_with("TODO: mentioned on 1 of 5 lines, in 1 text file;"),
            "{prompt:?}: {answer}"
        );
        let note = "\nThe prompt names no word in double quotes, so it is the default, TODO.\n";
        assert!(answer.contains(note), "{prompt:?}: {answer}");
        assert!(answer.contains("-e TODO -- . | wc -l"), "{prompt:?}: {answer}");
    }
    let answer = script.answer("count \"abc\" please\nand more\nFolder: \"/a b\"\n");
    assert!(answer.contains("-e abc -- '/a b' | wc -l"), "{answer}");
}

#[test]
fn what_could_not_be_counted_is_said() {
    let root = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c", "d"] {
        fs::write(root.path().join(name), "error\n").unwrap();
    }
    let tools = |tool: &str, args: &Value| {
        if args["path"] == "d" {
            (true, json!("cannot open \"d\": permission denied"))
        } else {
            files(root.path(), tool, args)
        }
    };
    let mut script = Script::new(BUILTIN, &["list", "grep"], &tools);
    script.refuse = Some(1);
    let answer = partial(&script, "\"error\"");
    assert_eq!(table(&answer)["total"], [2, 2, 2]);
    let headline = "error: mentioned on at least 2 of the 2 lines that could be counted, in 2 text files; \
                    counted by 3 subagents.\n";
    assert!(answer.starts_with(headline), "{answer}");
    assert!(answer.contains("\nNot counted: b: 8 of 8 subagents are running\n"), "{answer}");
    assert!(answer.contains("\nNot counted: d: cannot open \"d\": permission denied\n"), "{answer}");
    // No list at all.
    let tools = |_: &str, _: &Value| (true, json!("the server is gone"));
    let script = Script::new(BUILTIN, &["list", "grep"], &tools);
    assert_eq!(partial(&script, "x"), "The folder cannot be looked at: the server is gone");
}

/// An answer that says itself that it is not a full one.
fn partial(script: &Script<'_>, prompt: &str) -> String {
    match script.run(Role::Worker, prompt, None) {
        Terminal::Result(result) if result.partial => result.text.expect("an answer"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_search_could_not_read_makes_the_answer_partial_and_a_binary_file_does_not() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("a"), "TODO\n").unwrap();
    for (reason, said) in [
        ("unreadable", "\nNot counted: 1 file or folder that cannot be read.\n"),
        ("unreadable_folders", "\nNot counted: 1 file or folder that cannot be read.\n"),
        ("long_line", "\nNot counted: 1 file with a line over 64 MiB.\n"),
        ("binary", "\nLeft out, as by that command: 1 binary.\n"),
    ] {
        // The second time the list is cut, and one search over the whole decides.
        for cut in [false, true] {
            let tools = |tool: &str, args: &Value| {
                let (error, mut value) = files(root.path(), tool, args);
                if tool == "grep" {
                    value["skipped"][reason] = 1.into();
                } else {
                    value["truncated"] = cut.into();
                }
                (error, value)
            };
            let script = Script::new(BUILTIN, &["list", "grep"], &tools);
            let headline = if reason == "binary" {
                "TODO: mentioned on 1 of 1 line, in 1 text file; counted by 1 subagent.\n"
            } else {
                "TODO: mentioned on at least 1 of the 1 line that could be counted, in 1 text file; \
                 counted by 1 subagent.\n"
            };
            let answer = if reason == "binary" { script.answer("x") } else { partial(&script, "x") };
            assert!(answer.starts_with(headline) && answer.contains(said), "{reason} {cut}: {answer}");
        }
    }
}

#[test]
fn a_search_over_the_whole_makes_up_for_a_subagent_and_its_failure_is_told() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("a"), "TODO\n").unwrap();
    fs::write(root.path().join("b"), "TODO\n").unwrap();
    for whole_fails in [false, true] {
        let tools = |tool: &str, args: &Value| {
            if tool == "grep" && args["path"] == "." && whole_fails {
                return (true, json!("the server is gone"));
            }
            let (error, mut value) = files(root.path(), tool, args);
            if tool == "list" {
                value["truncated"] = true.into();
            }
            (error, value)
        };
        let mut script = Script::new(BUILTIN, &["list", "grep"], &tools);
        script.refuse = Some(0);
        if whole_fails {
            let answer = partial(&script, "x");
            assert!(answer.starts_with("TODO: mentioned on at least 1 of "), "{answer}");
            assert!(answer.contains("\nNot counted: a: 8 of 8"), "{answer}");
        } else {
            let answer = script.answer("x");
            assert!(answer.starts_with("TODO: mentioned on 2 of 2 lines"), "{answer}");
        }
    }
}

#[test]
fn tools_with_a_prefix_are_found() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("a"), "TODO\n").unwrap();
    let tools = |tool: &str, args: &Value| files(root.path(), tool.trim_start_matches("files."), args);
    let script = Script::new(BUILTIN, &["files.list", "files.grep"], &tools);
    assert!(script.answer("x").starts_with("TODO: mentioned on 1 of 1 line,"));
}
