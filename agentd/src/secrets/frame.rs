//! Puts the values into a spawn frame, and knows where in one a reference counts: the model's tokens and headers,
//! and the servers' variables and headers. Anywhere else the same text is a text: a conversation that spells a reference adds
//! nothing (S3.3).

use super::{SecretError, Secrets, Use};
use agentd_core::wire::message::{Model, ModelSwap, Remote, Server, Spawn, Transport};

impl Secrets {
    /// The frame with every secret in it.
    ///
    /// # Errors
    /// A secret that cannot be had any more: a sentence for the person who must act, without any value.
    pub fn put_in(&self, spawn: &Spawn) -> Result<Spawn, String> {
        let mut spawn = spawn.clone();
        spawn.models_mut().try_for_each(|model| self.put_in_model(model))?;
        for server in &mut spawn.servers {
            self.put_in_server(server)?;
        }
        Ok(spawn)
    }

    /// The model of a reload with every secret in it.
    ///
    /// # Errors
    /// As [`Secrets::put_in`].
    pub fn put_in_swap(&self, swap: &ModelSwap) -> Result<ModelSwap, String> {
        let mut swap = swap.clone();
        swap.models_mut().try_for_each(|model| self.put_in_model(model))?;
        Ok(swap)
    }

    fn put_in_model(&self, model: &mut Model) -> Result<(), String> {
        let Model { name, dialect } = model;
        let Some(remote) = dialect.remote_mut() else { return Ok(()) };
        self.put_in_remote(remote).map_err(|(part, error)| format!("the {part} of the model {name}: {error}"))
    }

    /// A model connection with every secret in it; else which part lacks one.
    pub(crate) fn put_in_remote(&self, remote: &mut Remote) -> Result<(), (String, SecretError)> {
        for token in remote.endpoints.iter_mut().filter_map(|endpoint| endpoint.token.as_mut()) {
            *token = self.fill(token, Use::Header).map_err(|error| ("key".to_owned(), error))?;
        }
        for (name, value) in &mut remote.headers {
            *value = self.fill(value, Use::Header).map_err(|error| (format!("header {name}"), error))?;
        }
        Ok(())
    }

    /// A server with every secret in it.
    pub(crate) fn put_in_server(&self, server: &mut Server) -> Result<(), String> {
        match &mut server.transport {
            Transport::Files(_) => {}
            Transport::Http(http) => {
                for (name, value) in &mut http.headers {
                    *value = self.fill(value, Use::Header).map_err(|error| {
                        format!("the header {name} of the server {}: {error}", server.name)
                    })?;
                }
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::bytes::Bytes;
    use agentd_core::wire::message::{
        ContextMessage, ContextRole, Dialect, Endpoint, Files, HttpServer, Mode, Role, RunLimits, Stdio,
        Trace, VERSION,
    };

    const REFERENCE: &str = "a {{secret:K}}";

    fn server(name: &str, transport: Transport) -> Server {
        Server {
            name: name.into(),
            ns: None,
            transport,
            allow: None,
            exclude: Vec::new(),
            timeout_ms: 1,
            start_timeout_ms: 1,
            required: true,
        }
    }

    /// A frame with a reference wherever there is text.
    fn spawn(dialect: Dialect) -> Spawn {
        let text = || REFERENCE.to_owned();
        let stdio = Stdio {
            command: text(),
            args: vec![text()],
            env: [("A".into(), text())].into(),
            cwd: Some(text()),
        };
        let files = Files { root: text(), write: false };
        let http = HttpServer { url: text(), headers: [("x".to_owned(), text())].into(), ca: Some(text()) };
        Spawn {
            v: VERSION,
            run_id: "01234567-89ab-7000-8000-000000000000".parse().expect("a run id"),
            handle: None,
            depth: 0,
            attempt: 1,
            role: Role::Worker,
            mode: Mode::Sync,
            trace: Trace { trace_id: "0".repeat(32), span_id: "0".repeat(16), parent_span_id: None },
            system: text(),
            instruction: text(),
            context: vec![ContextMessage { role: ContextRole::User, content: text() }],
            output_schema: None,
            output_contract: Some(text()),
            servers: vec![
                server("one", Transport::Stdio(stdio)),
                server("two", Transport::Files(files)),
                server("three", Transport::Http(http)),
            ],
            tools: None,
            names: Vec::new(),
            own_tools: Vec::new(),
            model: Model { name: "big".into(), dialect },
            limits: RunLimits { steps: 1, tokens: 1, deadline_ms: 1, repeats: 0, tool_result_bytes: 1 },
            budget: None,
            log_level: "info".into(),
            transcript: None,
        }
    }

    fn remote() -> Remote {
        let endpoint =
            |token: Option<&str>| Endpoint { url: REFERENCE.into(), token: token.map(str::to_owned) };
        Remote {
            model: REFERENCE.into(),
            endpoints: vec![endpoint(Some(REFERENCE)), endpoint(None)],
            headers: [("x".to_owned(), REFERENCE.to_owned())].into(),
            timeout_ms: 1,
            max_output: None,
        }
    }

    #[test]
    fn values_are_put_in_where_they_count_and_nowhere_else() {
        let secrets = Secrets::new(&[("K".into(), "v".into())]);
        let dialects = [Dialect::Openai, Dialect::OpenaiResponses, Dialect::Anthropic];
        for dialect in dialects.map(|dialect| dialect(remote())) {
            let before = spawn(dialect);
            let mut after = secrets.put_in(&before).expect("filled");
            let remote = after.model.dialect.remote_mut().expect("a provider's");
            for value in [remote.endpoints[0].token.as_mut(), remote.headers.get_mut("x")] {
                assert_eq!(std::mem::replace(value.expect("it is there"), REFERENCE.into()), "a v");
            }
            let Transport::Stdio(stdio) = &mut after.servers[0].transport else { panic!() };
            assert_eq!(stdio.env.insert("A".into(), REFERENCE.into()).as_deref(), Some("a v"));
            let Transport::Http(http) = &mut after.servers[2].transport else { panic!() };
            assert_eq!(http.headers.insert("x".into(), REFERENCE.into()).as_deref(), Some("a v"));
            assert_eq!(after, before, "nothing else has changed");
        }
    }

    #[test]
    fn what_is_gone_is_named_without_what_is_there() {
        let gone = Secrets::new(&[("OTHER".into(), "canary".into())]);
        let told = gone.put_in(&spawn(Dialect::Openai(remote()))).expect_err("gone");
        assert_eq!(told, "the key of the model big: the secret K is not there: looked for the variable K");
        let mut only_header = remote();
        only_header.endpoints.clear();
        let told = gone.put_in(&spawn(Dialect::Anthropic(only_header))).expect_err("gone");
        assert!(told.starts_with("the header x of the model big: "), "{told}");
        let told = gone.put_in(&spawn(Dialect::Mock(Bytes::default()))).expect_err("gone");
        assert!(told.starts_with("the variable A of the server one: "), "{told}");
    }
}
