//! Questions of a server to a person, and the answers that fit them (SEP-1034, SEP-1330).
//!
//! Owns what a form's answer must look like before it goes out: only fields that were asked for, defaults where a field
//! was left out. Refuses an answer that the server's own form does not allow. Called by whoever answers for a person.

use super::jsonrpc::object;
use super::preview::{one_line, words};
use crate::bytes::{Bytes, Json};
use crate::limits;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// A question of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elicitation {
    /// What it asks, in its own words.
    pub message: String,
    /// How it wants the answer.
    pub form: Form,
}

/// How a question is to be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// With the fields of this schema: a flat object's.
    Fields(Json),
    /// At this address, outside the protocol. Not offered to servers, so only one that does not listen asks so.
    Address(String),
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// With this content, as [`content`] made it.
    Accept(Json),
    /// The person, or whoever answers for them, does not want to.
    Decline,
    /// Nobody decided.
    Cancel,
}

impl Reply {
    /// As an `ElicitResult`.
    pub(super) fn result(&self) -> Value {
        match self {
            Reply::Accept(content) => {
                json!({"action": "accept", "content": content.parse().unwrap_or_else(|_| json!({}))})
            }
            Reply::Decline => json!({"action": "decline"}),
            Reply::Cancel => json!({"action": "cancel"}),
        }
    }
}

/// Reads the parameters of an `elicitation/create`; `None` when they are none, or longer than a question may be.
pub(super) fn read(params: Option<&RawValue>) -> Option<Elicitation> {
    let raw = params.filter(|raw| raw.get().len() <= limits::MCP_ELICITATION_BYTES)?;
    let said: Params<'_> = object(raw.get()).ok()?;
    let message = said.message.map(|raw| words(raw, limits::MCP_ERROR_BYTES)).unwrap_or_default();
    let form = match (said.requested_schema, said.url) {
        (Some(schema), _) => Form::Fields(Json(Bytes::from(schema.get().as_bytes()))),
        (None, Some(url)) => Form::Address(words(url, limits::PREVIEW_BYTES)),
        (None, None) => return None,
    };
    Some(Elicitation { message, form })
}

/// The content of an answer: the fields that are `given`, and the schema's defaults for those left out.
///
/// # Errors
/// A field that was not asked for, one that has to be there and is not, or a value of another kind: a sentence.
pub fn content(schema: &Json, given: &Map<String, Value>) -> Result<Json, String> {
    let schema = schema.parse().map_err(|e| format!("the server's form cannot be read: {e}"))?;
    let nothing = Map::new();
    let fields = schema.get("properties").and_then(Value::as_object).unwrap_or(&nothing);
    if let Some(stranger) = given.keys().find(|key| !fields.contains_key(*key)) {
        let asked: Vec<&str> = fields.keys().map(String::as_str).collect();
        return Err(format!("the form has no field {stranger:?}; its fields are {}", asked.join(", ")));
    }
    let mut content = Map::new();
    for (name, field) in fields {
        match given.get(name).or_else(|| field.get("default")) {
            Some(value) if fits(field, value) => {
                content.insert(name.clone(), value.clone());
            }
            Some(value) => {
                let (field, value) = (one_line(&field.to_string(), 200), one_line(&value.to_string(), 80));
                return Err(format!("the field {name:?} takes {field}, not {value}"));
            }
            None => {}
        }
    }
    let required = schema.get("required").and_then(Value::as_array);
    let missing =
        required.into_iter().flatten().filter_map(Value::as_str).find(|name| !content.contains_key(*name));
    match missing {
        Some(name) => Err(format!("the field {name:?} has to be there and has no default")),
        None => Ok(Json::of(&Value::Object(content))),
    }
}

/// Whether a value is of a field's kind and, where it has a choice, one of the choices.
fn fits(field: &Value, value: &Value) -> bool {
    let kind = match field.get("type").and_then(Value::as_str) {
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
        Some("number") => value.is_number(),
        Some("array") => value.as_array().is_some_and(|items| {
            items.iter().all(|item| item.is_string() && field.get("items").is_none_or(|of| chosen(of, item)))
        }),
        Some(_) | None => value.is_string(),
    };
    kind && chosen(field, value)
}

/// `enum`, and the titled forms `oneOf` and `anyOf` of `const`.
fn chosen(field: &Value, value: &Value) -> bool {
    let plain = field.get("enum").and_then(Value::as_array);
    let titled = field.get("oneOf").or_else(|| field.get("anyOf")).and_then(Value::as_array);
    plain.is_none_or(|choices| choices.contains(value))
        && titled.is_none_or(|choices| choices.iter().any(|choice| choice.get("const") == Some(value)))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    #[serde(default, borrow)]
    message: Option<&'a RawValue>,
    #[serde(default, borrow)]
    requested_schema: Option<&'a RawValue>,
    #[serde(default, borrow)]
    url: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> Json {
        Json::of(&json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"},
            "size": {"type": "integer", "default": 3},
            "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "tags": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
            "on": {"type": "boolean", "default": true},
            "share": {"type": "number", "default": 0.5},
        }}))
    }

    fn answer(given: Value) -> Result<Value, String> {
        content(&form(), given.as_object().unwrap()).map(|json| json.parse().unwrap())
    }

    #[test]
    fn fields_left_out_take_their_defaults() {
        let whole = json!({"name": "n", "size": 3, "color": "red", "on": true, "share": 0.5});
        assert_eq!(answer(json!({"name": "n"})), Ok(whole));
        let said = answer(json!({"name": "n", "color": "blue", "tags": ["a"], "on": false})).unwrap();
        assert_eq!(
            (&said["color"], &said["tags"], &said["on"]),
            (&json!("blue"), &json!(["a"]), &json!(false))
        );
    }

    #[test]
    fn answers_that_the_form_does_not_allow_say_why() {
        for (given, says) in [
            (json!({}), "\"name\" has to be there"),
            (json!({"name": 7}), "\"name\" takes"),
            (json!({"name": "n", "other": 1}), "no field \"other\""),
            (json!({"name": "n", "color": "green"}), "\"color\" takes"),
            (json!({"name": "n", "size": 1.5}), "\"size\" takes"),
            (json!({"name": "n", "tags": ["b"]}), "\"tags\" takes"),
        ] {
            let error = answer(given.clone()).unwrap_err();
            assert!(error.contains(says), "{given}: {error}");
        }
    }

    #[test]
    fn questions_are_read_within_their_bounds() {
        let read = |text: &str| read(Some(&RawValue::from_string(text.to_owned()).unwrap()));
        let asked = read(r#"{"mode":"form","message":"who?","requestedSchema":{"type":"object"}}"#).unwrap();
        assert_eq!((asked.message.as_str(), matches!(asked.form, Form::Fields(_))), ("who?", true));
        assert!(matches!(
            read(r#"{"mode":"url","message":"","url":"https://a"}"#).unwrap().form,
            Form::Address(_)
        ));
        for none in ["{}", "[]", "7", r#"{"message":"x"}"#] {
            assert_eq!(read(none), None, "{none}");
        }
        let long = format!(r#"{{"requestedSchema":"{}"}}"#, "x".repeat(limits::MCP_ELICITATION_BYTES));
        assert_eq!(read(&long), None);
    }
}
