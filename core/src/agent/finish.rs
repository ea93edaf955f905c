//! The finish table (S7.4): what a reply means, by what is in it and why the model stopped.

use crate::model::Finish;

/// What a reply means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Its calls are to be made.
    Calls,
    /// Its calls may be incomplete: none is made, each is answered with that.
    CutCalls,
    /// The final answer.
    Answer {
        /// It was cut.
        partial: bool,
    },
    /// The provider refused. Whatever else the reply holds is not acted on.
    Refused,
    /// Neither text nor calls.
    Empty,
}

/// Only `length` and a refusal change what the reply's content says: finish reasons are wrong or missing too
/// often to decide anything else (F03).
pub(super) fn verdict(has_text: bool, has_calls: bool, finish: &Finish) -> Verdict {
    let cut = match finish {
        Finish::Refusal => return Verdict::Refused,
        Finish::Length => true,
        Finish::Stop | Finish::ToolCalls | Finish::Other(_) | Finish::Missing => false,
    };
    match (has_calls, has_text) {
        (true, _) if cut => Verdict::CutCalls,
        (true, _) => Verdict::Calls,
        (false, true) => Verdict::Answer { partial: cut },
        (false, false) => Verdict::Empty,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_table() {
        let other = || Finish::Other("function_call".to_owned());
        for finish in [Finish::Stop, Finish::ToolCalls, other(), Finish::Missing] {
            assert_eq!(verdict(true, false, &finish), Verdict::Answer { partial: false });
            assert_eq!(verdict(false, true, &finish), Verdict::Calls);
            assert_eq!(verdict(true, true, &finish), Verdict::Calls);
            assert_eq!(verdict(false, false, &finish), Verdict::Empty);
        }
        assert_eq!(verdict(true, false, &Finish::Length), Verdict::Answer { partial: true });
        assert_eq!(verdict(false, true, &Finish::Length), Verdict::CutCalls);
        assert_eq!(verdict(true, true, &Finish::Length), Verdict::CutCalls);
        assert_eq!(verdict(false, false, &Finish::Length), Verdict::Empty);
        for (text, calls) in [(false, false), (false, true), (true, false), (true, true)] {
            assert_eq!(verdict(text, calls, &Finish::Refusal), Verdict::Refused);
        }
    }
}
