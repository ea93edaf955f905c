//! A program that is nothing but a supervisor: it begins one run, says so, and goes on until signals end it.

use agentd::config::{self, Flags, Sources};
use agentd::embed::{self, Signals};
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = agentd::child_main() {
        return code;
    }
    let signals = Signals::take().expect("before any thread");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let file = std::env::args_os().nth(1).expect("a configuration");
        let sources = Sources::of_process(vec![file.into()], Flags::default()).expect("a folder");
        let loaded =
            config::load(&sources).unwrap_or_else(|problems| panic!("{}", config::render(&problems)));
        let (supervisor, driver) = embed::builder(loaded).own_process(signals).start().expect("it starts");
        let driving = tokio::spawn(driver);
        let run = supervisor.run("wait").await.expect("a run");
        println!("{} is up", run.handle());
        let result = run.result().await;
        let ended = driving.await.expect("no panic").expect("it ends well");
        println!("{:?} {}", ended.interrupted, ended.leaked);
        println!(
            "{}",
            result.map_or_else(|error| error.to_string(), |result| result.status.name().to_owned())
        );
    });
    ExitCode::SUCCESS
}
