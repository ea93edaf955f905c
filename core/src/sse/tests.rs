use super::*;
use proptest::prelude::*;

fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<(String, String)>, SseError> {
    let (mut decoder, mut events) = (Decoder::new(), Vec::new());
    for piece in pieces {
        decoder.push(piece, &mut events)?;
    }
    events.extend(decoder.finish()?);
    Ok(events.into_iter().map(|event| (event.name, event.data)).collect())
}

fn of(text: &str) -> Vec<(String, String)> {
    decode([text.as_bytes()]).expect("within bounds")
}

fn event(name: &str, data: &str) -> (String, String) {
    (name.to_owned(), data.to_owned())
}

#[test]
fn every_line_end_ends_a_line() {
    for end in ["\n", "\r", "\r\n"] {
        let text = ["event: a", "data: 1", "", ": note", "data:2", "data: 3", "", ""].join(end);
        assert_eq!(of(&text), [event("a", "1"), event("", "2\n3")], "{end:?}");
    }
}

#[test]
fn what_is_no_event() {
    assert_eq!(of(""), []);
    assert_eq!(of(": ping\n\n: ping\n\n"), []);
    assert_eq!(of("event: a\n\nid: 1\nretry: 5\nodd\n\n"), []);
    assert_eq!(of("event: a\n\ndata: x\n\n"), [event("", "x")], "a name ends with its event");
}

#[test]
fn only_one_space_and_one_mark_are_taken_off() {
    assert_eq!(of("\u{feff}data:  x\n\n"), [event("", " x")]);
    assert_eq!(of("data: x\n\n\u{feff}data: y\n\n"), [event("", "x")]);
    assert_eq!(of("data\n\ndata:\n\n"), [event("", ""), event("", "")]);
}

#[test]
fn the_last_event_needs_no_blank_line() {
    for text in ["data: x\n\n", "data: x\n", "data: x"] {
        assert_eq!(of(text), [event("", "x")], "{text:?}");
    }
}

#[test]
fn a_cut_character_is_put_together() {
    let text = "data: zwölf €\n\n".as_bytes();
    for at in 0..=text.len() {
        assert_eq!(decode([&text[..at], &text[at..]]).expect("fits"), [event("", "zwölf €")], "{at}");
    }
    assert_eq!(decode([b"data: \xff!\n\n".as_slice()]).expect("fits"), [event("", "\u{fffd}!")]);
}

#[test]
fn bounds_hold_to_the_byte_and_for_good() {
    let line = |value: usize| [b"data:".as_slice(), &vec![b'x'; value]].concat();
    let most = SSE_LINE_BYTES - b"data:".len();
    assert_eq!(decode([line(most).as_slice()]).expect("fits")[0].1.len(), most);
    assert_eq!(decode([line(most + 1).as_slice()]), Err(SseError::LineTooLong(SSE_LINE_BYTES)));

    let (mut decoder, mut events) = (Decoder::new(), Vec::new());
    let half = [line(most / 2), b"\n".to_vec()].concat();
    decoder.push(b"data: first\n\n", &mut events).expect("fits");
    decoder.push(&half, &mut events).expect("fits");
    decoder.push(&half, &mut events).expect("fits");
    assert_eq!(decoder.push(&half, &mut events), Err(SseError::EventTooLong(SSE_EVENT_BYTES)));
    assert_eq!(decoder.push(b"data: later\n\n", &mut events), Err(SseError::EventTooLong(SSE_EVENT_BYTES)));
    assert_eq!(events.len(), 1, "what came before stands");
    assert_eq!(decoder.finish(), Err(SseError::EventTooLong(SSE_EVENT_BYTES)));
}

proptest! {
    #[test]
    fn no_split_changes_the_events(
        text in "(data|event|id|:|\u{feff})?:? ?[a-zé\r\n:]{0,60}",
        more in "([\r\n]{0,3}(data|event): ?[a-z]{0,5}[\r\n]{0,3}){0,6}",
        at in 0usize..120,
        size in 1usize..5,
    ) {
        let bytes = [text, more].concat().into_bytes();
        let whole = decode([bytes.as_slice()]);
        let at = at.min(bytes.len());
        prop_assert_eq!(&decode([&bytes[..at], &bytes[at..]]), &whole);
        prop_assert_eq!(&decode(bytes.chunks(size)), &whole);
    }
}

#[test]
fn where_a_stream_goes_on_is_known_whatever_the_cuts() {
    let text = b"id: 1\ndata: a\n\nid: e-2\nretry: 500\ndata:\n\nid: three\ndata: cut";
    for size in [1, 3, text.len()] {
        let (mut decoder, mut events) = (Decoder::new(), Vec::new());
        text.chunks(size).for_each(|piece| decoder.push(piece, &mut events).expect("within bounds"));
        assert_eq!((decoder.last_id(), decoder.retry()), (Some("e-2"), Some(Duration::from_millis(500))));
        assert_eq!(events.len(), 2);
    }
    for odd in
        ["id: \u{e9}\n\n", "retry: soon\n\n", "retry: -1\n\n", "retry: 99999999999\n\n", "id: a\0b\n\n"]
    {
        let (mut decoder, mut events) = (Decoder::new(), Vec::new());
        decoder.push(odd.as_bytes(), &mut events).expect("within bounds");
        assert_eq!((decoder.last_id(), decoder.retry()), (None, None), "{odd:?}");
    }
    let mut decoder = Decoder::new();
    decoder.push(b"id: 1\n\nid\n\n", &mut Vec::new()).expect("within bounds");
    assert_eq!(decoder.last_id(), None, "an empty one takes it back");
}
