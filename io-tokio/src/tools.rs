//! Tools of the embedding program: async closures that agents call, granted like the tools of a server.
//!
//! Owns the registration and one task for each call. A call that the supervisor takes back is dropped where it stands;
//! one that panics is an error answer, and the program goes on. Refuses names that no grant could spell. Called by the
//! program at start, and by the driver.

use crate::error::BuildError;
use agentd_core::action::HostCall;
use agentd_core::bytes::Json;
use agentd_core::config::HostServer;
use agentd_core::event::Event;
use agentd_core::id::Handle;
use agentd_core::limits;
use agentd_core::policy::Pattern;
use agentd_core::wire::message::{Server, ToolDecl};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::task::{AbortHandle, Id, JoinSet};

/// Bytes of an answer at most; a larger one is an error answer that says so.
const ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// Names under which the supervisor's own tools are.
const OWN_NAMESPACES: [&str; 2] = ["subagent", "plan"];

type Answer = Result<Value, String>;
type Closure = Arc<dyn Fn(ToolCall) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

/// Tools under one name, by which they are granted: `servers: [crm]` in a call of `subagent.run`. Agents know each as
/// `<name>.<tool>`.
///
/// ```
/// use agentd_io_tokio::{ToolCall, Tools};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize)]
/// struct Find { name: String }
///
/// let schema = json!({
///     "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } },
/// });
/// let crm = Tools::new("crm").tool("find_customer", "The customer of this name.", schema, |call: ToolCall| async move {
///     let Find { name } = call.parse()?;
///     Ok(json!({ "name": name, "open_tickets": 3 }))
/// });
/// ```
pub struct Tools {
    server: String,
    tools: Vec<(ToolDecl, Closure)>,
    /// Schemas that are none, by tool.
    faults: Vec<(String, String)>,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolCall {
    /// The tool's name.
    pub tool: String,
    /// The run that calls; `None` is the conversation.
    pub handle: Option<Handle>,
    /// What it gave. A model wrote it: whether it fits the schema is for the tool to say.
    pub args: Map<String, Value>,
}

impl ToolCall {
    /// The arguments as a type.
    ///
    /// # Errors
    /// They do not fit, in words for the model that wrote them.
    pub fn parse<T: DeserializeOwned>(self) -> Result<T, String> {
        T::deserialize(Value::Object(self.args)).map_err(|error| format!("the arguments do not fit: {error}"))
    }
}

impl Tools {
    /// No tools yet, under this name.
    pub fn new(server: impl Into<String>) -> Tools {
        Tools { server: server.into(), tools: Vec::new(), faults: Vec::new() }
    }

    /// Adds a tool: its name, what the model is told of it, the JSON Schema of its arguments (an object), and what
    /// answers a call. An `Err` is an answer too: the model reads it and can try again.
    ///
    /// Calls run as tasks of their own, in parallel. When a call is not wanted any more (its run was killed, its time
    /// is up), the closure's future is dropped. One that never yields holds up whatever shares its thread: give
    /// blocking work to `tokio::task::spawn_blocking`.
    #[must_use]
    pub fn tool<F, Fut>(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        schema: Value,
        answer: F,
    ) -> Tools
    where
        F: Fn(ToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, String>> + Send + 'static,
    {
        let decl = ToolDecl { name: name.into(), description: description.into(), schema: Json::of(&schema) };
        if !schema.is_object() {
            let fault =
                "its schema is no JSON object; accepted is a JSON Schema such as {\"type\": \"object\"}";
            self.faults.push((decl.name.clone(), fault.to_owned()));
        }
        let answer = Arc::new(answer);
        let closure: Closure = Arc::new(move |call| {
            let answer = Arc::clone(&answer);
            // In the future, so that a closure that panics before it gives one is caught like any other.
            Box::pin(async move { answer(call).await })
        });
        self.tools.push((decl, closure));
        self
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.tools.iter().map(|(decl, _)| decl.name.as_str()).collect();
        f.debug_struct("Tools").field("server", &self.server).field("tools", &names).finish_non_exhaustive()
    }
}

/// All tools of the program, and the calls in hand.
#[derive(Default)]
pub(crate) struct Toolbox {
    tools: BTreeMap<(String, String), Closure>,
    running: JoinSet<Answer>,
    /// What each task answers, and under which name.
    calls: BTreeMap<u64, AbortHandle>,
    tasks: BTreeMap<Id, (u64, String)>,
}

impl Toolbox {
    /// The tools, and how the core is told of them.
    ///
    /// # Errors
    /// The first that cannot be offered beside these servers.
    pub(crate) fn new(all: Vec<Tools>, beside: &[Server]) -> Result<(Toolbox, Vec<HostServer>), BuildError> {
        let mut toolbox = Toolbox::default();
        let mut groups: Vec<HostServer> = Vec::new();
        let mut names = BTreeSet::new();
        for Tools { server, tools, faults } in all {
            check_group(&server, beside, &groups)?;
            if let Some((tool, why)) = faults.first() {
                return Err(fault(&format!("{server}.{tool}"), why));
            }
            let mut decls = Vec::new();
            for (decl, closure) in tools {
                let name = format!("{server}.{}", decl.name);
                check_tool(&name, &decl)?;
                // `a` has `b.c` under the name that `c` of `a.b` has.
                if !names.insert(name.clone()) {
                    return Err(fault(&name, "it is registered twice"));
                }
                toolbox.tools.insert((server.clone(), decl.name.clone()), closure);
                decls.push(decl);
            }
            groups.push(HostServer { name: server, tools: decls });
        }
        Ok((toolbox, groups))
    }

    /// Begins a call; its answer comes from [`Toolbox::poll_answer`].
    pub(crate) fn call(&mut self, call: HostCall) {
        let HostCall { call, handle, server, tool, args, .. } = call;
        let shown = tool.clone();
        let closure = self.tools.get(&(server, tool.clone())).map(Arc::clone);
        let task = self.running.spawn(async move {
            let closure = closure.ok_or("this program has no such tool any more")?;
            let Ok(Value::Object(args)) = args.parse() else {
                return Err("accepted is a JSON object".into());
            };
            closure(ToolCall { tool, handle, args }).await
        });
        self.tasks.insert(task.id(), (call, shown));
        self.calls.insert(call, task);
    }

    /// Drops a call where it stands. It has no answer.
    pub(crate) fn cancel(&mut self, call: u64) {
        if let Some(task) = self.calls.remove(&call) {
            self.tasks.remove(&task.id());
            task.abort();
        }
    }

    /// The next answer; pending too while no call is in hand.
    pub(crate) fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        loop {
            let (id, answer) = match self.running.poll_join_next_with_id(context) {
                Poll::Pending | Poll::Ready(None) => return Poll::Pending,
                Poll::Ready(Some(Ok((id, answer)))) => (id, Some(answer)),
                Poll::Ready(Some(Err(ended))) => (ended.id(), None),
            };
            // A call that was cancelled is known no more.
            let Some((call, tool)) = self.tasks.remove(&id) else { continue };
            self.calls.remove(&call);
            return Poll::Ready(answered(call, &tool, answer));
        }
    }
}

/// `None`: the task panicked.
fn answered(call: u64, tool: &str, answer: Option<Answer>) -> Event {
    let answer = answer.unwrap_or_else(|| {
        Err(format!(
            "{tool} broke off inside the program that offers it (a panic); it may work with other arguments"
        ))
    });
    let (error, value) = match answer {
        Ok(value) => (false, Json::of(&value)),
        Err(said) => (true, Json::of(&Value::String(said))),
    };
    let bytes = value.0.len();
    if bytes <= ANSWER_BYTES {
        return Event::HostToolAnswered { call, error, value };
    }
    let said = format!("{tool} gave {bytes} bytes, at most {ANSWER_BYTES} are accepted; ask it for less");
    Event::HostToolAnswered { call, error: true, value: Json::of(&Value::String(said)) }
}

fn check_group(name: &str, beside: &[Server], groups: &[HostServer]) -> Result<(), BuildError> {
    check_name(name, name)?;
    if OWN_NAMESPACES.contains(&name) {
        return Err(fault(name, "the supervisor's own tools have this name; accepted is any other"));
    }
    let taken = |server: &Server| server.name == name || server.ns.as_deref() == Some(name);
    if beside.iter().any(taken) || groups.iter().any(|group| group.name == name) {
        return Err(fault(
            name,
            "a server, or its tools, have this name already; give each a name of its own",
        ));
    }
    Ok(())
}

fn check_tool(name: &str, decl: &ToolDecl) -> Result<(), BuildError> {
    check_name(name, &decl.name)?;
    check_name(name, name)?;
    for (what, seen, most) in [
        ("description", decl.description.len(), limits::MCP_DESCRIPTION_BYTES),
        ("schema", decl.schema.0.len(), limits::MCP_SCHEMA_BYTES),
    ] {
        if seen > most {
            return Err(fault(name, &format!("its {what} has {seen} bytes, at most {most} are accepted")));
        }
    }
    Ok(())
}

/// `shown` is what an error calls it.
fn check_name(shown: &str, name: &str) -> Result<(), BuildError> {
    match Pattern::parse(name) {
        Ok(pattern) if pattern.is_exact() => Ok(()),
        Ok(_) | Err(_) => Err(fault(
            shown,
            "its name cannot be granted; accepted are 1 to 256 characters without white space, control characters \
             and `*`",
        )),
    }
}

fn fault(tool: &str, fault: &str) -> BuildError {
    BuildError::Tool { tool: tool.to_owned(), fault: fault.to_owned() }
}

#[cfg(test)]
mod tests;
