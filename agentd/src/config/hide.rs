//! Finds what is a secret and stands in a text as it is, so that no problem shows the line with it. To write one
//! there is a mistake of its own; the output of `check` ends up in places a configuration does not.

use super::check::is_secret_header;
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
        if let Some(key) = keys.iter().find(|key| key.name == entry.key) {
            value(&entry.node, key);
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
        (Shape::Secret, Value::Scalar(scalar)) if !is_reference(&scalar.text) => node.place.hide(),
        (Shape::Headers, Value::Map(entries)) => {
            for entry in entries.iter().filter(|entry| is_secret_header(&entry.key)) {
                if !matches!(&entry.node.value, Value::Scalar(scalar) if is_reference(&scalar.text)) {
                    entry.node.place.hide();
                }
            }
        }
        // A password in an address.
        (Shape::Texts, Value::List(items)) if key.name == "endpoints" => {
            let with_user = |item: &&Node| matches!(&item.value, Value::Scalar(s) if s.text.contains('@'));
            items.iter().filter(with_user).for_each(|item| item.place.hide());
        }
        _ => {}
    }
}

/// Whether a text is a reference, or one that is misspelled: it is shown, for it holds no secret.
fn is_reference(text: &str) -> bool {
    reference::refers(text)
}
