//! Who is on each side and which versions of the `initialize` era are spoken.

use super::jsonrpc::{RpcError, object};
use super::preview::{one_line, preview};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Protocol versions that are accepted, oldest first; the last is asked for.
pub const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The one version in which a line may be a batch of messages.
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
    /// One of [`VERSIONS`].
    pub(super) protocol: &'static str,
    /// Whether it has tools to list.
    pub(super) tools: bool,
}

/// Parameters of `initialize`. No capability is declared: sampling, roots and elicitation are not offered.
pub(super) fn params(info: &ClientInfo) -> serde_json::Value {
    serde_json::json!({
        "protocolVersion": VERSIONS[VERSIONS.len() - 1],
        "capabilities": {},
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
            "the server speaks protocol version {:?}; agentd speaks {}",
            preview(&said.protocol_version),
            VERSIONS.join(", ")
        ));
    };
    let server = said.server_info.and_then(|raw| object::<Implementation<'_>>(raw.get()).ok());
    let own = |text: Option<Cow<'_, str>>| text.map(|t| one_line(&t, 128)).filter(|t| !t.is_empty());
    let (name, version) = server.map_or((None, None), |s| (own(s.name), own(s.version)));
    Ok(Hello {
        name: name.unwrap_or_else(|| "unnamed".into()),
        version: version.unwrap_or_default(),
        protocol,
        tools: said.capabilities.is_some_and(|c| c.tools.is_some()),
    })
}

/// The sentence for a server that answers `initialize` with an error.
pub(super) fn refused(error: &RpcError) -> String {
    format!(
        "the server refused `initialize` with {error}; agentd speaks protocol versions {}",
        VERSIONS.join(", ")
    )
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult<'a> {
    #[serde(borrow)]
    protocol_version: Cow<'a, str>,
    #[serde(default, borrow)]
    capabilities: Option<Capabilities<'a>>,
    #[serde(default, borrow)]
    server_info: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Capabilities<'a> {
    #[serde(default, borrow)]
    tools: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Implementation<'a> {
    #[serde(default, borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    version: Option<Cow<'a, str>>,
}
