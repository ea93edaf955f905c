//! A server's tool list, gathered over its pages within bounds. A tool that a grant could not spell or a model
//! could not be shown is left out and said so; nothing here fails for one bad entry among good ones.

use super::ToolInfo;
use super::jsonrpc::{First, object};
use super::preview::{head, preview, words};
use crate::bytes::{Bytes, Json};
use crate::limits;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// What to do after a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Ask for the page with this cursor.
    Page(String),
    /// The list is whole, or as whole as it gets.
    Done,
}

/// The list so far.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    tools: Vec<ToolInfo>,
    names: BTreeSet<String>,
    cursors: BTreeSet<String>,
    pages: usize,
    bytes: usize,
    notes: Notes,
}

/// What was left out or repaired: the first few in words, then a count.
#[derive(Debug, Default)]
struct Notes {
    told: Vec<String>,
    more: u64,
}

impl Catalogue {
    /// Takes one page. An error means the answer is no tool list at all.
    pub(super) fn page(&mut self, result: &RawValue) -> Result<Next, String> {
        let page: ListResult<'_> = object(result.get()).map_err(|e| {
            format!("the server's answer to `tools/list` is not usable ({e}): {}", preview(result.get()))
        })?;
        self.pages += 1;
        let mut left = page.tools.more;
        for raw in page.tools.items {
            if self.is_full() {
                left += 1;
            } else {
                self.tool(raw);
            }
        }
        match self.next(page.next_cursor) {
            Next::Page(cursor) if left == 0 && !self.is_full() => Ok(Next::Page(cursor)),
            Next::Done if left == 0 => Ok(Next::Done),
            Next::Page(_) | Next::Done => {
                let (tools, bytes) = (self.tools.len(), self.bytes);
                self.notes
                    .told
                    .insert(0, format!("the list is cut after {tools} tools of {bytes} bytes in all"));
                Ok(Next::Done)
            }
        }
    }

    /// The tools in the server's order, and what is to be said about them.
    pub(super) fn finish(self) -> (Vec<ToolInfo>, Vec<String>) {
        let mut notes = self.notes.told;
        if self.notes.more > 0 {
            notes.push(format!("{} more such entries", self.notes.more));
        }
        (self.tools, notes)
    }

    fn is_full(&self) -> bool {
        self.tools.len() >= limits::MCP_TOOLS || self.bytes >= limits::MCP_TOOL_BYTES
    }

    fn tool(&mut self, raw: &RawValue) {
        match read_tool(raw) {
            Ok((tool, _)) if self.names.contains(&tool.name) => {
                self.notes.add(|| format!("a second tool named {:?} is left out", preview(&tool.name)));
            }
            Ok((tool, repair)) => {
                if let Some(repair) = repair {
                    self.notes.add(|| format!("tool {:?}: {repair}", preview(&tool.name)));
                }
                self.bytes += tool.name.len() + tool.description.len() + tool.schema.0.len();
                self.names.insert(tool.name.clone());
                self.tools.push(tool);
            }
            Err(why) => self.notes.add(|| format!("a tool is left out: {why}")),
        }
    }

    fn next(&mut self, cursor: Option<&RawValue>) -> Next {
        let Some(raw) = cursor else { return Next::Done };
        let cursor = match serde_json::from_str::<String>(raw.get()) {
            Ok(cursor) if cursor.is_empty() => return Next::Done,
            Ok(cursor) if cursor.len() <= limits::MCP_CURSOR_BYTES => cursor,
            Ok(_) | Err(_) => {
                self.notes
                    .add(|| format!("the list ends at a cursor that is no short text: {}", words(raw, 80)));
                return Next::Done;
            }
        };
        if self.pages >= limits::MCP_TOOL_PAGES {
            self.notes.add(|| format!("the list is cut after {} pages", limits::MCP_TOOL_PAGES));
            return Next::Done;
        }
        if !self.cursors.insert(cursor.clone()) {
            self.notes.add(|| format!("the list ends at a cursor that came before: {:?}", preview(&cursor)));
            return Next::Done;
        }
        Next::Page(cursor)
    }
}

impl Notes {
    fn add(&mut self, text: impl FnOnce() -> String) {
        const TOLD: usize = 8;
        if self.told.len() < TOLD {
            self.told.push(text());
        } else {
            self.more += 1;
        }
    }
}

fn read_tool(raw: &RawValue) -> Result<(ToolInfo, Option<&'static str>), String> {
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
    let description =
        said.description.or(said.title).and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    Ok((ToolInfo { name, description: description.map(bounded).unwrap_or_default(), schema }, repair))
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
}

#[cfg(test)]
mod tests;
