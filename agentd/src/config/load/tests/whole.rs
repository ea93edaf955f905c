//! Whole configurations: the shape that is planned, and one with a mistake in every line.

use super::super::super::render;
use super::*;

#[test]
fn each_part_of_the_whole_shape_is_built_or_says_that_it_is_not() {
    let text = "agent: {name: archivist, wake_on: [a2a_message], max_parallel_turns: 4, worker_idle: 60s}
intelligence:
  dialect: mock
  endpoints: [\"mock:builtin\"]
  prices: {big: {input: 3.00, output: 15.00, cached: 0.30}}
  models: {small: {model: tiny-2, dialect: openai, endpoints: [\"http://localhost/v1\"], timeout: 2m}}
  swap_policy: finish-on-old
mcp:
  servers:
    - {name: files, builtin: files, root: ., tags: {\"*\": [sensitive]}, sandbox: {home: true}}
    - {name: web, url: \"https://mcp.example/web\", headers: {A: b}, exclude: [\"post_*\"]}
limits: {run: {steps: 500}, subagents: {queue: 16, instances: {breadth: 2}}}
subagents:
  {allow_freeform: true, max_attempts: 5, pool: 1, defaults: {model: small, limits: {pids: 1, fds: 1,
  file_size: 1MB}}, agents_dirs: [], surfaces: a, templates: {scan: {nonsense: 1}}}
spawn: {uid: 1400, gid: 1400, instance_uid: 1, instance_gid: 1}
security: {landlock: auto}
store: {kind: sqlite}
a2a: {listen: [unix]}
observability: {log_level: info, log_content: false, metrics_addr: \"127.0.0.1:9464\", otel: {}}
streams: {}
workflows: [{name: nightly}]
";
    let problems = Folder::new(&[("a.yaml", text)]).problems();
    let mut paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(
        paths,
        [
            "agent.max_parallel_turns",
            "limits.subagents.instances",
            "mcp.servers[0].sandbox",
            "observability.log_content",
            "observability.otel",
            "security",
            "spawn.gid",
            "spawn.instance_gid",
            "spawn.instance_uid",
            "spawn.uid",
            "streams",
            "subagents.agents_dirs",
            "subagents.allow_freeform",
            "subagents.defaults.limits.fds",
            "subagents.defaults.limits.file_size",
            "subagents.defaults.limits.pids",
            "subagents.pool",
            "subagents.surfaces",
            "subagents.templates",
            "workflows",
        ],
        "{}",
        render(&problems)
    );
    for problem in problems {
        assert_eq!(problem.code, Code::NotBuilt, "{problem}");
        assert!(problem.message.contains("is not built yet"), "{problem}");
    }
}

#[test]
fn twenty_mistakes_are_twenty_problems() {
    let text = "agnet: {}
agent:
  name: a/b
  workspace: nowhere
  wake_on: [subagent_results]
  worker_idle: 60
intelligence:
  dialect: openai
  endpoints: [\"http://models.example/v1\"]
  token: sk-canary
  headers: {Content-Length: 5}
  timeout: 2 minutes
  max_output: 0
  prices: {big: {input: -1, output: 1}}
  swap_policy: finish
mcp:
  servers:
    - {name: a, builtin: files, command: x}
    - {name: a, command: sh, args: [\"{{secret:K}}\"]}
limits: {run: {stesp: 5, steps: many}, subagents: {rate: 8 per 2s, queue: -1}}
subagents: {defaults: {model: smal, mode: snyc}}
lifecycle: {kill: [5s]}
streams: {}
";
    let problems = Folder::new(&[("a.yaml", text)]).problems();
    let told: Vec<String> =
        problems.iter().map(|p| format!("{}:{} {:?} {}", p.line, p.column, p.code, p.path)).collect();
    assert_eq!(
        told,
        [
            "1:1 UnknownKey agnet",
            "3:9 InvalidValue agent.name",
            "4:14 Unreadable agent.workspace",
            "5:13 InvalidValue agent.wake_on[0]",
            "6:16 InvalidValue agent.worker_idle",
            "8:3 Missing intelligence.model",
            "9:15 InvalidValue intelligence.endpoints[0]",
            "10:10 InvalidValue intelligence.token",
            "11:13 InvalidValue intelligence.headers",
            "12:12 InvalidValue intelligence.timeout",
            "13:15 InvalidValue intelligence.max_output",
            "14:25 InvalidValue intelligence.prices.big.input",
            "15:16 InvalidValue intelligence.swap_policy",
            "18:42 InvalidValue mcp.servers[0].command",
            "19:14 Duplicate mcp.servers[1].name",
            "19:37 InvalidValue mcp.servers[1].args[0]",
            "20:16 UnknownKey limits.run.stesp",
            "20:33 WrongType limits.run.steps",
            "20:58 InvalidValue limits.subagents.rate",
            "20:75 WrongType limits.subagents.queue",
            "21:31 InvalidValue subagents.defaults.model",
            "21:43 InvalidValue subagents.defaults.mode",
            "22:19 WrongType lifecycle.kill",
            "23:1 NotBuilt streams",
        ]
    );
    let text = render(&problems);
    assert!(!text.contains("canary") && text.contains("token: *********\n"), "{text}");
    for hint in
        ["did you mean agent?", "did you mean steps?", "did you mean sync?", "did you mean subagent_result?"]
    {
        assert!(text.contains(hint), "{hint}: {text}");
    }
}
