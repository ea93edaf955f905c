//! Every refusal of S2.1 at every level, and the borders of every bound.

use super::Scanner;
use crate::limits;

/// What the scan says of one item.
fn scan(bytes: &[u8]) -> Result<(), String> {
    Scanner::default().scan(bytes).map(drop).map_err(|fault| fault.to_string())
}

/// The item alone, as an element, as a value, in a nested map, and after a key of the same kind of map.
fn placed(item: &[u8]) -> Vec<Vec<u8>> {
    let around: [(&[u8], &[u8]); 5] = [
        (b"", b""),
        (b"\x82\x01", b""),
        (b"\xa1\x61x", b""),
        (b"\xa1\x61x\x82\xa1\x61y", b"\x80"),
        (b"\xa2\x61a\x01\x61b", b""),
    ];
    around.iter().map(|(before, after)| [before, item, after].concat()).collect()
}

fn refused_everywhere(item: &[u8], part: &str) {
    for bytes in placed(item) {
        let said = scan(&bytes).expect_err("refused");
        assert!(said.contains(part), "{bytes:02x?}: {said}");
        assert!(said.starts_with("byte "), "{said}");
    }
}

fn accepted_everywhere(item: &[u8]) {
    for bytes in placed(item) {
        assert_eq!(scan(&bytes), Ok(()), "{bytes:02x?}");
    }
}

fn arrays(depth: usize) -> Vec<u8> {
    let mut bytes = vec![0x81; depth - 1];
    bytes.push(0x80);
    bytes
}

fn maps(depth: usize) -> Vec<u8> {
    let mut bytes = b"\xa1\x61k".repeat(depth - 1);
    bytes.push(0xa0);
    bytes
}

#[test]
fn indefinite_lengths_of_every_type_are_refused() {
    refused_everywhere(b"\x5f\x41a\xff", "a byte string of indefinite length");
    refused_everywhere(b"\x7f\x61a\xff", "a text of indefinite length");
    refused_everywhere(b"\x9f\x01\xff", "an array of indefinite length");
    refused_everywhere(b"\xbf\x61a\x01\xff", "a map of indefinite length");
    refused_everywhere(b"\xff", "a break");
}

#[test]
fn heads_that_mean_nothing_are_refused() {
    for major in 0u8..8 {
        for info in 28u8..31 {
            refused_everywhere(&[major << 5 | info, 0, 0, 0, 0, 0, 0, 0, 0], "is not CBOR");
        }
    }
    for major in [0u8, 1, 6] {
        refused_everywhere(&[major << 5 | 31, 0], "is not CBOR");
    }
    for simple in 0..32 {
        refused_everywhere(&[0xf8, simple], "in two bytes is not CBOR");
    }
}

#[test]
fn simple_values_without_a_meaning_are_refused_and_undefined_is_not() {
    for simple in [b"\xe0".as_slice(), b"\xf3", b"\xf8\x20", b"\xf8\xff"] {
        refused_everywhere(simple, "which has no meaning");
    }
    accepted_everywhere(b"\xf7");
}

#[test]
fn tags_are_refused() {
    for tag in [b"\xc0\x60".as_slice(), b"\xc2\x41\x01", b"\xd8\x20\x60", b"\xda\xff\xff\xff\xff\x01"] {
        refused_everywhere(tag, "tags are not accepted");
    }
}

#[test]
fn nan_of_every_width_and_sign_is_refused_and_other_floats_are_not() {
    for nan in [
        b"\xf9\x7e\x00".as_slice(),
        b"\xf9\x7c\x01",
        b"\xf9\xfe\x00",
        b"\xfa\x7f\xc0\x00\x00",
        b"\xfa\xff\x80\x00\x01",
        b"\xfb\x7f\xf8\x00\x00\x00\x00\x00\x00",
        b"\xfb\xff\xf0\x00\x00\x00\x00\x00\x01",
    ] {
        refused_everywhere(nan, "NaN");
    }
    for number in [
        b"\xf9\x7c\x00".as_slice(),
        b"\xf9\xfc\x00",
        b"\xf9\x7b\xff",
        b"\xfa\x7f\x80\x00\x00",
        b"\xfb\x00\x00\x00\x00\x00\x00\x00\x01",
    ] {
        accepted_everywhere(number);
    }
}

#[test]
fn keys_that_are_not_text_are_refused_in_any_map() {
    for key in
        [b"\x01".as_slice(), b"\x20", b"\x41a", b"\x80", b"\xa0", b"\xf4", b"\xf6", b"\xf9\x00\x00", b"\xf7"]
    {
        let map = [b"\xa1".as_slice(), key, b"\x01"].concat();
        refused_everywhere(&map, "keys are text");
    }
    refused_everywhere(b"\xa2\x61a\x01\x02\x03", "2 as a key");
}

#[test]
fn a_key_twice_is_refused_in_any_map() {
    refused_everywhere(b"\xa2\x61a\x01\x61a\x02", "the key \"a\" again");
    refused_everywhere(b"\xa2\x60\x01\x60\x02", "the key \"\" again");
    refused_everywhere(b"\xa3\x61a\xa1\x61b\x01\x61b\x02\x61a\x03", "the key \"a\" again");
    // The same text under a longer head is the same key.
    refused_everywhere(b"\xa2\x61a\x01\x78\x01a\x02", "the key \"a\" again");
    // Texts that begin alike, or differ in a trailing NUL only, are different keys.
    accepted_everywhere(b"\xa3\x64same\x01\x65same1\x02\x65same2\x03");
    accepted_everywhere(b"\xa2\x61a\x01\x62a\x00\x02");
    // The same key in a map inside, beside and above is another map's.
    accepted_everywhere(b"\xa2\x61a\xa1\x61a\x01\x61b\xa1\x61a\x02");
    accepted_everywhere(b"\x82\xa1\x61a\x01\xa1\x61a\x01");
}

#[test]
fn a_key_twice_among_very_many_is_found() {
    let keys = 50_000u32;
    for twice in [0, 1, keys / 2, keys - 1] {
        let mut bytes = vec![0xba];
        bytes.extend((keys + 1).to_be_bytes());
        for key in (0..keys).chain([twice]) {
            let key = format!("{:08}", key.wrapping_mul(7919) % 1_000_000);
            bytes.push(0x68);
            bytes.extend(key.as_bytes());
            bytes.push(0xf6);
        }
        let said = scan(&bytes).expect_err("refused");
        assert!(said.contains("again in one map"), "{said}");
        let whole: [u8; 5] = [0xba, 0, 0, 0xc3, 0x50];
        let without_last = [&whole, &bytes[5..bytes.len() - 10]].concat();
        assert_eq!(scan(&without_last), Ok(()));
    }
}

#[test]
fn a_repeated_key_of_megabytes_is_quoted_in_part() {
    let key = [b"\x7a\x00\x10\x00\x00".as_slice(), &vec![b'k'; 1 << 20]].concat();
    let said = scan(&[b"\xa2".as_slice(), &key, b"\x01", &key, b"\x01"].concat()).expect_err("refused");
    assert!(said.contains("[1048576 bytes in all]") && said.len() < 400, "{said}");
}

#[test]
fn texts_are_utf8() {
    for text in [
        b"\x61\xff".as_slice(),
        b"\x62\xc3\x28",
        b"\x61\xc3",
        b"\x62\xc0\x80",
        b"\x63\xed\xa0\x80",
        b"\x64\xf5\x80\x80\x80",
    ] {
        refused_everywhere(text, "not UTF-8");
        let as_key = [b"\xa1".as_slice(), text, b"\x01"].concat();
        refused_everywhere(&as_key, "not UTF-8");
    }
    accepted_everywhere("\x62é".as_bytes());
    accepted_everywhere("\x64\u{1F980}".as_bytes());
    accepted_everywhere(b"\x42\xff\xfe");
}

#[test]
fn sixty_four_levels_are_accepted_and_one_more_is_refused() {
    assert_eq!(scan(&arrays(limits::FRAME_DEPTH)), Ok(()));
    assert_eq!(scan(&maps(limits::FRAME_DEPTH)), Ok(()));
    for (bytes, at) in [(arrays(limits::FRAME_DEPTH + 1), 64), (maps(limits::FRAME_DEPTH + 1), 3 * 64)] {
        assert_eq!(scan(&bytes), Err(format!("byte {at}: nested deeper than 64 levels")));
    }
    let scalars_at_the_bottom = [vec![0x81; limits::FRAME_DEPTH], vec![0x01]].concat();
    assert_eq!(scan(&scalars_at_the_bottom), Ok(()));
    // A level that was closed is not counted on.
    let wide = [vec![0x82], arrays(63), arrays(63)].concat();
    assert_eq!(scan(&wide), Ok(()));
    assert!(scan(&vec![0x81; 1_000_000]).is_err(), "a million levels");
    assert!(scan(&b"\xa1\x61k".repeat(1_000_000)).is_err(), "a million levels of maps");
}

#[test]
fn lengths_beyond_what_is_left_are_refused_before_anything_is_kept() {
    for (item, part) in [
        (b"\x7a\xff\xff\xff\xffabc".as_slice(), "a text of 4294967295 bytes, but"),
        (b"\x5b\xff\xff\xff\xff\xff\xff\xff\xffabc", "a byte string of 18446744073709551615 bytes, but"),
        (b"\x9a\xff\xff\xff\xff\x01", "an array of 4294967295 items, but"),
        (b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff\x61a\x01", "a map of 18446744073709551615 pairs, but"),
        (b"\xbb\x80\x00\x00\x00\x00\x00\x00\x00\x61a\x01", "a map of 9223372036854775808 pairs, but"),
    ] {
        refused_everywhere(item, part);
    }
    let mut scanner = Scanner::default();
    assert!(scanner.scan(b"\xba\xff\xff\xff\xff\x61a\x01").is_err());
    assert!(scanner.keys.capacity() < 64 && scanner.open.capacity() <= limits::FRAME_DEPTH);
}

#[test]
fn every_cut_of_an_item_is_refused() {
    let whole =
        b"\xa3\x61a\x1a\x00\x00\x00\x01\x61b\x82\x43abc\xfb\x3f\xf0\x00\x00\x00\x00\x00\x00\x61c\xf9\x3c\x00";
    assert_eq!(scan(whole), Ok(()));
    for length in 0..whole.len() {
        assert!(scan(&whole[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn bytes_after_the_item_are_refused() {
    assert_eq!(scan(b"\xa0\x00"), Err("byte 1: 1 bytes after the end of the item".into()));
    assert_eq!(scan(b"\x01\x01\x01"), Err("byte 1: 2 bytes after the end of the item".into()));
    assert_eq!(scan(b"\x82\x01\x01\xff"), Err("byte 3: 1 bytes after the end of the item".into()));
}

#[test]
fn items_are_bounded() {
    let array = |count: usize| {
        let mut bytes = vec![0x9a];
        bytes.extend(u32::try_from(count).expect("small").to_be_bytes());
        bytes.resize(5 + count, 0x60);
        bytes
    };
    let most = limits::FRAME_ITEMS - 1;
    assert_eq!(scan(&array(most)), Ok(()));
    assert_eq!(scan(&array(most + 1)), Err(format!("byte {}: more than 262144 data items", 5 + most)));
}

#[test]
fn memory_of_a_large_map_is_given_back() {
    let mut bytes = vec![0xba, 0, 0, 0x75, 0x30];
    for key in 0..30_000 {
        bytes.push(0x65);
        bytes.extend(format!("{key:05}").bytes());
        bytes.push(0x01);
    }
    let mut scanner = Scanner::default();
    scanner.scan(&bytes).expect("accepted");
    assert!(scanner.keys.capacity() <= 65_536, "eight bytes a key");
    scanner.scan(b"\xa0").expect("accepted");
    assert!(scanner.keys.capacity() <= 256, "{}", scanner.keys.capacity());
}
