//! Splits a byte stream into lines and holds at most one line plus what was pushed last. A line is over the
//! limit by its own length alone, so the verdict is the same however the bytes were cut. Called by the client.

/// A line passed the limit; nothing after it can be trusted to start where a line starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLong;

/// Capacity that stays with an idle connection; a long line's buffer is given back.
const KEPT: usize = 64 * 1024;

/// The splitter. After [`TooLong`] it yields nothing more.
#[derive(Debug)]
pub(super) struct Lines {
    limit: usize,
    buf: Vec<u8>,
    /// Where the line being looked for begins.
    start: usize,
    /// Up to here there is no newline after `start`.
    searched: usize,
    over: bool,
}

impl Lines {
    /// Lines of at most `limit` bytes, the newline not counted.
    pub(super) const fn new(limit: usize) -> Lines {
        Lines { limit, buf: Vec::new(), start: 0, searched: 0, over: false }
    }

    /// Takes bytes cut anywhere.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.over {
            return;
        }
        if self.start == self.buf.len() && self.buf.capacity() > KEPT {
            self.buf = Vec::new();
        } else {
            self.buf.drain(..self.start);
        }
        self.searched -= self.start;
        self.start = 0;
        self.buf.extend_from_slice(bytes);
    }

    /// The next whole line without its newline.
    pub(super) fn next(&mut self) -> Option<Result<&[u8], TooLong>> {
        if self.over {
            return None;
        }
        let newline = self.buf[self.searched..].iter().position(|&b| b == b'\n').map(|at| self.searched + at);
        let end = newline.unwrap_or(self.buf.len());
        self.searched = end;
        if end - self.start > self.limit {
            self.over = true;
            self.buf = Vec::new();
            return Some(Err(TooLong));
        }
        newline?;
        let line = self.start..end;
        self.start = end + 1;
        self.searched = self.start;
        Some(Ok(&self.buf[line]))
    }

    /// What came after the last newline; the stream has ended. Empty when it ended with a line.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let rest = self.buf.split_off(self.start.min(self.buf.len()));
        *self = Lines::new(self.limit);
        self.over = true;
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(limit: usize, chunks: &[&[u8]]) -> (Vec<Vec<u8>>, bool, Vec<u8>) {
        let (mut lines, mut seen, mut over) = (Lines::new(limit), Vec::new(), false);
        for chunk in chunks {
            lines.push(chunk);
            while let Some(line) = lines.next() {
                match line {
                    Ok(line) => seen.push(line.to_vec()),
                    Err(TooLong) => over = true,
                }
            }
        }
        (seen, over, lines.finish())
    }

    #[test]
    fn lines_come_out_whole_whatever_the_cuts() {
        let want = (vec![b"ab".to_vec(), vec![], b"c".to_vec()], false, b"de".to_vec());
        assert_eq!(all(8, &[b"ab\n\nc\nde"]), want);
        let bytes: Vec<&[u8]> = b"ab\n\nc\nde".chunks(1).collect();
        assert_eq!(all(8, &bytes), want);
    }

    #[test]
    fn the_limit_is_exact_with_and_without_a_newline() {
        assert_eq!(all(4, &[b"abcd\n"]).0, [b"abcd"]);
        assert_eq!(all(4, &[b"abcd"]), (vec![], false, b"abcd".to_vec()));
        for chunks in [vec![&b"x\nabcde\ny\n"[..]], b"x\nabcde\ny\n".chunks(1).collect(), vec![b"x\nabcde"]] {
            assert_eq!(all(4, &chunks), (vec![b"x".to_vec()], true, vec![]));
        }
    }

    #[test]
    fn nothing_is_kept_after_a_line_that_is_too_long() {
        let mut lines = Lines::new(4);
        lines.push(b"abcdefgh");
        assert_eq!(lines.next(), Some(Err(TooLong)));
        lines.push(b"\nok\n");
        assert_eq!(lines.next(), None);
        assert_eq!(lines.buf.capacity(), 0);
    }
}
