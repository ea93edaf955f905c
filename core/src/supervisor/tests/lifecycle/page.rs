//! Prints the states and steps of a run as `docs/lifecycle.md` shows them, and holds the page to that.

use super::stage::Happening;
use super::{PROCESS, Stand, State, Step, explore};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const PAGE: &str = include_str!("../../../../../docs/lifecycle.md");

/// What stands before and after the part that is printed.
const MARKS: (&str, &str) = ("<!-- printed from the code -->\n", "<!-- to here -->\n");

fn printed() -> String {
    let table = explore();
    let mut text = String::new();
    diagram(&mut text, &table).and_then(|()| tables(&mut text, &table)).expect("text takes text");
    text
}

/// The process's states, and all that leads from one to another, whatever the outcome.
fn diagram(text: &mut String, table: &BTreeMap<State, BTreeSet<Step>>) -> std::fmt::Result {
    let mut edges: BTreeMap<(usize, usize), BTreeSet<Happening>> = BTreeMap::new();
    for (from, steps) in table {
        for step in steps {
            if let Some(to) = step.to.as_ref().filter(|to| to.process != from.process) {
                edges.entry((from.process, to.process)).or_default().insert(step.happening);
            }
        }
    }
    writeln!(text, "\n```mermaid\nstateDiagram-v2")?;
    writeln!(text, "    [*] --> recording: {}", Happening::Asked.words())?;
    writeln!(text, "    [*] --> held: {}", Happening::AskedWhileFull.words())?;
    writeln!(text, "    [*] --> restored: {}", Happening::TakenUp.words())?;
    for ((from, to), why) in edges {
        let why: Vec<&str> = why.iter().map(|happening| happening.words()).collect();
        let why = why.join(" / ").replace('`', "");
        writeln!(text, "    {} --> {}: {why}", PROCESS[from], PROCESS[to])?;
    }
    writeln!(text, "    gone --> [*]\n```")
}

fn tables(text: &mut String, table: &BTreeMap<State, BTreeSet<Step>>) -> std::fmt::Result {
    for (state, steps) in table {
        writeln!(text, "\n### {}\n", title(state))?;
        let moves = |step: &&Step| step.to.as_ref() != Some(state) || !step.did.is_empty();
        let moving: BTreeSet<Happening> = steps.iter().filter(moves).map(|step| step.happening).collect();
        let (something, nothing): (Vec<&Step>, Vec<&Step>) =
            steps.iter().partition(|step| moving.contains(&step.happening));
        if !something.is_empty() {
            writeln!(text, "| when | then it is | and is done | the record says |\n|---|---|---|---|")?;
        }
        for step in something {
            let to = match &step.to {
                Some(to) if to == state => "the same".to_owned(),
                Some(to) => title(to),
                None => "not there any more".to_owned(),
            };
            let became = step
                .became
                .as_ref()
                .map(|status| format!("`{}`", status.replace('`', "'")))
                .unwrap_or_default();
            writeln!(text, "| {} | {to} | {} | {became} |", step.happening.words(), step.did.join(", "))?;
        }
        if !nothing.is_empty() {
            let words: Vec<&str> = nothing.iter().map(|step| step.happening.words()).collect();
            writeln!(text, "\nNothing changes when: {}.", words.join("; "))?;
        }
    }
    Ok(())
}

fn title(state: &State) -> String {
    let outcome = match state.outcome {
        Stand::Open => "open",
        Stand::Decided => "decided",
        Stand::Final => "told",
    };
    format!("{}, {outcome}", state.process())
}

#[test]
fn the_page_is_what_the_core_does() {
    let (before, rest) = PAGE.split_once(MARKS.0).expect("the first mark");
    let (there, _) = rest.split_once(MARKS.1).expect("the second mark");
    let wanted = printed();
    assert!(there == wanted, "docs/lifecycle.md is stale; between its marks belongs:\n{wanted}");
    assert!(before.contains("# The life of a run"));
}
