//! What a child or an operator says, by the bytes that choose it.

use crate::bytes::{Bytes, Json};
use crate::wire::message::{FailKind, Failed, LoopEnd, LoopEvidence, RunResult, TurnOutcome, Usage};

/// What a child calls, and with which arguments; `#` is a handle's number.
const CALLS: [(&str, &str); 24] = [
    ("subagent.run", r#"{"instruction":"x"}"#),
    ("subagent.run", r#"{"instruction":"x","mode":"async"}"#),
    ("subagent.run", r#"{"instruction":"x","mode":"detached","priority":"low"}"#),
    ("subagent.run", r#"{"instruction":"x","mode":"warm"}"#),
    ("subagent.run", r#"{"instruction":"x","mode":"async","delegate":true,"priority":"high"}"#),
    (
        "subagent.run",
        r#"{"instruction":"x","limits":{"tokens":9,"deadline":"1s"},"tools":["*"],"servers":[]}"#,
    ),
    ("subagent.run", r#"{"instruction":"x","output_schema":{"type":"object"},"plan_item":#}"#),
    ("subagent.run", r#"{"instruction":""}"#),
    ("subagent.await", r#"{"handles":["sub-#"]}"#),
    ("subagent.await", r#"{"handles":["sub-1","sub-2","sub-#"],"until":"any","timeout":"2s"}"#),
    ("subagent.await", r#"{"handles":["sub-#"],"message_id":2}"#),
    ("subagent.status", r#"{"handle":"sub-#"}"#),
    ("subagent.list", r#"{}"#),
    ("subagent.kill", r#"{"handle":"sub-#"}"#),
    ("subagent.kill", r#"{"handle":"sub-#","only":true}"#),
    ("subagent.send", r#"{"handle":"sub-#","message":"more"}"#),
    ("subagent.steer", r#"{"handle":"sub-#","text":"left"}"#),
    ("subagent.finish", r#"{"handle":"sub-#"}"#),
    ("subagent.retire", r#"{"handle":"sub-#"}"#),
    ("plan.create", r#"{"items":["a","b","c"]}"#),
    ("plan.get", r#"{}"#),
    ("plan.update", r#"{"item":#,"status":"done"}"#),
    ("status", r#"{}"#),
    ("nonsense", r#"[1"#),
];

/// A call of [`CALLS`].
pub(super) fn call(which: u8, with: u8) -> (String, Json) {
    let (name, args) = CALLS[usize::from(which) % CALLS.len()];
    let args = args.replace('#', &(with % 8).to_string());
    (name.to_owned(), Json(Bytes::from(args.into_bytes())))
}

/// A result of every kind.
pub(super) fn result(which: u8) -> RunResult {
    use LoopEnd::{Cancelled, Completed, Deadline, ExhaustedSteps, ExhaustedTokens, LoopDetected, Refused};
    let ends =
        [Completed, Completed, Cancelled, Refused, ExhaustedSteps, ExhaustedTokens, Deadline, LoopDetected];
    RunResult {
        end: ends[usize::from(which % 8)],
        text: (which & 8 == 0).then(|| if which & 16 == 0 { "x".into() } else { r#"{"a":1}"#.into() }),
        partial: which & 32 != 0,
        error: (which & 64 != 0).then(|| "why".into()),
        evidence: LoopEvidence::default(),
    }
}

/// The end of a turn: mostly a result.
pub(super) fn outcome(which: u8) -> TurnOutcome {
    if which < 224 {
        return TurnOutcome::Result(result(which));
    }
    let (error, evidence) = ("gave out".to_owned(), LoopEvidence::default());
    TurnOutcome::Failed(Failed { kind: FailKind::EmptyReply, error, text: None, evidence })
}

/// What a call used; the largest there is among it.
pub(super) fn usage(with: u8) -> Usage {
    let most = if with == 255 { u64::MAX } else { u64::from(with) };
    Usage { input: most, output: most, cached: u64::from(with / 2), estimated: false, model: "mock".into() }
}
