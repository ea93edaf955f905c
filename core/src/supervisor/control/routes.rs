//! Which request is for whom: paths, methods, content types and tokens.

use super::super::{Core, daemon_note};
use crate::a2a::{self, CARD_PATH, Card, Rpc, RpcError};
use crate::action::Actions;
use crate::config::{Principal, PrincipalRole};
use crate::event::Door;
use crate::http::{Request, Response};
use crate::id::ConnId;
use crate::metrics::Counter;
use crate::note::Level;
use crate::session::{Denied, TOKEN_MARK, access};
use serde_json::Value;

/// What `/metrics` is.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

impl Core {
    /// One request of a connection. It is answered here, or waits.
    pub(super) fn route_request(&mut self, conn: ConnId, request: &Request, out: &mut Actions) {
        let Some(door) = self.surface.connections.get(&conn).map(|connection| connection.door()) else {
            return;
        };
        let response = match door {
            Door::Metrics => self.metrics_request(request),
            Door::Control | Door::Tcp => match (request.path.as_str(), request.method.as_str()) {
                (CARD_PATH, "GET" | "HEAD") => self.card(door, request),
                (CARD_PATH, _) => not_allowed("GET, HEAD"),
                ("/", "POST") => return self.call_request(conn, door, request, out),
                ("/", _) => not_allowed("POST"),
                _ => Response::text(404, &format!("there are / for calls and {CARD_PATH} here")),
            },
        };
        self.respond(conn, &response, out);
    }

    fn metrics_request(&mut self, request: &Request) -> Response {
        let ready = self.drain.is_none();
        match (request.path.as_str(), request.method.as_str()) {
            ("/metrics" | "/healthz" | "/readyz", method) if !matches!(method, "GET" | "HEAD") => {
                not_allowed("GET, HEAD")
            }
            ("/metrics", _) => Response::of(200, METRICS_TYPE, self.metrics_text()),
            ("/healthz", _) => Response::text(200, "ok"),
            ("/readyz", _) if ready => Response::text(200, "ready"),
            ("/readyz", _) => Response::text(503, "draining: no new work is taken"),
            _ => Response::text(404, "there are /metrics, /healthz and /readyz here"),
        }
    }

    /// The card names the address that its reader used, which is the one it can use again.
    fn card(&self, door: Door, request: &Request) -> Response {
        let host = request.header("host").and_then(|host| std::str::from_utf8(host).ok()).unwrap_or_default();
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-:[]_".contains(c);
        let host = if !host.is_empty() && host.chars().all(plain) { host } else { "localhost" };
        let scheme = match door {
            Door::Tcp if self.config.control.as_ref().is_some_and(|control| control.tls) => "https",
            Door::Tcp | Door::Control | Door::Metrics => "http",
        };
        let url = format!("{scheme}://{host}/");
        let description = self.config.instruction.lines().next().filter(|line| !line.trim().is_empty());
        let card = Card {
            agent: &self.config.agent,
            description: description.unwrap_or("An agent that delegates to supervised subagents."),
            version: env!("CARGO_PKG_VERSION"),
            url: &url,
        };
        Response::of(200, "application/json", card.json().to_string())
    }

    /// A call of A2A: whose it is, what it says, then what it asks.
    fn call_request(&mut self, conn: ConnId, door: Door, request: &Request, out: &mut Actions) {
        let Some(control) = &self.config.control else { return };
        let principal = match access::principal(door, request, control) {
            Ok(principal) => principal.clone(),
            Err(denied) => {
                let response = self.denied(door, &denied, out);
                return self.respond(conn, &response, out);
            }
        };
        if !is_json(request) {
            let response = Response::text(415, "the content of a call is application/json");
            return self.respond(conn, &response, out);
        }
        if request.body.contains(&TOKEN_MARK) {
            let why = "the content holds a token of this agentd, which no model is to read; leave it out";
            return self.respond(conn, &Response::text(400, why), out);
        }
        let rpc = match Rpc::read(&request.body) {
            Ok(rpc) => rpc,
            Err((id, error)) => return self.fail_call(conn, &id, &error, out),
        };
        let version = request.header(a2a::VERSION_HEADER);
        if !a2a::speaks(version) {
            return self.fail_call(conn, &rpc.id, &RpcError::version(version), out);
        }
        if let Err(error) = self.call(conn, &principal, &rpc, out) {
            self.fail_call(conn, &rpc.id, &error, out);
        }
    }

    fn denied(&mut self, door: Door, denied: &Denied, out: &mut Actions) -> Response {
        self.surface.metrics.count(Counter::TurnedAway, &[denied.word]);
        let note = daemon_note(Level::Warn, "operator.refused").with("door", door.name());
        out.push(note.with("why", denied.word).into());
        let response = Response::text(denied.status, denied.reason);
        if denied.status == 401 {
            response.with("WWW-Authenticate", "Bearer realm=\"agentd\"")
        } else {
            response
        }
    }

    /// Answers a call with an error.
    pub(super) fn fail_call(&mut self, conn: ConnId, id: &Value, error: &RpcError, out: &mut Actions) {
        let response = Response::of(200, "application/json", a2a::error(id, error));
        self.respond(conn, &response, out);
    }
}

/// Whether a principal may give commands.
pub(super) fn commands(principal: &Principal) -> bool {
    match principal.role {
        PrincipalRole::Operator => true,
        PrincipalRole::User => false,
    }
}

fn not_allowed(methods: &'static str) -> Response {
    Response::text(405, &format!("accepted here: {methods}")).with("Allow", methods)
}

fn is_json(request: &Request) -> bool {
    let value = request.header("content-type").unwrap_or_default();
    let kind = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    kind.eq_ignore_ascii_case(b"application/json")
}
