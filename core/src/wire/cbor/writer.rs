//! serde to definite-length CBOR with the shortest heads. Refuses what the reading side would refuse: NaN, keys
//! that are not text, maps and arrays whose length is not known up front. Past a limit it only counts, so that
//! a value of any size costs no more memory than the limit.

use super::content::Content;
use super::item::{FALSE, NULL, TEXT, TRUE};
use serde::Serialize;
use serde::ser::{Error, Serializer};

/// Writes values one after the other to the end of a buffer.
#[derive(Debug)]
pub(in crate::wire) struct Writer<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    /// Bytes that may be written.
    limit: usize,
    /// Bytes that were not, for want of room.
    lost: usize,
    /// Type and number of the frame whose map the next struct is.
    envelope: Option<(&'static str, u64)>,
}

impl<'o> Writer<'o> {
    pub(in crate::wire) fn new(out: &'o mut Vec<u8>, limit: usize) -> Writer<'o> {
        let start = out.len();
        Writer { out, start, limit, lost: 0, envelope: None }
    }

    /// A writer of one frame's body: the first struct's map gets `t` and `n` as well.
    pub(in crate::wire) fn of_frame(
        out: &'o mut Vec<u8>,
        limit: usize,
        frame_type: &'static str,
        number: u64,
    ) -> Writer<'o> {
        Writer { envelope: Some((frame_type, number)), ..Writer::new(out, limit) }
    }

    /// The size of all that was to be written; over the limit the buffer holds only a part of it.
    pub(in crate::wire) fn written(&self) -> usize {
        (self.out.len() - self.start).saturating_add(self.lost)
    }

    /// The first byte of the value that was written at `at`, if it was kept.
    pub(super) fn first_byte(&self, at: usize) -> Option<u8> {
        self.out.get(self.start + at).copied()
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        let room = self.limit - (self.out.len() - self.start);
        if self.lost == 0 && bytes.len() <= room {
            self.out.extend_from_slice(bytes);
        } else {
            self.lost = self.lost.saturating_add(bytes.len());
        }
    }

    #[inline]
    fn head(&mut self, major: u8, argument: u64) {
        let major = major << 5;
        let wide = argument.to_be_bytes();
        match argument {
            0..=23 => self.put(&[major | wide[7]]),
            24..=0xff => self.put(&[major | 24, wide[7]]),
            0x100..=0xffff => self.put(&[major | 25, wide[6], wide[7]]),
            0x1_0000..=0xffff_ffff => self.put(&[major | 26, wide[4], wide[5], wide[6], wide[7]]),
            _ => {
                self.put(&[major | 27]);
                self.put(&wide);
            }
        }
    }

    #[inline]
    pub(super) fn text(&mut self, text: &str) {
        self.head(TEXT, text.len() as u64);
        self.put(text.as_bytes());
    }

    fn array(&mut self, count: usize) {
        self.head(4, count as u64);
    }

    #[inline]
    fn map(&mut self, pairs: usize) {
        self.head(5, pairs as u64);
    }

    /// The map of a struct; a frame's first one begins with the envelope.
    #[inline]
    fn fields(&mut self, count: usize) {
        match self.envelope.take() {
            None => self.map(count),
            Some((frame_type, number)) => {
                self.map(count + 2);
                self.text("t");
                self.text(frame_type);
                self.text("n");
                self.head(0, number);
            }
        }
    }
}

impl<'w, 'o> Serializer for &'w mut Writer<'o> {
    type Ok = ();
    type Error = WriteError;
    type SerializeSeq = Content<'w, 'o>;
    type SerializeTuple = Content<'w, 'o>;
    type SerializeTupleStruct = Content<'w, 'o>;
    type SerializeTupleVariant = Content<'w, 'o>;
    type SerializeMap = Content<'w, 'o>;
    type SerializeStruct = Content<'w, 'o>;
    type SerializeStructVariant = Content<'w, 'o>;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bool(self, value: bool) -> Result<(), WriteError> {
        self.put(&[if value { TRUE } else { FALSE }]);
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), WriteError> {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<(), WriteError> {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), WriteError> {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<(), WriteError> {
        match u64::try_from(value) {
            Ok(value) => self.head(0, value),
            // −1 − value is its complement, which is never negative here.
            Err(_) => self.head(1, (!value).unsigned_abs()),
        }
        Ok(())
    }

    fn serialize_u8(self, value: u8) -> Result<(), WriteError> {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), WriteError> {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), WriteError> {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<(), WriteError> {
        self.head(0, value);
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<(), WriteError> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), WriteError> {
        if value.is_nan() {
            return Err(WriteError::new("NaN cannot be written"));
        }
        self.put(&[0xfb]);
        self.put(&value.to_be_bytes());
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), WriteError> {
        self.text(value.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    fn serialize_str(self, value: &str) -> Result<(), WriteError> {
        self.text(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), WriteError> {
        self.head(2, value.len() as u64);
        self.put(value);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), WriteError> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), WriteError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), WriteError> {
        self.put(&[NULL]);
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), WriteError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), WriteError> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), WriteError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), WriteError> {
        self.map(1);
        self.text(variant);
        value.serialize(self)
    }

    fn serialize_seq(self, count: Option<usize>) -> Result<Content<'w, 'o>, WriteError> {
        let count = count.ok_or_else(|| WriteError::new("an array whose length is not known up front"))?;
        self.array(count);
        Ok(Content(self))
    }

    fn serialize_tuple(self, count: usize) -> Result<Content<'w, 'o>, WriteError> {
        self.array(count);
        Ok(Content(self))
    }

    fn serialize_tuple_struct(self, _: &'static str, count: usize) -> Result<Content<'w, 'o>, WriteError> {
        self.serialize_tuple(count)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        count: usize,
    ) -> Result<Content<'w, 'o>, WriteError> {
        self.map(1);
        self.text(variant);
        self.serialize_tuple(count)
    }

    fn serialize_map(self, pairs: Option<usize>) -> Result<Content<'w, 'o>, WriteError> {
        let pairs = pairs.ok_or_else(|| WriteError::new("a map whose length is not known up front"))?;
        self.map(pairs);
        Ok(Content(self))
    }

    fn serialize_struct(self, _: &'static str, count: usize) -> Result<Content<'w, 'o>, WriteError> {
        self.fields(count);
        Ok(Content(self))
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        count: usize,
    ) -> Result<Content<'w, 'o>, WriteError> {
        self.map(1);
        self.text(variant);
        self.map(count);
        Ok(Content(self))
    }
}

/// Why a value cannot be written: a fault of its type, not of a peer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WriteError(String);

impl WriteError {
    #[cold]
    pub(in crate::wire) fn new(what: impl Into<String>) -> WriteError {
        WriteError(what.into())
    }
}

impl Error for WriteError {
    fn custom<T: std::fmt::Display>(what: T) -> WriteError {
        WriteError::new(what.to_string())
    }
}
