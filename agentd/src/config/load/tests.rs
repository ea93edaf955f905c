use super::*;
use crate::config::{Listen, LogFormat};
use agentd_core::config::{Kill, Liveness, PrincipalRole, Priority};
use agentd_core::note::Level;
use agentd_core::wire::message::{Mode, Transport};
use std::fs;
use std::time::Duration;
use tempfile::TempDir;

/// The smallest configuration that loads.
const MINIMAL: &str = "intelligence: {dialect: mock, endpoints: [\"mock:builtin\"]}\n";

struct Folder {
    dir: TempDir,
    sources: Sources,
}

impl Folder {
    fn new(files: &[(&str, &str)]) -> Folder {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let mut folder =
            Folder { sources: Sources { here: dir.path().to_owned(), ..Sources::default() }, dir };
        for (name, text) in files {
            folder.write(name, text);
            folder.sources.files.push(PathBuf::from(name));
        }
        folder
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn set(mut self, name: &str, value: &str) -> Folder {
        self.sources.environment.push((name.into(), value.into()));
        self
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    fn load(&self) -> Loaded {
        load(&self.sources).unwrap_or_else(|problems| panic!("{}", super::super::render(&problems)))
    }

    /// All problems but that a server's program is not there: most tests name programs that no machine has.
    fn problems(&self) -> Vec<Problem> {
        let mut problems = load(&self.sources).expect_err("problems");
        problems.retain(|problem| problem.code != Code::NoProgram);
        problems
    }
}

fn one(text: &str) -> Folder {
    Folder::new(&[("a.yaml", &format!("{MINIMAL}{text}"))])
}

/// The problems of a text after [`MINIMAL`], as `line:column code path`.
fn places(text: &str) -> Vec<String> {
    let problems = one(text).problems();
    problems.iter().map(|p| format!("{}:{} {:?} {}", p.line, p.column, p.code, p.path)).collect()
}

/// The only problem of a text after [`MINIMAL`].
fn only(text: &str) -> Problem {
    let mut problems = one(text).problems();
    assert_eq!(problems.len(), 1, "{text}: {problems:?}");
    problems.remove(0)
}

#[test]
fn defaults_are_those_of_the_specification() {
    let Loaded { config, settings, .. } = one("").load();
    assert_eq!(config.agent, "a");
    assert_eq!((config.run.steps, config.run.tokens, config.run.deadline_ms), (500, 2_000_000, 3_600_000));
    assert_eq!((config.run.repeats, config.run.tool_result_bytes), (5, 65_536));
    assert_eq!((config.subagents.breadth, config.subagents.total, config.subagents.depth), (8, 64, 1));
    assert_eq!((config.subagents.rate.burst, config.subagents.rate.per), (8, Duration::from_secs(2)));
    assert_eq!((config.liveness, config.kill), (Liveness::default(), Kill::default()));
    assert_eq!(config.drain_timeout, Duration::from_secs(25));
    assert_eq!((config.defaults.mode, config.defaults.priority), (Mode::Sync, Priority::Normal));
    assert_eq!(config.defaults.limits, agentd_core::config::LimitOverrides::default());
    assert_eq!(config.log_level, "info");
    assert_eq!((settings.log_level, settings.log_format, settings.journal), (Level::Info, None, None));
    assert!(config.servers.is_empty() && settings.env_passthrough.is_empty());
}

#[test]
fn every_key_that_is_built_is_read() {
    let folder = one(
        "agent: {name: archivist, instruction: \"Be brief: yes.\", workspace: work}
mcp:
  servers:
    - {name: files, builtin: files, root: data, write: true, tags: {\"*\": [sensitive], \"read*\": [trusted]}}
    - {name: repo, command: ./bin/server, args: [\"-y\", 7], ns: r, env: {PORT: 8080}, cwd: data, allow: [\"read*\"],
       exclude: [read_all], timeout: 5s, required: false}
    - {name: plain, command: server}
limits:
  run: {steps: 1, tokens: 2, deadline: 3s, repeats: 0, tool_result_bytes: 4KiB}
  subagents: {breadth: 5, total: 6, depth: 0, rate: 7/8s}
subagents: {defaults: {mode: detached, priority: low, limits: {steps: 9, tokens: 10, deadline: 11s, memory: 120MB, cpu: 13s}}}
spawn: {env_passthrough: [LANG_PACK_*, EDITOR]}
lifecycle:
  drain_timeout: 14s
  liveness: {ping: 15ms, pong: 16ms, progress: 17ms, ready: 18ms, hard_deadline_grace: 19ms}
  kill: {term_after: 20ms, kill_after: 21ms, exit_after_result: 22ms}
  journal: flight
observability: {log_level: trace, log_format: text}
",
    );
    fs::create_dir_all(folder.dir.path().join("work")).unwrap();
    fs::create_dir_all(folder.dir.path().join("data")).unwrap();
    let Loaded { config, settings, .. } = folder.load();
    assert_eq!((config.agent.as_str(), config.instruction.as_str()), ("archivist", "Be brief: yes."));
    let [files, repo, plain] = config.servers.as_slice() else { panic!("{:?}", config.servers) };
    let Transport::Files(served) = &files.transport else { panic!("{files:?}") };
    assert_eq!((served.root.as_str(), served.write), (folder.path("data").as_str(), true));
    assert_eq!(settings.tags["files"]["*"], ["sensitive"]);
    let Transport::Stdio(stdio) = &repo.transport else { panic!("{repo:?}") };
    assert_eq!(stdio.command, folder.path("bin/server"));
    assert_eq!(
        (stdio.args.as_slice(), &stdio.env["PORT"]),
        (["-y".to_owned(), "7".to_owned()].as_slice(), &"8080".to_owned())
    );
    assert_eq!(stdio.cwd, Some(folder.path("data")));
    assert_eq!(
        (repo.ns.as_deref(), repo.allow.as_deref(), repo.required),
        (Some("r"), Some(["read*".to_owned()].as_slice()), false)
    );
    assert_eq!(
        (repo.exclude.as_slice(), repo.timeout_ms, repo.start_timeout_ms),
        (["read_all".to_owned()].as_slice(), 5_000, 60_000)
    );
    let Transport::Stdio(stdio) = &plain.transport else { panic!("{plain:?}") };
    assert_eq!((stdio.command.as_str(), stdio.cwd.clone()), ("server", Some(folder.path("work"))));
    assert_eq!((plain.allow.clone(), plain.timeout_ms, plain.required), (None, 60_000, true));
    assert_eq!(
        (config.run.steps, config.run.tokens, config.run.deadline_ms, config.run.repeats),
        (1, 2, 3_000, 0)
    );
    assert_eq!(config.run.tool_result_bytes, 4_096);
    assert_eq!((config.subagents.breadth, config.subagents.total, config.subagents.depth), (5, 6, 0));
    assert_eq!((config.subagents.rate.burst, config.subagents.rate.per), (7, Duration::from_secs(8)));
    assert_eq!((config.defaults.mode, config.defaults.priority), (Mode::Detached, Priority::Low));
    let limits = config.defaults.limits;
    assert_eq!((limits.steps, limits.tokens, limits.memory), (Some(9), Some(10), Some(120_000_000)));
    assert_eq!((limits.deadline, limits.cpu), (Some(Duration::from_secs(11)), Some(Duration::from_secs(13))));
    assert_eq!(settings.env_passthrough, ["LANG_PACK_*", "EDITOR"]);
    let ms = Duration::from_millis;
    assert_eq!(config.drain_timeout, ms(14_000));
    assert_eq!(
        (config.liveness.ping, config.liveness.pong, config.liveness.progress),
        (ms(15), ms(16), ms(17))
    );
    assert_eq!((config.liveness.ready, config.liveness.hard_deadline_grace), (ms(18), ms(19)));
    assert_eq!(
        (config.kill.term_after, config.kill.kill_after, config.kill.exit_after_result),
        (ms(20), ms(21), ms(22))
    );
    assert_eq!(settings.journal, Some(folder.dir.path().join("flight")));
    assert_eq!(
        (config.log_level.as_str(), settings.log_level, settings.log_format),
        ("trace", Level::Debug, Some(LogFormat::Text))
    );
}

#[test]
fn all_problems_come_at_once_each_with_its_place_and_what_to_do() {
    let text = "limits:
  run: {stesp: 5, steps: -1, tokens: 0, deadline: 5, tool_result_bytes: 1.5GiB, repeats: \"5\"}
  subagents: {rate: 8, breadth: 2_000}
  colour: red
mcp:
  servers:
    - {name: a, command: x, tags: {\"*\": [sensitve]}, alow: []}
    - {name: a, command: y}
    - {name: \"b c\", builtin: fils}
    - just text
lifecycle: [1]
";
    let problems = one(text).problems();
    let seen: Vec<String> =
        problems.iter().map(|p| format!("{}:{} {:?} {}", p.line, p.column, p.code, p.path)).collect();
    assert_eq!(
        seen,
        [
            "3:9 UnknownKey limits.run.stesp",
            "3:26 WrongType limits.run.steps",
            "3:38 InvalidValue limits.run.tokens",
            "3:51 InvalidValue limits.run.deadline",
            "3:73 InvalidValue limits.run.tool_result_bytes",
            "3:90 WrongType limits.run.repeats",
            "4:21 InvalidValue limits.subagents.rate",
            "4:33 WrongType limits.subagents.breadth",
            "5:3 UnknownKey limits.colour",
            "8:42 InvalidValue mcp.servers[0].tags.*[0]",
            "8:54 UnknownKey mcp.servers[0].alow",
            "9:14 Duplicate mcp.servers[1].name",
            "10:14 InvalidValue mcp.servers[2].name",
            "10:30 InvalidValue mcp.servers[2].builtin",
            "11:7 WrongType mcp.servers[3]",
            "12:12 WrongType lifecycle",
        ]
    );
    let text = super::super::render(&problems);
    for want in [
        "a.yaml:3:9: limits.run.stesp: there is no such key\n  3 |   run: {stesp: 5,",
        "hint: did you mean steps?",
        "-1 is negative",
        "hint: give it a unit: 5s for seconds, 5m for minutes",
        "hint: write 2000",
        "hint: write 5",
        "hint: did you mean sensitive?",
        "hint: did you mean allow?",
        "hint: did you mean files?",
        "\"a\" is also the name of the server at a.yaml:8:14",
        "16 problems",
    ] {
        assert!(text.contains(want), "{want:?} is not in:\n{text}");
    }
}

#[test]
fn values_at_and_past_their_bounds() {
    for good in [
        "steps: 1",
        "steps: 4294967295",
        "tokens: 9223372036854775807",
        "repeats: 0",
        "deadline: 1ms",
        "deadline: 3650d",
    ] {
        one(&format!("limits: {{run: {{{good}}}}}\n")).load();
    }
    for bad in [
        "steps: 0",
        "steps: 4294967296",
        "steps: 99999999999999999999999",
        "steps: 5.0",
        "steps: 1e3",
        "steps: true",
        "steps: [1]",
        "steps: 0x10",
        "steps: '5'",
        "steps: ",
        "tokens: 9223372036854775808",
        "deadline: 0s",
        "deadline: 3651d",
        "deadline: -5s",
        "deadline: 5 s",
        "deadline: 1h30m",
        "deadline: {}",
        "tool_result_bytes: 0B",
        "tool_result_bytes: 64",
        "tool_result_bytes: 64kib",
        "tool_result_bytes: 99999999TiB",
    ] {
        let problem = only(&format!("limits: {{run: {{{bad}}}}}\n"));
        assert!(problem.accepted.is_some(), "{bad}: {problem}");
    }
    for bad in ["8/0s", "0/2s", "8", "/", "8/2s/2s", "-8/2s", "8/2"] {
        only(&format!("limits: {{subagents: {{rate: \"{bad}\"}}}}\n"));
    }
}

#[test]
fn what_takes_two_keys_to_see() {
    for (text, path, words) in [
        ("lifecycle: {liveness: {pong: 3s}}", "lifecycle.liveness.pong", "not longer than ping"),
        ("lifecycle: {liveness: {ping: 10s}}", "lifecycle.liveness.pong", "not longer than ping"),
        (
            "subagents: {defaults: {limits: {cpu: 1500ms}}}",
            "subagents.defaults.limits.cpu",
            "whole number of seconds",
        ),
        ("agent: {workspace: nowhere}", "agent.workspace", "cannot be used"),
        ("agent: {workspace: a.yaml}", "agent.workspace", "is not a folder"),
        (
            "mcp: {servers: [{name: a, builtin: files, root: nowhere}]}",
            "mcp.servers[0].root",
            "cannot be used",
        ),
        ("mcp: {servers: [{name: a}]}", "mcp.servers[0]", "is required"),
        ("mcp: {servers: [{command: a}]}", "mcp.servers[0].name", "is required"),
        ("mcp: {servers: [{name: a, builtin: files, command: x}]}", "mcp.servers[0].command", "either"),
        ("mcp: {servers: [{name: a, builtin: files, env: {A: b}}]}", "mcp.servers[0].env", "a command"),
        ("mcp: {servers: [{name: a, command: x, root: .}]}", "mcp.servers[0].root", "builtin: files"),
        ("mcp: {servers: [{name: a, command: \" \"}]}", "mcp.servers[0].command", "is empty"),
        ("mcp: {servers: [{name: a, command: \"x\\0\"}]}", "mcp.servers[0].command", "NUL"),
        ("mcp: {servers: [{name: a, command: x, cwd: nowhere}]}", "mcp.servers[0].cwd", "cannot be used"),
        ("mcp: {servers: [{name: a, url: \"http://x/mcp\"}]}", "mcp.servers[0].url", "unencrypted"),
        ("mcp: {servers: [{name: a, url: \"https://x/#a\"}]}", "mcp.servers[0].url", "a fragment"),
        ("mcp: {servers: [{name: a, url: \"https://u:p@x\"}]}", "mcp.servers[0].url", "a user or a password"),
        (
            "mcp: {servers: [{name: a, url: \"https://x/{{secret:K}}\"}]}",
            "mcp.servers[0].url",
            "refers to a secret",
        ),
        (
            "mcp: {servers: [{name: a, url: \"https://x/?api_key=canary\"}]}",
            "mcp.servers[0].url",
            "looks like a key",
        ),
        ("mcp: {servers: [{name: a, url: x}]}", "mcp.servers[0].url", "does not begin with https://"),
        ("mcp: {servers: [{name: a, url: \"https://x\", command: y}]}", "mcp.servers[0].url", "either"),
        ("mcp: {servers: [{name: a, url: \"https://x\", args: [y]}]}", "mcp.servers[0].args", "a command"),
        ("mcp: {servers: [{name: a, command: x, headers: {A: b}}]}", "mcp.servers[0].headers", "a url"),
        (
            "mcp: {servers: [{name: a, url: \"https://x\", ca: nowhere.pem}]}",
            "mcp.servers[0].ca",
            "cannot be read",
        ),
        (
            "mcp: {servers: [{name: a, url: \"https://x\", headers: {Mcp-Session-Id: b}}]}",
            "mcp.servers[0].headers.Mcp-Session-Id",
            "set by the protocol",
        ),
        (
            "mcp: {servers: [{name: a, url: \"https://x\", headers: {Authorization: \"Bearer {{secret:K}}\"}}]}",
            "mcp.servers[0].headers.Authorization",
            "the secret K is not there",
        ),
        (
            "mcp: {servers: [{name: a, command: x, env: {K: \"{{secret:K}}\"}}]}",
            "mcp.servers[0].env.K",
            "the secret K is not there",
        ),
        (
            "mcp: {servers: [{name: a, command: x, args: [\"{{secret-file:/k}}\"]}]}",
            "mcp.servers[0].args[0]",
            "can be read by every user",
        ),
        (
            "mcp: {servers: [{name: a, command: x, env: {1K: v}}]}",
            "mcp.servers[0].env",
            "not a variable's name",
        ),
        (
            "mcp: {servers: [{name: a, command: x, env: {AGENTD_KEEPER: 3}}]}",
            "mcp.servers[0].env",
            "keeps for itself",
        ),
        (
            "mcp: {servers: [{name: a, command: x, env: {DEBUG: true}}]}",
            "mcp.servers[0].env.DEBUG",
            "saw true",
        ),
        (
            "mcp: {servers: [{name: a, command: x, allow: [\"a*b\"]}]}",
            "mcp.servers[0].allow[0]",
            "before its end",
        ),
        ("spawn: {env_passthrough: [\"*\"]}", "spawn.env_passthrough[0]", "every variable"),
        ("spawn: {env_passthrough: [\"AGENTD_*\"]}", "spawn.env_passthrough[0]", "keeps for itself"),
        ("spawn: {env_passthrough: [\"A-B\"]}", "spawn.env_passthrough[0]", "not a variable's name"),
        ("agent: {name: .hidden}", "agent.name", "not a name"),
        ("agent: {name: \"a/b\"}", "agent.name", "not a name"),
        ("subagents: {defaults: {durable: 1}}", "subagents.defaults.durable", "expected true or false"),
        ("subagents: {max_attempts: 0}", "subagents.max_attempts", "from 1"),
        ("store: {kind: redis}", "store.kind", "sqlite"),
        ("store: {durability: {commit: stirct}}", "store.durability.commit", "strict"),
        ("store: {min_free: 0B}", "store.min_free", "not zero"),
        ("lifecycle: {journal: true}", "lifecycle.journal", "saw true"),
        ("lifecycle: {journal: on}", "lifecycle.journal", "expected off, or the path of a file, saw"),
        (
            "lifecycle: {journal: \"Yes\"}",
            "lifecycle.journal",
            "such as ./agentd.journal; one that is called so is ./Yes",
        ),
        ("lifecycle: {journal: false}", "lifecycle.journal", "hint: write off"),
        ("observability: {log_level: warning}", "observability.log_level", "warning"),
        ("observability: {metrics_addr: 9464}", "observability.metrics_addr", "is no address"),
        ("a2a: {listen: [tcp]}", "a2a.listen[0]", "is no address"),
        ("a2a: {listen: [\"unix://relative\"]}", "a2a.listen[0]", "not absolute"),
        ("a2a: {listen: [unix, unix]}", "a2a.listen[1]", "there twice"),
        ("a2a: {principals: [{id: a}]}", "a2a.principals[0].match.token", "is required"),
        ("a2a: {principals: [{match: {token: \"{{secret:K}}\"}}]}", "a2a.principals[0].id", "is required"),
        (
            "a2a: {principals: [{id: a, match: {token: \"{{secret:K}}\"}}]}",
            "a2a.principals[0].match.token",
            "the secret K is not there",
        ),
        (
            "a2a: {principals: [{id: a, match: {token: canary}}]}",
            "a2a.principals[0].match.token",
            "is not a reference",
        ),
    ] {
        let problem = only(&format!("{text}\n"));
        assert_eq!(problem.path, path, "{text}: {problem}");
        assert!(problem.to_string().contains(words), "{text}: {problem}");
    }
}

/// Call > `subagents.defaults.durable` > `store.durability.work` (S10.3); what is written is what is read.
#[test]
fn the_store() {
    use super::super::settings::{StoreKind, StoreSettings};
    use agentd_core::config::{Commit, Store};
    let loaded = one("").load();
    assert_eq!(loaded.config.store, Store { keeps: false, commit: Commit::Strict, work: true });
    assert_eq!(
        loaded.settings.store,
        StoreSettings { kind: StoreKind::Sqlite, path: None, min_free: 256 << 20 }
    );
    for (text, commit, work) in [
        ("store: {durability: {commit: relaxed, work: ephemeral}}", Commit::Relaxed, false),
        (
            "store: {durability: {work: ephemeral}}\nsubagents: {defaults: {durable: true}}",
            Commit::Strict,
            true,
        ),
        ("subagents: {defaults: {durable: false}, max_attempts: 2}", Commit::Strict, false),
    ] {
        let config = one(text).load().config;
        assert_eq!((config.store.commit, config.store.work), (commit, work), "{text}");
    }
    let folder = one("store: {kind: memory, path: state, min_free: 1GiB}");
    let settings = folder.load().settings.store;
    let path = settings.path.expect("it is given");
    assert!(path.is_absolute() && path.ends_with("state"), "{}", path.display());
    assert_eq!((settings.kind, settings.min_free), (StoreKind::Memory, 1 << 30));
}

#[test]
fn the_model_connection() {
    let load_one = |text: &str| Folder::new(&[("a.yaml", text), ("p.yaml", "rules: [}")]);
    for (text, path, code) in [
        ("{}", "intelligence.dialect", Code::Missing),
        ("intelligence: {dialect: mock}", "intelligence.endpoints", Code::Missing),
        ("intelligence: {dialect: openai-response, model: m}", "intelligence.dialect", Code::InvalidValue),
        (
            "intelligence: {dialect: mok, endpoints: [\"mock:builtin\"]}",
            "intelligence.dialect",
            Code::InvalidValue,
        ),
        (
            "intelligence: {dialect: mock, endpoints: [\"mock:builtin\", x]}",
            "intelligence.endpoints[1]",
            Code::InvalidValue,
        ),
        (
            "intelligence: {dialect: mock, endpoints: [nowhere.yaml]}",
            "intelligence.endpoints[0]",
            Code::Unreadable,
        ),
        (
            "intelligence: {dialect: mock, endpoints: [\"mock:builtin\"], token: x}",
            "intelligence.token",
            Code::InvalidValue,
        ),
    ] {
        let mut folder = load_one(text);
        folder.sources.files.truncate(1);
        let problems = folder.problems();
        assert!(problems.iter().any(|p| p.path == path && p.code == code), "{text}: {problems:?}");
    }
    let mut folder = load_one("intelligence: {dialect: mock, endpoints: [p.yaml]}");
    folder.sources.files.truncate(1);
    let problems = folder.problems();
    assert_eq!((problems[0].line, problems[0].code), (1, Code::Syntax), "{problems:?}");
    assert!(problems[0].file.ends_with("p.yaml"), "{problems:?}");
}

#[test]
fn files_merge_in_order_then_variables_then_flags() {
    let mut folder = Folder::new(&[
        ("base.yaml", &format!("{MINIMAL}agent: {{name: one, instruction: kept}}\nlimits: {{run: {{steps: 1, tokens: 1}}}}\nmcp: {{servers: [{{name: a, command: x}}]}}\n")),
        ("deploy/over.json", "{\"limits\": {\"run\": {\"steps\": 2, \"deadline\": \"2s\"}}, \"mcp\": {\"servers\": [{\"name\": \"b\", \"command\": \"./y\"}]}}"),
    ])
    .set("AGENTD_LIMITS_RUN_STEPS", "3")
    .set("AGENTD_AGENT_INSTRUCTION", "a: b # not YAML")
    .set("AGENTD_SPAWN_ENV_PASSTHROUGH", "[A, B_*]")
    .set("AGENTD_OBSERVABILITY_LOG_LEVEL", "warn")
    .set("AGENTD_SUBAGENT", "1")
    .set("AGENTD_INTELLIGENCE_TOKEN_2_FILE", "/run/token")
    .set("AGENTDX", "1");
    folder.sources.flags = Flags {
        dialect: None,
        endpoints: Vec::new(),
        model: Some("flagged".into()),
        servers: vec!["c=run 'a b' --x=\"y\\\"z\" ''".into(), "b=other".into()],
        journal: Some("j".into()),
        log_level: Some("debug".into()),
        log_format: Some(LogFormat::Json),
    };
    let Loaded { config, settings, .. } = folder.load();
    assert_eq!((config.agent.as_str(), config.instruction.as_str()), ("one", "a: b # not YAML"));
    assert_eq!((config.run.steps, config.run.tokens, config.run.deadline_ms), (3, 1, 2_000));
    assert_eq!(config.model.model.name, "flagged");
    assert_eq!(settings.env_passthrough, ["A", "B_*"]);
    assert_eq!((settings.log_level, settings.log_format), (Level::Debug, Some(LogFormat::Json)));
    assert_eq!(settings.journal, Some(folder.dir.path().join("j")));
    let names: Vec<&str> = config.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["c", "b"], "a list replaces a list, and a flag replaces a server of its name");
    let Transport::Stdio(c) = &config.servers[0].transport else { panic!() };
    assert_eq!(
        (c.command.as_str(), c.args.as_slice()),
        ("run", ["a b", "--x=y\"z", ""].map(String::from).as_slice())
    );
}

#[test]
fn a_server_at_an_address_is_taken_as_it_is_written() {
    let text = "intelligence: {dialect: mock, endpoints: [\"mock:builtin\"]}\nmcp: {servers: [{name: s, url: \"https://mcp.example/x/?tools=a,b\", ca: own.pem, headers: {X-A: b}, timeout: 5s, required: false}]}\n";
    let folder = Folder::new(&[("a.yaml", text)]);
    folder.write("own.pem", "");
    let Loaded { config, .. } = folder.load();
    let server = &config.servers[0];
    let Transport::Http(http) = &server.transport else { panic!("{server:?}") };
    assert_eq!(http.url, "https://mcp.example/x/?tools=a,b");
    assert_eq!(http.ca, Some(folder.path("own.pem")));
    assert_eq!(http.headers, [("X-A".to_owned(), "b".to_owned())].into());
    assert_eq!((server.timeout_ms, server.start_timeout_ms, server.required), (5_000, 60_000, false));
}

#[test]
fn relative_paths_start_from_the_file_that_names_them() {
    let folder = Folder::new(&[
        ("a.yaml", "agent: {workspace: ws}\n"),
        (
            "deep/b.yaml",
            "intelligence: {dialect: mock, endpoints: [book.yaml]}\nmcp: {servers: [{name: s, command: ./run, cwd: ../ws}, {name: f, builtin: files}]}\n",
        ),
    ]);
    folder.write("deep/book.yaml", "rules: [{reply: {text: hi}}]\n");
    fs::create_dir(folder.dir.path().join("ws")).unwrap();
    let Loaded { config, .. } = folder.load();
    let Transport::Stdio(stdio) = &config.servers[0].transport else { panic!() };
    assert_eq!(
        (stdio.command.clone(), stdio.cwd.clone()),
        (folder.path("deep/run"), Some(folder.path("deep/../ws")))
    );
    let Transport::Files(files) = &config.servers[1].transport else { panic!() };
    assert_eq!(files.root, folder.path("ws"));
}

#[test]
fn variables_that_cannot_be_used_are_named() {
    for (name, value, words) in [
        ("AGENTD_LIMITS_RUN_STESP", "1", "did you mean AGENTD_LIMITS_RUN_STEPS?"),
        ("AGENTD_LIMITS_RUN", "{steps: 1}", "set the keys in it, such as AGENTD_LIMITS_RUN_STEPS"),
        ("AGENTD_COLOUR_OF_THE_SKY", "blue", "unset it"),
        (
            "AGENTD_LIMITS_RUN_STEPS",
            "many",
            "limits.run.steps: expected a whole number, saw the text \"many\"",
        ),
        ("AGENTD_LIMITS_RUN_STEPS", "", "limits.run.steps: has no value"),
        ("AGENTD_LIMITS_RUN_DEADLINE", "5", "$AGENTD_LIMITS_RUN_DEADLINE:1:1: limits.run.deadline"),
        ("AGENTD_MCP_SERVERS", "[{name: a", "$AGENTD_MCP_SERVERS:1:"),
        ("AGENTD_MCP_SERVERS", "x", "expected a list"),
        ("AGENTD_STREAMS", "x", "streams: is not built yet"),
        ("AGENTD_STREAMS_NOTES", "x", "$AGENTD_STREAMS_NOTES: streams: is not built yet"),
        ("AGENTD_A2A", "x", "set the keys in it, such as AGENTD_A2A_LISTEN"),
        ("AGENTD_STORE_KIND", "redis", "store.kind"),
        ("AGENTD_INSTANCE", "x", "AGENTD_INSTANCE: names no key"),
    ] {
        let problems = one("").set(name, value).problems();
        let text = super::super::render(&problems);
        assert!(text.contains(words), "{name}={value}: {text}");
        assert!(text.contains(name), "{text}");
    }
    use std::os::unix::ffi::OsStrExt;
    let mut folder = one("");
    folder.sources.environment.push(("AGENTD_AGENT_NAME".into(), OsStr::from_bytes(b"\xff").to_owned()));
    folder.sources.environment.push((OsStr::from_bytes(b"AGENTD_\xff").to_owned(), "x".into()));
    assert!(super::super::render(&folder.problems()).contains("is not UTF-8"));
}

#[test]
fn flags_that_cannot_be_used_are_named() {
    for (server, words) in [
        ("files", "there is no ="),
        ("files=", "no command"),
        ("files=a 'b", "a quote is not closed"),
        ("web=http://mcp.example", "unencrypted"),
        ("a b=x", "\"a b\" is not a name"),
        ("=x", "is not a name"),
    ] {
        let mut folder = one("");
        folder.sources.flags.servers.push(server.into());
        let text = super::super::render(&folder.problems());
        assert!(text.contains(words) && text.contains("--mcp"), "{server}: {text}");
    }
}

#[test]
fn without_a_file_it_says_where_it_looked() {
    let mut folder = Folder::new(&[]);
    let user = folder.dir.path().join("home");
    folder.sources.environment.push(("HOME".into(), user.clone().into()));
    let text = super::super::render(&folder.problems());
    let places = [
        "agentd.yaml",
        &folder.path("home/.config/agentd/agentd.yaml"),
        "/etc/agentd/agentd.yaml",
        "agentd demo",
    ];
    for place in places {
        assert!(text.contains(place), "{place}: {text}");
    }
    folder.write("home/.config/agentd/agentd.yaml", MINIMAL);
    assert_eq!(folder.load().settings.files, [user.join(".config/agentd/agentd.yaml")]);
    folder.sources.environment.push(("XDG_CONFIG_HOME".into(), folder.path("xdg").into()));
    folder.write("xdg/agentd/agentd.yaml", MINIMAL);
    assert_eq!(folder.load().settings.files, [folder.dir.path().join("xdg/agentd/agentd.yaml")]);
    folder.write("agentd.yaml", MINIMAL);
    assert_eq!(folder.load().settings.files, [PathBuf::from("agentd.yaml")]);
}

#[test]
fn variables_alone_are_a_configuration() {
    let folder = Folder::new(&[])
        .set("AGENTD_INTELLIGENCE_DIALECT", "mock")
        .set("AGENTD_INTELLIGENCE_ENDPOINTS", "[\"mock:builtin\"]");
    assert_eq!(folder.load().config.agent, "agentd");
}

#[test]
fn files_that_cannot_be_read() {
    let mut folder = Folder::new(&[("a.yaml", MINIMAL)]);
    folder.write("big.yaml", &"#".repeat(1024 * 1024 + 1));
    fs::write(folder.dir.path().join("bytes.yaml"), b"a: 1\nb: \xff\n").unwrap();
    folder.sources.files.extend(["nowhere.yaml", ".", "big.yaml", "bytes.yaml"].map(PathBuf::from));
    let text = super::super::render(&folder.problems());
    for want in [
        "nowhere.yaml: the file cannot be read: No such file",
        "larger than 1 MiB",
        "not UTF-8 text (line 2, byte 8 of the file)",
        "4 problems",
    ] {
        assert!(text.contains(want), "{want}: {text}");
    }
}

#[test]
fn a_fault_in_one_file_does_not_hide_that_of_another() {
    let folder = Folder::new(&[("a.yaml", "a: [\n"), ("b.yaml", "limits: {run: {steps: 0}}\n")]);
    let problems = folder.problems();
    let files: Vec<&str> = problems.iter().map(|problem| problem.file.as_str()).collect();
    assert!(files.contains(&"a.yaml") && files.contains(&"b.yaml"), "{problems:?}");
}

#[test]
fn places_are_counted_in_characters() {
    assert_eq!(places("agent: {instruction: \"é\", nme: x}\n"), ["2:27 UnknownKey agent.nme"]);
}

#[test]
fn an_unreadable_file_is_not_also_an_incomplete_configuration() {
    let folder = Folder::new(&[("a.yaml", "intelligence: {dialect: mock\n")]);
    let problems = folder.problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
}

#[test]
fn only_a_relative_path_is_told_where_it_starts_from() {
    for (text, hint) in [
        ("agent: {workspace: nowhere}", true),
        ("agent: {workspace: /nowhere/at/all}", false),
        ("mcp: {servers: [{name: a, command: x, cwd: /nowhere/at/all}]}", false),
    ] {
        let problem = only(&format!("{text}\n"));
        assert_eq!(problem.hint.is_some_and(|hint| hint.starts_with("relative paths start")), hint, "{text}");
    }
    for (path, hint) in [("nowhere.yaml", true), ("/nowhere.yaml", false)] {
        let text = format!("intelligence: {{dialect: mock, endpoints: [{path}]}}\n");
        let problems = Folder::new(&[("a.yaml", &text)]).problems();
        assert_eq!((problems.len(), problems[0].hint.is_some()), (1, hint), "{problems:?}");
    }
}

#[test]
fn a_path_with_control_characters_is_one_problem_and_is_printed_escaped() {
    for (value, words) in [("a\\0b", "holds a NUL character"), ("a\\eb\\nc", "a\\u{1b}b\\nc cannot be used")]
    {
        for text in [
            format!("agent: {{workspace: \"{value}\"}}"),
            format!("mcp: {{servers: [{{name: a, builtin: files, root: \"{value}\"}}]}}"),
            format!("mcp: {{servers: [{{name: a, command: x, cwd: \"{value}\"}}]}}"),
        ] {
            let text = only(&format!("{text}\n")).to_string();
            assert!(text.contains(words), "{text}");
            assert!(!text.contains(['\0', '\u{1b}']), "{text:?}");
        }
    }
    let problems =
        Folder::new(&[("a.yaml", "intelligence: {dialect: mock, endpoints: [\"a\\0b\"]}\n")]).problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
}

mod budget;
mod models;
mod secrets;
mod whole;

#[test]
fn a_journal_stands_in_a_folder_that_exists() {
    let fault = |text: &str| places(&format!("lifecycle: {{journal: {text}}}\n"));
    assert_eq!(fault("/nope/flight"), ["2:22 Unreadable lifecycle.journal"]);
    assert_eq!(fault("/"), ["2:22 Unreadable lifecycle.journal"]);
    assert_eq!(fault("/dev/null"), ["2:22 Unreadable lifecycle.journal"]);
    assert_eq!(fault("/etc/hostname/flight"), ["2:22 Unreadable lifecycle.journal"]);
    assert!(one("lifecycle: {journal: flight}\n").load().settings.journal.is_some());
    assert!(one("lifecycle: {journal: off}\n").load().settings.journal.is_none());
}

#[test]
fn doors_are_open_to_whom_they_say() {
    let a2a = |listen: &str, more: &str| {
        let principals = "principals: [{id: ops, match: {token: \"{{secret:OPS}}\"}, role: operator}, {id: ann, match: {token: \"{{secret:ANN}}\"}}]";
        let text = format!("a2a: {{listen: [{listen}], {principals}{more}}}\n");
        one(&text).set("OPS", "ops-0123456789-abcdef")
    };
    let fine = a2a("unix, \"unix:///run/a.sock\", \"http://127.0.0.1:8080\", \"http://[::1]:0/\"", "")
        .set("ANN", "ann-0123456789-abcdef")
        .load();
    let doors = fine.settings.doors;
    let address = |text: &str| text.parse().expect("an address");
    assert_eq!(
        doors.listen,
        [
            Listen::Unix(None),
            Listen::Unix(Some("/run/a.sock".into())),
            Listen::Plain(address("127.0.0.1:8080")),
            Listen::Plain(address("[::1]:0")),
        ]
    );
    let roles: Vec<(&str, PrincipalRole)> =
        doors.principals.iter().map(|caller| (caller.principal.id.as_str(), caller.principal.role)).collect();
    assert_eq!(roles, [("ops", PrincipalRole::Operator), ("ann", PrincipalRole::User)]);
    assert_eq!(
        one("").load().settings.doors.listen,
        [Listen::Unix(None)],
        "by default the control socket alone"
    );

    for (listen, more, ann, path, says) in [
        ("\"http://0.0.0.0:80\"", "", "ann-0123456789-abcdef", "a2a.listen[0]", "only loopback"),
        ("\"https://0.0.0.0:443\"", "", "ann-0123456789-abcdef", "a2a.tls.cert", "without it"),
        ("unix", ", tls: {cert: nowhere.pem}", "ann-0123456789-abcdef", "a2a.tls.cert", "cannot be read"),
        ("unix", "", "short", "a2a.principals[1].match.token", "16 to 256"),
        ("unix", "", "sixteen characters, but blanks", "a2a.principals[1].match.token", "16 to 256"),
        ("unix", "", "ops-0123456789-abcdef", "a2a.principals[1].match.token", "that of ops too"),
    ] {
        let problems = a2a(listen, more).set("ANN", ann).problems();
        let first = &problems[0];
        assert!(first.path == path && first.message.contains(says), "{listen} {more} {ann}: {first}");
        assert!(!problems.iter().any(|problem| problem.to_string().contains(ann)), "a token is shown");
    }
    let nobody = one("a2a: {listen: [\"http://127.0.0.1:80\"]}").problems();
    assert!(
        nobody[0].path == "a2a.principals" && nobody[0].message.contains("nobody could come"),
        "{}",
        nobody[0]
    );
}

#[test]
fn a_client_needs_the_name_of_a_daemon_and_none_of_its_secrets() {
    let text = "agent: {name: archivist}\nmcp: {servers: [{name: a, url: \"https://x\", headers: {A: \"{{secret:GONE}}\"}}]}\na2a: {listen: [unix, \"unix:///run/a.sock\"]}\n";
    let folder = Folder::new(&[("a.yaml", text)]);
    let of = |name: &str, socket: Option<&str>| Identity {
        name: name.to_owned(),
        socket: socket.map(Into::into),
        state: None,
    };
    assert_eq!(identity(&folder.sources), Ok(of("archivist", Some("/run/a.sock"))));
    let named = Folder::new(&[("b.yaml", MINIMAL)]).set("AGENTD_AGENT_NAME", "other");
    assert_eq!(identity(&named.sources), Ok(of("other", None)));
    assert_eq!(identity(&Folder::new(&[("b.yaml", MINIMAL)]).sources), Ok(of("b", None)));
    assert!(identity(&Folder::new(&[("b.yaml", "a: [")]).sources).is_err());
}
