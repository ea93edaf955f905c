//! `a2a` and `observability.metrics_addr`: where a daemon is reached, and by whom. Refuses what would be open to others than
//! it says: TCP beyond loopback without TLS, TCP without principals, tokens that could be guessed or taken for each other.

use super::super::problem::{Code, Problem};
use super::super::settings::{Caller, Doors, Listen};
use super::super::tree::{Node, clip};
use super::super::values::{Values, text_of};
use super::Reader;
use crate::secrets::{Use, reference};
use agentd_core::config::{Principal, PrincipalRole};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// What is accepted in `a2a.listen`.
const ADDRESSES: &str = "unix, unix:///PATH, https://IP:PORT, or http://127.0.0.1:PORT";

/// Characters of a token: enough that nobody guesses it, few enough to be looked for in every request.
const TOKEN_CHARS: std::ops::RangeInclusive<usize> = 16..=256;

impl Reader<'_> {
    /// All of it.
    pub(super) fn doors(&mut self, a2a: &Values<'_>, observability: &Values<'_>) -> Doors {
        let listen = match a2a.written("listen") {
            None => vec![Listen::Unix(None)],
            Some(_) => {
                let (mut listen, nodes) = (Vec::new(), a2a.list("listen"));
                for (index, node) in nodes.iter().enumerate() {
                    let path = format!("a2a.listen[{index}]");
                    let Some(text) = text_of(node) else { continue };
                    match self.address(&text) {
                        Ok(one) if listen.contains(&one) => {
                            let fault = format!("{} is there twice", clip(&text));
                            self.problems.push(Problem::at(&node.place, &path, Code::Duplicate, fault));
                        }
                        Ok(one) => listen.push(one),
                        Err(fault) => {
                            let problem = Problem::at(&node.place, &path, Code::InvalidValue, fault);
                            self.problems.push(problem.accepted(ADDRESSES));
                        }
                    }
                }
                listen
            }
        };
        let principals = self.principals(a2a);
        let tls = self.tls(a2a, listen.iter().any(|one| matches!(one, Listen::Tls(_))));
        let by_tcp = listen.iter().any(|one| !matches!(one, Listen::Unix(_)));
        if by_tcp && principals.is_empty() {
            let place = a2a.written("listen").map(|node| &node.place);
            let problem = self.lacking(place, "a2a.principals", Code::Missing, "nobody could come by TCP");
            let problem =
                problem.accepted("[{id: NAME, match: {token: \"{{secret:NAME}}\"}, role: operator}]");
            self.problems.push(problem);
        }
        Doors { listen, tls, principals, metrics: self.metrics(observability) }
    }

    fn address(&self, text: &str) -> Result<Listen, String> {
        let socket = |address: &str| {
            let address = address.strip_suffix('/').unwrap_or(address);
            address.parse::<SocketAddr>().map_err(|_| format!("{} is no address", clip(text)))
        };
        if text == "unix" {
            Ok(Listen::Unix(None))
        } else if let Some(path) = text.strip_prefix("unix://") {
            let path = PathBuf::from(path);
            if path.is_absolute() {
                Ok(Listen::Unix(Some(path)))
            } else {
                Err("its path is not absolute".to_owned())
            }
        } else if let Some(address) = text.strip_prefix("https://") {
            Ok(Listen::Tls(socket(address)?))
        } else if let Some(address) = text.strip_prefix("http://") {
            match socket(address)? {
                local if local.ip().is_loopback() => Ok(Listen::Plain(local)),
                _ => Err("without TLS only loopback is listened on, for a token would go over an open wire"
                    .to_owned()),
            }
        } else {
            Err(format!("{} is no address", clip(text)))
        }
    }

    fn principals(&mut self, a2a: &Values<'_>) -> Vec<Caller> {
        let mut callers: Vec<Caller> = Vec::new();
        // Whose each token is, to find the one that two have.
        let mut owners: BTreeMap<String, String> = BTreeMap::new();
        for (index, values) in a2a.items("principals").into_iter().enumerate() {
            let path = format!("a2a.principals[{index}]");
            let Some(id) = values.text("id") else {
                self.missing(values.place(), &format!("{path}.id"), "a name");
                continue;
            };
            if id == "operator" || callers.iter().any(|caller| caller.principal.id == id) {
                let fault = format!("{} is another's name", clip(id));
                if let Some(node) = values.written("id") {
                    self.problems.push(Problem::at(
                        &node.place,
                        &format!("{path}.id"),
                        Code::Duplicate,
                        fault,
                    ));
                }
            }
            let matched = values.section("match");
            let path = format!("{path}.match.token");
            let Some(node) = matched.written("token") else {
                self.missing(values.place(), &path, "a reference, such as \"{{secret:OPS_TOKEN}}\"");
                continue;
            };
            let Some(token) = self.absolute_reference(node, &path) else { continue };
            // What is no reference has been told already.
            if !reference::refers(&token) {
                continue;
            }
            self.token_fits(node, &path, &token, id, &mut owners);
            let role = match values.text("role") {
                Some("operator") => PrincipalRole::Operator,
                _ => PrincipalRole::User,
            };
            callers.push(Caller { principal: Principal { id: id.to_owned(), role }, token });
        }
        callers
    }

    /// A token that is there, cannot be guessed and is nobody else's.
    fn token_fits(
        &mut self,
        node: &Node,
        path: &str,
        token: &str,
        id: &str,
        owners: &mut BTreeMap<String, String>,
    ) {
        let value = match self.secrets.fill(token, Use::Header) {
            Ok(value) => value,
            Err(fault) => {
                self.problems.push(Problem::at(&node.place, path, Code::Secret, fault.to_string()));
                return;
            }
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._~+/=".contains(c);
        let fault = if !TOKEN_CHARS.contains(&value.len()) || !value.chars().all(plain) {
            Some("its value is not 16 to 256 letters, digits and `-._~+/=`".to_owned())
        } else {
            owners.insert(value, id.to_owned()).map(|other| format!("its value is that of {other} too"))
        };
        if let Some(fault) = fault {
            self.problems.push(Problem::at(&node.place, path, Code::Secret, fault));
        }
    }

    fn tls(&mut self, a2a: &Values<'_>, needed: bool) -> Option<(PathBuf, PathBuf)> {
        let tls = a2a.section("tls");
        let mut file = |name: &str| {
            let path = format!("a2a.tls.{name}");
            let Some((file, place)) = tls.path(name) else {
                if needed {
                    let place = a2a.written("tls").or_else(|| a2a.written("listen")).map(|node| &node.place);
                    let problem =
                        self.lacking(place, &path, Code::Missing, "https is listened on without it");
                    self.problems.push(problem.accepted("a file in PEM"));
                }
                return None;
            };
            let file = self.absolute(&file);
            if let Err(fault) = std::fs::File::open(&file) {
                let fault = format!("{} cannot be read: {fault}", super::shown(&file));
                let problem = Problem::at(place, &path, Code::Unreadable, fault);
                self.problems.push(problem.accepted("a file in PEM"));
                return None;
            }
            Some(file)
        };
        let (cert, key) = (file("cert"), file("key"));
        cert.zip(key)
    }

    fn metrics(&mut self, observability: &Values<'_>) -> Option<SocketAddr> {
        let node = observability.written("metrics_addr")?;
        let text = text_of(node)?;
        match text.parse() {
            Ok(address) => Some(address),
            Err(_) => {
                let fault = format!("{} is no address", clip(&text));
                let problem =
                    Problem::at(&node.place, "observability.metrics_addr", Code::InvalidValue, fault);
                self.problems.push(problem.accepted("IP:PORT, such as 127.0.0.1:9464"));
                None
            }
        }
    }
}
