//! A stdio MCP server that misbehaves on demand: the program `fake-mcp`. It shares no code with the client it is
//! used against.
//!
//! Tools: `echo {text}`, `fail {text}` (an error), `sleep {ms}`, and `dump {}` in that mode. See [`Mode`] for
//! what it can be made to do and [`Options`] for the files it writes.

mod dump;
mod escape;
mod modes;
mod out;

pub use modes::{Late, Mode, Options, Unknown};

use out::{Out, flood_stderr};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::process::{self, ExitCode};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The program: serves stdin and stdout until the end of the input.
pub fn main() -> ExitCode {
    if let Some(code) = escape::helper() {
        return code;
    }
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(e) => {
            eprintln!("fake-mcp: {e}");
            return ExitCode::from(64);
        }
    };
    match begin(&options) {
        Ok(None) => serve(options),
        Ok(Some(code)) => code,
        Err(e) => {
            eprintln!("fake-mcp: cannot start: {e}");
            ExitCode::from(71)
        }
    }
}

/// What happens before the first message.
fn begin(options: &Options) -> io::Result<Option<ExitCode>> {
    if options.has(&Mode::Setsid)
        && let Some(code) = escape::new_session()?
    {
        return Ok(Some(code));
    }
    if options.has(&Mode::IgnoreTerm) {
        escape::deaf()?;
    }
    let mut pids = vec![process::id()];
    for mode in &options.modes {
        match mode {
            Mode::DoubleForkSleeper(seconds) => pids.extend(escape::sleeper(*seconds)?),
            Mode::Orphans(count) => pids.extend(escape::orphans(*count)?),
            _ => {}
        }
    }
    if let Some(path) = &options.pids {
        let lines: String = pids.iter().map(|pid| format!("{pid}\n")).collect();
        append(path)?.write_all(lines.as_bytes())?;
    }
    flood_stderr(options);
    if let Some(code) = options.find(|mode| if let Mode::Exit(code) = mode { Some(*code) } else { None }) {
        eprintln!("fake-mcp: exiting with {code} as told");
        return Ok(Some(ExitCode::from(code)));
    }
    if let Some(path) = &options.ready_file {
        File::create(path)?;
    }
    Ok(None)
}

fn serve(options: Options) -> ExitCode {
    let mut server = Server {
        out: Arc::new(Out::new(&options)),
        log: options.log.as_ref().and_then(|path| append(path).ok()),
        late: None,
        called: false,
        waiting: None,
        options,
    };
    let mut line = Vec::new();
    loop {
        line.clear();
        match io::stdin().lock().read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        if let Ok(message) = serde_json::from_slice::<Value>(&line) {
            server.message(&message);
        }
    }
    if server.options.has(&Mode::IgnoreEof) {
        park();
    }
    ExitCode::SUCCESS
}

struct Server {
    options: Options,
    out: Arc<Out>,
    log: Option<File>,
    /// The first call's answer, held until the next call.
    late: Option<Value>,
    /// A call came in before.
    called: bool,
    /// A call whose answer waits for so many responses to our own requests.
    waiting: Option<(Value, u32)>,
}

impl Server {
    fn message(&mut self, message: &Value) {
        if let Some(log) = &mut self.log {
            drop(log.write_all(format!("{message}\n").as_bytes()));
        }
        let (id, method) = (&message["id"], message["method"].as_str());
        match method {
            Some("initialize") => self.initialize(id, &message["params"]),
            Some("tools/list") => self.list(id, &message["params"]),
            Some("tools/call") => self.call(id, &message["params"]),
            Some("ping") => self.out.answer(&result(id, json!({}))),
            Some(_) if id.is_null() => {}
            Some("server/discover") if self.unknown(id) => {}
            Some(other) => self.out.answer(
                &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": format!("no method {other}")}}),
            ),
            None => self.answered(),
        }
    }

    /// Whether the server was told what to do with a request that it does not know, and did it.
    fn unknown(&mut self, id: &Value) -> bool {
        let Some(what) =
            self.options.find(|mode| if let Mode::OnUnknown(what) = mode { Some(*what) } else { None })
        else {
            return false;
        };
        let error =
            |code: i32| json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "what?"}});
        match what {
            Unknown::Exit(code) => {
                eprintln!("fake-mcp: what is server/discover?");
                process::exit(code.into());
            }
            Unknown::AnswerAndExit(code) => {
                self.out.answer(&error(code));
                process::exit(1);
            }
            Unknown::Error(code) => self.out.answer(&error(code)),
            Unknown::Silence => {}
            Unknown::Junk => self.out.say(&json!("Traceback (most recent call last):")),
            Unknown::OtherId => self.out.answer(&result(&json!("another"), json!({}))),
            Unknown::Empty => self.out.answer(&result(id, json!({}))),
        }
        true
    }

    fn initialize(&mut self, id: &Value, params: &Value) {
        for mode in &self.options.modes {
            if let Mode::SlowInit(ms) = mode {
                thread::sleep(Duration::from_millis(*ms));
            }
        }
        let forced =
            self.options.find(|mode| if let Mode::WrongVersion(v) = mode { Some(json!(v)) } else { None });
        let version = forced.unwrap_or_else(|| params["protocolVersion"].clone());
        self.out.answer(&result(
            id,
            json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "fake-mcp", "version": "1"}}),
        ));
        self.die(|mode| if let Mode::DieAfterInit(code) = mode { Some(*code) } else { None });
    }

    fn list(&mut self, id: &Value, params: &Value) {
        self.die(|mode| if let Mode::DieDuringList(code) = mode { Some(*code) } else { None });
        let tools = self.tools();
        let size = self
            .options
            .find(|mode| if let Mode::PageSize(n) = mode { usize::try_from(*n).ok() } else { None });
        let from = params["cursor"].as_str().and_then(|c| c.parse::<usize>().ok()).unwrap_or(0);
        let page = tools.iter().skip(from).take(size.unwrap_or(usize::MAX)).collect::<Vec<_>>();
        let next = from + page.len();
        let mut listed = json!({"tools": page});
        if next < tools.len() {
            listed["nextCursor"] = json!(next.to_string());
        } else if self.options.has(&Mode::CursorLoop) {
            listed["nextCursor"] = json!("0");
        }
        self.out.answer(&result(id, listed));
        if self.options.has(&Mode::CloseStdinLive) {
            escape::let_go(0);
            park();
        }
    }

    fn tools(&self) -> Vec<Value> {
        let text =
            json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
        let ms = json!({"type": "object", "properties": {"ms": {"type": "integer"}}, "required": ["ms"]});
        let mut tools = vec![
            json!({"name": "echo", "description": "Gives the text back.", "inputSchema": text}),
            json!({"name": "fail", "description": "Fails with the text.", "inputSchema": text}),
            json!({"name": "sleep", "description": "Answers later.", "inputSchema": ms}),
        ];
        if self.options.has(&Mode::Dump) {
            let none = json!({"type": "object", "properties": {}});
            tools.push(json!({"name": "dump", "description": "Tells what the server sees of itself.", "inputSchema": none}));
        }
        let more = self.options.find(|mode| if let Mode::ManyTools(n) = mode { Some(*n) } else { None });
        for n in 0..more.unwrap_or(0) {
            let wide = json!({"type": "object", "properties": {"p": {"type": "string", "description": "d".repeat(2_000)}}});
            tools.push(
                json!({"name": format!("tool{n}"), "description": "One of many.", "inputSchema": wide}),
            );
        }
        tools
    }

    fn call(&mut self, id: &Value, params: &Value) {
        flood_stderr(&self.options);
        self.die(|mode| if let Mode::DieOnCall(code) = mode { Some(*code) } else { None });
        if self.options.has(&Mode::CloseStdoutLive) {
            escape::let_go(1);
            return;
        }
        if let Some(late) = self.late.take() {
            self.out.answer(&late);
        }
        if self.options.has(&Mode::EndlessLine) {
            self.out.endless();
        }
        if self.options.has(&Mode::HangOnCall) {
            return;
        }
        let first = !std::mem::replace(&mut self.called, true);
        let answer = self.result_of(id, params);
        self.before_answer(id, &answer, params);
        let ms = params["arguments"]["ms"].as_u64().filter(|_| params["name"] == "sleep");
        let late =
            self.options.find(|mode| if let Mode::LateAnswer(late) = mode { Some(*late) } else { None });
        match late.filter(|_| first) {
            Some(Late::NextCall) => self.late = Some(answer),
            Some(Late::Millis(ms)) => self.later(ms, answer),
            None if self.options.has(&Mode::ServerRequests) => self.ask(answer),
            None => match ms {
                Some(ms) => self.later(ms, answer),
                None => self.out.answer(&answer),
            },
        }
    }

    /// Noise before a call's answer.
    fn before_answer(&self, id: &Value, answer: &Value, params: &Value) {
        for mode in &self.options.modes {
            match mode {
                Mode::WrongIds => {
                    for wrong in
                        [json!(id.as_u64().unwrap_or(0) + 1_000), json!("nobody"), json!(-1), Value::Null]
                    {
                        self.out.say(&result(
                            &wrong,
                            json!({"content": [{"type": "text", "text": "not yours"}]}),
                        ));
                    }
                }
                Mode::Batch => self.out.say(&json!([answer])),
                Mode::NotificationFlood(count) => self.out.flood(*count, &params["_meta"]["progressToken"]),
                _ => {}
            }
        }
    }

    fn result_of(&self, id: &Value, params: &Value) -> Value {
        let text = params["arguments"]["text"].as_str().unwrap_or_default();
        let of = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        for mode in &self.options.modes {
            match mode {
                Mode::BigResult(bytes) => {
                    return result(id, of(&"x".repeat(usize::try_from(*bytes).unwrap_or(0))));
                }
                Mode::HugeLine(bytes) => {
                    let frame = result(id, of("")).to_string().len();
                    let fill = usize::try_from(*bytes).unwrap_or(0).saturating_sub(frame);
                    return result(id, of(&"x".repeat(fill)));
                }
                _ => {}
            }
        }
        match params["name"].as_str().unwrap_or_default() {
            "echo" => result(id, of(text)),
            "fail" => result(id, json!({"content": [{"type": "text", "text": text}], "isError": true})),
            "sleep" => result(id, of("slept")),
            "dump" if self.options.has(&Mode::Dump) => {
                let seen = dump::dump();
                result(
                    id,
                    json!({"content": [{"type": "text", "text": seen.to_string()}], "structuredContent": seen}),
                )
            }
            name if name.starts_with("tool") => result(id, of(name)),
            other => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": format!("Unknown tool: {other}")}})
            }
        }
    }

    fn later(&self, ms: u64, answer: Value) {
        let out = Arc::clone(&self.out);
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(ms));
            out.answer(&answer);
        });
    }

    /// Asks for everything a server may ask for; the call is answered when all of that is.
    fn ask(&mut self, answer: Value) {
        let methods = ["ping", "roots/list", "sampling/createMessage", "elicitation/create"];
        for (n, method) in methods.iter().enumerate() {
            self.out
                .say(&json!({"jsonrpc": "2.0", "id": format!("ask-{n}"), "method": method, "params": {}}));
        }
        self.waiting = Some((answer, methods.len() as u32));
    }

    fn answered(&mut self) {
        match self.waiting.take() {
            Some((answer, 1)) => self.out.answer(&answer),
            Some((answer, left)) => self.waiting = Some((answer, left - 1)),
            None => {}
        }
    }

    fn die(&self, pick: impl Fn(&Mode) -> Option<u8>) {
        if let Some(code) = self.options.find(pick) {
            eprintln!("fake-mcp: dying with {code} as told");
            process::exit(code.into());
        }
    }
}

fn result(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn append(path: &std::path::Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// Lives on and does nothing more, until a signal.
fn park() -> ! {
    loop {
        thread::park();
    }
}
