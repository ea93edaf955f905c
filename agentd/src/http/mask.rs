//! Keeps credentials out of what people read: servers and proxies quote requests in their errors.
//!
//! Owns which values of a request or of an MCP server's settings are taken for credentials, and what is shown in their
//! place. It refuses to look for anything else that may be secret. Used for what a model's endpoint says, and for all that
//! an MCP server says outside of its tools' results.

use agentd_core::wire::message::Transport;
use serde_json::Value;
use std::collections::BTreeMap;

/// What stands for a credential.
const MASK: &str = "[secret]";

/// What marks a cut in a quote.
const CUT: char = '…';

/// Shorter values are words rather than secrets; masking them would only garble a message.
const SHORTEST: usize = 8;

fn hide(mut text: String, secret: &str, shown: &str) -> String {
    for end in ends(secret) {
        if text.contains(&secret[..end]) {
            text = text.replace(&secret[..end], shown);
        }
    }
    text
}

/// Where a quote of it that is worth masking may end, the longest first.
fn ends(secret: &str) -> impl Iterator<Item = usize> {
    let ends = secret.char_indices().map(|(at, _)| at).rev();
    std::iter::once(secret.len()).chain(ends).filter(|end| *end >= SHORTEST)
}

/// What somebody was given and nobody is to read: a model's endpoint its key and the values of its `headers`, an MCP server the
/// values of its `env`, or of its `headers`.
#[derive(Debug, Default)]
pub(crate) struct Mask(Vec<Hidden>);

#[derive(Debug)]
struct Hidden {
    value: String,
    shown: String,
    /// It is a credential and nothing else, so that its beginning alone gives it away wherever it stands. Of other values,
    /// such as addresses and paths, the beginning is an ordinary word, and counts only where the text was cut.
    token: bool,
}

impl Mask {
    /// Of a server that is reached like this.
    pub(crate) fn of(transport: &Transport) -> Mask {
        let mut mask = Mask::default();
        match transport {
            Transport::Stdio(stdio) => {
                for (name, value) in &stdio.env {
                    mask.add(value, &format!("[{name}]"), false);
                }
            }
            Transport::Http(http) => http.headers.values().for_each(|value| mask.add_header(value)),
            Transport::Files(_) => {}
        }
        mask.sorted()
    }

    /// Of a model's endpoint that is sent this key and these headers.
    pub(crate) fn of_endpoint(key: Option<&str>, headers: &BTreeMap<String, String>) -> Mask {
        let mut mask = Mask::default();
        key.into_iter().for_each(|key| mask.add(key, MASK, true));
        headers.values().for_each(|value| mask.add_header(value));
        mask.sorted()
    }

    /// A value that contains another one goes first, or its rest would stay.
    fn sorted(mut self) -> Mask {
        self.0.sort_by_key(|hidden| std::cmp::Reverse(hidden.value.len()));
        self
    }

    fn add_header(&mut self, value: &str) {
        let value = value.trim();
        let token = value
            .split_once(' ')
            .filter(|(scheme, _)| ["bearer", "basic"].contains(&&*scheme.to_ascii_lowercase()));
        self.add(value, MASK, token.is_none());
        if let Some((_, token)) = token {
            self.add(token, MASK, true);
        }
    }

    /// Hides a value, its lines, and the forms that quotes give them.
    fn add(&mut self, value: &str, shown: &str, token: bool) {
        let value = value.trim();
        for part in std::iter::once(value).chain(value.lines().map(str::trim)) {
            let quoted = part.escape_debug().to_string();
            let forms =
                [part.to_owned(), part.replace(char::is_control, " "), quoted.replace('/', "\\/"), quoted];
            for form in forms.into_iter().filter(|form| form.len() >= SHORTEST) {
                if self.0.iter().all(|hidden| hidden.value != form) {
                    self.0.push(Hidden { value: form, shown: shown.to_owned(), token });
                }
            }
        }
    }

    /// The text without the values, also without the beginning of one that the text was cut in.
    pub(crate) fn text(&self, mut text: String) -> String {
        for Hidden { value, shown, token } in &self.0 {
            text = if *token { hide(text, value, shown) } else { text.replace(value, shown) };
        }
        for Hidden { value, shown, .. } in &self.0 {
            let mut kept = String::with_capacity(text.len());
            for (n, piece) in text.split(CUT).enumerate() {
                if n > 0 {
                    let cut = ends(value).find(|end| kept.ends_with(&value[..*end]));
                    if let Some(end) = cut {
                        kept.truncate(kept.len() - end);
                        kept.push_str(shown);
                    }
                    kept.push(CUT);
                }
                kept.push_str(piece);
            }
            text = kept;
        }
        text
    }

    /// The same of every text in a value, names included.
    pub(crate) fn json(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.into_iter().map(|item| self.json(item)).collect(),
            Value::Object(fields) => {
                let fields = fields.into_iter().map(|(name, value)| (self.text(name), self.json(value)));
                Value::Object(fields.collect())
            }
            other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::wire::message::{HttpServer, Stdio};

    #[test]
    fn whole_and_cut_secrets_are_masked() {
        let mask = Mask::of_endpoint(Some("sk-verysecretindeed"), &BTreeMap::new());
        for (text, want) in [
            ("no key here", "no key here"),
            ("bad key sk-verysecretindeed!", "bad key [secret]!"),
            ("Bearer sk-verysecr… [900 bytes in all]", "Bearer [secret]… [900 bytes in all]"),
            ("sk-verysecretindeed sk-verysecretindeed", "[secret] [secret]"),
            ("sk-very", "sk-very"),
        ] {
            assert_eq!(mask.text(text.to_owned()), want);
        }
    }

    fn server(env: &[(&str, &str)], headers: &[(&str, &str)]) -> [Mask; 2] {
        let owned = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let stdio = Stdio { command: "c".into(), args: vec![], env: owned(env), cwd: None };
        let http = HttpServer { url: "https://h".into(), headers: owned(headers), ca: None };
        [Mask::of(&Transport::Stdio(stdio)), Mask::of(&Transport::Http(http))]
    }

    #[test]
    fn what_a_server_was_given_is_masked_whole_quoted_and_cut() {
        let env = [
            ("API_KEY", "canary-42-and-more"),
            ("SHORT", "1"),
            ("HOST", "https://host/x"),
            ("PEM", "-----BEGIN\nline-of-a-key\n"),
            ("ODD", "quote\"d-secret"),
        ];
        let headers = [("authorization", "Bearer tok-1234567"), ("x-key", "plainkey-99"), ("x-short", "abc")];
        let [stdio, http] = server(&env, &headers);
        for (text, want) in [
            ("bad key canary-42-and-more, tried 1 time", "bad key [API_KEY], tried 1 time"),
            ("bad key canary-42-…", "bad key [API_KEY]…"),
            ("bad key canary-42… [900 bytes in all]", "bad key [API_KEY]… [900 bytes in all]"),
            ("canary-4 sang", "canary-4 sang"),
            ("see https://host/y", "see https://host/y"),
            ("see https://host/x", "see [HOST]"),
            (r"see https:\/\/host\/x", "see [HOST]"),
            ("it says line-of-a-key | -----BEGIN", "it says [PEM] | [PEM]"),
            (r#"it said "quote\"d-secret""#, r#"it said "[ODD]""#),
        ] {
            assert_eq!(stdio.text(text.to_owned()), want);
        }
        for (text, want) in [
            ("got Bearer tok-1234567.", "got [secret]."),
            ("got tok-1234567.", "got [secret]."),
            ("got tok-1234***", "got [secret]***"),
            ("Bearer tokens are fine", "Bearer tokens are fine"),
            ("got Bearer to…", "got [secret]…"),
            ("plainkey-99 abc", "[secret] abc"),
        ] {
            assert_eq!(http.text(text.to_owned()), want);
        }
        let json = serde_json::json!({"tok-1234567": ["a plainkey-99", 1, null]});
        assert_eq!(http.json(json), serde_json::json!({"[secret]": ["a [secret]", 1, null]}));
    }
}
