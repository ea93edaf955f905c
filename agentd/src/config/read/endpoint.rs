//! Addresses of providers and of servers, and the headers that go to providers. Refuses what would send a key over an open wire
//! or put one where it is logged.

use super::super::check::is_secret_header;
use super::super::problem::{Code, Problem};
use super::super::values::text_of;
use super::Reader;
use super::model::{Section, default_address};
use agentd_core::preview::preview;
use agentd_core::wire::message::Endpoint;
use http::Uri;
use http::uri::Authority;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Bytes of an address in a message.
const SHOWN_BYTES: usize = 200;

/// Paths that a dialect appends itself.
const OF_DIALECTS: [&str; 5] =
    ["/v1/messages", "/messages", "/chat/completions", "/completions", "/responses"];

/// What is wrong with an address, and what to do.
struct Fault {
    message: String,
    hint: String,
}

impl Reader<'_> {
    /// The endpoints of a section, without tokens; the provider's own when none is written. One that is at fault has
    /// an empty address, and so has the only one where the list is at fault or the provider is not known.
    pub(super) fn addresses(&mut self, section: &Section<'_, '_>, dialect: &str) -> Vec<Endpoint> {
        let endpoint = |url: &str| Endpoint { url: url.to_owned(), token: None };
        let values = section.values;
        let path = format!("{}.endpoints", section.path);
        if !values.has("endpoints") {
            return vec![endpoint(default_address(dialect).unwrap_or_default())];
        }
        let nodes = values.list("endpoints");
        if nodes.is_empty() {
            // What is no list was found at fault.
            if let Some(node) = values.written("endpoints").filter(|node| node.is_list()) {
                let problem = Problem::at(&node.place, &path, Code::InvalidValue, "names no endpoint");
                self.problems.push(problem.hint("write one, or remove the key for the provider's own"));
            }
            return vec![endpoint("")];
        }
        let mut endpoints = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            // What is no text, or holds a NUL, was found at fault.
            match text_of(node).filter(|text| !text.contains('\0')).map(|text| address(&text)) {
                Some(Ok(url)) => endpoints.push(Endpoint { url, token: None }),
                None => endpoints.push(endpoint("")),
                Some(Err(Fault { message, hint })) => {
                    endpoints.push(endpoint(""));
                    let path = format!("{path}[{index}]");
                    let problem = Problem::at(&node.place, &path, Code::InvalidValue, message);
                    let accepted =
                        "https://HOST, or http://127.0.0.1:PORT, with a path if the server has one";
                    self.problems.push(problem.accepted(accepted).hint(hint));
                }
            }
        }
        endpoints
    }

    /// The headers of a section, with the paths of secret files absolute; without the values that are at fault.
    pub(super) fn headers(&mut self, section: &Section<'_, '_>) -> BTreeMap<String, String> {
        let mut headers = BTreeMap::new();
        for (name, node) in section.values.entries("headers") {
            let path = format!("{}.headers.{name}", section.path);
            headers.insert(name.to_owned(), self.absolute_reference(node, &path).unwrap_or_default());
        }
        headers
    }
}

/// Whether an address is that of this machine.
pub(super) fn is_loopback(url: &str) -> bool {
    url.parse::<Uri>()
        .ok()
        .and_then(|uri| uri.authority().map(|authority| is_own_host(authority.host())))
        .unwrap_or(false)
}

fn is_own_host(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// An address as it is used: without a slash at its end.
fn address(text: &str) -> Result<String, Fault> {
    let seen = seen(text);
    if text.contains(['?', '#']) && !text.contains("{{") {
        return fault(
            format!("{seen} has a query or a fragment"),
            "give the base address alone; what a gateway needs besides can go into headers",
        );
    }
    judge(text, "the key and all content", "a model")?;
    let base = text.trim_end_matches('/');
    if let Some(base) = OF_DIALECTS.iter().find_map(|path| base.strip_suffix(path)) {
        return fault(format!("{seen} ends in a path that agentd appends itself"), &format!("write {base}"));
    }
    Ok(base.to_owned())
}

/// Whether an MCP server can be reached at an address, which is used as it is written. The error is what is wrong and
/// what to do.
pub(crate) fn server_address(text: &str) -> Result<(), (String, String)> {
    let query = text.split_once('?').map_or("", |(_, query)| query);
    let mut names = query.split('&').map(|pair| pair.split('=').next().unwrap_or_default());
    let judged = if text.contains("{{") {
        judge(text, "all that is said", "a server")
    } else if text.contains('#') {
        fault(format!("{} has a fragment", seen(text)), "remove what follows the #")
    } else if names.any(is_secret_header) {
        fault(
            "has what looks like a key in its query".to_owned(),
            "keys go into headers: addresses are logged",
        )
    } else {
        judge(text, "all that is said", "a server")
    };
    judged.map_err(|fault| (fault.message, fault.hint))
}

/// What is before an @ may be a password, and in a query may be a key: neither is quoted.
fn seen(text: &str) -> String {
    if text.contains(['@', '?']) { "it".to_owned() } else { preview(text, SHOWN_BYTES) }
}

fn fault<T>(message: String, hint: &str) -> Result<T, Fault> {
    Err(Fault { message, hint: hint.to_owned() })
}

/// What is asked of every address. `content` is what would go over an open wire, `whom` what is there.
fn judge(text: &str, content: &str, whom: &str) -> Result<(), Fault> {
    let seen = seen(text);
    if text.contains("{{") {
        return fault(
            format!("{seen} refers to a secret"),
            "keys go into token or headers: addresses are logged",
        );
    }
    let uri: Uri = match text.parse() {
        Ok(uri) => uri,
        Err(_) if text.contains('@') => {
            return fault(
                "is not an address".to_owned(),
                "begin with https:// and a host, without a user or a password",
            );
        }
        Err(_) if text.contains('?') => {
            return fault("is not an address".to_owned(), "begin with https:// and a host");
        }
        Err(_) => return fault(format!("{seen:?} is not an address"), "begin with https:// and a host"),
    };
    let with_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
    if with_user {
        return fault(
            "holds a user or a password".to_owned(),
            "remove it; keys go into token or headers, by reference",
        );
    }
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return fault(
            format!("{seen} does not begin with https:// and a host"),
            "write https:// and the host before it",
        );
    };
    if let Some(message) = authority_fault(authority) {
        return fault(format!("{seen} {message}"), "write HOST or HOST:PORT");
    }
    match scheme {
        "https" => Ok(()),
        "http" if is_own_host(authority.host()) => Ok(()),
        "http" => fault(
            format!("{seen} would send {content} unencrypted"),
            "use https; http is for this machine only (127.0.0.1, [::1], localhost)",
        ),
        other => fault(format!("{other} is no protocol that {whom} is spoken to with"), "use https"),
    }
}

fn authority_fault(authority: &Authority) -> Option<&'static str> {
    let after_host = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    if authority.host().is_empty() {
        Some("has no host")
    } else if !after_host.is_empty() && authority.port_u16().is_none_or(|port| port == 0) {
        Some("has a port that is none")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_can_be_used() {
        for (text, url, loopback) in [
            ("https://api.example", "https://api.example", false),
            ("https://api.example/v1/", "https://api.example/v1", false),
            ("HTTPS://api.example:8443/a/b//", "HTTPS://api.example:8443/a/b", false),
            ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1", true),
            ("http://127.8.9.1", "http://127.8.9.1", true),
            ("http://[::1]:1/v1", "http://[::1]:1/v1", true),
            ("http://LocalHost:11434/v1", "http://LocalHost:11434/v1", true),
            ("https://example/@cf/v1", "https://example/@cf/v1", false),
        ] {
            assert_eq!(address(text).ok().as_deref(), Some(url), "{text}");
            assert_eq!(is_loopback(url), loopback, "{text}");
        }
    }

    #[test]
    fn addresses_that_cannot_say_why() {
        for (text, words) in [
            ("", "not an address"),
            ("api.example", "does not begin with https://"),
            ("/v1", "does not begin with https://"),
            ("api.example/v1", "not an address"),
            ("https://", "not an address"),
            ("https:///v1", "not an address"),
            ("https://:8080", "has no host"),
            ("https://host:0", "a port that is none"),
            ("https://host:99999", "a port that is none"),
            ("https://host:", "a port that is none"),
            ("https://a b", "not an address"),
            ("https://ho\nst", "not an address"),
            ("http://api.example", "unencrypted"),
            ("http://localhost.example", "unencrypted"),
            ("http://127.0.0.1.example", "unencrypted"),
            ("http://10.0.0.1", "unencrypted"),
            ("ftp://host", "no protocol"),
            ("https://host?key=1", "query or a fragment"),
            ("https://host/v1?", "query or a fragment"),
            ("https://host/#a", "query or a fragment"),
            ("https://host/{{secret:K}}", "refers to a secret"),
            ("https://api.openai.com/v1/chat/completions", "appends itself"),
            ("https://api.anthropic.com/v1/messages/", "appends itself"),
        ] {
            let Err(fault) = address(text) else { panic!("{text} is taken") };
            assert!(fault.message.contains(words), "{text}: {}", fault.message);
        }
        for text in [
            "https://user:canary@host/v1",
            "http://canary@",
            "user:canary@host",
            "https:/user:canary@host",
            "https://a:canary@b:x@c",
            "https://host/v1?key=canary",
            "https://user:canary@host/v1/messages",
            "ftp://canary@host",
        ] {
            let Err(fault) = address(text) else { panic!("{text} is taken") };
            let said = format!("{} {}", fault.message, fault.hint);
            assert!(!said.contains("canary"), "{text}: {said}");
        }
    }
}
