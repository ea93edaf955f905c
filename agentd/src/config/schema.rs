//! Every key there is: its shape, its default and what it means. The one place a key is written down: checking,
//! reading, environment names and `docs/configuration.md` all follow this table.

mod keys;
mod table;

pub(crate) use keys::ROOT;
pub use table::table;

use Shape::{
    Duration, EnvNames, Headers, Items, Later, Maps, Name, Number, OffOrPath, OneOf, Path, Patterns, Rate,
    Secret, Section, Size, Switch, Tags, Text, Texts, Variables, Whole, Words,
};

/// One key of a map.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// As it would be written; empty when there is none.
    pub(crate) default: &'static str,
    pub(crate) about: &'static str,
}

/// What a value must look like.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// Any text; a number is taken as it is spelled.
    Text,
    /// Letters, digits, `-` and `_`, with dots when they are allowed.
    Name { dots: bool },
    /// A path; relative ones start from the file that names them.
    Path,
    /// `off` or a path.
    OffOrPath,
    /// `true` or `false`.
    Switch,
    /// A whole number within these bounds.
    Whole { min: u64, max: u64 },
    /// Dollars: a number that is not negative.
    Number,
    /// A positive duration.
    Duration,
    /// A positive size.
    Size,
    /// `8/2s`.
    Rate,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A text that refers to a secret and does not hold one.
    Secret,
    /// A list of texts.
    Texts,
    /// A list of some of these words.
    Words(&'static [&'static str]),
    /// A list of patterns over tool names.
    Patterns,
    /// A map from variable names to texts.
    Variables,
    /// A map from names of HTTP headers to texts, which may refer to secrets.
    Headers,
    /// A map from patterns over tool names to lists of [`TAGS`].
    Tags,
    /// A list of variable names, `PREFIX*` included.
    EnvNames,
    /// A map with these keys.
    Section(&'static [Key]),
    /// A list of maps with these keys.
    Items(&'static [Key]),
    /// A map from names to maps with these keys.
    Maps { names: Keys, each: &'static [Key] },
    /// Not built yet.
    Later,
}

/// What the names of a [`Shape::Maps`] can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Names, dots included.
    Names,
    /// Anything but nothing.
    Any,
}

/// What a tool can be tagged with (S16.1).
pub(crate) const TAGS: [&str; 5] = ["untrusted_input", "sensitive", "egress", "trusted", "publishes"];

/// The largest numbers; `accepted` does not name them.
const U32: u64 = u32::MAX as u64;
const I64: u64 = i64::MAX as u64;

/// One key that can be set by itself, sections opened.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    /// `limits.run.steps`.
    pub(crate) path: String,
    pub(crate) key: &'static Key,
}

/// Every key outside lists, in the order of the table, those that are not built included.
pub(crate) fn leaves() -> Vec<Leaf> {
    let mut found = Vec::new();
    collect(ROOT, "", &mut found);
    found
}

fn collect(keys: &'static [Key], under: &str, found: &mut Vec<Leaf>) {
    for key in keys {
        let path = join(under, key.name);
        match key.shape {
            Section(inner) => collect(inner, &path, found),
            _ => found.push(Leaf { path, key }),
        }
    }
}

/// The path of a key inside the map at `under`.
pub(crate) fn join(under: &str, name: &str) -> String {
    if under.is_empty() { name.to_owned() } else { format!("{under}.{name}") }
}

impl Shape {
    /// What is accepted, for people.
    pub(crate) fn accepted(&self) -> String {
        match self {
            Text => "text".to_owned(),
            Name { dots: false } => "1 to 64 letters, digits, - and _".to_owned(),
            Name { dots: true } => {
                "1 to 64 letters, digits, -, _ and dots, not beginning with a dot".to_owned()
            }
            Path => "a path".to_owned(),
            OffOrPath => "off, or the path of a file".to_owned(),
            Switch => "true or false".to_owned(),
            Whole { min, max: U32 | I64 } => format!("a whole number from {min}"),
            Whole { min, max } => format!("a whole number from {min} to {max}"),
            Duration => format!("{}; not zero", agentd_core::units::DURATIONS),
            Size => format!("{}; not zero", agentd_core::units::SIZES),
            Rate => agentd_core::units::RATES.to_owned(),
            OneOf(words) => words.join(", "),
            Number => "a number of dollars, such as 0.25; 0 or more".to_owned(),
            Secret => "a reference such as {{secret:MODEL_KEY}} or {{secret-file:PATH}}".to_owned(),
            Texts => "a list of texts".to_owned(),
            Words(words) => format!("a list of {}", words.join(", ")),
            Headers => "a map from header names to texts".to_owned(),
            Patterns => "a list of tool names, each a name, prefix* or *".to_owned(),
            Variables => "a map from variable names to texts".to_owned(),
            Tags => format!("a map from tool names, prefix* or * to lists of {}", TAGS.join(", ")),
            EnvNames => "a list of variable names, or PREFIX*".to_owned(),
            Section(keys) => format!("a map with the keys {}", names(keys)),
            Items(keys) => format!("a list of maps with the keys {}", names(keys)),
            Maps { each, .. } => format!("a map from names to maps with the keys {}", names(each)),
            Later => "nothing yet".to_owned(),
        }
    }
}

/// The names of the keys that are built, for people.
pub(crate) fn names(keys: &[Key]) -> String {
    let built = keys.iter().filter(|key| !matches!(key.shape, Later)).map(|key| key.name);
    built.collect::<Vec<_>>().join(", ")
}
