//! The first pass: one loop over all items that judges structure. Nesting is a list with a bound, not the stack;
//! memory is what the accepted bytes justify. Called for every frame before anything looks at a value.

use super::item::{Cursor, Fault, Item};
use crate::limits;
use crate::preview::preview;

/// Room for keys that is kept between frames.
const KEPT_KEYS: usize = 256;

/// The scan, with the memory it uses again from frame to frame.
#[derive(Debug, Default)]
pub(in crate::wire) struct Scanner {
    open: Vec<Open>,
    /// Keys of all open maps, the innermost map's last.
    keys: Vec<Key>,
}

/// What the passes after the scan need to know of a frame's body: where the values of `t` and `n` begin, and the
/// size of the longest key in any map.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::wire) struct Marks {
    pub(in crate::wire) t: Option<usize>,
    pub(in crate::wire) n: Option<usize>,
    pub(in crate::wire) longest_key: usize,
}

/// A container whose end has not been reached.
#[derive(Debug)]
struct Open {
    /// Items to come; keys count.
    left: usize,
    map: bool,
    /// Its first key in [`Scanner::keys`].
    keys_from: usize,
}

/// A key in eight bytes: most comparisons need only the first four of the text, the rest is found again at its
/// place. The place is last, so that equal beginnings stay in the order they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    beginning: u32,
    at: u32,
}

impl Scanner {
    /// Accepts `bytes` when they are exactly one item that S2.1 allows.
    pub(in crate::wire) fn scan(&mut self, bytes: &[u8]) -> Result<Marks, Fault> {
        debug_assert!(bytes.len() <= limits::FRAME_BYTES, "callers bound the size; a key's place is 32 bits");
        self.open.clear();
        self.keys.clear();
        self.keys.shrink_to(KEPT_KEYS);
        let mut cursor = Cursor::new(bytes);
        let mut marks = Marks::default();
        let mut items = 0usize;
        loop {
            let at = cursor.offset();
            let item = cursor.item()?;
            items += 1;
            if items > limits::FRAME_ITEMS {
                return Err(Fault::new(at, format!("more than {} data items", limits::FRAME_ITEMS)));
            }
            if let Some(parent) = self.open.last_mut() {
                let is_key = parent.map && parent.left.is_multiple_of(2);
                parent.left -= 1;
                if is_key {
                    self.key(at, item, cursor.offset(), &mut marks)?;
                }
            }
            match item {
                Item::Array(count) => self.enter(at, count, false)?,
                Item::Map(pairs) => self.enter(at, pairs * 2, true)?,
                Item::Unsigned(_) | Item::Negative(_) | Item::Bytes(_) | Item::Text(_) => {}
                Item::Bool(_) | Item::Null | Item::Undefined | Item::Float(_) => {}
            }
            self.leave(bytes)?;
            if self.open.is_empty() {
                break;
            }
        }
        match cursor.left() {
            0 => Ok(marks),
            left => Err(Fault::new(cursor.offset(), format!("{left} bytes after the end of the item"))),
        }
    }

    /// Memory that is held between calls, for tests of its bound.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(in crate::wire) fn held_bytes(&self) -> usize {
        self.keys.capacity() * size_of::<Key>() + self.open.capacity() * size_of::<Open>()
    }

    /// Notes a key of the innermost map; `value_at` is where its value begins.
    #[inline]
    fn key(&mut self, at: usize, item: Item<'_>, value_at: usize, marks: &mut Marks) -> Result<(), Fault> {
        let Item::Text(text) = item else {
            return Err(Fault::new(at, format!("{} as a key; keys are text", item.shown())));
        };
        marks.longest_key = marks.longest_key.max(text.len());
        if self.open.len() == 1 {
            match text {
                "t" => marks.t = Some(value_at),
                "n" => marks.n = Some(value_at),
                _ => {}
            }
        }
        // Texts shorter than four bytes may share a number with longer ones; the comparison of alike keys is whole.
        let beginning = text.bytes().take(4).fold(0, |number, byte| number << 8 | u32::from(byte));
        self.keys.push(Key { beginning, at: u32::try_from(at).unwrap_or(u32::MAX) });
        Ok(())
    }

    #[inline]
    fn enter(&mut self, at: usize, left: usize, map: bool) -> Result<(), Fault> {
        if self.open.len() == limits::FRAME_DEPTH {
            return Err(Fault::new(at, format!("nested deeper than {} levels", limits::FRAME_DEPTH)));
        }
        self.open.push(Open { left, map, keys_from: self.keys.len() });
        Ok(())
    }

    /// Closes the containers that are complete.
    #[inline]
    fn leave(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        while let Some(complete) = self.open.pop_if(|open| open.left == 0) {
            if complete.map {
                refuse_repeated(bytes, &mut self.keys[complete.keys_from..])?;
                self.keys.truncate(complete.keys_from);
            }
        }
        Ok(())
    }
}

/// Sorts the keys of one map, so that equal ones are neighbours.
fn refuse_repeated(bytes: &[u8], keys: &mut [Key]) -> Result<(), Fault> {
    keys.sort_unstable();
    for alike in keys.chunk_by_mut(|a, b| a.beginning == b.beginning) {
        if alike.len() == 1 {
            continue;
        }
        // Read once each and not once a comparison: a hostile map has long keys that begin alike.
        alike.sort_by_cached_key(|key| text_at(bytes, *key));
        if let Some(pair) = alike.windows(2).find(|pair| text_at(bytes, pair[0]) == text_at(bytes, pair[1])) {
            return Err(repeated(bytes, pair[1]));
        }
    }
    Ok(())
}

/// The text of a key that was read before.
fn text_at(bytes: &[u8], key: Key) -> &str {
    let at = usize::try_from(key.at).unwrap_or(usize::MAX);
    match Cursor::at(bytes, at).item() {
        Ok(Item::Text(text)) => text,
        Ok(_) | Err(_) => "",
    }
}

#[cold]
fn repeated(bytes: &[u8], key: Key) -> Fault {
    let shown = preview(text_at(bytes, key), limits::PREVIEW_BYTES);
    Fault::new(usize::try_from(key.at).unwrap_or(usize::MAX), format!("the key \"{shown}\" again in one map"))
}

#[cfg(test)]
mod tests;
