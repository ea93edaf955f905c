//! One scenario on one driver, with real processes, for tests and for people.
fn main() -> std::process::ExitCode {
    agentd_tests::arms::main()
}
