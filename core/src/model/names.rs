//! Tool names on a provider's wire (S14.4). Providers take only `[A-Za-z0-9_-]`, and 64 of them; a registry
//! name may hold more.
//!
//! Owns the table both ways for one run. It refuses to guess: the way back is by table only, so a wire name
//! that was not given out names no tool. Used by the agent loop and the dialects.

use std::collections::BTreeMap;

/// Characters of a wire name at most: the least that the providers' schemas allow.
pub const WIRE_NAME_CHARS: usize = 64;

/// Wire names of a run's tools, and the way back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WireNames {
    wire_by_registry: BTreeMap<String, String>,
    registry_by_wire: BTreeMap<String, String>,
}

impl WireNames {
    /// Gives each registry name a wire name of its own: every character outside `[A-Za-z0-9_-]` becomes `_`,
    /// what is too long is cut, and a clash gets `_2`, `_3` and so on, in the order given. A name that is legal
    /// as it stands is kept, so that it cannot lose its name to one that has to change.
    pub fn new<'a>(registry: impl IntoIterator<Item = &'a str>) -> WireNames {
        let mut names = WireNames::default();
        names.add(registry);
        names
    }

    /// The same for names of a second party: none of them takes a name from those that are there.
    pub fn add<'a>(&mut self, registry: impl IntoIterator<Item = &'a str>) {
        let (legal_ones, others): (Vec<&str>, Vec<&str>) =
            registry.into_iter().partition(|name| is_legal(name));
        for name in legal_ones.into_iter().chain(others) {
            if !self.wire_by_registry.contains_key(name) {
                let wire = self.free(&legal(name));
                self.insert(name, wire);
            }
        }
    }

    /// Registry names whose wire name is another one's, so that they have one with a number: both, in order.
    pub fn numbered(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.wire_by_registry.iter().map(|(name, wire)| (name.as_str(), wire.as_str()));
        all.filter(|(name, wire)| legal(name) != *wire)
    }

    /// The wire name of a registry name.
    pub fn wire(&self, registry: &str) -> Option<&str> {
        self.wire_by_registry.get(registry).map(String::as_str)
    }

    /// The registry name of a wire name; `None` for one that was never given out.
    pub fn registry(&self, wire: &str) -> Option<&str> {
        self.registry_by_wire.get(wire).map(String::as_str)
    }

    fn insert(&mut self, registry: &str, wire: String) {
        self.registry_by_wire.insert(wire.clone(), registry.to_owned());
        self.wire_by_registry.insert(registry.to_owned(), wire);
    }

    fn free(&self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut n = 2u64;
        while self.registry_by_wire.contains_key(&name) {
            let suffix = format!("_{n}");
            // Wire names are ASCII, so any byte is a character boundary.
            let kept = wanted.len().min(WIRE_NAME_CHARS - suffix.len());
            name = format!("{}{suffix}", &wanted[..kept]);
            n += 1;
        }
        name
    }
}

/// The nearest name that a provider takes; `unnamed` for an empty one. Two names can come out the same.
pub fn legal(name: &str) -> String {
    if name.is_empty() {
        return "unnamed".to_owned();
    }
    name.chars().take(WIRE_NAME_CHARS).map(|c| if is_legal_char(c) { c } else { '_' }).collect()
}

fn is_legal(name: &str) -> bool {
    !name.is_empty() && name.len() <= WIRE_NAME_CHARS && name.chars().all(is_legal_char)
}

fn is_legal_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

#[cfg(test)]
mod tests;
