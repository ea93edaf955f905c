//! What is left out wherever a configuration or a spawn payload is written down: the values of servers' variables, of
//! models' keys and of headers. They are references as a rule, but an embedder may have put values in their place.
//!
//! A filler of the same length stands in for each: a frame is as long with it as without, so every bound that counts
//! bytes gives the same verdict in a replay. Called by the core's checkpoints and by the flight recorder.

use super::message::{Model, ModelSwap, Server, Spawn, Transport};

/// Stands in for one byte of a value.
const FILLER: &str = "*";

impl Spawn {
    /// Every model that it may call.
    pub fn models_mut(&mut self) -> impl Iterator<Item = &mut Model> {
        let degraded = self.budget.as_mut().and_then(|budget| budget.degraded.as_mut());
        [Some(&mut self.model), degraded].into_iter().flatten()
    }

    /// Leaves the values out.
    pub fn leave_out_values(&mut self) {
        self.servers.iter_mut().for_each(Server::leave_out_values);
        self.models_mut().for_each(Model::leave_out_values);
    }
}

impl ModelSwap {
    /// Every model that it gives.
    pub fn models_mut(&mut self) -> impl Iterator<Item = &mut Model> {
        let degraded = self.budget.as_mut().and_then(|budget| budget.degraded.as_mut());
        [self.model.as_mut(), degraded].into_iter().flatten()
    }

    /// Leaves the values out.
    pub fn leave_out_values(&mut self) {
        self.models_mut().for_each(Model::leave_out_values);
    }
}

impl Server {
    /// The same without values.
    #[must_use]
    pub fn without_values(&self) -> Server {
        let mut server = self.clone();
        server.leave_out_values();
        server
    }

    /// Leaves the values of its variables and headers out.
    pub fn leave_out_values(&mut self) {
        match &mut self.transport {
            Transport::Stdio(stdio) => stdio.env.values_mut().for_each(leave_out),
            Transport::Http(http) => http.headers.values_mut().for_each(leave_out),
            Transport::Files(_) => {}
        }
    }
}

impl Model {
    /// The same without values.
    #[must_use]
    pub fn without_values(&self) -> Model {
        let mut model = self.clone();
        model.leave_out_values();
        model
    }

    /// Leaves its keys and the values of its headers out.
    pub fn leave_out_values(&mut self) {
        if let Some(remote) = self.dialect.remote_mut() {
            let tokens = remote.endpoints.iter_mut().filter_map(|endpoint| endpoint.token.as_mut());
            tokens.chain(remote.headers.values_mut()).for_each(leave_out);
        }
    }
}

fn leave_out(value: &mut String) {
    *value = FILLER.repeat(value.len());
}
