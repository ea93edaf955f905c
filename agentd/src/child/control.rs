//! The control thread: owns stdin, answers pings by itself, hands the rest to the loop (S2.8).
//!
//! Refuses what is no control protocol, which ends the run; so does a second `spawn`. It never waits for the writer,
//! and for the loop only while [`limits::OPEN_REQUESTS`] of its messages are unread there.

use super::inbox::Inbox;
use super::outbox::Pongs;
use agentd_core::agent::Input;
use agentd_core::limits;
use agentd_core::wire::message::{BudgetGrant, Cancel, Finish, Pause, Resume, Text};
use agentd_core::wire::{Decoded, Down, DownDecoder};
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};

const READ_BYTES: usize = 64 * 1024;

/// One for each control message that the loop has not read yet.
pub(super) struct Unread(Receiver<()>);

impl Unread {
    /// The loop has read one.
    pub(super) fn read_one(&self) {
        let _none = self.0.try_recv();
    }
}

/// The thread's state.
pub(super) struct Control<R> {
    from: R,
    decoder: DownDecoder,
    pongs: Pongs,
    inbox: Sender<Inbox>,
    room: SyncSender<()>,
}

impl<R: Read> Control<R> {
    /// Goes on after the spawn frame, with the decoder that read it.
    pub(super) fn new(
        from: R,
        decoder: DownDecoder,
        pongs: Pongs,
        inbox: Sender<Inbox>,
    ) -> (Control<R>, Unread) {
        let (room, unread) = sync_channel(limits::OPEN_REQUESTS);
        (Control { from, decoder, pongs, inbox, room }, Unread(unread))
    }

    /// Reads until the supervisor is gone or makes no sense.
    pub(super) fn run(mut self) {
        let last = match self.read_all() {
            Ok(()) => Inbox::SupervisorGone,
            Err(error) => Inbox::BadControl(error),
        };
        // Without a receiver the process is ending anyway.
        let _ended = self.inbox.send(last);
    }

    fn read_all(&mut self) -> Result<(), String> {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match self.from.read(&mut buffer) {
                // A frame that is cut here makes no difference: whoever wrote it is gone.
                Ok(0) => return Ok(()),
                Ok(n) => self.decoder.push(&buffer[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(format!("stdin cannot be read: {e}")),
            }
            while let Some(frame) = self.decoder.next() {
                match frame.map_err(|e| e.to_string())? {
                    Decoded::Message(message) => self.take(message)?,
                    Decoded::Ignored => {}
                }
            }
        }
    }

    fn take(&self, message: Down) -> Result<(), String> {
        match message {
            Down::Ping(ping) => self.pongs.push(ping.seq),
            Down::Cancel(Cancel { reason, turn: None }) => self.hand_over(Inbox::Cancel(reason)),
            Down::Cancel(Cancel { reason, turn: Some(turn) }) => {
                self.tell(Input::CancelTurn { turn, reason })
            }
            Down::ToolResult(result) => self.hand_over(Inbox::ToolResult(result)),
            Down::Message(Text { id, text }) => self.tell(Input::Message { id, text }),
            Down::Steer(Text { id, text }) => self.tell(Input::Steer { id, text }),
            Down::Finish(Finish { reason }) => self.tell(Input::Finish { reason }),
            Down::Pause(Pause {}) => self.tell(Input::Pause),
            Down::Resume(Resume {}) => self.tell(Input::Resume),
            Down::BudgetGrant(BudgetGrant { id, verdict }) => self.tell(Input::Granted { call: id, verdict }),
            Down::Throttle(throttle) => self.hand_over(Inbox::Throttle(throttle)),
            Down::Model(swap) => self.hand_over(Inbox::ModelSwap(swap)),
            Down::Spawn(_) => return Err("a second spawn frame".to_owned()),
        }
        Ok(())
    }

    fn tell(&self, input: Input) {
        self.hand_over(Inbox::ForLoop(input));
    }

    fn hand_over(&self, message: Inbox) {
        // Fails only when the loop is gone, and then so is the process.
        let _ended = self.room.send(());
        let _ended = self.inbox.send(message);
    }
}
