//! The core's whole state between two events, as bytes, and a core from them that decides as the first one would
//! have. So that a recording can begin anywhere, and not only with the daemon (S17.6).
//!
//! Owns what is written. Refuses values (`wire::values`): a core that is restored decides the same and can start no
//! child. Permits and places are not written, they cannot be made from bytes: the restored gates give out again as
//! many as they count. The form is this build's own; no other build reads it. Called by the flight recorder and its
//! replay.

use super::Core;
use crate::admit::Uncounted;
use crate::config::Config;
use crate::id::{NodeId, RunId};
use crate::run::Run;
use crate::wire::UpDecoder;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;

/// Why there is no checkpoint, or none to be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// The machine keeps no state that could be written, or not all of it; a bug where the machine is [`Core`].
    #[error("its state cannot be written: {0}")]
    Unwritten(String),
    /// The bytes are no checkpoint of this build's.
    #[error("it is no checkpoint that this build of agentd can read: {0}")]
    Unreadable(String),
    /// The gates and the runs do not agree.
    #[error("it is damaged: {0}")]
    Damaged(#[from] Uncounted),
}

#[derive(Serialize)]
struct Written<'a> {
    core: &'a Core,
    permits: Vec<NodeId>,
    places: Vec<NodeId>,
}

#[derive(Deserialize)]
struct Read {
    core: Core,
    permits: Vec<NodeId>,
    places: Vec<NodeId>,
}

impl Core {
    /// Everything this core knows, without values.
    ///
    /// # Errors
    /// A state that cannot be written, which is a bug.
    pub fn checkpoint(&self) -> Result<Vec<u8>, CheckpointError> {
        let with = |has: fn(&Run) -> bool| {
            self.runs.iter().filter(|(_, run)| has(run)).map(|(node, _)| *node).collect()
        };
        let written = Written {
            core: self,
            permits: with(|run| run.permit.is_some()),
            places: with(|run| run.place.is_some()),
        };
        let mut bytes = Vec::new();
        ciborium::into_writer(&written, &mut bytes).map_err(|e| CheckpointError::Unwritten(e.to_string()))?;
        Ok(bytes)
    }

    /// The core that a checkpoint was made of.
    ///
    /// # Errors
    /// The bytes are another build's, or damaged.
    pub fn restore(bytes: &[u8]) -> Result<Core, CheckpointError> {
        let mut rest = bytes;
        let read: Read =
            ciborium::from_reader(&mut rest).map_err(|e| CheckpointError::Unreadable(e.to_string()))?;
        if !rest.is_empty() {
            return Err(CheckpointError::Unreadable(format!("{} bytes come after it", rest.len())));
        }
        let Read { mut core, permits, places } = read;
        let (given, places_given) = core.admission.give_again(permits.len(), places.len())?;
        for (node, permit) in permits.into_iter().zip(given) {
            core.holder(node)?.permit = Some(permit);
        }
        for (node, place) in places.into_iter().zip(places_given) {
            core.holder(node)?.place = Some(place);
        }
        Ok(core)
    }

    /// Whose children there are, with copies of the decoders of what they say, as they stand: a replay that begins here
    /// can tell their messages.
    pub fn listeners(&self) -> BTreeMap<NodeId, (RunId, UpDecoder)> {
        self.runs.iter().map(|(node, run)| (*node, (run.record.run_id, run.channel.listener()))).collect()
    }

    fn holder(&mut self, node: NodeId) -> Result<&mut Run, Uncounted> {
        let holder = self.runs.get_mut(&node).filter(|run| run.permit.is_none() && run.place.is_none());
        holder.ok_or(Uncounted::Nobody)
    }
}

/// Writes a configuration without values.
pub(super) fn config_without_values<S: Serializer>(config: &Config, to: S) -> Result<S::Ok, S::Error> {
    config.without_values().serialize(to)
}
