//! The file's format: one line that names it, then records: four bytes of length, big-endian, one byte that says
//! what the record is, and so many bytes less one of CBOR. The first record of every file is its [`Header`]; behind
//! it, in every file but a journal's first, the core's state at that moment, as many bytes as the header says. Then
//! each event is followed by what the core answered. The format only ever gains optional keys and variants of events
//! and actions; anything else is another version.

use agentd_core::action::Action;
use agentd_core::config::Config;
use agentd_core::event::Event;
use agentd_core::time::{Now, Wall};
use serde::{Deserialize, Serialize};

/// The first line of a journal; the number is the format's version.
pub(super) const MAGIC: &[u8] = b"agentd journal 2\n";

/// What every version's first line begins with.
pub(super) const MAGIC_OF_ANY_VERSION: &[u8] = b"agentd journal ";

/// Bytes of one record at most; a longer length is damage.
pub(super) const RECORD_BYTES: u32 = 64 * 1024 * 1024;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A [`Header`].
    Header = b'H' as isize,
    /// A `Now` and an `Event`, as a pair.
    Event = b'E' as isize,
    /// The actions that the event before it was answered with.
    Actions = b'A' as isize,
}

impl Kind {
    /// Its byte.
    fn byte(self) -> u8 {
        self as u8
    }

    /// The kind of a byte.
    pub(super) fn of(byte: u8) -> Option<Kind> {
        [Kind::Header, Kind::Event, Kind::Actions].into_iter().find(|kind| kind.byte() == byte)
    }
}

/// The first record of a file: what a replay starts from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the agentd that wrote it.
    pub agentd: String,
    /// When the journal began: `Core::new`'s clocks. All files of one journal have the same.
    pub began: Now,
    /// Which file of the journal this is, from 0.
    pub segment: u64,
    /// Events in the files before it.
    pub events: u64,
    /// Bytes of the core's state that follow; none in the first file, where the core is new.
    pub state: Option<u64>,
    /// The core's configuration, without the values of servers' variables, of keys and of headers.
    pub config: Config,
}

impl Header {
    /// The header of a journal's first file.
    pub(super) fn new(config: &Config, now: Now) -> Header {
        Header {
            agentd: env!("CARGO_PKG_VERSION").to_owned(),
            began: now,
            segment: 0,
            events: 0,
            state: None,
            config: config.without_values(),
        }
    }

    /// When the journal began, for people.
    pub fn began(&self) -> Wall {
        self.began.wall
    }

    /// Whether this agentd is of the version that wrote it.
    pub fn is_of_this_version(&self) -> bool {
        self.agentd == env!("CARGO_PKG_VERSION")
    }

    /// All that stands before a file's first event.
    pub(super) fn head(&self, state: &[u8]) -> Result<Vec<u8>, String> {
        let mut head = MAGIC.to_vec();
        append(Kind::Header, self, &mut head)?;
        head.extend_from_slice(state);
        Ok(head)
    }
}

/// Appends an event.
pub(super) fn append_event(now: Now, event: &Event, out: &mut Vec<u8>) -> Result<(), String> {
    // The only event that holds a configuration.
    if let Event::ConfigReady(reloaded) = event {
        let event = Event::ConfigReady(Box::new(reloaded.without_values()));
        return append(Kind::Event, &(now, event), out);
    }
    append(Kind::Event, &(now, event), out)
}

/// Appends what an event was answered with.
pub(super) fn append_actions(actions: &[Action], out: &mut Vec<u8>) -> Result<(), String> {
    framed(Kind::Actions, out, |out| write_actions(actions, out))
}

/// The bytes that stand for actions in a journal: without values, and the same for the same actions.
pub fn actions_bytes(actions: &[Action]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    write_actions(actions, &mut bytes)?;
    Ok(bytes)
}

fn write_actions(actions: &[Action], out: &mut Vec<u8>) -> Result<(), String> {
    // Only first frames and models hold values, and they are few in the life of a process.
    if actions.iter().any(|action| matches!(action, Action::SendSpawn { .. } | Action::SendModel { .. })) {
        let mut actions = actions.to_vec();
        for action in &mut actions {
            if let Action::SendSpawn { payload, .. } = action {
                payload.0.leave_out_values();
            }
            if let Action::SendModel { payload, .. } = action {
                payload.0.leave_out_values();
            }
        }
        return cbor(&actions, out);
    }
    cbor(&actions, out)
}

fn append(kind: Kind, record: &impl Serialize, out: &mut Vec<u8>) -> Result<(), String> {
    framed(kind, out, |out| cbor(record, out))
}

fn framed(
    kind: Kind,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), String>,
) -> Result<(), String> {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, 0, kind.byte()]);
    write(out)?;
    let length = u32::try_from(out.len() - start - 4).ok().filter(|length| *length <= RECORD_BYTES);
    let length = length.ok_or("the record is larger than 64 MiB")?;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

fn cbor(record: &impl Serialize, out: &mut Vec<u8>) -> Result<(), String> {
    ciborium::into_writer(record, out).map_err(|error| error.to_string())
}
