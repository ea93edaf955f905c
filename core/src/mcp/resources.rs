//! A server's resources: what there is, over its pages and within bounds, and what a read resource says.
//!
//! Owns the `resource.read` tool that stands for them in the list of tools (S14.3). Refuses nothing of what it may read:
//! the server decides that. Called by the client.

use super::content;
use super::jsonrpc::{First, object};
use super::pages::{Next, Notes, Pages};
use super::preview::{one_line, preview};
use super::{Outcome, ResourceInfo, ToolInfo, Value};
use crate::bytes::Json;
use crate::limits;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The server's own name of the tool that reads a resource, as the registry takes it.
pub const READ_TOOL: &str = "resource.read";

/// Bytes of a name or a description that are kept.
const LABEL_BYTES: usize = 200;

/// The list so far: resources, then templates.
#[derive(Debug, Default)]
pub(super) struct Resources {
    found: Vec<ResourceInfo>,
    /// Of the list in hand, resources or templates.
    count: usize,
    pages: Pages,
    notes: Notes,
}

impl Resources {
    /// Takes one page of `resources/list`, or of `resources/templates/list`. An error means that it is none.
    pub(super) fn page(&mut self, template: bool, result: &RawValue) -> Result<Next, String> {
        let page: ListResult<'_> = object(result.get())
            .map_err(|e| format!("the list of resources is not usable ({e}): {}", preview(result.get())))?;
        let list = if template { page.resource_templates } else { page.resources };
        let mut left = list.more;
        for raw in list.items {
            if self.count >= limits::MCP_RESOURCES {
                left += 1;
                continue;
            }
            match entry(raw, template) {
                Ok(info) => {
                    self.count += 1;
                    self.found.push(info);
                }
                Err(why) => self.notes.add(|| format!("a resource is left out: {why}")),
            }
        }
        if left > 0 {
            let (kept, what) = (self.count, if template { "templates" } else { "resources" });
            self.notes.first(format!("the list of {what} is cut after {kept}"));
            return Ok(Next::Done);
        }
        Ok(self.pages.next(page.next_cursor, &mut self.notes))
    }

    /// The templates come next.
    pub(super) fn turn(&mut self) {
        self.count = 0;
        self.pages = Pages::default();
    }

    /// What was found, in the server's order, and what is to be said about it.
    pub(super) fn finish(self) -> (Vec<ResourceInfo>, Vec<String>) {
        (self.found, self.notes.finish())
    }
}

/// The tool that reads them.
pub(super) fn tool(resources: &[ResourceInfo]) -> ToolInfo {
    let mut description = "Reads one resource of this server by its URI. There are:".to_owned();
    for (shown, resource) in resources.iter().enumerate() {
        let mut line = format!("\n- {}", resource.uri);
        for more in [&resource.name, &resource.description] {
            if !more.is_empty() {
                line.push_str(": ");
                line.push_str(more);
            }
        }
        if resource.template {
            line.push_str(" (a template: fill in the parts in braces)");
        }
        if description.len() + line.len() > limits::MCP_RESOURCES_SHOWN_BYTES {
            description.push_str(&format!("\nand {} more that are not listed here", resources.len() - shown));
            break;
        }
        description.push_str(&line);
    }
    let schema = json!({
        "type": "object",
        "properties": {"uri": {"type": "string", "description": "The URI of the resource, whole"}},
        "required": ["uri"],
        "additionalProperties": false,
    });
    ToolInfo { name: READ_TOOL.to_owned(), description, schema: Json::of(&schema) }
}

/// What a `resources/read` result says: texts as they are, other content described by type and size.
pub(super) fn outcome(result: &RawValue) -> Outcome {
    let said: ReadResult<'_> = match object(result.get()) {
        Ok(said) => said,
        Err(e) => {
            let seen = preview(result.get());
            return Outcome::failed(format!("the server's answer is not a resource ({e}): {seen}"));
        }
    };
    let mut parts: Vec<String> = match said.contents.items.as_slice() {
        [] => vec!["[the resource is empty]".to_owned()],
        [one] => vec![content::resource_text(one)],
        many => many.iter().map(|raw| content::embedded(raw)).collect(),
    };
    if said.contents.more > 0 {
        parts.push(format!("[{} more parts were left out]", said.contents.more));
    }
    Outcome { error: false, own: false, value: Value::Text(parts.join("\n")) }
}

fn entry(raw: &RawValue, template: bool) -> Result<ResourceInfo, String> {
    let said: Entry<'_> = object(raw.get())
        .map_err(|e| format!("it is no object of that kind ({e}): {}", preview(raw.get())))?;
    let uri = if template { said.uri_template } else { said.uri };
    let uri = uri.map(Cow::into_owned).unwrap_or_default();
    if uri.is_empty() || uri.len() > limits::MCP_URI_BYTES || uri.chars().any(char::is_control) {
        return Err(format!("its address {:?} is none that can be used", preview(&uri)));
    }
    let label = |text: Option<&RawValue>| {
        let text = text.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        text.map(|text| one_line(&text, LABEL_BYTES)).unwrap_or_default()
    };
    Ok(ResourceInfo {
        uri,
        name: label(said.title.or(said.name)),
        description: label(said.description),
        template,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListResult<'a> {
    #[serde(default = "none", borrow)]
    resources: First<'a, { limits::MCP_RESOURCES }>,
    #[serde(default = "none", borrow)]
    resource_templates: First<'a, { limits::MCP_RESOURCES }>,
    #[serde(default, borrow)]
    next_cursor: Option<&'a RawValue>,
}

fn none<'a>() -> First<'a, { limits::MCP_RESOURCES }> {
    First::default()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(default, borrow)]
    uri: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    uri_template: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    name: Option<&'a RawValue>,
    #[serde(default, borrow)]
    title: Option<&'a RawValue>,
    #[serde(default, borrow)]
    description: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ReadResult<'a> {
    #[serde(borrow)]
    contents: First<'a, { limits::MCP_PARTS }>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(value: serde_json::Value) -> Box<RawValue> {
        RawValue::from_string(value.to_string()).unwrap()
    }

    #[test]
    fn lists_are_read_entry_by_entry() {
        let mut list = Resources::default();
        let page =
            raw(json!({"resources": [{"uri": "a://1", "name": "one"}, {"uri": ""}, 7, {"name": "no uri"}]}));
        assert_eq!(list.page(false, &page), Ok(Next::Done));
        list.turn();
        let page = raw(
            json!({"resourceTemplates": [{"uriTemplate": "a://{n}", "title": "T", "name": "t"}], "nextCursor": "x"}),
        );
        assert_eq!(list.page(true, &page), Ok(Next::Page("x".into())));
        assert_eq!(list.page(true, &page), Ok(Next::Done), "the same cursor again");
        let (found, notes) = list.finish();
        let seen: Vec<_> = found.iter().map(|r| (r.uri.as_str(), r.name.as_str(), r.template)).collect();
        assert_eq!(seen, [("a://1", "one", false), ("a://{n}", "T", true), ("a://{n}", "T", true)]);
        assert_eq!(notes.len(), 4, "{notes:?}");
        let mut many = Resources::default();
        let page = raw(
            json!({"resources": vec![json!({"uri": "a://1"}); limits::MCP_RESOURCES + 5], "nextCursor": "x"}),
        );
        assert_eq!(many.page(false, &page), Ok(Next::Done));
        let (found, notes) = many.finish();
        assert_eq!((found.len(), notes.len()), (limits::MCP_RESOURCES, 1));
        assert!(Resources::default().page(false, &raw(json!([]))).is_err());
    }

    #[test]
    fn the_tool_says_what_there_is_within_its_bound() {
        let info = |n: usize| ResourceInfo {
            uri: format!("a://{n}"),
            name: "x".repeat(100),
            description: String::new(),
            template: n == 0,
        };
        let all: Vec<_> = (0..500).map(info).collect();
        let tool = tool(&all);
        assert!(tool.description.len() < limits::MCP_RESOURCES_SHOWN_BYTES + 100);
        assert!(
            tool.description.contains("a://0: xxx") && tool.description.contains("more that are not listed")
        );
    }

    #[test]
    fn texts_are_shown_and_blobs_described() {
        let text = |contents: serde_json::Value| match outcome(&raw(json!({ "contents": contents }))).value {
            Value::Text(text) => text,
            Value::Json(json) => panic!("{json:?}"),
        };
        assert_eq!(text(json!([{"uri": "a://1", "text": "hello\n"}])), "hello\n");
        assert_eq!(
            text(json!([{"uri": "a://1", "mimeType": "image/png", "blob": "AAAA"}])),
            "[resource a://1, image/png, 3 bytes]"
        );
        let two = text(json!([{"uri": "a://1", "text": "x"}, {"uri": "a://2", "blob": "AAAA"}]));
        assert!(two.contains("[resource a://1") && two.contains("3 bytes]"), "{two}");
        assert_eq!(text(json!([])), "[the resource is empty]");
        assert!(outcome(&raw(json!({"contents": 7}))).error);
    }
}
