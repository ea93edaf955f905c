//! Types that ciborium reads too loosely by itself: it leaves the rest of a long array, and takes what follows a
//! variant's name for its content. Used by the fields of `message` that hold such types; with these a value's
//! type never reads past its end. Every enum with content in a message goes through [`variant`].

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// An enum: the name of a variant without content, or a map of one pair.
pub(super) fn variant<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(Variant(PhantomData))
}

/// A protocol version: an array of two numbers.
pub(super) fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u16; 2], D::Error> {
    deserializer.deserialize_any(Version)
}

struct Variant<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Variant<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a variant's name, or a map of one pair")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<T, E> {
        T::deserialize(StrDeserializer::new(name))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let value = T::deserialize(MapAccessDeserializer::new(&mut map))?;
        match map.next_key::<IgnoredAny>()? {
            None => Ok(value),
            Some(_) => Err(A::Error::custom("a map of more than one pair, expected a variant")),
        }
    }
}

struct Version;

impl<'de> Visitor<'de> for Version {
    type Value = [u16; 2];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of two numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<[u16; 2], A::Error> {
        let mut version = [0; 2];
        for (index, number) in version.iter_mut().enumerate() {
            *number = items.next_element()?.ok_or_else(|| A::Error::invalid_length(index, &self))?;
        }
        let mut more = 0;
        while items.next_element::<IgnoredAny>()?.is_some() {
            more += 1;
        }
        match more {
            0 => Ok(version),
            _ => Err(A::Error::invalid_length(version.len() + more, &self)),
        }
    }
}
