//! The live tree of runs on a terminal (S17.1): one line a run with what it waits on. Owns the thread that draws, at
//! most ten times a second, and once a second while nothing happens, so that ages go on. It never delays the
//! supervisor: a snapshot is left for it, and the newest is what is drawn. Called by the supervisor of `agentd run`.

mod draw;
mod screen;

pub use screen::Screen;

use crate::log;
use agentd_core::snapshot::Snapshot;
use agentd_core::time::{Duration, Instant};
use agentd_host::clock::Clock;
use draw::Canvas;
use screen::Lines;
use std::io::{self, IsTerminal};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Between two frames.
const FRAME: Duration = Duration::from_millis(100);

/// Between two frames while nothing happens.
const IDLE: Duration = Duration::from_secs(1);

/// Whether a tree can be drawn on stderr: it is a terminal, and one that can move its cursor.
pub fn fits_stderr() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    io::stderr().is_terminal() && !dumb
}

/// A tree that is being drawn.
#[derive(Debug)]
pub struct Tree {
    screen: Screen,
    latest: Arc<Mutex<Option<Snapshot>>>,
    /// Rung when there is a new snapshot; dropped at the end.
    bell: SyncSender<()>,
    ended: Receiver<()>,
}

impl Tree {
    /// Starts to draw on stderr. `clock` is the driver's kind of clock, whose epoch ages are counted from.
    ///
    /// # Errors
    /// stderr cannot be duplicated, or there is no thread to be had.
    pub fn start(clock: Clock) -> io::Result<Tree> {
        let screen = Screen::new(log::stderr()?);
        let latest = Arc::new(Mutex::new(None));
        // One ring waits at most: more would say the same.
        let (bell, rings) = sync_channel(1);
        let (end, ended) = channel();
        let colors = std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty());
        let artist = Artist { screen: screen.clone(), latest: Arc::clone(&latest), clock, colors };
        std::thread::Builder::new().name("agentd:tree".into()).spawn(move || {
            artist.run(&rings);
            // Nobody waits when the terminal took too long.
            let _late = end.send(());
        })?;
        Ok(Tree { screen, latest, bell, ended })
    }

    /// The terminal, for those who print to it besides.
    pub fn screen(&self) -> &Screen {
        &self.screen
    }

    /// A writer of whole lines above the tree, for the log.
    pub fn lines(&self) -> Lines {
        self.screen.lines()
    }

    /// Leaves a snapshot to be drawn. Never waits.
    pub fn show(&self, snapshot: Snapshot) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(snapshot);
        match self.bell.try_send(()) {
            // One that waits will find this snapshot.
            Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
        }
    }

    /// Takes the tree away, within this long: a terminal that is held does not hold the end.
    pub fn close(self, within: Duration) {
        let Tree { bell, ended, .. } = self;
        drop(bell);
        let _late = ended.recv_timeout(within);
    }
}

/// What the thread owns.
struct Artist {
    screen: Screen,
    latest: Arc<Mutex<Option<Snapshot>>>,
    clock: Clock,
    colors: bool,
}

impl Artist {
    fn run(self, rings: &Receiver<()>) {
        let mut shown: Option<(Snapshot, Instant)> = None;
        loop {
            let mut new = self.latest();
            if new.is_none() {
                if !wait(rings, IDLE) {
                    break;
                }
                new = self.latest();
            }
            let now = self.clock.now().mono;
            if let Some(new) = new {
                shown = Some((new, now));
            }
            // The driver's clock and this one may have begun apart: only what passed here is added.
            let Some((snapshot, taken)) = &shown else { continue };
            if self.draw(snapshot, snapshot.now.mono + now.since(*taken)).is_err() {
                break;
            }
            // What is left within a frame's time is drawn with the next.
            if !pause(rings, self.clock, now + FRAME) {
                break;
            }
        }
        // A terminal that is gone needs no cleaning.
        let _gone = self.screen.draw(Vec::new());
    }

    /// What was left since the last time.
    fn latest(&self) -> Option<Snapshot> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn draw(&self, snapshot: &Snapshot, now: Instant) -> io::Result<()> {
        let Some((columns, rows)) = self.screen.size() else { return Ok(()) };
        self.screen.draw(draw::frame(snapshot, now, Canvas { columns, rows, colors: self.colors }))
    }
}

/// Waits for a ring, at most this long. `false` is the end.
fn wait(rings: &Receiver<()>, longest: Duration) -> bool {
    match rings.recv_timeout(longest) {
        Ok(()) | Err(RecvTimeoutError::Timeout) => true,
        Err(RecvTimeoutError::Disconnected) => false,
    }
}

/// Waits until `until`, rings or not: what they rang for is found after it. `false` is the end.
fn pause(rings: &Receiver<()>, clock: Clock, until: Instant) -> bool {
    loop {
        let left = until.since(clock.now().mono);
        if left.is_zero() {
            return true;
        }
        if !wait(rings, left) {
            return false;
        }
    }
}
