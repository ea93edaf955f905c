//! The commands that the documentation shows are run as they stand there.

use crate::stage::{daemon, text};
use std::path::Path;

/// The blocks of a page in this language.
pub(crate) fn blocks(page: &str, language: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(page);
    let page = std::fs::read_to_string(path).expect("the page");
    let fence = format!("```{language}\n");
    page.split(fence.as_str()).skip(1).filter_map(|rest| Some(rest.split_once("```")?.0.to_owned())).collect()
}

#[test]
fn every_curl_of_the_page_on_a2a_works_as_it_is_written() {
    let running = daemon()
        .config(
            "a2a: {listen: [unix, \"http://127.0.0.1:0\"], principals: [{id: ops, match: {token: \"{{secret:OPS_TOKEN}}\"}, role: operator}]}",
        )
        .env("OPS_TOKEN", "ops-0123456789-abcdef")
        .serve();
    let scripts = blocks("a2a.md", "sh");
    assert!(scripts.len() >= 5, "{} examples", scripts.len());
    for script in scripts {
        let output = running
            .command("bash", &["-eo", "pipefail", "-c", &script])
            .env("OPS_TOKEN", "ops-0123456789-abcdef")
            .env("AGENTD_URL", running.address("http://"))
            .output()
            .expect("bash runs");
        let said = text(&output.stdout);
        assert!(output.status.success() && !said.is_empty(), "{script}\n{output:?}");
        assert!(!said.contains("\"error\":{") && !said.contains("HTTP/1.1 4"), "{script}\n{said}");
    }
    running.agentd(&["drain"]);
    assert_eq!(running.wait().code(), 0);
}
