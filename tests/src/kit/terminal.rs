//! A program on a real pseudo-terminal: what is on its screen, keys for it, and how it leaves the terminal.

use super::PATIENCE;
use super::processes::{self, State, look, open};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr, tcsetwinsize};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Instant;

/// A program with a terminal of its own.
pub struct OnTerminal {
    process: Child,
    held: OwnedFd,
    /// The terminal's other end; gone once it was hung up.
    master: Option<File>,
    /// Reads what is drawn until the other end of the pair is dropped.
    reader: Option<(JoinHandle<()>, UnixStream)>,
    /// The program's end, held open so that its settings can be read when the program has gone.
    slave: Option<OwnedFd>,
    before: Termios,
    screen: Screen,
}

#[derive(Clone)]
struct Screen(Arc<(Mutex<vt100::Parser>, Condvar)>);

impl OnTerminal {
    /// Starts `command` on a terminal of this size, in a session of its own whose terminal it is: like a shell's, but
    /// with settings that no program sets by itself, so that a default is not taken for what was before.
    pub fn start(mut command: Command, columns: u16, rows: u16) -> OnTerminal {
        let (master, slave) = terminal(columns, rows);
        let mut odd = tcgetattr(&slave).expect("settings");
        odd.special_codes[rustix::termios::SpecialCodeIndex::VERASE] = b'#';
        tcsetattr(&slave, OptionalActions::Now, &odd).expect("set");
        let before = tcgetattr(&slave).expect("settings");
        // `setsid --ctty` makes what is its stdin the controlling terminal.
        let end = || slave.try_clone().expect("a clone");
        let mut wrapped = Command::new("setsid");
        wrapped.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args());
        wrapped.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(folder) = command.get_current_dir() {
            wrapped.current_dir(folder);
        }
        command = wrapped;
        let process = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("it starts");
        let held = open(i32::try_from(process.id()).expect("a pid")).expect("it is there");
        let screen = Screen(Arc::new((
            Mutex::new(vt100::Parser::new(cells(rows), cells(columns), 0)),
            Condvar::new(),
        )));
        let (reader, theirs) = (File::from(master.try_clone().expect("a clone")), screen.clone());
        let (ours, stop) = UnixStream::pair().expect("a pair");
        let reader = std::thread::spawn(move || theirs.read(reader, &stop));
        let (master, slave) = (Some(File::from(master)), Some(slave));
        OnTerminal { process, held, master, reader: Some((reader, ours)), slave, before, screen }
    }

    /// The program's number: it is what `setsid` became, or its child where `setsid` had to fork.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.process.id()).expect("a pid")
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        let master = self.master.as_mut().expect("it was not hung up");
        master.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Makes the terminal another size, as a window does.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.screen.lock().screen_mut().set_size(cells(rows), cells(columns));
        let master = self.master.as_ref().expect("it was not hung up");
        tcsetwinsize(master, size(columns, rows)).expect("resized");
    }

    /// Signals the program.
    pub fn signal(&self, signal: Signal) {
        processes::send(&self.held, signal);
    }

    /// What is on the screen, once `wanted` holds of it.
    ///
    /// # Panics
    /// When it does not in time: with the screen.
    pub fn wait_for(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        let mut screen = self.screen.lock();
        loop {
            let seen = screen.screen().contents();
            if wanted(&seen) {
                return seen;
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what} is not on the screen:\n{seen}");
            screen = self.screen.0.1.wait_timeout(screen, left).unwrap_or_else(|e| e.into_inner()).0;
        }
    }

    /// What is on the screen, once it holds this text.
    pub fn wait_for_text(&self, text: &str) -> String {
        self.wait_for(text, |seen| seen.contains(text))
    }

    /// Whether anything on the screen has a colour.
    pub fn has_colors(&self) -> bool {
        let screen = self.screen.lock();
        let (rows, columns) = screen.screen().size();
        let places = (0..rows.get()).flat_map(|row| (0..columns.get()).map(move |column| (row, column)));
        places
            .filter_map(|(row, column)| screen.screen().cell(row, column))
            .any(|cell| cell.fgcolor() != vt100::Color::Default || cell.bgcolor() != vt100::Color::Default)
    }

    /// Whether the program has a screen of its own beside the one of before.
    pub fn has_own_screen(&self) -> bool {
        self.screen.lock().screen().alternate_screen()
    }

    /// Waits until the program has been stopped by a signal.
    ///
    /// # Panics
    /// When it is not in time.
    pub fn wait_for_stop(&self) {
        let until = Instant::now() + PATIENCE;
        while look(self.pid()).is_none_or(|process| process.state != State::Stopped) {
            assert!(Instant::now() < until, "it does not stop");
            std::thread::yield_now();
        }
    }

    /// Closes the terminal, as a window that is closed or a connection that breaks does.
    pub fn hang_up(&mut self) {
        // Whoever holds an end of it holds it open.
        (self.master, self.slave) = (None, None);
        let (reader, ours) = self.reader.take().expect("it is hung up once");
        drop(ours);
        reader.join().expect("it ends");
    }

    /// Fails unless the terminal is set as it was before the program, with the screen of before and its cursor.
    pub fn assert_as_before(&self) {
        let now = tcgetattr(self.slave.as_ref().expect("it was not hung up")).expect("settings");
        assert_eq!(format!("{now:?}"), format!("{:?}", self.before), "the terminal's settings");
        self.wait_for_end_of_screen();
    }

    fn wait_for_end_of_screen(&self) {
        let until = Instant::now() + PATIENCE;
        let mut screen = self.screen.lock();
        while screen.screen().alternate_screen()
            || screen.screen().hide_cursor()
            || screen.screen().bracketed_paste()
        {
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the screen of before is not back:\n{}", screen.screen().contents());
            screen = self.screen.0.1.wait_timeout(screen, left).unwrap_or_else(|e| e.into_inner()).0;
        }
    }

    /// The program's exit code, once it has ended; a signal is 128 and its number.
    ///
    /// # Panics
    /// When it does not end in time.
    pub fn wait(&mut self) -> i32 {
        let seen = || self.screen.lock().screen().contents();
        assert!(processes::ended(&self.held, Instant::now() + PATIENCE), "it does not end:\n{}", seen());
        let status = self.process.wait().expect("it has ended");
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
    }
}

impl Drop for OnTerminal {
    /// A test that failed leaves nothing behind either.
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            processes::send(&self.held, Signal::KILL);
            drop(self.process.wait());
        }
    }
}

impl Screen {
    fn lock(&self) -> MutexGuard<'_, vt100::Parser> {
        self.0.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn read(&self, mut from: File, stop: &UnixStream) {
        let mut bytes = [0; 4096];
        loop {
            let mut fds = [PollFd::new(&from, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
            let woken = poll(&mut fds, None);
            if woken.is_ok() && !fds[1].revents().is_empty() {
                break;
            }
            match from.read(&mut bytes) {
                Ok(0) => break,
                Ok(read) => self.lock().process(&bytes[..read]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Nobody has the other end any more.
                Err(_) => break,
            }
            self.0.1.notify_all();
        }
    }
}

/// Both ends of a new terminal. No program that is started meanwhile inherits one of them and keeps it open.
fn terminal(columns: u16, rows: u16) -> (OwnedFd, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).expect("a terminal");
    grantpt(&master).and_then(|()| unlockpt(&master)).expect("it may be opened");
    let name = ptsname(&master, Vec::new()).expect("it has a name");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(name, flags, Mode::empty()).expect("its other end");
    tcsetwinsize(&master, size(columns, rows)).expect("it has a size");
    (master, slave)
}

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).expect("a screen has cells")
}

fn size(columns: u16, rows: u16) -> rustix::termios::Winsize {
    rustix::termios::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}
