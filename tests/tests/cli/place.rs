//! A folder of its own for each test, and agentd started in it with nothing of the tester's environment.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// The smallest configuration of a playbook in the same folder.
pub(crate) const CONFIG: &str = "intelligence: {dialect: mock, endpoints: [playbook.yaml]}\n";

pub(crate) struct Place(TempDir);

/// What a finished agentd left.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place(tempfile::tempdir().expect("a folder"))
    }

    /// A folder with a configuration and a playbook; `more` is added to the configuration.
    pub(crate) fn with(playbook: &str, more: &str) -> Place {
        let place = Place::new();
        place.write("playbook.yaml", playbook);
        place.write("agentd.yaml", &format!("{CONFIG}{more}"));
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentd-under-test"));
        command.args(args).current_dir(self.0.path()).env_clear().env("HOME", self.0.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn start(&self, args: &[&str]) -> Child {
        self.command(args).spawn().expect("agentd starts")
    }

    pub(crate) fn agentd(&self, args: &[&str]) -> Said {
        said(self.command(args).output().expect("agentd starts"))
    }
}

pub(crate) fn said(output: Output) -> Said {
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}
