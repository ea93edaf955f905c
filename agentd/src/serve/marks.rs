//! Marks in place of tokens: neither the core nor a journal ever sees a token (S16.3). Each one that is known is replaced by a
//! mark of the same length as it comes in, wherever it stands, so no framing changes; the core reads marks
//! (`session::access`). Bytes that could be taken for a mark and came from a client are replaced first, by another byte that
//! no UTF-8 text has.
//!
//! A token stands alone between characters that no token has. What could be the beginning of one at the end of what came is
//! held back until the next bytes tell; it is never more than the longest token. Called for every read of a connection.

use agentd_core::id::ConnId;
use agentd_core::session::TOKEN_MARK;
use std::collections::BTreeMap;
use std::fmt;

/// What a client's own mark is replaced by.
const NO_MARK: u8 = 0xff;

/// The known tokens, and what is held back of each connection.
#[derive(Default)]
pub(crate) struct Marks {
    tokens: Vec<String>,
    longest: usize,
    held: BTreeMap<ConnId, Held>,
}

#[derive(Default)]
struct Held {
    /// Characters of tokens since the last other one.
    run: Vec<u8>,
    /// There were more of them than the longest token has: it is none.
    long: bool,
}

impl Marks {
    /// Marks for these tokens, whose places are those of the core's principals.
    pub(super) fn new(tokens: Vec<String>) -> Marks {
        let longest = tokens.iter().map(String::len).max().unwrap_or(0);
        Marks { tokens, longest, held: BTreeMap::new() }
    }

    /// What may be told of bytes that came.
    pub(crate) fn put_in(&mut self, conn: ConnId, bytes: &[u8]) -> Vec<u8> {
        let Marks { tokens, longest, held } = self;
        let held = held.entry(conn).or_default();
        let mut told = Vec::with_capacity(bytes.len() + held.run.len());
        for byte in bytes {
            if is_of_tokens(*byte) {
                if held.long {
                    told.push(*byte);
                    continue;
                }
                held.run.push(*byte);
                if held.run.len() > *longest {
                    held.long = true;
                    told.append(&mut held.run);
                }
                continue;
            }
            flush(tokens, held, &mut told);
            told.push(if *byte == TOKEN_MARK { NO_MARK } else { *byte });
        }
        told
    }

    /// A connection is gone.
    pub(crate) fn forget(&mut self, conn: ConnId) {
        self.held.remove(&conn);
    }
}

/// A run of characters of tokens has ended: it is a token or it is not.
fn flush(tokens: &[String], held: &mut Held, told: &mut Vec<u8>) {
    held.long = false;
    let run = std::mem::take(&mut held.run);
    let mut place = None;
    for (index, token) in tokens.iter().enumerate() {
        if same(token.as_bytes(), &run) {
            place = Some(index);
        }
    }
    match place {
        None => told.extend_from_slice(&run),
        Some(place) => {
            let end = told.len() + run.len();
            told.push(TOKEN_MARK);
            told.extend_from_slice(place.to_string().as_bytes());
            told.resize(end.max(told.len()), TOKEN_MARK);
        }
    }
}

/// Whether two are the same, in a time that tells nothing of where they differ.
fn same(token: &[u8], seen: &[u8]) -> bool {
    token.len() == seen.len() && token.iter().zip(seen).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

fn is_of_tokens(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
}

impl fmt::Debug for Marks {
    /// Without any token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Marks").field("tokens", &self.tokens.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TOKEN: &str = "0123456789abcdef0123";

    fn marks() -> Marks {
        Marks::new(vec!["ffffffffffffffffffffffff".into(), TOKEN.into()])
    }

    fn mark() -> Vec<u8> {
        let mut mark = vec![TOKEN_MARK, b'1'];
        mark.resize(TOKEN.len(), TOKEN_MARK);
        mark
    }

    #[test]
    fn a_token_becomes_its_mark_wherever_it_stands_alone() {
        for (before, after, marked) in [
            ("Authorization: Bearer ", "\r\n", true),
            ("{\"text\":\"", "\"}", true),
            ("x", "\r\n", false),
            ("", "x\r\n", false),
            (TOKEN, "\r\n", false),
        ] {
            let told = marks().put_in(ConnId(1), format!("{before}{TOKEN}{after}").as_bytes());
            let middle = if marked { mark() } else { TOKEN.as_bytes().to_vec() };
            assert_eq!(told, [before.as_bytes(), &middle, after.as_bytes()].concat(), "{before:?} {after:?}");
        }
    }

    #[test]
    fn a_mark_of_a_clients_own_is_none() {
        let told = marks().put_in(ConnId(1), &[b"Bearer ".as_slice(), &mark(), b"\r\n"].concat());
        assert!(!told.contains(&TOKEN_MARK), "{told:?}");
        assert_eq!(told.len(), TOKEN.len() + 9);
    }

    #[test]
    fn connections_do_not_mix() {
        let mut marks = marks();
        let (head, tail) = TOKEN.split_at(7);
        assert!(marks.put_in(ConnId(1), head.as_bytes()).is_empty());
        assert!(marks.put_in(ConnId(2), tail.as_bytes()).is_empty());
        assert_eq!(marks.put_in(ConnId(1), b" "), format!("{head} ").as_bytes());
        marks.forget(ConnId(2));
        assert_eq!(marks.put_in(ConnId(2), b" "), b" ");
    }

    proptest! {
        #[test]
        fn any_cut_tells_the_same_and_no_length_changes(
            pieces in proptest::collection::vec(prop_oneof![
                Just(TOKEN.as_bytes().to_vec()), Just(mark()), Just(b" ".to_vec()), "[a-f0-9 ]{0,40}".prop_map(String::into_bytes),
                proptest::collection::vec(any::<u8>(), 0..9),
            ], 0..12),
            cut in 1..30usize,
        ) {
            let bytes = [pieces.concat(), b"\n".to_vec()].concat();
            let whole = marks().put_in(ConnId(1), &bytes);
            let mut cutting = marks();
            let cut: Vec<u8> = bytes.chunks(cut).flat_map(|piece| cutting.put_in(ConnId(1), piece)).collect();
            prop_assert_eq!(&whole, &cut);
            prop_assert_eq!(whole.len(), bytes.len());
            let alone = whole.split(|byte| !is_of_tokens(*byte)).any(|run| run == TOKEN.as_bytes());
            prop_assert!(!alone, "a token is left");
        }
    }
}
