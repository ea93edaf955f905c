//! Where runs write their transcripts (S11.1): a conversation has one file, whichever worker serves it, and what a run
//! delegates is below its own. Owns no file: a child opens what its payload names.

use super::Core;
use crate::id::{NodeId, RunId};
use crate::transcript::{Location, place};
use crate::wire::message::{Begins, Transcript};

/// Name of an agent that is neither of a template nor a surface.
const GENERAL: &str = "general-purpose";

impl Core {
    /// The place of a new run below the one that asks, or of a session of its own.
    pub(super) fn new_place(&self, run_id: RunId, above: NodeId) -> Option<Location> {
        self.config.sessions.as_ref()?;
        let above = self.runs.get(&above).and_then(|run| run.transcript.as_ref());
        Some(match above {
            Some(above) => Location { path: place::child(&above.path, run_id), session: above.session },
            None => Location { path: place::session(self.now.wall, run_id), session: run_id },
        })
    }

    /// The conversation's, for a worker; and whether another worker has written there.
    pub(super) fn place_of_conversation(&mut self, worker: RunId) -> (Option<Location>, bool) {
        if self.config.sessions.is_none() {
            return (None, false);
        }
        if let Some(place) = &self.conversation.session {
            return (Some(place.clone()), true);
        }
        let place = Location { path: place::session(self.now.wall, worker), session: worker };
        self.conversation.session = Some(place.clone());
        (Some(place), false)
    }

    /// What a child is told of its transcript.
    pub(super) fn transcript(
        &self,
        place: Option<&Location>,
        by: Option<(RunId, Option<&str>)>,
        turn: u64,
        begins: Begins,
    ) -> Option<Transcript> {
        let (folder, place) = (self.config.sessions.as_ref()?, place?);
        Some(Transcript {
            path: format!("{folder}/{}", place.path),
            agent_type: GENERAL.to_owned(),
            tool_call_id: by.and_then(|(_, call)| call).map(str::to_owned),
            parent: by.map(|(parent, _)| parent),
            session: place.session,
            turn,
            begins,
        })
    }
}
