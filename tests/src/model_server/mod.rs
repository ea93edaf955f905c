//! A provider's server under a test's control: the exact bytes and when they go out, every dialect, every request
//! recorded and judged. The program `fake-model` is the same with a script file. It shares no code with the client
//! it is used against.
//!
//! A test takes one [`Exchange`] after another and answers it at its own pace, so nothing here sleeps: what should
//! come later is sent later. Requests that a real provider would refuse fail the test that takes them.

mod answer;
mod check;
mod exchange;
mod request;
mod script;
pub(crate) mod wire;

pub use answer::Answer;
pub use exchange::{Exchange, Stream};
pub use request::Request;
pub use script::main;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use wire::{Tls, Wire};

/// Beyond this a test has failed: the request it waits for does not come.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// Chat completions.
    Openai,
    /// Responses.
    Responses,
    /// Messages.
    Anthropic,
}

impl Speaks {
    /// Every dialect, for tests that hold in each.
    pub const ALL: [Speaks; 3] = [Speaks::Openai, Speaks::Responses, Speaks::Anthropic];

    /// Its name in a configuration.
    pub fn dialect(self) -> &'static str {
        match self {
            Speaks::Openai => "openai",
            Speaks::Responses => "openai-responses",
            Speaks::Anthropic => "anthropic",
        }
    }
}

/// A server on loopback.
pub struct ModelServer {
    speaks: Speaks,
    address: SocketAddr,
    tls: Option<Arc<Tls>>,
    exchanges: Receiver<Exchange>,
}

impl ModelServer {
    /// A server in the clear.
    pub fn start(speaks: Speaks) -> ModelServer {
        ModelServer::listen(speaks, None)
    }

    /// A server behind TLS, under a certificate that only its own authority vouches for.
    pub fn start_tls(speaks: Speaks) -> ModelServer {
        ModelServer::listen(speaks, Some(Arc::new(Tls::new())))
    }

    fn listen(speaks: Speaks, tls: Option<Arc<Tls>>) -> ModelServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sender, exchanges) = channel();
        let server = tls.clone();
        // The threads live as long as the test's process; a connection's ends with its one request.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (sender, tls) = (sender.clone(), server.clone());
                std::thread::spawn(move || {
                    if let Some(exchange) = accept(stream, tls.as_deref(), speaks) {
                        // Without a receiver the test is over.
                        let _over = sender.send(exchange);
                    }
                });
            }
        });
        ModelServer { speaks, address, tls, exchanges }
    }

    /// What it speaks.
    pub fn speaks(&self) -> Speaks {
        self.speaks
    }

    /// The address that a configuration would name.
    pub fn base(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/v1", self.address)
    }

    /// The certificate of its authority, PEM; what a client must trust.
    pub fn authority(&self) -> &str {
        self.tls.as_ref().map_or("", |tls| tls.authority.as_str())
    }

    /// The next request, which must be one that a provider takes.
    pub fn next(&self) -> Exchange {
        let exchange = self.next_unchecked();
        let problems = &exchange.request.problems;
        assert!(problems.is_empty(), "{problems:#?} in {:#}", exchange.request.body);
        exchange
    }

    /// The next request, whatever is wrong with it.
    pub fn next_unchecked(&self) -> Exchange {
        match self.exchanges.recv_timeout(PATIENCE) {
            Ok(exchange) => exchange,
            Err(RecvTimeoutError::Timeout) => panic!("no request in time"),
            Err(RecvTimeoutError::Disconnected) => panic!("the server's thread is gone"),
        }
    }

    /// The next request, if one comes within `wait`.
    pub fn next_within(&self, wait: Duration) -> Option<Exchange> {
        self.exchanges.recv_timeout(wait).ok()
    }

    /// Whether no request has come that was not taken.
    pub fn is_quiet(&self) -> bool {
        self.exchanges.try_recv().is_err()
    }
}

fn accept(stream: TcpStream, tls: Option<&Tls>, speaks: Speaks) -> Option<Exchange> {
    let mut wire = Wire::new(stream, tls)?;
    let request = Request::read(&mut wire, speaks)?;
    Some(Exchange { request, speaks, wire })
}
