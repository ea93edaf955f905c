//! An MCP server over streamable HTTP under a test's control: either era, and every way an answer can go wrong, chosen by
//! the name of the tool that is called. It shares no code with the client it is used against.
//!
//! Nothing here sleeps: what should come later waits for the test, or for the client to hang up. What a real server would
//! refuse is refused with a status that fails the test.

mod tools;
mod wire;

use crate::model_server::wire::{Tls, Wire};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use wire::{answer, head, request, until_closed};

/// Which era the server is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25, with sessions.
    Session,
    /// 2026-07-28.
    Stateless,
    /// The HTTP+SSE transport of 2024-11-05.
    Old,
}

/// What the server saw.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The HTTP method.
    pub verb: String,
    /// Names in small letters.
    pub headers: Vec<(String, String)>,
    /// The message, null where there is none.
    pub message: Value,
}

impl Seen {
    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    fn method(&self) -> &str {
        self.message["method"].as_str().unwrap_or_default()
    }
}

/// Tools whose calls go as their names say; `look` and `look_cut` are read-only.
const TOOLS: [&str; 15] = [
    "echo", "look", "look_cut", "cut", "html", "huge", "endless", "accepted", "twice", "stray", "change",
    "poll", "forget", "listed", "ask",
];

#[derive(Debug, Default)]
struct State {
    seen: Vec<Seen>,
    sessions: BTreeSet<String>,
    begun: usize,
    /// Tools beyond [`TOOLS`].
    more: Vec<String>,
    cuts: usize,
    /// Times that all lists had been read when they last changed.
    listed: usize,
    /// A start is not answered until this is lifted.
    held: bool,
}

/// A server on loopback.
pub struct HttpMcp {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    era: Era,
    tls: Option<Tls>,
    state: Mutex<State>,
    changed: Condvar,
}

impl HttpMcp {
    /// A server of this era.
    pub fn start(era: Era) -> HttpMcp {
        HttpMcp::with(era, State::default(), None)
    }

    /// The same behind TLS, under a certificate for these names that only its own authority vouches for.
    pub fn start_tls(era: Era, names: &[&str]) -> HttpMcp {
        HttpMcp::with(era, State::default(), Some(Tls::named(names)))
    }

    /// The same, whose first answer waits for [`HttpMcp::release`].
    pub fn start_held(era: Era) -> HttpMcp {
        HttpMcp::with(era, State { held: true, ..State::default() }, None)
    }

    fn with(era: Era, state: State, tls: Option<Tls>) -> HttpMcp {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared { era, tls, state: Mutex::new(state), changed: Condvar::new() });
        let served = Arc::clone(&shared);
        // The threads live as long as the test's process; a connection's ends with its one request.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&served);
                std::thread::spawn(move || {
                    // An error is a client that hung up.
                    let _gone = shared.serve(stream);
                });
            }
        });
        HttpMcp { address, shared }
    }

    /// Its address.
    pub fn url(&self) -> String {
        let scheme = if self.shared.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/mcp", self.address)
    }

    /// The certificate of its authority, PEM; what a client must trust.
    pub fn authority(&self) -> &str {
        self.shared.tls.as_ref().map_or("", |tls| tls.authority.as_str())
    }

    /// What it saw so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.state().seen.clone()
    }

    /// The methods of the messages it saw, and the HTTP methods of what held none.
    pub fn methods(&self) -> Vec<String> {
        let name = |seen: &Seen| match seen.method() {
            "" => seen.verb.clone(),
            method => method.to_owned(),
        };
        self.seen().iter().map(name).collect()
    }

    /// Forgets all sessions.
    pub fn forget(&self) {
        self.shared.state().sessions.clear();
    }

    /// Answers nothing from now on, until [`HttpMcp::release`].
    pub fn hold(&self) {
        self.shared.state().held = true;
    }

    /// Lets a held start go on.
    pub fn release(&self) {
        self.shared.state().held = false;
        self.shared.changed.notify_all();
    }
}

impl State {
    /// Times that all lists were read, to the last of them.
    fn times_listed(&self) -> usize {
        self.seen.iter().filter(|seen| seen.method() == "resources/templates/list").count()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let Some(mut stream) = Wire::new(stream, self.tls.as_ref()) else { return Ok(()) };
        let served = self.answered(&mut stream);
        stream.close();
        served
    }

    fn answered(&self, stream: &mut Wire) -> std::io::Result<()> {
        let Some(seen) = request(stream)? else { return Ok(()) };
        let mut state = self.state();
        state.seen.push(seen.clone());
        self.changed.notify_all();
        while state.held {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        match (self.era, seen.verb.as_str()) {
            (Era::Old, "GET") => {
                stream.write_all(&head(200, "text/event-stream", &[], None))?;
                stream.write_all(b"event: endpoint\ndata: /messages\n\n")?;
                until_closed(stream);
                Ok(())
            }
            (Era::Old, _) => answer(stream, 405, "text/plain", "Method Not Allowed"),
            (Era::Session, "GET") => self.listen(stream, &seen),
            (Era::Session, "DELETE") => {
                let known = seen.header("mcp-session-id").is_some_and(|id| self.state().sessions.remove(id));
                answer(stream, if known { 200 } else { 404 }, "", "")
            }
            (Era::Session, "POST") => self.session(stream, &seen),
            (Era::Stateless, "POST") => self.stateless(stream, &seen),
            (Era::Session | Era::Stateless, _) => answer(stream, 405, "", ""),
        }
    }

    fn session(&self, stream: &mut Wire, seen: &Seen) -> std::io::Result<()> {
        let id = &seen.message["id"];
        if seen.method() == "initialize" {
            let mut state = self.state();
            state.begun += 1;
            let session = format!("session-{}", state.begun);
            state.sessions.insert(session.clone());
            drop(state);
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}, "resources": {}}, "serverInfo": {"name": "fake", "version": "1"}});
            let body = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
            let session = ("Mcp-Session-Id", session.as_str());
            stream.write_all(&head(200, "application/json", &[session], Some(body.len())))?;
            return stream.write_all(body.as_bytes());
        }
        match seen.header("mcp-session-id") {
            None => {
                let body = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "Bad Request: no session"}});
                return answer(stream, 400, "application/json", &body.to_string());
            }
            Some(id) if !self.state().sessions.contains(id) => {
                let body = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": "Session not found"}});
                return answer(stream, 404, "application/json", &body.to_string());
            }
            Some(_) if seen.header("mcp-protocol-version") != Some("2025-11-25") => {
                return answer(stream, 400, "text/plain", "no MCP-Protocol-Version");
            }
            Some(_) => {}
        }
        if id.is_null() || seen.method().is_empty() {
            return answer(stream, 202, "", "");
        }
        self.result(stream, seen)
    }

    fn stateless(&self, stream: &mut Wire, seen: &Seen) -> std::io::Result<()> {
        let meta = &seen.message["params"]["_meta"];
        let version = meta["io.modelcontextprotocol/protocolVersion"].as_str();
        let method = Some(seen.method());
        let name = seen.message["params"].get("name").or_else(|| seen.message["params"].get("uri"));
        let mirrored = seen.header("mcp-protocol-version") == version
            && seen.header("mcp-method") == method
            && seen.header("mcp-name") == name.and_then(Value::as_str);
        if version != Some("2026-07-28") || !mirrored {
            let body = json!({"jsonrpc": "2.0", "id": seen.message["id"], "error": {"code": -32020, "message": "headers do not match"}});
            return answer(stream, 400, "application/json", &body.to_string());
        }
        self.result(stream, seen)
    }

    fn result(&self, stream: &mut Wire, seen: &Seen) -> std::io::Result<()> {
        let id = &seen.message["id"];
        let result = match seen.method() {
            "server/discover" => {
                json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                "capabilities": {"tools": {"listChanged": true}, "resources": {}},
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "fake", "version": "1"}}})
            }
            "tools/list" => {
                let state = self.state();
                let names = TOOLS.into_iter().map(str::to_owned).chain(state.more.iter().cloned());
                let tools: Vec<Value> = names
                    .map(|name| {
                        let hint = name.starts_with("look");
                        json!({"name": name, "description": "d", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": hint}})
                    })
                    .collect();
                json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"})
            }
            "resources/list" => {
                json!({"resources": [{"uri": "note://1", "name": "a note"}], "ttlMs": 0, "cacheScope": "private", "resultType": "complete"})
            }
            "resources/templates/list" => {
                json!({"resourceTemplates": [], "ttlMs": 0, "cacheScope": "private", "resultType": "complete"})
            }
            "resources/read" => {
                json!({"resultType": "complete", "contents": [{"uri": "note://1", "text": "what the note says"}], "ttlMs": 0, "cacheScope": "private"})
            }
            "subscriptions/listen" => return self.subscription(stream, id),
            "tools/call" => return self.call(stream, seen),
            _ => {
                let body = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}});
                return answer(stream, 404, "application/json", &body.to_string());
            }
        };
        let body = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        answer(stream, 200, "application/json", &body)
    }
}
