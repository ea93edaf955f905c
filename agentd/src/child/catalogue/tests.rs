//! What is offered, under which name, and what the log is told.

use super::*;
use agentd_core::bytes::{Bytes, Json};
use agentd_core::id::RunId;
use agentd_core::rng::Rng;
use agentd_core::time::Wall;
use agentd_core::wire::message::{
    Dialect, Files, Mode, Model, Role, RunLimits, Server, ToolName, Trace, Transport, VERSION,
};

fn spawn(servers: &[&str]) -> Spawn {
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
        output_schema: None,
        output_contract: None,
        servers: servers.iter().map(server).collect(),
        tools: None,
        names: Vec::new(),
        own_tools: Vec::new(),
        model: Model { name: String::new(), dialect: Dialect::Mock(Bytes::default()) },
        limits: RunLimits { steps: 1, tokens: 1, deadline_ms: 1, repeats: 0, tool_result_bytes: 1 },
        budget: None,
        log_level: "info".into(),
        transcript: None,
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

#[test]
fn tools_come_in_the_order_of_servers_and_of_each_servers_list() {
    let offer = [("b", &["read", "write"][..]), ("a", &["list"])];
    let catalogue = build(&spawn(&["b", "a"]), offered(&offer));
    assert_eq!(names(&catalogue), ["read", "write", "list"]);
    assert_eq!(catalogue.tools[1].decl.description, "does write");
    assert_eq!(catalogue.tools[1].source, ToolSource::Server { server: "b".into(), tool: "write".into() });
    assert!(catalogue.events.is_empty());
}

#[test]
fn a_tool_that_is_listed_twice_is_one_tool() {
    let catalogue = build(&spawn(&["a"]), offered(&[("a", &["read", "read"])]));
    assert_eq!(names(&catalogue), ["read"]);
}

#[test]
fn known_names_stand_and_the_supervisors_tools_come_first() {
    let mut spawn = spawn(&["a", "b"]);
    spawn.names.push(ToolName { server: "b".into(), tool: "read".into(), name: "read".into() });
    let schema = Json::of(&serde_json::json!({}));
    spawn.own_tools.push(ToolDecl { name: "finish".into(), description: String::new(), schema });
    let catalogue = build(&spawn, offered(&[("a", &["read"]), ("b", &["read"])]));
    assert_eq!(names(&catalogue), ["finish", "a.read", "read"]);
    assert_eq!(catalogue.tools[0].source, ToolSource::Supervisor);
    let told: Vec<_> = catalogue.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(told, ["mcp.tools.collision"]);
}
