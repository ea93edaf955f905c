//! From the answer to `initialize` to a list of tools.

use super::{Client, Phase};
use crate::mcp::Output;
use crate::mcp::catalogue::{Catalogue, Next};
use crate::mcp::handshake::{self, Hello};
use crate::mcp::jsonrpc::{self, Answer};
use crate::note::Level;
use serde_json::json;

impl Client {
    pub(super) fn initialized(&mut self, answer: Answer<'_>) {
        let hello = match answer {
            Answer::Result(raw) => handshake::hello(raw),
            Answer::Error(e) => Err(handshake::refused(&e)),
        };
        match hello {
            Ok(hello) => {
                self.out
                    .push_back(Output::Send(jsonrpc::notification("notifications/initialized", json!({}))));
                if hello.tools {
                    self.list(hello, Box::default(), json!({}));
                } else {
                    self.log(Level::Warn, "mcp.tools.none", "the server declares no tools".into());
                    self.ready(hello, Catalogue::default());
                }
            }
            Err(error) => self.give_up(error),
        }
    }

    fn list(&mut self, hello: Hello, catalogue: Box<Catalogue>, params: serde_json::Value) {
        let id = self.request("tools/list", params);
        self.phase = Phase::Listing { id, hello, catalogue };
    }

    pub(super) fn listed(&mut self, hello: Hello, mut catalogue: Box<Catalogue>, answer: Answer<'_>) {
        let next = match answer {
            Answer::Result(raw) => catalogue.page(raw),
            Answer::Error(e) => Err(format!("the server answered `tools/list` with {e}")),
        };
        match next {
            Ok(Next::Page(cursor)) => self.list(hello, catalogue, json!({"cursor": cursor})),
            Ok(Next::Done) => self.ready(hello, *catalogue),
            Err(error) => self.give_up(error),
        }
    }

    fn ready(&mut self, hello: Hello, catalogue: Catalogue) {
        let (tools, notes) = catalogue.finish();
        for note in notes {
            self.log(Level::Warn, "mcp.tools.skipped", note);
        }
        self.phase = Phase::Ready { protocol: hello.protocol };
        self.out.push_back(Output::Ready {
            server_name: hello.name,
            version: hello.version,
            protocol: hello.protocol.to_owned(),
            tools,
        });
    }
}
