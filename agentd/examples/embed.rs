//! A supervisor inside a program on tokio: two agents look something up in the program's own data, in parallel, each in
//! a process of its own.
//!
//! ```text
//! cargo run -p agentd --features tokio --example embed -- agentd/examples/embed.yaml
//! ```

use agentd::config::{self, Flags, Sources};
use agentd::embed::{self, ToolCall, Tools, Work};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

/// The program's own data, which it shares with the agents through a tool.
type Tickets = Arc<BTreeMap<&'static str, u32>>;

#[derive(Deserialize)]
struct OpenTickets {
    customer: String,
}

fn main() -> ExitCode {
    // The agents' processes are this program again: in one of them this does its work, and there is nothing else to do.
    if let Some(code) = agentd::child_main() {
        return code;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    match runtime.block_on(program()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("embed: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn program() -> Result<(), Box<dyn Error>> {
    let file = std::env::args_os().nth(1).unwrap_or("agentd/examples/embed.yaml".into());
    let sources = Sources::of_process(vec![file.into()], Flags::default())?;
    let loaded = config::load(&sources).map_err(|problems| config::render(&problems))?;

    let tickets: Tickets = Arc::new(BTreeMap::from([("Ada", 3), ("Grace", 0)]));
    let (supervisor, driver) = embed::builder(loaded).tools(crm(tickets)).start()?;
    let driving = tokio::spawn(driver);

    // Two runs at once; what comes back of each is its result and never its transcript.
    let ada = supervisor.run(Work::new("Ada").servers(["crm"])).await?;
    let grace = supervisor.run(Work::new("Grace").servers(["crm"]).steps(10)).await?;
    for run in [ada, grace] {
        let result = run.result().await?;
        println!("{} {}: {}", run.handle(), result.status.name(), result.result);
    }

    // A conversation remembers; its turns are asked for one by one.
    let answer = supervisor.prompt("Who has the most open tickets?").await?;
    println!("the conversation {}: {}", answer.status.name(), answer.result);

    supervisor.shutdown().await;
    let ended = driving.await??;
    println!("{} processes left", ended.leaked);
    Ok(())
}

/// The tools that agents are granted by the name `crm`.
fn crm(tickets: Tickets) -> Tools {
    let schema = json!({
        "type": "object", "required": ["customer"], "additionalProperties": false,
        "properties": { "customer": { "type": "string" } },
    });
    Tools::new("crm").tool(
        "open_tickets",
        "How many open tickets a customer has.",
        schema,
        move |call: ToolCall| {
            let tickets = Arc::clone(&tickets);
            async move {
                let OpenTickets { customer } = call.parse()?;
                match tickets.get(customer.as_str()) {
                    Some(open) => Ok(json!({ "open": open })),
                    // The model reads this and can do better.
                    None => Err(format!("there is no customer {customer:?}; there are {:?}", tickets.keys())),
                }
            }
        },
    )
}
