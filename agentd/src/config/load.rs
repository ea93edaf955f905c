//! One load: which texts there are, in which order, and what becomes of them.

use super::check::check;
use super::effective::Effective;
use super::environment;
use super::flags::{FLAG_ORDER, Flags, add_server};
use super::hide::hide;
use super::merge::merge;
use super::problem::{Code, Problem, Severity, sorted};
use super::provider;
use super::read::{self, Reader};
use super::schema;
use super::settings::Settings;
use super::source::Source;
use super::text;
use super::tree::Node;
use super::values::{Values, text_of};
use super::yaml;
use crate::secrets::Secrets;
use agentd_core::config::Config;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Where a configuration comes from. Nothing of the process is read besides: a test gives its own.
#[derive(Debug, Clone, Default)]
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

/// A configuration that can be used.
#[derive(Debug)]
pub struct Loaded {
    /// For the core.
    pub config: Config,
    /// For the process around it.
    pub settings: Settings,
    /// What is wrong with it and keeps nobody from using it.
    pub warnings: Vec<Problem>,
    /// What each key comes to.
    pub effective: Effective,
}

/// Loads the configuration, or says all that is wrong with it.
pub fn load(sources: &Sources) -> Result<Loaded, Vec<Problem>> {
    load_by(sources, &|file| text::read(&sources.here.join(file)))
}

/// As [`load`], with the configuration's own files read by `read`.
pub(super) fn load_by(sources: &Sources, read: &Read<'_>) -> Result<Loaded, Vec<Problem>> {
    let mut problems = Vec::new();
    let files = if sources.files.is_empty() { search(sources) } else { sources.files.clone() };
    let mut trees: Vec<Node> =
        (0..).zip(&files).filter_map(|(order, file)| file_tree(file, order, read, &mut problems)).collect();
    // What a file that was not read would have said is not missing.
    let complete = trees.len() == files.len();
    let order = u32::try_from(files.len()).unwrap_or(FLAG_ORDER);
    let variables = environment::overrides(&sources.environment, order, &mut problems);
    trees.extend(variables);
    let of_files = trees.len();
    trees.extend(sources.flags.trees());
    let secrets = Secrets::new(&sources.environment);
    match provider::implied(&secrets, &trees, of_files) {
        Ok(tree) => trees.splice(0..0, tree).for_each(drop),
        Err(problem) if files.is_empty() => {
            problems.push(*problem);
            return Err(sorted(problems));
        }
        // That the dialect is missing is found below, with what else is wrong with the files.
        Err(_) => {}
    }
    if files.is_empty() && !trees.iter().any(names_a_model) {
        problems.push(none_found(sources));
        return Err(sorted(problems));
    }
    let servers = sources.flags.servers(&mut problems);
    Assembly { trees, servers, complete, files, here: &sources.here, secrets, problems }.read()
}

/// Which daemon a configuration is of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) name: String,
    /// Its control socket, where that is not in the usual place.
    pub(crate) socket: Option<PathBuf>,
    /// Its state directory, where the configuration names it.
    pub(crate) state: Option<PathBuf>,
}

/// Which daemon a configuration is of. Nothing else is looked at, so whoever only wants to talk to a daemon needs none of
/// its secrets.
pub(crate) fn identity(sources: &Sources) -> Result<Identity, Vec<Problem>> {
    let mut problems = Vec::new();
    let files = if sources.files.is_empty() { search(sources) } else { sources.files.clone() };
    let read = |file: &Path| text::read(&sources.here.join(file));
    let mut trees: Vec<Node> =
        (0..).zip(&files).filter_map(|(order, file)| file_tree(file, order, &read, &mut problems)).collect();
    if trees.len() < files.len() {
        return Err(sorted(problems));
    }
    let order = u32::try_from(files.len()).unwrap_or(FLAG_ORDER);
    trees.extend(environment::overrides(&sources.environment, order, &mut Vec::new()));
    let mut root = yaml::empty(&Source::file(Path::new(""), 0, String::new()));
    trees.into_iter().for_each(|tree| merge(&mut root, tree));
    let values = Values::new(&root, schema::ROOT);
    let name = values.section("agent").text("name").map_or_else(|| read::default_name(&files), str::to_owned);
    let a2a = values.section("a2a");
    let listens = a2a.list("listen").iter().filter_map(text_of);
    let socket = listens.filter_map(|text| text.strip_prefix("unix://").map(PathBuf::from)).next();
    let state = values.section("store").path("path").map(|(path, _)| sources.here.join(path));
    Ok(Identity { name, socket, state })
}

/// Loads one text, without variables, flags or a search: a configuration that agentd itself writes.
pub(crate) fn load_text(name: &str, text: &str, here: &Path) -> Result<Loaded, Vec<Problem>> {
    let mut problems = Vec::new();
    let tree = yaml::parse(&Source::file(Path::new(name), 0, text.to_owned()), &mut problems);
    let complete = tree.is_some();
    let trees = tree.into_iter().collect();
    let (servers, files) = (Vec::new(), Vec::new());
    Assembly { trees, servers, complete, files, here, secrets: Secrets::default(), problems }.read()
}

/// Reads the text of a file.
pub(super) type Read<'a> = dyn Fn(&Path) -> Result<String, text::Unreadable> + 'a;

/// All texts of one load.
struct Assembly<'a> {
    /// In order: later wins.
    trees: Vec<Node>,
    /// Servers of flags, which are added to a list instead of replacing it.
    servers: Vec<Node>,
    complete: bool,
    files: Vec<PathBuf>,
    here: &'a Path,
    secrets: Secrets,
    problems: Vec<Problem>,
}

impl Assembly<'_> {
    /// Checks each text, lays them over each other and reads the whole.
    fn read(self) -> Result<Loaded, Vec<Problem>> {
        let Assembly { trees, servers, complete, files, here, secrets, mut problems } = self;
        trees.iter().for_each(hide);
        trees.iter().chain(&servers).for_each(|tree| check(tree, &mut problems));
        let mut root = yaml::empty(&Source::file(Path::new(""), 0, String::new()));
        trees.into_iter().for_each(|tree| merge(&mut root, tree));
        servers.into_iter().for_each(|tree| add_server(&mut root, tree));
        let read =
            Reader { complete, here, files: &files, secrets: &secrets, problems: &mut problems }.read(&root);
        let problems = sorted(problems);
        match read {
            Some((config, settings)) if problems.iter().all(|p| p.severity == Severity::Warning) => {
                let effective = Effective::of(&root, here);
                Ok(Loaded { config, settings, warnings: problems, effective })
            }
            Some(_) | None => Err(problems),
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
    let message = format!(
        "there is no configuration and no key: looked for {}, and for the variables {}",
        looked.join(", "),
        provider::keys().join(" and ")
    );
    Problem::of_file("", Code::NoConfiguration, message)
        .hint("set one of the two and give --model NAME; or name a file with -c FILE; or try `agentd demo`, which needs neither")
}

/// Whether a text says how a model is reached.
fn names_a_model(tree: &Node) -> bool {
    let intelligence = tree.entry("intelligence").map(|entry| &entry.node);
    intelligence.is_some_and(|node| node.entry("dialect").or(node.entry("endpoints")).is_some())
}

fn file_tree(file: &Path, order: u32, read: &Read<'_>, problems: &mut Vec<Problem>) -> Option<Node> {
    match read(file) {
        Ok(text) => yaml::parse(&Source::file(file, order, text), problems),
        Err(error) => {
            let message = format!("the file cannot be read: {error}");
            problems.push(Problem::of_file(file.display(), Code::Unreadable, message));
            None
        }
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
