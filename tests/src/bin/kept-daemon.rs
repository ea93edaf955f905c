//! A daemon with the sqlite store, for tests of restarts.
fn main() -> std::process::ExitCode {
    agentd_tests::daemon::main()
}
