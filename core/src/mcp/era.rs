//! The two eras of the protocol: which one a server is of, and what the client says of itself in each.
//!
//! Owns the rule of detection: a `DiscoverResult`, or an error that only the stateless era has, is that era; anything
//! else is the `initialize` era, and no single code decides. Called by the client's start.

use super::ClientInfo;
use super::handshake::{Hello, VERSIONS, about};
use super::jsonrpc::{First, RpcError, object};
use super::preview::preview;
use crate::bytes::{Bytes, Json};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The stateless version.
pub const STATELESS: &str = "2026-07-28";

/// Versions of a server that are looked at.
const LISTED: usize = 64;

/// An era of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Era {
    /// 2025-11-25 and earlier: a connection begins with `initialize`.
    Initialize,
    /// 2026-07-28: every request stands for itself, and `server/discover` tells what there is.
    Stateless,
}

/// What the first answer of a server means.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It is of the stateless era, and this is what it says of itself.
    Stateless(Box<Hello>),
    /// It is of the stateless era and wants to be asked again, with a version that it names.
    Again,
    /// Begin with `initialize`.
    Initialize,
    /// It is of no use: a sentence.
    Useless(String),
}

/// Judges the result of `server/discover`. One that is no `DiscoverResult` comes from a server that answers anything.
pub(super) fn discovered(result: &RawValue) -> Verdict {
    let Ok(said) = object::<DiscoverResult<'_>>(result.get()) else { return Verdict::Initialize };
    let versions: Vec<Cow<'_, str>> =
        said.supported_versions.items.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect();
    if !versions.iter().any(|version| version == STATELESS) {
        return other_version(&versions);
    }
    let (name, version) = about(said.meta.and_then(|meta| meta.server_info).or(said.server_info));
    Verdict::Stateless(Box::new(Hello {
        name,
        version,
        protocol: STATELESS,
        era: Era::Stateless,
        capabilities: said.capabilities.map_or_else(empty, |raw| Json(Bytes::from(raw.get().as_bytes()))),
    }))
}

/// Judges an error in place of it.
pub(super) fn refused(error: &RpcError) -> Verdict {
    match error.code.as_str() {
        "-32022" => {
            let supported = error.data.as_deref().and_then(|data| serde_json::from_str::<Value>(data).ok());
            let supported =
                supported.as_ref().and_then(|data| data.get("supported")).and_then(Value::as_array);
            let versions: Vec<Cow<'_, str>> = supported
                .into_iter()
                .flatten()
                .take(LISTED)
                .filter_map(Value::as_str)
                .map(Cow::Borrowed)
                .collect();
            if versions.iter().any(|version| version == STATELESS) {
                return Verdict::Again;
            }
            other_version(&versions)
        }
        // Of that era, but it will not have this client, or something on the way changes its headers.
        "-32020" | "-32021" => Verdict::Useless(format!("the server refused `server/discover` with {error}")),
        _ => Verdict::Initialize,
    }
}

/// Whether an error is one that only the stateless era has.
pub(super) fn is_stateless_error(error: &RpcError) -> bool {
    matches!(error.code.as_str(), "-32020" | "-32021" | "-32022")
}

/// A server that knows `server/discover` and not the version that goes with it.
fn other_version(versions: &[Cow<'_, str>]) -> Verdict {
    if versions.iter().any(|version| VERSIONS.contains(&version.as_ref())) {
        return Verdict::Initialize;
    }
    let seen: Vec<&str> = versions.iter().take(8).map(AsRef::as_ref).collect();
    Verdict::Useless(format!(
        "the server speaks protocol versions {:?}; agentd speaks {}, {STATELESS}",
        preview(&seen.join(", ")),
        VERSIONS.join(", ")
    ))
}

/// What the client can do for a server, in either era: pass questions on to a person.
pub(super) fn capabilities() -> Value {
    json!({"elicitation": {"form": {}}})
}

/// Adds to a request's parameters what the stateless era wants in each of them.
pub(super) fn stamp(params: &mut Map<String, Value>, info: &ClientInfo) {
    let meta = params.entry("_meta").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut() {
        meta.insert("io.modelcontextprotocol/protocolVersion".into(), STATELESS.into());
        meta.insert("io.modelcontextprotocol/clientCapabilities".into(), capabilities());
        let info = json!({"name": info.name, "version": info.version});
        meta.insert("io.modelcontextprotocol/clientInfo".into(), info);
    }
}

fn empty() -> Json {
    Json::of(&json!({}))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DiscoverResult<'a> {
    #[serde(borrow)]
    supported_versions: First<'a, LISTED>,
    #[serde(default, borrow)]
    capabilities: Option<&'a RawValue>,
    /// Where drafts of the version had it.
    #[serde(default, borrow)]
    server_info: Option<&'a RawValue>,
    #[serde(default, borrow, rename = "_meta")]
    meta: Option<Meta<'a>>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(default, borrow, rename = "io.modelcontextprotocol/serverInfo")]
    server_info: Option<&'a RawValue>,
}
