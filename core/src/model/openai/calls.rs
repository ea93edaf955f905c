//! Tool calls that come in pieces.
//!
//! Each piece should name its call by `index`, and the first one give its id and name. Servers leave the index out,
//! repeat it for different calls, send the id late or the name every time (F04). Owns the rules by which a piece is
//! given to a call; refuses nothing but what is over the reply's bounds.

use crate::model::draft::{Draft, arguments};
use crate::model::loose::{number, text};
use crate::model::{Call, ModelError};
use serde_json::Value;
use std::borrow::Cow;

/// One entry of a chunk's `tool_calls`.
#[derive(Debug)]
pub(super) struct Piece<'a> {
    index: Option<u64>,
    id: &'a str,
    name: &'a str,
    args: Cow<'a, str>,
}

impl<'a> Piece<'a> {
    pub(super) fn of(entry: &'a Value) -> Piece<'a> {
        let function = Piece::of_function(&entry["function"]);
        let id = entry["id"].as_str().map_or("", str::trim);
        Piece { index: number(&entry["index"]), id, ..function }
    }

    /// The older form, one call without an id; also the inner part of the newer one.
    pub(super) fn of_function(function: &'a Value) -> Piece<'a> {
        let raw = &function["arguments"];
        let args = match raw.as_str() {
            Some(text) => Cow::Borrowed(text),
            // Some servers send what the text would spell.
            None if raw.is_object() => Cow::Owned(raw.to_string()),
            None => Cow::Borrowed(""),
        };
        Piece { index: None, id: "", name: text(&function["name"]), args }
    }
}

/// The calls so far, in the order they began.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Slot>);

#[derive(Debug, Default)]
struct Slot {
    index: Option<u64>,
    id: String,
    name: String,
    args: String,
    shape: Shape,
}

impl Calls {
    /// Takes the pieces of one chunk.
    pub(super) fn take(&mut self, pieces: &[Piece<'_>], draft: &mut Draft) -> Result<(), ModelError> {
        // Calls begun before this chunk, and those it had a piece for.
        let before = self.0.len();
        let mut fed = Vec::new();
        for (nth, piece) in pieces.iter().enumerate() {
            let at = match self.owner(pieces, nth, &fed, before) {
                Some(at) => at,
                None => {
                    draft.add_call()?;
                    self.0.push(Slot { index: piece.index, ..Slot::default() });
                    self.0.len() - 1
                }
            };
            fed.push(at);
            draft.grow(piece.id.len() + piece.name.len() + piece.args.len())?;
            self.0[at].feed(piece);
        }
        Ok(())
    }

    /// The calls, whole: the reply was finished properly.
    pub(super) fn finish(self) -> Vec<Call> {
        let said = |slot: &Slot| !(slot.id.is_empty() && slot.name.is_empty() && slot.args.is_empty());
        let call = |slot: Slot| Call { id: slot.id, name: slot.name, args: arguments(slot.args) };
        self.0.into_iter().filter(said).map(call).collect()
    }

    /// Whose piece the `nth` of a chunk is; `None` for a new call's. `fed` are the calls that the pieces before it
    /// went to, `before` is how many calls were there before the chunk.
    fn owner(&self, pieces: &[Piece<'_>], nth: usize, fed: &[usize], before: usize) -> Option<usize> {
        let piece = &pieces[nth];
        let same_id = |slot: &Slot| !piece.id.is_empty() && slot.id == piece.id;
        let same_index =
            |slot: &Slot| slot.index.is_none() || piece.index.is_none() || slot.index == piece.index;
        if let Some(at) = self.0.iter().rposition(|slot| same_id(slot) && same_index(slot)) {
            return Some(at);
        }
        let mut candidates = (0..self.0.len()).filter(|at| self.0[*at].index == piece.index);
        // Nameless pieces under one index go to the calls under it one by one; a lone one to the call begun last.
        let twin = |p: &Piece<'_>| p.index == piece.index && p.name.is_empty();
        let rank = pieces[..nth].iter().filter(|p| twin(p)).count();
        let alone = !twin(piece) || !pieces[nth + 1..].iter().any(twin) && rank == 0;
        let at =
            if alone { None } else { candidates.clone().nth(rank) }.or_else(|| candidates.next_back())?;
        let slot = &self.0[at];
        let other_id = !piece.id.is_empty() && !slot.id.is_empty();
        let other_name = !slot.name.is_empty() && slot.name != piece.name;
        let again = slot.shape.is_whole() && !piece.args.trim().is_empty();
        let begins =
            !piece.name.is_empty() && (other_id || other_name || again || fed.contains(&at) && at >= before);
        let told_apart = piece.index.is_none() && other_id;
        (!begins && !told_apart).then_some(at)
    }
}

impl Slot {
    fn feed(&mut self, piece: &Piece<'_>) {
        if self.id.is_empty() {
            self.id = piece.id.to_owned();
        }
        if self.name.is_empty() {
            self.name = piece.name.to_owned();
        }
        // The whole call once more, at the end of it.
        let repeated = self.shape.is_whole() && self.args == piece.args;
        if !repeated {
            self.args.push_str(&piece.args);
            self.shape.push(&piece.args);
        }
    }
}

/// Whether a text that comes in pieces is one whole JSON object by now.
#[derive(Debug, Default)]
struct Shape {
    depth: usize,
    begun: bool,
    in_string: bool,
    escaped: bool,
}

impl Shape {
    fn push(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => {
                    self.begun = true;
                    self.depth += 1;
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.begun && self.depth == 0
    }
}
