//! The agentd program.
fn main() -> std::process::ExitCode {
    agentd::main()
}
