//! A model call as an HTTP request, without the connection: what the dialects' requests have in common.

use crate::bytes::Json;
use crate::wire::message::Remote;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// A POST to be made.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// What the dialect appends to an endpoint's base address; see [`url`].
    pub path: String,
    /// Names in small letters, each once. They hold the credential.
    pub headers: Vec<(String, String)>,
    /// The JSON body.
    pub body: Vec<u8>,
}

impl std::fmt::Debug for HttpRequest {
    /// Without values of headers: one of them is the credential.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        write!(f, "POST {} {names:?} ({} bytes)", self.path, self.body.len())
    }
}

/// The address of `path` below an endpoint's base. A query stays behind the path.
pub fn url(base: &str, path: &str) -> String {
    let (base, query) = base.split_at(base.find(['?', '#']).unwrap_or(base.len()));
    format!("{}{path}{query}", base.trim_end_matches('/'))
}

/// The dialect's headers and, on top, those that the configuration adds: one of the same name takes its place.
pub(super) fn headers(remote: &Remote, own: &[(&str, String)]) -> Vec<(String, String)> {
    let common =
        [("content-type", "application/json".to_owned()), ("accept", "text/event-stream".to_owned())];
    let mut headers: Vec<(String, String)> = Vec::new();
    let configured = remote.headers.iter().map(|(name, value)| (name.as_str(), value));
    for (name, value) in common.iter().chain(own).map(|(name, value)| (*name, value)).chain(configured) {
        let name = name.to_ascii_lowercase();
        headers.retain(|(kept, _)| *kept != name);
        headers.push((name, value.clone()));
    }
    headers
}

/// JSON text as it stands, so that nothing of it changes on the way; `{}` where it is none.
pub(super) fn raw(json: &Json) -> Box<RawValue> {
    serde_json::from_slice(&json.0).unwrap_or_else(|_| empty())
}

/// A tool's schema as providers take it: an object's, with `type` and `properties` named.
pub(super) fn object_schema(schema: &Json) -> Box<RawValue> {
    match schema.parse() {
        Ok(Value::Object(map)) if map.get("type").is_some() && map.get("properties").is_some() => raw(schema),
        Ok(Value::Object(mut map)) => {
            map.entry("type").or_insert(json!("object"));
            map.entry("properties").or_insert(json!({}));
            to_raw_value(&map).unwrap_or_else(|_| empty())
        }
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) | Err(_) => {
            to_raw_value(&json!({"type": "object", "properties": {}})).unwrap_or_else(|_| empty())
        }
    }
}

fn empty() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_path_goes_before_the_query() {
        assert_eq!(url("https://a.example/v1", "/x"), "https://a.example/v1/x");
        assert_eq!(url("https://a.example/v1//", "/x"), "https://a.example/v1/x");
        assert_eq!(url("https://a.example/d?api-version=1", "/x"), "https://a.example/d/x?api-version=1");
    }

    #[test]
    fn a_configured_header_takes_the_place_of_the_dialects() {
        let remote = Remote {
            model: "m".into(),
            endpoints: Vec::new(),
            headers: BTreeMap::from([
                ("Authorization".to_owned(), "Basic eA==".to_owned()),
                ("X-Title".to_owned(), "t".to_owned()),
            ]),
            timeout_ms: 1,
            max_output: None,
        };
        let headers = headers(&remote, &[("authorization", "Bearer k".to_owned())]);
        let find = |name: &str| {
            let found: Vec<_> = headers.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_str()).collect();
            found
        };
        assert_eq!(find("authorization"), ["Basic eA=="]);
        assert_eq!(find("x-title"), ["t"]);
        assert_eq!(find("content-type"), ["application/json"]);
    }

    #[test]
    fn schemas_are_mended_only_where_they_must_be() {
        let of = |text: &str| object_schema(&Json(text.as_bytes().into())).get().to_owned();
        let whole = r#"{"type":"object", "properties":{"n":{"maximum":123456789012345678901234567890}}}"#;
        assert_eq!(of(whole), whole);
        assert_eq!(of("{}"), r#"{"properties":{},"type":"object"}"#);
        assert_eq!(of(r#"{"type":"object"}"#), r#"{"properties":{},"type":"object"}"#);
        for odd in ["", "null", "[]", "true", "{"] {
            assert_eq!(of(odd), r#"{"properties":{},"type":"object"}"#, "{odd}");
        }
    }
}
