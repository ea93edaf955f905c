//! The file server over real folders.

use super::root::Root;
use super::rpc::Server;
use super::serve;
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

mod editing;
mod escapes;
mod grep;
mod protocol;
mod reading;

/// Most bytes of any result, whatever the folder holds: it enters a model's window whole.
const RESULT: usize = 64 * 1024;

struct Session {
    dir: TempDir,
    server: Server,
}

impl Session {
    fn new(write: bool) -> Session {
        let dir = TempDir::new().unwrap();
        std::fs::create_dir(dir.path().join("root")).unwrap();
        let server = Server::new(Root::open(&dir.path().join("root")).unwrap(), write);
        Session { dir, server }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join("root").join(name)
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// The structured result, or the words of the failure.
    fn call(&mut self, tool: &str, args: Value) -> Result<Value, String> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": args}});
        let answer: Value =
            serde_json::from_slice(&self.server.answer(request.to_string().as_bytes()).unwrap()).unwrap();
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        assert!(text.len() < RESULT, "{tool}: {} bytes", text.len());
        if result["isError"] == true {
            return Err(text);
        }
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), result["structuredContent"]);
        Ok(result["structuredContent"].clone())
    }

    fn ok(&mut self, tool: &str, args: Value) -> Value {
        self.call(tool, args.clone()).unwrap_or_else(|e| panic!("{tool} {args}: {e}"))
    }

    fn err(&mut self, tool: &str, args: Value) -> String {
        match self.call(tool, args.clone()) {
            Ok(value) => panic!("{tool} {args}: {value}"),
            Err(text) => text,
        }
    }
}

/// Runs whole input through `serve`; the answers by line.
fn served(root: &Path, input: &[u8]) -> std::io::Result<Vec<Value>> {
    let mut output = Vec::new();
    serve(root, false, input, &mut output)?;
    Ok(output
        .split(|b| *b == b'\n')
        .filter(|l| !l.is_empty())
        .map(|l| serde_json::from_slice(l).unwrap())
        .collect())
}
