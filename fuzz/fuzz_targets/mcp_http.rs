#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    agentd_core::mcp::fuzzing::mcp_http(data);
});
