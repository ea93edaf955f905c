//! `mcp.servers`: one transport each, unique names, paths made absolute.

use super::super::problem::{Code, Problem};
use super::super::source::Place;
use super::super::tree::{Node, clip};
use super::super::values::{Values, text_of};
use super::{Reader, milliseconds, shown, time};
use crate::secrets::{Use, reference};
use agentd_core::wire::message::{Files, Server, Stdio, Transport};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time for a server's start and handshake (S14.4).
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Keys that belong to one transport only.
const OF_FILES: [&str; 2] = ["root", "write"];
const OF_COMMAND: [&str; 3] = ["args", "env", "cwd"];
const OF_URL: [&str; 2] = ["headers", "ca"];

/// Tags by server name and pattern.
type Tags = BTreeMap<String, BTreeMap<String, Vec<String>>>;

impl Reader<'_> {
    /// Every server that could be read, and the tags of each.
    pub(super) fn servers(&mut self, root: &Values<'_>, workspace: Option<&Path>) -> (Vec<Server>, Tags) {
        let mut servers = Vec::new();
        let mut tags = Tags::new();
        let mut first: BTreeMap<&str, &Place> = BTreeMap::new();
        for (index, values) in root.section("mcp").items("servers").into_iter().enumerate() {
            let path = format!("mcp.servers[{index}]");
            let transport = self.transport(&values, &path, workspace);
            let Some(name) = values.text("name") else {
                self.missing(values.place(), &format!("{path}.name"), "a name that no other server has");
                continue;
            };
            let place = values.written("name").map(|node| &node.place);
            if let Some(place) = place {
                if let Some(earlier) = first.get(name) {
                    let fault = format!("{:?} is also the name of the server at {earlier}", clip(name));
                    let problem = Problem::at(place, &format!("{path}.name"), Code::Duplicate, fault);
                    self.problems.push(problem.hint("give each server a name of its own"));
                    continue;
                }
                first.insert(name, place);
            }
            tags.insert(name.to_owned(), values.lists("tags"));
            servers.extend(transport.map(|transport| server(&values, name, transport)));
        }
        (servers, tags)
    }

    fn transport(&mut self, values: &Values<'_>, path: &str, workspace: Option<&Path>) -> Option<Transport> {
        match (values.written("builtin"), values.written("command"), values.written("url")) {
            (Some(_), None, None) => {
                self.foreign(values, path, &OF_COMMAND, "a command");
                self.foreign(values, path, &OF_URL, "a url");
                self.files(values, path, workspace)
            }
            (None, Some(command), None) => {
                self.foreign(values, path, &OF_FILES, "builtin: files");
                self.foreign(values, path, &OF_URL, "a url");
                self.stdio(values, command, path, workspace)
            }
            (None, None, Some(url)) => {
                self.foreign(values, path, &OF_FILES, "builtin: files");
                self.foreign(values, path, &OF_COMMAND, "a command");
                self.at_address(values, url, path)
            }
            (None, None, None) => {
                let accepted = "builtin: files, command with a program, or url with an address";
                self.missing(values.place(), path, accepted);
                None
            }
            (_, command, url) => {
                let second = url.map(|node| (node, "url")).or(command.map(|node| (node, "command")));
                if let Some((node, key)) = second {
                    let fault = "a server is either builtin, a command or at a url";
                    let path = format!("{path}.{key}");
                    let problem = Problem::at(&node.place, &path, Code::InvalidValue, fault);
                    self.problems.push(problem.hint("keep one and remove the others"));
                }
                None
            }
        }
    }

    fn files(&mut self, values: &Values<'_>, path: &str, workspace: Option<&Path>) -> Option<Transport> {
        let root = match values.written("root") {
            Some(_) => self.folder(values, "root", &format!("{path}.root"))?,
            None => workspace.unwrap_or(self.here).to_owned(),
        };
        let root = self.utf8(root, values.place(), path)?;
        Some(Transport::Files(Files { root, write: values.switch("write") }))
    }

    fn stdio(
        &mut self,
        values: &Values<'_>,
        command: &Node,
        path: &str,
        workspace: Option<&Path>,
    ) -> Option<Transport> {
        self.no_secrets(command, &format!("{path}.command"));
        for (index, arg) in values.list("args").iter().enumerate() {
            self.no_secrets(arg, &format!("{path}.args[{index}]"));
        }
        let env = self.variables(values, path);
        let cwd = match values.written("cwd") {
            Some(_) => Some(self.folder(values, "cwd", &format!("{path}.cwd"))?),
            None => workspace.map(Path::to_owned),
        };
        let cwd = match cwd {
            Some(folder) => Some(self.utf8(folder, values.place(), path)?),
            None => None,
        };
        let program = self.program(command, path)?;
        let stdio = Stdio { command: program, args: values.texts("args").unwrap_or_default(), env, cwd };
        self.findable(&stdio, command, path, values.switch("required"));
        Some(Transport::Stdio(stdio))
    }

    /// Says that a program is not there. It may be when the server starts, so that nobody is kept from running.
    fn findable(&mut self, stdio: &Stdio, command: &Node, path: &str, required: bool) {
        let folder = stdio.cwd.as_ref().map_or(self.here, Path::new);
        let search = stdio.env.get("PATH").map(OsString::from);
        let search = search.or_else(|| self.secrets.variable("PATH").map(OsStr::to_owned));
        if let Err(fault) = crate::keeper::find(&stdio.command, search, folder) {
            let problem = Problem::at(&command.place, &format!("{path}.command"), Code::NoProgram, fault);
            let then = if required { "every run fails at once" } else { "runs go on without this server" };
            self.problems.push(problem.warning().hint(format!("until it is there, {then}")));
        }
    }

    /// The server's variables; what they refer to has to be there.
    fn variables(&mut self, values: &Values<'_>, path: &str) -> BTreeMap<String, String> {
        let mut variables = BTreeMap::new();
        for (name, node) in values.entries("env") {
            let path = format!("{path}.env.{}", clip(name));
            let text = text_of(node).unwrap_or_default();
            if let Err(fault) = reference::parts(&text) {
                let problem = Problem::at(&node.place, &path, Code::InvalidValue, fault.to_string());
                self.problems.push(problem.hint("write {{secret:NAME}} or {{secret-file:PATH}}"));
                continue;
            }
            let Some(text) = self.absolute_reference(node, &path) else { continue };
            let faults = self.secrets.faults(&text, Use::Variable);
            let told = |error| Problem::at(&node.place, &path, Code::Secret, format!("{error}"));
            self.problems.extend(faults.iter().map(told));
            variables.insert(name.to_owned(), text);
        }
        variables
    }

    /// A name without `/` is looked up in `PATH` when the server starts; anything else is a path.
    fn program(&mut self, command: &Node, path: &str) -> Option<String> {
        let text = text_of(command)?;
        if text.trim().is_empty() {
            let problem =
                Problem::at(&command.place, &format!("{path}.command"), Code::InvalidValue, "is empty");
            self.problems.push(problem.accepted("a program's name or path"));
            return None;
        }
        if !text.contains('/') {
            return Some(text);
        }
        let program = self.absolute(&command.place.resolve(&text));
        self.utf8(program, Some(&command.place), &format!("{path}.command"))
    }

    /// Keys that mean nothing for the transport a server has.
    fn foreign(&mut self, values: &Values<'_>, path: &str, keys: &[&str], owner: &str) {
        for key in keys {
            if let Some(node) = values.written(key) {
                let fault = format!("belongs to a server with {owner}");
                let path = format!("{path}.{key}");
                self.problems
                    .push(Problem::at(&node.place, &path, Code::InvalidValue, fault).hint("remove it"));
            }
        }
    }

    /// A secret in a command line is read by everybody who runs `ps`.
    fn no_secrets(&mut self, node: &Node, path: &str) {
        if text_of(node).is_some_and(|text| reference::refers(&text)) {
            let fault = "refers to a secret, and a command line can be read by every user of this machine";
            self.problems.push(
                Problem::at(&node.place, path, Code::InvalidValue, fault)
                    .hint("hand it over in env, or in a file that the program reads"),
            );
        }
    }

    /// A path as text: it travels in a frame.
    pub(super) fn utf8(&mut self, path: PathBuf, place: Option<&Place>, key: &str) -> Option<String> {
        match (path.into_os_string().into_string(), place) {
            (Ok(text), _) => Some(text),
            (Err(path), Some(place)) => {
                let fault = format!("the path {} is not UTF-8", shown(Path::new(&path)));
                self.problems
                    .push(Problem::at(place, key, Code::InvalidValue, fault).hint("rename the folder"));
                None
            }
            (Err(_), None) => None,
        }
    }
}

fn server(values: &Values<'_>, name: &str, transport: Transport) -> Server {
    Server {
        name: name.to_owned(),
        ns: values.text("ns").map(str::to_owned),
        transport,
        allow: values.texts("allow"),
        exclude: values.texts("exclude").unwrap_or_default(),
        timeout_ms: milliseconds(time(values, "timeout")),
        start_timeout_ms: milliseconds(START_TIMEOUT),
        required: values.switch("required"),
    }
}
