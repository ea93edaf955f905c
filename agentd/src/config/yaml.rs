//! Reads one YAML or JSON text into a tree with exact positions. Refuses what a configuration has no use for
//! (several documents, tags, keys that are not text, keys that stand twice) and bounds what aliases can grow
//! to. Syntax ends the reading at the first fault; everything else is collected.

use super::problem::{Code, Problem};
use super::source::{Place, Source};
use super::tree::{Entry, Node, Scalar, Value, clip};
use granit_parser::{Event, Marker, Parser, ScalarStyle, Span};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Nesting of lists and maps, aliases followed.
const DEPTH: usize = 64;

/// What a text may grow to when its aliases are followed, in bytes; a node counts [`NODE_COST`] and its text.
const EXPANDED_BYTES: usize = 16 * 1024 * 1024;

/// Bytes that a node counts before its text.
const NODE_COST: usize = 32;

/// Reads a source. `None` when it could not be read to its end; the problems say why. An empty text is an
/// empty map.
pub(crate) fn parse(source: &Arc<Source>, problems: &mut Vec<Problem>) -> Option<Node> {
    let mut options = granit_parser::options! {
        flow_nesting_limit: DEPTH,
        block_nesting_limit: DEPTH,
        simple_key_max_lookahead: 64 * 1024,
    };
    options.set_emit_comments(false);
    let mut builder = Builder::new(source, problems);
    for next in Parser::new_from_str_with_options(source.text(), options) {
        let taken = match next {
            Ok((event, span)) => builder.take(event, &span),
            Err(error) => {
                let mark = error.marker();
                let place = builder.place(mark, 1);
                Err(syntax(&place, &error.info()))
            }
        };
        if let Err(problem) = taken {
            builder.problems.push(*problem);
            return None;
        }
    }
    let root = builder.root.unwrap_or_else(|| empty(source));
    Some(if root.is_null() { empty(source) } else { root })
}

/// An empty map at the start of a source.
pub(crate) fn empty(source: &Arc<Source>) -> Node {
    Node { value: Value::Map(Vec::new()), place: Place::start(source) }
}

struct Builder<'a> {
    source: &'a Arc<Source>,
    problems: &'a mut Vec<Problem>,
    frames: Vec<Frame>,
    anchors: BTreeMap<usize, Finished>,
    spent: usize,
    root: Option<Node>,
    documents: usize,
}

/// A list or map that is still open.
struct Frame {
    place: Place,
    anchor: usize,
    /// Nesting inside it so far, aliases followed.
    height: usize,
    cost: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, lines: HashMap<String, u32>, key: Key },
}

/// What a map waits for.
enum Key {
    /// A key.
    Awaited,
    /// The value of this key.
    Read(String, Place),
    /// The value of a key that was refused.
    Refused,
}

/// A complete node with what it costs to have it once more.
#[derive(Clone)]
struct Finished {
    node: Node,
    height: usize,
    cost: usize,
}

/// Boxed: a problem is large and rare.
type Fatal = Box<Problem>;

impl<'a> Builder<'a> {
    fn new(source: &'a Arc<Source>, problems: &'a mut Vec<Problem>) -> Builder<'a> {
        Builder {
            source,
            problems,
            frames: Vec::new(),
            anchors: BTreeMap::new(),
            spent: 0,
            root: None,
            documents: 0,
        }
    }

    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), Fatal> {
        match event {
            Event::DocumentStart(..) => self.document(span),
            Event::Alias(id) => self.alias(id, span),
            Event::Scalar(text, style, anchor, tag) => {
                self.untagged(tag.is_some(), span);
                self.scalar(&text, style, anchor, span)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.untagged(tag.is_some(), span);
                self.open(Content::List(Vec::new()), anchor, span)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.untagged(tag.is_some(), span);
                self.open(
                    Content::Map { entries: Vec::new(), lines: HashMap::new(), key: Key::Awaited },
                    anchor,
                    span,
                )
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            // Stream marks carry nothing; anchor events and unresolved aliases are not asked for.
            _ => Ok(()),
        }
    }

    fn document(&mut self, span: &Span) -> Result<(), Fatal> {
        self.documents += 1;
        if self.documents == 1 {
            return Ok(());
        }
        let place = self.place_of(span);
        Err(Box::new(
            Problem::at(&place, "", Code::Syntax, "a second document begins here")
                .accepted("one document a file")
                .hint("put it into a file of its own; -c can be given more than once"),
        ))
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, anchor: usize, span: &Span) -> Result<(), Fatal> {
        let plain = style == ScalarStyle::Plain;
        let scalar = Scalar { text: text.to_owned(), plain };
        let node = Node { value: Value::Scalar(scalar), place: self.place_of(span) };
        let finished = Finished { node, height: 0, cost: NODE_COST + text.len() };
        self.spend(finished.cost, &finished.node.place)?;
        self.remember(anchor, &finished);
        self.deliver(finished);
        Ok(())
    }

    fn open(&mut self, content: Content, anchor: usize, span: &Span) -> Result<(), Fatal> {
        let place = self.place_of(span);
        if self.frames.len() >= DEPTH {
            return Err(too_deep(&place));
        }
        self.spend(NODE_COST, &place)?;
        self.frames.push(Frame { place, anchor, height: 1, cost: NODE_COST, content });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Fatal> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        let value = match frame.content {
            Content::List(items) => Value::List(items),
            Content::Map { entries, .. } => Value::Map(entries),
        };
        let node = Node { value, place: frame.place };
        let finished = Finished { node, height: frame.height, cost: frame.cost };
        self.remember(frame.anchor, &finished);
        self.deliver(finished);
        Ok(())
    }

    fn alias(&mut self, id: usize, span: &Span) -> Result<(), Fatal> {
        let place = self.place_of(span);
        let Some(finished) = self.anchors.get(&id).cloned() else {
            return Err(syntax(&place, "an alias stands inside what it names"));
        };
        if self.frames.len() + finished.height > DEPTH {
            return Err(too_deep(&place));
        }
        self.spend(finished.cost, &place)?;
        self.deliver(finished);
        Ok(())
    }

    /// Hands a complete node to the list or map that is open, or makes it the root.
    fn deliver(&mut self, finished: Finished) {
        let Finished { node, height, cost } = finished;
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some(node);
            return;
        };
        frame.height = frame.height.max(height + 1);
        frame.cost += cost;
        match &mut frame.content {
            Content::List(items) => items.push(node),
            Content::Map { entries, lines, key } => match std::mem::replace(key, Key::Awaited) {
                Key::Awaited => *key = read_key(node, lines, self.problems),
                Key::Read(name, place) => entries.push(Entry { key: name, place, node }),
                Key::Refused => {}
            },
        }
    }

    fn remember(&mut self, anchor: usize, finished: &Finished) {
        if anchor != 0 {
            self.anchors.insert(anchor, finished.clone());
        }
    }

    fn spend(&mut self, cost: usize, place: &Place) -> Result<(), Fatal> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent <= EXPANDED_BYTES {
            return Ok(());
        }
        Err(Box::new(
            Problem::at(place, "", Code::TooLarge, "the text is too large here, its aliases followed")
                .accepted("16 MiB in all"),
        ))
    }

    fn untagged(&mut self, tagged: bool, span: &Span) {
        if tagged {
            let place = match span.tag_span() {
                Some(tag) => self.place_of(&tag),
                None => self.place_of(span),
            };
            self.problems.push(
                Problem::at(&place, "", Code::Syntax, "tags are not accepted")
                    .hint("put the value in quotes if it begins with an exclamation mark"),
            );
        }
    }

    fn place_of(&self, span: &Span) -> Place {
        let one_line = span.start.line() == span.end.line();
        let width = if one_line { span.end.col().saturating_sub(span.start.col()) } else { 1 };
        let place = self.place(&span.start, width);
        let end = span.end.byte_offset().unwrap_or(place.end);
        Place { end: end.max(place.offset), ..place }
    }

    fn place(&self, mark: &Marker, width: usize) -> Place {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Place {
            source: Arc::clone(self.source),
            line: number(mark.line().max(1)),
            column: number(mark.col() + 1),
            width: number(width.max(1)),
            offset: mark.byte_offset().unwrap_or(0),
            end: self.source.text().len(),
        }
    }
}

/// A map's key from a complete node. `lines` tells where each key of the map stood first.
fn read_key(node: Node, lines: &mut HashMap<String, u32>, problems: &mut Vec<Problem>) -> Key {
    let Value::Scalar(scalar) = node.value else {
        problems.push(
            Problem::at(&node.place, "", Code::Syntax, "a key must be text")
                .hint("put a text that begins with { or [ in quotes"),
        );
        return Key::Refused;
    };
    if let Some(first) = lines.get(&scalar.text) {
        let message = format!("the key {:?} stands twice; the first is on line {first}", clip(&scalar.text));
        problems.push(Problem::at(&node.place, "", Code::Duplicate, message).hint("keep one of them"));
        return Key::Refused;
    }
    lines.insert(scalar.text.clone(), node.place.line);
    Key::Read(scalar.text, node.place)
}

fn syntax(place: &Place, what: &str) -> Fatal {
    Box::new(Problem::at(place, "", Code::Syntax, what))
}

fn too_deep(place: &Place) -> Fatal {
    Box::new(
        Problem::at(place, "", Code::TooLarge, "lists and maps are nested too deeply here")
            .accepted("64 levels, aliases followed"),
    )
}

#[cfg(test)]
mod tests;
