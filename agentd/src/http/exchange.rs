//! One exchange with an MCP server over HTTP: a thread's body that dials, asks and tells what comes.
//!
//! Owns the connection of that exchange. It judges nothing of what comes: the client's machine does. Refuses compressed
//! answers, which were not asked for, and to follow a redirect, which would take the credentials along.

use super::dial::{self, Failure, Kind, Trust};
use super::headers;
use super::line::Line;
use agentd_core::mcp::{Broken, Exchange, Method};
use agentd_core::preview::preview;
use std::io::Read;
use std::sync::Arc;
use ureq::http::{Request, Response};

const READ_BYTES: usize = 64 * 1024;

/// Where a server is, and what goes with each request to it.
#[derive(Debug)]
pub(crate) struct Target {
    url: String,
    /// Of the configuration; the protocol's own win over them.
    headers: Vec<(String, String)>,
    trust: Trust,
}

/// What comes of an exchange, in order; the last is always `Ended`.
#[derive(Debug)]
pub(crate) enum Heard {
    /// Status and headers.
    Head { status: u16, headers: Vec<(String, String)> },
    /// More of the body.
    Body(Vec<u8>),
    /// Nothing follows.
    Ended(Result<(), Broken>),
}

impl Target {
    /// A server at `url`; `ca` takes the place of the system's root certificates.
    pub(crate) fn new<'a>(
        url: &str,
        headers: impl IntoIterator<Item = (&'a String, &'a String)>,
        ca: Option<&str>,
    ) -> Target {
        let headers: Vec<_> = headers.into_iter().map(|(k, v)| (k.to_ascii_lowercase(), v.clone())).collect();
        Target {
            url: url.to_owned(),
            headers,
            trust: ca.map_or_else(Trust::default, |file| Trust::only(file.into())),
        }
    }
}

/// Makes the exchange. `tell` says whether anybody still listens.
pub(crate) fn make(
    target: &Arc<Target>,
    line: &Line,
    exchange: Exchange,
    mut tell: impl FnMut(Heard) -> bool,
) {
    let how = run(target, line, exchange, &mut tell)
        .map_err(|failure| Broken { reached: failure.reached, why: failure.message });
    tell(Heard::Ended(how));
}

fn run(
    target: &Target,
    line: &Line,
    exchange: Exchange,
    tell: &mut impl FnMut(Heard) -> bool,
) -> Result<(), Failure> {
    let response = ask(target, line, exchange)?;
    let mut seen = Vec::new();
    for (name, value) in response.headers() {
        seen.push((name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
    }
    let coding = seen.iter().find(|(name, _)| name == "content-encoding").map(|(_, value)| value.as_str());
    if let Some(coding) = coding.filter(|coding| *coding != "identity") {
        let message = format!("the answer is compressed ({}), which was not asked for", preview(coding, 40));
        return Err(Failure { kind: Kind::Malformed, reached: true, message });
    }
    if !tell(Heard::Head { status: response.status().as_u16(), headers: seen }) {
        return Ok(());
    }
    let mut body = response.into_body().into_reader();
    let mut bytes = vec![0; READ_BYTES];
    loop {
        match body.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(n) if tell(Heard::Body(bytes[..n].to_vec())) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(Failure { reached: true, ..dial::broken(&error) }),
        }
    }
}

fn ask(target: &Target, line: &Line, exchange: Exchange) -> Result<Response<ureq::Body>, Failure> {
    let agent = target.trust.agent(&target.url)?;
    if !line.open(agent.clone()) {
        return Err(Failure::unsent(Kind::Unreachable, "the exchange was given up"));
    }
    let unusable = |_| Failure::unsent(Kind::Rejected, "the address is no URL that can be dialled");
    let builder = Request::builder().uri(&target.url);
    let own = target.headers.iter().chain(&exchange.headers).map(|(name, value)| (name, value));
    match exchange.method {
        Method::Post => {
            let mut request = builder.method("POST").body(exchange.body).map_err(unusable)?;
            headers::put(request.headers_mut(), own)?;
            agent.run(request)
        }
        Method::Get | Method::Delete => {
            let verb = if exchange.method == Method::Get { "GET" } else { "DELETE" };
            let mut request = builder.method(verb).body(()).map_err(unusable)?;
            headers::put(request.headers_mut(), own)?;
            agent.run(request)
        }
    }
    .map_err(dial::failure)
}
