//! The documents and the code say the same: the table of keys is printed into `docs/configuration.md`, and every
//! example in the documents loads.

use super::load::{Sources, load};
use super::{Code, render, table};
use std::fs;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- keys: printed from the code -->\n";
const END: &str = "<!-- end of keys -->\n";

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

#[test]
fn the_table_of_keys_is_that_of_the_code() {
    let path = docs().join("configuration.md");
    let text = fs::read_to_string(&path).expect("docs/configuration.md");
    let (before, rest) = text.split_once(BEGIN).expect("the beginning of the table");
    let (_, after) = rest.split_once(END).expect("the end of the table");
    let wanted = format!("{before}{BEGIN}{}{END}{after}", table());
    if text != wanted && std::env::var_os("PRINT_DOCS").is_some() {
        fs::write(&path, &wanted).expect("docs/configuration.md can be written");
        return;
    }
    assert!(
        text == wanted,
        "docs/configuration.md is behind the code: PRINT_DOCS=1 cargo test -p agentd prints it"
    );
}

#[test]
fn every_example_in_the_documents_loads() {
    let mut examples = 0;
    let mut files: Vec<PathBuf> =
        fs::read_dir(docs()).expect("docs").map(|entry| entry.expect("an entry").path()).collect();
    files.push(docs().join("../README.md"));
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "md")) {
        let text = fs::read_to_string(file).expect("a document");
        for block in text.split("\n```yaml agentd\n").skip(1) {
            let (example, _) = block.split_once("\n```").expect("a closed block");
            check(file, example);
            examples += 1;
        }
    }
    assert!(examples >= 8, "{examples} examples");
}

fn check(document: &Path, example: &str) {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("agentd.yaml"), example).expect("written");
    fs::write(dir.path().join("playbook.yaml"), "rules: [{reply: {text: hi}}]\n").expect("written");
    fs::write(dir.path().join("gateway.key"), "a key\n").expect("written");
    let names = example.split("{{secret:").skip(1).filter_map(|rest| rest.split("}}").next());
    let names = names.chain(["ANTHROPIC_API_KEY", "OPENAI_API_KEY"]);
    let environment = names.map(|name| (name.into(), "fake".into())).collect();
    let sources = Sources { here: dir.path().to_owned(), environment, ..Sources::default() };
    let problems = match load(&sources) {
        Ok(loaded) => loaded.warnings,
        Err(problems) => problems,
    };
    // What a machine has installed is none of an example's business.
    let problems: Vec<_> = problems.into_iter().filter(|problem| problem.code != Code::NoProgram).collect();
    assert!(problems.is_empty(), "an example in {}:\n{example}\n\n{}", document.display(), render(&problems));
}
