//! Values and their form, and what a store may give back.

use super::*;
use crate::id::{Handle, NodeId, RunId};
use crate::record::{Evidence, Record, Status, Tokens};
use crate::rng::Rng;
use crate::time::Wall;
use crate::wire::message::{Mode, Role, Text};
use proptest::prelude::*;

fn row(seed: u64, handle: u64, status: Status) -> RunRow {
    RunRow {
        record: Record {
            run_id: RunId::mint(Wall(seed), &mut Rng::new(seed)),
            handle: Some(Handle(handle)),
            node: NodeId(1),
            parent: None,
            call_id: None,
            depth: 1,
            principal: "operator".into(),
            role: Role::Subagent,
            mode: Mode::Async,
            status,
            result: serde_json::json!({ "seen": [1, "two", null] }),
            partial: false,
            error: None,
            usage: Tokens::default(),
            attempt: 1,
            created: Wall(seed),
            ended: None,
        },
        subtree: Tokens::default(),
        evidence: Evidence::default(),
        restarts: 0,
        takes_below: false,
        turns: None,
        last_text: 1,
        title: "look".into(),
    }
}

fn entries(writes: &[Write]) -> Vec<(String, String, Vec<u8>)> {
    let all = writes.iter().map(|write| Entry::of(write).expect("it can be written"));
    all.filter_map(|e| Some((e.kind.name().to_owned(), e.key, e.value?))).collect()
}

fn read(entries: &[(String, String, Vec<u8>)]) -> Saved {
    Saved::read(entries.iter().map(|(kind, key, value)| (kind.as_str(), key.as_str(), value.as_slice())))
}

#[test]
fn what_is_written_is_what_is_read() {
    let run = row(5, 3, Status::Completed);
    let id = run.record.run_id;
    let letter = Letter::Open(Text { id: 2, text: "go on".into() });
    let conversation = ConversationRow { last: 4, ..ConversationRow::default() };
    let ledger = LedgerRow::default();
    let writes = [
        Write::Run(Box::new(run.clone())),
        Write::Letter { run: id, letter: letter.clone() },
        Write::Handles(9),
        Write::Plan(None),
        Write::Conversation(Box::new(conversation.clone())),
        Write::Ledger(ledger.clone()),
    ];
    let saved = read(&entries(&writes));
    assert_eq!(saved.quarantined, []);
    assert_eq!((saved.runs, saved.letters), (vec![run], vec![(id, letter)]));
    assert_eq!((saved.handles, saved.conversation, saved.ledger), (9, Some(conversation), Some(ledger)));
}

#[test]
fn a_value_that_is_not_its_own_is_put_aside_and_says_why() {
    let good = entries(&[Write::Run(Box::new(row(5, 3, Status::Completed)))]);
    let other = row(6, 4, Status::Completed).record.run_id.to_string();
    let (kind, key, value) = good[0].clone();
    let mut longer = value.clone();
    longer.push(0);
    for (kind, key, value, why) in [
        (kind.clone(), other, value.clone(), "not its own"),
        ("runs".to_owned(), key.clone(), value.clone(), "does not know"),
        (kind.clone(), key.clone(), value[..value.len() - 1].to_vec(), "cannot be read"),
        (kind.clone(), key.clone(), longer, "1 bytes come after it"),
        (kind.clone(), key.clone(), Vec::new(), "cannot be read"),
        ("letter".to_owned(), "nobody".to_owned(), value.clone(), "nobody"),
    ] {
        let saved = read(&[(kind, key, value)]);
        assert_eq!(saved.runs, []);
        assert!(saved.quarantined.len() == 1 && saved.quarantined[0].why.contains(why), "{saved:?}");
    }
}

#[test]
fn a_run_that_goes_on_and_whose_work_is_gone_is_put_aside_and_keeps_its_handle() {
    let saved = read(&entries(&[Write::Run(Box::new(row(5, 3, Status::Running)))]));
    assert_eq!((saved.runs.len(), saved.quarantined.len(), saved.handles), (0, 1, 3));
}

#[test]
fn of_two_runs_with_one_handle_the_later_is_put_aside() {
    let (first, second) = (row(5, 3, Status::Completed), row(6, 3, Status::Failed));
    let saved = read(&entries(&[Write::Run(Box::new(second)), Write::Run(Box::new(first.clone()))]));
    assert_eq!((saved.runs, saved.quarantined.len()), (vec![first], 1));
}

proptest! {
    /// Whatever a disk gives back, what is whole is read and what is not is named.
    #[test]
    fn damage_never_panics_and_never_hides_what_is_whole(cut in 0usize..400, flip in 0usize..400, bit in 0u8..8) {
        let mut all = entries(&[
            Write::Run(Box::new(row(5, 3, Status::Completed))),
            Write::Run(Box::new(row(6, 4, Status::Completed))),
        ]);
        let value = &mut all[1].2;
        if let Some(byte) = value.get_mut(flip) {
            *byte ^= 1 << bit;
        }
        value.truncate(cut.max(1));
        let saved = read(&all);
        prop_assert_eq!(saved.runs.iter().filter(|row| row.record.handle == Some(Handle(3))).count() + saved.quarantined.iter().filter(|q| q.key == all[0].1).count(), 1);
        prop_assert_eq!(saved.runs.len() + saved.quarantined.len(), 2);
    }
}
