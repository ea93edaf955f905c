//! What the host does to whole processes: sweeps, orphans, PID 1, making children, inherited signals, what a service manager hands over.

#[path = "harness/mod.rs"]
mod harness;
#[path = "scenarios/service.rs"]
mod service;
#[path = "scenarios/signals.rs"]
mod signals;
#[path = "scenarios/spawner.rs"]
mod spawner;
#[path = "scenarios/tree.rs"]
mod tree;

fn main() -> std::process::ExitCode {
    let scenarios = [tree::SCENARIOS, spawner::SCENARIOS, signals::SCENARIOS, service::SCENARIOS].concat();
    let parts = [tree::PARTS, spawner::PARTS, signals::PARTS, service::PARTS].concat();
    harness::main(&scenarios, &parts)
}
