//! One data item at a time: the head, and the content of what is not a container. Every refusal that needs no
//! more than one item is made here.

use crate::limits;
use crate::preview::preview;

/// Why bytes are not what the protocol accepts, and where: an offset from the start of the frame's body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {}: {}", .0.0, .0.1)]
pub(in crate::wire) struct Fault(Box<(usize, String)>);

impl Fault {
    #[cold]
    pub(in crate::wire) fn new(at: usize, what: impl Into<String>) -> Fault {
        Fault(Box::new((at, what.into())))
    }
}

/// A data item. Of a container only the count is here; its items follow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::wire) enum Item<'a> {
    Unsigned(u64),
    /// −1 minus the number.
    Negative(u64),
    Bytes(&'a [u8]),
    Text(&'a str),
    /// Items; the bytes that are left can hold them.
    Array(usize),
    /// Pairs; the bytes that are left can hold them.
    Map(usize),
    Bool(bool),
    Null,
    Undefined,
    /// Never NaN.
    Float(f64),
}

impl Item<'_> {
    /// What it is, for a message: never more of it than a message can carry.
    #[cold]
    pub(in crate::wire) fn shown(self) -> String {
        match self {
            Item::Unsigned(value) => value.to_string(),
            Item::Negative(value) => (-1 - i128::from(value)).to_string(),
            Item::Bytes(bytes) => format!("a byte string of {} bytes", bytes.len()),
            Item::Text(text) => format!("text \"{}\"", preview(text, limits::PREVIEW_BYTES / 2)),
            Item::Array(_) => "an array".into(),
            Item::Map(_) => "a map".into(),
            Item::Bool(value) => value.to_string(),
            Item::Null => "null".into(),
            Item::Undefined => "undefined".into(),
            Item::Float(value) => value.to_string(),
        }
    }
}

/// A place in a frame's body.
#[derive(Debug, Clone)]
pub(in crate::wire) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(in crate::wire) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0 }
    }

    /// The same bytes at another place.
    pub(in crate::wire) fn at(bytes: &'a [u8], at: usize) -> Cursor<'a> {
        Cursor { bytes, at }
    }

    pub(in crate::wire) fn offset(&self) -> usize {
        self.at
    }

    pub(in crate::wire) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Reads one item, or the head of a container. Inlined where it is used, for an item that is handed over in
    /// memory costs more than its reading.
    #[inline(always)]
    pub(in crate::wire) fn item(&mut self) -> Result<Item<'a>, Fault> {
        let start = self.at;
        let [first] = self.array(start)?;
        let (major, info) = (first >> 5, first & 0x1f);
        if info >= 28 {
            return Err(unreadable(start, major, info));
        }
        if major == 7 {
            return self.simple(start, info);
        }
        let argument = self.argument(start, info)?;
        match major {
            0 => Ok(Item::Unsigned(argument)),
            1 => Ok(Item::Negative(argument)),
            2 => Ok(Item::Bytes(self.take(start, argument, "a byte string")?)),
            3 => match std::str::from_utf8(self.take(start, argument, "a text")?) {
                Ok(text) => Ok(Item::Text(text)),
                Err(error) => Err(not_utf8(start, argument, &error)),
            },
            4 => Ok(Item::Array(self.count(start, argument, 1)?)),
            5 => Ok(Item::Map(self.count(start, argument, 2)?)),
            _ => Err(Fault::new(start, format!("tag {argument}; tags are not accepted"))),
        }
    }

    /// The number in a head.
    #[inline(always)]
    fn argument(&mut self, start: usize, info: u8) -> Result<u64, Fault> {
        match info {
            24 => self.array(start).map(|[byte]| u64::from(byte)),
            25 => self.array(start).map(|bytes| u64::from(u16::from_be_bytes(bytes))),
            26 => self.array(start).map(|bytes| u64::from(u32::from_be_bytes(bytes))),
            27 => self.array(start).map(u64::from_be_bytes),
            _ => Ok(u64::from(info)),
        }
    }

    /// Booleans, null, floats and the rest of major type 7.
    fn simple(&mut self, start: usize, info: u8) -> Result<Item<'a>, Fault> {
        let float = match info {
            20 => return Ok(Item::Bool(false)),
            21 => return Ok(Item::Bool(true)),
            22 => return Ok(Item::Null),
            23 => return Ok(Item::Undefined),
            24 => {
                let [value] = self.array(start)?;
                if value < 32 {
                    return Err(Fault::new(start, format!("simple value {value} in two bytes is not CBOR")));
                }
                return Err(no_meaning(start, value));
            }
            25 => half(u16::from_be_bytes(self.array(start)?)),
            26 => f64::from(f32::from_be_bytes(self.array(start)?)),
            27 => f64::from_be_bytes(self.array(start)?),
            _ => return Err(no_meaning(start, info)),
        };
        if float.is_nan() {
            return Err(Fault::new(start, "NaN; a number is accepted"));
        }
        Ok(Item::Float(float))
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self, start: usize) -> Result<[u8; N], Fault> {
        match self.bytes[self.at..].first_chunk::<N>() {
            Some(bytes) => {
                self.at += N;
                Ok(*bytes)
            }
            None => Err(cut(start)),
        }
    }

    #[inline]
    fn take(&mut self, start: usize, length: u64, what: &str) -> Result<&'a [u8], Fault> {
        let left = &self.bytes[self.at..];
        match usize::try_from(length).ok().and_then(|length| left.get(..length)) {
            Some(bytes) => {
                self.at += bytes.len();
                Ok(bytes)
            }
            None => Err(too_little(start, what, length, "bytes", left.len())),
        }
    }

    /// A container's count, when what is left can hold it: each item is at least one byte.
    #[inline]
    fn count(&self, start: usize, count: u64, bytes_each: usize) -> Result<usize, Fault> {
        let left = self.left();
        match usize::try_from(count) {
            Ok(count) if count <= left / bytes_each => Ok(count),
            Ok(_) | Err(_) => {
                let (what, unit) = if bytes_each == 1 { ("an array", "items") } else { ("a map", "pairs") };
                Err(too_little(start, what, count, unit, left))
            }
        }
    }
}

#[cold]
fn cut(start: usize) -> Fault {
    Fault::new(start, "an item begins here and the frame ends inside it")
}

#[cold]
fn too_little(start: usize, what: &str, count: u64, unit: &str, left: usize) -> Fault {
    Fault::new(start, format!("{what} of {count} {unit}, but {left} bytes of the frame are left"))
}

#[cold]
fn not_utf8(start: usize, length: u64, error: &std::str::Utf8Error) -> Fault {
    let good = error.valid_up_to();
    Fault::new(start, format!("a text of {length} bytes that is not UTF-8 after its first {good} bytes"))
}

#[cold]
fn no_meaning(start: usize, value: u8) -> Fault {
    Fault::new(start, format!("simple value {value}, which has no meaning"))
}

/// Heads whose low bits mean no length: 31 is an indefinite length or the break that ends it.
#[cold]
fn unreadable(start: usize, major: u8, info: u8) -> Fault {
    let what = match (major, info) {
        (2, 31) => "a byte string of indefinite length; only definite lengths are accepted",
        (3, 31) => "a text of indefinite length; only definite lengths are accepted",
        (4, 31) => "an array of indefinite length; only definite lengths are accepted",
        (5, 31) => "a map of indefinite length; only definite lengths are accepted",
        (7, 31) => "a break; only definite lengths are accepted",
        _ => return Fault::new(start, format!("initial byte 0x{:02x} is not CBOR", major << 5 | info)),
    };
    Fault::new(start, what)
}

/// IEEE 754 binary16.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (bits >> 10 & 0x1f, f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(i32::from(exponent) - 25),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}
