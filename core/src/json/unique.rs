//! A JSON value whose objects name each key once. serde_json keeps the last of several equal keys without a
//! word, and a check for policy and a tool could then each have read another one.

use super::{JsonProblem, preview, syntax};
use crate::limits;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Parses the whole of `bytes` as one value. Its nesting must have been bounded before.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, JsonProblem> {
    let mut repeated = None;
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    let value = Unique { repeated: &mut repeated }.deserialize(&mut parser);
    match value.and_then(|value| parser.end().map(|()| value)) {
        Ok(value) => Ok(value),
        Err(error) => {
            Err(repeated.map_or_else(|| syntax(bytes, &error), |key| JsonProblem::RepeatedKey { key }))
        }
    }
}

/// Builds a value and leaves a preview of the key that came twice.
struct Unique<'p> {
    repeated: &'p mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for Unique<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        while let Some(item) = items.next_element_seed(Unique { repeated: &mut *self.repeated })? {
            out.push(item);
        }
        Ok(Value::Array(out))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if out.contains_key(&key) {
                *self.repeated = Some(preview(&key, limits::PREVIEW_BYTES));
                return Err(A::Error::custom("repeated key"));
            }
            let value = entries.next_value_seed(Unique { repeated: &mut *self.repeated })?;
            out.insert(key, value);
        }
        Ok(Value::Object(out))
    }
}
