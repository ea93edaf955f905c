#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    agentd_core::model::fuzzing::model_stream(data);
});
