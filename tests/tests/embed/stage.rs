//! A program with a supervisor in it: a scripted model, a tool that asks the test, and a folder by which every process
//! that came of it is found again.

use agentd::config::{self, Flags, Sources};
use agentd::embed::{Builder, Driver, DriverError, Ended, Image, Supervisor, ToolCall, Tools};
use agentd_tests::kit::{PATIENCE, Rule, Subtree, playbook};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::{Builder as Runtimes, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// How long what a supervisor left may take to be gone (S9.7).
const GONE: Duration = Duration::from_secs(2);

/// A folder with a configuration.
pub(crate) struct Stage(TempDir);

/// A call of the tool `ask`, which waits for the test.
pub(crate) struct Asked {
    pub(crate) call: ToolCall,
    pub(crate) answer: oneshot::Sender<Result<Value, String>>,
}

/// The calls of `ask`, in the order they come.
pub(crate) struct Asks(mpsc::UnboundedReceiver<Asked>);

/// Runs a test on a runtime of each flavour.
pub(crate) fn on_both<F: Future>(test: impl Fn() -> F) {
    for runtime in [current_thread(), multi_thread()] {
        runtime.block_on(async { tokio::time::timeout(PATIENCE, test()).await.expect("it ends in time") });
    }
}

pub(crate) fn current_thread() -> Runtime {
    Runtimes::new_current_thread().enable_all().build().expect("a runtime")
}

pub(crate) fn multi_thread() -> Runtime {
    Runtimes::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

impl Stage {
    /// With a scripted model and more configuration.
    pub(crate) fn new(rules: impl IntoIterator<Item = Rule>, more: &str) -> Stage {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("playbook.yaml"), playbook(rules)).expect("a file");
        let text = format!("intelligence: {{dialect: mock, endpoints: [playbook.yaml]}}\n{more}\n");
        fs::write(folder.path().join("agentd.yaml"), text).expect("a file");
        Stage(folder)
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    /// A supervisor whose children are the binary under test, marked by their home.
    pub(crate) fn builder(&self) -> Builder {
        let files = vec![self.path("agentd.yaml")];
        let sources = Sources {
            files,
            environment: Vec::new(),
            here: self.0.path().to_owned(),
            flags: Flags::default(),
        };
        let loaded =
            config::load(&sources).unwrap_or_else(|problems| panic!("{}", config::render(&problems)));
        let env: [(OsString, OsString); 2] = [
            ("PATH".into(), std::env::var_os("PATH").unwrap_or_default()),
            ("HOME".into(), self.0.path().into()),
        ];
        let program = Path::new(env!("CARGO_BIN_EXE_agentd-under-test"));
        let image = Image::of(program, Vec::new(), env.into()).expect("a path");
        Supervisor::builder(loaded.config, image)
    }

    /// Shuts a supervisor down and sees that nothing is left of it.
    pub(crate) async fn ends_well(
        &self,
        supervisor: Supervisor,
        driving: JoinHandle<Result<Ended, DriverError>>,
    ) {
        supervisor.shutdown().await;
        driving.await.expect("no panic").expect("it ends well");
        self.assert_nothing_left();
    }

    /// The same, started with the tool `ask` of the server `app`, and driven by a task.
    pub(crate) fn start(&self) -> (Supervisor, JoinHandle<Result<Ended, DriverError>>, Asks) {
        let (tools, asks) = ask();
        let (supervisor, driver) = self.builder().tools(tools).start().expect("it starts");
        (supervisor, tokio::spawn(driver), asks)
    }

    /// The same without a task.
    pub(crate) fn undriven(&self) -> (Supervisor, Driver, Asks) {
        let (tools, asks) = ask();
        let (supervisor, driver) = self.builder().tools(tools).start().expect("it starts");
        (supervisor, driver, asks)
    }

    /// Every process that came of it, wherever it has moved to.
    pub(crate) fn processes(&self) -> Subtree {
        Subtree::marked("HOME", &self.0.path().to_string_lossy())
    }

    /// Fails when one lives on.
    pub(crate) fn assert_nothing_left(&self) {
        let left = self.processes().wait_for_end(GONE);
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}

impl Asks {
    /// The next call.
    pub(crate) async fn next(&mut self) -> Asked {
        self.0.recv().await.expect("the tool is there")
    }
}

/// A tool that waits for the test to answer.
fn ask() -> (Tools, Asks) {
    let (asked, asks) = mpsc::unbounded_channel();
    let schema = json!({ "type": "object", "properties": { "q": {} } });
    let tools = Tools::new("app").tool("ask", "Asks the program.", schema, move |call: ToolCall| {
        let asked = asked.clone();
        async move {
            let (answer, answered) = oneshot::channel();
            asked.send(Asked { call, answer }).map_err(|_| "the test is over".to_owned())?;
            answered.await.unwrap_or_else(|_| Err("the test does not answer".to_owned()))
        }
    });
    (tools, Asks(asks))
}

/// Subagents that ask the program what they were told, and answer with what it says.
pub(crate) fn askers() -> Vec<Rule> {
    use agentd_tests::kit::call;
    vec![
        Rule::subagent().turn(1).calls([call("app.ask", json!({ "q": "{{ text }}" }))]),
        Rule::subagent().says("{{ last.text }}"),
        Rule::worker().turn(1).calls([call("app.ask", json!({ "q": "{{ text }}" }))]),
        Rule::worker().says("{{ last.text }}"),
    ]
}
