//! Mistakes in a playbook, found when it is read and when it is used.

use super::*;

/// Every problem of a playbook, `path: message`.
fn problems(playbook: Value) -> Vec<String> {
    let error = Playbook::from_value(&playbook).expect_err("the playbook should be refused");
    error.problems.iter().map(Problem::to_string).collect()
}

#[test]
fn all_mistakes_are_told_at_once_with_their_paths() {
    let seen = problems(json!({
        "rule": [],
        "rules": [
            { "role": "boss", "turn": 0, "text": "(", "reply": { "text": "{{ result }}" } },
            { "turns": 1, "last": { "tool": "a b", "error": "yes" } },
            { "reply": { "delay": "5", "usage": { "input": -1 }, "tool_calls": [
                { "args": [1] },
                { "name": "t", "as": "x", "args": {}, "arguments": "" },
                { "name": "t", "for": "range(", "args": { "a": { "b.c": "{% if %}" } } },
                { "name": "t", "for": "[1]", "as": "2x", "args": { "v": "{{ item }}" } },
            ] } },
            { "reply": { "error": { "kind": "sad" }, "text": "x" } },
            { "turn": { "from": 3, "to": 2 }, "reply": { "text": { "$for": "[1]", "x": 1 } } },
            7,
        ]
    }));
    let paths: Vec<&str> = seen.iter().map(|p| p.split(": ").next().unwrap()).collect();
    assert_eq!(
        paths,
        [
            "rule",
            "rules[0].role",
            "rules[0].turn",
            "rules[0].text",
            "rules[0].reply.text",
            "rules[1].turns",
            "rules[1].last.tool",
            "rules[1].last.error",
            "rules[1].reply",
            "rules[2].reply.delay",
            "rules[2].reply.usage.input",
            "rules[2].reply.tool_calls[0].name",
            "rules[2].reply.tool_calls[0].args",
            "rules[2].reply.tool_calls[1].as",
            "rules[2].reply.tool_calls[1]",
            "rules[2].reply.tool_calls[2].for",
            "rules[2].reply.tool_calls[2].args.a[\"b.c\"]",
            "rules[2].reply.tool_calls[3].as",
            "rules[2].reply.tool_calls[3].args.v",
            "rules[3].reply.text",
            "rules[3].reply.error.kind",
            "rules[4].turn",
            "rules[4].reply.text.x",
            "rules[4].reply.text",
            "rules[5]",
        ],
        "{seen:#?}"
    );
    let all = seen.join("\n");
    assert!(
        all.contains("there is no variable result; there are context, earlier, instruction, last"),
        "{all}"
    );
    assert!(all.contains("accepted are name, role, message, turn, text, last, when, reply"), "{all}");
}

#[test]
fn what_is_no_playbook_at_all_is_told() {
    for (json, want) in [
        ("", "the playbook: it is not JSON"),
        ("[]", "the playbook: it is []; accepted is an object with description, rules"),
        ("{}", "rules: it has to be a list of at least one rule"),
        ("{\"rules\": []}", "rules: it has to be a list of at least one rule"),
        ("{\"rules\": {}}", "rules: it has to be a list of at least one rule"),
    ] {
        let error = Playbook::from_json(json.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(want), "{error}");
    }
}

#[test]
fn filters_and_tests_that_there_are_not_are_told_when_the_playbook_is_read() {
    let read = |reply: serde_json::Value| Playbook::from_value(&json!({ "rules": [{ "reply": reply }] }));
    for (reply, want) in [
        (json!({ "text": "{{ turn | no_such }}" }), "rules[0].reply.text: there is no filter no_such"),
        (json!({ "text": "n: {{ turn | no_such(1) }}" }), "there is no filter no_such"),
        (json!({ "text": "{% filter no_such %}x{% endfilter %}" }), "there is no filter no_such"),
        (json!({ "text": "{% if turn is not no_such %}x{% endif %}" }), "there is no test no_such"),
        (
            json!({ "tool_calls": [{ "name": "t", "for": "results | no_such" }] }),
            "tool_calls[0].for: there is no filter",
        ),
    ] {
        let said = read(reply).unwrap_err().to_string();
        assert!(said.contains(want), "wanted {want:?} in {said:?}");
    }
    let fine = "{{ 'a|no_such' | upper | shell_quote }}{{ turn is divisibleby(2) }}{{ results | selectattr('error') | list }}";
    assert!(read(json!({ "text": fine })).is_ok());
}

#[test]
fn a_request_that_no_rule_answers_is_told_what_was_tried() {
    let book = playbook(json!([
        { "name": "first", "turn": 1, "reply": {} },
        { "role": "subagent", "reply": {} },
        { "last": "none", "reply": {} },
        { "text": "^never$", "reply": {} },
        { "last": { "tool": "subagent.run" }, "reply": {} },
        { "when": "turn > 5", "reply": {} },
    ]));
    let request = step(request("x"), &[("files_grep", json!({}), "r", true)]);
    let error = book.reply(&request, Role::Worker).reply.unwrap_err();
    assert_eq!(
        error.message,
        "no rule of the playbook answers this request (role worker, turn 2, last tool result an error from \
         files.grep); rules[0] `first`: for turn 1; rules[1]: for role subagent; rules[2]: for no tool result yet; \
         rules[3]: text does not match ^never$; rules[4]: last tool is not subagent.run; rules[5]: `when` does \
         not hold"
    );
}

#[test]
fn a_template_that_fails_names_its_rule_and_key() {
    let request = step(request("x"), &[("files_grep", json!({}), "{\"a\": 1}", false)]);
    for (reply, want) in [
        (
            json!({ "text": "{{ last.value.b }}" }),
            "playbook rules[0].reply.text: `last.value.b` is undefined",
        ),
        (json!({ "text": "n: {{ last.value.b }}" }), "playbook rules[0].reply.text: undefined value"),
        (json!({ "text": "line\n{{ last.value.b.c }}" }), "in line 2: `{{ last.value.b.c }}`"),
        (json!({ "text": "{{ [last.value.b] }}" }), "holds something"),
        (json!({ "text": "{{ results[7].value }}" }), "rules[0].reply.text: undefined value"),
        (json!({ "text": "{{ 'x' | fromjson }}" }), "is not JSON"),
        (json!({ "usage": { "input": "{{ 'x' }}" } }), "rules[0].reply.usage.input: it came out as \"x\""),
        (
            json!({ "tool_calls": [{ "name": "t", "args": "{{ 5 }}" }] }),
            "rules[0].reply.tool_calls[0].args: the",
        ),
        (
            json!({ "tool_calls": [{ "name": "t", "for": "turn" }] }),
            "tool_calls[0].for: it is number, and a list",
        ),
        (json!({ "tool_calls": [{ "name": "t", "for": "range(2000)" }] }), "more than 1024 calls"),
    ] {
        let said = failure(reply, &request);
        assert!(said.contains(want), "wanted {want:?} in {said:?}");
    }
    let named = playbook(json!([{ "name": "sum", "reply": { "text": "{{ last.value.b }}" } }]));
    let said = named.reply(&request, Role::Worker).reply.unwrap_err().message;
    assert!(said.contains("rules[0].reply.text: in rule `sum`: "), "{said}");
}

#[test]
fn a_template_without_end_is_stopped() {
    let request = request("x");
    for source in [
        "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
        "{% set ns = namespace(s='x') %}{% for a in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}",
        "x{{ 'x' * 10000000000 }}",
    ] {
        let said = failure(json!({ "text": source }), &request);
        assert!(said.contains("fuel") || said.contains("too"), "{said}");
    }
}

#[test]
fn what_a_tool_found_is_never_a_template() {
    let hostile = "{{ 7 * 7 }} {% for x in range(9) %}x{% endfor %} {# gone #}";
    let request = step(request(hostile), &[("files_grep", json!({}), hostile, false)]);
    assert_eq!(text(json!({ "text": "{{ prompt }}" }), &request), hostile);
    assert_eq!(text(json!({ "text": "a {{ last.value }}" }), &request), format!("a {hostile}"));
}
