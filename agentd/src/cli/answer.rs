//! How an answer is printed: to stdout, and nothing else goes there.

use super::exit;
use crate::supervise::{self, Supervisor};
use crate::tree::Screen;
use agentd_core::action::Costliest;
use agentd_core::preview::misleads;
use agentd_core::record::{ResultObject, Tokens, UsageSum};
use serde_json::Value;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::thread::{self, JoinHandle};

/// The answer for a person or a pipe: text as it is, anything else as one line of JSON, nothing when there is
/// none.
pub(super) fn text(result: &ResultObject) -> String {
    match &result.result {
        Value::Null => String::new(),
        Value::String(text) => line(text),
        value => line(&value.to_string()),
    }
}

/// The same for a terminal: nothing in it acts on the terminal, whatever a model or tool wrote.
pub(super) fn text_for_terminal(result: &ResultObject) -> String {
    harmless(&text(result))
}

/// Foreign text of which nothing acts on a terminal.
pub(super) fn harmless(text: &str) -> String {
    let escape = |c: char| match c {
        '\n' | '\t' => c.to_string(),
        c if c.is_control() || misleads(c) => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

/// The whole result object as one line of JSON, with `more` keys.
pub(super) fn object(result: &ResultObject, more: &[(&str, Value)]) -> String {
    let mut value = serde_json::to_value(result).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        fields.extend(more.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    }
    line(&value.to_string())
}

/// What a run took, in one line for people.
pub(super) fn cost(result: &ResultObject, costliest: Option<Costliest>) -> String {
    let (evidence, usage) = (&result.evidence, &result.usage);
    let seconds = evidence.duration_ms / 1000;
    let tenths = evidence.duration_ms % 1000 / 100;
    let most = costliest.map_or_else(String::new, |run| {
        let tokens = run.own.input.saturating_add(run.own.output);
        format!("; costliest {}: {tokens} tokens{}", run.handle, money(&run.own))
    });
    format!(
        "{} after {seconds}.{tenths} s: {}, {}, {}, {}{}{most}",
        result.status.name(),
        counted(evidence.model_calls, "model call"),
        counted(evidence.tool_calls, "tool call"),
        counted(evidence.children, "subagent"),
        tokens(usage),
        money(&usage.subtree),
    )
}

/// What was paid, where anything has a price.
fn money(tokens: &Tokens) -> String {
    match (tokens.usd.nanos(), tokens.unpriced) {
        (0, _) => String::new(),
        (_, false) => format!(", {}", tokens.usd),
        (_, true) => format!(", {} and what models without a price cost", tokens.usd),
    }
}

/// An answer on its way to stdout while runs that nobody waits for go on. A thread of its own writes it: a reader
/// that does not read must not keep the supervisor from its work.
#[derive(Debug, Default)]
pub(super) struct Printing {
    /// Where the tree is drawn, when that may be the terminal that stdout is.
    screen: Option<Screen>,
    thread: Option<JoinHandle<io::Result<()>>>,
    /// Where there is no thread to be had, at the end.
    later: Option<String>,
}

impl Printing {
    /// Nothing to print yet; `screen` is where the tree is drawn.
    pub(super) fn beside(screen: Option<Screen>) -> Printing {
        Printing { screen: screen.filter(|_| io::stdout().is_terminal()), ..Printing::default() }
    }

    /// Begins to print.
    pub(super) fn begin(&mut self, text: String) {
        let (theirs, screen) = (text.clone(), self.screen.clone());
        let write = move || match screen {
            Some(screen) => screen.aside(|| print(&theirs)),
            None => print(&theirs),
        };
        match thread::Builder::new().name("agentd:answer".into()).spawn(write) {
            Ok(thread) => self.thread = Some(thread),
            Err(_) => self.later = Some(text),
        }
    }

    /// Waits until it is printed, and says whether it could be.
    pub(super) fn end(self) -> io::Result<()> {
        match (self.thread, self.later) {
            (Some(thread), _) => {
                thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that prints it ended")))
            }
            (None, Some(text)) => print(&text),
            (None, None) => Ok(()),
        }
    }
}

/// Ends the supervisor and gives the exit code: `code`, unless the answer could not be printed.
pub(super) fn end(supervisor: Supervisor, printed: &io::Result<()>, code: u8) -> u8 {
    report(&supervisor, printed);
    supervisor.close();
    if printed.is_ok() { code } else { exit::FAILED }
}

/// Says that an answer could not be printed. It goes through the log, like all a supervisor says: whoever stopped
/// reading stderr must not keep the process from its end.
pub(super) fn report(supervisor: &Supervisor, printed: &io::Result<()>) {
    if let Err(error) = printed {
        supervisor.print(format!("agentd: the answer cannot be written to stdout: {error}"));
    }
}

/// Ends a supervisor whose loop could not go on.
pub(super) fn failed(supervisor: Supervisor, error: &supervise::Error) -> u8 {
    supervisor.print(format!("agentd: {error}"));
    supervisor.close();
    exit::FAILED
}

/// Prints what a command is for, and gives `code` unless that is not possible.
pub(super) fn only(text: &str, code: u8) -> u8 {
    match print(text) {
        Ok(()) => code,
        Err(error) => {
            eprintln!("agentd: cannot write to stdout: {error}");
            exit::FAILED
        }
    }
}

/// That nothing could be printed. Known before any work is done for it: std has opened `/dev/null` in the place of a
/// stdout that was closed, and every write to it succeeds.
pub(super) fn possible() -> Result<(), io::Error> {
    if agentd_host::inherited::stdout_was_closed() {
        return Err(io::Error::other(
            "it was closed when agentd was started; redirect it to a file, or to /dev/null",
        ));
    }
    Ok(())
}

/// Writes to stdout. A reader that has left is no error: it has chosen to.
pub(super) fn print(text: &str) -> Result<(), io::Error> {
    possible()?;
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn line(text: &str) -> String {
    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

fn counted(n: u32, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// `1 process`, `2 processes`.
pub(super) fn processes(n: usize) -> String {
    format!("{n} process{}", if n == 1 { "" } else { "es" })
}

fn tokens(usage: &UsageSum) -> String {
    let sum = &usage.subtree;
    let about = if sum.estimated { "about " } else { "" };
    format!("{about}{} tokens in and {} out", sum.input, sum.output)
}

/// A process that is no supervisor: a journal that cannot be written is the caller's to mend.
pub(super) fn not_started(error: &supervise::Error) -> u8 {
    eprintln!("agentd: {error}");
    match error {
        supervise::Error::Journal(_) => exit::USAGE,
        supervise::Error::Store(_) => exit::SERVER,
        supervise::Error::Start { .. }
        | supervise::Error::System(_)
        | supervise::Error::Driver(_)
        | supervise::Error::Prompt(_)
        | supervise::Error::Spent => exit::FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::id::{Handle, RunId};
    use agentd_core::money::Usd;
    use agentd_core::record::{Evidence, Status};
    use agentd_core::rng::Rng;
    use agentd_core::time::Wall;
    use serde_json::json;

    fn result(value: Value) -> ResultObject {
        let tokens = Tokens { input: 1200, output: 1, cached: 0, estimated: true, ..Tokens::default() };
        ResultObject {
            handle: None,
            run_id: RunId::mint(Wall(0), &mut Rng::new(1)),
            status: Status::Completed,
            result: value,
            partial: false,
            error: None,
            usage: UsageSum { own: Tokens::default(), subtree: tokens },
            evidence: Evidence {
                model_calls: 1,
                tool_calls: 2,
                tool_errors: 0,
                children: 0,
                duration_ms: 1_250,
            },
            attempt: 1,
        }
    }

    #[test]
    fn an_answer_is_itself_and_ends_its_line() {
        assert_eq!(text(&result(json!("42"))), "42\n");
        assert_eq!(text(&result(json!("a\nb\n"))), "a\nb\n");
        assert_eq!(text(&result(json!({"b": [1]}))), "{\"b\":[1]}\n");
        assert_eq!(text(&result(Value::Null)), "");
        let evil = result(json!("a\tb\n\u{1b}]0;title\u{7}\u{202e}ü"));
        assert_eq!(text_for_terminal(&evil), "a\tb\n\\u{1b}]0;title\\u{7}\\u{202e}ü\n");
    }

    #[test]
    fn the_object_has_the_records_field_names() {
        let value: Value =
            serde_json::from_str(&object(&result(json!("x")), &[("processes_left", 0.into())])).unwrap();
        for key in ["run_id", "status", "result", "partial", "error", "usage", "evidence", "attempt"] {
            assert!(value.get(key).is_some(), "{key}");
        }
        assert_eq!((&value["status"], &value["processes_left"]), (&json!("completed"), &json!(0)));
    }

    #[test]
    fn cost_is_one_line() {
        assert_eq!(
            cost(&result(Value::Null), None),
            "completed after 1.2 s: 1 model call, 2 tool calls, 0 subagents, about 1200 tokens in and 1 out"
        );
        let mut paid = result(Value::Null);
        paid.usage.subtree.usd = Usd::from_nanos(12_300_000);
        let own = Tokens {
            input: 800,
            output: 40,
            usd: Usd::from_nanos(9_000_000),
            unpriced: true,
            ..Tokens::default()
        };
        let line = cost(&paid, Some(Costliest { handle: Handle(3), own }));
        let end = "1200 tokens in and 1 out, $0.0123; costliest sub-3: 840 tokens, $0.0090 and what models without a \
                   price cost";
        assert!(line.ends_with(end), "{line}");
    }
}
