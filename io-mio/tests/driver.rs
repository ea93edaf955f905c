//! The driver with real processes: a machine that stands in for the core, shells and a small actor as children.

#[path = "driver/actor.rs"]
mod actor;
#[path = "driver/deaths.rs"]
mod deaths;
#[path = "../host/tests/harness/mod.rs"]
mod harness;
#[path = "driver/lives.rs"]
mod lives;
#[path = "driver/pipes.rs"]
mod pipes;
#[path = "driver/stage.rs"]
mod stage;
#[path = "driver/whole.rs"]
mod whole;

fn main() -> std::process::ExitCode {
    if std::env::var_os("AGENTD_SUBAGENT").is_some() {
        return actor::main();
    }
    let scenarios = [lives::SCENARIOS, pipes::SCENARIOS, deaths::SCENARIOS, whole::SCENARIOS].concat();
    let parts = [lives::PARTS, whole::PARTS].concat();
    harness::main(&scenarios, &parts)
}
