#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    agentd::journal::fuzzing::journal(data);
});
