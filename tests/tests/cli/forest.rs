//! `agentd demo`, the whole program, over trees that nobody wrote by hand: names and counts are drawn, and the
//! answer is compared with a walk of the test's own.

use crate::place::Place;
use agentd_core::rng::Rng;
use std::fs;
use std::path::{Path, PathBuf};

/// The word that is counted. Drawn text never holds it by chance: it has no `q`.
const WORD: &str = "quark";

/// What a walk counts.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counted {
    files: usize,
    lines: usize,
    mentions: usize,
}

#[test]
fn the_demo_counts_drawn_trees_as_a_walk_does() {
    for seed in 0..6 {
        let place = Place::new();
        let root = place.path("forest");
        fs::create_dir(&root).expect("made");
        let mut rng = Rng::new(seed);
        let entries = 1 + usize::try_from(rng.below(14)).expect("small");
        for _ in 0..entries {
            grow(&root, &mut rng, 3);
        }
        let mut counted = Counted::default();
        walk(&root, &mut counted);
        let ran = place.agentd(&["demo", "forest", "--pattern", WORD]);
        assert_eq!(ran.code, Some(0), "seed {seed}: {}", ran.err);
        assert_eq!(headline(&ran.out), counted, "seed {seed}: {}", ran.out);
        assert!(ran.out.ends_with("\n0 processes left\n"), "seed {seed}: {}", ran.out);
        let asked = ran.err.lines().filter(|l| l.starts_with("sub-") && l.contains(" started ")).count();
        let there = fs::read_dir(&root).expect("there").count();
        assert!(asked >= there.min(4), "seed {seed}: {asked} subagents for {there} entries");
    }
}

/// `WORD: mentioned on M of N lines, in F text files; …`, in singular forms too.
fn headline(out: &str) -> Counted {
    let line = out.lines().next().expect("a line");
    let numbers: Vec<usize> = line
        .split(|c: char| !c.is_ascii_digit())
        .filter(|digits| !digits.is_empty())
        .map(|digits| digits.parse().expect("a number"))
        .collect();
    let [mentions, lines, files, _subagents] = numbers[..] else { panic!("{line}") };
    Counted { files, lines, mentions }
}

/// A file or a folder with a drawn name.
fn grow(folder: &Path, rng: &mut Rng, depth: u32) {
    let path = folder.join(name(rng));
    if path.exists() {
        return;
    }
    if depth > 0 && rng.below(3) == 0 {
        fs::create_dir(&path).expect("made");
        for _ in 0..rng.below(5) {
            grow(&path, rng, depth - 1);
        }
        return;
    }
    let mut text = String::new();
    for _ in 0..rng.below(40) {
        for _ in 0..rng.below(6) {
            text.push_str(
                ["fir ", "alder ", "", "größe ", WORD, "Quark "]
                    [usize::try_from(rng.below(6)).expect("small")],
            );
        }
        text.push('\n');
    }
    if rng.below(4) == 0 {
        text.pop();
    }
    fs::write(path, text).expect("written");
}

fn name(rng: &mut Rng) -> PathBuf {
    const PARTS: [&str; 12] = ["a", "-", " ", "é", "'", "\"", "{{", "$(x)", ".", "*", "\\", "日本"];
    let mut name = String::from(["n", "-n", ".n"][usize::try_from(rng.below(3)).expect("small")]);
    for _ in 0..=rng.below(5) {
        name.push_str(PARTS[usize::try_from(rng.below(12)).expect("small")]);
    }
    name.into()
}

fn walk(folder: &Path, counted: &mut Counted) {
    for entry in fs::read_dir(folder).expect("there") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            walk(&path, counted);
            continue;
        }
        let text = fs::read_to_string(&path).expect("text");
        counted.files += 1;
        counted.lines += text.lines().count();
        counted.mentions += text.lines().filter(|line| line.contains(WORD)).count();
    }
}
