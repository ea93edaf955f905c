//! The agent card: what a client learns before it asks.

use serde_json::{Value, json};

/// Where it is found.
pub const CARD_PATH: &str = "/.well-known/agent-card.json";

/// What the card says.
#[derive(Debug, Clone, Copy)]
pub struct Card<'a> {
    /// The agent's name.
    pub agent: &'a str,
    /// What it is for.
    pub description: &'a str,
    /// Of this program.
    pub version: &'a str,
    /// Where it is asked: the address that the client itself used.
    pub url: &'a str,
}

impl Card<'_> {
    /// The card.
    pub fn json(&self) -> Value {
        json!({
            "name": self.agent,
            "description": self.description,
            "version": self.version,
            "supportedInterfaces": [{
                "url": self.url, "protocolBinding": "JSONRPC", "protocolVersion": super::VERSION,
            }],
            "capabilities": { "streaming": true, "pushNotifications": false },
            "securitySchemes": { "token": { "httpAuthSecurityScheme": { "scheme": "Bearer" } } },
            "securityRequirements": [{ "schemes": { "token": { "list": [] } } }],
            "defaultInputModes": ["text/plain", "application/json"],
            "defaultOutputModes": ["text/plain", "application/json"],
            "skills": [{
                "id": "conversation",
                "name": "Conversation",
                "description": "One message is one turn of the agent's conversation; a task is that turn.",
                "tags": ["agentd"],
            }],
        })
    }
}
