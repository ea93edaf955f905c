use super::fuzzing::http_server;
use super::*;
use crate::limits;
use proptest::prelude::*;

fn heard(bytes: &[u8]) -> Vec<Heard> {
    let mut heard = Vec::new();
    Server::default().take(bytes, &mut heard);
    heard
}

fn requests(bytes: &[u8]) -> Vec<Request> {
    let requests = heard(bytes).into_iter().map(|one| match one {
        Heard::Request(request) => *request,
        other @ (Heard::Continue | Heard::Fault(_)) => panic!("{other:?}"),
    });
    requests.collect()
}

fn fault(bytes: &[u8]) -> (u16, String) {
    match heard(bytes).pop() {
        Some(Heard::Fault(fault)) => (fault.status, fault.reason),
        other => panic!("no fault in {:?}: {other:?}", String::from_utf8_lossy(bytes)),
    }
}

#[test]
fn requests_are_read_as_they_are_framed() {
    let bytes = b"POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nX-One:  two \r\n\r\nabc\
        \r\nGET http://x/metrics HTTP/1.1\r\nhost: x\r\nConnection: Keep-Alive, Close\r\n\r\n\
        POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n3;ext=1\r\nabc\r\n00a\r\n0123456789\r\n0\r\nSum: 1\r\n\r\n\
        GET / HTTP/1.0\r\n\r\n";
    let read = requests(bytes);
    let seen: Vec<_> = read.iter().map(|r| (r.path.as_str(), &*r.body, r.keep_alive, r.chunks)).collect();
    let wanted: [(&str, &[u8], bool, bool); 4] = [
        ("/a", b"abc", true, true),
        ("/metrics", b"", false, true),
        ("/", b"abc0123456789", true, true),
        ("/", b"", false, false),
    ];
    assert_eq!(seen, wanted);
    assert_eq!(read[0].query.as_deref(), Some("b=c"));
    assert_eq!(read[0].header("x-one"), Some(&b"two"[..]));
}

#[test]
fn each_fault_of_framing_has_its_status_and_a_reason() {
    let get = |rest: &str| format!("GET / HTTP/1.1\r\nHost: x\r\n{rest}");
    let long = "x".repeat(limits::HTTP_HEAD_BYTES);
    let many = "A: b\r\n".repeat(limits::HTTP_HEADERS);
    let large = limits::HTTP_BODY_BYTES + 1;
    for (bytes, status, says) in [
        (get("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"), 400, "both"),
        (get("Content-Length: 3\r\nContent-Length: 3\r\n\r\n"), 400, "not one number"),
        (get("Content-Length: +3\r\n\r\n"), 400, "not one number"),
        (get("Content-Length: 3, 3\r\n\r\n"), 400, "not one number"),
        (get("Content-Length: \r\n\r\n"), 400, "not one number"),
        (get("Content-Length: 99999999999999999999\r\n\r\n"), 400, "not one number"),
        (get(&format!("Content-Length: {large}\r\n\r\n")), 413, "more than"),
        (get("Transfer-Encoding: gzip, chunked\r\n\r\n"), 501, "chunked"),
        (get("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"), 501, "chunked"),
        (get("Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n"), 400, "hexadecimal"),
        (get("Transfer-Encoding: chunked\r\n\r\n-1\r\n"), 400, "hexadecimal"),
        (get("Transfer-Encoding: chunked\r\n\r\n\r\n"), 400, "hexadecimal"),
        (get("Transfer-Encoding: chunked\r\n\r\n3\nabc"), 400, "LF without its CR"),
        (get("Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n"), 400, "where its size says"),
        (get("Transfer-Encoding: chunked\r\n\r\nffffffff\r\n"), 413, "more than"),
        (get(&format!("Transfer-Encoding: chunked\r\n\r\n3;{long}")), 400, "does not end"),
        (get(&format!("Transfer-Encoding: chunked\r\n\r\n0\r\nA: {long}")), 431, "trailers"),
        (get("A: b\n\r\n"), 400, "LF without its CR"),
        (get("A: b\rc\r\n\r\n"), 400, "CR without its LF"),
        (get("A: b\r\n c\r\n\r\n"), 400, "begins with a blank"),
        (get("A: b\0\r\n\r\n"), 400, "a NUL"),
        (get("A : b\r\n\r\n"), 400, "cannot be read"),
        (get("Host: y\r\n\r\n"), 400, "more than one Host"),
        (get("Expect: a miracle\r\n\r\n"), 417, "100-continue"),
        (get(&format!("A: {long}")), 431, "a head of more"),
        (get(&format!("{many}\r\n")), 431, "headers"),
        (format!("GET /{long}"), 414, "first line"),
        ("GET / HTTP/1.1\r\n\r\n".into(), 400, "no Host"),
        ("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".into(), 400, "HTTP/1.0"),
        ("GET / HTTP/2.0\r\nHost: x\r\n\r\n".into(), 505, "HTTP/1.1"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(), 505, "HTTP/1.1"),
        ("GET x HTTP/1.1\r\nHost: x\r\n\r\n".into(), 400, "begin with /"),
        ("GET / HTTP/1.1 \r\nHost: x\r\n\r\n".into(), 400, "cannot be read"),
        ("\r\n\r\n\r\n\r\n\r\n".into(), 400, "empty lines"),
        (" GET / HTTP/1.1\r\n".into(), 400, "begins with a blank"),
        ("\x16\x03\x01\x02\x00\x01".into(), 400, "a NUL"),
    ] {
        let (seen, reason) = fault(bytes.as_bytes());
        assert_eq!(seen, status, "{bytes:?}: {reason}");
        assert!(reason.contains(says), "{bytes:?}: {reason}");
    }
}

#[test]
fn what_waits_is_told_and_nothing_is_heard_of_half_a_request() {
    let mut server = Server::default();
    let mut heard = Vec::new();
    assert_eq!(server.phase(), Phase::Idle);
    server.take(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n", &mut heard);
    assert_eq!((server.phase(), heard.as_slice()), (Phase::Reading, [].as_slice()));
    server.take(b"\r\n", &mut heard);
    assert_eq!(heard, [Heard::Continue]);
    server.take(b"a", &mut heard);
    assert_eq!((server.phase(), heard.len()), (Phase::Reading, 1));
    server.take(b"b", &mut heard);
    assert_eq!((server.phase(), heard.len()), (Phase::Idle, 2));
    server.take(b"x\n", &mut heard);
    assert_eq!((server.phase(), heard.len()), (Phase::Failed, 3));
    server.take(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", &mut heard);
    assert_eq!(heard.len(), 3, "nothing is read after a fault");
}

#[test]
fn responses_are_framed_for_who_asked() {
    let framing = Framing { keep_alive: true, chunks: true, head_only: false };
    let text = |bytes: crate::bytes::Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    let whole = Response::text(404, "no").with("Allow", "GET");
    assert_eq!(
        text(whole.bytes(framing)),
        "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain; charset=utf-8\r\nAllow: GET\r\nContent-Length: 3\r\n\r\nno\n"
    );
    let head = text(whole.bytes(Framing { keep_alive: false, head_only: true, ..framing }));
    assert!(head.contains("Content-Length: 3\r\nConnection: close\r\n\r\n") && !head.contains("no\n"));
    let old = Framing { keep_alive: false, chunks: false, head_only: false };
    assert!(text(stream_head(framing)).contains("Transfer-Encoding: chunked\r\n\r\n"));
    assert!(text(stream_head(old)).ends_with("Connection: close\r\n\r\n"));
    assert_eq!(text(chunk(framing, b"data: 1\n\n")), "9\r\ndata: 1\n\n\r\n");
    assert_eq!((text(chunk(old, b"ab")), text(last_chunk(old))), ("ab".to_owned(), String::new()));
    assert_eq!(text(last_chunk(framing)), "0\r\n\r\n");
}

/// A request as some client would frame it.
fn framed() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    (proptest::collection::vec(any::<u8>(), 0..300), any::<bool>(), 1..80usize).prop_map(
        |(body, chunked, size)| {
            let mut bytes = b"POST /x HTTP/1.1\r\nHost: h\r\n".to_vec();
            if chunked {
                bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                for piece in body.chunks(size) {
                    bytes.extend_from_slice(format!("{:X}\r\n", piece.len()).as_bytes());
                    bytes.extend_from_slice(piece);
                    bytes.extend_from_slice(b"\r\n");
                }
                bytes.extend_from_slice(b"0\r\n\r\n");
            } else {
                bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
                bytes.extend_from_slice(&body);
            }
            (bytes, body)
        },
    )
}

proptest! {
    #[test]
    fn what_is_framed_is_read_back_however_it_is_cut(all in proptest::collection::vec(framed(), 1..5), cut in 0..=255u8) {
        let bytes: Vec<u8> = all.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let bodies: Vec<Vec<u8>> = requests(&bytes).iter().map(|request| request.body.to_vec()).collect();
        let wanted: Vec<Vec<u8>> = all.into_iter().map(|(_, body)| body).collect();
        prop_assert_eq!(bodies, wanted);
        http_server(&[&[cut], bytes.as_slice()].concat());
    }

    #[test]
    fn any_bytes_read_the_same_in_any_pieces(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        http_server(&bytes);
    }

    #[test]
    fn a_request_with_a_byte_changed_reads_the_same_in_any_pieces(
        (mut bytes, _) in framed(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in 0..=255u8
    ) {
        let at = at.index(bytes.len());
        bytes[at] = byte;
        http_server(&[&[cut], bytes.as_slice()].concat());
    }
}
