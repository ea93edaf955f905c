//! Exit codes (S17.3).

use crate::supervise::Outcome;
use agentd_core::event::SupervisorSignal;
use agentd_core::record::{ResultObject, Status};
use agentd_core::wire::message::FailKind;

/// All went well.
pub(super) const COMPLETED: u8 = 0;
/// The run failed, or agentd did.
pub(super) const FAILED: u8 = 1;
/// The arguments or the configuration are wrong.
pub(super) const USAGE: u8 = 2;

/// The answer is not a full one.
pub(super) const PARTIAL: u8 = 3;
/// No model could be reached, it rejected the credential, or there is none.
pub(super) const MODEL: u8 = 4;
/// The provider refused.
pub(super) const REFUSED: u8 = 5;
/// A required server is down.
pub(super) const SERVER: u8 = 6;
/// Out of steps or tokens, or going in circles.
pub(super) const EXHAUSTED: u8 = 7;
/// A wait is over and what was waited for goes on.
pub(super) const TIMED_OUT: u8 = 75;
/// Out of time.
pub(super) const DEADLINE: u8 = 124;
/// Ended by SIGHUP.
const HUNG_UP: u8 = 129;
/// Ended by SIGINT.
const INTERRUPTED: u8 = 130;
/// Ended by SIGTERM.
const TERMINATED: u8 = 143;

/// The code of a one-shot run.
pub(super) fn code(outcome: &Outcome) -> u8 {
    match &outcome.result {
        Some(result) => of_result(result, outcome.fault, outcome.interrupted),
        None => of_signal(outcome.interrupted).unwrap_or(FAILED),
    }
}

fn of_result(result: &ResultObject, fault: Option<FailKind>, signal: Option<SupervisorSignal>) -> u8 {
    match result.status {
        Status::Completed if result.partial => PARTIAL,
        Status::Completed => COMPLETED,
        Status::Failed => match fault {
            Some(kind) => of_fault(kind),
            None => of_signal(signal).unwrap_or(FAILED),
        },
        Status::Refused => REFUSED,
        Status::ExhaustedSteps | Status::ExhaustedTokens | Status::LoopDetected => EXHAUSTED,
        Status::Deadline => DEADLINE,
        Status::Cancelled
        | Status::Crashed
        | Status::Parked
        | Status::Held
        | Status::Spawned
        | Status::Running
        | Status::Retiring => of_signal(signal).unwrap_or(FAILED),
    }
}

/// The code of what gave out: only what could not be had at all has one of its own.
pub(super) fn of_fault(kind: FailKind) -> u8 {
    match kind {
        FailKind::Model => MODEL,
        FailKind::Server => SERVER,
        FailKind::Spawn | FailKind::Reply | FailKind::EmptyReply | FailKind::Schema => FAILED,
        FailKind::Budget | FailKind::Internal => FAILED,
    }
}

fn of_signal(signal: Option<SupervisorSignal>) -> Option<u8> {
    match signal {
        Some(SupervisorSignal::Int) => Some(INTERRUPTED),
        Some(SupervisorSignal::Term) => Some(TERMINATED),
        Some(SupervisorSignal::Hup) => Some(HUNG_UP),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::id::RunId;
    use agentd_core::rng::Rng;
    use agentd_core::time::Wall;

    fn outcome(
        status: Status,
        partial: bool,
        fault: Option<FailKind>,
        signal: Option<SupervisorSignal>,
    ) -> Outcome {
        let result = ResultObject {
            handle: None,
            run_id: RunId::mint(Wall(0), &mut Rng::new(1)),
            status,
            result: serde_json::Value::Null,
            partial,
            error: None,
            usage: Default::default(),
            evidence: Default::default(),
            attempt: 1,
        };
        Outcome { result: Some(result), fault, interrupted: signal, leaked: 0, costliest: None }
    }

    /// Exit code 4 says that there is no model to be had (S17.3).
    #[test]
    fn every_way_in_which_a_model_call_fails_has_its_code() {
        use agentd_core::model::ModelErrorKind as Kind;
        let code = |kind: Kind| of_fault(kind.fails_as());
        assert_eq!(
            Kind::ALL.map(|kind| (kind, code(kind))),
            [
                (Kind::Unreachable, 4),
                (Kind::Overloaded, 4),
                (Kind::Rejected, 1),
                (Kind::Credential, 4),
                (Kind::Malformed, 1),
                (Kind::TooLong, 1),
            ]
        );
    }

    #[test]
    fn every_status_has_its_code() {
        use SupervisorSignal::{Hup, Int, Term};
        for (status, partial, fault, signal, code) in [
            (Status::Completed, false, None, None, 0),
            (Status::Completed, true, None, None, 3),
            (Status::Completed, false, None, Some(Term), 0),
            (Status::Failed, false, None, None, 1),
            (Status::Failed, true, Some(FailKind::Internal), None, 1),
            (Status::Failed, false, Some(FailKind::Model), None, 4),
            (Status::Failed, false, Some(FailKind::Reply), None, 1),
            (Status::Failed, false, Some(FailKind::Model), Some(Term), 4),
            (Status::Failed, false, Some(FailKind::Server), None, 6),
            (Status::Failed, false, Some(FailKind::Spawn), None, 1),
            (Status::Failed, false, Some(FailKind::EmptyReply), None, 1),
            (Status::Failed, false, Some(FailKind::Schema), None, 1),
            (Status::Failed, false, Some(FailKind::Budget), None, 1),
            (Status::Failed, false, None, Some(Term), 143),
            (Status::Refused, false, None, None, 5),
            (Status::ExhaustedSteps, true, None, None, 7),
            (Status::ExhaustedTokens, true, None, None, 7),
            (Status::LoopDetected, false, None, None, 7),
            (Status::Deadline, true, None, None, 124),
            (Status::Cancelled, false, None, Some(Int), 130),
            (Status::Cancelled, false, None, Some(Term), 143),
            (Status::Parked, false, None, Some(Int), 130),
            (Status::Cancelled, false, None, Some(Hup), 129),
            (Status::Cancelled, false, None, None, 1),
        ] {
            assert_eq!(
                super::code(&outcome(status, partial, fault, signal)),
                code,
                "{status:?} {fault:?} {signal:?}"
            );
        }
        let none = Outcome { result: None, fault: None, interrupted: Some(Int), leaked: 0, costliest: None };
        assert_eq!(super::code(&none), 130);
    }
}
