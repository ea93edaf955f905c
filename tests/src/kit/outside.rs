//! What surrounds a driver that is driven alone, without the program: no store, no log, no journal.

use agentd_core::event::Event;
use agentd_core::note::Note;
use agentd_core::record::ResultObject;
use agentd_core::store::{Class, Write};
use agentd_core::time::Now;
use agentd_core::wire::message::{FailKind, Spawn};
use agentd_core::wire::{Down, Encoder};
use agentd_host::outside::{Outside, StoreAnswer};

/// Saves at once and keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nothing;

impl Outside for Nothing {
    fn observe(&mut self, _now: Now, _event: &Event) {}

    fn note(&mut self, _now: Now, _note: Note) {}

    fn persist(&mut self, _seq: u64, _class: Class, _writes: Vec<Write>) -> StoreAnswer {
        StoreAnswer::Stored
    }

    fn deliver(&mut self, _prompt: u64, _result: &ResultObject, _fault: Option<FailKind>) {}

    fn encode_spawn(&mut self, spawn: &Spawn) -> Result<Vec<u8>, String> {
        Encoder::new().encode_down(&Down::Spawn(Box::new(spawn.clone()))).map_err(|error| error.to_string())
    }
}
