//! One small request to one endpoint, outside any run: what `agentd model probe` asks, and what came of it.
//!
//! Owns the request and the time it may take. Refuses to try again: what one attempt meets is what is told; only what
//! the dialect learns from a refusal is asked anew, as a run would. Called by the command line.

use super::Order;
use super::attempt::{Ask, Attempt};
use super::came::Came;
use crate::child::clock::Clock;
use crate::http::dial::Trust;
use crate::http::mask::Mask;
use agentd_core::bytes::Json;
use agentd_core::model::api::Api;
use agentd_core::model::{Message, ModelError, ModelErrorKind, ModelRequest, Reply, WireNames};
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::message::{Endpoint, Remote, ToolDecl};
use serde_json::json;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};

/// The tool that the model is asked to call.
const TOOL: &str = "report_ready";

/// Tokens that the reply may have: some models think before they call.
const MOST_OUTPUT: u64 = 1_024;

/// Requests at most: what a dialect learns of a server, it learns in two refusals.
const REQUESTS: u64 = 3;

/// What one endpoint did with a request.
pub(crate) struct Seen {
    /// The HTTP status, if there was an answer at all.
    pub(crate) status: Option<u16>,
    /// Until the answer's head came.
    pub(crate) first: Option<Duration>,
    /// Until all of it was there, or it had failed.
    pub(crate) whole: Duration,
    /// It came as a stream of events.
    pub(crate) streamed: bool,
    /// The reply, or what went wrong, without any secret.
    pub(crate) outcome: Result<Reply, ModelError>,
}

/// Asks one endpoint; with a tool that the model is to call, or without any.
pub(crate) fn probe(mut api: Api, remote: &Remote, endpoint: &Endpoint, with_tool: bool) -> Seen {
    let most = remote.max_output.map_or(MOST_OUTPUT, |most| most.min(MOST_OUTPUT));
    let remote = Remote { max_output: Some(most), ..remote.clone() };
    let request = request(with_tool);
    let mut number = 1;
    loop {
        let seen = attempt(number, &api, &remote, endpoint, &request);
        match &seen.outcome {
            Err(error) if number < REQUESTS && api.learn(error) => number += 1,
            Ok(_) | Err(_) => return seen,
        }
    }
}

fn attempt(number: u64, api: &Api, remote: &Remote, endpoint: &Endpoint, request: &ModelRequest) -> Seen {
    let clock = Clock::start();
    let (back, ended) = channel();
    let (attempt, body) = Attempt::new(Ask {
        number,
        base: endpoint.url.clone(),
        request: api.request(remote, endpoint, request),
        reader: api.reader(),
        mask: Mask::of_endpoint(endpoint.token.as_deref(), &remote.headers),
        trust: Arc::new(Trust::default()),
        clock,
        came: Came::default(),
        back,
    });
    // It ends by itself once it is shut.
    let thread = std::thread::Builder::new().name("model probe".to_owned()).spawn(body);
    let silence = Duration::from_millis(remote.timeout_ms);
    let outcome = match thread {
        Err(error) => {
            Err(ModelError::new(ModelErrorKind::Unreachable, format!("there is no thread for it: {error}")))
        }
        Ok(_) => loop {
            let until = attempt.last_sign() + silence;
            match ended.recv_timeout(clock.until(until)) {
                Ok(Order::Ended { outcome, .. }) => break outcome,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) if attempt.last_sign() + silence > clock.now() => {}
                Err(RecvTimeoutError::Timeout) => {
                    attempt.shut();
                    let said = format!("nothing came for {} s (the model's timeout)", silence.as_secs_f64());
                    break Err(ModelError::new(ModelErrorKind::Unreachable, said));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let said = "the attempt ended without a word, which is a bug in agentd";
                    break Err(ModelError::new(ModelErrorKind::Malformed, said));
                }
            }
        },
    };
    Seen {
        status: attempt.status(),
        first: attempt.headed().map(|at| at.since(Instant::ZERO)),
        whole: clock.now().since(Instant::ZERO),
        streamed: attempt.streamed(),
        outcome,
    }
}

fn request(with_tool: bool) -> ModelRequest {
    let schema = json!({
        "type": "object", "properties": {"ready": {"type": "boolean"}}, "required": ["ready"],
    });
    let tool = ToolDecl {
        name: TOOL.to_owned(),
        description: "Report that you are ready.".to_owned(),
        schema: Json::of(&schema),
    };
    let (tools, said): (Arc<[ToolDecl]>, _) = if with_tool {
        (Arc::from([tool]), "Call the tool report_ready with ready set to true. Write nothing else.")
    } else {
        (Arc::default(), "Answer with the one word: ready")
    };
    ModelRequest {
        model: String::new(),
        degraded: false,
        max_output: None,
        system: String::new(),
        messages: vec![Arc::new(Message::User(said.to_owned()))],
        context: 0,
        begins: 0,
        turn: 1,
        declared: Arc::clone(&tools),
        tools,
        names: Arc::new(WireNames::new([TOOL])),
        step: 1,
        tokens_left: u64::MAX,
    }
}
