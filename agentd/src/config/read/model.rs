//! `intelligence`: the agent's own model and those that runs can be given instead. Owns what a named model takes
//! over from the agent's own, and what a model without a key means: for the agent's own that nothing can be run,
//! for another that runs which want it are refused. A part at fault is read as if it were empty, so that it does not
//! hide what is wrong with the others: the load has failed by then.

use super::super::check::dollars;
use super::super::nearest::nearest;
use super::super::playbook;
use super::super::problem::{Code, Problem};
use super::super::provider;
use super::super::tree::{Node, clip};
use super::super::values::{Values, text_of};
use super::{Reader, milliseconds, relative_to, shown};
use agentd_core::config::ModelChoice;
use agentd_core::money::{Price, Usd};
use agentd_core::wire::message::{Dialect, Endpoint, Model, Remote};
use std::collections::BTreeMap;
use std::time::Duration;

/// The endpoint that stands for the playbook inside agentd.
const BUILTIN: &str = "mock:builtin";

/// The name of a model that follows a playbook, when it is given none.
const SCRIPTED: &str = "mock";

/// The dialects there are.
const DIALECTS: [&str; 4] = ["anthropic", "openai", "openai-responses", "mock"];

/// Stands for a dialect that cannot be told.
const UNKNOWN: &str = "";

/// All models of a configuration.
pub(super) struct Models {
    pub(super) own: ModelChoice,
    pub(super) named: BTreeMap<String, ModelChoice>,
}

/// One model as it was read.
pub(super) struct Connection {
    /// The name its provider, or the log, knows it by.
    pub(super) id: String,
    pub(super) dialect: Dialect,
    /// Why it cannot be used.
    pub(super) unusable: Option<String>,
}

/// Where a connection stands: `intelligence`, or one of its models.
pub(super) struct Section<'s, 'v> {
    pub(super) values: &'s Values<'v>,
    pub(super) path: &'s str,
}

impl Reader<'_> {
    /// Every model; `None` when the agent's own cannot be read, and `problems` says why.
    pub(super) fn models(&mut self, intelligence: &Values<'_>) -> Option<Models> {
        let prices = prices(self, intelligence);
        let own = self.own_model(&Section { values: intelligence, path: "intelligence" });
        let mut named = BTreeMap::new();
        for (name, values) in intelligence.maps("models") {
            let path = format!("intelligence.models.{}", clip(name));
            let section = Section { values: &values, path: &path };
            if let Some(read) = self.named_model(&section, spoken(intelligence), own.as_ref()) {
                self.unambiguous(name, &section, &read, own.as_ref());
                named.insert(name.to_owned(), choice(name, read, &prices));
            }
        }
        let own = own?;
        let id = own.id.clone();
        Some(Models { own: choice(&id, own, &prices), named })
    }

    fn own_model(&mut self, section: &Section<'_, '_>) -> Option<Connection> {
        if !section.values.has("dialect") {
            self.missing(section.values.place(), "intelligence.dialect", &DIALECTS.join(", "));
        }
        match spoken(section.values) {
            "mock" => self.scripted(section, None),
            dialect => {
                let id = self.model_id(section);
                let remote = self.own_remote(section, dialect);
                Some(Connection { dialect: remote_dialect(dialect, &id, remote), id, unusable: None })
            }
        }
    }

    fn own_remote(&mut self, section: &Section<'_, '_>, dialect: &str) -> Remote {
        let endpoints = self.addresses(section, dialect);
        let headers = self.headers(section);
        let endpoints = self.own_tokens(section, dialect, endpoints, &headers);
        Remote {
            model: String::new(),
            endpoints,
            headers,
            timeout_ms: timeout(section.values).unwrap_or_default(),
            max_output: section.values.whole("max_output"),
        }
    }

    fn named_model(
        &mut self,
        section: &Section<'_, '_>,
        of_own: &str,
        own: Option<&Connection>,
    ) -> Option<Connection> {
        let values = section.values;
        let dialect = if values.written("dialect").is_some() { spoken(values) } else { of_own };
        match dialect {
            // It would take over the playbook that is at fault, and that has been told.
            "mock" if own.is_none() && of_own == "mock" && !values.has("endpoints") => None,
            "mock" => self.scripted(section, own),
            _ => {
                let id = self.model_id(section);
                let (remote, unusable) = self.named_remote(section, dialect, of_own, own);
                Some(Connection { dialect: remote_dialect(dialect, &id, remote), id, unusable })
            }
        }
    }

    /// A named model's connection, and why it cannot be used.
    fn named_remote(
        &mut self,
        section: &Section<'_, '_>,
        dialect: &str,
        of_own: &str,
        own: Option<&Connection>,
    ) -> (Remote, Option<String>) {
        let values = section.values;
        let is_unknown = of_own == UNKNOWN;
        let of_own = own.filter(|_| provider::is_same(of_own, dialect)).and_then(|own| own.dialect.remote());
        let endpoints = match of_own {
            Some(own) if !values.has("endpoints") => own.endpoints.iter().map(without_token).collect(),
            // Whether it has the address of the agent's own model is not known.
            None if is_unknown && !values.has("endpoints") => self.addresses(section, UNKNOWN),
            Some(_) | None => self.addresses(section, dialect),
        };
        let same = of_own.filter(|own| same_addresses(&own.endpoints, &endpoints));
        let headers = match same {
            Some(own) if values.written("headers").is_none() => own.headers.clone(),
            Some(_) | None => self.headers(section),
        };
        let default = of_own.map(|own| own.timeout_ms).unwrap_or(DEFAULT_TIMEOUT_MS);
        let (endpoints, unusable) = self.named_tokens(section, endpoints, same, &headers);
        let remote = Remote {
            model: String::new(),
            endpoints,
            headers,
            timeout_ms: timeout(values).unwrap_or(default),
            max_output: values.whole("max_output").or(same.and_then(|own| own.max_output)),
        };
        (remote, unusable)
    }

    /// The model as its provider names it; empty when that is at fault.
    fn model_id(&mut self, section: &Section<'_, '_>) -> String {
        let path = format!("{}.model", section.path);
        match section.values.written("model") {
            Some(node) => {
                let id = text_of(node).filter(|id| !id.trim().is_empty());
                if id.is_none() {
                    self.problems.push(Problem::at(&node.place, &path, Code::InvalidValue, "is empty"));
                }
                id.unwrap_or_default()
            }
            None if section.values.has("model") => String::new(),
            None => {
                let accepted =
                    "the model as its provider names it: with --model NAME, or in a configuration file";
                let of_models = "the model as its provider names it";
                let own = section.path == "intelligence";
                self.missing(section.values.place(), &path, if own { accepted } else { of_models });
                String::new()
            }
        }
    }

    /// A name that stands for two models would leave open which one a run gets; `inherit` is that of whoever asks.
    fn unambiguous(
        &mut self,
        name: &str,
        section: &Section<'_, '_>,
        read: &Connection,
        own: Option<&Connection>,
    ) {
        let is_other = own.is_some_and(|own| own.id == name && own.dialect != read.dialect);
        let fault = match name {
            super::INHERIT => "inherit stands for the model of the run that asks".to_owned(),
            _ if is_other => format!("{:?} is also the agent's own model, which is another", clip(name)),
            _ => return,
        };
        if let Some(place) = section.values.place() {
            let problem = Problem::at(place, section.path, Code::Duplicate, fault);
            self.problems.push(problem.hint("give it another name"));
        }
    }

    /// A model that follows a playbook: its own, or that of the agent's own model.
    fn scripted(&mut self, section: &Section<'_, '_>, own: Option<&Connection>) -> Option<Connection> {
        let values = section.values;
        let id = values.text("model").unwrap_or(SCRIPTED).to_owned();
        let of_own = own.filter(|own| matches!(own.dialect, Dialect::Mock(_)));
        if let Some(own) = of_own.filter(|_| !values.has("endpoints")) {
            return Some(Connection { id, dialect: own.dialect.clone(), unusable: None });
        }
        let path = format!("{}.endpoints", section.path);
        let [endpoint] = values.list("endpoints") else {
            match values.list("endpoints").get(1) {
                None => {
                    let accepted = "a list of one playbook: a path, or mock:builtin for that of agentd demo";
                    self.missing(values.place(), &path, accepted);
                }
                Some(second) => {
                    let fault = "a playbook has no second endpoint to fail over to";
                    let path = format!("{path}[1]");
                    self.problems
                        .push(Problem::at(&second.place, &path, Code::InvalidValue, fault).hint("keep one"));
                }
            }
            return None;
        };
        let json = self.playbook(endpoint, &path)?;
        Some(Connection { id, dialect: Dialect::Mock(json.into()), unusable: None })
    }

    fn playbook(&mut self, endpoint: &Node, path: &str) -> Option<Vec<u8>> {
        // A NUL is a problem of its own already.
        let text = text_of(endpoint).filter(|text| !text.contains('\0'))?;
        if text == BUILTIN {
            return playbook::builtin(self.problems);
        }
        let file = endpoint.place.resolve(&text);
        match playbook::load(&file, &self.absolute(&file), self.problems) {
            Ok(json) => json,
            Err(fault) => {
                let fault = format!("the playbook {} cannot be read: {fault}", shown(&file));
                let problem = Problem::at(&endpoint.place, &format!("{path}[0]"), Code::Unreadable, fault)
                    .accepted("the path of a playbook, or mock:builtin");
                self.problems.push(match relative_to(&endpoint.place, &text) {
                    Some(hint) => problem.hint(hint),
                    None => problem,
                });
                None
            }
        }
    }
}

/// Silence that makes a connection dead, where neither the model nor the agent's own says.
const DEFAULT_TIMEOUT_MS: u64 = 120_000;

fn timeout(values: &Values<'_>) -> Option<u64> {
    values.duration("timeout").map(|timeout: Duration| milliseconds(timeout))
}

/// What tokens cost, by the provider's name of the model.
fn prices(reader: &mut Reader<'_>, intelligence: &Values<'_>) -> BTreeMap<String, Price> {
    let mut prices = BTreeMap::new();
    for (model, values) in intelligence.maps("prices") {
        let path = format!("intelligence.prices.{}", clip(model));
        for key in ["input", "output"].into_iter().filter(|key| !values.has(key)) {
            reader.missing(
                values.place(),
                &format!("{path}.{key}"),
                "dollars for a million tokens, such as 0.25",
            );
        }
        let price = |key: &str| -> Option<Usd> { dollars(values.text(key)?) };
        if let (Some(input), Some(output)) = (price("input"), price("output")) {
            let cached = price("cached").unwrap_or(input);
            prices.insert(model.to_owned(), Price { input, output, cached });
        }
    }
    prices
}

fn choice(name: &str, read: Connection, prices: &BTreeMap<String, Price>) -> ModelChoice {
    ModelChoice {
        price: prices.get(&read.id).copied(),
        model: Model { name: name.to_owned(), dialect: read.dialect },
        unusable: read.unusable,
    }
}

fn remote_dialect(word: &str, id: &str, remote: Remote) -> Dialect {
    let remote = Remote { model: id.to_owned(), ..remote };
    match word {
        "anthropic" => Dialect::Anthropic(remote),
        "openai-responses" => Dialect::OpenaiResponses(remote),
        _ => Dialect::Openai(remote),
    }
}

/// The dialect of a section; of one that is missing or not known, which is a problem of its own, what it most likely
/// stands for, else [`UNKNOWN`], which is checked as a provider's.
fn spoken(values: &Values<'_>) -> &'static str {
    let near = values.text("dialect").and_then(|word| nearest(word, DIALECTS));
    let is_playbook = |node: &Node| text_of(node).is_some_and(|text| text == BUILTIN || is_file(&text));
    match near.and_then(|near| DIALECTS.into_iter().find(|dialect| *dialect == near)) {
        Some(dialect) => dialect,
        None if values.list("endpoints").iter().any(is_playbook) => "mock",
        None => UNKNOWN,
    }
}

/// Whether an endpoint can only be meant as the file of a playbook.
fn is_file(endpoint: &str) -> bool {
    !endpoint.contains("://") && [".yaml", ".yml", ".json"].iter().any(|end| endpoint.ends_with(end))
}

fn without_token(endpoint: &Endpoint) -> Endpoint {
    Endpoint { url: endpoint.url.clone(), token: None }
}

fn same_addresses(these: &[Endpoint], those: &[Endpoint]) -> bool {
    these.iter().map(|endpoint| &endpoint.url).eq(those.iter().map(|endpoint| &endpoint.url))
}

/// The provider's own address, where a configuration names none.
pub(super) fn default_address(dialect: &str) -> Option<&'static str> {
    provider::of(dialect).map(|provider| provider.address)
}
