//! How a server is dialled: TLS and its roots, proxies, time limits, and what goes wrong in words.
//!
//! Refuses plain http anywhere but on this machine, and redirects, which would take the credential along.

use agentd_core::address::is_loopback;
use agentd_core::limits::{MODEL_CONNECT, MODEL_RESOLVE};
use agentd_core::preview::preview;
use std::error::Error as _;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Proxy, Timeout};

/// What went wrong, and how that is to be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    /// Whether the server can have seen the request.
    pub(crate) reached: bool,
    /// One sentence without an end.
    pub(crate) message: String,
}

/// Whose fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The request or its address.
    Rejected,
    /// What came is not what was asked for.
    Malformed,
    /// The way there.
    Unreachable,
}

impl Failure {
    /// Of a request that did not leave.
    pub(crate) fn unsent(kind: Kind, message: impl Into<String>) -> Failure {
        Failure { kind, reached: false, message: message.into() }
    }

    /// Of one that may have arrived.
    fn sent(kind: Kind, message: impl Into<String>) -> Failure {
        Failure { kind, reached: true, message: message.into() }
    }
}

/// The root certificates to trust, read when the first https address is dialled.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    /// A file that takes the place of the system's.
    file: Option<PathBuf>,
    roots: OnceLock<Result<RootCerts, String>>,
}

impl Trust {
    /// Trusts the certificates of this file, in PEM, and no others.
    pub(crate) fn only(file: PathBuf) -> Trust {
        Trust { file: Some(file), roots: OnceLock::new() }
    }

    fn roots(&self) -> Result<RootCerts, Failure> {
        let roots = self.roots.get_or_init(|| match &self.file {
            Some(file) => of_file(file),
            None => of_system(),
        });
        roots.clone().map_err(|why| Failure::unsent(Kind::Unreachable, why))
    }

    /// An agent for one call to `url`: shutting it down ends that call and no other.
    pub(crate) fn agent(&self, url: &str) -> Result<Agent, Failure> {
        let loopback = is_loopback(url);
        let https = url.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"));
        if !https && !loopback {
            let message = "the address is neither https nor on this machine, and a credential does not go out in the clear";
            return Err(Failure::unsent(Kind::Rejected, message));
        }
        let mut tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()));
        if https {
            tls = tls.root_certs(self.roots()?);
        }
        let config = Agent::config_builder()
            .tls_config(tls.build())
            .proxy(if loopback { None } else { Proxy::try_from_env() })
            .user_agent(concat!("agentd/", env!("CARGO_PKG_VERSION")))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_resolve(Some(MODEL_RESOLVE))
            .timeout_connect(Some(MODEL_CONNECT));
        Ok(config.build().new_agent())
    }
}

/// `SSL_CERT_FILE` and `SSL_CERT_DIR` name others than the system's.
fn of_system() -> Result<RootCerts, String> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let why = found.errors.first().map_or_else(|| "none are installed".to_owned(), ToString::to_string);
        return Err(format!(
            "there are no root certificates to trust ({why}): install ca-certificates, or set SSL_CERT_FILE"
        ));
    }
    let certs: Vec<_> = found.certs.iter().map(|c| Certificate::from_der(c).to_owned()).collect();
    Ok(RootCerts::new_with_certs(&certs))
}

fn of_file(file: &std::path::Path) -> Result<RootCerts, String> {
    let shown = preview(file.to_string_lossy().as_bytes(), 200);
    let pem = std::fs::read(file).map_err(|e| format!("the certificates of {shown} cannot be read: {e}"))?;
    let mut certs = Vec::new();
    for item in parse_pem(&pem) {
        match item {
            Ok(PemItem::Certificate(certificate)) => certs.push(certificate),
            Ok(_) => {}
            Err(e) => return Err(format!("{shown} is no file of certificates in PEM: {e}")),
        }
    }
    if certs.is_empty() {
        return Err(format!("{shown} holds no certificate in PEM"));
    }
    Ok(RootCerts::new_with_certs(&certs))
}

/// What went wrong before there was an answer. No address is quoted: it may hold a secret.
pub(crate) fn failure(error: ureq::Error) -> Failure {
    use Kind::{Malformed, Rejected, Unreachable};
    match error {
        ureq::Error::Io(error) => broken(&error),
        ureq::Error::Rustls(error) => Failure::unsent(Unreachable, tls(&error)),
        ureq::Error::Tls(what) => Failure::unsent(Unreachable, format!("no secure connection: {what}")),
        ureq::Error::HostNotFound => Failure::unsent(Unreachable, "the host name is not known"),
        ureq::Error::Timeout(Timeout::Resolve) => Failure::unsent(
            Unreachable,
            format!("the host name was not resolved within {} s", MODEL_RESOLVE.as_secs()),
        ),
        ureq::Error::Timeout(_) => {
            Failure::unsent(Unreachable, format!("no connection within {} s", MODEL_CONNECT.as_secs()))
        }
        ureq::Error::BadUri(_) => Failure::unsent(Rejected, "the address is no URL that can be dialled"),
        ureq::Error::InvalidProxyUrl => {
            Failure::unsent(Unreachable, "the proxy variable of the environment is no URL that can be used")
        }
        ureq::Error::ConnectProxyFailed(what) => {
            Failure::unsent(Unreachable, format!("the proxy makes no connection: {}", preview(what, 200)))
        }
        ureq::Error::Protocol(error) => {
            Failure::sent(Malformed, format!("the answer is not HTTP: {}", preview(error.to_string(), 200)))
        }
        error => Failure::sent(Unreachable, preview(error.to_string(), 200)),
    }
}

/// A connection that could not be made, or that broke.
pub(crate) fn broken(error: &io::Error) -> Failure {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let reached = match (inner, error.kind()) {
        (Some(rustls::Error::InvalidCertificate(_)), _) => false,
        (
            None,
            io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::AddrNotAvailable,
        ) => false,
        (Some(_) | None, _) => true,
    };
    let message = match (inner, error.kind()) {
        (Some(error), _) => tls(error),
        (None, io::ErrorKind::ConnectionRefused) => "connection refused: nothing listens there".to_owned(),
        (None, io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) => {
            "the connection was closed in the middle of the answer".to_owned()
        }
        (None, _) => match error.source() {
            Some(source) => preview(format!("{error}: {source}"), 300),
            None => preview(error.to_string(), 300),
        },
    };
    Failure { kind: Kind::Unreachable, reached, message }
}

fn tls(error: &rustls::Error) -> String {
    use rustls::CertificateError::{BadSignature, NotValidForName, NotValidForNameContext, UnknownIssuer};
    let hint = match error {
        // Two authorities may have one name.
        rustls::Error::InvalidCertificate(UnknownIssuer | BadSignature) => {
            "; if its authority is your own, name that one's certificate: `ca` of an MCP server, or SSL_CERT_FILE"
        }
        rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }) => {
            "; give the address under a name that the certificate has"
        }
        rustls::Error::InvalidMessage(_) => "; does the other side speak TLS at all?",
        _ => "",
    };
    format!("no secure connection (TLS): {}{hint}", preview(error.to_string(), 200))
}
