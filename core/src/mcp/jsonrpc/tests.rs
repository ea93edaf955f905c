use super::*;

fn response(text: &str) -> (Option<u64>, Result<String, String>) {
    match read(text) {
        Ok(Incoming::Response { id, answer: Answer::Result(raw) }) => (id, Ok(raw.get().into())),
        Ok(Incoming::Response { id, answer: Answer::Error(e) }) => (id, Err(e.to_string())),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn responses_are_paired_by_the_number_however_it_is_spelt() {
    for id in ["7", "\"7\"", "7.0", "7.000"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"a":1}}}}"#);
        assert_eq!(response(&text), (Some(7), Ok(r#"{"a":1}"#.into())), "{id}");
    }
    for id in [
        "null",
        "-7",
        "7.5",
        "\"x\"",
        "\"\"",
        "[7]",
        "{}",
        "true",
        "99999999999999999999",
        "7e0",
        "\"7",
        "1.",
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":1,"message":"m"}}}}"#);
        match read(&text) {
            Ok(Incoming::Response { id, .. }) => assert_eq!(id, None, "{text}"),
            Ok(other) => panic!("{text}: {other:?}"),
            Err(_) => assert!(serde_json::from_str::<IgnoredAny>(&text).is_err(), "{text}"),
        }
    }
}

#[test]
fn an_answer_without_a_usable_body_is_an_error_at_once() {
    for (body, says) in [
        ("", "neither a result nor an error"),
        (r#","result":null"#, "a null result"),
        (r#","error":null"#, "neither a result nor an error"),
        (r#","result": null ,"error":null"#, "a null result"),
    ] {
        let (id, answer) = response(&format!(r#"{{"jsonrpc":"2.0","id":3{body}}}"#));
        assert_eq!(id, Some(3));
        assert!(answer.unwrap_err().contains(says), "{body}");
    }
    let both = r#"{"jsonrpc":"2.0","id":3,"result":{},"error":{"code":-32602,"message":"no such tool"}}"#;
    assert_eq!(response(both).1, Err("error -32602: no such tool".into()));
    assert_eq!(response(r#"{"jsonrpc":"2.0","id":3,"result":{},"error":null}"#).1, Ok("{}".into()));
}

#[test]
fn errors_of_any_shape_become_a_bounded_sentence() {
    let says =
        |error: &str| response(&format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#)).1.unwrap_err();
    assert_eq!(says(r#""boom""#), "error none: boom");
    assert_eq!(says(r#"{"code":"E_X","message":null}"#), "error E_X: ");
    assert_eq!(says(r#"{"code":5,"message":["a",1]}"#), r#"error 5: ["a",1]"#);
    assert_eq!(
        says(r#"{"code":5,"message":"a\u001b[31m\nb","data":{"k":1}}"#),
        r#"error 5: a [31m b (data: {"k":1})"#
    );
    let long = says(&format!(r#"{{"code":{},"message":"{}"}}"#, "9".repeat(500), "é".repeat(9_000)));
    assert!(long.len() < limits::MCP_ERROR_BYTES + 100 && long.ends_with('…'), "{}", long.len());
}

#[test]
fn junk_is_told_apart_from_messages() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for junk in [
        "",
        "Server started on stdio",
        "\u{1b}[32mready\u{1b}[0m",
        "null",
        "[]",
        "7",
        "\"x\"",
        "{",
        "{}",
        &deep,
        r#"{"id":1,"result":{}}"#,
        r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":2.0,"id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"2.0","method":7}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}} {"#,
        r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#,
        r#"["2.0",1,null,null,{}]"#,
        r#"{"level":"error","error":"boom","id":"1"}"#,
    ] {
        assert!(read(junk).is_err(), "{junk}");
    }
    let deep_result = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{deep},"extra":{deep}}}"#);
    assert_eq!(response(&deep_result), (Some(1), Ok(deep)));
}

#[test]
fn requests_keep_their_id_as_it_was_written() {
    for id in ["1", "-1", "\"a\\ud800\"", "1e999", "18446744073709551617"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list"}}"#);
        let Ok(Incoming::Request { id: raw, method, .. }) = read(&text) else { panic!("{text}") };
        let answer = String::from_utf8(method_not_found(raw, &method)).unwrap();
        assert!(
            answer.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"#)),
            "{answer}"
        );
        let pong = String::from_utf8(super::result(raw, &serde_json::json!({}))).unwrap();
        assert_eq!(pong, format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}"));
    }
    assert!(matches!(
        read(r#"{"jsonrpc":"2.0","id":null,"method":"notifications/x","params":[1]}"#),
        Ok(Incoming::Notification { params: Some(_), .. })
    ));
}

#[test]
fn arrays_are_read_up_to_a_count() {
    let First { items, more } = serde_json::from_str::<First<'_, 2>>("[1, {\"a\":[]}, 3, 4]").unwrap();
    assert_eq!(items.iter().map(|i| i.get()).collect::<Vec<_>>(), ["1", "{\"a\":[]}"]);
    assert_eq!(more, 2);
    assert!(serde_json::from_str::<First<'_, 2>>("{}").is_err());
}
