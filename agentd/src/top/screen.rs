//! The terminal while `top` has it: taken whole, and put back as it was whatever ends or stops it.

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::{Position, Rect};
use std::io::{self, Stdout};
use std::mem::ManuallyDrop;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the terminal is taken. A panic in any thread puts it back, and there is one terminal in a process.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The taken terminal; dropping it gives it back.
pub(super) struct Screen {
    /// Never dropped: it would complain on stderr where its cursor cannot be shown, and to complain to a terminal that is gone
    /// is a panic.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// It cannot be set, or takes no bytes.
    pub(super) fn take() -> io::Result<Screen> {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |what| {
            give_back();
            before(what);
        }));
        take()?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()));
        terminal.map(|terminal| Screen { terminal: ManuallyDrop::new(terminal) }).inspect_err(|_| give_back())
    }

    /// Draws a frame. Nothing is written where nothing has changed.
    pub(super) fn draw(&mut self, frame: impl FnOnce(&mut ratatui::Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(frame).map(|_| ())
    }

    /// Takes the terminal anew, after something else had it, and forgets what was on it. A shell may have set it otherwise
    /// meanwhile, so it is given back first.
    pub(super) fn retake(&mut self) -> io::Result<()> {
        give_back();
        take()?;
        // Not `clear`, which asks the terminal where its cursor is: the answer would come to the thread that reads keys.
        let area = Rect::from((Position::ORIGIN, self.terminal.size()?));
        self.terminal.resize(area)
    }

    /// Gives the terminal back for a while.
    pub(super) fn lend(&mut self) {
        give_back();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn take() -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()
        .and_then(|()| execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste))
        .inspect_err(|_| give_back())
}

fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // A terminal that is gone has nothing to be put back.
        let _gone = execute!(io::stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
        let _gone = disable_raw_mode();
    }
}
