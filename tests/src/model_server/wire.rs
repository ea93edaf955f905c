//! A connection, in the clear or behind TLS.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

/// A certificate and the authority behind it, which nobody else vouches for.
pub(crate) struct Tls {
    pub(crate) authority: String,
    config: Arc<ServerConfig>,
}

impl Tls {
    /// For servers on this machine.
    pub(crate) fn new() -> Tls {
        Tls::named(&["127.0.0.1", "localhost"])
    }

    /// For servers of these names.
    pub(crate) fn named(names: &[&str]) -> Tls {
        let mut root = CertificateParams::new(Vec::new()).expect("parameters");
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root =
            CertifiedIssuer::self_signed(root, KeyPair::generate().expect("a key")).expect("an authority");
        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let leaf = CertificateParams::new(names).expect("parameters").signed_by(&key, &root).expect("signed");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], PrivatePkcs8KeyDer::from(key.serialize_der()).into())
            .expect("a usable certificate");
        Tls { authority: root.pem(), config: Arc::new(config) }
    }
}

/// One client's connection.
pub(crate) enum Wire {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Wire {
    /// `None` when the handshake fails, which is the client's to notice.
    pub(crate) fn new(stream: TcpStream, tls: Option<&Tls>) -> Option<Wire> {
        stream.set_nodelay(true).ok()?;
        let Some(tls) = tls else { return Some(Wire::Plain(stream)) };
        let mut stream = StreamOwned::new(ServerConnection::new(Arc::clone(&tls.config)).ok()?, stream);
        while stream.conn.is_handshaking() {
            if stream.conn.complete_io(&mut stream.sock).is_err() {
                let _alert = stream.conn.write_tls(&mut stream.sock);
                return None;
            }
        }
        Some(Wire::Tls(Box::new(stream)))
    }

    pub(crate) fn close(&mut self) {
        if let Wire::Tls(stream) = self {
            stream.conn.send_close_notify();
            let _gone = stream.flush();
        }
        let _gone = self.socket().shutdown(Shutdown::Both);
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            Wire::Plain(stream) => stream,
            Wire::Tls(stream) => &stream.sock,
        }
    }
}

impl Read for Wire {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Wire::Plain(stream) => stream.read(to),
            Wire::Tls(stream) => stream.read(to),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Wire::Plain(stream) => stream.write(from),
            Wire::Tls(stream) => stream.write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Wire::Plain(stream) => stream.flush(),
            Wire::Tls(stream) => stream.flush(),
        }
    }
}
