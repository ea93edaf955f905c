//! What holds for any bytes in any pieces and any order of what happens.
use super::*;
use crate::mcp::fuzzing::Books;
use proptest::prelude::*;

/// Lines a server might send, most of them near to something that matters.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let id = prop_oneof![
        (0u64..9).prop_map(|n| n.to_string()),
        (0u64..9).prop_map(|n| format!("\"{n}\"")),
        (0u64..9).prop_map(|n| format!("{n}.0")),
        Just("null".to_owned()),
        Just("[1]".to_owned()),
    ];
    let body = prop_oneof![
        Just(r#""result":{"content":[{"type":"text","text":"t"}]}"#),
        Just(r#""result":{"structuredContent":{"a":1}}"#),
        Just(r#""result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{}}}"#),
        Just(r#""result":{"tools":[{"name":"echo"}],"nextCursor":"c"}"#),
        Just(r#""result":{"tools":[]}"#),
        Just(r#""result":null"#),
        Just(r#""error":{"code":1,"message":"m"}"#),
        Just(r#""method":"ping""#),
        Just(r#""method":"roots/list""#),
        Just(r#""method":"notifications/progress","params":{"progressToken":3}"#),
    ];
    prop_oneof![
        6 => (id, body).prop_map(|(id, body)| format!(r#"{{"jsonrpc":"2.0","id":{id},{body}}}"#).into_bytes()),
        1 => Just(HELLO.as_bytes().to_vec()),
        1 => Just(LIST.as_bytes().to_vec()),
        1 => Just(format!("[{},{}]", result(3, "x"), result(4, "y")).into_bytes()),
        1 => proptest::collection::vec(any::<u8>(), 0..40),
    ]
}

#[derive(Debug, Clone)]
enum Step {
    Bytes(Vec<u8>),
    Call(u64),
    Cancel(u64),
    Tick(u64),
    Closed,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => line().prop_map(|mut l| { l.push(b'\n'); Step::Bytes(l) }),
        1 => proptest::collection::vec(any::<u8>(), 0..20).prop_map(Step::Bytes),
        4 => (0u64..6).prop_map(Step::Call),
        2 => (0u64..6).prop_map(Step::Cancel),
        2 => (0u64..4_000).prop_map(Step::Tick),
        1 => Just(Step::Closed),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_chunking_gives_the_same_outputs(
        lines in proptest::collection::vec(line(), 0..25),
        cuts in proptest::collection::vec(1usize..200, 1..40),
        started in any::<bool>(),
    ) {
        let bytes: Vec<u8> = lines.into_iter().flat_map(|mut l| { l.push(b'\n'); l }).collect();
        let run = |pieces: &mut dyn Iterator<Item = &[u8]>| {
            let mut client = if started { ready() } else { fresh() };
            for key in 0..3 {
                call(&mut client, 1, key);
            }
            for piece in pieces {
                client.received(at(2), piece);
            }
            client.closed("over");
            drain(&mut client)
        };
        let whole = run(&mut std::iter::once(&bytes[..]));
        prop_assert_eq!(&run(&mut bytes.chunks(1)), &whole);
        let mut rest = &bytes[..];
        let mut cut = cuts.into_iter().cycle();
        let mut pieces = std::iter::from_fn(|| {
            let (piece, tail) = rest.split_at(cut.next()?.min(rest.len()));
            rest = tail;
            (!piece.is_empty()).then_some(piece)
        });
        prop_assert_eq!(&run(&mut pieces), &whole);
    }

    #[test]
    fn every_key_is_answered_exactly_once_in_any_interleaving(
        steps in proptest::collection::vec(step(), 0..60),
        started in any::<bool>(),
    ) {
        let mut client = if started { ready() } else { fresh() };
        let mut now = 10;
        let mut books = Books::of(started);
        for step in steps.into_iter().chain([Step::Closed]) {
            match step {
                Step::Bytes(bytes) => client.received(at(now), &bytes),
                // A key that is open may not be used again; the driver never does.
                Step::Call(key) if books.is_open(key) => {}
                Step::Call(key) => {
                    books.ask(key);
                    call(&mut client, now, key);
                }
                Step::Cancel(key) => client.cancel(key, "why"),
                Step::Tick(ms) => {
                    now += ms;
                    client.tick(at(now));
                    prop_assert!(client.poll_timeout().is_none_or(|due| due > at(now)), "due in the past");
                }
                Step::Closed => client.closed("over"),
            }
            for output in drain(&mut client) {
                books.enter(&output);
            }
        }
        books.close();
        prop_assert_eq!(client.poll_timeout(), None);
    }
}
