//! One load: which texts there are, in which order, and what becomes of them.

use super::check::check;
use super::environment::{self, nest};
use super::merge::merge;
use super::problem::{Code, Problem, sorted};
use super::read::Reader;
use super::settings::{LogFormat, Settings};
use super::source::{Place, Source};
use super::text;
use super::tree::{Entry, Node, Value};
use super::yaml;
use agentd_core::config::Config;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Where a configuration comes from. Nothing of the process is read besides: a test gives its own.
#[derive(Debug, Default)]
pub struct Sources {
    /// Files named by the caller, in order; when there are none the usual places are searched.
    pub files: Vec<PathBuf>,
    /// The environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The current folder, absolute.
    pub here: PathBuf,
    /// Flags that stand for keys.
    pub flags: Flags,
}

/// Flags of the command line that stand for keys.
#[derive(Debug, Default)]
pub struct Flags {
    /// `intelligence.model`.
    pub model: Option<String>,
    /// Servers as `NAME=COMMAND`, added to `mcp.servers`; one of the same name is replaced.
    pub servers: Vec<String>,
    /// `lifecycle.journal`.
    pub journal: Option<String>,
    /// `observability.log_level`.
    pub log_level: Option<String>,
    /// `observability.log_format`.
    pub log_format: Option<LogFormat>,
}

/// A configuration without problems.
#[derive(Debug)]
pub struct Loaded {
    /// For the core.
    pub config: Config,
    /// For the process around it.
    pub settings: Settings,
}

/// Loads the configuration, or says all that is wrong with it.
pub fn load(sources: &Sources) -> Result<Loaded, Vec<Problem>> {
    let mut problems = Vec::new();
    let files = if sources.files.is_empty() { search(sources) } else { sources.files.clone() };
    let mut trees: Vec<Node> = (0..)
        .zip(&files)
        .filter_map(|(order, file)| file_tree(file, order, sources, &mut problems))
        .collect();
    // What a file that was not read would have said is not missing.
    let complete = trees.len() == files.len();
    let order = u32::try_from(files.len()).unwrap_or(FLAG_ORDER);
    trees.extend(environment::overrides(&sources.environment, order, &mut problems));
    trees.extend(sources.flags.trees());
    if files.is_empty() && !trees.iter().any(|tree| tree.entry("intelligence").is_some_and(names_a_dialect)) {
        problems.push(none_found(sources));
        return Err(sorted(problems));
    }
    let servers = sources.flags.servers(&mut problems);
    Assembly { trees, servers, complete, files, here: &sources.here, problems }.read()
}

/// Loads one text, without variables, flags or a search: a configuration that agentd itself writes.
pub(crate) fn load_text(name: &str, text: &str, here: &Path) -> Result<Loaded, Vec<Problem>> {
    let mut problems = Vec::new();
    let tree = yaml::parse(&Source::file(Path::new(name), 0, text.to_owned()), &mut problems);
    let complete = tree.is_some();
    let trees = tree.into_iter().collect();
    Assembly { trees, servers: Vec::new(), complete, files: Vec::new(), here, problems }.read()
}

/// All texts of one load.
struct Assembly<'a> {
    /// In order: later wins.
    trees: Vec<Node>,
    /// Servers of flags, which are added to a list instead of replacing it.
    servers: Vec<Node>,
    complete: bool,
    files: Vec<PathBuf>,
    here: &'a Path,
    problems: Vec<Problem>,
}

impl Assembly<'_> {
    /// Checks each text, lays them over each other and reads the whole.
    fn read(self) -> Result<Loaded, Vec<Problem>> {
        let Assembly { trees, servers, complete, files, here, mut problems } = self;
        trees.iter().chain(&servers).for_each(|tree| check(tree, &mut problems));
        let mut root = yaml::empty(&Source::file(Path::new(""), 0, String::new()));
        trees.into_iter().for_each(|tree| merge(&mut root, tree));
        servers.into_iter().for_each(|tree| add_server(&mut root, tree));
        let read = Reader { complete, here, files: &files, problems: &mut problems }.read(&root);
        match read {
            Some((config, settings)) if problems.is_empty() => Ok(Loaded { config, settings }),
            Some(_) | None => Err(sorted(problems)),
        }
    }
}

/// The first of the usual places that has a file (S17.0).
fn search(sources: &Sources) -> Vec<PathBuf> {
    places(sources).into_iter().find(|place| sources.here.join(place).exists()).into_iter().collect()
}

/// The usual places, in order.
fn places(sources: &Sources) -> Vec<PathBuf> {
    let variable = |name: &str| {
        let found = sources.environment.iter().find(|(key, _)| key == OsStr::new(name));
        found.map(|(_, value)| PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    let user = variable("XDG_CONFIG_HOME").or_else(|| variable("HOME").map(|home| home.join(".config")));
    let mut places = vec![PathBuf::from("agentd.yaml")];
    places.extend(user.map(|folder| folder.join("agentd/agentd.yaml")));
    places.push(PathBuf::from("/etc/agentd/agentd.yaml"));
    places
}

fn none_found(sources: &Sources) -> Problem {
    let looked: Vec<String> = places(sources).iter().map(|place| place.display().to_string()).collect();
    let message = format!("there is no configuration: looked for {}", looked.join(", "));
    Problem::of_file("", Code::NoConfiguration, message)
        .hint("name one with -c FILE; or try `agentd demo`, which needs none")
}

fn names_a_dialect(intelligence: &Entry) -> bool {
    intelligence.node.entry("dialect").is_some()
}

fn file_tree(file: &Path, order: u32, sources: &Sources, problems: &mut Vec<Problem>) -> Option<Node> {
    match text::read(&sources.here.join(file)) {
        Ok(text) => yaml::parse(&Source::file(file, order, text), problems),
        Err(error) => {
            let message = format!("the file cannot be read: {error}");
            problems.push(Problem::of_file(file.display(), Code::Unreadable, message));
            None
        }
    }
}

impl Flags {
    fn trees(&self) -> Vec<Node> {
        let format = self.log_format.map(|format| match format {
            LogFormat::Json => "json",
            LogFormat::Text => "text",
        });
        let set = [
            ("--model", "intelligence.model", self.model.as_deref()),
            ("--journal", "lifecycle.journal", self.journal.as_deref()),
            ("--log-level", "observability.log_level", self.log_level.as_deref()),
            ("--log-format", "observability.log_format", format),
        ];
        set.into_iter()
            .filter_map(|(flag, path, value)| {
                let source = Source::flag(flag, FLAG_ORDER, value?.to_owned());
                Some(nest(path, Node::text(source.text(), Place::start(&source))))
            })
            .collect()
    }

    /// One tree for each server, `mcp.servers` with a single item.
    fn servers(&self, problems: &mut Vec<Problem>) -> Vec<Node> {
        self.servers.iter().filter_map(|text| server(text, problems)).collect()
    }
}

/// Flags come after every file and variable.
const FLAG_ORDER: u32 = u32::MAX - 1;

/// Reads `NAME=COMMAND`.
fn server(text: &str, problems: &mut Vec<Problem>) -> Option<Node> {
    let source = Source::flag("--mcp", FLAG_ORDER, text.to_owned());
    let place =
        Place { width: u32::try_from(text.chars().count()).unwrap_or(u32::MAX), ..Place::start(&source) };
    let accepted = "NAME=COMMAND, such as files='npx -y some-server .'";
    let mut refuse = |code, fault: &str| {
        problems.push(Problem::at(&place, "", code, fault).accepted(accepted));
        None
    };
    let Some((name, command)) = text.split_once('=') else {
        return refuse(Code::InvalidValue, "there is no = between a name and a command");
    };
    if command.starts_with("http://") || command.starts_with("https://") {
        return refuse(Code::NotBuilt, "servers at an address are not built yet");
    }
    let Some(words) = words(command) else {
        return refuse(Code::InvalidValue, "a quote is not closed");
    };
    let Some((program, args)) = words.split_first() else {
        return refuse(Code::InvalidValue, "there is no command after the =");
    };
    let scalar = |text: &String| Node::text(text, place.clone());
    let entry = |key: &str, node: Node| Entry { key: key.to_owned(), place: place.clone(), node };
    let list = |items: Vec<Node>| Node { value: Value::List(items), place: place.clone() };
    let entries = vec![
        entry("name", Node::text(name, place.clone())),
        entry("command", scalar(program)),
        entry("args", list(args.iter().map(scalar).collect())),
    ];
    let item = Node { value: Value::Map(entries), place: place.clone() };
    Some(nest("mcp.servers", list(vec![item])))
}

/// Splits a command as a shell would, without expanding anything: blanks, single and double quotes, and a
/// backslash outside single quotes. `None` when a quote is left open.
fn words(text: &str) -> Option<Vec<String>> {
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
fn add_server(root: &mut Node, tree: Node) {
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

/// The sources of this process: its environment and current folder.
impl Sources {
    /// Sources of a command line; the environment and the current folder are the process's.
    pub fn of_process(files: Vec<PathBuf>, flags: Flags) -> std::io::Result<Sources> {
        Ok(Sources {
            files,
            flags,
            environment: std::env::vars_os().collect(),
            here: std::env::current_dir()?,
        })
    }
}

#[cfg(test)]
mod tests;
