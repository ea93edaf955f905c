//! A daemon as its operator's commands see it: one call over the control socket, blocking, or several on a connection that
//! is kept.
//!
//! Owns how a daemon is found (the same configuration, `--socket`), the token, and the words for what goes wrong: each says
//! what to do. Refuses to guess: an answer that cannot be read is an error and never an empty success. Called by the command
//! line and by `top`.

pub(crate) mod event;
pub(crate) mod forest;
mod http;

use crate::config::{self, Identity, Sources};
use crate::serve::place::Places;
use agentd_core::a2a::VERSION;
use http::Answer;
use serde_json::{Value, json};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The name that stands for the conversation where a handle is asked for.
pub(crate) const ROOT: &str = "root";

/// A daemon that can be called.
#[derive(Debug)]
pub(crate) struct Daemon {
    socket: PathBuf,
    token_file: PathBuf,
    /// What it was found by, for messages.
    name: String,
}

/// A connection, and the token that goes with it.
#[derive(Debug)]
struct Link {
    stream: UnixStream,
    token: String,
}

/// Why a command did nothing, or nothing that is known of.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// The configuration does not say which daemon.
    #[error("{0}")]
    Config(String),
    /// Nobody listens.
    #[error(
        "no agentd runs here: {socket} {error}; start one with `agentd serve`, or name its socket with --socket or its \
         configuration with -c"
    )]
    NoDaemon {
        /// Where.
        socket: String,
        /// What the system said.
        error: io::Error,
    },
    /// The token cannot be read.
    #[error("the token of {name} cannot be read: {path}: {error}; --token-file names another file")]
    NoToken {
        /// Of the daemon.
        name: String,
        /// Where it should be.
        path: String,
        /// Why not.
        error: io::Error,
    },
    /// The daemon does not let this in.
    #[error("not permitted ({status}): {reason}")]
    NotPermitted {
        /// HTTP's.
        status: u16,
        /// In the daemon's words.
        reason: String,
    },
    /// The daemon turned the command down.
    #[error("{message}{}", if hint.is_empty() { String::new() } else { format!("; {hint}") })]
    Refused {
        /// Which gate said no.
        gate: String,
        /// Why.
        message: String,
        /// What to do.
        hint: String,
    },
    /// The call broke, so what became of it is unknown.
    #[error(
        "the connection to agentd broke ({0}); whether it did what was asked is unknown: look with `agentd ps --all`"
    )]
    Broken(String),
}

/// Where a daemon is, as far as the command line says.
#[derive(Debug, Default)]
pub(crate) struct Whereabouts {
    /// Configuration files.
    pub(crate) config: Vec<PathBuf>,
    /// Its socket.
    pub(crate) socket: Option<PathBuf>,
    /// The file with its token.
    pub(crate) token_file: Option<PathBuf>,
}

impl Daemon {
    /// The daemon that is meant.
    pub(crate) fn find(at: Whereabouts) -> Result<Daemon, ClientError> {
        let Whereabouts { config, socket, token_file } = at;
        if let (Some(socket), Some(token_file)) = (&socket, &token_file) {
            let name = socket.display().to_string();
            return Ok(Daemon { socket: socket.clone(), token_file: token_file.clone(), name });
        }
        let sources = Sources::of_process(config, config::Flags::default())
            .map_err(|error| ClientError::Config(format!("the current folder cannot be used: {error}")))?;
        let Identity { name, socket: listens, state } =
            config::identity(&sources).map_err(|problems| ClientError::Config(config::render(&problems)))?;
        let places = Places::of(&name, state, &|variable| std::env::var_os(variable))
            .map_err(|error| ClientError::Config(error.to_string()))?;
        let socket = socket.or(listens).unwrap_or_else(|| places.socket.clone());
        Ok(Daemon { socket, token_file: token_file.unwrap_or_else(|| places.token()), name })
    }

    /// One command of an operator: what a caller of the tool reads.
    pub(crate) fn op(&self, op: &str, args: Value) -> Result<Value, ClientError> {
        self.op_on(self.connect()?, op, args)?.0
    }

    /// The same, and a wait until the daemon has closed the connection, which it does as it ends.
    pub(crate) fn op_to_the_end(&self, op: &str, args: Value) -> Result<Value, ClientError> {
        let (told, link) = self.op_on(self.connect()?, op, args)?;
        let value = told?;
        http::until_closed(link.stream);
        Ok(value)
    }

    /// A connection for one command after the other.
    pub(crate) fn keep(&self) -> Kept<'_> {
        Kept { daemon: self, link: None }
    }

    /// What a command was told, and the connection, which a command that was turned down leaves as it was.
    fn op_on(
        &self,
        link: Link,
        op: &str,
        mut args: Value,
    ) -> Result<(Result<Value, ClientError>, Link), ClientError> {
        args["op"] = op.into();
        let parts = json!([{ "data": { "agentd": args } }]);
        let params = json!({ "message": self.message(&parts)? });
        let (result, link) = self.call(link, "SendMessage", params)?;
        let told = &result["message"]["parts"][0]["data"]["agentd"];
        let value = told["value"].clone();
        match told["error"].as_bool() {
            Some(false) => Ok((Ok(value), link)),
            Some(true) => {
                let word = |key: &str| value["error"][key].as_str().unwrap_or_default().to_owned();
                let (gate, message, hint) = (word("gate"), word("message"), word("hint"));
                Ok((Err(ClientError::Refused { gate, message, hint }), link))
            }
            None => Err(ClientError::Broken(format!("an answer that is none: {}", shown(&result)))),
        }
    }

    /// A turn of the conversation: its task, once it has ended.
    pub(crate) fn ask(&self, text: &str) -> Result<Value, ClientError> {
        let params = json!({ "message": self.message(&json!([{ "text": text }]))? });
        let (result, _) = self.call(self.connect()?, "SendMessage", params)?;
        match result.get("task") {
            Some(task) => Ok(task.clone()),
            None => Err(ClientError::Broken(format!("an answer that is none: {}", shown(&result)))),
        }
    }

    fn message(&self, parts: &Value) -> Result<Value, ClientError> {
        let word = || agentd_host::clock::seed().map_err(|error| ClientError::Broken(error.to_string()));
        let id = format!("{:016x}{:016x}", word()?, word()?);
        Ok(json!({ "messageId": id, "role": "ROLE_USER", "parts": parts }))
    }

    fn call(&self, link: Link, method: &str, params: Value) -> Result<(Value, Link), ClientError> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let mut token = link.token;
        let mut answer = self.post(link.stream, &token, &body)?;
        if answer.status == 401 {
            // A service manager has started another daemon for this very call, which made a token of its own; what it refused
            // it did not do.
            let new = self.connect()?;
            if new.token != token {
                token = new.token;
                answer = self.post(new.stream, &token, &body)?;
            }
        }
        let Answer { status, body, stream } = answer;
        if matches!(status, 401 | 403) {
            let reason = String::from_utf8_lossy(&body).trim().to_owned();
            return Err(ClientError::NotPermitted { status, reason });
        }
        let Ok(answer) = serde_json::from_slice::<Value>(&body) else {
            let said = String::from_utf8_lossy(&body);
            return Err(ClientError::Broken(format!("HTTP {status}: {}", shown_text(said.trim()))));
        };
        if let Some(error) = answer.get("error") {
            let message = error["message"].as_str().unwrap_or_default().to_owned();
            return Err(ClientError::Refused { gate: "call".into(), message, hint: String::new() });
        }
        match answer.get("result") {
            Some(result) => Ok((result.clone(), Link { stream, token })),
            None => Err(ClientError::Broken(format!("an answer that is none: {}", shown(&answer)))),
        }
    }

    /// A connection, and the token that goes with it. Where a service manager listens for a daemon that does not run yet, this
    /// starts it: its token is there once it answers anything.
    fn connect(&self) -> Result<Link, ClientError> {
        let connected = UnixStream::connect(&self.socket);
        let stream = connected.map_err(|error| self.no_daemon(error))?;
        match crate::serve::read_token(&self.token_file) {
            Ok(token) => Ok(Link { stream, token }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let card = b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: agentd\r\n\r\n";
                let started = http::exchange(stream, card);
                let Answer { stream, .. } =
                    started.map_err(|fault| self.no_daemon(io::Error::other(fault)))?;
                let token =
                    crate::serve::read_token(&self.token_file).map_err(|error| self.no_token(error))?;
                Ok(Link { stream, token })
            }
            Err(error) => Err(self.no_token(error)),
        }
    }

    fn post(&self, stream: UnixStream, token: &str, body: &str) -> Result<Answer, ClientError> {
        let head = format!(
            "POST / HTTP/1.1\r\nHost: agentd\r\nA2A-Version: {VERSION}\r\nContent-Type: application/json\r\n\
             Authorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let request = [head.as_bytes(), body.as_bytes()].concat();
        http::exchange(stream, &request).map_err(ClientError::Broken)
    }

    fn no_daemon(&self, error: io::Error) -> ClientError {
        ClientError::NoDaemon { socket: self.socket.display().to_string(), error }
    }

    fn no_token(&self, error: io::Error) -> ClientError {
        let path = self.token_file.display().to_string();
        ClientError::NoToken { name: self.name.clone(), path, error }
    }

    /// The name that its configuration gives it, or its socket.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its socket, for messages.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }
}

/// What a task gave: text as it is, data as JSON, and nothing where there is none.
pub(crate) fn answer_of(task: &Value) -> Option<String> {
    let part = &task["artifacts"][0]["parts"][0];
    part["text"].as_str().map(str::to_owned).or_else(|| part.get("data").map(Value::to_string))
}

/// How a task ended, `completed`, and why where that is known.
pub(crate) fn end_of(task: &Value) -> (String, &str) {
    let state = task["status"]["state"].as_str().unwrap_or_default();
    let why = task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default();
    (state.trim_start_matches("TASK_STATE_").to_lowercase(), why)
}

/// A connection to a daemon that is kept between commands. One that breaks is the end of that life of the daemon as far as its
/// client knows: the next command begins a new one.
#[derive(Debug)]
pub(crate) struct Kept<'a> {
    daemon: &'a Daemon,
    link: Option<Link>,
}

impl Kept<'_> {
    /// One command of an operator.
    pub(crate) fn op(&mut self, op: &str, args: Value) -> Result<Value, ClientError> {
        let link = match self.link.take() {
            Some(link) => link,
            None => self.daemon.connect()?,
        };
        let (told, link) = self.daemon.op_on(link, op, args)?;
        self.link = Some(link);
        told
    }

    /// Whether the next command goes over the connection of the one before.
    pub(crate) fn is_open(&self) -> bool {
        self.link.is_some()
    }
}

fn shown(value: &Value) -> String {
    shown_text(&value.to_string())
}

fn shown_text(text: &str) -> String {
    agentd_core::preview::preview(text, 200)
}
