//! `agentd mcp probe`: connects to one server as a run would, and says what it is, what it offers, and what is wrong with
//! it.

use super::{exit, headers};
use crate::child::probe::{Ask, Found, Probe};
use crate::config;
use crate::http::mask::Mask;
use agentd_core::bytes::Json;
use agentd_core::limits;
use agentd_core::mcp::{Era, Outcome, READ_TOOL, ToolInfo, Value as Answer};
use agentd_core::note::Level;
use agentd_core::preview::preview;
use agentd_core::units;
use agentd_core::wire::message::{HttpServer, Stdio, Transport};
use clap::Args;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = MCP_PROBE_EXAMPLES)]
pub(super) struct McpProbeArgs {
    /// The address of a server, or the command that starts one. Options go before it.
    #[arg(required = true, value_name = "URL|COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    server: Vec<String>,
    /// Call a tool by the server's own name of it, with arguments. Repeatable: one after another.
    #[arg(long, num_args = 2, value_names = ["NAME", "JSON"])]
    call: Vec<String>,
    /// Read a resource. Repeatable; after the calls.
    #[arg(long, value_name = "URI")]
    read: Vec<String>,
    /// Answer what the server asks a person with these fields, and its own defaults for the others. Without it,
    /// questions are declined.
    #[arg(long, value_name = "JSON")]
    elicit: Option<String>,
    /// Send a header with every request; its value may refer to a secret, as {{secret:NAME}}. Repeatable.
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// Trust the certificates of this file, in PEM, in place of the system's.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Time limit of the start, and of each call.
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    timeout: String,
    /// Take the server to be of this era of the protocol, instead of finding out: stateless is 2026-07-28, initialize all
    /// before.
    #[arg(long, value_enum)]
    era: Option<EraName>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum EraName {
    Initialize,
    Stateless,
}

const MCP_PROBE_EXAMPLES: &str = "\
Examples:
  agentd mcp probe https://mcp.example/mcp
  agentd mcp probe --header 'Authorization: Bearer {{secret:MCP_TOKEN}}' https://mcp.example/mcp
  agentd mcp probe --call read '{\"path\": \"README.md\"}' agentd mcp serve-files --root .
  agentd mcp probe --json npx -y @modelcontextprotocol/server-everything

Exit codes: 0 the server is usable and every call was answered, 1 a call was answered with an error, 2 usage,
6 the server is of no use.";

/// Bytes of a name or a description on one line.
const SHOWN_BYTES: usize = 160;

/// What is asked of the server once it is connected.
struct Plan {
    ask: Ask,
    /// Tool or address, and arguments.
    calls: Vec<(String, Json)>,
}

/// What came of it.
#[derive(Default)]
struct Report {
    found: Option<Found>,
    calls: Vec<(String, Outcome)>,
    /// Why it is of no use.
    error: Option<String>,
    remarks: Vec<(Level, String)>,
}

/// Connects, asks, prints.
pub(super) fn probe(args: &McpProbeArgs) -> u8 {
    let plan = match plan(args) {
        Ok(plan) => plan,
        Err(fault) => {
            eprintln!("agentd: {fault}");
            return exit::USAGE;
        }
    };
    let over_http = matches!(plan.ask.transport, Transport::Http(_));
    // What is printed is for people, results included.
    let mask = Mask::of(&plan.ask.transport);
    let report = run(plan);
    let code = match (&report.error, report.calls.iter().any(|(_, outcome)| outcome.error)) {
        (Some(_), _) => exit::SERVER,
        (None, true) => exit::FAILED,
        (None, false) => exit::COMPLETED,
    };
    if !args.json
        && let Some(error) = &report.error
    {
        eprintln!("agentd: {}", mask.text(preview(error, limits::MCP_ERROR_BYTES)));
    }
    let text = if args.json {
        format!("{}\n", mask.json(as_json(&report, over_http)))
    } else {
        mask.text(as_text(&report, over_http))
    };
    super::answer::only(&text, code)
}

fn run(plan: Plan) -> Report {
    let mut report = Report::default();
    let mut probe = match Probe::begin(plan.ask) {
        Ok(probe) => probe,
        Err(error) => return Report { error: Some(error), ..report },
    };
    match probe.found() {
        Ok(found) => {
            report.found = Some(found);
            for (name, args) in plan.calls {
                match probe.call(&name, &args) {
                    Ok(outcome) => report.calls.push((name, outcome)),
                    Err(error) => {
                        report.error = Some(error);
                        break;
                    }
                }
            }
        }
        Err(error) => report.error = Some(error),
    }
    report.remarks = probe.end();
    report
}

fn plan(args: &McpProbeArgs) -> Result<Plan, String> {
    let timeout = units::duration(&args.timeout).map_err(|e| format!("--timeout: {e}"))?;
    if timeout.is_zero() || timeout > Duration::from_secs(24 * 3_600) {
        return Err("--timeout: more than nothing and at most 24h".to_owned());
    }
    let mut calls = Vec::new();
    for pair in args.call.chunks(2) {
        let [name, given] = pair else { return Err("--call takes NAME and JSON".to_owned()) };
        calls.push((name.clone(), Json::of(&Value::Object(object("--call", given)?))));
    }
    calls.extend(args.read.iter().map(|uri| (READ_TOOL.to_owned(), Json::of(&json!({ "uri": uri })))));
    let script = args.elicit.as_deref().map(|given| object("--elicit", given)).transpose()?;
    let only = args.era.map(|era| match era {
        EraName::Initialize => Era::Initialize,
        EraName::Stateless => Era::Stateless,
    });
    Ok(Plan { ask: Ask { transport: transport(args)?, script, only, timeout }, calls })
}

fn object(flag: &str, text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(format!("{flag}: a JSON object is wanted, not {}", preview(other.to_string(), 80))),
        Err(error) => Err(format!("{flag}: {:?} is not JSON: {error}", preview(text, 80))),
    }
}

fn transport(args: &McpProbeArgs) -> Result<Transport, String> {
    let (first, rest) = args.server.split_first().ok_or("a URL or a command is wanted")?;
    let lower = first.to_ascii_lowercase();
    if lower.starts_with("https://") || lower.starts_with("http://") {
        if let Some(more) = rest.first() {
            return Err(format!("{more:?} after the address: options go before it"));
        }
        config::server_address(first).map_err(|(fault, hint)| format!("{fault}: {hint}"))?;
        let ca = args.ca.as_ref().map(|file| file.to_string_lossy().into_owned());
        return Ok(Transport::Http(HttpServer {
            url: first.clone(),
            headers: headers::read(&args.header)?,
            ca,
        }));
    }
    if !args.header.is_empty() || args.ca.is_some() {
        return Err("--header and --ca are for a server at an address".to_owned());
    }
    // One argument with blanks in it is a command line, as `--mcp` of `agentd run` takes it.
    let words = match rest {
        [] => config::words(first).ok_or_else(|| format!("{first:?}: a quote is not closed"))?,
        _ => args.server.clone(),
    };
    let (command, args) = words.split_first().ok_or("a URL or a command is wanted")?;
    Ok(Transport::Stdio(Stdio {
        command: command.clone(),
        args: args.to_vec(),
        env: BTreeMap::new(),
        cwd: None,
    }))
}

fn era(era: Era) -> &'static str {
    match era {
        Era::Initialize => "initialize",
        Era::Stateless => "stateless",
    }
}

fn problems(report: &Report) -> Vec<&str> {
    let all = report.remarks.iter().filter(|(level, _)| matches!(level, Level::Warn | Level::Error));
    all.map(|(_, text)| text.as_str()).collect()
}

fn as_json(report: &Report, over_http: bool) -> Value {
    let mut object = json!({
        "transport": if over_http { "http" } else { "stdio" },
        "error": report.error,
        "problems": problems(report),
        "calls": report.calls.iter().map(|(name, outcome)| match &outcome.value {
            Answer::Text(text) => json!({"name": name, "error": outcome.error, "text": text}),
            Answer::Json(value) => json!({"name": name, "error": outcome.error, "structured": value.parse().ok()}),
        }).collect::<Vec<_>>(),
    });
    if let (Some(found), Some(object)) = (&report.found, object.as_object_mut()) {
        let tool = |tool: &ToolInfo| {
            let schema = tool.schema.parse().ok();
            json!({"name": tool.name, "description": tool.description, "input_schema": schema})
        };
        let resources = found.resources.iter().map(
            |r| json!({"uri": r.uri, "name": r.name, "description": r.description, "template": r.template}),
        );
        object.extend([
            ("server".to_owned(), json!({"name": found.name, "version": found.version})),
            ("protocol".to_owned(), json!(found.protocol)),
            ("era".to_owned(), json!(era(found.era))),
            ("capabilities".to_owned(), found.capabilities.parse().unwrap_or_default()),
            ("tools".to_owned(), found.tools.iter().map(tool).collect()),
            ("resources".to_owned(), resources.collect()),
        ]);
    }
    object
}

fn as_text(report: &Report, over_http: bool) -> String {
    let mut lines = Vec::new();
    if let Some(found) = &report.found {
        let line = |text: &str| preview(text, SHOWN_BYTES);
        let over = if over_http { "HTTP" } else { "pipes" };
        lines.push(format!("server        {} {}", line(&found.name), line(&found.version)));
        lines.push(format!("protocol      {} ({} era), over {over}", found.protocol, era(found.era)));
        lines.push(format!("capabilities  {}", capabilities(found)));
        lines.push(format!("tools         {}", found.tools.len()));
        lines.extend(found.tools.iter().map(|tool| {
            let first = tool.description.lines().next().unwrap_or_default();
            format!("  {}({})  {}", line(&tool.name), arguments(tool), line(first)).trim_end().to_owned()
        }));
        lines.push(format!("resources     {}", found.resources.len()));
        lines.extend(
            found
                .resources
                .iter()
                .map(|r| format!("  {}  {}", line(&r.uri), line(&r.name)).trim_end().to_owned()),
        );
    }
    for (name, outcome) in &report.calls {
        let how = if outcome.error { "an error" } else { "ok" };
        lines.push(format!("call {}: {how}", preview(name, SHOWN_BYTES)));
        let text = match &outcome.value {
            Answer::Text(text) => text.clone(),
            Answer::Json(json) => String::from_utf8_lossy(&json.0).into_owned(),
        };
        lines.push(super::answer::harmless(&text));
    }
    lines.extend(
        problems(report)
            .into_iter()
            .map(|text| format!("problem: {}", preview(text, limits::MCP_ERROR_BYTES))),
    );
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn capabilities(found: &Found) -> String {
    match found.capabilities.parse() {
        Ok(Value::Object(all)) if !all.is_empty() => {
            let names: Vec<String> = all.keys().map(|name| preview(name, 40)).collect();
            names.join(", ")
        }
        Ok(_) | Err(_) => "none".to_owned(),
    }
}

/// The names of a tool's arguments, those that may be left out with a question mark.
fn arguments(tool: &ToolInfo) -> String {
    let schema = tool.schema.parse().unwrap_or_default();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let names = schema["properties"].as_object().into_iter().flat_map(Map::keys).map(|name| {
        let optional = if required.iter().any(|r| r == name) { "" } else { "?" };
        format!("{}{optional}", preview(name, 40))
    });
    names.collect::<Vec<_>>().join(", ")
}
