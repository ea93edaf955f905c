//! The providers' interfaces behind one face, for the connection that does not care which it speaks.
//!
//! Owns the choice of dialect and what was learned of the server. Called by the child's model connection.

use crate::model::http::HttpRequest;
use crate::model::{ModelError, ModelRequest, Partial, Reply, anthropic, openai, responses};
use crate::wire::message::{Dialect, Endpoint, Remote};

/// A provider's interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Api {
    /// Chat completions, and how this server wants to be asked.
    ChatCompletions(openai::Manner),
    /// Responses.
    Responses,
    /// Messages.
    Messages,
}

impl Api {
    /// The interface of a dialect that goes over the network, and where.
    pub fn of(dialect: &Dialect) -> Option<(Api, &Remote)> {
        match dialect {
            Dialect::Mock(_) => None,
            Dialect::Openai(remote) => Some((Api::ChatCompletions(openai::Manner::default()), remote)),
            Dialect::OpenaiResponses(remote) => Some((Api::Responses, remote)),
            Dialect::Anthropic(remote) => Some((Api::Messages, remote)),
        }
    }

    /// A model call as HTTP.
    pub fn request(&self, remote: &Remote, endpoint: &Endpoint, request: &ModelRequest) -> HttpRequest {
        match self {
            Api::ChatCompletions(manner) => openai::request(remote, endpoint, request, *manner),
            Api::Responses => responses::request(remote, endpoint, request),
            Api::Messages => anthropic::request(remote, endpoint, request),
        }
    }

    /// A reader for its answer.
    pub fn reader(&self) -> Reader {
        match self {
            Api::ChatCompletions(_) => Reader::ChatCompletions(openai::Reader::new()),
            Api::Responses => Reader::Responses(responses::Reader::new()),
            Api::Messages => Reader::Messages(anthropic::Reader::new()),
        }
    }

    /// Learns from a refusal. `true`: the same call, asked anew, may be accepted.
    pub fn learn(&mut self, error: &ModelError) -> bool {
        match self {
            Api::ChatCompletions(manner) => manner.learn(error),
            Api::Responses | Api::Messages => false,
        }
    }
}

/// Reads an answer; see [`crate::model::stream::Reader`].
#[derive(Debug)]
pub enum Reader {
    /// Of chat completions.
    ChatCompletions(openai::Reader),
    /// Of responses.
    Responses(responses::Reader),
    /// Of messages.
    Messages(anthropic::Reader),
}

impl Reader {
    /// Takes the next bytes; how many events in them mean something.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        match self {
            Reader::ChatCompletions(reader) => reader.push(bytes),
            Reader::Responses(reader) => reader.push(bytes),
            Reader::Messages(reader) => reader.push(bytes),
        }
    }

    /// Whether the rest need not be read.
    pub fn is_done(&self) -> bool {
        match self {
            Reader::ChatCompletions(reader) => reader.is_done(),
            Reader::Responses(reader) => reader.is_done(),
            Reader::Messages(reader) => reader.is_done(),
        }
    }

    /// Whether what came is a stream of events and not one JSON text.
    pub fn is_stream(&self) -> bool {
        match self {
            Reader::ChatCompletions(reader) => reader.is_stream(),
            Reader::Responses(reader) => reader.is_stream(),
            Reader::Messages(reader) => reader.is_stream(),
        }
    }

    /// What came so far of a reply, if anything.
    pub fn came(&self) -> Option<Partial> {
        match self {
            Reader::ChatCompletions(reader) => reader.came(),
            Reader::Responses(reader) => reader.came(),
            Reader::Messages(reader) => reader.came(),
        }
    }

    /// The answer has ended.
    ///
    /// # Errors
    /// It is no whole reply.
    pub fn finish(self) -> Result<Reply, ModelError> {
        match self {
            Reader::ChatCompletions(reader) => reader.finish(),
            Reader::Responses(reader) => reader.finish(),
            Reader::Messages(reader) => reader.finish(),
        }
    }
}
