//! Where an export goes: a file, stdout or a collector that speaks OTLP over HTTP.

use crate::http::dial::{self, Trust};
use crate::http::headers;
use agentd_core::preview::preview;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::time::Duration;
use ureq::http::{HeaderMap, HeaderValue, Request, StatusCode, header};

/// How long a collector may take over one request.
const ANSWER: Duration = Duration::from_secs(30);

/// Pauses before a request that a collector could not take is sent once more.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

/// Bytes of an answer that are read.
const ANSWER_BYTES: u64 = 64 * 1024;

/// The path of traces, where an address has none.
const PATH: &str = "/v1/traces";

/// How spans are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The binary form.
    Protobuf,
    /// OTLP's JSON: one request a line.
    Json,
}

/// Why a collector does not have the spans.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{url}: {why}")]
    Unsent { url: String, why: String },
    #[error("{url}: the collector took a part only: {rejected} spans were rejected ({why})")]
    Partial { url: String, rejected: i64, why: String },
}

/// Writes all requests: in JSON one a line, in the binary form as one message.
///
/// # Errors
/// The writer's own.
pub(crate) fn write(
    requests: &[ExportTraceServiceRequest],
    form: Form,
    to: &mut impl Write,
) -> io::Result<()> {
    for request in requests {
        to.write_all(&body(request, form))?;
        if form == Form::Json {
            to.write_all(b"\n")?;
        }
    }
    to.flush()
}

/// Repeated fields of messages that follow each other add up, so several requests in the binary form are one.
fn body(request: &ExportTraceServiceRequest, form: Form) -> Vec<u8> {
    match form {
        Form::Protobuf => request.encode_to_vec(),
        // Strings, numbers and lists of these: nothing of it can fail to be written.
        Form::Json => serde_json::to_vec(request).unwrap_or_default(),
    }
}

/// Sends the requests to a collector, one after the other. An address without a path means the usual one.
///
/// # Errors
/// The first that was not taken, after some tries where another one may help.
pub(crate) fn post(
    requests: &[ExportTraceServiceRequest],
    form: Form,
    url: &str,
    more: &BTreeMap<String, String>,
    trust: &Trust,
) -> Result<(), Failure> {
    let url = with_path(url);
    let unsent = |why: String| Failure::Unsent { url: preview(&url, 200), why };
    let mut fields = HeaderMap::new();
    headers::put(&mut fields, more).map_err(|failure| unsent(failure.message))?;
    let kind = match form {
        Form::Protobuf => "application/x-protobuf",
        Form::Json => "application/json",
    };
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    for request in requests {
        let body = body(request, form);
        let mut pauses = PAUSES.iter();
        loop {
            match once(&url, &fields, &body, form, trust) {
                Ok(answer) => {
                    if let Some((rejected, why)) = partial(&answer, form) {
                        return Err(Failure::Partial { url: preview(&url, 200), rejected, why });
                    }
                    break;
                }
                Err((again, why)) => match pauses.next().filter(|_| again) {
                    Some(pause) => std::thread::sleep(*pause),
                    None => return Err(unsent(why)),
                },
            }
        }
    }
    Ok(())
}

/// One try. `Err` says whether another one may help.
fn once(
    url: &str,
    fields: &HeaderMap,
    body: &[u8],
    form: Form,
    trust: &Trust,
) -> Result<Vec<u8>, (bool, String)> {
    let agent = trust.agent(url).map_err(|failure| (false, failure.message))?;
    let mut request = Request::post(url);
    if let Some(headers) = request.headers_mut() {
        headers.extend(fields.clone());
    }
    let request =
        request.body(body).map_err(|_| (false, "the address is no URL that can be dialled".to_owned()))?;
    let request = agent.configure_request(request).timeout_global(Some(ANSWER)).build();
    let failed = |error| {
        let failure = dial::failure(error);
        (failure.kind == dial::Kind::Unreachable, failure.message)
    };
    let answer = agent.run(request).map_err(failed)?;
    let status = answer.status();
    let mut said = Vec::new();
    let read = answer.into_body().into_reader().take(ANSWER_BYTES).read_to_end(&mut said);
    if status.is_success() {
        read.map_err(|error| (false, format!("the answer broke off: {}", preview(error.to_string(), 200))))?;
        return Ok(said);
    }
    let again = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    );
    let hint = match status {
        StatusCode::NOT_FOUND => "; is it the address of an OTLP collector over HTTP?",
        StatusCode::UNSUPPORTED_MEDIA_TYPE if form == Form::Json => "; try it without --json",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "; try it with --json",
        _ => "",
    };
    let said = if form == Form::Json { format!(" {}", preview(said, 200)) } else { String::new() };
    Err((again, format!("the collector answers {status}{said}{hint}")))
}

/// What of a request a collector did not take, by its answer: how many spans, and why.
fn partial(answer: &[u8], form: Form) -> Option<(i64, String)> {
    let (rejected, why) = match form {
        Form::Protobuf => {
            let part = ExportTraceServiceResponse::decode(answer).ok()?.partial_success?;
            (part.rejected_spans, part.error_message)
        }
        Form::Json => {
            let answer: serde_json::Value = serde_json::from_slice(answer).ok()?;
            let (part, number) = (&answer["partialSuccess"], &answer["partialSuccess"]["rejectedSpans"]);
            // Long numbers are texts in this form, and not every collector keeps to that.
            let rejected = number.as_i64().or_else(|| number.as_str()?.parse().ok())?;
            (rejected, part["errorMessage"].as_str().unwrap_or_default().to_owned())
        }
    };
    (rejected > 0).then(|| (rejected, preview(why, 300)))
}

fn with_path(url: &str) -> String {
    let bare = url.trim_end_matches('/');
    let after_scheme = bare.split_once("://").map_or(bare, |(_, rest)| rest);
    if after_scheme.contains('/') { url.to_owned() } else { format!("{bare}{PATH}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_path_means_the_usual_one() {
        for (given, means) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("https://otlp.example/", "https://otlp.example/v1/traces"),
            ("https://otlp.example/in/v1/traces", "https://otlp.example/in/v1/traces"),
        ] {
            assert_eq!(with_path(given), means);
        }
    }
}
