//! The door for other people and programs: TCP with tokens, with and without TLS, and metrics.

use crate::stage::{daemon, text};
use agentd_tests::kit::Running;
use serde_json::{Value, json};

const OPS: &str = "ops-0123456789-abcdef";
const ANN: &str = "ann-0123456789-abcdef";

const PRINCIPALS: &str = "principals: [{id: ops, match: {token: \"{{secret:OPS}}\"}, role: operator}, \
                          {id: ann, match: {token: \"{{secret:ANN}}\"}}]";

fn curl(running: &Running, address: &str, token: &str, body: &Value) -> Value {
    let output = running
        .command("curl", &["-sS", "--cacert", "cert.pem", "-H", &format!("Authorization: Bearer {token}")])
        .args(["-H", "A2A-Version: 1.0", "-H", "Content-Type: application/json", "-d", &body.to_string()])
        .arg(format!("{address}/"))
        .output()
        .expect("curl runs");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn rpc(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn message(parts: Value) -> Value {
    rpc("SendMessage", json!({"message": {"messageId": "m1", "role": "ROLE_USER", "parts": parts}}))
}

#[test]
fn by_tls_an_operator_commands_and_a_user_asks() {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
    let running = daemon()
        .config(&format!(
            "a2a: {{listen: [\"https://127.0.0.1:0\"], tls: {{cert: cert.pem, key: key.pem}}, {PRINCIPALS}}}"
        ))
        .write("cert.pem", &made.cert.pem())
        .write("key.pem", &made.signing_key.serialize_pem())
        .env("OPS", OPS)
        .env("ANN", ANN)
        .serve();
    let address = running.address("https://");
    let told = curl(&running, &address, ANN, &message(json!([{"text": "hello"}])));
    assert_eq!(told["result"]["task"]["artifacts"][0]["parts"][0]["text"], "heard", "{told}");
    let ps = message(json!([{"data": {"agentd": {"op": "ps", "all": true}}}]));
    let refused = curl(&running, &address, ANN, &ps);
    assert_eq!(refused["error"]["data"][0]["reason"], "PERMISSION_DENIED", "{refused}");
    let told = curl(&running, &address, OPS, &ps);
    let runs = &told["result"]["message"]["parts"][0]["data"]["agentd"]["value"]["runs"];
    assert_eq!(runs[0]["role"], "worker", "{told}");
    // A large answer goes through TLS whole, and plain HTTP is no way in.
    let large = message(json!([{"text": "x".repeat(500_000)}]));
    let large = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage",
        "params": {"message": {"messageId": "m2", "role": "ROLE_USER", "parts": large["params"]["message"]["parts"]}}});
    std::fs::write(running.path("large.json"), large.to_string()).expect("written");
    let output = running
        .command("curl", &["-sS", "--cacert", "cert.pem", "-H", &format!("Authorization: Bearer {ANN}")])
        .args(["-H", "A2A-Version: 1.0", "-H", "Content-Type: application/json", "-d", "@large.json"])
        .arg(format!("{address}/"))
        .output()
        .expect("curl runs");
    let told: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let back = told["result"]["task"]["history"][0]["parts"][0]["text"].as_str().map(str::len);
    assert_eq!(back, Some(500_000));
    let plain =
        running.command("curl", &["-sS", &address.replace("https", "http")]).output().expect("curl runs");
    assert!(!plain.status.success(), "{plain:?}");
    running.signal(rustix::process::Signal::TERM);
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{}", ended.log());
}

#[test]
fn metrics_and_health_need_no_token_and_promise_what_they_say() {
    let running = daemon().config("observability: {metrics_addr: \"127.0.0.1:0\"}").serve();
    running.agentd(&["send", "root", "delegate"]);
    let address = running.address("http://");
    let base = address.trim_end_matches("/metrics");
    let get = |path: &str| {
        let output =
            running.command("curl", &["-sS", "-w", "%{http_code}", &format!("{base}{path}")]).output();
        text(&output.expect("curl runs").stdout)
    };
    assert_eq!(get("/healthz"), "ok\n200");
    assert_eq!(get("/readyz"), "ready\n200");
    assert!(get("/").ends_with("404"));
    let metrics = get("/metrics");
    for line in [
        "agentd_children_spawned_total{role=\"worker\"} 1",
        "agentd_children_spawned_total{role=\"subagent\"} 1",
        "agentd_children_exited_total{role=\"subagent\",status=\"completed\"} 1",
        "agentd_spawn_ready_seconds_count 2",
        "agentd_draining 0",
    ] {
        assert!(metrics.lines().any(|seen| seen == line), "{line} is not in\n{metrics}");
    }
    running.agentd(&["drain"]);
    assert_eq!(running.wait().code(), 0);
}
