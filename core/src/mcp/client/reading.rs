//! What a message of the server is, and whose it is.

use super::Client;
use crate::limits;
use crate::mcp::handshake::BATCHING;
use crate::mcp::jsonrpc::{self, Answer, First, Incoming};
use crate::mcp::tally::Skipped;

impl Client {
    /// One line, one body or one event: a message, or in one version a batch of them.
    pub(super) fn text(&mut self, text: &str) {
        let batching = self.hello().is_some_and(|hello| hello.protocol == BATCHING);
        if batching && text.trim_start().starts_with('[') {
            self.batch(text);
        } else {
            self.message(text);
        }
    }

    fn batch(&mut self, text: &str) {
        let Ok(batch) = serde_json::from_str::<First<'_, { limits::MCP_BATCH }>>(text) else {
            return self.skip(Skipped::Junk, "a line from the server is not JSON", text);
        };
        for raw in batch.items {
            self.message(raw.get());
        }
        if batch.more > 0 {
            self.skip(Skipped::Junk, "a batch is longer than is read", text);
        }
    }

    fn message(&mut self, text: &str) {
        match jsonrpc::read(text) {
            Ok(Incoming::Response { id, answer }) => self.response(id, answer),
            Ok(Incoming::Request { id, method, params }) => self.asked(id, &method, params),
            Ok(Incoming::Notification { method, params }) => self.notified(&method, params),
            Err(why) => self.skip(Skipped::Junk, &format!("a line from the server is {why}"), text),
        }
    }

    pub(super) fn response(&mut self, id: Option<u64>, answer: Answer<'_>) {
        let Some(id) = id else {
            let seen = match answer {
                Answer::Error(e) => e.to_string(),
                Answer::Result(raw) => raw.get().to_owned(),
            };
            return self.skip(Skipped::Stray, "the server answered with an id that is none of ours", &seen);
        };
        if self.calls.find(id).is_some_and(|call| !call.parked && call.inputs.is_none()) {
            return self.answered(id, answer);
        }
        if !self.started_with(id, &answer) && !self.relisted(id, &answer) && !self.renewed(id, &answer) {
            if self.listening.is(id) {
                return match answer {
                    Answer::Error(error) => self.not_offered(&error.to_string()),
                    Answer::Result(_) => self.unheard("the server ended it"),
                };
            }
            let what = if id <= self.last_id {
                "the server answered a request that is not open (answered before, or given up)"
            } else {
                "the server answered a request that was never made"
            };
            self.skip(Skipped::Stray, what, &format!("id {id}"));
        }
    }
}
