//! The built-in file server: MCP of the `initialize` era on stdin and stdout over one folder (S17.1b). Every
//! path is walked name by name below the opened root, so nothing outside it is reached through `..`, a link or
//! a race; what is neither file nor folder is refused. One thread, no state but what was read (for `edit`);
//! how long a call may take is the caller's to decide. Called by `agentd mcp serve-files` and by a child's
//! keeper for `builtin: files`.
//!
//! | file | owns |
//! |---|---|
//! | `rpc` | JSON-RPC messages in, answers out |
//! | `params` | tool parameters: one table gives schema and checks |
//! | `tools` | the tools' names, words and dispatch |
//! | `root` | paths: from what was asked to an opened thing below the root |
//! | `walk` | every file below a folder, without following links |
//! | `grep`, `glob`, `list`, `read`, `edit` | the tools |
//! | `report` | bounds on what a result holds, failures in words |

mod edit;
mod glob;
mod grep;
mod list;
mod params;
mod read;
mod report;
mod root;
mod rpc;
mod tools;
mod walk;

#[cfg(test)]
mod tests;

use agentd_core::limits;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

/// Serves `root` until `input` ends; with `write` the tools that change files are offered too.
///
/// # Errors
/// The root cannot be opened as a folder, a request is longer than [`limits::MCP_LINE_BYTES`], or a pipe fails.
/// A reader that went away is an end, not an error.
pub fn serve(root: &Path, write: bool, input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut server = rpc::Server::new(root::Root::open(root)?, write);
    let mut input = BufReader::with_capacity(64 * 1024, input);
    let mut line = Vec::new();
    while next_line(&mut input, &mut line)? {
        let Some(mut answer) = server.answer(&line) else { continue };
        answer.push(b'\n');
        match output.write_all(&answer).and_then(|()| output.flush()) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// The next line into `line`; a last one without a newline counts. `false` at the end of the input.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    let most = limits::MCP_LINE_BYTES;
    line.clear();
    input.take(most as u64 + 2).read_until(b'\n', line)?;
    if line.is_empty() {
        return Ok(false);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    if line.len() > most {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a request is longer than {most} bytes"),
        ));
    }
    Ok(true)
}
