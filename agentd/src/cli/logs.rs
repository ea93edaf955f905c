//! `agentd logs`: what was logged of one run, and with `--follow` what is logged next.

use super::args::{CONTROL_CODES, ControlArgs};
use super::control::{Done, with};
use super::{answer, exit};
use crate::client::{ClientError, Daemon, Kept, event};
use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use std::io;
use std::time::Duration;

/// How long one request waits for the next event. It goes on with another, so this is how long it takes to notice that nobody
/// reads stdout any more.
const WAIT: &str = "10s";

/// Between two requests where as many wait at the daemon as may.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
#[command(after_help = CONTROL_CODES)]
pub(super) struct LogsArgs {
    /// A run, such as sub-7, or `root` for the conversation.
    #[arg(value_name = "HANDLE")]
    handle: String,
    /// The newest so many, 1 to 1000; by default all that are kept, without --follow at most 1000.
    #[arg(long, value_name = "N")]
    lines: Option<u64>,
    /// Go on with what is logged next, until the run has ended (exit code 0) or Ctrl-C. Ends with 6 where the daemon goes away.
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    control: ControlArgs,
}

/// `logs`.
pub(super) fn logs(args: LogsArgs) -> u8 {
    let LogsArgs { handle, lines, follow, control } = args;
    with(control, |daemon, json| {
        let mut asked = json!({ "handle": handle });
        match lines {
            Some(lines) => asked["lines"] = lines.into(),
            // All that are kept, oldest first, and then what comes.
            None if follow => asked["after"] = 0.into(),
            None => {}
        }
        let told = daemon.op("logs", asked)?;
        let code = print(&told, json, follow);
        if code == exit::COMPLETED && follow { go_on(daemon, &handle, told, json) } else { Ok(code) }
    })
}

/// Prints what comes after `page`, until there is nothing more to come or nobody reads it.
fn go_on(daemon: &Daemon, handle: &str, mut page: Value, json: bool) -> Done {
    let mut kept = daemon.keep();
    while page["ended"] != true {
        if reader_has_gone() {
            return Ok(exit::COMPLETED);
        }
        page = match next(&mut kept, handle, &page["last"]) {
            Ok(page) => page,
            Err(ClientError::Broken(why)) => {
                eprintln!(
                    "agentd: the daemon has gone ({why}); what was logged after this is in its own log"
                );
                return Ok(exit::SERVER);
            }
            Err(error) => return Err(error),
        };
        let code = print(&page, json, true);
        if code != exit::COMPLETED {
            return Ok(code);
        }
    }
    Ok(exit::COMPLETED)
}

/// What comes after this event, which is waited for.
fn next(kept: &mut Kept<'_>, handle: &str, last: &Value) -> Result<Value, ClientError> {
    match kept.op("logs", json!({ "handle": handle, "after": last, "wait": WAIT })) {
        Err(ClientError::Refused { gate, .. }) if gate == "followers" => {
            std::thread::sleep(PAUSE);
            kept.op("logs", json!({ "handle": handle, "after": last }))
        }
        told => told,
    }
}

/// Prints one page and gives the exit code. Whoever follows in JSON is told in JSON what is left out.
fn print(page: &Value, json: bool, follows: bool) -> u8 {
    let mut text = String::new();
    let lost = page["lost"].as_u64().unwrap_or(0);
    if lost > 0 {
        eprintln!("agentd: {lost} earlier events are no longer kept and are left out");
        if json && follows {
            text.push_str(&format!("{}\n", json!({ "lost": lost })));
        }
    }
    for event in page["events"].as_array().into_iter().flatten() {
        let line = if json { event.to_string() } else { event::line(event) };
        text.push_str(&line);
        text.push('\n');
    }
    answer::only(&text, exit::COMPLETED)
}

/// Whoever read stdout has closed it. A terminal or a file never has.
fn reader_has_gone() -> bool {
    let stdout = io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&at_once)).is_ok() && fds[0].revents().contains(PollFlags::ERR)
}
