//! Where secrets can stand, and that no problem shows one.

use super::super::super::render;
use super::*;

#[test]
fn all_that_cannot_be_had_are_told_at_once() {
    let text = "intelligence: {dialect: openai, model: m, token: \"{{secret:ONE}}\", headers: {A: \"{{secret-file:two}}\"}}
mcp:
  servers:
    - {name: a, command: sh, env: {K: \"x {{secret:THREE}}\", L: \"{{secret-file:four}}\", M: plain}}
    - {name: b, command: sh, required: false, env: {K: \"{{secret:FIVE}}\", E: \"{{secret:EMPTY}}\"}}
";
    let problems = Folder::new(&[("a.yaml", text)]).set("EMPTY", "").problems();
    let told: Vec<String> =
        problems.iter().map(|p| format!("{}:{} {:?} {}", p.line, p.column, p.code, p.path)).collect();
    assert_eq!(
        told,
        [
            "1:50 NoCredential intelligence.token",
            "1:81 NoCredential intelligence.headers.A",
            "4:39 Secret mcp.servers[0].env.K",
            "4:64 Secret mcp.servers[0].env.L",
            "5:56 Secret mcp.servers[1].env.K",
            "5:78 Secret mcp.servers[1].env.E",
        ],
        "{}",
        render(&problems)
    );
}

#[test]
fn references_stay_references_and_files_are_found_from_where_they_are_named() {
    let folder = Folder::new(&[
        ("base.yaml", MINIMAL),
        (
            "deep/b.yaml",
            "mcp: {servers: [{name: a, command: sh, env: {A: \"{{secret-file:key}}\", B: \"p-{{secret:V}}\", C: \"{{x}}\"}}]}\n",
        ),
    ])
    .set("V", "canary");
    folder.write("deep/key", "canary\n");
    let Loaded { config, settings, .. } = folder.load();
    let Transport::Stdio(stdio) = &config.servers[0].transport else { panic!() };
    assert_eq!(stdio.env["A"], format!("{{{{secret-file:{}}}}}", folder.path("deep/key")));
    assert_eq!((stdio.env["B"].as_str(), stdio.env["C"].as_str()), ("p-{{secret:V}}", "{{x}}"));
    assert!(!format!("{config:?}{settings:?}").contains("canary"));
}

#[test]
fn misspelled_references_are_told() {
    for (value, words) in [
        ("{{ secret:K }}", "spelled neither"),
        ("{{secret:K", "not closed"),
        ("{{secret:../K}}", "letters, digits"),
        ("{{secret-file:}}", "names no file"),
    ] {
        let problem =
            only(&format!("mcp: {{servers: [{{name: a, command: sh, env: {{K: \"{value}\"}}}}]}}\n"));
        assert!(problem.message.contains(words) && problem.path == "mcp.servers[0].env.K", "{problem}");
    }
    // Nothing but a model's key and headers and a server's variables is looked at.
    assert_eq!(one("agent: {instruction: \"{{secret:K}}\"}\n").load().config.instruction, "{{secret:K}}");
}

#[test]
fn a_line_with_a_secret_is_shown_without_it() {
    let text = "intelligence: {dialect: openai, tokn: 1, model: m, token: 'canary-1', endpoints: [\"https://u:canary-2@h\"], headers: {authorization: Bearer canary-3, A: 1}, models: {x: {model: y, endpoints: [\"https://x\"], token: |
      canary-4
      canary-5
    }}}
";
    let newcomer = "intelligence:
  dialect: openai
  model: m
  api_key: canary-8
  tokn: [canary-9]
  endpoints: [\"https://h?key=canary-10\"]
  token: {x: canary-11}
  headers: \"Authorization: Bearer canary-12\"
";
    let told = render(&Folder::new(&[("a.yaml", newcomer)]).problems());
    assert!(!told.contains("canary") && told.contains("a key is called token here"), "{told}");
    let block =
        "intelligence:\n  dialect: openai\n  model: m\n  nme: 1\n  token: |\n    canary-6\n    canary-7\n";
    for text in [text, block] {
        let told = render(&Folder::new(&[("a.yaml", text)]).problems());
        assert!(!told.contains("canary"), "{told}");
        let folder = Folder::new(&[("a.yaml", MINIMAL)])
            .set("AGENTD_INTELLIGENCE_HEADERS", "{Cookie: canary, b: [1]}");
        let told = render(&folder.problems());
        assert!(!told.contains("canary") && told.contains("refer to one"), "{told}");
    }
    let told = render(
        &Folder::new(&[("a.yaml", "intelligence: {dialect: openai, model: m, token: 'canary'}\n")])
            .problems(),
    );
    assert!(told.contains("token: ********}\n"), "{told}");
}

#[test]
fn a_program_that_is_not_there_is_told_and_keeps_nobody_from_running() {
    let folder = one(
        "mcp: {servers: [{name: a, command: no-such-program}, {name: b, command: ./a.yaml, required: false},
  {name: c, command: x, env: {PATH: bin}, cwd: .}]}\n",
    )
    .set("PATH", "/nowhere");
    folder.write("bin/x", "#!/bin/sh\n");
    let warnings = folder.load().warnings;
    let told = render(&warnings);
    assert_eq!(warnings.len(), 3, "{told}");
    for words in [
        "a.yaml:2:36: warning: mcp.servers[0].command: there is no program no-such-program in PATH (/nowhere)",
        "every run fails",
        "go on without this server",
        "not executable",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder.path("bin/x"), fs::Permissions::from_mode(0o755)).expect("made executable");
    assert_eq!(folder.load().warnings.len(), 2);
}
