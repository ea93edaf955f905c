//! Frames in any pieces, and the hostile channel of F32 at the level of the decoder.

use super::{Decoded, Decoder, DownDecoder, Ignored, KEPT_BYTES, UpDecoder};
use crate::error::ProtocolError;
use crate::limits;
use crate::wire::message::{Ping, Pong, Ready, VERSION};
use crate::wire::samples::arbitrary::{any_down, any_up};
use crate::wire::samples::{every_down, every_up};
use crate::wire::{Down, Encoder, Message, Up};
use ciborium::Value;
use proptest::prelude::*;
use std::fmt::Debug;

/// All that a decoder says: to the bytes, to their end, and of what it passed over.
type Said<M> = (Vec<Result<Decoded<M>, ProtocolError>>, Result<(), ProtocolError>, Ignored);

fn decode<M: Message>(pieces: &[&[u8]]) -> Said<M> {
    let mut decoder = Decoder::<M>::new();
    let mut seen = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        seen.extend(decoder.by_ref());
    }
    let end = decoder.finish();
    (seen, end, decoder.ignored())
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(body.len()).expect("small").to_be_bytes().to_vec();
    frame.extend(body);
    frame
}

/// What a supervisor says to one frame with this body, as the first of a channel.
fn refusal(body: &[u8]) -> String {
    let (seen, end, _) = decode::<Up>(&[&framed(body), &framed(b"\xa2\x61tapong\x61n\x02")]);
    assert_eq!(end, Ok(()), "one error is enough");
    match seen.as_slice() {
        [Err(error)] => error.to_string(),
        other => panic!("{body:02x?} gave {other:?}"),
    }
}

fn messages<M: Message + Debug + Clone + PartialEq>(sent: &[M]) {
    let (mut encoder, mut bytes) = (Encoder::new(), Vec::new());
    for message in sent {
        encoder.append(message, &mut bytes).expect("fits");
    }
    let expected: Vec<_> = sent.iter().cloned().map(|message| Ok(Decoded::Message(message))).collect();
    assert_eq!(decode::<M>(&[&bytes]), (expected, Ok(()), Ignored::default()));
}

#[test]
fn every_type_round_trips() {
    messages(&every_down());
    messages(&every_up());
}

#[test]
fn both_names_of_the_decoder_read_their_direction() {
    let mut up = UpDecoder::default();
    up.push(&Encoder::new().encode_up(&Up::Pong(Pong { seq: 1 })).expect("fits"));
    assert_eq!(up.next(), Some(Ok(Decoded::Message(Up::Pong(Pong { seq: 1 })))));
    assert_eq!(up.next(), None);
    let mut down = DownDecoder::default();
    down.push(&Encoder::new().encode_down(&Down::Ping(Ping { seq: 1 })).expect("fits"));
    assert_eq!(down.next(), Some(Ok(Decoded::Message(Down::Ping(Ping { seq: 1 })))));
}

#[test]
fn lengths_are_refused_before_the_body_comes() {
    for (prefix, said) in [
        (0u32, "frame 1: length 0; a frame's body is at least one byte"),
        (8_388_609, "frame 1: length 8388609, at most 8388608 bytes are accepted"),
        (1 << 31, "frame 1: length 2147483648, at most 8388608 bytes are accepted"),
        (u32::MAX, "frame 1: length 4294967295, at most 8388608 bytes are accepted"),
    ] {
        let (seen, end, _) = decode::<Up>(&[&prefix.to_be_bytes()]);
        assert_eq!(seen, [Err(ProtocolError(said.into()))]);
        assert_eq!(end, Ok(()));
    }
    let (seen, _, _) = decode::<Up>(&[&(1u64 << 63).to_be_bytes()]);
    assert!(matches!(seen.as_slice(), [Err(_)]), "{seen:?}");
}

#[test]
fn text_that_is_printed_into_the_channel_is_recognised() {
    let printed = b"Hello, world!\nand more".as_slice();
    let (seen, _, _) = decode::<Up>(&[printed]);
    assert_eq!(seen, decode::<Up>(&[&printed[..4]]).0, "however much of it has come");
    let [Err(error)] = seen.as_slice() else { panic!("{seen:?}") };
    assert_eq!(
        error.to_string(),
        "frame 1: length 1214606444 (\"Hell\" as text: does something print into the channel?), at most 8388608 \
         bytes are accepted"
    );
}

#[test]
fn structure_is_refused_with_the_place() {
    for (body, said) in [
        (
            b"\xbf\x61t\x64pong\x61n\x01\x63seq\x01\xff".as_slice(),
            "byte 0: a map of indefinite length; only definite",
        ),
        (b"\xa3\x61t\x64pong\x61n\x01\x63seq\x9f\x01\xff", "byte 15: an array of indefinite length"),
        (b"\xa3\x61t\x64pong\x61n\x01\x63seq\xc0\x01", "byte 15: tag 0; tags are not accepted"),
        (b"\xa3\x61t\x64pong\x61n\x01\x01\x01", "byte 11: 1 as a key; keys are text"),
        (b"\xa3\x61t\x64pong\x61n\x01\x61t\x64pong", "byte 11: the key \"t\" again in one map"),
        (b"\xa4\x61t\x64pong\x61n\x01\x61n\x01\x63seq\x01", "byte 11: the key \"n\" again in one map"),
        (b"\xa3\x61t\x64pong\x61n\x01\x63seq\xf9\x7e\x00", "byte 15: NaN"),
        (b"\xa3\x61t\x64pong\x61n\x01\x63s\xffq\x01", "byte 11: a text of 3 bytes that is not UTF-8"),
        (b"\xa3\x61t\x64pong\x61n\x01\x63seq\x01\x00", "byte 16: 1 bytes after the end of the item"),
        (
            b"\xa4\x61t\x64pong\x61n\x01\x63seq\x01",
            "byte 16: an item begins here and the frame ends inside it",
        ),
        (
            b"\xa3\x61t\x64pong\x61n\x01\x63seq\x7a\xff\xff\xff\xffabc",
            "byte 15: a text of 4294967295 bytes, but 3",
        ),
    ] {
        let refusal = refusal(body);
        assert!(refusal.starts_with(&format!("frame 1: {said}")), "{refusal}");
    }
}

#[test]
fn a_million_levels_are_refused_in_a_loop() {
    assert!(refusal(&vec![0x81; 1_000_000]).contains("nested deeper than 64 levels"));
    assert!(refusal(&b"\xa1\x61k".repeat(1_000_000)).contains("nested deeper than 64 levels"));
    let value = [b"\xa3\x61t\x64pong\x61n\x01\x61x".as_slice(), &[0x81; 1_000_000]].concat();
    assert!(refusal(&value).contains("nested deeper than 64 levels"));
}

#[test]
fn sixty_four_levels_in_an_unknown_key_are_passed_over() {
    let body = |depth: usize| {
        [b"\xa4\x61t\x64pong\x61n\x01\x63seq\x05\x61x".as_slice(), &vec![0x81; depth - 1], b"\x80"].concat()
    };
    let (seen, _, ignored) = decode::<Up>(&[&framed(&body(63))]);
    assert_eq!(seen, [Ok(Decoded::Message(Up::Pong(Pong { seq: 5 })))]);
    assert_eq!(ignored, Ignored { types: 0, keys: 1 });
    assert!(refusal(&body(64)).contains("nested deeper than 64 levels"));
}

#[test]
fn the_envelope_is_checked() {
    for (body, said) in [
        (b"\x80".as_slice(), "frame 1: an array as the body; a map is expected"),
        (b"\x64pong", "frame 1: text \"pong\" as the body; a map is expected"),
        (b"\xa0", "frame 1: the key \"t\" is missing; it holds the frame's type"),
        (b"\xa1\x61n\x01", "frame 1: the key \"t\" is missing; it holds the frame's type"),
        (b"\xa2\x61t\x01\x61n\x01", "frame 1: `t` is 1; the frame's type as text is expected"),
        (b"\xa1\x61t\x64pong", "frame 1: `pong`: the key \"n\" is missing; it holds the frame's number"),
        (b"\xa2\x61t\x64pong\x61n\x20", "frame 1: `pong`: `n` is -1; the frame's number is expected"),
        (
            b"\xa2\x61t\x64pong\x61n\x611",
            "frame 1: `pong`: `n` is text \"1\"; the frame's number is expected",
        ),
        // `t` and `n` further down are somebody else's.
        (
            b"\xa1\x61x\xa2\x61t\x64pong\x61n\x01",
            "frame 1: the key \"t\" is missing; it holds the frame's type",
        ),
        (b"\xa2\x61t\x64pong\x61n\x00", "frame 1: number 0 where 1 is due: it was there before"),
        (b"\xa2\x61t\x64pong\x61n\x04", "frame 1: number 4 where 1 is due: 3 frames are missing"),
        (b"\xa2\x61t\x63new\x61n\x02", "frame 1: number 2 where 1 is due: 1 frames are missing"),
    ] {
        assert_eq!(refusal(body), said);
    }
}

#[test]
fn the_envelope_may_stand_anywhere_and_numbers_may_be_long() {
    let body = b"\xa3\x63seq\x18\x07\x61n\x1b\0\0\0\0\0\0\0\x01\x61t\x64pong";
    assert_eq!(decode::<Up>(&[&framed(body)]).0, [Ok(Decoded::Message(Up::Pong(Pong { seq: 7 })))]);
}

#[test]
fn messages_say_what_was_expected_and_seen() {
    for (body, said) in [
        (b"\xa2\x61t\x64pong\x61n\x01".as_slice(), "frame 1: `pong`: missing field `seq`"),
        (
            b"\xa3\x61t\x64pong\x61n\x01\x63seq\x611",
            "frame 1: `pong`: seq: invalid type: string, expected integer",
        ),
        (b"\xa3\x61t\x64pong\x61n\x01\x63seq\x20", "frame 1: `pong`: seq: unexpected negative integer"),
        (
            b"\xa3\x61t\x64pong\x61n\x01\x63seq\xf6",
            "frame 1: `pong`: seq: invalid type: null, expected integer",
        ),
        (
            b"\xa3\x61t\x65ready\x61n\x01\x61v\x83\x01\x00\x00",
            "frame 1: `ready`: v: invalid length 3, expected an array of two numbers",
        ),
        (
            b"\xa3\x61t\x65ready\x61n\x01\x61v\x82\x01\x1a\x00\x01\x00\x00",
            "frame 1: `ready`: v[1]: invalid value: integer `65536`, expected u16",
        ),
        (
            b"\xa4\x61t\x65state\x61n\x01\x6awaiting_on\x63nap\x64step\x01",
            "frame 1: `state`: waiting_on: unknown variant `nap`, expected one of `servers`, `model`, `tools`, `supervisor`, `throttled`, `message`, `paused`, `budget`, `closing`",
        ),
        (
            b"\xa4\x61t\x65tools\x61n\x01\x66server\x62fs\x65tools\x82\x61a\x41b",
            "frame 1: `tools`: tools[1]: invalid type: bytes, expected string",
        ),
    ] {
        assert_eq!(refusal(body), said);
    }
}

#[test]
fn what_is_left_of_a_long_array_is_never_read_as_keys() {
    let body = b"\xa4\x61t\x65ready\x61n\x01\x61v\x84\x01\x00\x61x\x05\x61y\x07";
    assert_eq!(refusal(body), "frame 1: `ready`: v: invalid length 4, expected an array of two numbers");
}

/// Every map of one pair in `value`, once each as its key alone.
fn without_content(value: &Value) -> Vec<Value> {
    let among = |items: Vec<Value>, whole: &dyn Fn(Vec<Value>) -> Value| {
        let mut changed = Vec::new();
        for (at, item) in items.iter().enumerate() {
            for other in without_content(item) {
                let mut items = items.clone();
                items[at] = other;
                changed.push(whole(items));
            }
        }
        changed
    };
    if let Value::Map(pairs) = value {
        let (keys, values): (Vec<Value>, Vec<Value>) = pairs.iter().cloned().unzip();
        let mut changed = among(values, &|values| Value::Map(keys.iter().cloned().zip(values).collect()));
        changed.extend(keys.first().filter(|_| keys.len() == 1).cloned());
        return changed;
    }
    match value.as_array() {
        Some(items) => among(items.clone(), &|items| Value::Array(items)),
        None => Vec::new(),
    }
}

/// ciborium alone would take what follows for the content: `exact` has to be on every enum that has some.
fn variants_are_exact<M: Message + Debug>(messages: &[M]) -> usize {
    let mut changed = 0;
    for message in messages {
        let mut frame = Vec::new();
        Encoder::new().append(message, &mut frame).expect("fits");
        let value: Value = ciborium::from_reader(&frame[4..]).expect("CBOR");
        for value in without_content(&value) {
            let mut body = Vec::new();
            ciborium::into_writer(&value, &mut body).expect("writes");
            let (seen, _, _) = decode::<M>(&[&framed(&body)]);
            let [Err(error)] = seen.as_slice() else { panic!("{value:?} gave {seen:?}") };
            let said = error.to_string();
            assert!(
                said.ends_with("unit variant, expected newtype variant")
                    || said.ends_with("string, expected map"),
                "{said}"
            );
            changed += 1;
        }
    }
    changed
}

#[test]
fn a_variant_in_a_message_never_takes_what_follows_for_its_content() {
    assert!(variants_are_exact(&every_down()) >= 4, "two transports, their variables, a dialect");
    assert!(variants_are_exact(&every_up()) >= 2, "what is waited on, and fields");
}

#[test]
fn an_unknown_key_may_be_long() {
    let key = [b"\x7a\x00\x10\x00\x00".as_slice(), &vec![b'k'; 1 << 20]].concat();
    let body = [b"\xa4\x61t\x64pong\x61n\x01\x63seq\x05".as_slice(), &key, b"\x01"].concat();
    let (seen, _, ignored) = decode::<Up>(&[&framed(&body)]);
    assert_eq!(seen, [Ok(Decoded::Message(Up::Pong(Pong { seq: 5 })))]);
    assert_eq!(ignored.keys, 1);
}

#[test]
fn an_error_never_carries_what_the_peer_sent_whole() {
    let megabyte = |byte: u8, head: &[u8]| [head, &vec![byte; 1 << 20]].concat();
    let text = megabyte(b'\x1b', b"\x7a\x00\x10\x00\x00");
    for body in [
        [b"\xa3\x61t\x64pong\x61n\x01\x63seq".as_slice(), &text].concat(),
        [b"\xa2\x61t\x64pong\x61n".as_slice(), &text].concat(),
        [b"\xa2\x61n\x05\x61t".as_slice(), &text].concat(),
        [b"\xa2\x61n\x61x\x61t".as_slice(), &text].concat(),
        [b"\xa4\x61t\x65state\x61n\x01\x64step\x01\x6awaiting_on".as_slice(), &text].concat(),
        [b"\xa4\x61t\x65state\x61n\x01\x64step\x01\x6awaiting_on\xa1".as_slice(), &text, b"\x80"].concat(),
        [
            b"\xa5\x61t\x65event\x61n\x01\x65level\x64info\x64name\x61x\x66fields\xa1".as_slice(),
            &text,
            b"\x01",
        ]
        .concat(),
        text.clone(),
    ] {
        let said = refusal(&body);
        assert!(said.len() <= limits::PROTOCOL_ERROR_BYTES + 40, "{} bytes", said.len());
        assert!(!said.chars().any(char::is_control), "{said}");
    }
}

#[test]
fn unknown_types_and_keys_are_counted_and_the_rest_is_served() {
    let bytes = [
        framed(b"\xa4\x61t\x69telemetry\x61n\x01\x63seq\xf6\x61x\x82\x01\xa1\x61t\x01"),
        framed(b"\xa5\x61t\x64pong\x61n\x02\x61x\xa1\x61y\x82\x01\x02\x63seq\x05\x61z\xf7"),
        framed(b"\xa3\x61t\x64ping\x61n\x03\x63seq\x01"),
        framed(b"\xa3\x61t\x64pong\x61n\x04\x63seq\x06"),
    ]
    .concat();
    let pong = |seq| Ok(Decoded::Message(Up::Pong(Pong { seq })));
    let (seen, end, ignored) = decode::<Up>(&[&bytes]);
    assert_eq!(seen, [Ok(Decoded::Ignored), pong(5), Ok(Decoded::Ignored), pong(6)]);
    assert_eq!(end, Ok(()));
    assert_eq!(ignored, Ignored { types: 2, keys: 2 });
}

#[test]
fn unknown_keys_inside_a_message_are_counted_too() {
    let body = b"\xa4\x61t\x66result\x61n\x01\x63end\x69completed\x68evidence\xa4\x6bmodel_calls\x01\x6atool_calls\x02\
        \x6btool_errors\x00\x68children\x82\x01\x02";
    let (seen, _, ignored) = decode::<Up>(&[&framed(body)]);
    assert!(matches!(seen.as_slice(), [Ok(Decoded::Message(Up::Result(_)))]), "{seen:?}");
    assert_eq!(ignored, Ignored { types: 0, keys: 1 });
}

#[test]
fn an_unknown_frame_is_still_held_to_the_rules() {
    assert!(refusal(b"\xa3\x61t\x63new\x61n\x01\x61x\xf9\x7e\x00").contains("NaN"));
    assert!(refusal(b"\xa3\x61t\x63new\x61n\x01\x61x\x5f\xff").contains("indefinite"));
}

#[test]
fn the_end_of_the_stream_may_not_cut_a_frame() {
    let (mut encoder, mut bytes) = (Encoder::new(), Vec::new());
    encoder.append(&Up::Ready(Ready { v: VERSION }), &mut bytes).expect("fits");
    let first = bytes.len();
    encoder.append(&Up::Pong(Pong { seq: 1 }), &mut bytes).expect("fits");
    for cut in 0..=bytes.len() {
        let (seen, end, _) = decode::<Up>(&[&bytes[..cut]]);
        assert_eq!(seen.len(), usize::from(cut >= first) + usize::from(cut == bytes.len()));
        assert_eq!(end.is_ok(), cut == 0 || cut == first || cut == bytes.len(), "cut at {cut}");
    }
    let said = |cut: usize| decode::<Up>(&[&bytes[..cut]]).1.expect_err("cut").to_string();
    assert_eq!(said(first + 2), "frame 2: the stream ends after 2 of the 4 bytes of its length");
    assert_eq!(said(first + 9), "frame 2: the stream ends after 5 of its 16 bytes");
    let mut untaken = UpDecoder::new();
    untaken.push(&bytes[..bytes.len() - 1]);
    assert!(untaken.finish().is_err(), "judged behind frames that nobody took");
}

#[test]
fn after_an_error_nothing_more_comes_and_nothing_is_kept() {
    let mut decoder = UpDecoder::new();
    decoder.push(&framed(b"\x00"));
    assert!(matches!(decoder.next(), Some(Err(_))));
    for _ in 0..100 {
        decoder.push(&[0; 65_536]);
        assert_eq!(decoder.next(), None);
    }
    assert_eq!(decoder.held_bytes(), 0);
    assert_eq!(decoder.finish(), Ok(()));
}

#[test]
fn a_promise_of_megabytes_costs_nothing() {
    let mut decoder = UpDecoder::new();
    decoder.push(&u32::try_from(limits::FRAME_BYTES).expect("small").to_be_bytes());
    decoder.push(b"\xba\x00\xff\xff\xff");
    assert_eq!(decoder.next(), None);
    assert!(decoder.held_bytes() < 4096, "{}", decoder.held_bytes());
}

#[test]
fn a_million_tiny_frames_are_served_in_bounded_memory() {
    let mut decoder = UpDecoder::new();
    let mut encoder = Encoder::new();
    let (mut sent, mut seen) = (0u64, 0u64);
    let mut bytes = Vec::new();
    while sent < 1_000_000 {
        bytes.clear();
        while bytes.len() < 65_536 {
            encoder.append(&Up::Pong(Pong { seq: sent }), &mut bytes).expect("fits");
            sent += 1;
        }
        for piece in bytes.chunks(10_007) {
            decoder.push(piece);
            for decoded in decoder.by_ref() {
                assert_eq!(decoded, Ok(Decoded::Message(Up::Pong(Pong { seq: seen }))));
                seen += 1;
            }
            assert!(decoder.held_bytes() < 64 * 1024);
        }
    }
    assert_eq!((seen, decoder.finish()), (sent, Ok(())));
}

#[test]
fn a_reader_that_takes_one_frame_a_push_moves_each_byte_once() {
    let mut one = Vec::new();
    let mut encoder = Encoder::new();
    let mut decoder = UpDecoder::new();
    for seq in 0..20_000 {
        one.clear();
        encoder.append(&Up::Pong(Pong { seq }), &mut one).expect("fits");
        decoder.push(&one);
        if seq % 2 == 1 {
            assert!(matches!(decoder.next(), Some(Ok(_))));
        }
    }
    assert!(decoder.held_bytes() <= 2 * (20_000 * one.len()), "{}", decoder.held_bytes());
    assert_eq!(decoder.by_ref().count(), 10_000);
}

#[test]
fn a_quiet_channel_holds_little_after_a_large_frame() {
    let large = Up::Event(crate::wire::message::Event {
        level: "info".into(),
        name: "x".into(),
        fields: [("k".to_owned(), "v".repeat(4 << 20))].into(),
    });
    let mut decoder = UpDecoder::new();
    for piece in Encoder::new().encode_up(&large).expect("fits").chunks(65_536) {
        decoder.push(piece);
    }
    assert_eq!(decoder.next(), Some(Ok(Decoded::Message(large))));
    assert_eq!(decoder.next(), None);
    assert!(decoder.held_bytes() <= KEPT_BYTES, "{}", decoder.held_bytes());
}

#[test]
fn the_debug_form_shows_no_bytes() {
    let mut decoder = UpDecoder::new();
    decoder.push(b"\0\0\0\x20secret");
    let shown = format!("{decoder:?}");
    assert!(shown.contains("waiting_bytes: 10") && !shown.contains("115"), "{shown}");
}

/// Cuts `bytes` at the given places.
fn pieces<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

/// One message of the child, or a frame that is not one.
fn any_frame() -> impl Strategy<Value = Result<Up, Vec<u8>>> {
    prop_oneof![
        6 => any_up().prop_map(Ok),
        1 => proptest::collection::vec(any::<u8>(), 0..40).prop_map(Err),
    ]
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any_frame(), 0..6).prop_map(|frames| {
        let (mut encoder, mut bytes) = (Encoder::new(), Vec::new());
        for frame in frames {
            match frame {
                Ok(message) => encoder.append(&message, &mut bytes).expect("fits"),
                Err(junk) => bytes.extend(junk),
            }
        }
        bytes
    })
}

fn agree<M: Message + Debug + PartialEq>(
    bytes: &[u8],
    cuts: &[prop::sample::Index],
) -> Result<(), TestCaseError> {
    let whole = decode::<M>(&[bytes]);
    prop_assert_eq!(&decode::<M>(&pieces(bytes, cuts)), &whole);
    if bytes.len() < 3000 {
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&decode::<M>(&single), &whole);
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_cut_of_any_bytes_gives_the_same(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        agree::<Up>(&bytes, &cuts)?;
        agree::<Down>(&bytes, &cuts)?;
        agree::<Up>(&framed(&bytes), &cuts)?;
    }

    #[test]
    fn any_cut_of_frames_gives_the_same(
        bytes in stream(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        agree::<Up>(&bytes, &cuts)?;
    }

    #[test]
    fn any_messages_round_trip(
        down in proptest::collection::vec(any_down(), 0..4), up in proptest::collection::vec(any_up(), 0..4),
    ) {
        messages(&down);
        messages(&up);
    }

    #[test]
    fn changed_frames_give_an_answer_in_bounded_memory(
        mut bytes in stream(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        if !bytes.is_empty() {
            for (at, to) in changes {
                let at = at.index(bytes.len());
                bytes[at] = to;
            }
        }
        let mut decoder = UpDecoder::new();
        for piece in bytes.chunks(4096) {
            decoder.push(piece);
            for decoded in decoder.by_ref() {
                if let Err(error) = decoded {
                    prop_assert!(error.to_string().len() <= limits::PROTOCOL_ERROR_BYTES + 40);
                }
            }
            prop_assert!(decoder.held_bytes() <= 8 * bytes.len() + 64 * 1024);
        }
    }
}
