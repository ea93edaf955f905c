use super::*;
use serde_json::json;

const NOW_MS: u64 = 1_796_066_309_000;

fn refuse(status: u16, body: &str) -> ModelError {
    refusal(status, |_| None, body.as_bytes(), NOW_MS)
}

fn after(value: &str) -> Option<Duration> {
    let header = |name: &str| (name == "retry-after").then(|| value.to_owned());
    refusal(429, header, b"", NOW_MS).retry_after
}

#[test]
fn every_status_has_its_kind() {
    use ModelErrorKind::{Credential, Malformed, Overloaded, Rejected, TooLong, Unreachable};
    for (kind, statuses) in [
        (Credential, &[401, 403][..]),
        (TooLong, &[413]),
        (Overloaded, &[409, 425, 429, 503, 529]),
        (Unreachable, &[408, 500, 502, 504, 520, 599]),
        (Rejected, &[301, 307, 400, 402, 404, 405, 407, 422, 451]),
        (Malformed, &[100, 204, 600, 999]),
    ] {
        for status in statuses {
            let error = refuse(*status, "");
            assert_eq!(error.kind, kind, "{status}");
            assert!(error.message.contains(&status.to_string()), "{}", error.message);
        }
    }
}

#[test]
fn a_history_that_does_not_fit_is_known_by_the_providers_words() {
    for body in [
        json!({"error": {"message": "This model's maximum context length is 8192 tokens. However…", "code": "context_length_exceeded"}}),
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}}),
        json!({"error": {"code": 400, "message": "the request exceeds the available context size, try increasing it", "type": "exceed_context_size_error"}}),
        json!({"object": "error", "message": "Please reduce the length of the messages"}),
    ] {
        assert_eq!(refuse(400, &body.to_string()).kind, ModelErrorKind::TooLong, "{body}");
    }
    let body =
        json!({"error": {"message": "Invalid 'tools[0].function.name': string does not match pattern"}});
    assert_eq!(refuse(400, &body.to_string()).kind, ModelErrorKind::Rejected);
    assert_eq!(refuse(401, r#"{"error": "context length"}"#).kind, ModelErrorKind::Credential);
}

#[test]
fn the_providers_own_sentence_is_quoted() {
    for (body, want) in [
        (
            r#"{"error": {"message": "no such model", "type": "t", "code": null}}"#,
            "HTTP 400: no such model (t)",
        ),
        (r#"{"type": "error", "error": {"type": "e", "message": "m"}}"#, "HTTP 400: m (e)"),
        (r#"{"error": "plain"}"#, "HTTP 400: plain"),
        (r#"{"detail": "not here"}"#, "HTTP 400: not here"),
        (
            r#"{"detail": [{"loc": ["body"], "msg": "x"}]}"#,
            r#"HTTP 400: {"detail":[{"loc":["body"],"msg":"x"}]}"#,
        ),
        ("<html>Bad\x1b[2J</html>\n", r"HTTP 400: <html>Bad\u{1b}[2J</html>"),
        ("", "HTTP 400, and nothing more"),
        ("null", "HTTP 400, and nothing more"),
    ] {
        assert_eq!(refuse(400, body).message, want);
    }
    let flood = format!(r#"{{"error": {{"message": "{}"}}}}"#, "x".repeat(100_000));
    assert!(refuse(500, &flood).message.len() < REFUSAL_QUOTE_BYTES + 60);
}

#[test]
fn a_redirect_says_where_to_and_that_it_is_not_followed() {
    let header = |name: &str| (name == "location").then(|| "https://elsewhere.example/v1".to_owned());
    let error = refusal(308, header, b"", NOW_MS);
    assert_eq!(error.kind, ModelErrorKind::Rejected);
    assert!(error.message.contains("elsewhere.example") && error.message.contains("not followed"), "{error}");
}

#[test]
fn retry_after_in_every_form() {
    assert_eq!(after("3"), Some(Duration::from_secs(3)));
    assert_eq!(after(" 0 "), Some(Duration::ZERO));
    assert_eq!(after("1.5"), Some(Duration::from_millis(1_500)));
    assert_eq!(after("86400"), Some(Duration::from_secs(86_400)));
    assert_eq!(after("Mon, 30 Nov 2026 19:18:39 GMT"), Some(Duration::from_secs(10)));
    assert_eq!(after("Mon, 30 Nov 2026 19:18:19 GMT"), Some(Duration::ZERO), "the past is now");
    assert_eq!(after("Mon Nov 30 19:18:39 2026"), Some(Duration::from_secs(10)), "as C's asctime writes it");
    for endless in ["18446744073709551615", "18446744073709551616", "99999999999999999999999", "1e300"] {
        assert!(after(endless).is_some_and(|d| d >= Duration::from_secs(u64::MAX)), "{endless}");
    }
    for garbage in ["", "soon", "-3", "NaN", "inf", "1e400", "Mon, 30 Nov 2026"] {
        assert_eq!(after(garbage), None, "{garbage}");
    }
}

#[test]
fn errors_inside_an_answer_are_sorted_by_their_names_and_numbers() {
    use ModelErrorKind::{Credential, Overloaded, Rejected, TooLong, Unreachable};
    for (error, kind) in [
        (json!({"type": "overloaded_error", "message": "Overloaded"}), Overloaded),
        (json!({"code": "rate_limit_exceeded", "message": "slow down"}), Overloaded),
        (json!({"code": 429, "message": "slow down"}), Overloaded),
        (json!({"code": "503", "message": "busy"}), Overloaded),
        (json!({"type": "authentication_error", "message": "invalid x-api-key"}), Credential),
        (json!({"code": 401, "message": "no"}), Credential),
        (json!({"type": "invalid_request_error", "message": "bad"}), Rejected),
        (json!({"type": "invalid_request_error", "message": "prompt is too long"}), TooLong),
        (json!({"type": "api_error", "message": "internal"}), Unreachable),
        (json!({"message": "?"}), Unreachable),
        (json!("text"), Unreachable),
        (json!(7), Unreachable),
    ] {
        assert_eq!(of_error(&error).kind, kind, "{error}");
    }
    assert!(of_error(&json!("it broke")).message.ends_with(": it broke"));
}
