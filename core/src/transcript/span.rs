//! Ids of spans (S11.4, S11.7) that follow from what is known already: the supervisor gives a child the span of the call
//! that delegated to it, and whoever exports the caller's transcript finds the same one, each time.

/// The span of a tool call: of the run whose span is `run`, by the model's id of the call. 16 lower-case hex digits.
pub fn of_call(run: &str, call_id: &str) -> String {
    hash(&[run, "call", call_id])
}

/// The span of a run's `n`th model call. 16 lower-case hex digits.
pub fn of_chat(run: &str, n: u64) -> String {
    hash(&[run, "chat", &n.to_string()])
}

/// FNV-1a of 64 bits over the parts and a byte that no part has between them: the same in every version, and no secret.
/// A span id is never all zeros.
fn hash(parts: &[&str]) -> String {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{:016x}", hash.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_same_each_time_and_tell_things_apart() {
        let run = "00f067aa0ba902b7";
        assert_eq!(of_call(run, "call_1"), of_call(run, "call_1"));
        // Held for ever: an exported trace and a later one of the same files agree.
        assert_eq!(of_call(run, "call_1"), "3c53cd2fb8a93d66");
        let all = [
            of_call(run, "call_1"),
            of_call(run, "call_2"),
            of_call("00f067aa0ba902b8", "call_1"),
            of_chat(run, 1),
        ];
        let apart: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(apart.len(), all.len());
        assert!(all.iter().all(|id| id.len() == 16 && id.bytes().all(|b| b.is_ascii_hexdigit())));
    }
}
