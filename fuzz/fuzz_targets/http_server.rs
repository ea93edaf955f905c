#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    agentd_core::http::fuzzing::http_server(data);
});
