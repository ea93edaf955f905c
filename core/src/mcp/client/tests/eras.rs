//! Which era a server is of, and the stateless one over pipes.
use super::*;
use crate::mcp::elicit::{Form, Reply, content};
use crate::mcp::{READ_TOOL, STATELESS};

const DISCOVERED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2025-11-25","2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"m","version":"3"}},"ttlMs":0,"cacheScope":"private"}}"#;
const TOOLS: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","tools":[{"name":"echo","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}}"#;

fn new() -> Client {
    let info = ClientInfo { name: "agentd".into(), version: "1.2.3".into() };
    let mut client = Client::lines(info, at(0), MINUTE);
    client.start();
    client
}

/// A stateless server that is ready; ids from 4 on are free (3 is the subscription).
fn stateless() -> Client {
    let mut client = new();
    feed(&mut client, 1, DISCOVERED);
    feed(&mut client, 1, TOOLS);
    let out = drain(&mut client);
    assert!(out.iter().any(|o| matches!(o, Output::Ready { era: Era::Stateless, .. })), "{out:?}");
    client
}

fn methods(outputs: &[Output]) -> Vec<String> {
    sent(outputs).iter().filter_map(|m| m["method"].as_str().map(str::to_owned)).collect()
}

#[test]
fn a_stateless_server_is_asked_with_everything_in_each_request() {
    let mut client = new();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        "io.modelcontextprotocol/clientInfo": {"name": "agentd", "version": "1.2.3"},
    });
    let first = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}});
    assert_eq!(sent(&drain(&mut client)), [first]);
    feed(&mut client, 1, DISCOVERED);
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": meta}});
    assert_eq!(sent(&drain(&mut client)), [list], "no handshake to finish");
    feed(&mut client, 2, TOOLS);
    let out = drain(&mut client);
    let Some(Output::Ready { server_name, version, protocol, tools, .. }) = out.first() else {
        panic!("{out:?}")
    };
    assert_eq!(
        (server_name.as_str(), version.as_str(), protocol.as_str(), tools.len()),
        ("m", "3", STATELESS, 1)
    );
    let listen = &sent(&out)[0];
    assert_eq!(
        (&listen["method"], &listen["params"]["notifications"]),
        (&json!("subscriptions/listen"), &json!({"toolsListChanged": true}))
    );
    call(&mut client, 3, 7);
    let mut with_token = meta.clone();
    with_token["progressToken"] = json!(4);
    assert_eq!(
        sent(&drain(&mut client))[0]["params"],
        json!({"name": "echo", "arguments": {"text": "x"}, "_meta": with_token})
    );
    feed(
        &mut client,
        4,
        r#"{"jsonrpc":"2.0","id":4,"result":{"resultType":"complete","content":[{"type":"text","text":"hi"}]}}"#,
    );
    assert_eq!(answers(&drain(&mut client)), [(7, false, "hi".into())]);
    call(&mut client, 5, 8);
    client.cancel(8, "enough");
    assert_eq!(sent(&drain(&mut client))[1]["method"], "notifications/cancelled");
}

#[test]
fn anything_else_than_a_stateless_answer_begins_with_initialize() {
    for answer in [
        r#""error":{"code":-32601,"message":"Method not found"}"#,
        r#""error":{"code":-32602,"message":"Invalid request parameters"}"#,
        r#""error":{"code":-32002,"message":"not initialized"}"#,
        r#""error":"no""#,
        r#""result":{}"#,
        r#""result":null"#,
        r#""result":{"content":[]}"#,
        r#""result":{"supportedVersions":["2025-06-18"]}"#,
        r#""error":{"code":-32022,"message":"m","data":{"supported":["2025-11-25"],"requested":"2026-07-28"}}"#,
    ] {
        let mut client = new();
        drain(&mut client);
        feed(&mut client, 1, &format!(r#"{{"jsonrpc":"2.0","id":1,{answer}}}"#));
        assert_eq!(methods(&drain(&mut client)), ["initialize"], "{answer}");
        feed(&mut client, 1, &HELLO.replace("\"id\":1", "\"id\":2"));
        feed(&mut client, 1, &LIST.replace("\"id\":2", "\"id\":3"));
        let out = drain(&mut client);
        assert!(out.iter().any(|o| matches!(o, Output::Ready { era: Era::Initialize, .. })), "{answer}");
    }
}

#[test]
fn a_stateless_server_that_is_of_no_use_says_why() {
    for (answer, says) in [
        (r#""error":{"code":-32021,"message":"needs sampling"}"#, "needs sampling"),
        (r#""error":{"code":-32020,"message":"header mismatch"}"#, "header mismatch"),
        (r#""error":{"code":-32022,"message":"m","data":{"supported":["2027-01-01"]}}"#, "2027-01-01"),
        (r#""result":{"supportedVersions":["2027-01-01"]}"#, "2027-01-01"),
    ] {
        let mut client = new();
        feed(&mut client, 1, &format!(r#"{{"jsonrpc":"2.0","id":1,{answer}}}"#));
        let out = drain(&mut client);
        assert!(out.iter().any(|o| matches!(o, Output::Failed { error } if error.contains(says))), "{out:?}");
    }
    // One that refuses the version and names it is asked once more.
    let mut client = new();
    let again = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"m","data":{"supported":["2026-07-28"]}}}"#;
    feed(&mut client, 1, again);
    assert_eq!(methods(&drain(&mut client)), ["server/discover", "server/discover"]);
    feed(&mut client, 1, &again.replace("\"id\":1", "\"id\":2"));
    assert!(drain(&mut client).iter().any(|o| matches!(o, Output::Failed { .. })));
}

#[test]
fn silence_is_an_answer_too_and_a_late_one_still_counts() {
    let mut client = new();
    drain(&mut client);
    client.tick(at(1_999));
    assert_eq!(drain(&mut client), []);
    client.tick(at(2_000));
    assert_eq!(methods(&drain(&mut client)), ["initialize"]);
    // A slow server of the old era: its refusal of what it does not know changes nothing.
    feed(&mut client, 2_100, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"m"}}"#);
    assert_eq!(drain(&mut client), []);
    feed(&mut client, 2_200, &HELLO.replace("\"id\":1", "\"id\":2"));
    assert_eq!(methods(&drain(&mut client)), ["notifications/initialized", "tools/list"]);

    // A slow one of the new era, which does not know initialize.
    let mut slow = new();
    slow.tick(at(2_000));
    drain(&mut slow);
    feed(&mut slow, 2_100, DISCOVERED);
    feed(&mut slow, 2_100, r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"m"}}"#);
    let list = sent(&drain(&mut slow));
    assert_eq!((&list[0]["method"], list[0]["params"]["_meta"].is_object()), (&json!("tools/list"), true));
}

#[test]
fn what_the_server_asks_back_is_answered_in_a_new_request() {
    let mut client = stateless();
    call(&mut client, 2, 7);
    drain(&mut client);
    let asks = r#"{"jsonrpc":"2.0","id":4,"result":{"resultType":"input_required","requestState":"opaque","inputRequests":{
        "who":{"method":"elicitation/create","params":{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","default":"me"}}}}},
        "odd":{"method":"elicitation/create","params":{}}}}}"#.replace('\n', "");
    feed(&mut client, 3, &asks);
    let out = drain(&mut client);
    let [Output::Elicit { question, elicitation }] = &out[..] else { panic!("{out:?}") };
    assert_eq!(elicitation.message, "Who?");
    let Form::Fields(form) = &elicitation.form else { panic!("{elicitation:?}") };
    let content = content(form, &serde_json::Map::new()).unwrap();
    client.reply(at(4), question + 1, &Reply::Decline);
    assert_eq!(drain(&mut client), [], "nobody asked that");
    client.reply(at(4), *question, &Reply::Accept(content));
    client.reply(at(4), *question, &Reply::Decline);
    let again = sent(&drain(&mut client));
    assert_eq!(again.len(), 1);
    assert_eq!((again[0]["id"].as_u64(), &again[0]["params"]["requestState"]), (Some(5), &json!("opaque")));
    assert_eq!(
        again[0]["params"]["inputResponses"],
        json!({"who": {"action": "accept", "content": {"name": "me"}}, "odd": {"action": "cancel"}})
    );
    feed(&mut client, 5, r#"{"jsonrpc":"2.0","id":4,"result":{"content":[]}}"#);
    assert_eq!(answers(&drain(&mut client)), [], "the old id is no call's any more");
    feed(&mut client, 5, &result(5, "done"));
    assert_eq!(answers(&drain(&mut client)), [(7, false, "done".into())]);
}

#[test]
fn a_server_that_asks_back_for_ever_is_given_up() {
    let mut client = stateless();
    call(&mut client, 2, 7);
    for id in 4.. {
        drain(&mut client);
        feed(
            &mut client,
            3,
            &format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required","requestState":"s"}}}}"#
            ),
        );
        let out = drain(&mut client);
        if let [(7, true, said)] = &answers(&out)[..] {
            assert!(said.contains("more than 8 times"), "{said}");
            assert_eq!(id, 4 + u64::from(limits::MCP_INPUT_ROUNDS));
            break;
        }
        let again = sent(&out);
        assert!(
            again[0]["params"].get("inputResponses").is_none() && again[0]["params"]["requestState"] == "s"
        );
    }
    for (asks, says) in [
        (r#"{"resultType":"input_required"}"#, "without saying what"),
        (r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}"#, "roots/list"),
        (r#"{"resultType":"input_required","inputRequests":7}"#, "cannot be read"),
        (r#"{"resultType":"later"}"#, "\"later\""),
    ] {
        let mut client = stateless();
        call(&mut client, 2, 1);
        feed(&mut client, 3, &format!(r#"{{"jsonrpc":"2.0","id":4,"result":{asks}}}"#));
        let out = drain(&mut client);
        assert!(matches!(&answers(&out)[..], [(1, true, said)] if said.contains(says)), "{asks}: {out:?}");
    }
}

#[test]
fn a_question_in_the_middle_of_a_call_goes_to_a_person() {
    let mut client = ready();
    call(&mut client, 0, 1);
    drain(&mut client);
    let ask = r#"{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"ok?","requestedSchema":{"type":"object","properties":{}}}}"#;
    feed(&mut client, 1, ask);
    let out = drain(&mut client);
    let [Output::Elicit { question, .. }] = out[..] else { panic!("{out:?}") };
    client.reply(at(2), question, &Reply::Decline);
    assert_eq!(
        sent(&drain(&mut client)),
        [json!({"jsonrpc": "2.0", "id": "q1", "result": {"action": "decline"}})]
    );
    for n in 0..50 {
        feed(&mut client, 3, &ask.replace("q1", &format!("r{n}")));
    }
    let out = drain(&mut client);
    let asked = out.iter().filter(|o| matches!(o, Output::Elicit { .. })).count();
    assert_eq!((asked, sent(&out).len()), (limits::MCP_ELICITATIONS, 50 - limits::MCP_ELICITATIONS));
    assert!(sent(&out).iter().all(|m| m["result"]["action"] == "cancel"));
    feed(&mut client, 4, &result(3, "alive"));
    assert_eq!(answers(&drain(&mut client)), [(1, false, "alive".into())]);
}

#[test]
fn lists_that_changed_are_read_again_and_not_too_often() {
    for mut client in [ready(), stateless()] {
        let first = if client.is_stateless() { 4 } else { 3 };
        for _ in 0..100 {
            feed(&mut client, 10, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
        }
        assert_eq!(drain(&mut client), []);
        let due = client.poll_timeout().unwrap();
        assert_eq!(due, at(1_001));
        client.tick(due);
        assert_eq!(methods(&drain(&mut client)), ["tools/list"]);
        // Calls go on meanwhile, and a change meanwhile is not lost.
        call(&mut client, 1_002, 1);
        feed(&mut client, 1_002, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
        drain(&mut client);
        let list = format!(
            r#"{{"jsonrpc":"2.0","id":{first},"result":{{"tools":[{{"name":"new"}},{{"name":"echo"}}]}}}}"#
        );
        feed(&mut client, 1_003, &list);
        let out = drain(&mut client);
        let Some(Output::Changed { tools, .. }) = out.iter().find(|o| matches!(o, Output::Changed { .. }))
        else {
            panic!("{out:?}")
        };
        assert_eq!(tools.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["new", "echo"]);
        assert_eq!(client.poll_timeout(), Some(at(2_001)));
        client.tick(at(2_001));
        assert_eq!(methods(&drain(&mut client)), ["tools/list"]);
        // One that fails leaves the old list, and the server, in use.
        feed(
            &mut client,
            2_002,
            &format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":1,"message":"m"}}}}"#, first + 2),
        );
        assert_eq!(events(&drain(&mut client)), ["mcp.tools.stale"]);
        feed(&mut client, 2_003, &result(first + 1, "alive"));
        assert_eq!(answers(&drain(&mut client)), [(1, false, "alive".into())]);
    }
}

#[test]
fn resources_are_read_by_a_tool_that_says_what_there_is() {
    let mut client = fresh();
    feed(&mut client, 1, &HELLO.replace(r#""tools":{}"#, r#""tools":{},"resources":{}"#));
    feed(&mut client, 1, LIST);
    feed(&mut client, 1, r#"{"jsonrpc":"2.0","id":3,"result":{"resources":[{"uri":"a://1","name":"one"}]}}"#);
    feed(&mut client, 1, r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"no templates"}}"#);
    let out = drain(&mut client);
    assert_eq!(
        methods(&out),
        [
            "initialize",
            "notifications/initialized",
            "tools/list",
            "resources/list",
            "resources/templates/list"
        ]
    );
    let Some(Output::Ready { tools, resources, .. }) = out.iter().find(|o| matches!(o, Output::Ready { .. }))
    else {
        panic!("{out:?}")
    };
    assert_eq!((tools.len(), resources.len()), (2, 1));
    assert!(tools[1].name == READ_TOOL && tools[1].description.contains("a://1: one"));
    let read = |client: &mut Client, key, args: serde_json::Value| {
        client.call(at(2), key, READ_TOOL, &Json::of(&args), MINUTE);
        drain(client)
    };
    for args in [json!({}), json!({"uri": 7}), json!({"uri": ""}), json!({"uri": "a://1", "x": 1})] {
        let out = read(&mut client, 1, args);
        assert!(sent(&out).is_empty() && answers(&out)[0].1, "{out:?}");
    }
    let out = read(&mut client, 2, json!({"uri": "a://1"}));
    assert_eq!(
        (&sent(&out)[0]["method"], &sent(&out)[0]["params"]["uri"]),
        (&json!("resources/read"), &json!("a://1"))
    );
    feed(&mut client, 3, r#"{"jsonrpc":"2.0","id":5,"result":{"contents":[{"uri":"a://1","text":"body"}]}}"#);
    assert_eq!(answers(&drain(&mut client)), [(2, false, "body".into())]);
    read(&mut client, 3, json!({"uri": "a://2"}));
    feed(&mut client, 3, r#"{"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"no such resource"}}"#);
    assert!(
        matches!(&answers(&drain(&mut client))[..], [(3, true, said)] if said.contains("`a://2`") && said.contains("no such"))
    );
}

#[test]
fn a_servers_own_tool_of_that_name_stays_its_own() {
    let mut client = fresh();
    feed(&mut client, 1, &HELLO.replace(r#""tools":{}"#, r#""tools":{},"resources":{}"#));
    feed(&mut client, 1, &LIST.replace("\"echo\"", "\"resource.read\""));
    feed(&mut client, 1, r#"{"jsonrpc":"2.0","id":3,"result":{"resources":[{"uri":"a://1"}]}}"#);
    feed(&mut client, 1, r#"{"jsonrpc":"2.0","id":4,"result":{"resourceTemplates":[]}}"#);
    drain(&mut client);
    client.call(at(2), 1, READ_TOOL, &Json::of(&json!({})), MINUTE);
    assert_eq!(sent(&drain(&mut client))[0]["method"], "tools/call");
}

#[test]
fn a_program_that_ended_over_the_first_request_is_spoken_to_as_older_ones_expect() {
    let begun = |answer: Option<&str>| {
        let mut client = new();
        drain(&mut client);
        if let Some(line) = answer {
            feed(&mut client, 1, line);
        }
        // Half a line, and a word that never went out.
        client.received(at(1), b"{\"jsonrpc\":\"2.0\",");
        assert!(client.may_begin_again());
        client.begin_again(at(2));
        let out = drain(&mut client);
        assert_eq!(methods(&out), ["initialize"], "{answer:?}");
        (client, sent(&out)[0]["id"].clone())
    };
    let refused = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"m"}}"#;
    for answer in [None, Some(refused)] {
        let (mut client, id) = begun(answer);
        feed(&mut client, 3, &HELLO.replace("\"id\":1", &format!("\"id\":{id}")));
        assert_eq!(methods(&drain(&mut client)), ["notifications/initialized", "tools/list"]);
        // Only once.
        assert!(!client.may_begin_again());
        let (mut client, _) = begun(answer);
        assert!(!client.may_begin_again());
        client.begin_again(at(3));
        assert_eq!(drain(&mut client), []);
        // The time for the start is that of the first one.
        client.tick(at(59_999));
        assert_eq!(drain(&mut client), []);
        client.tick(at(60_000));
        assert!(drain(&mut client).iter().any(|o| matches!(o, Output::Failed { .. })));
    }
    // A server that was usable, or of which the era is known, is not begun with again.
    assert!(!stateless().may_begin_again());
    let info = ClientInfo { name: "agentd".into(), version: "1".into() };
    let mut told = Client::lines(info, at(0), MINUTE).only(Era::Stateless);
    told.start();
    assert!(!told.may_begin_again());
}

/// What was not declared is refused with the protocol's own code, and told; a form is declined by whoever answers.
#[test]
fn a_question_of_a_mode_that_was_not_declared_is_refused() {
    let (mut client, id) = {
        let mut client = new();
        client.tick(at(2_000));
        let out = drain(&mut client);
        (client, sent(&out)[0]["id"].clone())
    };
    feed(&mut client, 2_100, &HELLO.replace("\"id\":1", &format!("\"id\":{id}")));
    drain(&mut client);
    let ask = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"mode":"url","message":"Sign in","url":"https://a.example","elicitationId":"e"}}"#;
    feed(&mut client, 2_200, ask);
    let out = drain(&mut client);
    let reply = &sent(&out)[0];
    assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!("q"), &json!(-32602)));
    let told = |o: &Output| matches!(o, Output::Log { event: "mcp.elicitation.declined", text, .. } if text.contains("Sign in"));
    assert!(out.iter().any(told), "{out:?}");
    assert!(!out.iter().any(|o| matches!(o, Output::Elicit { .. })));
}
