//! A tool's result as one value for the model: structured content when there is any, else the text parts with
//! every other part described by type and size. Reads what real servers send, not only what the schema allows.

use super::jsonrpc::{First, object};
use super::preview::{one_line, preview, words};
use super::{Outcome, Value};
use crate::bytes::{Bytes, Json};
use crate::limits;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// What a `tools/call` result says.
pub(super) fn outcome(tool: &str, result: &RawValue) -> Outcome {
    let said: CallResult<'_> = match object(result.get()) {
        Ok(said) => said,
        Err(e) => {
            return Outcome::failed(format!(
                "the server's answer to `{}` is not a tool result ({e}): {}",
                preview(tool),
                preview(result.get())
            ));
        }
    };
    let error = said.is_error.is_some_and(|raw| raw.get() == "true");
    let value = match said.structured_content {
        Some(raw) => structured(raw),
        None => Value::Text(said.content.map_or_else(String::new, text)),
    };
    Outcome { error, own: false, value }
}

/// Structured content as it was written. What a JSON parser would not take back stays text.
fn structured(raw: &RawValue) -> Value {
    match serde_json::from_str::<Parses>(raw.get()) {
        Ok(Parses) => Value::Json(Json(Bytes::from(raw.get().as_bytes()))),
        Err(_) => Value::Text(raw.get().to_owned()),
    }
}

/// `content` is a list of parts; a lone part or a bare string is taken for a list of one.
fn text(content: &RawValue) -> String {
    let First { items, more } = match serde_json::from_str::<First<'_, { limits::MCP_PARTS }>>(content.get())
    {
        Ok(parts) => parts,
        Err(_) => First { items: vec![content], more: 0 },
    };
    let mut parts: Vec<String> = items.into_iter().map(part).collect();
    if more > 0 {
        parts.push(format!("[{more} more parts were left out]"));
    }
    parts.join("\n")
}

fn part(raw: &RawValue) -> String {
    if let Ok(text) = serde_json::from_str::<String>(raw.get()) {
        return text;
    }
    let Ok(part) = object::<Part<'_>>(raw.get()) else {
        return format!("[a part that cannot be read: {}]", preview(raw.get()));
    };
    let mime = part.mime_type.as_deref().unwrap_or("no type given");
    match (part.kind.as_deref(), part.text, part.data, part.resource) {
        (Some("text"), Some(text), _, _) => text.into_owned(),
        (Some(kind @ ("image" | "audio")), _, Some(data), _) => {
            format!("[{kind}, {}, {} bytes]", preview(mime), decoded_len(&data))
        }
        (Some("resource_link"), ..) => link(&part.uri, &part.name, mime, part.size),
        (Some("resource"), _, _, Some(resource)) => embedded(resource),
        (Some(kind), ..) => format!("[a part of type {:?} that cannot be shown]", preview(kind)),
        (None, Some(text), ..) => text.into_owned(),
        (None, None, ..) => format!("[a part without a type: {}]", preview(raw.get())),
    }
}

fn link(
    uri: &Option<Cow<'_, str>>,
    name: &Option<Cow<'_, str>>,
    mime: &str,
    size: Option<&RawValue>,
) -> String {
    let shown = |text: &Option<Cow<'_, str>>| text.as_deref().map(preview).unwrap_or_default();
    let size = size.map(|s| format!(", {} bytes", words(s, 24))).unwrap_or_default();
    format!("[link to a resource: {} {}, {}{size}]", shown(name), shown(uri), preview(mime))
}

/// The contents of a resource that was asked for by its address: its text alone, or a description.
pub(super) fn resource_text(raw: &RawValue) -> String {
    match object::<Resource<'_>>(raw.get()) {
        Ok(Resource { text: Some(text), .. }) => text.into_owned(),
        Ok(_) | Err(_) => embedded(raw),
    }
}

/// The contents of one resource among other things.
pub(super) fn embedded(raw: &RawValue) -> String {
    let Ok(resource) = object::<Resource<'_>>(raw.get()) else {
        return format!("[a resource that cannot be read: {}]", preview(raw.get()));
    };
    let uri = resource.uri.as_deref().map(preview).unwrap_or_default();
    let mime = one_line(resource.mime_type.as_deref().unwrap_or("no type given"), limits::PREVIEW_BYTES);
    match (resource.text, resource.blob) {
        (Some(text), _) => format!("[resource {uri}, {mime}]\n{text}"),
        (None, Some(blob)) => format!("[resource {uri}, {mime}, {} bytes]", decoded_len(&blob)),
        (None, None) => format!("[resource {uri}, {mime}, empty]"),
    }
}

/// Bytes that base64 text stands for.
fn decoded_len(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    #[serde(default, borrow)]
    content: Option<&'a RawValue>,
    #[serde(default, borrow)]
    structured_content: Option<&'a RawValue>,
    #[serde(default, borrow)]
    is_error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(default, borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    data: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    mime_type: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    uri: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    size: Option<&'a RawValue>,
    #[serde(default, borrow)]
    resource: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource<'a> {
    #[serde(default, borrow)]
    uri: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    mime_type: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    blob: Option<Cow<'a, str>>,
}

/// Goes through a whole JSON text as a parser that builds a tree would, with its bounds, and keeps nothing: raw
/// text may hold numbers, escapes and nesting that such a parser refuses.
struct Parses;

impl<'de> Deserialize<'de> for Parses {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Parses, D::Error> {
        d.deserialize_any(Parses)
    }
}

impl<'de> Visitor<'de> for Parses {
    type Value = Parses;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E: de::Error>(self) -> Result<Parses, E> {
        Ok(self)
    }
    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Parses, E> {
        Ok(self)
    }
    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Parses, E> {
        Ok(self)
    }
    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Parses, E> {
        Ok(self)
    }
    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Parses, E> {
        Ok(self)
    }
    fn visit_str<E: de::Error>(self, _: &str) -> Result<Parses, E> {
        Ok(self)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Parses, A::Error> {
        while seq.next_element::<Parses>()?.is_some() {}
        Ok(self)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parses, A::Error> {
        while map.next_entry::<Cow<'_, str>, Parses>()?.is_some() {}
        Ok(self)
    }
}

#[cfg(test)]
mod tests;
