//! What a server sends without being asked: its own requests and its notifications, both bounded.

use super::{Asker, Client};
use crate::limits;
use crate::mcp::elicit::{self, Elicitation, Form, Reply};
use crate::mcp::jsonrpc;
use crate::mcp::preview::words;
use crate::mcp::tally::Skipped;
use crate::note::Level;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

impl Client {
    /// A request of the server. `ping` is answered and a question passed on; sampling and roots are not offered.
    pub(super) fn asked(&mut self, id: &RawValue, method: &str, params: Option<&RawValue>) {
        if id.get().len() > limits::MCP_REQUEST_ID_BYTES || !self.tally.may_reply(self.now) {
            return self.skip(Skipped::Unanswered, "a request of the server was not answered", method);
        }
        let reply = match method {
            "ping" => jsonrpc::result(id, &json!({})),
            // Asked back about a call, the stateless era does that in the call's answer.
            "elicitation/create" if !self.is_stateless() => match elicit::read(params) {
                // Only forms are declared, and what is not has to be refused, not declined.
                Some(Elicitation { form: Form::Address(_), message }) => {
                    let text = format!(
                        "the server wanted a person to go to an address, which agentd does not offer: {message:?}"
                    );
                    self.log(Level::Warn, "mcp.elicitation.declined", text);
                    jsonrpc::invalid_params(id, "elicitation of mode url was not declared")
                }
                Some(question) if self.questions.len() < limits::MCP_ELICITATIONS => {
                    return self.question(Asker::Request(id.to_owned()), question);
                }
                Some(_) | None => jsonrpc::result(id, &Reply::Cancel.result()),
            },
            other => {
                self.skip(
                    Skipped::Refused,
                    "a request of the server was answered with method-not-found",
                    other,
                );
                jsonrpc::method_not_found(id, other)
            }
        };
        self.send(reply);
    }

    pub(super) fn notified(&mut self, method: &str, params: Option<&RawValue>) {
        self.listening.heard();
        match method {
            "notifications/progress" => self.progressed(params),
            "notifications/message" if self.tally.may_log(self.now) => {
                let text = params.map(|p| words(p, limits::PREVIEW_BYTES)).unwrap_or_default();
                self.log(Level::Debug, "mcp.message", text);
            }
            "notifications/message" => {
                self.skip(Skipped::Message, "log messages of the server came too fast", "")
            }
            "notifications/tools/list_changed" | "notifications/resources/list_changed" => self.changed(),
            "notifications/subscriptions/acknowledged" => {}
            other => self.skip(Skipped::Notification, "a notification was ignored", other),
        }
    }

    fn progressed(&mut self, params: Option<&RawValue>) {
        let params = params.and_then(|p| jsonrpc::object::<Progress<'_>>(p.get()).ok());
        let id = params.and_then(|p| jsonrpc::own_id(p.token));
        match id.and_then(|id| self.calls.progress(id, self.now)) {
            Some((key, true)) => self.out.push_back(crate::mcp::Output::Progress { key }),
            Some((_, false)) => {}
            None => self.skip(Skipped::Notification, "progress of a call that is not open was ignored", ""),
        }
    }
}

#[derive(Deserialize)]
struct Progress<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: &'a RawValue,
}
