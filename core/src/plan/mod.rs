//! A conversation's plan (S6.10): a goal and a bounded list of items, each of which may be bound to a run and then
//! settles by itself (S8.4). Plain data and its rules; who may call them is the supervisor's.

use crate::id::Handle;
use crate::limits;
use serde::{Deserialize, Serialize};

/// A goal and its items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What it is for.
    pub goal: String,
    /// Numbered from 1 in this order.
    pub items: Vec<Item>,
}

/// One item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Its number.
    pub item: u32,
    /// What is to be done.
    pub title: String,
    /// More of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// How far it is.
    pub status: ItemStatus,
    /// What was learned; the cause when it is blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The run that works on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind: Option<Handle>,
}

/// How far an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    /// Not begun.
    Pending,
    /// Begun.
    InProgress,
    /// Done.
    Done,
    /// It cannot go on.
    Blocked,
    /// Left out.
    Skipped,
}

impl ItemStatus {
    /// Every status with its name.
    pub const ALL: [(&'static str, ItemStatus); 5] = [
        ("pending", ItemStatus::Pending),
        ("in_progress", ItemStatus::InProgress),
        ("done", ItemStatus::Done),
        ("blocked", ItemStatus::Blocked),
        ("skipped", ItemStatus::Skipped),
    ];

    /// The status of this name.
    pub fn named(name: &str) -> Option<ItemStatus> {
        ItemStatus::ALL.iter().find(|(known, _)| *known == name).map(|(_, status)| *status)
    }
}

/// What an update changes; what is absent stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Change {
    /// New status.
    pub status: Option<ItemStatus>,
    /// New title.
    pub title: Option<String>,
    /// New detail.
    pub detail: Option<String>,
    /// New note.
    pub note: Option<String>,
    /// The run that works on it.
    pub bind: Option<Handle>,
}

impl Plan {
    /// A plan whose items, title and detail each, are all pending.
    ///
    /// # Errors
    /// What is wrong, a sentence each.
    pub fn new(goal: String, items: Vec<(String, Option<String>)>) -> Result<Plan, Vec<String>> {
        let mut problems = Vec::new();
        problems.extend(needed("goal", &goal));
        if !(1..=limits::PLAN_ITEMS).contains(&items.len()) {
            problems.push(format!("items: saw {}, accepted are 1 to {}", items.len(), limits::PLAN_ITEMS));
        }
        for (i, (title, detail)) in items.iter().enumerate() {
            problems.extend(needed(&format!("items[{i}].title"), title));
            problems.extend(detail.iter().filter_map(|d| bounded(&format!("items[{i}].detail"), d)));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let items = (1..).zip(items).map(|(item, (title, detail))| Item {
            item,
            title,
            detail,
            status: ItemStatus::Pending,
            note: None,
            bind: None,
        });
        Ok(Plan { goal, items: items.collect() })
    }

    /// Whether there is such an item.
    pub fn has(&self, item: u32) -> bool {
        self.items.iter().any(|i| i.item == item)
    }

    /// Changes an item. Binding one that is pending begins it.
    ///
    /// # Errors
    /// What is wrong, a sentence each; nothing was changed.
    pub fn update(&mut self, item: u32, change: Change) -> Result<&Item, Vec<String>> {
        let mut problems: Vec<String> =
            change.title.iter().filter_map(|title| needed("title", title)).collect();
        problems.extend(change.detail.iter().filter_map(|d| bounded("detail", d)));
        problems.extend(change.note.iter().filter_map(|n| bounded("note", n)));
        let count = self.items.len();
        let Some(found) = self.items.iter_mut().find(|i| i.item == item) else {
            problems.push(format!("item: there is no item {item}; accepted are 1 to {count}"));
            return Err(problems);
        };
        if !problems.is_empty() {
            return Err(problems);
        }
        if let Some(handle) = change.bind {
            found.bind = Some(handle);
            if found.status == ItemStatus::Pending {
                found.status = ItemStatus::InProgress;
            }
        }
        found.status = change.status.unwrap_or(found.status);
        found.title = change.title.unwrap_or_else(|| std::mem::take(&mut found.title));
        found.detail = change.detail.or(found.detail.take());
        found.note = change.note.or(found.note.take());
        Ok(found)
    }

    /// A run has ended: the items bound to it are done, or blocked with `cause`. What was called done or skipped
    /// stays so. Whether anything is bound to it.
    pub fn settle(&mut self, handle: Handle, cause: Option<&str>) -> bool {
        let mut bound = false;
        for item in self.items.iter_mut().filter(|i| i.bind == Some(handle)) {
            if matches!(item.status, ItemStatus::Done | ItemStatus::Skipped) {
                continue;
            }
            bound = true;
            match cause {
                None => item.status = ItemStatus::Done,
                Some(cause) => {
                    item.status = ItemStatus::Blocked;
                    item.note = Some(cause.chars().take(limits::PLAN_TEXT_CHARS).collect());
                }
            }
        }
        bound
    }
}

fn needed(name: &str, text: &str) -> Option<String> {
    if text.trim().is_empty() { Some(format!("{name}: it is empty")) } else { bounded(name, text) }
}

fn bounded(name: &str, text: &str) -> Option<String> {
    let seen = text.chars().count();
    let most = limits::PLAN_TEXT_CHARS;
    (seen > most).then(|| format!("{name}: {seen} characters, at most {most} are accepted"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(items: usize) -> Result<Plan, Vec<String>> {
        Plan::new("ship it".into(), (0..items).map(|i| (format!("step {i}"), None)).collect())
    }

    #[test]
    fn a_plan_has_one_to_thirty_two_items_and_says_all_that_is_wrong() {
        assert!(plan(32).is_ok());
        assert_eq!(plan(33).unwrap_err(), ["items: saw 33, accepted are 1 to 32"]);
        let long = Some("x".repeat(2_001));
        let wrong = Plan::new(" ".into(), vec![(String::new(), long)]).unwrap_err();
        assert_eq!(wrong.len(), 3, "{wrong:?}");
    }

    #[test]
    fn a_bound_item_settles_by_itself_and_what_is_settled_stays() {
        let mut plan = plan(3).expect("a plan");
        let bind = |handle| Change { bind: Some(Handle(handle)), ..Change::default() };
        assert_eq!(plan.update(1, bind(7)).expect("bound").status, ItemStatus::InProgress);
        plan.update(2, bind(8)).expect("bound");
        let skipped = Change { status: Some(ItemStatus::Skipped), ..bind(8) };
        plan.update(3, skipped).expect("bound");
        plan.settle(Handle(7), None);
        plan.settle(Handle(8), Some("killed by the conversation"));
        let now: Vec<ItemStatus> = plan.items.iter().map(|i| i.status).collect();
        assert_eq!(now, [ItemStatus::Done, ItemStatus::Blocked, ItemStatus::Skipped]);
        assert_eq!(plan.items[1].note.as_deref(), Some("killed by the conversation"));
        assert!(plan.update(9, Change::default()).unwrap_err()[0].contains("no item 9"));
    }
}
