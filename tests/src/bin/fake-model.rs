//! A model provider that follows a script, for tests and for people without a key.
fn main() -> std::process::ExitCode {
    agentd_tests::model_server::main()
}
