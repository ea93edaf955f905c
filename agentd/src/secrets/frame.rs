//! Puts the values into a spawn frame, and knows where in one a reference counts: the model's tokens and headers,
//! and the servers' variables. Anywhere else the same text is a text: a conversation that spells a reference adds
//! nothing (S3.3).

use super::{SecretError, Secrets, Use};
use agentd_core::wire::message::{Dialect, Remote, Server, Spawn, Transport};

impl Secrets {
    /// The frame with every secret in it.
    ///
    /// # Errors
    /// A secret that cannot be had any more: a sentence for the person who must act, without any value.
    pub fn put_in(&self, spawn: &Spawn) -> Result<Spawn, String> {
        let mut spawn = spawn.clone();
        match &mut spawn.model.dialect {
            Dialect::Mock(_) => {}
            Dialect::Openai(remote) | Dialect::Anthropic(remote) => {
                let model = &spawn.model.name;
                self.put_in_remote(remote)
                    .map_err(|(part, error)| format!("the {part} of the model {model}: {error}"))?;
            }
        }
        for server in &mut spawn.servers {
            self.put_in_server(server)?;
        }
        Ok(spawn)
    }

    fn put_in_remote(&self, remote: &mut Remote) -> Result<(), (String, SecretError)> {
        for token in remote.endpoints.iter_mut().filter_map(|endpoint| endpoint.token.as_mut()) {
            *token = self.fill(token, Use::Header).map_err(|error| ("key".to_owned(), error))?;
        }
        for (name, value) in &mut remote.headers {
            *value = self.fill(value, Use::Header).map_err(|error| (format!("header {name}"), error))?;
        }
        Ok(())
    }

    fn put_in_server(&self, server: &mut Server) -> Result<(), String> {
        match &mut server.transport {
            Transport::Files(_) => {}
            Transport::Stdio(stdio) => {
                for (name, value) in &mut stdio.env {
                    *value = self.fill(value, Use::Variable).map_err(|error| {
                        format!("the variable {name} of the server {}: {error}", server.name)
                    })?;
                }
            }
        }
        Ok(())
    }
}
