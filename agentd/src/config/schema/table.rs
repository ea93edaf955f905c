//! The table of keys as `docs/configuration.md` holds it.

use super::Shape::{Duration, Items, Later, Maps, Patterns, Rate, Section, Size};
use super::keys::ROOT;
use super::{Key, join};

/// Every key that is built as one row of a Markdown table, lists opened; `docs/configuration.md` holds it.
pub fn table() -> String {
    let mut rows = String::from("| key | accepted | default | |\n|---|---|---|---|\n");
    add_rows(ROOT, "", &mut rows);
    rows
}

fn add_rows(keys: &[Key], under: &str, rows: &mut String) {
    for key in keys {
        let path = join(under, key.name);
        match key.shape {
            Later => {}
            Section(inner) => add_rows(inner, &path, rows),
            Items(inner) => {
                add_row(&path, "a list of maps", key, rows);
                add_rows(inner, &format!("{path}[]"), rows);
            }
            Maps { each, .. } => {
                add_row(&path, "a map of maps", key, rows);
                add_rows(each, &format!("{path}.NAME"), rows);
            }
            Duration => add_row(&path, "a duration, not zero", key, rows),
            Size => add_row(&path, "a size, not zero", key, rows),
            Rate => add_row(&path, "a rate", key, rows),
            Patterns => add_row(&path, "a list of tool names", key, rows),
            shape => add_row(&path, &shape.accepted(), key, rows),
        }
    }
}

fn add_row(path: &str, accepted: &str, key: &Key, rows: &mut String) {
    let default = if key.default.is_empty() { String::new() } else { format!("`{}`", key.default) };
    rows.push_str(&format!("| `{path}` | {} | {default} | {} |\n", accepted.replace('|', "\\|"), key.about));
}
