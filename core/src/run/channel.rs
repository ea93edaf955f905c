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

    /// The number of the frame that was made last.
    pub fn last_number(&self) -> u64 {
        self.encoder.last()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::DownDecoder;
    use crate::wire::message::{Ping, Pong, Ready, Text, VERSION};

    fn message(bytes: u64) -> Down {
        Down::Message(Text { id: 1, text: "x".repeat(usize::try_from(bytes).expect("fits")) })
    }

    fn length(sent: Sent) -> u64 {
        let Sent::Frame(frame) = sent else { panic!("{sent:?}") };
        frame.len() as u64
    }

    #[test]
    fn a_full_queue_takes_nothing_until_something_leaves_it() {
        let half = limits::CHILD_QUEUE_BYTES / 2 - 100;
        let mut channel = Channel::new();
        let first = length(channel.send(&message(half)));
        length(channel.send(&message(half)));
        assert_eq!(channel.send(&message(half)), Sent::Full);
        channel.wrote(first);
        length(channel.send(&message(half)));
        assert_eq!(channel.send(&message(half)), Sent::Full);
    }

    #[test]
    fn the_bound_is_met_and_not_passed() {
        let around = length(Channel::new().send(&message(70_000))) - 70_000;
        let most = crate::limits::FRAME_BYTES as u64 - 1_000;
        let mut channel = Channel::new();
        let queued = length(channel.send(&message(most))) + length(channel.send(&message(1 << 20)));
        let rest = limits::CHILD_QUEUE_BYTES - queued - around;
        assert_eq!(channel.send(&message(rest + 1)), Sent::Full);
        assert_eq!(length(channel.send(&message(rest))), rest + around);
        assert_eq!(channel.send(&Down::Ping(Ping { seq: 1 })), Sent::Full);
        channel.wrote(limits::CHILD_QUEUE_BYTES);
        length(channel.send(&Down::Ping(Ping { seq: 1 })));
    }

    #[test]
    fn what_was_not_sent_has_no_number() {
        let mut channel = Channel::new();
        let mut decoder = DownDecoder::new();
        let most = crate::limits::FRAME_BYTES as u64;
        for (seq, too_much) in [(1, false), (2, true), (3, false), (4, true)] {
            if too_much {
                assert_eq!(channel.send(&message(most)), Sent::Full);
            }
            let Sent::Frame(frame) = channel.send(&Down::Ping(Ping { seq })) else { panic!("fits") };
            decoder.push(&frame);
            assert_eq!(decoder.next(), Some(Ok(Decoded::Message(Down::Ping(Ping { seq })))));
        }
    }

    #[test]
    fn a_closed_one_takes_nothing() {
        let mut channel = Channel::new();
        assert!(channel.is_open());
        channel.close();
        assert!(!channel.is_open());
        assert_eq!(channel.send(&Down::Ping(Ping { seq: 1 })), Sent::Closed);
    }

    #[test]
    fn the_end_in_the_middle_of_a_frame_is_told_unless_something_worse_was() {
        let mut encoder = Encoder::new();
        let ready = encoder.encode_up(&Up::Ready(Ready { v: VERSION })).expect("fits");
        let mut channel = Channel::new();
        assert_eq!(channel.cut(), None);
        channel.push(&ready[..5]);
        assert!(channel.cut().is_some());
        channel.push(&ready[5..]);
        assert!(matches!(channel.next_message(), Some(Ok(Up::Ready(_)))));
        assert_eq!(channel.cut(), None);
        channel.push(&[0, 0]);
        assert!(channel.cut().is_some());
        channel.break_with("a reason");
        assert_eq!(channel.cut(), None);
    }

    #[test]
    fn nothing_is_read_after_a_broken_rule() {
        let mut encoder = Encoder::new();
        let pong = encoder.encode_up(&Up::Pong(Pong { seq: 1 })).expect("fits");
        let ready = encoder.encode_up(&Up::Ready(Ready { v: VERSION })).expect("fits");
        let mut channel = Channel::new();
        channel.push(&[pong, ready.clone()].concat());
        let Some(Err(error)) = channel.next_message() else { panic!("the first frame is no `ready`") };
        assert_eq!(error.0, "the first frame must be `ready` or `failed`");
        assert_eq!(channel.next_message(), None);
        channel.push(&ready);
        assert_eq!(channel.next_message(), None);
    }
}
