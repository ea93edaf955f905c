//! Holds the order of the core's floors, as the table in `lib.rs` tells it, against what the sources import.

// The core itself reads no file; this looks at its source.
#![allow(clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Where a module stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the table, on this floor.
    Floor(u32),
    /// In the child's wing.
    Wing,
}

/// The highest floor that the child's wing may stand on: floors above it are the supervisor's alone.
const WING_STANDS_ON: u32 = 2;

#[test]
fn modules_import_only_from_their_own_floor_or_below() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = fs::read_to_string(source.join("lib.rs")).unwrap();
    let places = places(&lib);
    let mut wrong = Vec::new();
    for module in modules(&lib) {
        let Some(place) = places.get(&module) else {
            wrong.push(format!("{module} is neither in the table of floors nor in the child's wing"));
            continue;
        };
        for file in files(&source, &module) {
            for import in imports(&fs::read_to_string(&file).unwrap()) {
                let Some(target) = places.get(&import) else { continue };
                if !may_import(*place, *target) {
                    wrong.push(format!("{}: {place:?} imports {import}, {target:?}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn may_import(from: Place, target: Place) -> bool {
    match (from, target) {
        (Place::Floor(own), Place::Floor(floor)) => floor <= own,
        (Place::Floor(_), Place::Wing) => false,
        (Place::Wing, Place::Floor(floor)) => floor <= WING_STANDS_ON,
        (Place::Wing, Place::Wing) => true,
    }
}

/// Reads the table's rows and the sentence about the wing.
fn places(lib: &str) -> BTreeMap<String, Place> {
    let mut places = BTreeMap::new();
    for line in lib.lines().filter_map(|line| line.strip_prefix("//!")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let [_, floor, names, _] = cells.as_slice()
            && let Ok(floor) = floor.parse()
        {
            places.extend(quoted(names).map(|name| (name, Place::Floor(floor))));
        }
        if let Some((names, _)) =
            line.split_once("The child's wing (").and_then(|(_, rest)| rest.split_once(')'))
        {
            places.extend(quoted(names).map(|name| (name, Place::Wing)));
        }
    }
    assert!(places.len() > 15, "the table of floors in lib.rs cannot be read: {places:?}");
    assert!(places.values().any(|place| *place == Place::Wing), "lib.rs does not name the child's wing");
    places
}

/// The names between backticks; `mod@` only tells rustdoc what is meant.
fn quoted(text: &str) -> impl Iterator<Item = String> {
    text.split('`').skip(1).step_by(2).map(|name| name.trim_start_matches("mod@").to_owned())
}

/// The modules that `lib.rs` declares.
fn modules(lib: &str) -> BTreeSet<String> {
    let declared = lib.lines().filter_map(|line| {
        let line = line.trim();
        line.strip_prefix("pub mod ").or(line.strip_prefix("mod "))?.strip_suffix(';')
    });
    declared.map(str::to_owned).collect()
}

/// A module's files, those of its tests left out: a test may look at anything.
fn files(source: &Path, module: &str) -> Vec<PathBuf> {
    let mut found = vec![source.join(format!("{module}.rs"))];
    let mut folders = vec![source.join(module)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
            if path.is_dir() && !is_test {
                folders.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") && !is_test {
                found.push(path);
            }
        }
    }
    found.retain(|path| path.is_file());
    assert!(!found.is_empty(), "no source of {module}");
    found
}

/// The top-level modules that a source names after `crate::`, one by one or in braces; comments do not count.
fn imports(source: &str) -> BTreeSet<String> {
    let code: Vec<&str> = source.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let mut found = BTreeSet::new();
    for (at, path) in code.match_indices("crate::") {
        let rest = &code[at + path.len()..];
        match rest.strip_prefix('{') {
            Some(list) => found.extend(heads(list)),
            None => found.extend(word(rest)),
        }
    }
    found
}

/// The first word of each entry of a braced list.
fn heads(list: &str) -> Vec<String> {
    let (mut depth, mut heads, mut fresh) = (0, Vec::new(), true);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            _ if fresh && !c.is_whitespace() => {
                heads.extend(word(&list[at..]));
                fresh = false;
            }
            _ => {}
        }
    }
    heads
}

fn word(text: &str) -> Option<String> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    (end > 0).then(|| text[..end].to_owned())
}

#[test]
fn imports_are_found_in_every_form() {
    let source = "
        use crate::one;
        use crate::{two::{x, y}, three,
                    four::z};
        // crate::comment
        fn f() { crate::five::g() } // crate::trailing
    ";
    let found = imports(source);
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), ["five", "four", "one", "three", "two"]);
}

#[test]
fn the_rules_between_places() {
    assert!(may_import(Place::Floor(2), Place::Floor(2)));
    assert!(!may_import(Place::Floor(1), Place::Floor(2)));
    assert!(!may_import(Place::Floor(4), Place::Wing));
    assert!(may_import(Place::Wing, Place::Floor(2)));
    assert!(!may_import(Place::Wing, Place::Floor(3)));
}
