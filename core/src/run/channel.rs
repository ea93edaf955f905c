//! The supervisor's end of one child's control channel: the decoder of what it says, the numbering and the
//! bound of what is said to it (S2.1, S2.7).

use crate::bytes::Bytes;
use crate::error::ProtocolError;
use crate::limits;
use crate::wire::message::{Down, Up};
use crate::wire::{Decoded, Encoder, Ignored, UpDecoder};
use serde::{Deserialize, Serialize};

/// One child's channel.
#[derive(Debug, Serialize, Deserialize)]
pub struct Channel {
    decoder: UpDecoder,
    encoder: Encoder,
    /// Bytes that are queued and have not left.
    queued: u64,
    /// The child can still be written to.
    open: bool,
    /// Its stdout ended.
    pub ended: bool,
    /// A terminal frame came; the first one stands.
    pub terminal: bool,
    /// Frames that came after it.
    pub late: u64,
    /// It broke the protocol; nothing it says is read any more.
    broken: bool,
    first: bool,
}

/// What became of a frame for a child.
#[derive(Debug, PartialEq, Eq)]
pub enum Sent {
    /// To be queued.
    Frame(Bytes),
    /// The child cannot be written to any more; its exit is on its way.
    Closed,
    /// It would not fit: the child does not read, or the frame is over the limit.
    Full,
}

impl Channel {
    /// A channel on which nothing was said.
    pub fn new() -> Channel {
        Channel {
            decoder: UpDecoder::new(),
            encoder: Encoder::new(),
            queued: 0,
            open: true,
            ended: false,
            terminal: false,
            late: 0,
            broken: false,
            first: true,
        }
    }

    /// Takes bytes of the child's stdout; `next_message` gives what they hold.
    pub fn push(&mut self, bytes: &[u8]) {
        if !self.broken {
            self.decoder.push(bytes);
        }
    }

    /// The next message. After an error there is none.
    pub fn next_message(&mut self) -> Option<Result<Up, ProtocolError>> {
        while !self.broken {
            match self.decoder.next()? {
                Ok(Decoded::Message(up)) => {
                    let first = std::mem::replace(&mut self.first, false);
                    if first && !matches!(up, Up::Ready(_) | Up::Failed(_)) {
                        return Some(Err(self.break_with("the first frame must be `ready` or `failed`")));
                    }
                    return Some(Ok(up));
                }
                Ok(Decoded::Ignored) if self.first => {
                    return Some(Err(self.break_with("the first frame must be `ready` or `failed`")));
                }
                Ok(Decoded::Ignored) => {}
                Err(e) => {
                    self.broken = true;
                    return Some(Err(e));
                }
            }
        }
        None
    }

    /// A copy of the decoder as it stands, for one who listens in from here on.
    pub fn listener(&self) -> UpDecoder {
        self.decoder.clone()
    }

    /// What a newer child said that this version does not know (S2.3).
    pub fn ignored(&self) -> Ignored {
        self.decoder.ignored()
    }

    /// Whether stdout ended in the middle of a frame.
    pub fn cut(&self) -> Option<ProtocolError> {
        if self.broken { None } else { self.decoder.finish().err() }
    }

    /// Stops reading what the child says, for a reason the codec does not know.
    pub fn break_with(&mut self, why: &str) -> ProtocolError {
        self.broken = true;
        ProtocolError(why.to_owned())
    }

    /// Whether the protocol was broken.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Encodes a message within the queue's bound.
    pub fn send(&mut self, down: &Down) -> Sent {
        if !self.open {
            return Sent::Closed;
        }
        // A frame that is not sent consumes no frame number.
        let before = self.encoder.clone();
        match self.encoder.encode_down(down) {
            Ok(frame) if self.queued + frame.len() as u64 <= limits::CHILD_QUEUE_BYTES => {
                self.queued += frame.len() as u64;
                Sent::Frame(Bytes::from(frame))
            }
            Ok(_) | Err(_) => {
                self.encoder = before;
                Sent::Full
            }
        }
    }

    /// Bytes left for the child's stdin.
    pub fn wrote(&mut self, bytes: u64) {
        self.queued = self.queued.saturating_sub(bytes);
    }

    /// Whether the child's stdin may take something.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// The child's stdin takes no more.
    pub fn close(&mut self) {
        self.open = false;
        self.queued = 0;
    }
}

impl Default for Channel {
    fn default() -> Channel {
        Channel::new()
    }
}
