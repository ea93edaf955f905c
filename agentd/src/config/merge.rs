//! Lays one tree over another: later wins per key, maps merge, everything else is replaced.

use super::tree::{Entry, Node, Value};

/// Lays `over` over `base`. Nothing (`key:`) over a map leaves the map.
pub(crate) fn merge(base: &mut Node, over: Node) {
    if over.is_null() && matches!(base.value, Value::Map(_)) {
        return;
    }
    match (&mut base.value, over.value) {
        (Value::Map(entries), Value::Map(new)) => new.into_iter().for_each(|entry| lay(entries, entry)),
        (value, new) => {
            *value = new;
            base.place = over.place;
        }
    }
}

fn lay(entries: &mut Vec<Entry>, new: Entry) {
    match entries.iter_mut().find(|entry| entry.key == new.key) {
        Some(entry) => {
            entry.place = new.place;
            merge(&mut entry.node, new.node);
        }
        None => entries.push(new),
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::super::yaml;
    use super::*;
    use std::path::Path;

    fn tree(text: &str) -> Node {
        let mut problems = Vec::new();
        yaml::parse(&Source::file(Path::new("a.yaml"), 0, text.to_owned()), &mut problems).expect("a tree")
    }

    fn merged(base: &str, over: &str) -> serde_json::Value {
        let mut base = tree(base);
        merge(&mut base, tree(over));
        super::super::json::of(&base)
    }

    #[test]
    fn later_wins_maps_merge_lists_replace() {
        assert_eq!(
            merged("{a: {b: 1, c: [1, 2]}, d: x}", "{a: {c: [3], e: 5}, d: {f: 1}}"),
            serde_json::json!({"a": {"b": 1, "c": [3], "e": 5}, "d": {"f": 1}})
        );
        assert_eq!(merged("{a: {b: 1}}", "{a: }"), serde_json::json!({"a": {"b": 1}}));
        assert_eq!(merged("{a: 1}", "{a: }"), serde_json::json!({"a": null}));
        assert_eq!(merged("{a: }", "{a: {b: 1}}"), serde_json::json!({"a": {"b": 1}}));
    }
}
