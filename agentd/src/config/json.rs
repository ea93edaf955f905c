//! A tree as a JSON value: plain scalars become what YAML's core schema says.

use super::tree::{Kind, Node, Scalar, Value};
use serde_json::{Map, Number};

/// The JSON value of a tree. Numbers that JSON does not have (`.nan`, `.inf`) stay text.
pub(crate) fn of(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::List(items) => serde_json::Value::Array(items.iter().map(of).collect()),
        Value::Map(entries) => {
            let pairs = entries.iter().map(|entry| (entry.key.clone(), of(&entry.node)));
            serde_json::Value::Object(pairs.collect::<Map<_, _>>())
        }
        Value::Scalar(scalar) => match scalar.kind() {
            Kind::Null => serde_json::Value::Null,
            Kind::Bool(value) => serde_json::Value::Bool(value),
            Kind::Number => number(scalar),
            Kind::Text => serde_json::Value::String(scalar.text.clone()),
        },
    }
}

fn number(scalar: &Scalar) -> serde_json::Value {
    let text = scalar.text.as_str();
    let whole = match (text.strip_prefix("0x"), text.strip_prefix("0o")) {
        (Some(hex), _) => u64::from_str_radix(hex, 16).ok().map(Number::from),
        (None, Some(octal)) => u64::from_str_radix(octal, 8).ok().map(Number::from),
        (None, None) => {
            text.parse::<u64>().map(Number::from).or_else(|_| text.parse::<i64>().map(Number::from)).ok()
        }
    };
    let number = whole.or_else(|| text.parse().ok().and_then(Number::from_f64));
    number.map_or_else(|| serde_json::Value::String(text.to_owned()), serde_json::Value::Number)
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::super::yaml;
    use super::*;
    use std::path::Path;

    #[test]
    fn scalars_follow_the_core_schema() {
        let text = "[1, -2, 0x10, 0o17, 1.5, 1e2, 18446744073709551615, 99999999999999999999, .nan, true, ~, off, '1', 007]";
        let mut problems = Vec::new();
        let source = Source::file(Path::new("a.yaml"), 0, text.to_owned());
        let tree = yaml::parse(&source, &mut problems).expect("a tree");
        assert_eq!(
            of(&tree),
            serde_json::json!([
                1,
                -2,
                16,
                15,
                1.5,
                100.0,
                18446744073709551615u64,
                1e20,
                ".nan",
                true,
                null,
                "off",
                "1",
                7
            ])
        );
    }
}
