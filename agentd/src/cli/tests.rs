use super::*;
use clap::CommandFactory;

#[test]
fn the_arguments_are_well_formed() {
    Cli::command().debug_assert();
}

#[test]
fn what_can_be_asked() {
    let parse = |words: &[&str]| Cli::try_parse_from(std::iter::once(&"agentd").chain(words));
    let Ok(Cli { command: Command::Run(run) }) = parse(&[
        "run",
        "-c",
        "a.yaml",
        "-c",
        "b.yaml",
        "--model",
        "m",
        "--mcp",
        "x=y z",
        "--json",
        "--journal",
        "j",
        "--log-format",
        "json",
        "--log-level",
        "debug",
        "-",
    ]) else {
        panic!()
    };
    assert_eq!((run.prompt.as_str(), run.config.config.len(), run.servers.len()), ("-", 2, 1));
    let Ok(Cli { command: Command::Demo(demo) }) = parse(&["demo"]) else { panic!() };
    assert_eq!(
        (demo.folder.as_os_str().to_str(), demo.pattern.as_str(), demo.json),
        (Some("."), "TODO", false)
    );
    assert!(parse(&["mcp", "serve-files", "--root", ".", "--write"]).is_ok());
    assert!(parse(&["check", "--json"]).is_ok());
    let Ok(Cli { command: Command::Spawn(spawn) }) =
        parse(&["spawn", "--server", "a", "--server", "b", "look"])
    else {
        panic!()
    };
    assert_eq!((spawn.mode.as_str(), spawn.servers.len(), spawn.instruction.as_str()), ("async", 2, "look"));
    for fine in [
        &["serve", "-c", "a.yaml", "--log-format", "json"][..],
        &["ps", "--all", "--json", "--socket", "x", "--token-file", "y"],
        &["tree"],
        &["show", "sub-1"],
        &["logs", "root", "--lines", "5"],
        &["logs", "sub-1", "-f", "--json"],
        &["top", "--all", "--socket", "x", "--token-file", "y"],
        &["send", "root", "hello"],
        &["steer", "sub-1", "hello"],
        &["wait", "sub-1", "sub-2", "--any", "--timeout", "5s"],
        &["kill", "sub-1", "--only", "--reason", "x"],
        &["drain", "--no-wait"],
    ] {
        assert!(parse(fine).is_ok(), "{fine:?}");
    }
    for wrong in [
        &["run"][..],
        &["run", "a", "b"],
        &["serve-files"],
        &["demo", "--patern", "x"],
        &["run", "x", "--log-format", "xml"],
        &["kill"],
        &["wait"],
        &["send", "sub-1"],
        &["top", "--json"],
        &["logs", "-f"],
    ] {
        let error = parse(wrong).expect_err("refused");
        assert_eq!(error.exit_code(), 2, "{wrong:?}");
    }
    for asked in [&["--help"][..], &["--version"], &["help"], &["help", "run"], &["demo", "--help"]] {
        assert_eq!(parse(asked).expect_err("printed").exit_code(), 0, "{asked:?}");
    }
}

#[test]
fn help_shows_examples() {
    let help = Cli::command().render_long_help().to_string();
    assert!(help.contains("agentd demo") && help.contains("Exit codes"), "{help}");
}
