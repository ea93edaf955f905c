use super::*;
use std::fs;
use tempfile::TempDir;

const CANARY: &str = "canary-4711";

fn secrets(variables: &[(&str, &str)]) -> Secrets {
    let environment: Vec<(OsString, OsString)> =
        variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
    Secrets::new(&environment)
}

fn file(bytes: &[u8]) -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("key");
    fs::write(&path, bytes).expect("a file");
    let text = format!("{{{{secret-file:{}}}}}", path.display());
    (folder, text)
}

#[test]
fn a_credential_comes_before_a_variable() {
    let folder = tempfile::tempdir().expect("a folder");
    let secrets = secrets(&[
        ("CREDENTIALS_DIRECTORY", folder.path().to_str().expect("UTF-8")),
        ("KEY", "of the variable"),
        ("ONLY", "here"),
    ]);
    let fill = |text: &str| secrets.fill(text, Use::Header).expect("a value");
    assert_eq!(fill("{{secret:KEY}}"), "of the variable");
    fs::write(folder.path().join("KEY"), "of systemd\n").expect("written");
    assert_eq!(fill("Bearer {{secret:KEY}}, {{secret:ONLY}}"), "Bearer of systemd, here");
    // What is there and cannot be read is not passed over.
    fs::write(folder.path().join("KEY"), "").expect("written");
    assert!(secrets.fill("{{secret:KEY}}", Use::Header).is_err());
    let error = secrets.fill("{{secret:NONE}}", Use::Header).expect_err("nowhere").to_string();
    let path = folder.path().join("NONE");
    assert_eq!(
        error,
        format!(
            "the secret NONE is not there: looked for the credential {} and the variable NONE",
            path.display()
        )
    );
}

#[test]
fn one_line_end_of_a_file_is_dropped() {
    for (bytes, value) in [("k", "k"), ("k\n", "k"), ("k\r\n", "k"), (" k \n", " k ")] {
        let (_folder, text) = file(bytes.as_bytes());
        assert_eq!(secrets(&[]).fill(&text, Use::Header).expect("a value"), value, "{bytes:?}");
    }
    let (_folder, pem) = file(b"a\nb\n\n");
    assert_eq!(secrets(&[]).fill(&pem, Use::Variable).expect("a value"), "a\nb\n");
}

#[test]
fn what_cannot_be_sent_is_refused_and_never_quoted() {
    let bytes = |text: &str| format!("{CANARY}{text}").into_bytes();
    let large = [CANARY.as_bytes(), &vec![b'x'; 64 * 1024]].concat();
    let cases: [(Vec<u8>, Use, &str); 10] = [
        (Vec::new(), Use::Variable, "is empty"),
        (b"\n".to_vec(), Use::Variable, "is empty"),
        (b" \n".to_vec(), Use::Header, "nothing but blanks"),
        (bytes("\n\n"), Use::Header, "line break"),
        (bytes("\r\nX-Evil: 1"), Use::Header, "line break"),
        (bytes("\0"), Use::Variable, "NUL"),
        (bytes("\u{1b}"), Use::Header, "control character"),
        (bytes("”"), Use::Header, "beyond ASCII"),
        ([CANARY.as_bytes(), b"\xff"].concat(), Use::Variable, "not UTF-8"),
        (large, Use::Variable, "larger than 64 KiB"),
    ];
    for (bytes, used, words) in cases {
        let (_folder, text) = file(&bytes);
        let error = secrets(&[]).fill(&text, used).expect_err(words).to_string();
        assert!(error.contains(words) && error.contains("key"), "{error}");
        assert!(!error.contains(CANARY), "{error}");
    }
    let error =
        secrets(&[("K", "canary-4711\n")]).fill("{{secret:K}}", Use::Header).expect_err("a line break");
    assert_eq!(error.to_string(), "the variable K has a line break in it, which no header can carry");
}

#[test]
fn a_pipe_holds_nobody_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .expect("a pipe");
    for path in [path.as_path(), folder.path(), Path::new("/dev/zero")] {
        let error = secrets(&[]).fill(&reference::to_file(path.to_str().expect("UTF-8")), Use::Header);
        assert!(error.expect_err("refused").to_string().contains("not a regular file"), "{path:?}");
    }
    let error =
        secrets(&[]).fill("{{secret-file:/nowhere/k}}", Use::Header).expect_err("nowhere").to_string();
    assert!(error.starts_with("the file /nowhere/k cannot be read: No such file"), "{error}");
}

#[test]
fn no_value_is_shown() {
    let secrets = secrets(&[("K", CANARY), ("CREDENTIALS_DIRECTORY", "relative")]);
    assert!(!format!("{secrets:?}").contains(CANARY));
    assert!(secrets.is_set("K") && !secrets.is_set("L"));
    assert!(secrets.fill("{{secret:L}}", Use::Header).is_err_and(|e| !e.to_string().contains("credential")));
}
