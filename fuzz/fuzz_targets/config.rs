#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    agentd::config::fuzzing::config(data);
});
