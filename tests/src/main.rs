//! agentd under the name the tests drive it by.
fn main() -> std::process::ExitCode {
    agentd::main()
}
