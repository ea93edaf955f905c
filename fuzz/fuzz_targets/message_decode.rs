#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    agentd_core::wire::fuzzing::message_decode(data);
});
