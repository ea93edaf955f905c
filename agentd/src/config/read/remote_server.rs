//! `mcp.servers[].url`: a server at an address, with the headers and certificates that go with it. Refuses what would send
//! a key over an open wire, and headers that the protocol sets itself.

use super::super::problem::{Code, Problem};
use super::super::tree::{Node, clip};
use super::super::values::{Values, text_of};
use super::Reader;
use super::endpoint::server_address;
use crate::secrets::Use;
use agentd_core::wire::message::{HttpServer, Transport};
use std::collections::BTreeMap;

/// Headers that say what a request is; those that begin with `mcp-` do too.
const OF_THE_PROTOCOL: [&str; 3] = ["accept", "content-type", "last-event-id"];

impl Reader<'_> {
    /// The transport of a server with a `url`.
    pub(super) fn at_address(&mut self, values: &Values<'_>, url: &Node, path: &str) -> Option<Transport> {
        let headers = self.server_headers(values, path);
        let ca = self.certificates(values, path);
        let text = text_of(url).filter(|text| !text.contains('\0'))?;
        match server_address(&text) {
            Ok(()) => Some(Transport::Http(HttpServer { url: text, headers, ca: ca? })),
            Err((message, hint)) => {
                let problem = Problem::at(&url.place, &format!("{path}.url"), Code::InvalidValue, message);
                let accepted = "https://HOST/PATH, or http://127.0.0.1:PORT/PATH: the server's MCP endpoint";
                self.problems.push(problem.accepted(accepted).hint(hint));
                None
            }
        }
    }

    /// The headers; what they refer to has to be there.
    fn server_headers(&mut self, values: &Values<'_>, path: &str) -> BTreeMap<String, String> {
        let mut headers = BTreeMap::new();
        for (name, node) in values.entries("headers") {
            let path = format!("{path}.headers.{}", clip(name));
            let small = name.to_ascii_lowercase();
            if small.starts_with("mcp-") || OF_THE_PROTOCOL.contains(&small.as_str()) {
                let fault = format!("{} is set by the protocol itself", clip(name));
                self.problems
                    .push(Problem::at(&node.place, &path, Code::InvalidValue, fault).hint("remove it"));
                continue;
            }
            let Some(text) = self.absolute_reference(node, &path) else { continue };
            let faults = self.secrets.faults(&text, Use::Header);
            let told = |error| Problem::at(&node.place, &path, Code::Secret, format!("{error}"));
            self.problems.extend(faults.iter().map(told));
            headers.insert(name.to_owned(), text);
        }
        headers
    }

    /// `ca`: a file that can be read. `None` when it is at fault.
    fn certificates(&mut self, values: &Values<'_>, path: &str) -> Option<Option<String>> {
        let Some((file, place)) = values.path("ca") else { return Some(None) };
        let (file, path) = (self.absolute(&file), format!("{path}.ca"));
        let place = place.clone();
        if let Err(fault) = std::fs::File::open(&file) {
            let fault = format!("{} cannot be read: {fault}", super::shown(&file));
            let problem = Problem::at(&place, &path, Code::Unreadable, fault);
            self.problems.push(problem.accepted("a file of certificates in PEM"));
            return None;
        }
        self.utf8(file, Some(&place), &path).map(Some)
    }
}
