#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    agentd_tests::sim::fuzzing::core_plan(data);
});
