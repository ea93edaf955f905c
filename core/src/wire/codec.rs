//! Messages to frames. The one table of frame types is here; reading them back is `frame`'s.

use super::cbor::{self, Body};
use super::message::{Down, Up, VERSION};
use crate::limits;
use serde::{Deserialize, Serialize, Serializer};

/// Bytes of the length before a frame's body.
pub(super) const PREFIX_BYTES: usize = 4;

/// One direction's messages: what a frame's `t` can be, and the struct each stands for.
pub trait Message: Sized {
    /// All types of this direction, in the order of the enum.
    const TYPES: &'static [&'static str];

    /// This message's `t`.
    fn frame_type(&self) -> &'static str;

    /// Writes the struct inside, which becomes a map of its keys.
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;

    /// Reads the struct that `frame_type` names, and how many keys it does not know, `t` and `n` among them;
    /// `None` when it is no type of this direction.
    fn read(frame_type: &str, body: Body<'_>) -> Option<Result<(Self, u64), String>>;
}

macro_rules! messages {
    ($direction:ident: $($frame_type:literal => $variant:ident),+ $(,)?) => {
        impl Message for $direction {
            const TYPES: &'static [&'static str] = &[$($frame_type),+];

            fn frame_type(&self) -> &'static str {
                match self {
                    $($direction::$variant(_) => $frame_type,)+
                }
            }

            fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $($direction::$variant(message) => message.serialize(serializer),)+
                }
            }

            fn read(frame_type: &str, body: Body<'_>) -> Option<Result<(Self, u64), String>> {
                match frame_type {
                    $($frame_type => {
                        Some(body.read().map(|(message, ignored)| ($direction::$variant(message), ignored)))
                    })+
                    _ => None,
                }
            }
        }
    };
}

messages! { Down:
    "spawn" => Spawn,
    "ping" => Ping,
    "cancel" => Cancel,
    "tool_result" => ToolResult,
    "message" => Message,
    "steer" => Steer,
    "finish" => Finish,
    "pause" => Pause,
    "resume" => Resume,
    "throttle" => Throttle,
    "budget_grant" => BudgetGrant,
    "model" => Model,
}

messages! { Up:
    "ready" => Ready,
    "pong" => Pong,
    "event" => Event,
    "state" => State,
    "usage" => Usage,
    "tools" => Tools,
    "tool_request" => ToolRequest,
    "ack" => Ack,
    "model_health" => ModelHealth,
    "turn" => Turn,
    "result" => Result,
    "failed" => Failed,
    "budget_request" => BudgetRequest,
}

/// Numbers and frames the messages of one direction of one channel.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Encoder {
    next: u64,
}

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder::new()
    }
}

impl Encoder {
    /// For a new channel: the first frame is number 1.
    pub const fn new() -> Encoder {
        Encoder { next: 1 }
    }

    /// For the one frame of this number.
    pub const fn at(number: u64) -> Encoder {
        Encoder { next: number }
    }

    /// The number of the frame that was made last; 0 when there was none.
    pub const fn last(&self) -> u64 {
        self.next - 1
    }

    /// One whole frame of a child, length prefix included.
    pub fn encode_up(&mut self, message: &Up) -> Result<Vec<u8>, TooLarge> {
        self.encode(message)
    }

    /// One whole frame of the supervisor, length prefix included.
    pub fn encode_down(&mut self, message: &Down) -> Result<Vec<u8>, TooLarge> {
        self.encode(message)
    }

    /// Appends one whole frame to `out`, so that many leave in one write. A message that is too large leaves
    /// `out` and the numbering as they were.
    pub fn append<M: Message>(&mut self, message: &M, out: &mut Vec<u8>) -> Result<(), TooLarge> {
        let start = out.len();
        out.extend_from_slice(&[0; PREFIX_BYTES]);
        let (frame_type, content) = (message.frame_type(), Content(message));
        let bytes = cbor::append(out, limits::FRAME_BYTES, frame_type, self.next, &content);
        if bytes > limits::FRAME_BYTES {
            out.truncate(start);
            return Err(TooLarge { frame_type, bytes });
        }
        let prefix = u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
        out[start..start + PREFIX_BYTES].copy_from_slice(&prefix);
        self.next += 1;
        Ok(())
    }

    fn encode<M: Message>(&mut self, message: &M) -> Result<Vec<u8>, TooLarge> {
        let mut out = Vec::with_capacity(128);
        self.append(message, &mut out)?;
        Ok(out)
    }
}

/// The struct inside a message, for whatever writes serde's types.
struct Content<'m, M>(&'m M);

impl<M: Message> Serialize for Content<'_, M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(serializer)
    }
}

/// A message that no frame can carry. Nothing was sent and its number goes to the next frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a `{frame_type}` frame of {bytes} bytes, at most {} are accepted: send less", limits::FRAME_BYTES)]
pub struct TooLarge {
    /// The message's type.
    pub frame_type: &'static str,
    /// What its body would have come to.
    pub bytes: usize,
}

/// Checks the `v` of a peer's first frame (S2.3). A different major is another protocol; a different minor only
/// adds types and keys that the older side ignores.
pub fn check_version(theirs: [u16; 2]) -> Result<(), String> {
    let ([their_major, their_minor], [major, minor]) = (theirs, VERSION);
    if their_major == major {
        return Ok(());
    }
    Err(format!(
        "the other end speaks version {their_major}.{their_minor} of the control protocol, this one \
         {major}.{minor}: the binary was replaced while it ran; restart agentd, so that both ends are one build"
    ))
}

#[cfg(test)]
mod tests;
