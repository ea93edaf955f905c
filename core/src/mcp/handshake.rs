//! Who is on each side, and which versions of the `initialize` era are spoken.

use super::era::{self, Era};
use super::jsonrpc::{RpcError, object};
use super::preview::{one_line, preview};
use crate::bytes::{Bytes, Json};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Protocol versions of the `initialize` era that are accepted, oldest first; the last is asked for.
pub const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The one version in which a message may be a batch of messages.
pub(super) const BATCHING: &str = "2025-03-26";

/// What the client says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClientInfo {
    /// Program name.
    pub name: String,
    /// Program version.
    pub version: String,
}

/// What the server says of itself, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hello {
    /// Own name, `unnamed` when it gives none.
    pub(super) name: String,
    /// Own version, may be empty.
    pub(super) version: String,
    /// One of [`VERSIONS`], or [`era::STATELESS`].
    pub(super) protocol: &'static str,
    /// The era of that version.
    pub(super) era: Era,
    /// As it was written, within serde_json's bounds.
    pub(super) capabilities: Json,
}

impl Hello {
    /// Whether it says that it can do this.
    pub(super) fn can(&self, what: &str) -> bool {
        self.capability(what).is_some_and(|value| !value.is_null())
    }

    /// Whether it says that it tells when this list changes.
    pub(super) fn tells(&self, list: &str) -> bool {
        self.capability(list).is_some_and(|value| value["listChanged"] == true)
    }

    fn capability(&self, what: &str) -> Option<Value> {
        match self.capabilities.parse() {
            Ok(Value::Object(mut all)) => all.remove(what),
            Ok(_) | Err(_) => None,
        }
    }
}

/// Parameters of `initialize`.
pub(super) fn params(info: &ClientInfo) -> Value {
    serde_json::json!({
        "protocolVersion": VERSIONS[VERSIONS.len() - 1],
        "capabilities": era::capabilities(),
        "clientInfo": {"name": info.name, "version": info.version},
    })
}

/// Judges the result of `initialize`; the error is a sentence for the person who configured the server.
pub(super) fn hello(result: &RawValue) -> Result<Hello, String> {
    let said: InitializeResult<'_> = object(result.get()).map_err(|e| {
        format!("the server's answer to `initialize` is not usable ({e}): {}", preview(result.get()))
    })?;
    let Some(protocol) = VERSIONS.into_iter().find(|v| *v == said.protocol_version) else {
        return Err(format!(
            "the server speaks protocol version {:?}; agentd speaks {}, {}",
            preview(&said.protocol_version),
            VERSIONS.join(", "),
            era::STATELESS
        ));
    };
    let (name, version) = about(said.server_info);
    let capabilities = said.capabilities.map_or("{}", RawValue::get);
    Ok(Hello {
        name,
        version,
        protocol,
        era: Era::Initialize,
        capabilities: Json(Bytes::from(capabilities.as_bytes())),
    })
}

/// A server's own name and version, in one line each.
pub(super) fn about(info: Option<&RawValue>) -> (String, String) {
    let server = info.and_then(|raw| object::<Implementation<'_>>(raw.get()).ok());
    let own = |text: Option<Cow<'_, str>>| text.map(|t| one_line(&t, 128)).filter(|t| !t.is_empty());
    let (name, version) = server.map_or((None, None), |s| (own(s.name), own(s.version)));
    (name.unwrap_or_else(|| "unnamed".into()), version.unwrap_or_default())
}

/// The sentence for a server that answers `initialize` with an error.
pub(super) fn refused(error: &RpcError) -> String {
    format!(
        "the server refused `initialize` with {error}; agentd speaks protocol versions {}, {}",
        VERSIONS.join(", "),
        era::STATELESS
    )
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult<'a> {
    #[serde(borrow)]
    protocol_version: Cow<'a, str>,
    #[serde(default, borrow)]
    capabilities: Option<&'a RawValue>,
    #[serde(default, borrow)]
    server_info: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Implementation<'a> {
    #[serde(default, borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    version: Option<Cow<'a, str>>,
}
