//! A session over HTTP that the server has forgotten, in the `initialize` era: a new one, and in it once more the calls
//! that were refused for the old one. They were not looked at, so making them again is safe whatever they do.

use super::{Client, Wire};
use crate::mcp::Outcome;
use crate::mcp::Output;
use crate::mcp::handshake;
use crate::mcp::http::What;
use crate::mcp::jsonrpc::Answer;
use crate::note::Level;
use crate::time::Instant;
use serde_json::json;

/// Where the new session stands.
#[derive(Debug, Default)]
pub(super) enum Renewal {
    /// None is needed.
    #[default]
    Unneeded,
    /// The old one is gone and a new one could not be had; the next call tries again.
    Failed,
    /// `initialize` is out, and is waited for until then.
    Asked { id: u64, by: Instant },
    /// The end of its handshake is being told.
    Settling { by: Instant },
}

impl Renewal {
    /// When it is given up.
    pub(super) fn due(&self) -> Option<Instant> {
        match self {
            Renewal::Asked { by, .. } | Renewal::Settling { by } => Some(*by),
            Renewal::Unneeded | Renewal::Failed => None,
        }
    }
}

impl Client {
    /// Whether a call has to wait for a new session. One is asked for where that has not been done.
    pub(super) fn must_renew(&mut self) -> bool {
        match self.renewal {
            Renewal::Unneeded => return false,
            Renewal::Failed => self.renew(),
            Renewal::Asked { .. } | Renewal::Settling { .. } => {}
        }
        true
    }

    /// A call, or the rest of its answer, was refused because the session it was made in is gone. That may be one before
    /// the one there is now.
    pub(super) fn expired(&mut self, session: u64) {
        let current = matches!(&self.wire, Wire::Http(http) if http.in_session() == Some(session));
        if current && matches!(self.renewal, Renewal::Unneeded | Renewal::Failed) {
            let text = "the server has forgotten the session; a new one is begun";
            self.log(Level::Info, "mcp.session.expired", text.into());
            self.renew();
        }
    }

    fn renew(&mut self) {
        let by = self.now + self.start_timeout;
        if let Wire::Http(http) = &mut self.wire {
            http.leave_session(Some(self.last_id + 1));
            http.protocol = None;
            let listening = http.drop_what(&What::Listen);
            self.out.extend(listening.map(|exchange| Output::Shut { exchange }));
        }
        // Set first: what is sent from here on belongs to the new session.
        self.renewal = Renewal::Asked { id: 0, by };
        let id = self.request("initialize", handshake::params(&self.info));
        self.renewal = Renewal::Asked { id, by };
    }

    /// Whether the new session waits for an answer with this id.
    pub(super) fn renews_with(&self, id: u64) -> bool {
        matches!(self.renewal, Renewal::Asked { id: ours, .. } if ours == id)
    }

    /// Whether this id is the new session's. The answer is used up then.
    pub(super) fn renewed(&mut self, id: u64, answer: &Answer<'_>) -> bool {
        let Renewal::Asked { id: ours, by } = self.renewal else { return false };
        if ours != id {
            return false;
        }
        self.shut(id);
        let hello = match answer {
            Answer::Result(raw) => handshake::hello(raw),
            Answer::Error(error) => Err(handshake::refused(error)),
        };
        match hello {
            Ok(hello) => {
                if let Wire::Http(http) = &mut self.wire {
                    http.protocol = Some(hello.protocol);
                }
                self.renewal = Renewal::Settling { by };
                self.notify("notifications/initialized", json!({}));
            }
            Err(why) => self.renewal_lost(&why),
        }
        true
    }

    /// The server took the word that the handshake is over, or some other one: the calls that waited are made.
    pub(super) fn resettled(&mut self) {
        if !matches!(self.renewal, Renewal::Settling { .. }) {
            return;
        }
        self.renewal = Renewal::Unneeded;
        for id in self.calls.parked() {
            if let Some(mut call) = self.calls.take(id) {
                let inputs = call.inputs.take();
                self.make(call, inputs);
            }
        }
        self.listen();
        self.changed();
    }

    /// There is no new session.
    pub(super) fn renewal_lost(&mut self, why: &str) {
        self.renewal = Renewal::Failed;
        for id in self.calls.parked() {
            if let Some(call) = self.calls.take(id) {
                let text = format!(
                    "the server has forgotten the session and gives no new one: {why}; `{}` was not called",
                    call.ask.label()
                );
                self.answer(call.key, Outcome::failed(text));
            }
        }
    }

    pub(super) fn tick_renewal(&mut self) {
        if self.renewal.due().is_some_and(|by| by <= self.now) {
            if let Renewal::Asked { id, .. } = self.renewal {
                self.shut(id);
            }
            self.renewal_lost(&format!("it did not answer within {:?}", self.start_timeout));
        }
    }
}
