//! The ways in which the server misbehaves, as arguments: `--mode NAME` or `--mode NAME=VALUE`, any number of
//! them together.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// One way to misbehave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// Behaves.
    Ok,
    /// Takes a call and never answers it; anything else is answered.
    HangOnCall,
    /// Exits with this code when a call comes in.
    DieOnCall(u8),
    /// Exits with this code once `initialize` is answered.
    DieAfterInit(u8),
    /// Exits with this code instead of answering `tools/list`.
    DieDuringList(u8),
    /// What it does with a first request that is not `initialize`: see [`Unknown`].
    OnUnknown(Unknown),
    /// Says a last word on stderr and exits with this code before anything else.
    Exit(u8),
    /// Answers `initialize` after so many milliseconds.
    SlowInit(u64),
    /// SIGTERM does nothing.
    IgnoreTerm,
    /// The end of stdin does nothing.
    IgnoreEof,
    /// Leaves for a session of its own.
    Setsid,
    /// Leaves a process behind that nobody's group, session or pipe holds, for so many seconds.
    DoubleForkSleeper(u64),
    /// Leaves so many processes behind that exit as soon as they are orphans.
    Orphans(u64),
    /// Writes so many bytes to stderr at the start and in every call.
    StderrFlood(u64),
    /// Writes them without a newline.
    StderrNoNewline,
    /// Puts lines that are no messages before every answer.
    StdoutJunk,
    /// A call's answer is one line of exactly so many bytes, the newline not counted.
    HugeLine(u64),
    /// A call's answer never ends.
    EndlessLine,
    /// Every byte is a write of its own.
    ByteAtATime,
    /// Every answer comes twice.
    DuplicateIds,
    /// A call's answer comes after others with ids that nobody asked for.
    WrongIds,
    /// Closes stdout when a call comes in, and lives on.
    CloseStdoutLive,
    /// Closes stdin once `tools/list` is answered, and lives on.
    CloseStdinLive,
    /// A call's answer comes inside a batch first, then by itself.
    Batch,
    /// So many notifications come before a call's answer.
    NotificationFlood(u64),
    /// Asks for `ping`, roots, sampling and elicitation, and answers the call when all are answered.
    ServerRequests,
    /// Answers `initialize` with this protocol version.
    WrongVersion(String),
    /// The first call is answered late; all others at once.
    LateAnswer(Late),
    /// Offers so many tools more, with 2 KB schemas.
    ManyTools(u64),
    /// Lists its tools in pages of so many.
    PageSize(u64),
    /// The last page's cursor leads to the first page.
    CursorLoop,
    /// A call's answer is a text of so many bytes.
    BigResult(u64),
    /// Offers the tool `dump`.
    Dump,
}

/// What an older server may do with a request that it does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// Exits with this code.
    Exit(u8),
    /// Answers with this error's code, and exits with status 1.
    AnswerAndExit(i32),
    /// Answers with this error's code.
    Error(i32),
    /// Says nothing.
    Silence,
    /// Prints what is no message.
    Junk,
    /// Answers with another id.
    OtherId,
    /// Answers with an empty result.
    Empty,
}

impl Unknown {
    const WORDS: [(&str, Unknown); 4] = [
        ("silence", Unknown::Silence),
        ("junk", Unknown::Junk),
        ("other-id", Unknown::OtherId),
        ("empty", Unknown::Empty),
    ];

    fn parse(text: &str) -> Option<Unknown> {
        if let Some((_, word)) = Unknown::WORDS.iter().find(|(name, _)| *name == text) {
            return Some(*word);
        }
        let (name, number) = text.split_once(':')?;
        match name {
            "exit" => number.parse().ok().map(Unknown::Exit),
            "answer-and-exit" => number.parse().ok().map(Unknown::AnswerAndExit),
            "error" => number.parse().ok().map(Unknown::Error),
            _ => None,
        }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unknown::Exit(code) => write!(f, "exit:{code}"),
            Unknown::AnswerAndExit(code) => write!(f, "answer-and-exit:{code}"),
            Unknown::Error(code) => write!(f, "error:{code}"),
            word => f.write_str(Unknown::WORDS.iter().find(|(_, w)| w == word).map_or("", |(name, _)| name)),
        }
    }
}

/// When a late answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// After so many milliseconds.
    Millis(u64),
    /// When the next call has come in, before its answer: `late-answer=next`.
    NextCall,
}

/// What the server was started with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// How it misbehaves.
    pub modes: Vec<Mode>,
    /// Every message that comes in is appended here, one JSON text a line.
    pub log: Option<PathBuf>,
    /// Process ids, one a line: its own first, then those it leaves behind.
    pub pids: Option<PathBuf>,
    /// Made when the server begins to read.
    pub ready_file: Option<PathBuf>,
}

impl Options {
    /// Reads arguments, the program's name left out.
    ///
    /// # Errors
    /// A sentence on the argument that is not understood.
    pub fn parse(args: impl IntoIterator<Item = String>) -> Result<Options, String> {
        let (mut options, mut args) = (Options::default(), args.into_iter());
        while let Some(flag) = args.next() {
            let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
            match flag.as_str() {
                "--mode" => options.modes.push(value.parse()?),
                "--log" => options.log = Some(value.into()),
                "--pids" => options.pids = Some(value.into()),
                "--ready-file" => options.ready_file = Some(value.into()),
                other => return Err(format!("{other} is none of --mode --log --pids --ready-file")),
            }
        }
        Ok(options)
    }

    /// The arguments that [`Options::parse`] reads back.
    pub fn args(&self) -> Vec<String> {
        let mut args: Vec<String> =
            self.modes.iter().flat_map(|m| ["--mode".to_owned(), m.to_string()]).collect();
        for (flag, path) in [("--log", &self.log), ("--pids", &self.pids), ("--ready-file", &self.ready_file)]
        {
            args.extend(path.iter().flat_map(|p| [flag.to_owned(), p.to_string_lossy().into_owned()]));
        }
        args
    }

    /// Whether this mode is on.
    pub(super) fn has(&self, mode: &Mode) -> bool {
        self.modes.contains(mode)
    }

    /// The first value that `pick` takes out of a mode.
    pub(super) fn find<T>(&self, pick: impl Fn(&Mode) -> Option<T>) -> Option<T> {
        self.modes.iter().find_map(pick)
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Mode, String> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let number = |default: Option<u64>| match value {
            Some(value) => value.parse().map_err(|e| format!("--mode {text}: {e}")),
            None => default.ok_or_else(|| format!("--mode {name} needs =NUMBER")),
        };
        let code = |default: u8| {
            number(Some(default.into()))
                .and_then(|n| u8::try_from(n).map_err(|e| format!("--mode {text}: {e}")))
        };
        Ok(match name {
            "ok" => Mode::Ok,
            "hang-on-call" => Mode::HangOnCall,
            "die-on-call" => Mode::DieOnCall(code(3)?),
            "die-after-init" => Mode::DieAfterInit(code(3)?),
            "die-during-list" => Mode::DieDuringList(code(0)?),
            "on-unknown" => Mode::OnUnknown(
                value.and_then(Unknown::parse).ok_or_else(|| format!("--mode {text} is not known"))?,
            ),
            "exit" => Mode::Exit(code(1)?),
            "slow-init" => Mode::SlowInit(number(None)?),
            "ignore-term" => Mode::IgnoreTerm,
            "ignore-eof" => Mode::IgnoreEof,
            "setsid" => Mode::Setsid,
            "double-fork-sleeper" => Mode::DoubleForkSleeper(number(None)?),
            "orphans" => Mode::Orphans(number(None)?),
            "stderr-flood" => Mode::StderrFlood(number(None)?),
            "stderr-no-newline" => Mode::StderrNoNewline,
            "stdout-junk" => Mode::StdoutJunk,
            "huge-line" => Mode::HugeLine(number(None)?),
            "endless-line" => Mode::EndlessLine,
            "byte-at-a-time" => Mode::ByteAtATime,
            "duplicate-ids" => Mode::DuplicateIds,
            "wrong-ids" => Mode::WrongIds,
            "close-stdout-live" => Mode::CloseStdoutLive,
            "close-stdin-live" => Mode::CloseStdinLive,
            "batch" => Mode::Batch,
            "notification-flood" => Mode::NotificationFlood(number(None)?),
            "server-requests" => Mode::ServerRequests,
            "wrong-version" => Mode::WrongVersion(value.unwrap_or("1999-01-01").to_owned()),
            "late-answer" if value == Some("next") => Mode::LateAnswer(Late::NextCall),
            "late-answer" => Mode::LateAnswer(Late::Millis(number(None)?)),
            "many-tools" => Mode::ManyTools(number(None)?),
            "page-size" => Mode::PageSize(number(None)?.max(1)),
            "cursor-loop" => Mode::CursorLoop,
            "big-result" => Mode::BigResult(number(None)?),
            "dump" => Mode::Dump,
            other => return Err(format!("--mode {other} is not known")),
        })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mode::Ok => f.write_str("ok"),
            Mode::HangOnCall => f.write_str("hang-on-call"),
            Mode::DieOnCall(code) => write!(f, "die-on-call={code}"),
            Mode::DieAfterInit(code) => write!(f, "die-after-init={code}"),
            Mode::DieDuringList(code) => write!(f, "die-during-list={code}"),
            Mode::OnUnknown(what) => write!(f, "on-unknown={what}"),
            Mode::Exit(code) => write!(f, "exit={code}"),
            Mode::SlowInit(ms) => write!(f, "slow-init={ms}"),
            Mode::IgnoreTerm => f.write_str("ignore-term"),
            Mode::IgnoreEof => f.write_str("ignore-eof"),
            Mode::Setsid => f.write_str("setsid"),
            Mode::DoubleForkSleeper(seconds) => write!(f, "double-fork-sleeper={seconds}"),
            Mode::Orphans(n) => write!(f, "orphans={n}"),
            Mode::StderrFlood(bytes) => write!(f, "stderr-flood={bytes}"),
            Mode::StderrNoNewline => f.write_str("stderr-no-newline"),
            Mode::StdoutJunk => f.write_str("stdout-junk"),
            Mode::HugeLine(bytes) => write!(f, "huge-line={bytes}"),
            Mode::EndlessLine => f.write_str("endless-line"),
            Mode::ByteAtATime => f.write_str("byte-at-a-time"),
            Mode::DuplicateIds => f.write_str("duplicate-ids"),
            Mode::WrongIds => f.write_str("wrong-ids"),
            Mode::CloseStdoutLive => f.write_str("close-stdout-live"),
            Mode::CloseStdinLive => f.write_str("close-stdin-live"),
            Mode::Batch => f.write_str("batch"),
            Mode::NotificationFlood(n) => write!(f, "notification-flood={n}"),
            Mode::ServerRequests => f.write_str("server-requests"),
            Mode::WrongVersion(version) => write!(f, "wrong-version={version}"),
            Mode::LateAnswer(Late::Millis(ms)) => write!(f, "late-answer={ms}"),
            Mode::LateAnswer(Late::NextCall) => f.write_str("late-answer=next"),
            Mode::ManyTools(n) => write!(f, "many-tools={n}"),
            Mode::PageSize(n) => write!(f, "page-size={n}"),
            Mode::CursorLoop => f.write_str("cursor-loop"),
            Mode::BigResult(bytes) => write!(f, "big-result={bytes}"),
            Mode::Dump => f.write_str("dump"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_read_back_what_they_print() {
        let options = Options {
            modes: vec![
                Mode::Ok,
                Mode::DieDuringList(0),
                Mode::SlowInit(20),
                Mode::OnUnknown(Unknown::AnswerAndExit(-32601)),
                Mode::OnUnknown(Unknown::OtherId),
                Mode::WrongVersion("2026-07-28".into()),
                Mode::LateAnswer(Late::NextCall),
                Mode::LateAnswer(Late::Millis(5)),
                Mode::DoubleForkSleeper(300),
            ],
            log: Some("a b".into()),
            pids: Some("p".into()),
            ready_file: None,
        };
        assert_eq!(Options::parse(options.args()), Ok(options));
        for bad in
            ["--mode nope", "--mode slow-init", "--mode slow-init=x", "--mode exit=256", "--log", "--x y"]
        {
            assert!(Options::parse(bad.split(' ').map(str::to_owned)).is_err(), "{bad}");
        }
    }
}
