//! `agentd top`: a daemon's runs on the whole terminal, live, with keys that act on them.
//!
//! | file | what it is |
//! |---|---|
//! | `state`, `run`, `pane`, `asking` | what is known and shown: plain values |
//! | `keys` | what each key does to the state, and beyond it |
//! | `view` | the state as a frame |
//! | `watch`, `orders` | the two threads that talk with the daemon |
//! | `screen`, `signals` | the terminal, taken and put back; what ends it from outside |
//!
//! Owns the loop that brings them together: news in, state changed, frame out. It is a client of the control socket like every
//! command and knows no more than `ps`, `status` and `logs` tell. Called by the command line.

mod asking;
mod keys;
mod orders;
mod pane;
mod run;
mod screen;
mod signals;
#[cfg(test)]
mod stage;
mod state;
mod view;
mod watch;

use crate::client::{ClientError, Daemon};
use keys::{Effect, Order};
use nix::errno::Errno;
use nix::sys::signal::{Signal, raise};
use ratatui::crossterm::event::{self, Event};
use screen::Screen;
use serde_json::{Value, json};
use state::{State, Watch};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The longest time between two frames: ages go on.
const FRAME: Duration = Duration::from_secs(1);

/// News that are taken in before the next frame.
const NEWS: usize = 256;

/// Why there is no screen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TopError {
    /// The daemon cannot be asked, before anything was drawn.
    #[error(transparent)]
    Daemon(#[from] ClientError),
    /// The terminal cannot be had, or failed.
    #[error("the terminal cannot be used: {0}; `agentd ps` and `agentd logs -f` need none")]
    Terminal(#[from] io::Error),
    /// A thread ended that never should.
    #[error("a part of `agentd top` ended, which is a bug; the daemon is not touched by it")]
    Part,
}

/// Something that the loop is told.
#[derive(Debug)]
enum News {
    /// A key, a paste or a new size.
    Input(Event),
    /// What runs.
    Runs(Value),
    /// What is left of budgets.
    Budget(Value),
    /// Events of a run; `fresh` when they are the first of this life of the daemon.
    Events {
        name: String,
        page: Value,
        fresh: bool,
    },
    /// The daemon does not answer.
    Lost(String),
    /// Something to say, and whether it is trouble.
    Said(String, bool),
    /// An order was carried out, or was not.
    Done(String, bool),
    Signal(Signal),
    /// The terminal went away.
    Gone,
    /// A thread ended.
    Ended,
}

/// Shows the daemon's runs until the person has seen enough, and gives the exit code. `all`: ended ones too; `colors`: in
/// colours.
///
/// # Errors
/// The daemon cannot be asked at the beginning, or the terminal cannot be used.
pub(crate) fn run(daemon: Daemon, all: bool, colors: bool) -> Result<u8, TopError> {
    // Who cannot ask is told as by every other command, on a terminal as it was.
    let first = daemon.op("ps", json!({ "all": all }))?;
    let taken = signals::block()?;
    let mut state = State::new(daemon.name(), all);
    state.told(&first);
    let (news, heard) = channel();
    let (watch, watched) = channel();
    let (orders, ordered) = channel();
    let screen = Screen::take()?;
    let daemon = Arc::new(daemon);
    let theirs = Arc::clone(&daemon);
    part("watch", &news, move |news| watch::run(&theirs, &watched, news))?;
    part("orders", &news, move |news| orders::run(&daemon, &ordered, news))?;
    part("signals", &news, move |news| signals::wait(&taken, news))?;
    part("terminal", &news, signals::watch_terminal)?;
    part("keys", &news, read_keys)?;
    let wanted = Watch::default();
    Loop { state, screen, colors, heard, watch, orders, wanted, began: Instant::now() }.run()
}

/// Starts a thread; that it ended, also by a panic, is news.
fn part(
    name: &str,
    news: &Sender<News>,
    body: impl FnOnce(&Sender<News>) + Send + 'static,
) -> io::Result<()> {
    struct Part(Sender<News>);
    impl Drop for Part {
        fn drop(&mut self) {
            // Nobody listens once the loop has ended.
            let _ended = self.0.send(News::Ended);
        }
    }
    let part = Part(news.clone());
    std::thread::Builder::new().name(format!("agentd:{name}")).spawn(move || {
        // All of it moves into the thread.
        let part = part;
        body(&part.0);
    })?;
    Ok(())
}

/// Reads keys until the terminal gives none any more.
fn read_keys(news: &Sender<News>) {
    while let Ok(input) = event::read() {
        if news.send(News::Input(input)).is_err() {
            return;
        }
    }
}

struct Loop {
    state: State,
    screen: Screen,
    colors: bool,
    heard: Receiver<News>,
    watch: Sender<Watch>,
    orders: Sender<Order>,
    /// What the watching thread was last told to ask.
    wanted: Watch,
    began: Instant,
}

impl Loop {
    /// Until the end, which a terminal that goes away is too, wherever that is noticed first.
    fn run(mut self) -> Result<u8, TopError> {
        match self.turn_by_turn() {
            Err(TopError::Terminal(error)) if error.raw_os_error() == Some(Errno::EIO as i32) => {
                Ok(signals::code(Signal::SIGHUP))
            }
            ended => ended,
        }
    }

    fn turn_by_turn(&mut self) -> Result<u8, TopError> {
        loop {
            self.screen.draw(|frame| view::draw(frame, &mut self.state, self.colors))?;
            let mut next = match self.heard.recv_timeout(FRAME) {
                Ok(news) => Some(news),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Err(TopError::Part),
            };
            self.state.now = self.began.elapsed();
            for _ in 0..NEWS {
                let Some(news) = next else { break };
                if let Some(code) = self.take(news)? {
                    return Ok(code);
                }
                next = self.heard.try_recv().ok();
            }
            let wanted = self.state.watch();
            if wanted != self.wanted {
                self.wanted = wanted;
                self.look_now();
            }
        }
    }

    /// One piece of news; the exit code when it is the last.
    fn take(&mut self, news: News) -> Result<Option<u8>, TopError> {
        match news {
            News::Input(Event::Key(key)) => {
                let effect = keys::pressed(&mut self.state, key);
                return self.act(effect);
            }
            News::Input(Event::Paste(text)) => keys::pasted(&mut self.state, &text),
            // The next frame has the new size.
            News::Input(_) => {}
            News::Runs(told) => self.state.told(&told),
            News::Budget(budget) => self.state.budget = watch::budget_words(&budget),
            News::Events { name, page, fresh } => self.state.events(&name, &page, fresh),
            News::Lost(why) => self.state.lost(&why),
            News::Said(words, trouble) => self.state.say(&words, trouble),
            News::Done(words, trouble) => {
                self.state.say(&words, trouble);
                self.look_now();
            }
            News::Signal(Signal::SIGTSTP) => self.suspend()?,
            News::Signal(Signal::SIGCONT) => self.screen.retake()?,
            News::Signal(signal) => return Ok(Some(signals::code(signal))),
            News::Gone => return Ok(Some(signals::code(Signal::SIGHUP))),
            News::Ended => return Err(TopError::Part),
        }
        Ok(None)
    }

    fn act(&mut self, effect: Effect) -> Result<Option<u8>, TopError> {
        match effect {
            Effect::Nothing => {}
            Effect::Quit => return Ok(Some(0)),
            Effect::Suspend => self.suspend()?,
            Effect::Redraw => self.screen.retake()?,
            Effect::Order(order) => {
                self.state.say("…", false);
                self.orders.send(order).map_err(|_| TopError::Part)?;
            }
        }
        Ok(None)
    }

    /// Gives the terminal back and stops, as the shell expects of who is told to; SIGCONT takes it again.
    fn suspend(&mut self) -> Result<(), TopError> {
        self.screen.lend();
        raise(Signal::SIGSTOP).map_err(io::Error::from)?;
        self.screen.retake()?;
        Ok(())
    }

    /// Has the daemon asked at once.
    fn look_now(&self) {
        // The thread that asks has ended only if it told so.
        let _ended = self.watch.send(self.wanted.clone());
    }
}
