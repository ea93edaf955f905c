use super::*;

fn page(catalogue: &mut Catalogue, text: &str) -> Result<Next, String> {
    let raw: &RawValue = serde_json::from_str(text).unwrap();
    catalogue.page(raw)
}

fn one_page(tools: &str) -> (Vec<ToolInfo>, Vec<String>) {
    let mut catalogue = Catalogue::default();
    assert_eq!(page(&mut catalogue, &format!(r#"{{"tools":[{tools}]}}"#)), Ok(Next::Done));
    let (tools, _, notes) = catalogue.finish();
    (tools, notes)
}

fn schema_of(tool: &ToolInfo) -> String {
    String::from_utf8(tool.schema.0.to_vec()).unwrap()
}

#[test]
fn good_tools_survive_bad_neighbours() {
    let long = "n".repeat(257);
    let huge = format!(r#"{{"type":"object","x":"{}"}}"#, "y".repeat(limits::MCP_SCHEMA_BYTES));
    let deep = format!(r#"{{"type":"object","x":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let (tools, notes) = one_page(&format!(
        r#"{{"name":"a","description":"A","inputSchema":{{"type":"object","z":1,"b":2}}}},
        7, [], "x", {{}}, {{"name":7}}, {{"name":""}}, {{"name":"a b"}}, {{"name":"a\u0007"}}, {{"name":"{long}"}},
        {{"name":"h","inputSchema":{huge}}}, {{"name":"d","inputSchema":{deep}}},
        {{"name":"a","description":"again"}},
        {{"name":"b","title":"B","inputSchema":{{"type":"object"}},"extra":[1]}}"#
    ));
    assert_eq!(tools.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(schema_of(&tools[0]), r#"{"type":"object","z":1,"b":2}"#, "kept as written");
    assert_eq!((tools[0].description.as_str(), tools[1].description.as_str()), ("A", "B"));
    assert_eq!(notes.len(), 9, "{notes:#?}");
    assert_eq!(notes[8], "4 more such entries");
}

#[test]
fn schemas_are_repaired_where_a_model_can_still_use_the_tool() {
    for (given, want) in [
        ("", r#"{"type":"object"}"#),
        (r#","inputSchema":null"#, r#"{"type":"object"}"#),
        (r#","inputSchema":"x""#, r#"{"type":"object"}"#),
        (r#","inputSchema":{}"#, r#"{"type":"object"}"#),
        (r#","inputSchema":{"properties":{"a":{}}}"#, r#"{"properties":{"a":{}},"type":"object"}"#),
        (r#","inputSchema":{"type":"string"}"#, r#"{"type":"object"}"#),
        (r#","inputSchema":{"type":["object","null"]}"#, r#"{"type":"object"}"#),
    ] {
        let (tools, notes) = one_page(&format!(r#"{{"name":"a"{given}}}"#));
        assert_eq!(schema_of(&tools[0]), want, "{given}");
        assert_eq!(notes.len(), 1, "{given}");
    }
}

#[test]
fn pages_end_at_a_loop_a_bound_or_an_odd_cursor() {
    let mut loops = Catalogue::default();
    assert_eq!(page(&mut loops, r#"{"tools":[],"nextCursor":"1"}"#), Ok(Next::Page("1".into())));
    assert_eq!(page(&mut loops, r#"{"tools":[],"nextCursor":"2"}"#), Ok(Next::Page("2".into())));
    assert_eq!(page(&mut loops, r#"{"tools":[{"name":"t"}],"nextCursor":"1"}"#), Ok(Next::Done));
    let (tools, _, notes) = loops.finish();
    assert_eq!(tools.len(), 1);
    assert!(notes.iter().any(|n| n.contains("came before")), "{notes:?}");

    let mut many = Catalogue::default();
    let mut pages = 1;
    while let Next::Page(_) = page(&mut many, &format!(r#"{{"tools":[],"nextCursor":"{pages}"}}"#)).unwrap() {
        pages += 1;
    }
    assert_eq!(pages, limits::MCP_TOOL_PAGES);

    for end in ["null", "\"\""] {
        let mut quiet = Catalogue::default();
        assert_eq!(page(&mut quiet, &format!(r#"{{"tools":[],"nextCursor":{end}}}"#)), Ok(Next::Done));
        assert_eq!(quiet.finish().2, Vec::<String>::new());
    }
    let long = format!("\"{}\"", "c".repeat(limits::MCP_CURSOR_BYTES + 1));
    for odd in ["7", "{}", long.as_str()] {
        let mut odd_one = Catalogue::default();
        assert_eq!(page(&mut odd_one, &format!(r#"{{"tools":[],"nextCursor":{odd}}}"#)), Ok(Next::Done));
        assert_eq!(odd_one.finish().2.len(), 1, "{odd}");
    }
}

#[test]
fn a_list_that_is_too_long_is_cut_and_said_so() {
    let list = |n: usize, text: &str| {
        (0..n).map(|i| format!(r#"{{"name":"t{i}","description":"{text}"}}"#)).collect::<Vec<_>>().join(",")
    };
    let (tools, notes) = one_page(&list(limits::MCP_TOOLS + 1, ""));
    assert_eq!(tools.len(), limits::MCP_TOOLS);
    assert!(notes[0].contains("the list is cut after 2048 tools"), "{notes:?}");

    let mut exact = Catalogue::default();
    let schema = r#","inputSchema":{"type":"object"}}"#;
    let tools = list(limits::MCP_TOOLS, "").replace('}', schema);
    assert_eq!(page(&mut exact, &format!(r#"{{"tools":[{tools}]}}"#)), Ok(Next::Done));
    assert_eq!(exact.finish().2, Vec::<String>::new(), "a list of exactly the bound is whole");

    let long = "é".repeat(limits::MCP_DESCRIPTION_BYTES);
    let (tools, _) = one_page(&list(700, &long));
    assert!(tools[0].description.ends_with("… [cut]"));
    assert!(tools.len() < 700 && tools.iter().map(|t| t.description.len()).sum::<usize>() < 9 * 1024 * 1024);
}

#[test]
fn an_answer_that_is_no_list_is_an_error() {
    for bad in ["{}", "[]", "null", r#"{"tools":null}"#, r#"{"tools":{}}"#, "7"] {
        assert!(page(&mut Catalogue::default(), bad).unwrap_err().contains("tools/list"), "{bad}");
    }
}

#[test]
fn header_marks_count_only_where_calls_have_headers() {
    let tools = r#"{"tools":[{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}},
        {"name":"good","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}},
         "annotations":{"readOnlyHint":true}}]}"#;
    for (marks, names) in [(false, vec!["bad", "good"]), (true, vec!["good"])] {
        let mut catalogue = Catalogue::new(marks);
        assert_eq!(page(&mut catalogue, tools), Ok(Next::Done));
        let (tools, traits, notes) = catalogue.finish();
        assert_eq!(tools.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), names);
        assert_eq!((traits["good"].repeatable, traits["good"].mirrors.len()), (true, usize::from(marks)));
        assert_eq!(notes.iter().any(|note| note.contains("\"bad\"") && note.contains("x-mcp-header")), marks);
    }
}
