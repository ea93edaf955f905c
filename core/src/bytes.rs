//! Large bodies as shared, immutable bytes: an event, the journal and a queue hold the same allocation.

use serde::de::{Error, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Shared immutable bytes; a CBOR byte string on the wire.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Bytes(Arc<[u8]>);

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(v: Vec<u8>) -> Bytes {
        Bytes(v.into())
    }
}

impl From<&[u8]> for Bytes {
    fn from(v: &[u8]) -> Bytes {
        Bytes(v.into())
    }
}

impl fmt::Debug for Bytes {
    /// Length and the first 32 bytes as text: enough to tell, never a flood.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = &self.0[..self.0.len().min(32)];
        write!(
            f,
            "Bytes({}, {:?}{})",
            self.0.len(),
            String::from_utf8_lossy(head),
            if self.0.len() > 32 { "…" } else { "" }
        )
    }
}

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Bytes, D::Error> {
        // Not `deserialize_bytes`, which ciborium serves up to 4 KiB only.
        let lists = d.is_human_readable();
        d.deserialize_byte_buf(BytesVisitor { lists })
    }
}

/// Copies once, from what the reader lends into the shared allocation. A list of numbers is what formats without
/// byte strings, JSON for one, make of bytes; it is accepted from them only.
struct BytesVisitor {
    lists: bool,
}

impl<'de> Visitor<'de> for BytesVisitor {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a byte string")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Bytes, E> {
        Ok(Bytes::from(bytes))
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Bytes, E> {
        Ok(Bytes::from(bytes))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Bytes, A::Error> {
        if !self.lists {
            return Err(A::Error::invalid_type(Unexpected::Seq, &self));
        }
        let mut bytes = Vec::new();
        while let Some(byte) = items.next_element()? {
            bytes.push(byte);
        }
        Ok(Bytes::from(bytes))
    }
}

/// A JSON text carried opaquely (model and tool JSON): a CBOR byte string that holds UTF-8 JSON. Not parsed on
/// the way; whoever uses it parses it within bounds.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(pub Bytes);

impl Json {
    /// The JSON text of `value`.
    pub fn of(value: &serde_json::Value) -> Json {
        Json(Bytes::from(value.to_string().into_bytes()))
    }

    /// Parses the text; serde_json's own nesting bound (128) applies.
    pub fn parse(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::from_slice(&self.0)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json{:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Bytes;

    #[test]
    fn bytes_survive_formats_with_and_without_byte_strings() {
        for bytes in [Bytes::default(), Bytes::from(vec![0, 1, 0xff]), Bytes::from(vec![7; 10_000])] {
            let json = serde_json::to_string(&bytes).expect("writes");
            assert_eq!(serde_json::from_str::<Bytes>(&json).expect("reads"), bytes);
            let mut cbor = Vec::new();
            ciborium::into_writer(&bytes, &mut cbor).expect("writes");
            assert_eq!(ciborium::from_reader::<Bytes, _>(cbor.as_slice()).expect("reads"), bytes);
        }
    }
}
