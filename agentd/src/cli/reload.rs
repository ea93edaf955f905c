//! `agentd reload`: has a daemon read its configuration again, and says what came of it.

use super::args::{CONTROL_CODES, ControlArgs};
use super::control::{print, print_json, with};
use super::{answer, exit};
use crate::client::ClientError;
use clap::Args;
use serde_json::{Value, json};

/// The gate that a configuration with mistakes does not pass.
const GATE: &str = "configuration";

#[derive(Debug, Args)]
#[command(after_help = CONTROL_CODES)]
pub(super) struct ReloadArgs {
    #[command(flatten)]
    control: ControlArgs,
}

/// Reloads. Mistakes are printed as `agentd check` prints them, and nothing has changed then.
pub(super) fn reload(args: ReloadArgs) -> u8 {
    with(args.control, |daemon, json| match daemon.op("reload", json!({})) {
        Ok(told) if json => print_json(&told),
        Ok(told) => print(&words(&told)),
        Err(ClientError::Refused { gate, message, hint }) if gate == GATE => {
            eprintln!("{}\nagentd: {hint}", answer::harmless(message.trim_end()));
            Ok(exit::USAGE)
        }
        Err(error) => Err(error),
    })
}

fn words(told: &Value) -> String {
    let keys = |name: &str| -> Vec<String> {
        let keys = told[name].as_array().into_iter().flatten();
        keys.filter_map(Value::as_str).map(answer::harmless).collect()
    };
    let mut lines = Vec::new();
    let line = |head: &str, keys: &[String]| format!("{head}: {}\n", keys.join(", "));
    for (name, head) in [
        ("applied", "in use from now on"),
        ("models", "connections of models that are new"),
        ("servers", "servers that are new or not what they were"),
        ("restart_needed", "only after a restart of the daemon"),
    ] {
        let keys = keys(name);
        if !keys.is_empty() {
            lines.push(line(head, &keys));
        }
    }
    if lines.is_empty() { "nothing has changed\n".to_owned() } else { lines.concat() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_named_by_when_it_counts() {
        let none = json!({ "reloaded": true, "applied": [], "restart_needed": [] });
        assert_eq!(words(&none), "nothing has changed\n");
        let some =
            json!({ "applied": ["a.b", "c"], "servers": ["s\u{1b}[2J"], "restart_needed": ["store.path"] });
        let said = words(&some);
        assert!(said.starts_with("in use from now on: a.b, c\n"), "{said}");
        assert!(said.ends_with("only after a restart of the daemon: store.path\n"), "{said}");
        assert!(!said.contains('\u{1b}'), "{said}");
    }
}
