//! What rules match, and what their replies come out as.

use super::*;

#[test]
fn the_first_rule_that_matches_answers() {
    let book = playbook(json!([
        { "role": "subagent", "reply": { "text": "sub" } },
        { "turn": 2, "reply": { "text": "two" } },
        { "turn": { "from": 3, "to": 4 }, "reply": { "text": "three or four" } },
        { "turn": [5, 7], "reply": { "text": "five or seven" } },
        { "turn": { "from": 6 }, "reply": { "text": "late" } },
        { "text": "(?i)hello (?<who>\\w+)", "reply": { "text": "hello {{ match.who }}, {{ match[1] }}" } },
        { "when": "prompt | length == 3", "reply": { "text": "three letters" } },
        { "reply": { "text": "else" } }
    ]));
    let says = |instruction: &str, turn: u32, role: Role| {
        let mut request = request(instruction);
        request.step = turn;
        book.reply(&request, role).reply.unwrap().text.unwrap()
    };
    assert_eq!(says("x", 1, Role::Subagent), "sub");
    assert_eq!(says("x", 2, Role::Worker), "two");
    assert_eq!(says("x", 4, Role::Worker), "three or four");
    assert_eq!(says("x", 5, Role::Worker), "five or seven");
    assert_eq!(says("x", 6, Role::Worker), "late");
    assert_eq!(says("x", 7, Role::Worker), "five or seven");
    assert_eq!(says("say Hello world", 1, Role::Worker), "hello world, world");
    assert_eq!(says("abc", 1, Role::Worker), "three letters");
    assert_eq!(says("x", 1, Role::Worker), "else");
}

#[test]
fn the_last_result_is_matched_by_tool_error_and_text() {
    let book = playbook(json!([
        { "last": "none", "reply": { "text": "nothing yet" } },
        { "last": { "tool": "files.*", "error": true }, "reply": { "text": "files failed" } },
        { "last": { "tool": "subagent_run", "text": "done" }, "reply": { "text": "subagent done" } },
        { "last": { "error": false }, "reply": { "text": "ok" } },
        { "reply": { "text": "else" } }
    ]));
    let says = |calls: &[(&str, Value, &str, bool)]| {
        let mut request = request("x");
        if !calls.is_empty() {
            request = step(request, calls);
        }
        book.reply(&request, Role::Worker).reply.unwrap().text.unwrap()
    };
    assert_eq!(says(&[]), "nothing yet");
    assert_eq!(says(&[("files_grep", json!({}), "no", true)]), "files failed");
    assert_eq!(says(&[("subagent_run", json!({}), "all done", false)]), "subagent done");
    assert_eq!(says(&[("subagent_run", json!({}), "no", true)]), "else");
    assert_eq!(says(&[("files_grep", json!({}), "no", true), ("files_grep", json!({}), "yes", false)]), "ok");
    assert_eq!(says(&[("made_up", json!({}), "no", true)]), "else");
}

#[test]
fn templates_see_the_whole_request() {
    let mut request = request("do it");
    request.messages.insert(0, Arc::new(Message::User("before".to_owned())));
    request.messages.insert(1, Arc::new(Message::Assistant { text: Some("yes?".into()), calls: Vec::new() }));
    request.context = 2;
    let request = step(request, &[("files_grep", json!({"path": "a b"}), "{\"lines\": 3}", false)]);
    let request = step(
        request,
        &[("files_grep", json!({"path": "c"}), "plain", true), ("subagent_run", json!({}), "[4]", false)],
    );
    let shown = json!({ "text": {
        "context": "{{ context }}", "instruction": "{{ instruction }}", "prompt": "{{ prompt }}",
        "turn": "{{ turn }}", "role": "{{ role }}", "tools": "{{ tools }}",
        "names": "{{ results | map(attribute='name') | list }}",
        "paths": "{{ results | map(attribute='args.path', default=none) | list }}",
        "values": "{{ results | map(attribute='value') | list }}",
        "latest": "{{ latest | length }}", "last": "{{ last }}",
    }});
    assert_eq!(
        serde_json::from_str::<Value>(&text(shown, &request)).unwrap(),
        json!({
            "context": [{"role": "user", "content": "before"}, {"role": "assistant", "content": "yes?"}],
            "instruction": "do it", "prompt": "do it", "turn": 3, "role": "worker",
            "tools": ["files.grep", "subagent.run"],
            "names": ["files.grep", "files.grep", "subagent.run"],
            "paths": ["a b", "c", null],
            "values": [{"lines": 3}, "plain", [4]],
            "latest": 2,
            "last": {"name": "subagent.run", "args": {}, "value": [4], "text": "[4]", "error": false},
        })
    );
}

#[test]
fn one_entry_fans_out_over_what_was_found() {
    let found = json!(["src", "it's \"odd\"", "-rf", "größe\nneu", "{{ x }}", "{% raw"]);
    let request = step(request("x"), &[("files_grep", json!({}), &found.to_string(), false)]);
    let reply = json!({ "tool_calls": [
        { "name": "files.grep", "for": "last.value", "as": "entry", "if": "entry != 'src'",
          "args": { "path": "{{ entry }}", "at": "{{ loop.index }}", "of": "{{ loop.length }}",
                    "note": "about {{ entry }}", "deep": [{ "fixed": true, "entry": "{{ entry | upper }}" }] } },
        { "name": "made_up" },
        { "name": "subagent.run", "id": "mine", "arguments": "{\"cut\": {{ '\"' }}" },
    ]});
    let reply = answer(reply, &request).unwrap();
    let expected: Vec<&Value> = found.as_array().unwrap().iter().skip(1).collect();
    for (index, entry) in expected.iter().enumerate() {
        let call = &reply.calls[index];
        let name = entry.as_str().unwrap();
        assert_eq!(call.name, "files_grep");
        assert_eq!(
            serde_json::from_str::<Value>(&call.args).unwrap(),
            json!({ "path": name, "at": index + 1, "of": 5, "note": format!("about {name}"),
                    "deep": [{ "fixed": true, "entry": name.to_uppercase() }] })
        );
    }
    let rest: Vec<(&str, &str, &str)> =
        reply.calls[5..].iter().map(|c| (c.id.as_str(), c.name.as_str(), c.args.as_str())).collect();
    assert_eq!(rest, [("call_2_6", "made_up", "{}"), ("mine", "subagent_run", "{\"cut\": \"")]);
    assert_eq!(reply.finish, Finish::ToolCalls);
}

#[test]
fn sums_groups_and_lists_are_true() {
    let rows = json!([{"n": 2, "k": "a"}, {"n": 40, "k": "b"}, {"n": 0, "k": "a"}]);
    let request = step(request("x"), &[("files_grep", json!({}), &rows.to_string(), false)]);
    let shown = json!({ "text": {
        "sum": "{{ last.value | sum(attribute='n') }}",
        "empty": "{{ [] | sum }}",
        "batches": "{{ range(7) | batch(3) }}",
        "slices": "{{ range(7) | slice(3) }}",
        "none": "{{ [] | slice(3) | reject('eq', []) | list }}",
        "grouped": "{% for k, rows in last.value | groupby('k') %}{{ k }}={{ rows | sum(attribute='n') }} {% endfor %}",
        "sorted": "{{ last.value | sort(attribute='n', reverse=true) | map(attribute='n') | list }}",
        "json": "{{ last.value | tojson | fromjson | last }}",
        "built": { "$for": "last.value", "$as": "row", "$if": "row.n", "$each": { "double": "{{ row.n * 2 }}" } },
        "quoted": "{{ 'a b' | shell_quote }}",
        "aligned": "[{{ '%-6s|%4d' | format('ab', 7) }}]",
    }});
    assert_eq!(
        serde_json::from_str::<Value>(&text(shown, &request)).unwrap(),
        json!({
            "sum": 42, "empty": 0, "batches": [[0, 1, 2], [3, 4, 5], [6]], "slices": [[0, 1, 2], [3, 4], [5, 6]],
            "none": [], "grouped": "a=2 b=40 ", "sorted": [40, 2, 0], "json": {"n": 0, "k": "a"},
            "built": [{"double": 4}, {"double": 80}], "quoted": "'a b'", "aligned": "[ab    |   7]",
        })
    );
}

#[test]
fn a_string_that_is_one_expression_keeps_its_type() {
    let request = request("x");
    for (source, want) in [
        ("{{ 1 }}", json!(1)),
        (" {{- 1 -}}\n", json!(1)),
        ("{{ 1 }} ", json!(1)),
        ("{{ 1 }}{{ 2 }}", json!("12")),
        ("{{ '}}' }}", json!("}}")),
        ("{{ 'a' }} {{ 'b' }}", json!("a b")),
        ("{{ {'a': [true, none, 1.5]} }}", json!({"a": [true, null, 1.5]})),
        ("n: {{ 1 }}", json!("n: 1")),
        ("{# nothing #}", json!("")),
        ("plain }} text", json!("plain }} text")),
        ("{% if true %}\nyes\n{% endif %}\n", json!("yes\n")),
    ] {
        let reply =
            answer(json!({ "tool_calls": [{ "name": "t", "args": { "v": source } }] }), &request).unwrap();
        let args: Value = serde_json::from_str(&reply.calls[0].args).unwrap();
        assert_eq!(args["v"], want, "{source}");
    }
}

#[test]
fn names_in_a_path_never_select_an_escape_mode() {
    // The engine would take a template called `….json` or `….html` for a file of that kind.
    let args = json!({ "json": "<{{ prompt }}>", "html": "<{{ prompt }}>" });
    let reply = answer(json!({ "tool_calls": [{ "name": "t", "args": args }] }), &request("a&b\"")).unwrap();
    let args: Value = serde_json::from_str(&reply.calls[0].args).unwrap();
    assert_eq!(args, json!({ "json": "<a&b\">", "html": "<a&b\">" }));
}

#[test]
fn usage_delay_finish_and_errors_are_as_written() {
    let request = request("abc");
    let reply = json!({ "text": "t", "finish": "length", "usage": { "input": 10, "output": "{{ prompt | length }}" } });
    let reply = answer(reply, &request).unwrap();
    assert_eq!(reply.finish, Finish::Length);
    assert_eq!(reply.usage, ReplyUsage { input: Some(10), output: Some(3), cached: None });
    assert_eq!(answer(json!({}), &request).unwrap().usage, ReplyUsage::default());
    for (name, want) in [
        ("stop", Finish::Stop),
        ("tool_calls", Finish::ToolCalls),
        ("refusal", Finish::Refusal),
        ("missing", Finish::Missing),
        ("weird", Finish::Other("weird".to_owned())),
    ] {
        assert_eq!(answer(json!({ "finish": name }), &request).unwrap().finish, want);
    }
    for kind in ModelErrorKind::ALL {
        let reply = json!({ "error": { "kind": kind.name(), "message": "for {{ prompt }}" } });
        assert_eq!(answer(reply, &request), Err(ModelError::new(kind, "for abc")));
    }
    let book = playbook(json!([{ "reply": { "text": "x", "delay": "250ms" } }]));
    assert_eq!(book.reply(&request, Role::Worker).delay, Duration::from_millis(250));
}

#[test]
fn the_same_request_always_gets_the_same_reply() {
    let book = playbook(
        json!([{ "reply": { "tool_calls": [{ "name": "t", "for": "range(3)", "args": "{{ {'i': item} }}" }] } }]),
    );
    let request = request("x");
    assert_eq!(book.reply(&request, Role::Worker), book.reply(&request, Role::Worker));
}

/// A warm child's messages: model calls and results are counted within each.
#[test]
fn a_message_begins_the_count_of_turns_and_results_anew() {
    let rules = playbook(json!([
        { "message": 1, "turn": 2, "reply": { "text": "first, {{ results | length }} results" } },
        { "message": { "from": 2, "to": 3 }, "last": "none",
          "reply": { "text": "{{ message }}.{{ turn }} {{ text }}: {{ earlier | length }} {{ earlier[0].text }} {{ instruction }}" } },
        { "message": [2], "reply": { "text": "{{ last.text }}, {{ latest | length }} of {{ results | length }}" } },
    ]));
    let said = |request: &ModelRequest| rules.reply(request, Role::Subagent).reply;
    let first = step(request("begin"), &[("files_grep", json!({}), "old", false)]);
    assert_eq!(said(&first).unwrap().text.unwrap(), "first, 1 results");
    let mut second = first;
    second.messages.push(Arc::new(Message::Assistant { text: Some("done".to_owned()), calls: Vec::new() }));
    second.begins = second.messages.len();
    second.messages.push(Arc::new(Message::User("again".to_owned())));
    (second.step, second.turn) = (1, 2);
    assert_eq!(said(&second).unwrap().text.unwrap(), "2.1 again: 1 old begin");
    let mut second = step(second, &[("files_grep", json!({}), "new", false)]);
    assert_eq!(said(&second).unwrap().text.unwrap(), "new, 1 of 1");
    second.turn = 4;
    let why = said(&second).unwrap_err().message;
    for part in
        ["(role subagent, message 4, turn 2, ", "rules[0]: for message 1;", "rules[1]: for messages 2 to 3;"]
    {
        assert!(why.contains(part), "no {part:?} in {why}");
    }
}
