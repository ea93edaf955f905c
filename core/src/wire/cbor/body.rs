//! The second pass: ciborium over bytes that the scan has accepted. Owned are the conditions under which that is
//! safe (nesting is bounded, scratch room fits every key, every byte was read) and what an error says.

use super::item::Cursor;
use crate::limits;
use crate::preview::preview;
use ciborium::de::Error;
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use std::io;
use std::marker::PhantomData;

/// Room that ciborium reads pieces of texts and byte strings through; a key has to fit in whole.
const SCRATCH_BYTES: usize = 4096;

/// One value that has passed the scan.
#[derive(Debug, Clone, Copy)]
pub struct Body<'a> {
    bytes: &'a [u8],
    longest_key: usize,
}

impl<'a> Body<'a> {
    /// `bytes` have passed the scan, which has found the longest of their keys.
    pub(in crate::wire) fn new(bytes: &'a [u8], longest_key: usize) -> Body<'a> {
        Body { bytes, longest_key }
    }

    /// Reads the value as a `T`, and how many keys, at any level, no type has asked for.
    pub(in crate::wire) fn read<T: DeserializeOwned>(self) -> Result<(T, u64), String> {
        let mut rest = self.bytes;
        match self.through::<Counted<T>>(&mut rest) {
            Ok(Counted { value, ignored }) if rest.is_empty() => Ok((value, ignored)),
            // ciborium takes what a type left for what follows it, so the end is where it shows. What reads past
            // the end of a value could make up for it: `exact` keeps the types from that.
            Ok(_) => Err("a list or a variant in it holds more than its type takes".into()),
            Err(error) => Err(self.told::<T>(error)),
        }
    }

    fn through<T: DeserializeOwned>(self, rest: &mut &[u8]) -> Result<T, Error<io::Error>> {
        if self.longest_key <= SCRATCH_BYTES {
            return ciborium::de::from_reader_with_buffer(rest, &mut [0; SCRATCH_BYTES]);
        }
        ciborium::de::from_reader_with_buffer(rest, &mut vec![0; self.longest_key])
    }

    /// What is wrong, and where. The place is found by reading once more: to know it costs a text per key, and
    /// a channel's first bad frame is its last.
    #[cold]
    fn told<T: DeserializeOwned>(self, error: Error<io::Error>) -> String {
        let what = match error {
            Error::Semantic(Some(at), what) => match Cursor::at(self.bytes, at).item() {
                Ok(seen) => format!("{what}, saw {}", seen.shown()),
                Err(_) => what,
            },
            Error::Semantic(None, what) => what,
            Error::Syntax(at) => format!("byte {at} is not what its type takes"),
            Error::Io(_) => "the frame ends where its type takes more".into(),
            Error::RecursionLimitExceeded => "nested too deep".into(),
        };
        let what = preview(what, 2 * limits::PREVIEW_BYTES);
        match self.through::<Located<T>>(&mut &*self.bytes) {
            Ok(Located { path: Some(path), .. }) => {
                format!("{}: {what}", preview(path, limits::PREVIEW_BYTES))
            }
            Ok(Located { path: None, .. }) | Err(_) => what,
        }
    }
}

/// A value, and how many keys were passed over on the way.
struct Counted<T> {
    value: T,
    ignored: u64,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Counted<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Counted<T>, D::Error> {
        let mut ignored = 0;
        let value = serde_ignored::deserialize(deserializer, |_| ignored += 1)?;
        Ok(Counted { value, ignored })
    }
}

/// Where in the value the reading of a `T` fails, as `servers[2].name`; nowhere when that is the top.
struct Located<T> {
    path: Option<String>,
    value: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Located<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Located<T>, D::Error> {
        let path = match serde_path_to_error::deserialize::<D, T>(deserializer) {
            Err(error) if error.path().iter().len() > 0 => Some(error.path().to_string()),
            Ok(_) | Err(_) => None,
        };
        Ok(Located { path, value: PhantomData })
    }
}
