//! The insides of arrays, maps and variants for [`Reader`], and what a map's key is to a type. Every error on the
//! way out gets the step it passed.

use super::error::ReadError;
use super::reader::Reader;
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

/// The rest of an array.
pub(super) struct Items<'r, 'de> {
    pub(super) reader: &'r mut Reader<'de>,
    pub(super) count: usize,
    pub(super) left: usize,
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = ReadError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadError> {
        if self.left == 0 {
            return Ok(None);
        }
        let index = self.count - self.left;
        self.left -= 1;
        seed.deserialize(&mut *self.reader).map(Some).map_err(|error| error.under(format!("[{index}]")))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// The rest of a map.
pub(super) struct Entries<'r, 'de> {
    pub(super) reader: &'r mut Reader<'de>,
    pub(super) left: usize,
    pub(super) key: &'de [u8],
    pub(super) envelope: bool,
}

impl<'de> MapAccess<'de> for Entries<'_, 'de> {
    type Error = ReadError;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadError> {
        while self.left > 0 {
            self.left -= 1;
            self.key = self.reader.key()?;
            if self.envelope && matches!(self.key, b"t" | b"n") {
                self.reader.skip()?;
                continue;
            }
            return seed.deserialize(Key(self.key)).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, ReadError> {
        seed.deserialize(&mut *self.reader).map_err(|error| error.under(self.key))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// A key. A struct compares its bytes with the names of its fields; anything else gets the text that it is.
struct Key<'de>(&'de [u8]);

impl<'de> Key<'de> {
    fn text(&self) -> Result<BorrowedStrDeserializer<'de, ReadError>, ReadError> {
        std::str::from_utf8(self.0).map(BorrowedStrDeserializer::new).map_err(ReadError::custom)
    }
}

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = ReadError;

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_borrowed_bytes(self.0)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.text()?.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.text()?.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct seq tuple
        tuple_struct map struct ignored_any
    }
}

/// One variant of an enum, its content not yet read.
pub(super) struct Variant<'r, 'de> {
    pub(super) variant: &'de str,
    pub(super) content: Option<&'r mut Reader<'de>>,
}

impl<'r, 'de> EnumAccess<'de> for Variant<'r, 'de> {
    type Error = ReadError;
    type Variant = Variant<'r, 'de>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), ReadError> {
        let name = BorrowedStrDeserializer::<ReadError>::new(self.variant);
        let value = seed.deserialize(name)?;
        Ok((value, self))
    }
}

impl<'de> Variant<'_, 'de> {
    fn content<T>(self, read: impl FnOnce(&mut Reader<'de>) -> Result<T, ReadError>) -> Result<T, ReadError> {
        match self.content {
            Some(reader) => read(reader).map_err(|error| error.under(self.variant)),
            None => Err(ReadError::new(format!("`{}` needs content, saw its name alone", self.variant))),
        }
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, 'de> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        match self.content {
            None => Ok(()),
            Some(_) => Err(ReadError::new(format!("`{}` has no content, saw a map", self.variant))),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, ReadError> {
        self.content(|reader| seed.deserialize(reader))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.content(|reader| reader.deserialize_seq(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.content(|reader| reader.deserialize_map(visitor))
    }
}
