//! The units of `docs/`, and the page that explains them.

use crate::docs::blocks;
use crate::stage::{AGENTD, text};
use agentd_tests::kit::skip;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `systemd-analyze security` may say at most of the service, in tenths; it says 2.1 of the unit as it is.
const EXPOSURE: &str = "25";

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name)).expect("it is there")
}

/// The units in a folder of their own, with the program that is tested in place of the installed one.
fn units(folder: &Path) -> Vec<PathBuf> {
    let made = ["agentd.service", "agentd.socket"].map(|name| {
        let path = folder.join(name);
        fs::write(&path, page(name).replace("/usr/bin/agentd", AGENTD)).expect("written");
        path
    });
    made.to_vec()
}

fn analyze(args: &[&str], units: &[PathBuf]) -> (bool, String) {
    let mut command = Command::new("systemd-analyze");
    command.args(args).args(units);
    let output = command.output().expect("systemd-analyze is there (Debian package systemd)");
    (output.status.success(), text(&[output.stdout, output.stderr].concat()))
}

/// CI installs the program and has no leave to skip this.
#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        let why = "systemd-analyze (Debian package systemd) is not here";
        return skip("systemd_finds_nothing_wrong_with_the_units", why);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let units = units(folder.path());
    let (well, said) = analyze(&["verify", "--man=no"], &units);
    assert!(well && said.is_empty(), "{said}");
    let (well, said) = analyze(
        &["security", "--offline=true", "--no-pager", &format!("--threshold={EXPOSURE}")],
        &units[..1],
    );
    assert!(well, "{said}");
    // Whoever breaks them is told: a test that cannot fail is none.
    fs::write(&units[0], page("agentd.service").replace("KillMode=mixed", "KillMode=gently"))
        .expect("written");
    assert!(analyze(&["verify", "--man=no"], &units).1.contains("gently"));
}

#[test]
fn the_configuration_of_the_page_is_one_and_fits_the_units() {
    let folder = tempfile::tempdir().expect("a folder");
    let [config] = blocks("systemd.md", "yaml").try_into().expect("one example");
    let path = folder.path().join("agentd.yaml");
    fs::write(&path, &config).expect("written");
    fs::write(folder.path().join("ANTHROPIC_API_KEY"), "key\n").expect("written");
    let mut check = Command::new(AGENTD);
    check.args(["check", "-c"]).arg(&path).env_clear().env("CREDENTIALS_DIRECTORY", folder.path());
    let output = check.output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let (service, socket) = (page("agentd.service"), page("agentd.socket"));
    assert!(
        service.contains("LoadCredential=ANTHROPIC_API_KEY:")
            && config.contains("{{secret:ANTHROPIC_API_KEY}}")
    );
    assert!(
        socket.contains("ListenStream=/run/agentd/control.sock")
            && config.contains("unix:///run/agentd/control.sock")
    );
    assert!(service.contains("StateDirectory=agentd\n") && config.contains("path: /var/lib/agentd\n"));
}
