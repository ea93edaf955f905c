//! One HTTP exchange as it is read: what kind of answer it is, and what of it has come.
//!
//! Owns the verdict over status and content type, and the bounds on a body. Used by the exchanges' table.

use super::{Broken, End, Fact, Resume, What};
use crate::limits;
use crate::mcp::preview::{one_line, preview};
use crate::sse::{Decoder, Event};

/// How far it has come.
#[derive(Debug)]
pub(super) struct Reading {
    /// The number of the session it was made in.
    session: Option<u64>,
    /// It takes up a stream that broke.
    resumed: bool,
    /// Times in a row that this stream was taken up without an event on it.
    fruitless: u32,
    status: u16,
    answer: Answer,
    /// What is to be said of it, when that is known before its end.
    pub(super) verdict: Option<End>,
}

#[derive(Debug)]
enum Answer {
    /// Nothing came.
    Waiting,
    /// One JSON text.
    Json(Vec<u8>),
    /// A stream of events.
    Events(Decoder),
    /// A refusal and the beginning of what is said with it.
    Refusal(Vec<u8>),
    /// Nothing that anybody waits for.
    Nothing,
}

impl Reading {
    /// `resumes`: how often in a row the stream was taken up, where this is what is left of one.
    pub(super) fn new(session: Option<u64>, resumes: Option<u32>) -> Reading {
        let (resumed, fruitless) = (resumes.is_some(), resumes.unwrap_or(0));
        Reading { session, resumed, fruitless, status: 0, answer: Answer::Waiting, verdict: None }
    }

    pub(super) fn head(&mut self, what: &What, status: u16, content_type: &str) {
        self.status = status;
        let kind = content_type.split(';').next().unwrap_or_default().trim();
        let answered = matches!(what, What::Request(_));
        self.answer = match status {
            200..=299 if matches!(what, What::Note | What::Farewell) => Answer::Nothing,
            200..=299 if kind.eq_ignore_ascii_case("text/event-stream") => {
                Answer::Events(Decoder::bounded(limits::MCP_LINE_BYTES, limits::MCP_LINE_BYTES))
            }
            202 | 204 if answered => {
                self.verdict =
                    Some(End::Odd(format!("took the request with status {status} and gave no answer")));
                Answer::Nothing
            }
            200..=299 if answered && kind.eq_ignore_ascii_case("application/json") => {
                Answer::Json(Vec::new())
            }
            200..=299 => {
                let kind = if kind.is_empty() {
                    "no content type".to_owned()
                } else {
                    format!("{:?}", preview(kind))
                };
                self.verdict = Some(End::Odd(format!(
                    "answered with {kind}, which is neither application/json nor text/event-stream"
                )));
                Answer::Nothing
            }
            300..=399 => {
                let why = format!(
                    "answered with a redirect (status {status}), which is not followed; give its target as the url"
                );
                self.verdict = Some(End::Odd(why));
                Answer::Nothing
            }
            _ => Answer::Refusal(Vec::new()),
        };
    }

    pub(super) fn body(&mut self, what: &What, bytes: &[u8], facts: &mut Vec<Fact>) {
        match &mut self.answer {
            Answer::Waiting | Answer::Nothing => {}
            Answer::Json(text) => {
                if text.len() + bytes.len() > limits::MCP_LINE_BYTES {
                    self.verdict =
                        Some(End::Odd(format!("sent an answer over {} bytes", limits::MCP_LINE_BYTES)));
                    self.answer = Answer::Nothing;
                } else {
                    text.extend_from_slice(bytes);
                }
            }
            Answer::Events(decoder) => {
                let mut events = Vec::new();
                let read = decoder.push(bytes, &mut events);
                if !events.is_empty() {
                    self.fruitless = 0;
                }
                facts.extend(events.into_iter().filter_map(|event| fact(what, event)));
                if let Err(error) = read {
                    self.verdict = Some(End::Odd(format!("sent a stream that cannot be read: {error}")));
                    self.answer = Answer::Nothing;
                }
            }
            Answer::Refusal(body) => {
                let room = limits::REFUSAL_BYTES - body.len();
                body.extend_from_slice(&bytes[..bytes.len().min(room)]);
                if bytes.len() >= room {
                    let body = String::from_utf8_lossy(body).into_owned();
                    self.verdict = Some(End::Refused {
                        status: self.status,
                        body,
                        session: self.session,
                        resumed: self.resumed,
                    });
                }
            }
        }
    }

    /// The exchange is over: how it ended, and how it may go on.
    pub(super) fn finish(
        self,
        what: &What,
        how: Result<(), Broken>,
        facts: &mut Vec<Fact>,
    ) -> (End, Option<Resume>) {
        // The request that a stream answers was taken before the stream broke.
        let how = how.map_err(|broken| Broken { reached: broken.reached || self.resumed, ..broken });
        let whole = End::Whole { status: self.status };
        let end = |whole: End| match &how {
            Ok(()) => whole,
            Err(broken) => End::Broken(broken.clone()),
        };
        match self.answer {
            Answer::Waiting => {
                let nothing =
                    Broken { reached: true, why: "the connection ended without an answer".to_owned() };
                (End::Broken(how.err().unwrap_or(nothing)), None)
            }
            Answer::Nothing => (end(whole), None),
            // A refusal that breaks off is still one.
            Answer::Refusal(body) => {
                let body = String::from_utf8_lossy(&body).into_owned();
                let (status, session, resumed) = (self.status, self.session, self.resumed);
                (End::Refused { status, body, session, resumed }, None)
            }
            Answer::Json(text) => {
                if how.is_ok() {
                    facts.push(Fact::Message(String::from_utf8_lossy(&text).into_owned()));
                }
                (end(whole), None)
            }
            Answer::Events(decoder) => {
                let resume = decoder.last_id().map(|last_id| Resume {
                    last_id: last_id.to_owned(),
                    after: decoder.retry().unwrap_or(limits::MCP_RETRY.0).min(limits::MCP_RETRY.1),
                    fruitless: self.fruitless,
                });
                // An event that was cut off is given out by the decoder: as a message it counts only when the stream
                // came to its end, and when it is no JSON it counts for nothing.
                if let (Ok(()), Ok(Some(event))) = (&how, decoder.finish()) {
                    facts.extend(fact(what, event));
                }
                (end(whole), resume)
            }
        }
    }
}

fn fact(what: &What, event: Event) -> Option<Fact> {
    match event.name.as_str() {
        "endpoint" if *what == What::Sniff => Some(Fact::Endpoint),
        "" | "message" if !event.data.trim().is_empty() => Some(Fact::Message(event.data)),
        _ => None,
    }
}

impl End {
    /// What happened: words that follow a colon.
    pub(in crate::mcp) fn words(&self) -> String {
        match self {
            End::Whole { status } => {
                format!("the server ended its answer (status {status}) without the message that was due")
            }
            End::Refused { status, body, resumed, .. } => {
                let hint = match status {
                    _ if *resumed => " when it was asked for the rest of its answer",
                    401 | 403 => "; it wants credentials: give them in headers",
                    404 => "; is this the address of its MCP endpoint?",
                    _ => "",
                };
                let said = one_line(body, limits::PREVIEW_BYTES);
                let said = if said.is_empty() { String::new() } else { format!(" and said {said:?}") };
                format!("the server answered with HTTP status {status}{said}{hint}")
            }
            End::Odd(what) => format!("the server {what}"),
            End::Broken(broken) => broken.why.clone(),
        }
    }
}
