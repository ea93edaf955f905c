//! `agentd model probe`: one small request to each endpoint of a model, and what of it works.

use super::args::{ConfigArgs, ModelFlags};
use super::{answer, exit, run};
use crate::child::model_probe::{Seen, probe};
use crate::config::{Flags, Loaded};
use agentd_core::config::ModelChoice;
use agentd_core::model::api::Api;
use agentd_core::model::{ModelErrorKind, Reply};
use agentd_core::preview::preview;
use agentd_core::wire::message::{Dialect, Endpoint, Remote};
use clap::Args;
use serde_json::{Value, json};

#[derive(Debug, Args)]
#[command(after_help = MODEL_PROBE_EXAMPLES)]
pub(super) struct ModelProbeArgs {
    /// One of intelligence.models; without it, the agent's own.
    name: Option<String>,
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    model: ModelFlags,
    /// Print one JSON object: model, dialect, endpoints, each with what works.
    #[arg(long)]
    json: bool,
}

const MODEL_PROBE_EXAMPLES: &str = "\
Examples:
  agentd model probe                             the agent's own model, with ./agentd.yaml
  agentd model probe fast --json                 one of intelligence.models
  agentd model probe --dialect openai --endpoint http://127.0.0.1:11434/v1 --model llama3.3

Exit codes: 0 every endpoint works, 1 one answers with something else than a reply or does not accept the request,
2 usage or configuration, 4 one cannot be reached or rejects the credential, or there is no key.";

/// Bytes of a name or an address in a message.
const SHOWN_BYTES: usize = 200;

/// Asks, and prints what came of it.
pub(super) fn model_probe(args: ModelProbeArgs) -> u8 {
    let ModelProbeArgs { name, config, model: ModelFlags { model, endpoints, dialect }, json } = args;
    let flags = Flags { dialect, endpoints, model, ..Flags::default() };
    let (_, loaded) = match run::load(config.config, flags) {
        Ok(loaded) => loaded,
        Err((said, code)) => {
            eprint!("{said}");
            return code;
        }
    };
    let choice = match chosen(&loaded, name.as_deref()) {
        Ok(choice) => choice,
        Err((said, code)) => {
            eprintln!("agentd: {said}");
            return code;
        }
    };
    let dialect = &choice.model.dialect;
    let Some((api, remote)) = Api::of(dialect) else {
        let said = "follows a playbook: there is no provider to reach, and `agentd check` has read it";
        let value = json!({"model": choice.model.name, "dialect": "mock", "endpoints": []});
        return answer::only(&shown(json, &value, &format!("{} {said}\n", named(choice))), exit::COMPLETED);
    };
    let mut remote = remote.clone();
    if let Err((part, error)) = loaded.settings.secrets.put_in_remote(&mut remote) {
        eprintln!("agentd: the {part} of the model {}: {error}", named(choice));
        return exit::MODEL;
    }
    let found: Vec<Found> = remote.endpoints.iter().map(|endpoint| look(&api, &remote, endpoint)).collect();
    let value = json!({
        "model": choice.model.name, "dialect": word(dialect),
        "endpoints": found.iter().map(Found::object).collect::<Vec<_>>(),
    });
    let head = format!("model {} ({}), {}\n", named(choice), word(dialect), counted(found.len()));
    let text = found.iter().fold(head, |text, found| text + &found.lines());
    // The worst of all decides: a run would reach it one day.
    let code = found.iter().map(Found::code).max().unwrap_or(exit::COMPLETED);
    answer::only(&shown(json, &value, &text), code)
}

/// The model that is meant.
fn chosen<'l>(loaded: &'l Loaded, name: Option<&str>) -> Result<&'l ModelChoice, (String, u8)> {
    let (own, named) = (&loaded.config.model, &loaded.config.models);
    let choice = match name {
        None => own,
        Some(name) => match named.get(name).or_else(|| Some(own).filter(|own| own.model.name == name)) {
            Some(choice) => choice,
            None => {
                let mut known: Vec<&str> = named.keys().map(String::as_str).collect();
                known.push(&own.model.name);
                let known: Vec<String> = known.iter().map(|name| preview(name, SHOWN_BYTES)).collect();
                let name = preview(name, SHOWN_BYTES);
                return Err((
                    format!("there is no model {name}; there are {}", known.join(", ")),
                    exit::USAGE,
                ));
            }
        },
    };
    match &choice.unusable {
        Some(why) => Err((format!("the model {} cannot be used: {why}", choice.model.name), exit::MODEL)),
        None => Ok(choice),
    }
}

/// What was found of one endpoint.
struct Found {
    address: String,
    https: bool,
    /// A key, or a header that may be one, goes along.
    keyed: bool,
    seen: Seen,
    /// Why no tool is taken, where a request without one is.
    no_tools: Option<String>,
}

fn look(api: &Api, remote: &Remote, endpoint: &Endpoint) -> Found {
    let mut seen = probe(api.clone(), remote, endpoint, true);
    let mut no_tools = None;
    if let Err(error) = &seen.outcome
        && error.kind == ModelErrorKind::Rejected
    {
        let plain = probe(api.clone(), remote, endpoint, false);
        if plain.outcome.is_ok() {
            no_tools = Some(error.message.clone());
            seen = plain;
        }
    }
    Found {
        address: preview(&endpoint.url, SHOWN_BYTES),
        https: endpoint.url.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://")),
        keyed: endpoint.token.is_some() || !remote.headers.is_empty(),
        seen,
        no_tools,
    }
}

impl Found {
    fn reply(&self) -> Option<&Reply> {
        self.seen.outcome.as_ref().ok()
    }

    fn code(&self) -> u8 {
        match &self.seen.outcome {
            Ok(_) => exit::COMPLETED,
            Err(error) => exit::of_fault(error.kind.fails_as()),
        }
    }

    fn reached(&self) -> &'static str {
        if self.seen.status.is_some() { "yes" } else { "no" }
    }

    fn tls(&self) -> &'static str {
        match (self.https, self.seen.status) {
            (false, _) => "none, on this machine",
            (true, Some(_)) => "trusted",
            (true, None) => "not known",
        }
    }

    fn credential(&self) -> &'static str {
        match (&self.seen.outcome, self.keyed) {
            (Err(error), _) if error.kind == ModelErrorKind::Credential => "rejected",
            (Ok(_), true) => "accepted",
            (Ok(_), false) => "none needed",
            (Err(_), _) => "not known",
        }
    }

    fn streaming(&self) -> &'static str {
        match self.reply() {
            Some(_) if self.seen.streamed => "yes",
            Some(_) => "no, the answer came in one piece",
            None => "not known",
        }
    }

    fn tools(&self) -> &'static str {
        match (self.reply(), &self.no_tools) {
            (Some(_), Some(_)) => "not accepted",
            (Some(reply), None) if reply.calls.is_empty() => "the tool was not called",
            (Some(_), None) => "called",
            (None, _) => "not known",
        }
    }

    fn usage(&self) -> Option<(u64, u64)> {
        self.reply().and_then(|reply| Some((reply.usage.input?, reply.usage.output?)))
    }

    fn object(&self) -> Value {
        let ms = |time: agentd_core::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let error = self.seen.outcome.as_ref().err();
        json!({
            "endpoint": self.address,
            "works": error.is_none(),
            "reached": self.seen.status.is_some(),
            "status": self.seen.status,
            "tls": self.tls(),
            "credential": self.credential(),
            "streaming": self.streaming(),
            "tool_calls": self.tools(),
            "usage": self.usage().map(|(input, output)| json!({"input": input, "output": output})),
            "first_ms": self.seen.first.map(ms),
            "whole_ms": ms(self.seen.whole),
            "error": error.map(|error| json!({"kind": error.kind.name(), "message": error.message})),
            "tools_error": self.no_tools,
        })
    }

    fn lines(&self) -> String {
        let verdict = match &self.seen.outcome {
            Ok(_) => "works".to_owned(),
            Err(error) => format!("does not work: {}", preview(&error.message, 2_000)),
        };
        let status = match (self.seen.status, self.seen.first) {
            (Some(status), Some(first)) => {
                format!("{}, HTTP {status} after {} ms", self.reached(), first.as_millis())
            }
            _ => self.reached().to_owned(),
        };
        let usage = match (self.usage(), self.reply()) {
            (Some((input, output)), _) => format!("reported: {input} tokens in, {output} out"),
            (None, Some(_)) => "not reported, so it is estimated".to_owned(),
            (None, None) => "not known".to_owned(),
        };
        let tools = match &self.no_tools {
            Some(why) => format!("{}: {}", self.tools(), preview(why, 2_000)),
            None => self.tools().to_owned(),
        };
        let rows = [
            ("reached", status),
            ("TLS", self.tls().to_owned()),
            ("credential", self.credential().to_owned()),
            ("streaming", self.streaming().to_owned()),
            ("tool calls", tools),
            ("usage", usage),
            ("answered", format!("after {} ms", self.seen.whole.as_millis())),
        ];
        let rows: String = rows.iter().map(|(what, how)| format!("  {what:<12}{how}\n")).collect();
        format!("\n{}: {verdict}\n{rows}", self.address)
    }
}

fn named(choice: &ModelChoice) -> String {
    preview(&choice.model.name, SHOWN_BYTES)
}

fn word(dialect: &Dialect) -> &'static str {
    match dialect {
        Dialect::Mock(_) => "mock",
        Dialect::Openai(_) => "openai",
        Dialect::OpenaiResponses(_) => "openai-responses",
        Dialect::Anthropic(_) => "anthropic",
    }
}

fn counted(endpoints: usize) -> String {
    if endpoints == 1 { "1 endpoint".to_owned() } else { format!("{endpoints} endpoints") }
}

fn shown(json: bool, value: &Value, text: &str) -> String {
    if json { format!("{value}\n") } else { text.to_owned() }
}
