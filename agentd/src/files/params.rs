//! Tool parameters. One table gives the schema a model is shown and the checks its arguments pass, so the two
//! cannot differ; what is not in the table is refused by name.

use super::report::Failure;
use serde_json::{Map, Value, json};

/// One parameter of a tool.
#[derive(Debug)]
pub(super) struct Param {
    /// Its key.
    pub(super) name: &'static str,
    /// What it takes.
    pub(super) takes: Takes,
    /// For the model.
    pub(super) says: &'static str,
}

/// What a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// Text that must be given.
    Text,
    /// Text, with this when it is not given.
    TextOr(&'static str),
    /// Text that may be left out.
    MaybeText,
    /// `true` or `false`; `false` when it is not given.
    Flag,
    /// A whole number: default, least, most.
    Count(u64, u64, u64),
}

/// Checked arguments of one call.
#[derive(Debug)]
pub(super) struct Args {
    params: &'static [Param],
    given: Map<String, Value>,
}

/// The JSON Schema of `params`.
pub(super) fn schema(params: &[Param]) -> Value {
    let properties: Map<String, Value> = params.iter().map(|p| (p.name.to_owned(), property(p))).collect();
    let required: Vec<&str> = params.iter().filter(|p| p.takes == Takes::Text).map(|p| p.name).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn property(param: &Param) -> Value {
    let description = param.says;
    match param.takes {
        Takes::Text | Takes::MaybeText => json!({"type": "string", "description": description}),
        Takes::TextOr(default) => json!({"type": "string", "description": description, "default": default}),
        Takes::Flag => json!({"type": "boolean", "description": description, "default": false}),
        Takes::Count(default, least, most) => json!({
            "type": "integer", "description": description, "default": default, "minimum": least, "maximum": most,
        }),
    }
}

impl Args {
    /// Checks `given` against `params`: every problem is told at once.
    pub(super) fn check(params: &'static [Param], given: Option<&Value>) -> Result<Args, Failure> {
        let given = match given {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(map)) => map.clone(),
            Some(other) => {
                return Err(Failure::new(format!("arguments must be an object, not {}", kind(other))));
            }
        };
        let mut wrong = Vec::new();
        for key in given.keys().filter(|key| params.iter().all(|p| p.name != key.as_str())) {
            let shown: String = key.chars().take(64).collect();
            wrong.push(format!("{shown:?} is not a parameter"));
        }
        for param in params {
            let value = given.get(param.name).filter(|v| !v.is_null());
            wrong.extend(complaint(param, value));
        }
        if wrong.is_empty() {
            return Ok(Args { params, given });
        }
        let accepted: Vec<String> = params.iter().map(accepted).collect();
        Err(Failure::new(format!("{}. Accepted: {}", wrong.join("; "), accepted.join(", "))))
    }

    /// The text of a parameter, or its default, or nothing.
    pub(super) fn text(&self, name: &str) -> &str {
        let default = match self.takes(name) {
            Some(Takes::TextOr(default)) => default,
            Some(Takes::Text | Takes::MaybeText | Takes::Flag | Takes::Count(..)) | None => "",
        };
        self.maybe_text(name).unwrap_or(default)
    }

    /// The text of a parameter that may be left out.
    pub(super) fn maybe_text(&self, name: &str) -> Option<&str> {
        self.given.get(name).and_then(Value::as_str)
    }

    /// The number of a parameter, or its default.
    pub(super) fn count(&self, name: &str) -> u64 {
        let default = match self.takes(name) {
            Some(Takes::Count(default, ..)) => default,
            Some(Takes::Text | Takes::TextOr(_) | Takes::MaybeText | Takes::Flag) | None => 0,
        };
        self.given.get(name).and_then(whole).unwrap_or(default)
    }

    /// Whether a flag is set.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.given.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    fn takes(&self, name: &str) -> Option<Takes> {
        self.params.iter().find(|p| p.name == name).map(|p| p.takes)
    }
}

fn complaint(param: &Param, value: Option<&Value>) -> Option<String> {
    let name = param.name;
    let expected = match (param.takes, value) {
        (Takes::Text, None) => return Some(format!("{name:?} is missing")),
        (_, None) => return None,
        (Takes::Text | Takes::TextOr(_) | Takes::MaybeText, Some(v)) => {
            (!v.is_string()).then(|| "a string".to_owned())
        }
        (Takes::Flag, Some(v)) => (!v.is_boolean()).then(|| "true or false".to_owned()),
        (Takes::Count(_, least, most), Some(v)) => whole(v)
            .is_none_or(|n| n < least || n > most)
            .then(|| format!("a whole number from {least} to {most}")),
    }?;
    Some(format!("{name:?} must be {expected}, not {}", value.map_or("nothing".into(), kind)))
}

/// A whole number, also when it is written with a fraction of zero.
fn whole(value: &Value) -> Option<u64> {
    let fraction =
        || value.as_f64().filter(|f| f.fract() == 0.0 && (0.0..9e15).contains(f)).map(|f| f as u64);
    value.as_u64().or_else(fraction)
}

fn accepted(param: &Param) -> String {
    let (name, takes) = (param.name, param.takes);
    match takes {
        Takes::Text => format!("{name} (string, required)"),
        Takes::TextOr(default) => format!("{name} (string, default {default:?})"),
        Takes::MaybeText => format!("{name} (string)"),
        Takes::Flag => format!("{name} (true or false)"),
        Takes::Count(default, least, most) => format!("{name} (number {least} to {most}, default {default})"),
    }
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => n.to_string(),
        Value::String(_) => "a string".into(),
        Value::Array(_) => "an array".into(),
        Value::Object(_) => "an object".into(),
    }
}
