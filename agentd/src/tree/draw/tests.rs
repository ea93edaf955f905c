use super::*;
use agentd_core::id::{Handle, NodeId};
use agentd_core::money::Usd;
use agentd_core::preview::misleads;
use agentd_core::record::{Status, Tokens};
use agentd_core::snapshot::StoreView;
use agentd_core::time::Now;
use agentd_core::wire::message::{Mode, Role};
use proptest::prelude::*;

const TERMINAL: Canvas = Canvas { columns: 80, rows: 40, colors: false };

fn run(node: u64, parent: Option<u64>, waits: Waits, title: &str) -> RunView {
    RunView {
        node: NodeId(node),
        parent: parent.map(NodeId),
        handle: (node > 1).then(|| Handle(node - 1)),
        depth: 0,
        role: if node > 1 { Role::Subagent } else { Role::Worker },
        mode: Mode::Sync,
        status: Status::Running,
        title: title.to_owned(),
        waits,
        since: Instant::ZERO,
        step: 3,
        own: Tokens { input: 1_000 * node, output: 234, ..Tokens::default() },
        subtree: Tokens::default(),
    }
}

fn snapshot(runs: Vec<RunView>) -> Snapshot {
    let total = Tokens { input: 61_000, usd: Usd::from_nanos(312_000_000), ..Tokens::default() };
    Snapshot { now: Now::default(), runs, total, ended: (5, 4), draining: false, store: StoreView::Works }
}

fn at(seconds: u64) -> Instant {
    Instant::from_millis(seconds * 1_000)
}

#[test]
fn a_tree_reads_at_a_glance() {
    let tools = Waits::Tools(vec!["files.grep".into()]);
    let mut priced = run(3, Some(1), tools, "look for calls of unwrap below core");
    priced.own.usd = Usd::from_nanos(41_000_000);
    let runs = vec![
        run(1, None, Waits::Children(2), "what is risky here?"),
        run(2, Some(1), Waits::Model, "read every file below agentd and list what can panic"),
        priced,
        run(4, Some(2), Waits::Queued { place: 1, of: 2 }, "one level down"),
        run(9, Some(7), Waits::Ending, "its parent is gone"),
    ];
    let lines = frame(&snapshot(runs), at(42), TERMINAL);
    assert_eq!(
        lines.join("\n"),
        "agentd · 4 live · 4 done · 1 not completed · 61k tokens · $0.312 · 42s\n\
         worker         children 2                    #3   1.2k   $0.000 what is risky …\n\
         └ sub-1        model 42s                     #3   2.2k   $0.000 read every fil…\n\
         \u{20} └ sub-3      queued 1/2                    #3   4.2k   $0.000 one level down\n\
         └ sub-2        tool files.grep 42s           #3   3.2k   $0.041 look for calls…\n\
         sub-8          ending 42s                    #3   9.2k   $0.000 its parent is …"
    );
}

#[test]
fn thirty_children_fit_where_they_fit_and_are_counted_where_not() {
    let mut runs = vec![run(1, None, Waits::Children(30), "root")];
    runs.extend((2..=31).map(|n| run(n, Some(1), Waits::Model, "a child")));
    let snapshot = snapshot(runs);
    let whole = frame(&snapshot, at(1), TERMINAL);
    assert_eq!(whole.len(), 32);
    assert!(whole.iter().all(|line| line.width() < 80), "{whole:#?}");
    let small = frame(&snapshot, at(1), Canvas { rows: 24, ..TERMINAL });
    assert_eq!(small.len(), 22);
    assert_eq!(small[21].trim_end(), "… and 11 more");
    assert_eq!(frame(&snapshot, at(1), Canvas { rows: 2, ..TERMINAL }), Vec::<String>::new());
}

#[test]
fn nothing_of_a_title_or_tool_acts_on_the_terminal() {
    let evil = "a\x1b[2Jb\rc\u{202e}d";
    let lines = frame(&snapshot(vec![run(2, None, Waits::Tools(vec![evil.into()]), evil)]), at(1), TERMINAL);
    assert!(lines[1].chars().all(|c| !c.is_control() && !misleads(c)), "{:?}", lines[1]);
    let colored = Canvas { colors: true, ..TERMINAL };
    let lines = frame(&snapshot(vec![run(2, None, Waits::Silent, "x")]), at(1), colored);
    assert!(lines[1].contains("\x1b[33m") && lines[1].contains("\x1b[0m"), "{:?}", lines[1]);
}

proptest! {
    #[test]
    fn no_line_wraps_and_no_row_is_too_many(
        titles in proptest::collection::vec(".{0,60}", 0..60),
        columns in 0usize..200,
        rows in 0usize..60,
    ) {
        let runs: Vec<RunView> = titles
            .iter()
            .zip(1..)
            .map(|(title, n)| run(n, (n > 1).then_some(n / 2), Waits::Tools(vec![title.clone()]), title))
            .collect();
        let colored = frame(&snapshot(runs.clone()), at(7), Canvas { columns, rows, colors: true });
        let escapes = regex::Regex::new("\x1b\\[[0-9;]*m").expect("a pattern");
        for line in &colored {
            let bare = escapes.replace_all(line, "");
            prop_assert!(!bare.contains('\x1b') && !bare.contains("[0m") && bare.width() < columns.max(1), "{line:?}");
        }
        let lines = frame(&snapshot(runs), at(7), Canvas { columns, rows, colors: false });
        prop_assert!(lines.len() < rows.max(1));
        for line in &lines {
            prop_assert!(line.width() < columns, "{line:?} on {columns}");
        }
    }
}
