//! A terminal that has lines above and a tree below: whoever writes lines takes the tree away first and puts it back
//! after, in one write, so that nothing flickers and nothing is left behind.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The terminal, shared by the log, the tree and the answer.
#[derive(Debug, Clone)]
pub struct Screen(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    terminal: File,
    /// Lines of the tree that are on the terminal.
    drawn: usize,
    tree: Vec<String>,
}

impl Screen {
    /// A terminal on which nothing is drawn.
    pub(super) fn new(terminal: File) -> Screen {
        Screen(Arc::new(Mutex::new(State { terminal, drawn: 0, tree: Vec::new() })))
    }

    /// Draws the tree in place of the one before. Nothing is written when both are the same.
    pub(super) fn draw(&self, tree: Vec<String>) -> io::Result<()> {
        let mut state = self.lock();
        if state.drawn == tree.len() && state.tree == tree {
            return Ok(());
        }
        state.tree = tree;
        state.write_above(b"")
    }

    /// The terminal's size in columns and rows; `None` when it says none.
    pub(super) fn size(&self) -> Option<(usize, usize)> {
        let size = rustix::termios::tcgetwinsize(&self.lock().terminal).ok()?;
        (size.ws_col > 0 && size.ws_row > 0).then_some((usize::from(size.ws_col), usize::from(size.ws_row)))
    }

    /// Takes the tree away, lets `write` print whole lines to the same terminal by its own way, and puts it back.
    pub fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        let mut state = self.lock();
        let tree = std::mem::take(&mut state.tree);
        // A terminal that takes nothing any more shows no tree either.
        let _gone = state.write_above(b"");
        let written = write();
        state.tree = tree;
        let _gone = state.write_above(b"");
        written
    }

    /// A writer of whole lines for the log.
    pub(super) fn lines(&self) -> Lines {
        Lines(self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Writes lines where the tree is, and the tree below them, in one go. Each line is written over what was there and
    /// cleared to its end: terminals that clear a whole screen keep what was on it as history, one copy a frame.
    fn write_above(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::new();
        if self.drawn > 0 {
            bytes.extend_from_slice(format!("\x1b[{}F", self.drawn).as_bytes());
        }
        let lines = lines.strip_suffix(b"\n").unwrap_or(lines);
        let above = lines.split(|byte| *byte == b'\n').filter(|_| !lines.is_empty());
        let mut written = 0;
        for line in above.chain(self.tree.iter().map(String::as_bytes)) {
            bytes.extend_from_slice(line);
            bytes.extend_from_slice(if self.drawn > 0 { b"\x1b[K\n" } else { b"\n" });
            written += 1;
        }
        bytes.extend_from_slice(match (self.drawn, written) {
            (0, _) => b"".as_slice(),
            // Nothing in its place: the first line by itself, the rest from the second on.
            (1, 0) => b"\x1b[K",
            (_, 0) => b"\x1b[K\x1b[1E\x1b[J\x1b[1F",
            (_, _) => b"\x1b[J",
        });
        self.drawn = self.tree.len();
        self.terminal.write_all(&bytes)?;
        self.terminal.flush()
    }
}

/// See [`Screen::lines`].
pub struct Lines(Screen);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write_above(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::io::Seek;

    fn written(file: &mut File) -> String {
        let mut text = String::new();
        file.rewind().expect("a file");
        file.read_to_string(&mut text).expect("text");
        text
    }

    #[test]
    fn lines_go_above_the_tree_and_an_equal_tree_is_not_drawn_again() {
        let mut file = tempfile::tempfile().expect("a file");
        let screen = Screen::new(file.try_clone().expect("a clone"));
        let tree = || vec!["one".to_owned(), "two".to_owned()];
        screen.draw(tree()).expect("drawn");
        screen.draw(tree()).expect("drawn");
        assert_eq!(written(&mut file), "one\ntwo\n");
        screen.lines().write_all(b"a log line\n").expect("written");
        assert_eq!(written(&mut file), "one\ntwo\n\x1b[2Fa log line\x1b[K\none\x1b[K\ntwo\x1b[K\n\x1b[J");
        screen.draw(Vec::new()).expect("drawn");
        assert!(
            written(&mut file).ends_with("\x1b[2F\x1b[K\x1b[1E\x1b[J\x1b[1F"),
            "taken away, nothing left"
        );
    }

    #[test]
    fn what_is_printed_aside_stands_between_the_trees() {
        let mut file = tempfile::tempfile().expect("a file");
        let screen = Screen::new(file.try_clone().expect("a clone"));
        screen.draw(vec!["tree".to_owned()]).expect("drawn");
        let mut other = file.try_clone().expect("a clone");
        screen.aside(|| other.write_all(b"the answer\n").expect("written"));
        assert_eq!(written(&mut file), "tree\n\x1b[1F\x1b[Kthe answer\ntree\n");
    }
}
