//! The inside of arrays and maps for [`Writer`]: with definite lengths all seven kinds of serde are the same, keys
//! and values in a row.

use super::item::TEXT;
use super::writer::{WriteError, Writer};
use serde::Serialize;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant,
};

/// The inside of a container: its head is written, its end needs no mark.
#[derive(Debug)]
pub(in crate::wire) struct Content<'w, 'o>(pub(super) &'w mut Writer<'o>);

impl Content<'_, '_> {
    #[inline]
    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), WriteError> {
        value.serialize(&mut *self.0)
    }

    #[inline]
    fn field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), WriteError> {
        self.0.text(key);
        self.value(value)
    }
}

impl SerializeSeq for Content<'_, '_> {
    type Ok = ();
    type Error = WriteError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), WriteError> {
        self.value(value)
    }

    fn end(self) -> Result<(), WriteError> {
        Ok(())
    }
}

impl SerializeTuple for Content<'_, '_> {
    type Ok = ();
    type Error = WriteError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), WriteError> {
        self.value(value)
    }

    fn end(self) -> Result<(), WriteError> {
        Ok(())
    }
}

impl SerializeTupleStruct for Content<'_, '_> {
    type Ok = ();
    type Error = WriteError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), WriteError> {
        self.value(value)
    }

    fn end(self) -> Result<(), WriteError> {
        Ok(())
    }
}

impl SerializeTupleVariant for Content<'_, '_> {
    type Ok = ();
    type Error = WriteError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), WriteError> {
        self.value(value)
    }

    fn end(self) -> Result<(), WriteError> {
        Ok(())
    }
}

impl SerializeMap for Content<'_, '_> {
    type Ok = ();
    type Error = WriteError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), WriteError> {
        let at = self.0.written();
        self.value(key)?;
        match self.0.first_byte(at) {
            Some(head) if head >> 5 != TEXT => Err(WriteError::new("a map's key that is not text")),
            Some(_) | None => Ok(()),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), WriteError> {
        self.value(value)
    }

    fn end(self) -> Result<(), WriteError> {
        Ok(())
    }
}

impl SerializeStruct for Content<'_, '_> {
    type Ok = ();
    type Error = WriteError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), WriteError> {
        self.field(key, value)
    }

    fn end(self) -> Result<(), WriteError> {
        Ok(())
    }
}

impl SerializeStructVariant for Content<'_, '_> {
    type Ok = ();
    type Error = WriteError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), WriteError> {
        self.field(key, value)
    }

    fn end(self) -> Result<(), WriteError> {
        Ok(())
    }
}
