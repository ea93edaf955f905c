//! Who is trusted, and what a connection that cannot be trusted says.

use super::{KEY, asking, run};
use crate::rig::{AGENTD, Rig, Run, tag};
use agentd_core::wire::Down;
use agentd_core::wire::message::FailKind;
use agentd_tests::model_server::{Answer, ModelServer, Speaks};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;

/// Starts a child that trusts the certificates in `file`.
fn trusting(file: &str, run: Run) -> Rig {
    let mut command = Command::new(AGENTD);
    command.env("SSL_CERT_FILE", file).env_remove("SSL_CERT_DIR");
    let mut rig = Rig::bare(command, tag());
    rig.send(&Down::Spawn(Box::new(run.spawn)));
    rig
}

#[test]
fn an_authority_of_ones_own_is_named_by_the_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ca.pem");
    let file = file.to_str().expect("UTF-8");
    for speaks in Speaks::ALL {
        let server = ModelServer::start_tls(speaks);
        std::fs::write(file, server.authority()).expect("written");
        let mut rig = trusting(file, asking(&server));
        let request = server.next().answer(&Answer::text("done"));
        assert!(request.headers.iter().any(|(_, value)| value.contains(KEY)));
        assert_eq!(rig.completed(), "done");
        assert!(rig.end().0.success());
    }
}

#[test]
fn a_cancel_shuts_a_connection_behind_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ca.pem");
    let server = ModelServer::start_tls(Speaks::Openai);
    std::fs::write(&file, server.authority()).expect("written");
    let mut rig = trusting(file.to_str().expect("UTF-8"), asking(&server));
    let stream = server.next().stream();
    rig.cancel();
    stream.until_closed();
    rig.terminal();
    assert!(rig.end().0.success());
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_refused_by_name() {
    let (server, other) = (ModelServer::start_tls(Speaks::Openai), ModelServer::start_tls(Speaks::Openai));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, other.authority()).expect("written");
    let mut rig = trusting(file.to_str().expect("UTF-8"), asking(&server));
    let failed = rig.failed();
    assert_eq!(failed.kind, FailKind::Model);
    for word in ["127.0.0.1:", "TLS", "certificate", "SSL_CERT_FILE"] {
        assert!(failed.error.contains(word), "{word}: {}", failed.error);
    }
    assert!(rig.end().0.success());
    assert!(server.is_quiet(), "no request goes out");
}

#[test]
fn no_certificates_at_all_says_what_to_install() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("none.pem");
    let mut rig = trusting(file.to_str().expect("UTF-8"), run(Speaks::Openai, &["https://127.0.0.1:1/v1"]));
    let failed = rig.failed();
    assert!(
        failed.error.contains("root certificates") && failed.error.contains("SSL_CERT_FILE"),
        "{}",
        failed.error
    );
    assert!(rig.end().0.success());
}

#[test]
fn a_server_that_speaks_no_tls_is_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let base = format!("https://{}/v1", listener.local_addr().expect("an address"));
    let server = std::thread::spawn(move || {
        for _ in 0..3 {
            let (mut client, _) = listener.accept().expect("a client");
            client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("written");
            // Until the client has gone, however it goes.
            let _gone = client.read_to_end(&mut Vec::new());
        }
    });
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, ModelServer::start_tls(Speaks::Openai).authority()).expect("written");
    let mut rig = trusting(file.to_str().expect("UTF-8"), run(Speaks::Openai, &[&base]));
    let failed = rig.failed();
    assert!(failed.error.contains("speak TLS at all"), "{}", failed.error);
    assert!(rig.end().0.success());
    server.join().expect("it was asked three times");
}
