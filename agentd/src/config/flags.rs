//! Flags of the command line that stand for keys: each becomes a tree as a file does, so that one check serves all.

use super::environment::nest;
use super::merge::merge;
use super::problem::{Code, Problem};
use super::settings::LogFormat;
use super::source::{Place, Source};
use super::tree::{Entry, Node, Value};

/// Flags of the command line that stand for keys.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `intelligence.dialect`.
    pub dialect: Option<String>,
    /// `intelligence.endpoints`, in order; none leaves them as they are.
    pub endpoints: Vec<String>,
    /// `intelligence.model`.
    pub model: Option<String>,
    /// Servers as `NAME=COMMAND` or `NAME=URL`, added to `mcp.servers`; one of the same name is replaced.
    pub servers: Vec<String>,
    /// `lifecycle.journal`.
    pub journal: Option<String>,
    /// `observability.log_level`.
    pub log_level: Option<String>,
    /// `observability.log_format`.
    pub log_format: Option<LogFormat>,
}

impl Flags {
    /// One tree for each key that is set.
    pub(crate) fn trees(&self) -> Vec<Node> {
        let format = self.log_format.map(|format| match format {
            LogFormat::Json => "json",
            LogFormat::Text => "text",
        });
        let set = [
            ("--dialect", "intelligence.dialect", self.dialect.as_deref()),
            ("--model", "intelligence.model", self.model.as_deref()),
            ("--journal", "lifecycle.journal", self.journal.as_deref()),
            ("--log-level", "observability.log_level", self.log_level.as_deref()),
            ("--log-format", "observability.log_format", format),
        ];
        let texts = set.into_iter().filter_map(|(flag, path, value)| Some(nest(path, text_of(flag, value?))));
        let mut trees: Vec<Node> = texts.collect();
        let endpoints: Vec<Node> = self.endpoints.iter().map(|url| text_of("--endpoint", url)).collect();
        if let Some(first) = endpoints.first() {
            let place = first.place.clone();
            trees.push(nest("intelligence.endpoints", Node { value: Value::List(endpoints), place }));
        }
        trees
    }

    /// One tree for each server, `mcp.servers` with a single item.
    pub(crate) fn servers(&self, problems: &mut Vec<Problem>) -> Vec<Node> {
        self.servers.iter().filter_map(|text| server(text, problems)).collect()
    }
}

/// Flags come after every file and variable.
pub(crate) const FLAG_ORDER: u32 = u32::MAX - 1;

fn text_of(flag: &str, value: &str) -> Node {
    let source = Source::flag(flag, FLAG_ORDER, value.to_owned());
    let width = u32::try_from(value.chars().count()).unwrap_or(u32::MAX).max(1);
    Node::text(value, Place { width, ..Place::start(&source) })
}

/// Reads `NAME=COMMAND` or `NAME=URL`.
fn server(text: &str, problems: &mut Vec<Problem>) -> Option<Node> {
    let source = Source::flag("--mcp", FLAG_ORDER, text.to_owned());
    let place =
        Place { width: u32::try_from(text.chars().count()).unwrap_or(u32::MAX), ..Place::start(&source) };
    let accepted = "NAME=COMMAND, such as files='npx -y some-server .', or NAME=URL";
    let mut refuse = |code, fault: &str| {
        problems.push(Problem::at(&place, "", code, fault).accepted(accepted));
        None
    };
    let Some((name, command)) = text.split_once('=') else {
        return refuse(Code::InvalidValue, "there is no = between a name and a command");
    };
    let scalar = |text: &str| Node::text(text, place.clone());
    let entry = |key: &str, node: Node| Entry { key: key.to_owned(), place: place.clone(), node };
    let list = |items: Vec<Node>| Node { value: Value::List(items), place: place.clone() };
    let item = |entries| {
        let item = Node { value: Value::Map(entries), place: place.clone() };
        Some(nest("mcp.servers", list(vec![item])))
    };
    if command.starts_with("http://") || command.starts_with("https://") {
        return item(vec![entry("name", scalar(name)), entry("url", scalar(command.trim()))]);
    }
    let Some(words) = words(command) else {
        return refuse(Code::InvalidValue, "a quote is not closed");
    };
    let Some((program, args)) = words.split_first() else {
        return refuse(Code::InvalidValue, "there is no command after the =");
    };
    item(vec![
        entry("name", scalar(name)),
        entry("command", scalar(program)),
        entry("args", list(args.iter().map(|arg| scalar(arg)).collect())),
    ])
}

/// Splits a command as a shell would, without expanding anything: blanks, single and double quotes, and a
/// backslash outside single quotes. `None` when a quote is left open.
pub(crate) fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().push(chars.next()?),
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// Adds the one server of `tree` to the list, in place of one with its name.
pub(crate) fn add_server(root: &mut Node, tree: Node) {
    let Some(added) = only_server(tree.clone()) else { return };
    let name_of = |node: &Node| node.entry("name").and_then(|entry| super::values::text_of(&entry.node));
    let name = name_of(&added);
    match servers_of(root) {
        Some(list) => {
            list.retain(|node| name_of(node) != name);
            list.push(added);
        }
        None => merge(root, tree),
    }
}

fn only_server(mut tree: Node) -> Option<Node> {
    servers_of(&mut tree).and_then(Vec::pop)
}

fn servers_of(root: &mut Node) -> Option<&mut Vec<Node>> {
    let mut node = root;
    for key in ["mcp", "servers"] {
        let Value::Map(entries) = &mut node.value else { return None };
        node = &mut entries.iter_mut().find(|entry| entry.key == key)?.node;
    }
    match &mut node.value {
        Value::List(items) => Some(items),
        Value::Scalar(_) | Value::Map(_) => None,
    }
}
