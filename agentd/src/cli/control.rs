//! The commands of an operator: each one call of a daemon, printed for people or as JSON.

pub(super) mod args;

use super::args::{ControlArgs, DaemonArgs};
use super::table::table;
use super::{answer, exit};
use crate::client::forest::forest;
use crate::client::{ClientError, Daemon, ROOT, Whereabouts, answer_of, end_of};
use agentd_host::Pid;
use agentd_host::tree::{self, Identity};
use args::{HandleArgs, KillArgs, SpawnArgs, TextArgs, WaitArgs};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// How long a killed run's processes are waited for once agentd says that it is gone.
const LAST_PROCESSES: Duration = Duration::from_secs(10);

/// How often is looked.
const LOOK: Duration = Duration::from_millis(20);

pub(super) type Done = Result<u8, ClientError>;

/// Does what a command does with the daemon that is meant, and says what went wrong.
pub(super) fn with(control: ControlArgs, command: impl FnOnce(&Daemon, bool) -> Done) -> u8 {
    let ControlArgs { daemon, json } = control;
    find(daemon).and_then(|daemon| command(&daemon, json)).unwrap_or_else(|error| failed(&error))
}

/// The daemon that is meant.
pub(super) fn find(at: DaemonArgs) -> Result<Daemon, ClientError> {
    let DaemonArgs { config, socket, token_file } = at;
    Daemon::find(Whereabouts { config: config.config, socket, token_file })
}

/// Says what went wrong, and gives the exit code.
pub(super) fn failed(error: &ClientError) -> u8 {
    eprintln!("agentd: {error}");
    match error {
        ClientError::Config(_) => exit::USAGE,
        ClientError::NoDaemon { .. } | ClientError::NoToken { .. } => exit::SERVER,
        ClientError::NotPermitted { .. } => exit::REFUSED,
        ClientError::Refused { gate, .. } if gate == "arguments" => exit::USAGE,
        ClientError::Refused { gate, .. } if gate == "handle" => exit::FAILED,
        ClientError::Refused { .. } => exit::REFUSED,
        ClientError::Broken(_) => exit::FAILED,
    }
}

/// Prints what is for stdout.
pub(super) fn print(text: &str) -> Done {
    Ok(answer::only(text, exit::COMPLETED))
}

pub(super) fn print_json(value: &Value) -> Done {
    print(&format!("{value}\n"))
}

/// `ps`.
pub(super) fn ps(control: ControlArgs, all: bool) -> u8 {
    with(control, |daemon, json| {
        let told = daemon.op("ps", json!({ "all": all }))?;
        if json {
            return print_json(&told);
        }
        let rows = runs(&told).iter().map(|run| {
            let waits = if run["waits"].is_null() { word(&run["error"]) } else { word(&run["waits"]) };
            vec![
                name(run),
                word(&run["status"]),
                word(&run["mode"]),
                step(run),
                tokens(run),
                waits,
                word(&run["title"]),
            ]
        });
        print(&table(&["HANDLE", "STATUS", "MODE", "STEP", "TOKENS", "WAITS ON", "TITLE"], rows.collect()))
    })
}

/// `tree`.
pub(super) fn tree(control: ControlArgs, all: bool) -> u8 {
    with(control, |daemon, json| {
        let told = daemon.op("ps", json!({ "all": all }))?;
        if json {
            return print_json(&told);
        }
        let text: String = forest(runs(&told)).into_iter().map(|(depth, run)| branch(depth, run)).collect();
        print(&text)
    })
}

fn branch(depth: usize, run: &Value) -> String {
    let about = if run["waits"].is_null() { &run["error"] } else { &run["waits"] };
    let about = Some(word(about)).filter(|about| !about.is_empty()).map(|about| format!(" · {about}"));
    let (status, about) = (word(&run["status"]), about.unwrap_or_default());
    format!("{}{} {status}{about} · {}\n", "  ".repeat(depth), name(run), word(&run["title"]))
}

/// `show`.
pub(super) fn show(args: HandleArgs) -> u8 {
    let HandleArgs { handle, control } = args;
    with(control, |daemon, json| {
        let told = daemon.op("show", json!({ "handle": handle }))?;
        if json {
            return print_json(&told);
        }
        let mut text = String::new();
        for (key, value) in told.as_object().into_iter().flatten().filter(|(key, _)| *key != "result") {
            if !value.is_null() {
                let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                text.push_str(&format!("{key:<17} {}\n", answer::harmless(&shown)));
            }
        }
        match &told["result"] {
            Value::Null => {}
            Value::String(result) => text.push_str(&format!("\n{}\n", answer::harmless(result))),
            result => text.push_str(&format!("\n{result}\n")),
        }
        print(&text)
    })
}

/// `send`: a message for a warm run, or a turn of the conversation.
pub(super) fn send(args: TextArgs) -> u8 {
    let TextArgs { handle, text, control } = args;
    if handle != ROOT {
        return tell(control, "subagent.send", json!({ "handle": handle, "text": text }), |told| {
            let unsaved =
                if told["saved"] == false { "; the store fails, and it is not saved yet" } else { "" };
            format!("message {} to {}, {} waiting{unsaved}\n", told["message_id"], name(told), told["queued"])
        });
    }
    with(control, |daemon, json| {
        let task = daemon.ask(&text)?;
        let (state, why) = end_of(&task);
        let code = if state == "completed" { exit::COMPLETED } else { exit::FAILED };
        if json {
            return Ok(answer::only(&format!("{task}\n"), code));
        }
        let said = answer_of(&task).map(|said| answer::harmless(&said));
        if code != exit::COMPLETED {
            eprintln!("agentd: {state}: {}", answer::harmless(why));
        }
        Ok(answer::only(&said.map_or_else(String::new, |said| format!("{said}\n")), code))
    })
}

/// `steer`.
pub(super) fn steer(args: TextArgs) -> u8 {
    let TextArgs { handle, text, control } = args;
    tell(control, "subagent.steer", json!({ "handle": handle, "text": text }), |told| {
        format!("{} is told at its next step\n", name(told))
    })
}

/// `finish`, `pause`, `resume` and `retire`.
pub(super) fn order(args: HandleArgs, op: &str) -> u8 {
    let HandleArgs { handle, control } = args;
    tell(control, op, json!({ "handle": handle }), |told| {
        format!("{} {}\n", name(told), word(&told["status"]))
    })
}

fn tell(control: ControlArgs, op: &str, args: Value, words: impl FnOnce(&Value) -> String) -> u8 {
    with(control, |daemon, json| {
        let told = daemon.op(op, args)?;
        if json { print_json(&told) } else { print(&words(&told)) }
    })
}

/// `wait`: until one or all have ended; the exit code is that of the worst.
pub(super) fn wait(args: WaitArgs) -> u8 {
    let WaitArgs { handles, any, timeout, control } = args;
    with(control, |daemon, json| {
        let mut asked = json!({ "handles": handles, "until": if any { "any" } else { "all" } });
        if let Some(timeout) = timeout {
            asked["timeout"] = timeout.into();
        }
        let told = daemon.op("subagent.await", asked)?;
        let results = told["results"].as_array().cloned().unwrap_or_default();
        let code = match told["timed_out"] == true {
            true => exit::TIMED_OUT,
            false => results.iter().map(status_code).max().unwrap_or(exit::COMPLETED),
        };
        if json {
            return Ok(answer::only(&format!("{told}\n"), code));
        }
        let rows = results.iter().map(|run| {
            let result = match (&run["result"], &run["error"]) {
                (Value::Null, error) => word(error),
                (result, _) => plain(result),
            };
            vec![name(run), word(&run["status"]), result]
        });
        Ok(answer::only(&table(&["HANDLE", "STATUS", "RESULT"], rows.collect()), code))
    })
}

/// `kill`: until the run's processes are gone, and how many that was, as `/proc` says.
pub(super) fn kill(args: KillArgs) -> u8 {
    let KillArgs { handle, reason, only, control } = args;
    with(control, |daemon, json| {
        let before = daemon.op("ps", json!({ "all": true }))?;
        let mut asked = json!({ "handle": handle, "only": only, "gone": true });
        if let Some(reason) = reason {
            asked["reason"] = reason.into();
        }
        let processes = processes_of(runs(&before), &handle, only);
        let mut told = daemon.op("subagent.kill", asked)?;
        let until = Instant::now() + LAST_PROCESSES;
        let left = loop {
            let left = processes.iter().filter(|process| process.is_alive()).count();
            if left == 0 || Instant::now() >= until {
                break left;
            }
            std::thread::sleep(LOOK);
        };
        told["processes"] = processes.len().into();
        told["processes_left"] = left.into();
        if told["recorded"] == false {
            eprintln!(
                "agentd: the store fails, so that this is not recorded yet: until it is, a daemon that starts again may take the run up"
            );
        }
        let code = if left == 0 { exit::COMPLETED } else { exit::FAILED };
        if json {
            return Ok(answer::only(&format!("{told}\n"), code));
        }
        let count = answer::processes(processes.len());
        let gone = if left == 0 { "all gone".to_owned() } else { format!("{left} left") };
        Ok(answer::only(&format!("{} {}: {count}, {gone}\n", name(&told), word(&told["status"])), code))
    })
}

/// The processes of a run and, unless `only`, of all it delegated, with everything below them.
fn processes_of(runs: &[Value], handle: &str, only: bool) -> Vec<Identity> {
    let mut names = vec![handle.to_owned()];
    let mut at = 0;
    while let Some(parent) = names.get(at).cloned().filter(|_| !only || at == 0) {
        if !only {
            let below = runs.iter().filter(|run| word(&run["parent"]) == parent);
            names.extend(below.map(|run| word(&run["handle"])));
        }
        at += 1;
    }
    let mut found = Vec::new();
    let pids =
        runs.iter().filter(|run| names.contains(&word(&run["handle"]))).filter_map(|run| run["pid"].as_i64());
    for pid in pids.filter_map(|pid| i32::try_from(pid).ok()).filter_map(Pid::new) {
        // What cannot be read is gone already.
        found.extend(tree::stat(pid).ok().flatten().map(|stat| stat.identity()));
        found.extend(tree::descendants(pid).into_iter().flatten().map(|stat| stat.identity()));
    }
    found
}

/// `spawn`.
pub(super) fn spawn(args: SpawnArgs) -> u8 {
    let SpawnArgs {
        instruction,
        mode,
        servers,
        tools,
        model,
        priority,
        deadline,
        no_durable,
        no_resume,
        control,
    } = args;
    let mut asked = Map::new();
    asked.insert("instruction".into(), instruction.into());
    asked.insert("mode".into(), mode.into());
    for (key, value) in [("model", model), ("priority", priority)] {
        if let Some(value) = value {
            asked.insert(key.into(), value.into());
        }
    }
    for (key, values) in [("servers", servers), ("tools", tools)] {
        if !values.is_empty() {
            asked.insert(key.into(), values.into());
        }
    }
    for (key, no) in [("durable", no_durable), ("resume", no_resume)] {
        if no {
            asked.insert(key.into(), false.into());
        }
    }
    if let Some(deadline) = deadline {
        asked.insert("limits".into(), json!({ "deadline": deadline }));
    }
    with(control, |daemon, json| {
        let told = daemon.op("subagent.run", Value::Object(asked))?;
        let ended = told.get("result").is_some();
        let code = if ended { status_code(&told) } else { exit::COMPLETED };
        if json {
            return Ok(answer::only(&format!("{told}\n"), code));
        }
        if !ended {
            return print(&format!("{}\n", name(&told)));
        }
        if code != exit::COMPLETED {
            eprintln!("agentd: {}: {}", word(&told["status"]), word(&told["error"]));
        }
        Ok(answer::only(&format!("{}\n", plain(&told["result"])), code))
    })
}

/// `drain`: until the daemon has ended.
pub(super) fn drain(control: ControlArgs, at_once: bool) -> u8 {
    with(control, |daemon, json| {
        let told = match at_once {
            true => daemon.op("drain", json!({}))?,
            false => daemon.op_to_the_end("drain", json!({}))?,
        };
        if json {
            return print_json(&told);
        }
        let what = if at_once { "drains" } else { "has drained" };
        print(&format!("{} {what}; {} were live\n", daemon.socket().display(), told["live"]))
    })
}

fn runs(told: &Value) -> &[Value] {
    told["runs"].as_array().map_or(&[], Vec::as_slice)
}

/// A run's handle; the worker of the conversation has none.
fn name(run: &Value) -> String {
    run["handle"].as_str().map_or_else(|| ROOT.to_owned(), answer::harmless)
}

fn word(value: &Value) -> String {
    value.as_str().map(answer::harmless).unwrap_or_default()
}

/// A value on one line.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => answer::harmless(text),
        other => other.to_string(),
    }
}

fn step(run: &Value) -> String {
    run["step"].as_u64().map(|step| step.to_string()).unwrap_or_default()
}

fn tokens(run: &Value) -> String {
    let sum = &run["usage"]["subtree"];
    let (input, output) = (sum["input"].as_u64().unwrap_or(0), sum["output"].as_u64().unwrap_or(0));
    input.saturating_add(output).to_string()
}

/// The exit code of a run's status, as `agentd run` has it.
fn status_code(run: &Value) -> u8 {
    match (run["status"].as_str().unwrap_or_default(), run["partial"] == true) {
        ("completed", false) => exit::COMPLETED,
        ("completed", true) => exit::PARTIAL,
        ("refused", _) => exit::REFUSED,
        ("exhausted_steps" | "exhausted_tokens" | "loop_detected", _) => exit::EXHAUSTED,
        ("deadline", _) => exit::DEADLINE,
        _ => exit::FAILED,
    }
}
