//! Events from other threads into the reactor: a bounded queue and a descriptor that wakes it.
//!
//! Owns the wake-up. Refuses to wait unasked: a full queue is the poster's to handle. Called by the store's thread, by
//! whoever submits prompts, by embedders, and by the spawner for its wake-up alone.

use crate::error::OsError;
use agentd_core::event::Event;
use rustix::event::EventfdFlags;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// Events that may wait. One more is refused.
const EVENTS: usize = 4_096;

/// Between two tries to post what must be heard.
const AGAIN: Duration = Duration::from_millis(1);

/// The reactor's end.
#[derive(Debug)]
pub struct Mailbox {
    events: Receiver<Event>,
    sender: SyncSender<Event>,
    bell: Bell,
}

/// Everybody else's end.
#[derive(Debug, Clone)]
pub struct Poster {
    sender: SyncSender<Event>,
    bell: Bell,
}

/// Wakes the reactor and says nothing.
#[derive(Debug, Clone)]
pub(crate) struct Bell(Arc<OwnedFd>);

/// An event that was not taken, given back.
#[derive(Debug, thiserror::Error)]
pub enum PostError {
    /// Too many wait; try again later.
    #[error("the reactor has {EVENTS} events waiting and takes no more")]
    Full(Box<Event>),
    /// The reactor has ended.
    #[error("the reactor has ended")]
    Ended(Box<Event>),
}

impl Mailbox {
    /// An empty mailbox.
    ///
    /// # Errors
    /// `eventfd(2)`.
    pub fn new() -> Result<Mailbox, OsError> {
        let fd = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(OsError::of("eventfd(2)", "the mailbox"))?;
        let (sender, events) = sync_channel(EVENTS);
        Ok(Mailbox { events, sender, bell: Bell(Arc::new(fd)) })
    }

    /// A way in.
    pub fn poster(&self) -> Poster {
        Poster { sender: self.sender.clone(), bell: self.bell.clone() }
    }

    /// The wake-up alone.
    pub(crate) fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// The next event, if one waits.
    pub fn take(&self) -> Option<Event> {
        self.events.try_recv().ok()
    }

    /// Makes the descriptor unreadable until the next ring. Called before the queue is emptied, so that nothing
    /// posted meanwhile is missed.
    pub(crate) fn hush(&self) {
        // EAGAIN: nobody rang.
        let _rings = rustix::io::read(&*self.bell.0, &mut [0; 8]);
    }
}

impl AsFd for Mailbox {
    /// Readable after a ring.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.0.as_fd()
    }
}

impl Poster {
    /// Queues an event and wakes the reactor. Never waits.
    ///
    /// # Errors
    /// The queue is full, or nobody will ever read it.
    pub fn post(&self, event: Event) -> Result<(), PostError> {
        match self.sender.try_send(event) {
            Ok(()) => {
                self.bell.ring();
                Ok(())
            }
            Err(TrySendError::Full(event)) => Err(PostError::Full(Box::new(event))),
            Err(TrySendError::Disconnected(event)) => Err(PostError::Ended(Box::new(event))),
        }
    }

    /// The same, waiting as long as the queue is full: for a thread of its own that has something the reactor must hear.
    /// A reactor that has ended needs to hear nothing.
    pub fn post_when_taken(&self, event: Event) {
        let mut event = event;
        while let Err(PostError::Full(back)) = self.post(event) {
            event = *back;
            std::thread::sleep(AGAIN);
        }
    }
}

impl Bell {
    /// Wakes the reactor.
    pub(crate) fn ring(&self) {
        // EAGAIN: 2⁶⁴ rings wait, which is a ring.
        let _ringing = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_be_heard_waits_for_room_and_not_for_a_reactor_that_has_ended() {
        let mailbox = Mailbox::new().expect("eventfd works");
        let poster = mailbox.poster();
        for _ in 0..EVENTS {
            poster.post(Event::Tick).expect("there is room");
        }
        let heard = Event::PromptSubmitted { text: "hear me".into() };
        let (last, waiting) = (heard.clone(), poster.clone());
        let thread = std::thread::spawn(move || waiting.post_when_taken(last));
        for _ in 0..EVENTS {
            assert_eq!(mailbox.take(), Some(Event::Tick));
        }
        thread.join().expect("it was taken");
        assert_eq!(mailbox.take(), Some(heard));
        drop(mailbox);
        poster.post_when_taken(Event::Tick);
    }

    #[test]
    fn events_come_in_order_and_a_full_or_ended_box_gives_them_back() {
        let mailbox = Mailbox::new().expect("eventfd works");
        let poster = mailbox.poster();
        for seq in 0..EVENTS as u64 {
            poster.post(Event::Stored { seq }).expect("there is room");
        }
        let refused = poster.post(Event::Tick).expect_err("it is full");
        assert!(matches!(&refused, PostError::Full(event) if **event == Event::Tick), "{refused}");
        mailbox.hush();
        for seq in 0..EVENTS as u64 {
            assert_eq!(mailbox.take(), Some(Event::Stored { seq }));
        }
        assert_eq!(mailbox.take(), None);
        drop(mailbox);
        assert!(matches!(poster.post(Event::Tick), Err(PostError::Ended(_))));
    }
}
