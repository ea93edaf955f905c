//! Names of things. Every id is minted once and never used again within a daemon's life, so a late message to
//! an old holder finds nobody (field report F08).

use crate::rng::Rng;
use crate::time::Wall;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// One process life in the process table. The key under which a driver knows a child: an attempt has its own
/// node, so bytes of attempt 1 can never reach attempt 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub u64);

impl NodeId {
    /// Stands for the operator where a caller is named. No process ever has it.
    pub const OPERATOR: NodeId = NodeId(0);
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node-{}", self.0)
    }
}

/// A connection's name, minted by whoever accepts it and never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConnId(pub u64);

/// A run's name for ever: a UUIDv7 (RFC 9562), so ids sort by the time they were minted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunId(u128);

impl RunId {
    /// All zeros: stands for an id that is not minted yet, and names no run.
    pub const NIL: RunId = RunId(0);

    /// Mints an id from wall time and 74 random bits.
    pub fn mint(wall: Wall, rng: &mut Rng) -> RunId {
        let ms = u128::from(wall.0 & 0xffff_ffff_ffff);
        let a = u128::from(rng.next_u64() & 0x0fff);
        let b = u128::from(rng.next_u64() & 0x3fff_ffff_ffff_ffff);
        RunId(ms << 80 | 0x7 << 76 | a << 64 | 0b10 << 62 | b)
    }
}

impl RunId {
    /// The least id above this one, for a table whose ids are to be in the order of their minting.
    #[must_use]
    pub fn next(self) -> RunId {
        // The two fixed bits stay as they are: the 62 below them are counted up.
        const LOW: u128 = (1 << 62) - 1;
        RunId(self.0 & !LOW | (self.0 & LOW).wrapping_add(1) & LOW)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v = self.0;
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            v >> 96,
            v >> 80 & 0xffff,
            v >> 64 & 0xffff,
            v >> 48 & 0xffff,
            v & 0xffff_ffff_ffff
        )
    }
}

impl FromStr for RunId {
    type Err = InvalidId;
    fn from_str(s: &str) -> Result<RunId, InvalidId> {
        let bad = || InvalidId {
            seen: s.chars().take(64).collect(),
            accepted: "a UUID of five groups of hex digits",
        };
        let groups: Vec<&str> = s.split('-').collect();
        if groups.len() != 5 || groups.iter().map(|g| g.len()).ne([8, 4, 4, 4, 12]) {
            return Err(bad());
        }
        if !s.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit()) {
            return Err(bad());
        }
        u128::from_str_radix(&groups.concat(), 16).map(RunId).map_err(|_| bad())
    }
}

impl Serialize for RunId {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<RunId, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The short name of a run that people and models use: `sub-7`. Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Handle(pub u64);

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sub-{}", self.0)
    }
}

impl FromStr for Handle {
    type Err = InvalidId;
    /// Accepts exactly what `Display` prints: no sign, no leading zero, no space.
    fn from_str(s: &str) -> Result<Handle, InvalidId> {
        let parsed = s.strip_prefix("sub-").and_then(|d| d.parse().ok()).map(Handle);
        match parsed {
            Some(h) if h.to_string() == s => Ok(h),
            Some(_) | None => {
                Err(InvalidId { seen: s.chars().take(64).collect(), accepted: "a handle such as sub-7" })
            }
        }
    }
}

impl Serialize for Handle {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Handle {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Handle, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A text that does not name what it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{seen:?} is not {accepted}")]
pub struct InvalidId {
    /// The first 64 characters of what was given.
    pub seen: String,
    /// What is accepted.
    pub accepted: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_are_version_7_and_round_trip() {
        let mut rng = Rng::new(1);
        let id = RunId::mint(Wall(0x0123_4567_89ab), &mut rng);
        let text = id.to_string();
        assert!(text.starts_with("01234567-89ab-7"), "{text}");
        assert!(matches!(text.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{text}");
        assert_eq!(text.parse::<RunId>(), Ok(id));
        assert!("01234567-89ab-7000-8000-00000000000g".parse::<RunId>().is_err());
        assert!("+1234567-89ab-7000-8000-000000000000".parse::<RunId>().is_err());
    }

    #[test]
    fn handles_parse_only_in_their_printed_form() {
        assert_eq!("sub-7".parse(), Ok(Handle(7)));
        for bad in ["sub-07", "sub-+7", "sub-", "inst-7", "sub-7 ", "SUB-7", "sub-18446744073709551616"] {
            assert!(bad.parse::<Handle>().is_err(), "{bad}");
        }
    }
}
