//! What a provider says when it does not answer: an HTTP status with a body, or an error event in the stream.
//!
//! Owns which kind of failure it is (S15.4) and how long the provider asks to be left alone. Refuses to quote without
//! bound. Called by the dialects' readers and by the child's model connection.

use crate::limits::REFUSAL_QUOTE_BYTES;
use crate::model::{ModelError, ModelErrorKind, loose};
use crate::preview::preview;
use crate::time::Duration;
use serde_json::Value;
use std::time::UNIX_EPOCH;

/// The failure behind an answer with another status than 200. `header` looks a header up by its name in small
/// letters; `now_ms` is the wall clock, for a `Retry-After` that is a date.
pub fn refusal(status: u16, header: impl Fn(&str) -> Option<String>, body: &[u8], now_ms: u64) -> ModelError {
    let said = Said::of_body(body);
    let kind = match status {
        401 | 403 => ModelErrorKind::Credential,
        413 => ModelErrorKind::TooLong,
        400 | 404 | 422 if said.is_too_long() => ModelErrorKind::TooLong,
        409 | 425 | 429 | 503 | 529 => ModelErrorKind::Overloaded,
        408 | 500..=599 => ModelErrorKind::Unreachable,
        300..=499 => ModelErrorKind::Rejected,
        _ => ModelErrorKind::Malformed,
    };
    let what = match (status, header("location")) {
        (300..=399, Some(to)) => format!(
            "HTTP {status} to {}: redirects are not followed, since a credential would follow too; name the address \
             itself in the configuration",
            preview(to, REFUSAL_QUOTE_BYTES)
        ),
        _ => said.sentence(&format!("HTTP {status}")),
    };
    let retry_after = header("retry-after").and_then(|value| retry_after(&value, now_ms));
    ModelError { kind, message: what, retry_after, came: None }
}

/// The failure behind an `error` member of an event or of an answer whose status promised success.
pub(super) fn of_error(error: &Value) -> ModelError {
    let said = Said::of(error);
    let status = loose::number(&error["code"]).or_else(|| loose::number(&error["status"]));
    let kind = match (said.code.as_str(), status) {
        _ if said.is_too_long() => ModelErrorKind::TooLong,
        (code, _) if code.contains("authentication") || code.contains("permission") => {
            ModelErrorKind::Credential
        }
        (_, Some(401 | 403)) => ModelErrorKind::Credential,
        (code, _) if code.contains("overloaded") || code.contains("rate_limit") => ModelErrorKind::Overloaded,
        (_, Some(429 | 503 | 529)) => ModelErrorKind::Overloaded,
        (_, Some(400 | 404 | 422)) => ModelErrorKind::Rejected,
        (code, _) if code.contains("invalid_request") || code.contains("not_found") => {
            ModelErrorKind::Rejected
        }
        // Server errors, and what nobody has a name for: trying again can help.
        _ => ModelErrorKind::Unreachable,
    };
    ModelError::new(kind, said.sentence("the provider reported an error in its answer"))
}

/// What of a provider's error is for people and for [`kind`](ModelErrorKind).
struct Said {
    /// Its own name of the error: `type` and `code`.
    code: String,
    /// Its sentence.
    message: String,
}

impl Said {
    fn of_body(body: &[u8]) -> Said {
        match serde_json::from_slice::<Value>(body) {
            Ok(value) if loose::is_something(&value["error"]) => Said::of(&value["error"]),
            Ok(value) => Said::of(&value),
            Err(_) => Said { code: String::new(), message: preview(body.trim_ascii(), REFUSAL_QUOTE_BYTES) },
        }
    }

    /// `error` is a string, or an object with some of `message`, `detail`, `type` and `code`.
    fn of(error: &Value) -> Said {
        let sentence = [&error["message"], &error["detail"], &error["error"], error]
            .into_iter()
            .map(loose::text)
            .find(|text| !text.trim().is_empty());
        let message = match sentence {
            Some(text) => preview(text.trim(), REFUSAL_QUOTE_BYTES),
            None if loose::is_something(error) => preview(error.to_string(), REFUSAL_QUOTE_BYTES),
            None => String::new(),
        };
        let names = [&error["type"], &error["code"]].map(loose::text);
        let code = names.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(" ");
        Said { code: preview(code, 80), message }
    }

    fn sentence(&self, what: &str) -> String {
        match (self.message.is_empty(), self.code.is_empty()) {
            (true, true) => format!("{what}, and nothing more"),
            (true, false) => format!("{what}: {}", self.code),
            (false, true) => format!("{what}: {}", self.message),
            (false, false) => format!("{what}: {} ({})", self.message, self.code),
        }
    }

    /// Providers have no common code for this; these are the words that they use.
    fn is_too_long(&self) -> bool {
        const WORDS: [&str; 12] = [
            "context_length",
            "context length",
            "context size",
            "context window",
            "context limit",
            "prompt is too long",
            "input is too long",
            "input length",
            "too many tokens",
            "reduce the length",
            "maximum number of tokens",
            "request_too_large",
        ];
        let said = format!("{} {}", self.code, self.message).to_lowercase();
        WORDS.iter().any(|word| said.contains(word))
    }
}

/// `Retry-After`: seconds, or a date. Garbage is none.
fn retry_after(value: &str, now_ms: u64) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    if let Some(seconds) = value.parse::<f64>().ok().filter(|s| s.is_finite() && *s >= 0.0) {
        // Whoever names more than can be counted asks for the most patience, not for none.
        return Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    }
    let at = httpdate::parse_http_date(value).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(at.saturating_sub(Duration::from_millis(now_ms)))
}

#[cfg(test)]
mod tests;
