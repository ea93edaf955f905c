//! Finds what is a secret and stands in a text as it is, so that no problem shows the line with it. To write one
//! there is a mistake of its own; the output of `check` ends up in places a configuration does not.

use super::check::is_secret_header;
use super::nearest::nearest;
use super::schema::{self, Key, Shape};
use super::tree::{Node, Value};
use crate::secrets::reference;

/// Hides them in a whole tree. Called before its first check.
pub(crate) fn hide(root: &Node) {
    section(root, schema::ROOT);
}

fn section(node: &Node, keys: &'static [Key]) {
    let Value::Map(entries) = &node.value else { return };
    for entry in entries {
        match keys.iter().find(|key| key.name == entry.key) {
            Some(key) => value(&entry.node, key),
            None if looks_secret(&entry.key) => whole(&entry.node),
            None => {}
        }
    }
}

fn value(node: &Node, key: &Key) {
    match (&key.shape, &node.value) {
        (Shape::Section(keys), _) => section(node, keys),
        (Shape::Items(keys), Value::List(items)) => items.iter().for_each(|item| section(item, keys)),
        (Shape::Maps { each, .. }, Value::Map(entries)) => {
            entries.iter().for_each(|entry| section(&entry.node, each));
        }
        (Shape::Headers, Value::Map(entries)) => {
            let secret = entries.iter().filter(|entry| is_secret_header(&entry.key));
            secret.for_each(|entry| whole(&entry.node));
        }
        (Shape::Secret | Shape::Headers, _) => whole(node),
        // A password in an address, or a key in its query.
        (Shape::Texts, Value::List(items)) if key.name == "endpoints" => {
            let telling =
                |item: &&Node| matches!(&item.value, Value::Scalar(s) if s.text.contains(['@', '?']));
            items.iter().filter(telling).for_each(whole);
        }
        (Shape::Texts, Value::Scalar(scalar))
            if key.name == "endpoints" && scalar.text.contains(['@', '?']) =>
        {
            whole(node);
        }
        _ => {}
    }
}

/// Hides every text below a node but references; one that is misspelled is shown, for it holds no secret.
fn whole(node: &Node) {
    match &node.value {
        Value::Scalar(scalar) if reference::refers(&scalar.text) => {}
        Value::Scalar(_) => node.place.hide(),
        Value::List(items) => items.iter().for_each(whole),
        Value::Map(entries) => entries.iter().for_each(|entry| whole(&entry.node)),
    }
}

/// Whether somebody may have put a secret under a key that there is not: `api_key`, `tokn`.
pub(crate) fn looks_secret(key: &str) -> bool {
    let key = key.to_lowercase();
    ["key", "token", "secret", "password"].iter().any(|word| key.contains(word))
        || nearest(&key, ["token", "api_key", "token_file"]).is_some()
}
