//! A configuration text as a tree of nodes that know their place. Scalars keep their spelling, so that a
//! message can show it and `8/2s`, `off` or `007` stay what was written.

use super::source::Place;

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) place: Place,
}

/// What stands there.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Scalar(Scalar),
    List(Vec<Node>),
    /// In the order of the text; keys are unique.
    Map(Vec<Entry>),
}

/// A scalar's text, escapes already read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    /// Written without quotes, so that it may be a number, a truth value or nothing (YAML's core schema).
    pub(crate) plain: bool,
}

/// One key of a map with its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) place: Place,
    pub(crate) node: Node,
}

/// What YAML's core schema takes a scalar for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Number,
    Text,
}

impl Node {
    /// A text in quotes.
    pub(crate) fn text(text: &str, place: Place) -> Node {
        Node { value: Value::Scalar(Scalar { text: text.to_owned(), plain: false }), place }
    }

    /// The entry of a map; nothing when it is no map or has no such key.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|entry| entry.key == key),
            Value::Scalar(_) | Value::List(_) => None,
        }
    }

    /// Whether nothing is written there: `key:` or `key: null`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar(scalar) if scalar.kind() == Kind::Null)
    }

    /// Whether it is a list.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self.value, Value::List(_))
    }

    /// For messages: `a list`, `the number 5`, `the text "x"`.
    pub(crate) fn seen(&self) -> String {
        match &self.value {
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
            Value::Scalar(scalar) => match scalar.kind() {
                Kind::Null => "nothing".to_owned(),
                Kind::Bool(value) => value.to_string(),
                Kind::Number => format!("the number {}", clip(&scalar.text)),
                Kind::Text => format!("the text {:?}", clip(&scalar.text)),
            },
        }
    }
}

impl Scalar {
    /// What the core schema of YAML 1.2 takes it for.
    pub(crate) fn kind(&self) -> Kind {
        if !self.plain {
            return Kind::Text;
        }
        match self.text.as_str() {
            "" | "~" | "null" | "Null" | "NULL" => Kind::Null,
            "true" | "True" | "TRUE" => Kind::Bool(true),
            "false" | "False" | "FALSE" => Kind::Bool(false),
            text if is_number(text) => Kind::Number,
            _ => Kind::Text,
        }
    }
}

/// Integers (decimal, `0x`, `0o`) and floats of the core schema.
fn is_number(text: &str) -> bool {
    if let Some(hex) = text.strip_prefix("0x") {
        return !hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit());
    }
    if let Some(octal) = text.strip_prefix("0o") {
        return !octal.is_empty() && octal.bytes().all(|b| (b'0'..=b'7').contains(&b));
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let exponent_is_fine = exponent.is_none_or(|e| {
        let e = e.strip_prefix(['+', '-']).unwrap_or(e);
        !e.is_empty() && digits(e)
    });
    digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty()) && exponent_is_fine
}

/// The first characters of a text, for messages.
pub(crate) fn clip(text: &str) -> String {
    let mut clipped: String = text.chars().take(48).collect();
    if clipped.len() < text.len() {
        clipped.push('…');
    }
    clipped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Kind {
        Scalar { text: text.to_owned(), plain: true }.kind()
    }

    #[test]
    fn scalars_are_what_the_core_schema_says() {
        for number in [
            "0", "-7", "+7", "007", "1.5", ".5", "5.", "1e3", "1.5E-3", "0x1F", "0o17", ".inf", "-.inf",
            ".nan",
        ] {
            assert_eq!(kind(number), Kind::Number, "{number}");
        }
        for text in [
            "off", "on", "yes", "8/2s", "5m", "1_000", "0x", "0o8", "e3", ".", "-", "1e", "--1", "-.nan",
            "1.2.3",
        ] {
            assert_eq!(kind(text), Kind::Text, "{text}");
        }
        assert_eq!(kind(""), Kind::Null);
        assert_eq!(kind("True"), Kind::Bool(true));
        assert_eq!(Scalar { text: "5".into(), plain: false }.kind(), Kind::Text);
    }
}
