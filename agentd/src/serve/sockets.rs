//! Listening sockets: the control socket, which replaces one of a dead daemon and nobody else's, and TCP with and without
//! TLS.

use super::{OpenError, system};
use rustix::fs::Mode;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;

/// Bytes of a socket's path, as the kernel has room for.
const PATH_BYTES: usize = 107;

/// The control socket at `path`, whose lock is held: what is there is a dead daemon's, or is not a daemon's at all.
pub(super) fn unix(path: &Path) -> Result<OwnedFd, OpenError> {
    let shown = path.display();
    if path.as_os_str().len() > PATH_BYTES {
        let fault = format!(
            "{shown} has {} bytes and a socket's path at most {PATH_BYTES}; name a shorter one in a2a.listen, unix:///PATH",
            path.as_os_str().len()
        );
        return Err(OpenError::InTheWay(fault));
    }
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(system(format!("{shown} cannot be used"))(error)),
        Ok(found) if !found.file_type().is_socket() => {
            let fault =
                format!("{shown} is there and is no socket; remove it, or name another place in a2a.listen");
            return Err(OpenError::InTheWay(fault));
        }
        Ok(_) => match UnixStream::connect(path) {
            Ok(_) => {
                let fault = format!("{shown} is another program's: somebody answers there");
                return Err(OpenError::Taken(fault));
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(path).map_err(system(format!("the stale {shown} cannot be removed")))?;
            }
            Err(error) => return Err(system(format!("{shown} cannot be tried"))(error)),
        },
    }
    // From its first moment nobody else can open it; the folder is private too.
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let bound = UnixListener::bind(path);
    rustix::process::umask(before);
    let listener = bound.map_err(system(format!("{shown} cannot be listened on")))?;
    let ready = fs::set_permissions(path, fs::Permissions::from_mode(0o600));
    ready.and_then(|()| listener.set_nonblocking(true)).map_err(system(format!("{shown} cannot be used")))?;
    Ok(listener.into())
}

/// A TCP socket, and where it listens.
pub(super) fn tcp(address: SocketAddr) -> Result<(OwnedFd, SocketAddr), OpenError> {
    let fault = || system(format!("{address} cannot be listened on"));
    let listener = TcpListener::bind(address).map_err(fault())?;
    let address = listener.local_addr().map_err(fault())?;
    listener.set_nonblocking(true).map_err(fault())?;
    Ok((listener.into(), address))
}

/// TLS with these certificates, for HTTP/1.1.
pub(super) fn tls(cert: &Path, key: &Path) -> Result<Arc<rustls::ServerConfig>, OpenError> {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let fault =
        |path: &Path, error: &dyn std::fmt::Display| OpenError::Tls(format!("{}: {error}", path.display()));
    let certs = CertificateDer::pem_file_iter(cert).map_err(|error| fault(cert, &error))?;
    let certs = certs.collect::<Result<Vec<_>, _>>().map_err(|error| fault(cert, &error))?;
    if certs.is_empty() {
        return Err(fault(cert, &"there is no certificate in it"));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| fault(key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certs, secret));
    let mut config = config.map_err(|error| OpenError::Tls(error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_dead_daemons_socket_is_replaced_and_nothing_else_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("control.sock");
        let first = unix(&path).expect("free");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
        assert!(matches!(unix(&path), Err(OpenError::Taken(_))), "it lives");
        drop(first);
        let second = unix(&path).expect("stale");
        drop(second);
        fs::remove_file(&path).expect("removed");
        fs::write(&path, "mine").expect("written");
        let said = unix(&path).expect_err("a file").to_string();
        assert!(said.contains("is no socket"), "{said}");
        assert_eq!(fs::read_to_string(&path).expect("untouched"), "mine");
        let long = folder.path().join("x".repeat(120));
        assert!(unix(&long).is_err_and(|error| error.to_string().contains("at most 107")));
    }
}
