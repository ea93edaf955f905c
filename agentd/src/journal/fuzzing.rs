//! What must hold for any file that is taken for a journal: the body of the fuzz target `journal`.

use super::format::MAGIC;
use super::{ReadError, Reader};
use crate::config::load_text;
use agentd_core::action::Actions;
use agentd_core::event::Event;
use agentd_core::id::NodeId;
use agentd_core::machine::Machine;
use agentd_core::supervisor::Core;
use agentd_core::time::Now;
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::Path;

/// Between records that have no lengths yet.
const BETWEEN: &[u8] = b"\xff\xfe";

/// Reads a journal's file, whole and in small pieces. By the two lowest bits of the first byte the rest of `data` is the
/// file; what follows its first line; the same as records with `ff fe` between them, each to be given its length; or
/// changes, three bytes each, to the state of a core that has lived a little. Gives what was in it and how the reading
/// ended.
///
/// # Panics
///
/// When the pieces change what is read, something comes after an error, or a state that is accepted is another one
/// after it was written again.
pub fn journal(data: &[u8]) -> BTreeSet<&'static str> {
    let Some((first, rest)) = data.split_first() else { return BTreeSet::new() };
    let file = match first % 4 {
        0 => rest.to_vec(),
        1 => [MAGIC, rest].concat(),
        2 => [MAGIC, &framed(rest)].concat(),
        _ => return [restored(&changed(rest))].into(),
    };
    let mut reached = BTreeSet::new();
    let whole = read(file.as_slice(), &mut reached);
    let size = usize::from(first / 4) % 7 + 1;
    assert_eq!(read(Pieces { rest: &file, size }, &mut BTreeSet::new()), whole, "read in pieces of {size}");
    reached
}

/// The state of a core whose conversation has a worker, with changes. It is made anew, for its form is each build's own.
fn changed(changes: &[u8]) -> Vec<u8> {
    let text = "intelligence: {dialect: openai, endpoints: [\"http://localhost:1\"], model: m}";
    let Ok(loaded) = load_text("a.yaml", text, Path::new("/")) else { panic!("a configuration that loads") };
    let mut core = Core::new(loaded.config, Now::default());
    let node = NodeId(1);
    for event in [
        Event::Seeded { seed: 7 },
        Event::PromptSubmitted { text: "go".into() },
        Event::Stored { seq: 1 },
        Event::ChildSpawned { node, pid: 1_000 },
    ] {
        core.handle(Now::default(), event, &mut Actions::new());
    }
    let mut state = core.checkpoint().unwrap_or_default();
    for change in changes.chunks_exact(3) {
        let [high, low, to] = change else { continue };
        let at = usize::from(u16::from_be_bytes([*high, *low])) % state.len().max(1);
        state.splice(at..at + 1, if *to == 0 { None } else { Some(*to) });
    }
    state
}

/// All that a reader says, as text.
fn read(input: impl Read, reached: &mut BTreeSet<&'static str>) -> String {
    let reader = match Reader::new(input) {
        Ok(reader) => reader,
        Err(why) => {
            reached.insert(name(&why));
            return why.to_string();
        }
    };
    let mut said = format!("{:?}", reader.header());
    reached.insert("a header");
    if let Some(state) = reader.state() {
        reached.insert(restored(state));
    }
    let mut ended = false;
    for next in reader {
        assert!(!ended, "something after an error");
        said.push_str(&format!("{next:?}"));
        reached.insert(match &next {
            Ok(decision) if decision.actions.is_none() => "an event without its answer",
            Ok(decision) if decision.actions().is_none() => "an answer that cannot be read",
            Ok(_) => "an event and its answer",
            Err(why) => {
                ended = true;
                name(why)
            }
        });
    }
    said
}

fn restored(state: &[u8]) -> &'static str {
    let Ok(core) = Core::restore(state) else { return "a state that is none" };
    let written = core.checkpoint().unwrap_or_default();
    let again = Core::restore(&written).and_then(|core| core.checkpoint());
    assert_eq!(again, Ok(written), "a state that is written again");
    "a state"
}

fn name(why: &ReadError) -> &'static str {
    match why {
        ReadError::System(error) => panic!("memory can be read: {error}"),
        ReadError::Irregular => panic!("memory is no pipe"),
        ReadError::Foreign => "no journal",
        ReadError::Empty => "empty",
        ReadError::Version(_) => "another version",
        ReadError::Cut { .. } => "cut",
        ReadError::Damaged { .. } => "damaged",
    }
}

fn framed(records: &[u8]) -> Vec<u8> {
    let (mut file, mut rest) = (Vec::new(), records);
    while !rest.is_empty() {
        let at = rest.windows(BETWEEN.len()).position(|two| two == BETWEEN).unwrap_or(rest.len());
        let (record, after) = rest.split_at(at);
        file.extend(u32::try_from(record.len()).unwrap_or(u32::MAX).to_be_bytes());
        file.extend_from_slice(record);
        rest = after.get(BETWEEN.len()..).unwrap_or_default();
    }
    file
}

/// An input that gives a few bytes at a time.
struct Pieces<'a> {
    rest: &'a [u8],
    size: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.size.min(self.rest.len()).min(to.len());
        let (now, later) = self.rest.split_at(count);
        to[..count].copy_from_slice(now);
        self.rest = later;
        Ok(count)
    }
}
