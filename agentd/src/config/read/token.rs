//! Which key goes to which endpoint (S15.2), and whether it can be had. References stay references; their values
//! are looked at once, to say at load what would otherwise fail later.

use super::super::check::is_secret_header;
use super::super::environment::{TOKEN, token_variable};
use super::super::problem::{Code, Problem};
use super::super::provider;
use super::super::source::Place;
use super::super::tree::Node;
use super::super::values::text_of;
use super::Reader;
use super::endpoint::is_loopback;
use super::model::Section;
use crate::secrets::{SecretError, Use, reference};
use agentd_core::wire::message::{Endpoint, Remote};
use std::collections::BTreeMap;
use std::path::Path;

/// A key, by reference, and where it was asked for.
#[derive(Clone)]
struct Token {
    reference: String,
    origin: Origin,
}

#[derive(Clone)]
enum Origin {
    /// A key of the configuration.
    Written { place: Place, path: String },
    /// A variable.
    Variable(String),
}

type Headers = BTreeMap<String, String>;

impl Reader<'_> {
    /// The agent's own endpoints with their keys; one that is missing or cannot be had is a problem.
    pub(super) fn own_tokens(
        &mut self,
        section: &Section<'_, '_>,
        dialect: &str,
        mut endpoints: Vec<Endpoint>,
        headers: &Headers,
    ) -> Vec<Endpoint> {
        let is_list_at_fault = section.values.has("endpoints") && section.values.list("endpoints").is_empty();
        if !is_list_at_fault {
            self.surplus_variables(endpoints.len());
        }
        let written = self.written_token(section);
        let for_all = self.variable_token(TOKEN).or(written.clone());
        let with_header = headers.keys().any(|name| is_secret_header(name));
        let of_provider = provider::of(dialect).map(|provider| provider.key);
        let of_provider = of_provider.filter(|key| !with_header && self.secrets.is_set(key));
        let several = endpoints.len() > 1;
        for (number, endpoint) in (1_usize..).zip(&mut endpoints) {
            let token = self
                .variable_token(&format!("{TOKEN}_{number}"))
                .or_else(|| for_all.clone())
                .or_else(|| of_provider.map(Token::of_variable));
            match token {
                Some(token) => {
                    let faults = self.secrets.faults(&token.reference, Use::Header);
                    self.problems.extend(faults.iter().map(|error| token.problem(error)));
                    endpoint.token = Some(token.reference);
                }
                // One that is written and at fault has been told.
                None if section.values.has("token") || section.values.has("token_file") => {}
                // Of an address that is at fault it is not known whether it needs one.
                None if endpoint.url.is_empty() => {}
                None if with_header || is_loopback(&endpoint.url) => {}
                // Which variable would do is not known either.
                None if provider::of(dialect).is_none() => {}
                None => self.no_key(section, &endpoint.url, dialect, several.then_some(number)),
            }
        }
        let faults = self.header_faults(section, headers);
        self.problems.extend(faults.into_iter().map(|(problem, _)| problem));
        endpoints
    }

    /// A named model's endpoints with their keys, and why it cannot be used. `same` is the agent's own connection
    /// when it is this one.
    pub(super) fn named_tokens(
        &mut self,
        section: &Section<'_, '_>,
        mut endpoints: Vec<Endpoint>,
        same: Option<&Remote>,
        headers: &Headers,
    ) -> (Vec<Endpoint>, Option<String>) {
        let written = self.written_token(section);
        let is_written = section.values.has("token") || section.values.has("token_file");
        let mut unusable = None;
        if let Some(token) = &written {
            for error in self.secrets.faults(&token.reference, Use::Header) {
                unusable.get_or_insert(error.to_string());
                self.problems.push(token.problem(&error).warning());
            }
            endpoints.iter_mut().for_each(|endpoint| endpoint.token = Some(token.reference.clone()));
        } else if let Some(own) = same {
            endpoints.clone_from(&own.endpoints);
        } else if !is_written && !headers.keys().any(|name| is_secret_header(name)) {
            let needs_one = |endpoint: &&Endpoint| !endpoint.url.is_empty() && !is_loopback(&endpoint.url);
            let without = endpoints.iter().find(needs_one);
            if let (Some(endpoint), Some(place)) = (without, section.values.place()) {
                let path = section.path;
                let why =
                    format!("no key for {}: looked for {path}.token and {path}.token_file", endpoint.url);
                let problem = Problem::at(place, path, Code::NoCredential, why.clone()).warning();
                self.problems.push(
                    problem.hint(
                        "give it a token: another address does not get the key of the agent's own model",
                    ),
                );
                unusable = Some(why);
            }
        }
        let faults = self.header_faults(section, headers);
        for (problem, why) in faults {
            unusable.get_or_insert(why);
            self.problems.push(problem.warning());
        }
        (endpoints, unusable)
    }

    /// A text with references, the paths of secret files absolute. `None` when it is at fault.
    pub(super) fn absolute_reference(&mut self, node: &Node, path: &str) -> Option<String> {
        let text = text_of(node)?;
        let mut unfit = None;
        let made = reference::map_files(&text, |file| {
            let file = self.here.join(node.place.resolve(file));
            let shown = file.to_string_lossy().into_owned();
            if file.to_str().is_none_or(|file| !reference::can_refer(file)) {
                unfit = Some(format!("the path {shown} cannot stand in a reference"));
            }
            shown
        });
        match (made, unfit) {
            (Ok(text), None) => Some(text),
            (Ok(_), Some(fault)) => {
                let problem = Problem::at(&node.place, path, Code::InvalidValue, fault);
                self.problems.push(problem.hint("rename it: UTF-8, and without }}"));
                None
            }
            // What is misspelled was found at fault.
            (Err(_), _) => None,
        }
    }

    /// `token` or `token_file` of a section.
    fn written_token(&mut self, section: &Section<'_, '_>) -> Option<Token> {
        let values = section.values;
        let (token, file) = (values.written("token"), values.written("token_file"));
        let path = |key: &str| format!("{}.{key}", section.path);
        match (token, file) {
            (Some(_), Some(file)) => {
                let fault = "a key comes from token or from token_file, not from both";
                let problem = Problem::at(&file.place, &path("token_file"), Code::InvalidValue, fault);
                self.problems.push(problem.hint("remove one"));
                None
            }
            (Some(token), None) => {
                let reference = self.absolute_reference(token, &path("token"))?;
                Some(Token {
                    reference,
                    origin: Origin::Written { place: token.place.clone(), path: path("token") },
                })
            }
            (None, Some(_)) => {
                let (file, place) = values.path("token_file")?;
                let origin = Origin::Written { place: place.clone(), path: path("token_file") };
                self.file_token(&file, origin)
            }
            (None, None) => None,
        }
    }

    /// The key that a variable, or the file it names with `_FILE`, stands for.
    fn variable_token(&mut self, name: &str) -> Option<Token> {
        let of_file = format!("{name}_FILE");
        match (self.secrets.is_set(name), self.secrets.is_set(&of_file)) {
            (true, true) => {
                let fault = format!("{name} is set too, and only one of them can be");
                let problem = Problem::of_file(format!("${of_file}"), Code::InvalidValue, fault);
                self.problems.push(problem.hint("unset one"));
                None
            }
            (true, false) => Some(Token::of_variable(name)),
            (false, true) => {
                let file = Path::new(self.secrets.variable(&of_file)?).to_owned();
                self.file_token(&file, Origin::Variable(of_file))
            }
            (false, false) => None,
        }
    }

    fn file_token(&mut self, file: &Path, origin: Origin) -> Option<Token> {
        let file = self.absolute(file);
        match file.to_str().filter(|file| reference::can_refer(file)) {
            Some(file) => Some(Token { reference: reference::to_file(file), origin }),
            None => {
                let fault = format!("the path {} cannot be used for a key", super::shown(&file));
                let problem = origin.problem(Code::InvalidValue, fault);
                self.problems.push(problem.hint("rename it: UTF-8, and without }}"));
                None
            }
        }
    }

    /// Variables for endpoints that there are not.
    fn surplus_variables(&mut self, endpoints: usize) {
        for name in self.secrets.names() {
            let Some(Some(number)) = token_variable(name) else { continue };
            if number > endpoints {
                let fault = format!("is for endpoint {number}, and there are {endpoints}");
                let problem = Problem::of_file(format!("${name}"), Code::UnknownVariable, fault);
                self.problems.push(problem.key("intelligence.endpoints").hint("unset it"));
            }
        }
    }

    fn no_key(&mut self, section: &Section<'_, '_>, url: &str, dialect: &str, number: Option<usize>) {
        let own = provider::of(dialect).map(|provider| provider.key);
        let mut looked = vec![TOKEN.to_owned(), format!("{TOKEN}_FILE")];
        if let Some(number) = number {
            looked.extend([format!("{TOKEN}_{number}"), format!("{TOKEN}_{number}_FILE")]);
        }
        looked.extend(own.map(str::to_owned));
        let empty: Vec<&str> =
            looked.iter().map(String::as_str).filter(|name| self.secrets.variable(name).is_some()).collect();
        let mut message = format!(
            "no key for {url}: looked for intelligence.token and intelligence.token_file, and for the variables {}",
            looked.join(", ")
        );
        if !empty.is_empty() {
            message.push_str(&format!("; {} is set, but empty", empty.join(", ")));
        }
        let hint = format!("set {}, or try `agentd demo`, which needs no key", own.unwrap_or(TOKEN));
        let problem = self.lacking(section.values.place(), "intelligence", Code::NoCredential, message);
        self.problems.push(problem.hint(hint));
    }

    /// Headers whose secrets cannot be had, as problems and in words.
    fn header_faults(&self, section: &Section<'_, '_>, headers: &Headers) -> Vec<(Problem, String)> {
        let of_one = |(name, node): (&str, &Node)| {
            // What is written there and cannot be sent was found at fault.
            let value = headers.get(name).filter(|value| reference::refers(value));
            let faults = value.map(|value| self.secrets.faults(value, Use::Header)).unwrap_or_default();
            let path = format!("{}.headers.{name}", section.path);
            let told = |error: SecretError| {
                let why = error.to_string();
                (Problem::at(&node.place, &path, Code::NoCredential, why.clone()), why)
            };
            faults.into_iter().map(told).collect::<Vec<_>>()
        };
        section.values.entries("headers").flat_map(of_one).collect()
    }
}

impl Token {
    fn of_variable(name: &str) -> Token {
        Token { reference: reference::to_name(name), origin: Origin::Variable(name.to_owned()) }
    }

    /// That it cannot be had.
    fn problem(&self, error: &SecretError) -> Problem {
        self.origin.problem(Code::NoCredential, error.to_string())
    }
}

impl Origin {
    fn problem(&self, code: Code, message: String) -> Problem {
        match self {
            Origin::Written { place, path } => Problem::at(place, path, code, message),
            Origin::Variable(name) => Problem::of_file(format!("${name}"), code, message),
        }
    }
}
