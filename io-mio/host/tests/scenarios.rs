//! What the host does to whole processes: sweeps, orphans, PID 1, inherited signals.

#[path = "harness/mod.rs"]
mod harness;
#[path = "scenarios/tree.rs"]
mod tree;

fn main() -> std::process::ExitCode {
    harness::main(tree::SCENARIOS, tree::PARTS)
}
