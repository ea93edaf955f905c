//! The second pass: serde over bytes that the scan has accepted. Texts and byte strings are borrowed, so nothing
//! is allocated but what a message keeps. Stricter than serde's own visitors: a text is never read from bytes,
//! a struct never from an array, an array never longer than the type.

use super::access::{Entries, Items, Variant};
use super::error::{ReadError, wrong};
use super::item::{Cursor, FALSE, Item, NULL, TRUE};
use serde::de::{Deserializer, Expected, Visitor};
use serde::forward_to_deserialize_any;

/// Reads values in order.
#[derive(Debug)]
pub(in crate::wire) struct Reader<'de> {
    cursor: Cursor<'de>,
    /// The next map is a frame's: `t` and `n` are not the message's keys.
    envelope: bool,
    /// Keys that no type has asked for.
    ignored: u64,
}

impl<'de> Reader<'de> {
    /// A reader of one value; `bytes` have passed the scan.
    pub(in crate::wire) fn new(bytes: &'de [u8]) -> Reader<'de> {
        Reader { cursor: Cursor::new(bytes), envelope: false, ignored: 0 }
    }

    /// A reader of one frame's body.
    pub(in crate::wire) fn of_frame(bytes: &'de [u8]) -> Reader<'de> {
        Reader { envelope: true, ..Reader::new(bytes) }
    }

    /// How many keys were skipped, at any level, because no type knows them.
    pub(in crate::wire) fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Steps over one value, whatever it holds.
    pub(super) fn skip(&mut self) -> Result<(), ReadError> {
        let mut items = 1usize;
        while items > 0 {
            items -= 1;
            match self.cursor.item()? {
                Item::Array(count) => items += count,
                Item::Map(pairs) => items += pairs * 2,
                Item::Unsigned(_) | Item::Negative(_) | Item::Bytes(_) | Item::Text(_) => {}
                Item::Bool(_) | Item::Null | Item::Simple(_) | Item::Float(_) => {}
            }
        }
        Ok(())
    }

    /// Any item, for a type that takes what comes. The four below are what messages are mostly made of.
    #[inline(never)]
    fn item(&mut self) -> Result<Item<'de>, ReadError> {
        Ok(self.cursor.item()?)
    }

    #[inline(never)]
    fn text(&mut self, expected: &dyn Expected) -> Result<&'de str, ReadError> {
        let item = self.cursor.item()?;
        let Item::Text(text) = item else { return Err(wrong(item, expected)) };
        Ok(text)
    }

    /// A key as bytes: most are only compared with the names of a struct's fields.
    #[inline(never)]
    pub(super) fn key(&mut self) -> Result<&'de [u8], ReadError> {
        match self.cursor.scanned_text() {
            Some(key) => Ok(key),
            None => Err(wrong(self.cursor.item()?, &"a key")),
        }
    }

    #[inline(never)]
    fn bytes(&mut self, expected: &dyn Expected) -> Result<&'de [u8], ReadError> {
        let item = self.cursor.item()?;
        let Item::Bytes(bytes) = item else { return Err(wrong(item, expected)) };
        Ok(bytes)
    }

    #[inline(never)]
    fn array(&mut self, expected: &dyn Expected) -> Result<usize, ReadError> {
        let item = self.cursor.item()?;
        let Item::Array(count) = item else { return Err(wrong(item, expected)) };
        Ok(count)
    }

    #[inline(never)]
    fn map(&mut self, expected: &dyn Expected) -> Result<usize, ReadError> {
        let item = self.cursor.item()?;
        let Item::Map(pairs) = item else { return Err(wrong(item, expected)) };
        Ok(pairs)
    }

    /// The next item if it is an unsigned integer; whatever else it is stays.
    #[inline(never)]
    fn unsigned(&mut self) -> Option<u64> {
        let before = self.cursor.clone();
        if let Ok(Item::Unsigned(value)) = self.cursor.item() {
            return Some(value);
        }
        self.cursor = before;
        None
    }

    fn items<V: Visitor<'de>>(&mut self, count: usize, visitor: V) -> Result<V::Value, ReadError> {
        let mut items = Items { reader: self, count, left: count };
        let value = visitor.visit_seq(&mut items)?;
        match items.left {
            0 => Ok(value),
            left => Err(ReadError::new(format!("expected an array of {}, saw one of {count}", count - left))),
        }
    }

    fn entries<V: Visitor<'de>>(&mut self, pairs: usize, visitor: V) -> Result<V::Value, ReadError> {
        let envelope = std::mem::take(&mut self.envelope);
        let mut entries = Entries { reader: self, left: pairs, key: b"", envelope };
        let value = visitor.visit_map(&mut entries)?;
        match entries.left {
            0 => Ok(value),
            left => Err(ReadError::new(format!("expected a map of {}, saw one of {pairs}", pairs - left))),
        }
    }
}

/// Numbers, booleans and whatever describes itself go by what is there: a visitor of one type refuses the rest.
impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = ReadError;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.item()? {
            Item::Unsigned(value) => visitor.visit_u64(value),
            Item::Negative(value) => match i64::try_from(value) {
                Ok(value) => visitor.visit_i64(-1 - value),
                Err(_) => Err(wrong(Item::Negative(value), &visitor)),
            },
            Item::Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
            Item::Text(text) => visitor.visit_borrowed_str(text),
            Item::Array(count) => self.items(count, visitor),
            Item::Map(pairs) => self.entries(pairs, visitor),
            Item::Bool(value) => visitor.visit_bool(value),
            Item::Null => visitor.visit_unit(),
            Item::Float(value) => visitor.visit_f64(value),
            other @ Item::Simple(_) => Err(wrong(other, &visitor)),
        }
    }

    forward_to_deserialize_any! { i8 i16 i32 i64 unit unit_struct }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.cursor.peek() {
            Some(byte @ (FALSE | TRUE)) => {
                self.cursor.step();
                visitor.visit_bool(byte == TRUE)
            }
            Some(_) | None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.unsigned() {
            Some(value) => visitor.visit_u64(value),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let item = self.item()?;
        let Item::Float(value) = item else { return Err(wrong(item, &visitor)) };
        visitor.visit_f64(value)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let text = self.text(&visitor)?;
        visitor.visit_borrowed_str(text)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let bytes = self.bytes(&visitor)?;
        visitor.visit_borrowed_bytes(bytes)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.cursor.peek() == Some(NULL) {
            self.cursor.step();
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let count = self.array(&visitor)?;
        self.items(count, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let pairs = self.map(&visitor)?;
        self.entries(pairs, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_map(visitor)
    }

    /// A variant without content is its name, any other a map of one pair.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let item = self.item()?;
        if let Item::Text(variant) = item {
            return visitor.visit_enum(Variant { variant, content: None });
        }
        let Item::Map(1) = item else {
            return Err(wrong(item, &"a variant's name, or a map of one pair"));
        };
        let variant = self.text(&visitor)?;
        visitor.visit_enum(Variant { variant, content: Some(self) })
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.ignored += 1;
        self.skip()?;
        visitor.visit_unit()
    }
}
