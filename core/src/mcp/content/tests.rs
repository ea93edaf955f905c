use super::*;

fn of(result: &str) -> Outcome {
    let raw: &RawValue = serde_json::from_str(result).unwrap();
    outcome("t", raw)
}

fn text(result: &str) -> String {
    match of(result) {
        Outcome { error: false, own: false, value: Value::Text(text) } => text,
        other => panic!("{result}: {other:?}"),
    }
}

#[test]
fn structured_content_is_preferred_and_kept_as_written() {
    let got = of(r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"b": 1.50, "a":[]}}"#);
    assert_eq!(
        got,
        Outcome {
            error: false,
            own: false,
            value: Value::Json(Json(Bytes::from(&br#"{"b": 1.50, "a":[]}"#[..])))
        }
    );
    assert_eq!(text(r#"{"content":[{"type":"text","text":"x"}],"structuredContent":null}"#), "x");
}

#[test]
fn structured_content_that_no_parser_takes_back_stays_text() {
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    for odd in [deep.as_str(), "1e999", r#""\ud800""#] {
        assert_eq!(text(&format!(r#"{{"structuredContent":{odd}}}"#)), odd);
        assert!(serde_json::from_str::<serde_json::Value>(odd).is_err());
    }
    let wide = format!("{}1{}", r#"{"k":["#.repeat(50), "]}".repeat(50));
    let Value::Json(json) = of(&format!(r#"{{"structuredContent":{wide}}}"#)).value else { panic!() };
    assert!(json.parse().is_ok());
}

#[test]
fn parts_are_joined_and_other_kinds_described() {
    let got = text(
        r#"{"content":[
        {"type":"text","text":"one\ntwo"},
        {"type":"image","data":"aGVsbG8=","mimeType":"image/png"},
        {"type":"audio","data":"aGVsbG8h","mimeType":"audio/wav"},
        {"type":"resource_link","uri":"file:///a","name":"a","mimeType":"text/plain","size":7},
        {"type":"resource","resource":{"uri":"file:///b","mimeType":"text/plain","text":"body"}},
        {"type":"resource","resource":{"uri":"file:///c","blob":"aGVsbG8="}},
        {"type":"hologram","x":1},
        "bare", 7, {"text":"no type"}, {"type":"image"}, {"type":"text","text":5}]}"#,
    );
    let want = "one\ntwo
[image, image/png, 5 bytes]
[audio, audio/wav, 6 bytes]
[link to a resource: a file:///a, text/plain, 7 bytes]
[resource file:///b, text/plain]\nbody
[resource file:///c, no type given, 5 bytes]
[a part of type \"hologram\" that cannot be shown]
bare
[a part that cannot be read: 7]
no type
[a part of type \"image\" that cannot be shown]
[a part that cannot be read: {\"type\":\"text\",\"text\":5}]";
    assert_eq!(got, want);
}

#[test]
fn odd_shapes_of_content_are_still_read() {
    assert_eq!(text("{}"), "");
    assert_eq!(text(r#"{"content":null}"#), "");
    assert_eq!(text(r#"{"content":[]}"#), "");
    assert_eq!(text(r#"{"content":"bare"}"#), "bare");
    assert_eq!(text(r#"{"content":{"type":"text","text":"lone"}}"#), "lone");
    assert_eq!(text(r#"{"content":[],"isError":"no","extra":[1]}"#), "");
}

#[test]
fn errors_are_observations() {
    let got = of(r#"{"content":[{"type":"text","text":"no such file"}],"isError":true}"#);
    assert_eq!(got, Outcome { error: true, own: false, value: Value::Text("no such file".into()) });
    for bad in ["[]", "\"x\"", "7", r#"{"content":[],"content":[]}"#] {
        let Outcome { error: true, own: true, value: Value::Text(said) } = of(bad) else { panic!("{bad}") };
        assert!(said.contains("is not a tool result") && said.contains('`'), "{said}");
    }
}

#[test]
fn a_flood_of_parts_is_cut_and_counted() {
    let parts = vec![r#"{"type":"text","text":"x"}"#; limits::MCP_PARTS + 3].join(",");
    let got = text(&format!(r#"{{"content":[{parts}]}}"#));
    assert!(got.ends_with("x\n[3 more parts were left out]"), "{}", &got[got.len() - 60..]);
    let zeros = "0,".repeat(1_000_000) + "0";
    assert!(text(&format!(r#"{{"content":[{zeros}]}}"#)).len() < 200 * limits::MCP_PARTS);
}
