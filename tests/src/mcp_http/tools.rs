//! What calls of the server's tools come to, and its streams.

use super::wire::{answer, head, until_closed};
use super::{Era, Seen, Shared};
use crate::model_server::wire::Wire;
use serde_json::{Value, json};
use std::io::Write;
use std::net::Shutdown;
use std::sync::PoisonError;

impl Shared {
    pub(super) fn call(&self, stream: &mut Wire, seen: &Seen) -> std::io::Result<()> {
        let (id, params) = (&seen.message["id"], &seen.message["params"]);
        let said = params["arguments"]["text"].as_str().unwrap_or("nothing");
        let result = |id: &Value, text: &str| {
            json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "content": [{"type": "text", "text": text}]}}).to_string()
        };
        let name = params["name"].as_str().unwrap_or_default();
        match name {
            "cut" | "look_cut" => {
                let mut state = self.state();
                let whole = name == "look_cut" && state.cuts > 0;
                state.cuts += usize::from(name == "look_cut");
                drop(state);
                if whole {
                    return answer(stream, 200, "application/json", &result(id, said));
                }
                let body = result(id, said);
                stream.write_all(&head(200, "application/json", &[], Some(body.len())))?;
                stream.write_all(&body.as_bytes()[..body.len() / 2])?;
                stream.socket().shutdown(Shutdown::Both)
            }
            "html" => answer(stream, 200, "text/html", "<html>a proxy's page</html>"),
            "huge" => {
                let body = result(id, &"x".repeat(9 << 20));
                answer(stream, 200, "application/json", &body)
            }
            "endless" => {
                stream.write_all(&head(200, "text/event-stream", &[], None))?;
                stream.write_all(b": alive\n\n")?;
                until_closed(stream);
                Ok(())
            }
            "accepted" => answer(stream, 202, "", ""),
            "twice" => {
                stream.write_all(&head(200, "text/event-stream", &[], None))?;
                let event = format!("data: {}\n\n", result(id, said));
                stream.write_all(format!("{event}{event}").as_bytes())
            }
            "stray" => {
                stream.write_all(&head(200, "text/event-stream", &[], None))?;
                let other = result(&json!(9_999), "somebody else's");
                stream.write_all(format!("data: {other}\n\ndata: {}\n\n", result(id, said)).as_bytes())
            }
            "change" => {
                let mut state = self.state();
                state.more.push("added".to_owned());
                state.listed = state.times_listed();
                drop(state);
                stream.write_all(&head(200, "text/event-stream", &[], None))?;
                let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
                stream.write_all(format!("data: {changed}\n\ndata: {}\n\n", result(id, said)).as_bytes())
            }
            // A session is gone with the answer that was made in it.
            "forget" => {
                self.state().sessions.clear();
                answer(stream, 200, "application/json", &result(id, said))
            }
            // Answers when all lists were read again.
            "listed" => {
                let mut state = self.state();
                while state.times_listed() <= state.listed {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                drop(state);
                answer(stream, 200, "application/json", &result(id, said))
            }
            "ask" => self.ask(stream, id, params),
            // The server hangs up first, and what it has to say is on the stream that is taken up again.
            "poll" if self.era == Era::Session => {
                self.state().more.push(result(id, said));
                stream.write_all(&head(200, "text/event-stream", &[], None))?;
                stream.write_all(b"id: here\nretry: 10\ndata:\n\n")
            }
            // In several pieces, with a message and a request of its own in between.
            "look" => {
                stream.write_all(&head(200, "text/event-stream", &[], None))?;
                let event = format!("event: message\r\ndata: {}\r\n\r\n", result(id, said));
                let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": id, "progress": 1}});
                stream.write_all(format!(": hello\n\ndata: {progress}\n\n").as_bytes())?;
                for piece in event.as_bytes().chunks(7) {
                    stream.write_all(piece)?;
                    stream.flush()?;
                }
                Ok(())
            }
            _ => answer(stream, 200, "application/json; charset=utf-8", &result(id, said)),
        }
    }

    /// Asks a person for a name before it greets them.
    fn ask(&self, stream: &mut Wire, id: &Value, params: &Value) -> std::io::Result<()> {
        let question = json!({"mode": "form", "message": "Who are you?", "requestedSchema": {"type": "object", "properties": {
            "name": {"type": "string"}, "title": {"type": "string", "default": "Dr"}}}});
        let answered = |reply: &Value| {
            let text = match reply["action"].as_str() {
                Some("accept") => format!("hello {} {}", reply["content"]["title"], reply["content"]["name"]),
                other => format!("they said {}", other.unwrap_or("nothing")),
            };
            json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "content": [{"type": "text", "text": text}]}})
        };
        if self.era == Era::Stateless {
            let body = match params.get("inputResponses") {
                Some(replies) if params["requestState"] == "s" => answered(&replies["who"]),
                Some(_) => {
                    json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "no state"}})
                }
                None => {
                    json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "input_required", "requestState": "s",
                    "inputRequests": {"who": {"method": "elicitation/create", "params": question}}}})
                }
            };
            return answer(stream, 200, "application/json", &body.to_string());
        }
        stream.write_all(&head(200, "text/event-stream", &[], None))?;
        let asks = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": question});
        stream.write_all(format!("data: {asks}\n\n").as_bytes())?;
        let mut state = self.state();
        let reply = loop {
            if let Some(reply) = state.seen.iter().find(|seen| seen.message["id"] == "q") {
                break reply.message["result"].clone();
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        drop(state);
        stream.write_all(format!("data: {}\n\n", answered(&reply)).as_bytes())
    }

    /// The stream for what is said unasked, or what is left of one that ended.
    pub(super) fn listen(&self, stream: &mut Wire, seen: &Seen) -> std::io::Result<()> {
        if seen.header("last-event-id") != Some("here") {
            return answer(stream, 405, "", "");
        }
        let Some(waiting) = self.state().more.pop() else { return answer(stream, 404, "", "") };
        stream.write_all(&head(200, "text/event-stream", &[], None))?;
        stream.write_all(format!("id: there\ndata: {waiting}\n\n").as_bytes())
    }

    pub(super) fn subscription(&self, stream: &mut Wire, id: &Value) -> std::io::Result<()> {
        stream.write_all(&head(200, "text/event-stream", &[], None))?;
        let params = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}, "notifications": {"toolsListChanged": true}});
        let taken =
            json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params});
        stream.write_all(format!("data: {taken}\n\n").as_bytes())?;
        until_closed(stream);
        Ok(())
    }
}
