//! What ends or stops `top` from outside: signals, and a terminal that goes away.
//!
//! Signals are blocked in every thread and taken by one that waits for them, so that nothing runs in signal context and the
//! terminal is put back first. crossterm reads a terminal that has hung up again and again without an end, so that is watched
//! for here.

use super::News;
use nix::sys::signal::{SigSet, Signal};
use ratatui::crossterm::terminal::disable_raw_mode;
use rustix::event::{PollFd, PollFlags, poll};
use std::io;
use std::sync::mpsc::Sender;
use std::time::Duration;

/// How long the end may take once a signal asks for it: a terminal that takes no bytes must not hold the process.
const LAST: Duration = Duration::from_secs(2);

/// Exit code of a process that a signal ended.
pub(super) fn code(signal: Signal) -> u8 {
    u8::try_from(128 + signal as i32).unwrap_or(u8::MAX)
}

/// Blocks the signals in this thread, which has started no other yet.
///
/// # Errors
/// `pthread_sigmask(3)`.
pub(super) fn block() -> io::Result<SigSet> {
    let taken: SigSet =
        [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGTSTP, Signal::SIGCONT]
            .into_iter()
            .collect();
    taken.thread_block()?;
    Ok(taken)
}

/// Tells of each signal that comes.
pub(super) fn wait(taken: &SigSet, news: &Sender<News>) {
    while let Ok(signal) = taken.wait() {
        if news.send(News::Signal(signal)).is_err() {
            return;
        }
        if !matches!(signal, Signal::SIGTSTP | Signal::SIGCONT) {
            std::thread::sleep(LAST);
            // The loop has not ended the process, so it waits for a terminal that does not read.
            let _gone = disable_raw_mode();
            std::process::exit(i32::from(code(signal)));
        }
    }
}

/// Tells when the terminal has gone away.
pub(super) fn watch_terminal(news: &Sender<News>) {
    let terminal = io::stdout();
    let mut fds = [PollFd::new(&terminal, PollFlags::empty())];
    // Any other error says no less that there is no terminal to be had.
    while let Err(rustix::io::Errno::INTR) = poll(&mut fds, None) {}
    // Nobody to tell is the end already.
    let _ended = news.send(News::Gone);
}
