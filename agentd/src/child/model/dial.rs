//! How a provider is dialled: TLS and its roots, proxies, time limits, and what goes wrong in words.
//!
//! Refuses plain http anywhere but on this machine, and redirects, which would take the credential along.

use agentd_core::address::is_loopback;
use agentd_core::limits::{MODEL_CONNECT, MODEL_RESOLVE};
use agentd_core::model::{ModelError, ModelErrorKind};
use agentd_core::preview::preview;
use std::error::Error as _;
use std::io;
use std::sync::{Arc, OnceLock};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Proxy, Timeout};

/// The system's root certificates, read when the first https address is dialled.
#[derive(Debug, Default)]
pub(super) struct Trust(OnceLock<Result<RootCerts, String>>);

impl Trust {
    /// `SSL_CERT_FILE` and `SSL_CERT_DIR` name others than the system's.
    fn roots(&self) -> Result<RootCerts, ModelError> {
        let roots = self.0.get_or_init(|| {
            let found = rustls_native_certs::load_native_certs();
            if found.certs.is_empty() {
                let why = found.errors.first().map_or_else(|| "none are installed".to_owned(), ToString::to_string);
                return Err(format!(
                    "there are no root certificates to trust ({why}): install ca-certificates, or set SSL_CERT_FILE"
                ));
            }
            let certs: Vec<_> = found.certs.iter().map(|c| Certificate::from_der(c).to_owned()).collect();
            Ok(RootCerts::new_with_certs(&certs))
        });
        roots.clone().map_err(|why| ModelError::new(ModelErrorKind::Unreachable, why))
    }

    /// An agent for one call to `url`: shutting it down ends that call and no other.
    pub(super) fn agent(&self, url: &str) -> Result<Agent, ModelError> {
        let loopback = is_loopback(url);
        let https = url.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"));
        if !https && !loopback {
            let message = "the address is neither https nor on this machine, and a credential does not go out in the clear";
            return Err(ModelError::new(ModelErrorKind::Rejected, message));
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

/// What went wrong before there was an answer. No address is quoted: it may hold a secret.
pub(super) fn failure(error: ureq::Error) -> ModelError {
    use ModelErrorKind::{Malformed, Rejected, Unreachable};
    let (kind, message) = match error {
        ureq::Error::Io(error) => return broken(&error),
        ureq::Error::Rustls(error) => (Unreachable, tls(&error)),
        ureq::Error::Tls(what) => (Unreachable, format!("no secure connection: {what}")),
        ureq::Error::HostNotFound => (Unreachable, "the host name is not known".to_owned()),
        ureq::Error::Timeout(Timeout::Resolve) => {
            (Unreachable, format!("the host name was not resolved within {} s", MODEL_RESOLVE.as_secs()))
        }
        ureq::Error::Timeout(_) => {
            (Unreachable, format!("no connection within {} s", MODEL_CONNECT.as_secs()))
        }
        ureq::Error::BadUri(_) => (Rejected, "the address is no URL that can be dialled".to_owned()),
        ureq::Error::InvalidProxyUrl => {
            (Unreachable, "the proxy variable of the environment is no URL that can be used".to_owned())
        }
        ureq::Error::ConnectProxyFailed(what) => {
            (Unreachable, format!("the proxy makes no connection: {}", preview(what, 200)))
        }
        ureq::Error::Protocol(error) => {
            (Malformed, format!("the answer is not HTTP: {}", preview(error.to_string(), 200)))
        }
        error => (Unreachable, preview(error.to_string(), 200)),
    };
    ModelError::new(kind, message)
}

/// A connection that could not be made, or that broke.
pub(super) fn broken(error: &io::Error) -> ModelError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
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
    ModelError::new(ModelErrorKind::Unreachable, message)
}

fn tls(error: &rustls::Error) -> String {
    let hint = match error {
        rustls::Error::InvalidCertificate(_) => {
            "; if the provider's authority is your own, SSL_CERT_FILE names its certificate"
        }
        rustls::Error::InvalidMessage(_) => "; does the other side speak TLS at all?",
        _ => "",
    };
    format!("no secure connection (TLS): {}{hint}", preview(error.to_string(), 200))
}
