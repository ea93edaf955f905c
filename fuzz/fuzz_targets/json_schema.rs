#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    agentd_core::json::fuzzing::json_schema(data);
});
