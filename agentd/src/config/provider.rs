//! The providers that agentd knows by name: where each is reached, and the variable that its users keep their key
//! in. One of these variables alone is enough to run a prompt without a configuration file.

use super::environment::nest;
use super::problem::{Code, Problem};
use super::source::{Place, Source};
use super::tree::Node;
use crate::secrets::Secrets;

/// A provider with dialects of its own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Provider {
    /// The dialects it speaks at one address, the usual one first.
    pub(crate) dialects: &'static [&'static str],
    /// The variable of its key.
    pub(crate) key: &'static str,
    /// Its base address.
    pub(crate) address: &'static str,
}

const PROVIDERS: [Provider; 2] = [
    Provider { dialects: &["anthropic"], key: "ANTHROPIC_API_KEY", address: "https://api.anthropic.com" },
    Provider {
        dialects: &["openai", "openai-responses"],
        key: "OPENAI_API_KEY",
        address: "https://api.openai.com/v1",
    },
];

/// The provider whose dialect this is.
pub(crate) fn of(dialect: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|provider| provider.dialects.contains(&dialect))
}

/// Whether one address, with its key, serves both dialects.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    one == other || of(one).is_some_and(|provider| provider.dialects.contains(&other))
}

/// The variables of all keys.
pub(crate) fn keys() -> [&'static str; 2] {
    PROVIDERS.map(|provider| provider.key)
}

/// The dialect that the only key in the environment stands for, as a tree to lay the others on; nothing when a text
/// names a dialect, or when a file or variable (the first `of_files` trees) names endpoints of its own.
pub(crate) fn implied(
    secrets: &Secrets,
    trees: &[Node],
    of_files: usize,
) -> Result<Option<Node>, Box<Problem>> {
    let names = |tree: &Node, key| {
        let intelligence = tree.entry("intelligence").map(|entry| &entry.node);
        intelligence.and_then(|node| node.entry(key)).is_some_and(|entry| !entry.node.is_null())
    };
    let is_said = trees.iter().any(|tree| names(tree, "dialect"))
        || trees.iter().take(of_files).any(|tree| names(tree, "endpoints"));
    let set: Vec<&Provider> = PROVIDERS.iter().filter(|provider| secrets.is_set(provider.key)).collect();
    match set.as_slice() {
        _ if is_said => Ok(None),
        [] => Ok(None),
        [provider] => {
            // Without the variable's value: a problem would show it.
            let source = Source::variable(provider.key, 0, String::new());
            Ok(Some(nest("intelligence.dialect", Node::text(provider.dialects[0], Place::start(&source)))))
        }
        many => {
            let keys: Vec<&str> = many.iter().map(|provider| provider.key).collect();
            let message = format!("{} are set, and nothing says which provider is meant", keys.join(" and "));
            let hint = "give --dialect anthropic or --dialect openai, or write intelligence.dialect";
            let problem = Problem::of_file("", Code::Missing, message).key("intelligence.dialect");
            Err(Box::new(problem.hint(hint)))
        }
    }
}
