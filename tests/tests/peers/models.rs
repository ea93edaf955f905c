//! A server of models that nobody here wrote (aimock), in each dialect, in order and out of order.

use super::{AGENTD, peers};
use agentd_tests::kit::{Ended, RunCommand};
use agentd_tests::model_server::Speaks;
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running aimock; killed when it is dropped.
struct Aimock {
    process: Child,
    base: String,
    _folder: TempDir,
}

impl Aimock {
    /// One that has the model look into the folder and then answer; `flags` are its own.
    fn start(flags: &[&str]) -> Aimock {
        let folder = tempfile::tempdir().expect("a folder");
        let fixtures = folder.path().join("fixtures.json");
        let list = json!({"name": "files_list", "arguments": "{\"path\": \".\"}"});
        let matches = |answered: bool| json!({"userMessage": "look around", "hasToolResult": answered});
        let script = json!({"fixtures": [
            {"match": matches(false), "response": {"toolCalls": [list]}},
            {"match": matches(true), "response": {"content": "I have looked around."}},
        ]});
        fs::write(&fixtures, script.to_string()).expect("written");
        let cli = format!("{}/node_modules/@copilotkit/aimock/dist/cli.js", peers());
        let mut process = Command::new("node")
            .args([cli.as_str(), "-p", "0", "-f"])
            .arg(&fixtures)
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("node starts");
        let said = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut base = None;
        for line in said.lines().map_while(Result::ok) {
            if let Some((_, address)) = line.split_once("listening on ") {
                base = Some(format!("{}/v1", address.trim()));
                break;
            }
        }
        Aimock { process, base: base.expect("it says where it listens"), _folder: folder }
    }

    /// A run whose model it is.
    fn run(&self, speaks: Speaks) -> Ended {
        let run = RunCommand::new(AGENTD, "").write("root/a.txt", "text\n");
        let root = run.path("root").to_str().expect("UTF-8").to_owned();
        run.config(&format!("mcp: {{servers: [{{name: files, ns: files, builtin: files, root: {root:?}}}]}}"))
            .env("AGENTD_INTELLIGENCE_DIALECT", speaks.dialect())
            .env("AGENTD_INTELLIGENCE_ENDPOINTS", json!([self.base]).to_string())
            .env("AGENTD_INTELLIGENCE_MODEL", "the-model")
            .run("look around")
    }
}

impl Drop for Aimock {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _gone = self.process.wait();
    }
}

#[test]
fn a_run_with_a_tool_in_every_dialect() {
    let mock = Aimock::start(&["--chunk-size", "3"]);
    for speaks in Speaks::ALL {
        let ended = mock.run(speaks);
        assert_eq!((ended.code(), ended.stdout.as_str()), (0, "I have looked around.\n"), "{}", ended.log());
        assert!(ended.log().contains("files.list"), "{}", ended.log());
    }
}

#[test]
fn what_it_does_wrong_on_purpose_is_told_and_never_an_answer() {
    for (flag, word, speaks, code) in [
        ("--chaos-drop", "HTTP 500", Speaks::Openai, 4),
        ("--chaos-malformed", "not valid JSON", Speaks::Responses, 1),
        ("--chaos-disconnect", "closed in the middle", Speaks::Anthropic, 4),
        ("--chaos-ratelimit", "HTTP 429", Speaks::Anthropic, 4),
    ] {
        let ended = Aimock::start(&[flag, "1"]).run(speaks);
        assert_eq!((ended.code(), ended.stdout.as_str()), (code, ""), "{flag}: {}", ended.log());
        assert!(ended.log().contains(word) && ended.log().contains("3 attempts"), "{flag}: {}", ended.log());
    }
}
