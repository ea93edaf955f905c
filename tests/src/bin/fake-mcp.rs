//! A hostile MCP server, for tests.
fn main() -> std::process::ExitCode {
    agentd_tests::mcp_server::main()
}
