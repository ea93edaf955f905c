//! `agentd model probe` against providers that this test controls.

use crate::place::{Place, said};
use agentd_tests::model_server::{Answer, ModelServer, Speaks};
use serde_json::{Value, json};
use std::process::{Child, Stdio};

const KEY: &str = "sk-canary-0123456789";

/// A place whose model is at these addresses.
fn place(speaks: Speaks, bases: &[String]) -> Place {
    let place = Place::new();
    let endpoints = json!(bases);
    let text = format!(
        "intelligence: {{dialect: {}, model: the-model, endpoints: {endpoints}, token: \"{{{{secret:PROBE_KEY}}}}\", models: {{other: {{model: n}}}}}}\n",
        speaks.dialect()
    );
    place.write("agentd.yaml", &text);
    place
}

fn start(place: &Place, args: &[&str]) -> Child {
    let mut command = place.command(&[&["model", "probe"][..], args].concat());
    command
        .env("PROBE_KEY", KEY)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("agentd starts")
}

fn called() -> Answer {
    Answer::text("").call("a", "report_ready", "{\"ready\":true}").usage(31, 18)
}

#[test]
fn what_works_is_told_endpoint_by_endpoint_in_every_dialect() {
    for speaks in Speaks::ALL {
        let (one, two) = (ModelServer::start(speaks), ModelServer::start(speaks));
        let place = place(speaks, &[one.base(), two.base()]);
        let probing = start(&place, &[]);
        let asked = one.next().answer(&called());
        assert_eq!(asked.tools(), ["report_ready"]);
        two.next().json(200, &Answer::text("ready").whole(speaks));
        let ran = said(probing.wait_with_output().expect("it ends"));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let (first, second) = ran.out.split_once(&format!("\n{}: works\n", two.base())).expect("two");
        for line in ["streaming   yes", "tool calls  called", "credential  accepted", "31 tokens in, 18 out"]
        {
            assert!(first.contains(line), "{line}: {first}");
        }
        for line in ["no, the answer came in one piece", "the tool was not called", "none, on this machine"] {
            assert!(second.contains(line), "{line}: {second}");
        }
        assert!(!format!("{}{}", ran.out, ran.err).contains("canary"));
    }
}

#[test]
fn what_does_not_work_says_why_and_the_worst_decides_the_code() {
    let speaks = Speaks::Openai;
    let (one, two) = (ModelServer::start(speaks), ModelServer::start(speaks));
    let place = place(speaks, &[one.base(), two.base()]);
    let probing = start(&place, &["--json"]);
    let error = |kind: &str, message: &str| json!({"error": {"type": kind, "message": message}});
    one.next().json(401, &error("authentication_error", &format!("Incorrect API key: {KEY}")));
    two.next().answer(&called());
    let ran = said(probing.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert!(!format!("{}{}", ran.out, ran.err).contains("canary"), "{}", ran.out);
    let told: Value = serde_json::from_str(&ran.out).expect("one JSON object");
    let [bad, good] = [&told["endpoints"][0], &told["endpoints"][1]];
    assert_eq!(
        (&bad["works"], &bad["status"], &bad["credential"]),
        (&json!(false), &json!(401), &json!("rejected"))
    );
    assert_eq!((&bad["error"]["kind"], &bad["usage"]), (&json!("credential"), &Value::Null));
    assert_eq!((&good["works"], &good["tool_calls"]), (&json!(true), &json!("called")));
    assert_eq!(good["usage"], json!({"input": 31, "output": 18}));

    // A server that takes no tools, and one that asks to be asked in another way.
    let probing = start(&place, &[]);
    one.next().json(400, &error("invalid_request_error", "tools are not supported by this model"));
    let plain = one.next().answer(&Answer::text("ready"));
    assert!(plain.tools().is_empty());
    let strange = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    two.next().json(400, &error("invalid_request_error", strange));
    let again = two.next().answer(&called());
    assert!(again.body["max_completion_tokens"].is_u64());
    let ran = said(probing.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("not accepted: HTTP 400: tools are not supported"), "{}", ran.out);
    assert!(ran.out.contains("not reported, so it is estimated"), "{}", ran.out);
}

#[test]
fn a_model_that_cannot_be_asked_has_its_code() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let dead = format!("http://{}/v1", nobody.local_addr().expect("an address"));
    drop(nobody);
    let place = place(Speaks::Openai, std::slice::from_ref(&dead));
    let ran = said(start(&place, &[]).wait_with_output().expect("it ends"));
    assert_eq!(ran.code, Some(4), "{}", ran.out);
    assert!(ran.out.contains(&format!("{dead}: does not work: connection refused")), "{}", ran.out);
    let ran = said(start(&place, &["huge"]).wait_with_output().expect("it ends"));
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
    assert!(ran.err.contains("there is no model huge; there are other, the-model"), "{}", ran.err);
    let without = place.agentd(&["model", "probe"]);
    assert_eq!(without.code, Some(4), "no key: {}", without.err);

    let scripted = Place::new();
    scripted.write("agentd.yaml", "intelligence: {dialect: mock, endpoints: [\"mock:builtin\"]}\n");
    let ran = scripted.agentd(&["model", "probe"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("follows a playbook"), "{}", ran.out);
}
