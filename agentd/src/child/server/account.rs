//! What is said of one server: who it is, what its stderr said last, and why it is of no more use.
//!
//! Owns the wording, and that the first reason is the one that counts. Refuses to name arguments, which can hold
//! secrets. Used by [`super::pump`].

use super::tail::Tail;
use agentd_core::address::host;
use agentd_core::wire::message::{Server, Transport};

/// The account of one server.
pub(super) struct Account {
    who: String,
    tail: Tail,
    obituary: Option<String>,
}

impl Account {
    /// Of a server that has not said anything.
    pub(super) fn new(server: &Server) -> Account {
        let program = match &server.transport {
            Transport::Stdio(stdio) => stdio.command.as_str(),
            Transport::Files(_) => "built-in files",
            // An address may have a key in its path: the host says enough.
            Transport::Http(http) => host(&http.url),
        };
        let who = format!("server {} ({program})", server.name);
        Account { who, tail: Tail::default(), obituary: None }
    }

    /// Takes what came on stderr.
    pub(super) fn heard(&mut self, bytes: &[u8]) {
        self.tail.push(bytes);
    }

    /// `what`, with its name before and its last words after it.
    pub(super) fn sentence(&self, what: &str) -> String {
        format!("{}: {what}{}", self.who, self.tail.words())
    }

    /// The same of a server that never had the chance to say anything.
    pub(super) fn short_sentence(&self, what: &str) -> String {
        format!("{}: {what}", self.who)
    }

    /// Closes the account with this sentence; `false` when it was closed before.
    pub(super) fn close(&mut self, sentence: String) -> bool {
        let first = self.obituary.is_none();
        self.obituary.get_or_insert(sentence);
        first
    }

    /// The sentence it was closed with.
    pub(super) fn obituary(&self) -> Option<&str> {
        self.obituary.as_deref()
    }
}
