//! Checks one text's tree against the table of keys: unknown keys, shapes, units, ranges, and what is not
//! built yet. Every text is checked by itself, before they are merged, so that no fault hides behind another
//! file. What needs more than one key is `read`'s.

mod forms;
mod scalars;

pub(crate) use forms::{dollars, is_secret_header};

use super::hide::looks_secret;
use super::hint;
use super::nearest::nearest;
use super::problem::{Code, Problem};
use super::schema::{self, Key, Keys, Shape, TAGS, join};
use super::tree::{Entry, Node, Value, clip};
use agentd_core::policy::Pattern;
use forms::{header_name_fault, header_value_fault, is_name, is_variable};

/// Checks a whole tree.
pub(crate) fn check(root: &Node, problems: &mut Vec<Problem>) {
    Checker { problems }.section(root, schema::ROOT, "");
}

struct Checker<'a> {
    problems: &'a mut Vec<Problem>,
}

impl Checker<'_> {
    fn section(&mut self, node: &Node, keys: &'static [Key], path: &str) {
        if node.is_null() {
            return;
        }
        let Value::Map(entries) = &node.value else {
            let accepted = Shape::Section(keys).accepted();
            self.wrong_type(node, path, "a map", &accepted);
            return;
        };
        for entry in entries {
            let path = join(path, &clip(&entry.key));
            match keys.iter().find(|key| key.name == entry.key) {
                Some(key) => self.value(entry, &key.shape, &path),
                None => self.unknown_key(entry, keys, &path),
            }
        }
    }

    fn value(&mut self, entry: &Entry, shape: &Shape, path: &str) {
        let node = &entry.node;
        match shape {
            Shape::Later => self.problems.push(not_built(entry, path)),
            Shape::Section(keys) => self.section(node, keys, path),
            Shape::Items(keys) => {
                for (index, item) in self.list(node, shape, path).iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    if item.is_null() {
                        self.wrong_type(item, &path, "a map", &Shape::Section(keys).accepted());
                    } else {
                        self.section(item, keys, &path);
                    }
                }
            }
            Shape::Texts | Shape::Patterns | Shape::EnvNames => {
                for (index, item) in self.list(node, shape, path).iter().enumerate() {
                    self.item(item, shape, &format!("{path}[{index}]"));
                }
            }
            Shape::Words(words) => {
                for (index, item) in self.list(node, shape, path).iter().enumerate() {
                    self.one_of(item, words, &format!("{path}[{index}]"));
                }
            }
            Shape::Headers => self.headers(node, shape, path),
            Shape::Maps { names, each } => {
                for entry in self.map(node, shape, path) {
                    self.named(entry, *names, each, path);
                }
            }
            Shape::Variables => {
                for entry in self.map(node, shape, path) {
                    self.variable_name(entry, path);
                    self.text(&entry.node, &join(path, &clip(&entry.key)), "text");
                }
            }
            Shape::Tags => {
                for entry in self.map(node, shape, path) {
                    self.tagged(entry, shape, path);
                }
            }
            Shape::Text
            | Shape::Name { .. }
            | Shape::Path
            | Shape::OffOrPath
            | Shape::Switch
            | Shape::Whole { .. }
            | Shape::Number
            | Shape::Secret
            | Shape::Duration
            | Shape::Size
            | Shape::Rate
            | Shape::OneOf(..) => self.scalar(node, shape, path),
        }
    }

    fn tagged(&mut self, entry: &Entry, shape: &Shape, path: &str) {
        if let Err(fault) = Pattern::parse(&entry.key) {
            let problem = Problem::at(&entry.place, path, Code::InvalidValue, fault.to_string());
            self.problems.push(problem.accepted(shape.accepted()));
        }
        let path = join(path, &clip(&entry.key));
        for (index, item) in self.list(&entry.node, &Shape::Texts, &path).iter().enumerate() {
            self.one_of(item, &TAGS, &format!("{path}[{index}]"));
        }
    }

    /// One of the words of a list.
    fn one_of(&mut self, item: &Node, words: &[&str], path: &str) {
        match &item.value {
            Value::Scalar(scalar) => self.word(item, scalar, words, path),
            Value::List(_) | Value::Map(_) => self.wrong_type(item, path, "a word", &words.join(", ")),
        }
    }

    /// One of the maps of a [`Shape::Maps`].
    fn named(&mut self, entry: &Entry, names: Keys, each: &'static [Key], path: &str) {
        let (fits, accepted) = match names {
            Keys::Names => (is_name(&entry.key, true), Shape::Name { dots: true }.accepted()),
            Keys::Any => (!entry.key.trim().is_empty(), "a name".to_owned()),
        };
        if !fits {
            let fault = format!("{:?} is not a name", clip(&entry.key));
            let problem = Problem::at(&entry.place, path, Code::InvalidValue, fault);
            self.problems.push(problem.accepted(accepted));
        }
        let path = join(path, &clip(&entry.key));
        if entry.node.is_null() {
            self.wrong_type(&entry.node, &path, "a map", &Shape::Section(each).accepted());
        } else {
            self.section(&entry.node, each, &path);
        }
    }

    fn headers(&mut self, node: &Node, shape: &Shape, path: &str) {
        let mut seen: Vec<String> = Vec::new();
        for entry in self.map(node, shape, path) {
            let name = entry.key.to_ascii_lowercase();
            let mut fault = header_name_fault(&name);
            if seen.contains(&name) {
                fault =
                    Some(format!("{:?} stands twice: headers do not tell capitals apart", clip(&entry.key)));
            }
            seen.push(name);
            if let Some(fault) = fault {
                self.problems.push(Problem::at(&entry.place, path, Code::InvalidValue, fault));
            }
            let path = join(path, &clip(&entry.key));
            if !self.text(&entry.node, &path, "text") {
                continue;
            }
            let Value::Scalar(scalar) = &entry.node.value else { continue };
            if let Some(fault) = header_value_fault(&entry.key, &scalar.text) {
                let problem = Problem::at(&entry.node.place, &path, Code::InvalidValue, fault);
                self.problems.push(problem.hint(hint::SECRET));
            }
        }
    }

    fn variable_name(&mut self, entry: &Entry, path: &str) {
        let fault = if !is_variable(&entry.key) {
            "is not a variable's name"
        } else if entry.key.starts_with("AGENTD_") {
            "is a name that agentd keeps for itself"
        } else {
            return;
        };
        let problem =
            Problem::at(&entry.place, path, Code::InvalidValue, format!("{:?} {fault}", clip(&entry.key)));
        self.problems.push(problem.accepted("letters, digits and _, not beginning with a digit or AGENTD_"));
    }

    fn list<'n>(&mut self, node: &'n Node, shape: &Shape, path: &str) -> &'n [Node] {
        match &node.value {
            Value::List(items) => items,
            Value::Scalar(_) | Value::Map(_) => {
                if !node.is_null() {
                    self.wrong_type(node, path, "a list", &shape.accepted());
                }
                &[]
            }
        }
    }

    fn map<'n>(&mut self, node: &'n Node, shape: &Shape, path: &str) -> &'n [Entry] {
        match &node.value {
            Value::Map(entries) => entries,
            Value::Scalar(_) if matches!(shape, Shape::Headers) && !node.is_null() => {
                // Not quoted: it may be a whole header with its key.
                let problem =
                    Problem::at(&node.place, path, Code::WrongType, "expected a map, saw one value");
                self.problems.push(problem.accepted(shape.accepted()));
                &[]
            }
            Value::Scalar(_) | Value::List(_) => {
                if !node.is_null() {
                    self.wrong_type(node, path, "a map", &shape.accepted());
                }
                &[]
            }
        }
    }

    fn unknown_key(&mut self, entry: &Entry, keys: &'static [Key], path: &str) {
        let problem = Problem::at(&entry.place, path, Code::UnknownKey, "there is no such key")
            .accepted(schema::names(keys));
        let near = nearest(&entry.key, keys.iter().map(|key| key.name));
        self.problems.push(match near {
            Some(name) => problem.hint(format!("did you mean {name}?")),
            None if looks_secret(&entry.key) && keys.iter().any(|key| matches!(key.shape, Shape::Secret)) => {
                problem.hint(format!("a key is called token here: {}", hint::SECRET))
            }
            None => match elsewhere(&entry.key) {
                Some(path) => problem.hint(format!("there is a key {path}")),
                None => problem,
            },
        });
    }

    fn wrong_type(&mut self, node: &Node, path: &str, expected: &str, accepted: &str) {
        let fault = format!("expected {expected}, saw {}", node.seen());
        self.problems.push(Problem::at(&node.place, path, Code::WrongType, fault).accepted(accepted));
    }
}

/// The problem of a key that agentd will have one day.
fn not_built(entry: &Entry, path: &str) -> Problem {
    Problem::at(&entry.place, path, Code::NotBuilt, "is not built yet")
        .hint("remove it: this version of agentd does not act on it")
}

/// Where in the configuration a key of this name stands, when it stands in one place only.
fn elsewhere(name: &str) -> Option<String> {
    let mut found = schema::leaves().into_iter().filter(|leaf| leaf.key.name == name);
    match (found.next(), found.next()) {
        (Some(leaf), None) => Some(leaf.path),
        _ => None,
    }
}
