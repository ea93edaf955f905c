//! A server's tool list, gathered over its pages within bounds. A tool that a grant could not spell or a model
//! could not be shown is left out and said so; nothing here fails for one bad entry among good ones.

use super::ToolInfo;
use super::headers::{self, Mirror};
use super::jsonrpc::{First, object};
use super::pages::{Next, Notes, Pages};
use super::preview::{head, preview};
use crate::bytes::{Bytes, Json};
use crate::limits;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The list so far.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    tools: Vec<ToolInfo>,
    traits: BTreeMap<String, Traits>,
    pages: Pages,
    bytes: usize,
    notes: Notes,
    /// Calls go over HTTP in the stateless era: the schemas' header marks count.
    marks: bool,
}

/// What calls of a tool need to know of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Traits {
    /// The server says that making a call twice does no harm.
    pub(super) repeatable: bool,
    /// Arguments that go out as headers too.
    pub(super) mirrors: Vec<Mirror>,
}

impl Catalogue {
    /// An empty list; `marks` says whether header marks in schemas count.
    pub(super) fn new(marks: bool) -> Catalogue {
        Catalogue { marks, ..Catalogue::default() }
    }

    /// Takes one page. An error means the answer is no tool list at all.
    pub(super) fn page(&mut self, result: &RawValue) -> Result<Next, String> {
        let page: ListResult<'_> = object(result.get()).map_err(|e| {
            format!("the server's answer to `tools/list` is not usable ({e}): {}", preview(result.get()))
        })?;
        let mut left = page.tools.more;
        for raw in page.tools.items {
            if self.is_full() {
                left += 1;
            } else {
                self.tool(raw);
            }
        }
        match self.pages.next(page.next_cursor, &mut self.notes) {
            Next::Page(cursor) if left == 0 && !self.is_full() => Ok(Next::Page(cursor)),
            Next::Done if left == 0 => Ok(Next::Done),
            Next::Page(_) | Next::Done => {
                let (tools, bytes) = (self.tools.len(), self.bytes);
                self.notes.first(format!("the list is cut after {tools} tools of {bytes} bytes in all"));
                Ok(Next::Done)
            }
        }
    }

    /// The tools in the server's order, what calls need to know of each, and what is to be said about them.
    pub(super) fn finish(self) -> (Vec<ToolInfo>, BTreeMap<String, Traits>, Vec<String>) {
        (self.tools, self.traits, self.notes.finish())
    }

    fn is_full(&self) -> bool {
        self.tools.len() >= limits::MCP_TOOLS || self.bytes >= limits::MCP_TOOL_BYTES
    }

    fn tool(&mut self, raw: &RawValue) {
        match read_tool(raw, self.marks) {
            Ok(read) if self.traits.contains_key(&read.info.name) => {
                self.notes.add(|| format!("a second tool named {:?} is left out", preview(&read.info.name)));
            }
            Ok(Read { info, traits, repair }) => {
                if let Some(repair) = repair {
                    self.notes.add(|| format!("tool {:?}: {repair}", preview(&info.name)));
                }
                self.bytes += info.name.len() + info.description.len() + info.schema.0.len();
                self.traits.insert(info.name.clone(), traits);
                self.tools.push(info);
            }
            Err(why) => self.notes.add(|| format!("a tool is left out: {why}")),
        }
    }
}

/// One entry of the list.
struct Read {
    info: ToolInfo,
    traits: Traits,
    repair: Option<&'static str>,
}

fn read_tool(raw: &RawValue, marks: bool) -> Result<Read, String> {
    let said: Tool<'_> =
        object(raw.get()).map_err(|e| format!("it is no tool object ({e}): {}", preview(raw.get())))?;
    let name = said.name.map(Cow::into_owned).unwrap_or_default();
    if name.is_empty() || name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(format!(
            "its name {:?} is empty or has white space or control characters",
            preview(&name)
        ));
    }
    if name.chars().nth(limits::MCP_TOOL_NAME_CHARS).is_some() {
        return Err(format!(
            "its name {:?} is over {} characters",
            preview(&name),
            limits::MCP_TOOL_NAME_CHARS
        ));
    }
    let (schema, repair) = schema(said.input_schema).map_err(|why| format!("{:?}: {why}", preview(&name)))?;
    let mirrors = match schema.parse() {
        Ok(schema) if marks => {
            headers::mirrors(&schema).map_err(|why| format!("{:?}: its inputSchema {why}", preview(&name)))?
        }
        Ok(_) | Err(_) => Vec::new(),
    };
    let hints = said.annotations.and_then(|raw| object::<Hints<'_>>(raw.get()).ok());
    let is_true = |hint: Option<&RawValue>| hint.is_some_and(|raw| raw.get() == "true");
    let repeatable = hints.is_some_and(|hints| is_true(hints.read_only) || is_true(hints.idempotent));
    let description =
        said.description.or(said.title).and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    let info = ToolInfo { name, description: description.map(bounded).unwrap_or_default(), schema };
    Ok(Read { info, traits: Traits { repeatable, mirrors }, repair })
}

/// Providers take only an object schema of type `object`. One that lacks the type gets it, one that is
/// something else is replaced by the schema that allows any object: the server still checks its arguments.
fn schema(raw: Option<&RawValue>) -> Result<(Json, Option<&'static str>), String> {
    let any = || Json::of(&serde_json::json!({"type": "object"}));
    let Some(raw) = raw else {
        return Ok((any(), Some("it has no inputSchema; any object is taken for its arguments")));
    };
    if raw.get().len() > limits::MCP_SCHEMA_BYTES {
        return Err(format!("its inputSchema is over {} bytes", limits::MCP_SCHEMA_BYTES));
    }
    match serde_json::from_str::<serde_json::Value>(raw.get()) {
        Ok(serde_json::Value::Object(mut schema)) => match schema.get("type") {
            Some(kind) if kind == "object" => Ok((Json(Bytes::from(raw.get().as_bytes())), None)),
            None => {
                schema.insert("type".into(), "object".into());
                Ok((Json::of(&schema.into()), Some("its inputSchema has no type; it got type object")))
            }
            Some(_) => Ok((any(), Some("its inputSchema is not of type object; any object is taken"))),
        },
        Ok(_) => Ok((any(), Some("its inputSchema is no JSON object; any object is taken"))),
        Err(e) => Err(format!("its inputSchema cannot be read ({e})")),
    }
}

fn bounded(text: String) -> String {
    let kept = head(&text, limits::MCP_DESCRIPTION_BYTES);
    if kept.len() == text.len() { text } else { format!("{kept}… [cut]") }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListResult<'a> {
    #[serde(borrow)]
    tools: First<'a, { limits::MCP_TOOLS }>,
    #[serde(default, borrow)]
    next_cursor: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool<'a> {
    #[serde(default, borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    title: Option<&'a RawValue>,
    #[serde(default, borrow)]
    description: Option<&'a RawValue>,
    #[serde(default, borrow)]
    input_schema: Option<&'a RawValue>,
    #[serde(default, borrow)]
    annotations: Option<&'a RawValue>,
}

/// Hints, as the protocol says: they decide only whether a call whose answer was lost is made once more.
#[derive(Deserialize)]
struct Hints<'a> {
    #[serde(default, borrow, rename = "readOnlyHint")]
    read_only: Option<&'a RawValue>,
    #[serde(default, borrow, rename = "idempotentHint")]
    idempotent: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests;
