//! What a child sends, and what it makes of answers that are in order.

use super::{KEY, Tools, asking, change, usages};
use crate::rig::Rig;
use agentd_tests::model_server::{Answer, ModelServer, Speaks};
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader};

#[test]
fn a_run_with_a_tool_in_every_dialect() {
    for speaks in Speaks::ALL {
        let (server, tools) = (ModelServer::start(speaks), Tools::new());
        let mut rig =
            Rig::start(tools.give(asking(&server)).change(|spawn| spawn.system = "Be brief.".into()));
        let call = Answer::text("I look.").call("id-1", "fake_echo", "{\"text\":\"zwölf\"}").usage(100, 20);
        let first = server.next().answer(&call);
        assert_eq!(first.body["model"], "the-model");
        assert_eq!(first.body["stream"], true);
        assert!(first.tools().contains(&"fake_echo"), "{:?}", first.tools());
        assert_eq!(first.last_text(), "Do the thing.");
        let system = "Be brief.\n\nOnly your last message reaches whoever asked for this work, so it must hold the whole \
                      answer.";
        match speaks {
            Speaks::Openai => {
                assert_eq!(first.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
                assert_eq!(first.messages()[0], json!({"role": "system", "content": system}));
            }
            Speaks::Responses => {
                assert_eq!(first.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
                assert_eq!(first.body["instructions"], system);
                assert_eq!(first.body["store"], false);
            }
            Speaks::Anthropic => {
                assert_eq!(first.header("x-api-key"), Some(KEY));
                assert_eq!(first.body["system"], system);
            }
        }
        let second = server.next().answer(&Answer::text("done").usage(150, 5));
        assert_eq!(second.results(), [("id-1".to_owned(), "zwölf".to_owned())]);
        assert_eq!(rig.completed(), "done");
        assert_eq!(usages(&rig), [(100, 20, false), (150, 5, false)]);
        assert!(rig.end().0.success());
        assert_eq!(tools.calls(), [("echo".to_owned(), json!({"text": "zwölf"}))]);
    }
}

#[test]
fn an_answer_in_one_piece_is_an_answer() {
    for speaks in Speaks::ALL {
        let (server, tools) = (ModelServer::start(speaks), Tools::new());
        let mut rig = Rig::start(tools.give(asking(&server)));
        let call = Answer::text("").call("a", "fake_echo", "{\"text\":\"x\"}").usage(9, 9);
        server.next().json(200, &call.whole(speaks));
        server.next().json(200, &Answer::text("done").usage(10, 2).whole(speaks));
        assert_eq!(rig.completed(), "done");
        assert_eq!(usages(&rig), [(9, 9, false), (10, 2, false)]);
        assert!(rig.end().0.success());
        assert_eq!(tools.calls().len(), 1);
    }
}

#[test]
fn bytes_come_one_at_a_time() {
    for speaks in Speaks::ALL {
        let server = ModelServer::start(speaks);
        let mut rig = Rig::start(asking(&server));
        let mut stream = server.next().stream();
        for byte in Answer::text("zwölf €").stream(speaks).bytes() {
            stream.send([byte]);
        }
        stream.end();
        assert_eq!(rig.completed(), "zwölf €");
        assert!(rig.end().0.success());
    }
}

#[test]
fn what_comes_after_the_last_event_is_not_waited_for() {
    for speaks in Speaks::ALL {
        let server = ModelServer::start(speaks);
        let mut rig = Rig::start(asking(&server));
        let mut stream = server.next().stream();
        stream.send(Answer::text("done").stream(speaks));
        assert_eq!(rig.completed(), "done");
        stream.until_closed();
        assert!(rig.end().0.success());
    }
}

#[test]
fn headers_of_the_configuration_are_sent() {
    let server = ModelServer::start(Speaks::Openai);
    let run = change(asking(&server), |remote| {
        remote.headers.insert("X-Title".into(), "agents".into());
        remote.max_output = Some(77);
    });
    let mut rig = Rig::start(run);
    let request = server.next().answer(&Answer::text("done"));
    assert_eq!(request.header("x-title"), Some("agents"));
    assert_eq!(request.body["max_tokens"], 77);
    assert_eq!(rig.completed(), "done");
    assert!(rig.end().0.success());
}

#[test]
fn the_key_is_nowhere_but_in_the_request() {
    for speaks in Speaks::ALL {
        let server = ModelServer::start(speaks);
        let mut rig = Rig::start(asking(&server));
        let exchange = server.next();
        for file in ["cmdline", "environ"] {
            let seen = fs::read(format!("/proc/{}/{file}", rig.pid())).expect("readable");
            assert!(!String::from_utf8_lossy(&seen).contains(KEY), "{file}");
        }
        let cut = format!("{{\"error\": {{\"message\": \"{} Incorrect API key: {KEY}\"}}}}", "x".repeat(370));
        exchange.whole(401, &[], &cut);
        let failed = rig.failed();
        assert!(!failed.error.contains("sk-canary"), "{}", failed.error);
        let frames = format!("{:?}", rig.seen);
        assert!(!frames.contains("sk-canary"), "{frames}");
        let (status, stderr) = rig.end();
        assert!(status.success() && !stderr.contains("sk-canary"), "{stderr}");
    }
}

#[test]
fn no_proxy_is_asked_for_what_is_on_this_machine() {
    use crate::rig::{AGENTD, tag};
    use agentd_core::wire::Down;
    let server = ModelServer::start(Speaks::Openai);
    let mut command = std::process::Command::new(AGENTD);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env(name, "http://127.0.0.1:1").env(name.to_lowercase(), "http://127.0.0.1:1");
    }
    let mut rig = Rig::bare(command, tag());
    rig.send(&Down::Spawn(Box::new(asking(&server).spawn)));
    server.next().answer(&Answer::text("done"));
    assert_eq!(rig.completed(), "done");
    assert!(rig.end().0.success());
}

#[test]
fn a_person_can_stand_in_for_a_provider_with_a_script() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("script.json");
    let replies = json!([
        {"status": 429, "retry_after": "0"},
        {"calls": [{"name": "fake_echo", "args": {"text": "over there"}}], "usage": [100, 8]},
        {"when": "over there", "text": "done", "times": 0},
    ]);
    for speaks in Speaks::ALL {
        let text =
            json!({"dialect": speaks.dialect(), "models": ["the-model"], "replies": replies}).to_string();
        fs::write(&script, text).expect("written");
        let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_fake-model"))
            .arg(&script)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut base = String::new();
        BufReader::new(program.stdout.take().expect("a pipe")).read_line(&mut base).expect("an address");
        let tools = Tools::new();
        let mut rig = Rig::start(tools.give(super::run(speaks, &[base.trim()])));
        assert_eq!(rig.completed(), "done");
        assert_eq!(rig.events("model.retry").len(), 1);
        assert!(rig.end().0.success());
        program.kill().expect("killed");
        program.wait().expect("reaped");
    }
}
