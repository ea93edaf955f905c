//! What is offered, under which name, and what the log is told.

use super::*;
use agentd_core::bytes::{Bytes, Json};
use agentd_core::id::RunId;
use agentd_core::rng::Rng;
use agentd_core::time::Wall;
use agentd_core::wire::message::{
    Dialect, Files, Mode, Model, Role, RunLimits, Server, ToolName, Trace, Transport, VERSION,
};

fn spawn(servers: &[&str], tools: Option<&[&str]>) -> Spawn {
    let server = |name: &&str| Server {
        name: (*name).to_owned(),
        ns: None,
        transport: Transport::Files(Files { root: "/".into(), write: false }),
        allow: None,
        exclude: Vec::new(),
        timeout_ms: 1,
        start_timeout_ms: 1,
        required: true,
    };
    Spawn {
        v: VERSION,
        run_id: RunId::mint(Wall(1), &mut Rng::new(1)),
        handle: None,
        depth: 0,
        attempt: 1,
        role: Role::Worker,
        mode: Mode::Sync,
        trace: Trace { trace_id: String::new(), span_id: String::new(), parent_span_id: None },
        system: String::new(),
        instruction: String::new(),
        context: Vec::new(),
        output_contract: None,
        servers: servers.iter().map(server).collect(),
        tools: tools.map(|tools| tools.iter().map(|t| (*t).to_owned()).collect()),
        names: Vec::new(),
        own_tools: Vec::new(),
        model: Model { name: String::new(), dialect: Dialect::Mock(Bytes::default()) },
        limits: RunLimits { steps: 1, tokens: 1, deadline_ms: 1, repeats: 0, tool_result_bytes: 1 },
        log_level: "info".into(),
    }
}

fn offered(tools: &[(&str, &[&str])]) -> BTreeMap<String, Vec<ToolInfo>> {
    let info = |name: &&str| ToolInfo {
        name: (*name).to_owned(),
        description: format!("does {name}"),
        schema: Json::of(&serde_json::json!({"type": "object"})),
    };
    tools.iter().map(|(server, names)| ((*server).to_owned(), names.iter().map(info).collect())).collect()
}

fn names(catalogue: &Catalogue) -> Vec<&str> {
    catalogue.tools.iter().map(|tool| tool.decl.name.as_str()).collect()
}

fn told(catalogue: &Catalogue, name: &str) -> Vec<String> {
    catalogue.events.iter().filter(|e| e.name == name).map(|e| e.fields["text"].clone()).collect()
}

#[test]
fn exactly_what_is_granted_is_offered() {
    let offer = [("b", &["read", "write"][..]), ("a", &["list"])];
    let all = build(&spawn(&["b", "a"], None), offered(&offer));
    assert_eq!(names(&all), ["read", "write", "list"]);
    assert_eq!(all.tools[1].decl.description, "does write");
    assert_eq!(all.tools[1].source, ToolSource::Server { server: "b".into(), tool: "write".into() });
    assert_eq!(told(&all, "mcp.tools"), ["tools: 3 from 2 servers"]);

    let some = build(&spawn(&["b", "a"], Some(&["re*", "list"])), offered(&offer));
    assert_eq!(names(&some), ["read", "list"]);
    assert_eq!(told(&some, "mcp.tools"), ["tools: 2 from 2 servers"]);
    assert!(told(&some, "tools.unmatched").is_empty());

    let none = build(&spawn(&["b", "a"], Some(&[])), offered(&offer));
    assert!(names(&none).is_empty());
}

#[test]
fn a_pattern_that_matches_nothing_is_told_and_grants_nothing() {
    let catalogue = build(&spawn(&["a"], Some(&["list", "lsit", "b.*"])), offered(&[("a", &["list"])]));
    assert_eq!(names(&catalogue), ["list"]);
    let told = told(&catalogue, "tools.unmatched");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("lsit") && told[0].contains("1 tools"), "{told:?}");
}

#[test]
fn a_grant_that_cannot_be_read_grants_nothing() {
    let catalogue = build(&spawn(&["a"], Some(&["list", "a*b"])), offered(&[("a", &["list"])]));
    assert!(names(&catalogue).is_empty());
    assert!(told(&catalogue, "tools.invalid")[0].contains("tools[1]"));
}

#[test]
fn known_names_stand_and_the_supervisors_tools_come_first() {
    let mut spawn = spawn(&["a", "b"], None);
    spawn.names.push(ToolName { server: "b".into(), tool: "read".into(), name: "read".into() });
    let schema = Json::of(&serde_json::json!({}));
    spawn.own_tools.push(ToolDecl { name: "finish".into(), description: String::new(), schema });
    let catalogue = build(&spawn, offered(&[("a", &["read"]), ("b", &["read"])]));
    assert_eq!(names(&catalogue), ["finish", "a.read", "read"]);
    assert_eq!(catalogue.tools[0].source, ToolSource::Supervisor);
    assert_eq!(told(&catalogue, "tools.collision").len(), 1);
    assert_eq!(told(&catalogue, "mcp.tools"), ["tools: 2 from 2 servers"]);
}
