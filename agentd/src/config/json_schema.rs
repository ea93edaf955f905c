//! The table of keys as a JSON Schema (2020-12), for editors and other programs. It accepts no less than `check`:
//! whatever it rejects, `check` rejects too. What takes more than one key, or a look at the file system, it does not
//! see.

use super::schema::{Key, Keys, ROOT, Shape, TAGS};
use serde_json::{Map, Value, json};

/// Names of keys as the schema has them.
const NAME: &str = "^[A-Za-z0-9_-]{1,64}$";
const NAME_WITH_DOTS: &str = "^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}$";
const VARIABLE: &str = "^[A-Za-z_][A-Za-z0-9_]*$";
const PASSTHROUGH: &str = "^[A-Za-z_][A-Za-z0-9_]*\\*?$";
const DURATION: &str = "^0*[1-9][0-9]*(ms|s|m|h|d)$";
const SIZE: &str = "^0*[1-9][0-9]*(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$";
const RATE: &str = "^0*[1-9][0-9]*/0*[1-9][0-9]*(ms|s|m|h|d)$";
const REFERENCE: &str = "\\{\\{secret(-file)?:[^}]+\\}\\}";
const HEADER: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";

/// Keys of a map that cannot be left out, where no other file can add them: in the items of lists and in prices.
const REQUIRED: [(&str, &[&str]); 2] = [("servers", &["name"]), ("prices", &["input", "output"])];

/// The whole schema as text.
pub fn json_schema() -> String {
    let mut schema = section(ROOT, false);
    if let Value::Object(fields) = &mut schema {
        fields.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
        fields.insert("title".to_owned(), "Configuration of agentd".into());
    }
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// A map with these keys and no others; nothing in its place leaves all as it is, but for an item.
fn section(keys: &[Key], item: bool) -> Value {
    let built = keys.iter().filter(|key| !matches!(key.shape, Shape::Later));
    let properties: Map<String, Value> = built.map(|key| (key.name.to_owned(), described(key))).collect();
    let accepted = if item { json!("object") } else { json!(["object", "null"]) };
    json!({"type": accepted, "properties": properties, "additionalProperties": false})
}

fn described(key: &Key) -> Value {
    let mut schema = of_shape(key);
    if let Value::Object(fields) = &mut schema {
        if !key.about.is_empty() {
            fields.insert("description".to_owned(), key.about.into());
        }
        if let Some(default) = default(key) {
            fields.insert("default".to_owned(), default);
        }
    }
    schema
}

fn of_shape(key: &Key) -> Value {
    let required = REQUIRED.iter().find(|(name, _)| *name == key.name).map(|(_, required)| *required);
    match key.shape {
        Shape::Text => text(json!({})),
        Shape::Path | Shape::OffOrPath => text(json!({"minLength": 1})),
        Shape::Name { dots } => text(json!({"pattern": if dots { NAME_WITH_DOTS } else { NAME }})),
        Shape::Secret => text(json!({"pattern": REFERENCE})),
        Shape::Switch => json!({"type": "boolean"}),
        Shape::Whole { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Shape::Number => json!({"type": "number", "minimum": 0}),
        Shape::Duration => json!({"type": "string", "pattern": DURATION}),
        Shape::Size => json!({"type": "string", "pattern": SIZE}),
        Shape::Rate => json!({"type": "string", "pattern": RATE}),
        Shape::OneOf(words) => json!({"enum": words}),
        Shape::Texts | Shape::Patterns => list(text(json!({}))),
        Shape::EnvNames => list(text(json!({"pattern": PASSTHROUGH}))),
        Shape::Words(words) => list(json!({"enum": words})),
        Shape::Variables => map(Some(VARIABLE), text(json!({}))),
        Shape::Headers => map(Some(HEADER), text(json!({}))),
        Shape::Tags => map(None, list(json!({"enum": TAGS}))),
        Shape::Section(keys) => section(keys, false),
        Shape::Items(keys) => list(requiring(section(keys, true), required)),
        Shape::Maps { names, each } => {
            let pattern = match names {
                Keys::Names => Some(NAME_WITH_DOTS),
                Keys::Any => None,
            };
            map(pattern, requiring(section(each, true), required))
        }
        // Left out by `section`.
        Shape::Later => json!(false),
    }
}

/// Text, or a number that is taken as it is spelled.
fn text(mut more: Value) -> Value {
    if let Value::Object(fields) = &mut more {
        fields.insert("type".to_owned(), json!(["string", "number"]));
    }
    more
}

fn list(items: Value) -> Value {
    json!({"type": ["array", "null"], "items": items})
}

fn map(names: Option<&str>, values: Value) -> Value {
    let mut schema = json!({"type": ["object", "null"], "additionalProperties": values});
    if let (Value::Object(fields), Some(pattern)) = (&mut schema, names) {
        fields.insert("propertyNames".to_owned(), json!({"pattern": pattern}));
    }
    schema
}

fn requiring(mut schema: Value, required: Option<&[&str]>) -> Value {
    if let (Value::Object(fields), Some(required)) = (&mut schema, required) {
        fields.insert("required".to_owned(), json!(required));
    }
    schema
}

/// A default as JSON: the table spells it as YAML would.
fn default(key: &Key) -> Option<Value> {
    let spelled = key.default;
    if spelled.is_empty() {
        return None;
    }
    Some(match key.shape {
        Shape::Switch => json!(spelled == "true"),
        Shape::Whole { .. } => json!(spelled.parse::<u64>().ok()?),
        Shape::Words(_) => {
            json!(spelled.trim_matches(['[', ']']).split(", ").collect::<Vec<_>>())
        }
        Shape::Texts | Shape::Patterns | Shape::EnvNames | Shape::Items(_) => json!([]),
        Shape::Variables | Shape::Headers | Shape::Tags | Shape::Maps { .. } => json!({}),
        _ => json!(spelled),
    })
}

#[cfg(test)]
mod tests;
