//! What a turn may use and has used (S7.1, S7.2, S7.5). A run that is not warm is one turn.

use crate::model::{Partial, Reply, ReplyUsage};
use crate::time::{Duration, Instant};
use crate::wire::message::{LoopEnd, RunLimits, Usage};

/// Bytes that count as one token where a provider does not say.
const BYTES_PER_TOKEN: u64 = 4;

/// Tokens that a provider may add around a request for its tools and its own template, and around each message.
/// Generous: what is not used is given back.
const REQUEST_OVERHEAD: u64 = 1_000;
const MESSAGE_OVERHEAD: u64 = 64;

/// Limits and use.
#[derive(Debug)]
pub(super) struct Budget {
    limits: RunLimits,
    since: Instant,
    /// Model calls begun.
    pub(super) steps: u32,
    tokens: u64,
    /// What the provider said that a request of so many bytes had: tokens, bytes.
    reported: Option<(u64, usize)>,
}

impl Budget {
    /// `since` is when the deadline began to run.
    pub(super) fn new(limits: RunLimits, since: Instant) -> Budget {
        Budget { limits, since, steps: 0, tokens: 0, reported: None }
    }

    /// All of it anew, for a turn that begins `now`.
    pub(super) fn renew(&mut self, now: Instant) {
        (self.since, self.steps, self.tokens) = (now, 0, 0);
    }

    /// Moves the deadline by time that does not count.
    pub(super) fn forgive(&mut self, stood_still: Duration) {
        self.since = self.since + stood_still;
    }

    /// When the turn is out of time.
    pub(super) fn deadline(&self) -> Instant {
        self.since + Duration::from_millis(self.limits.deadline_ms)
    }

    pub(super) fn is_overdue(&self, now: Instant) -> bool {
        now >= self.deadline()
    }

    /// What stands against one more model call, in the order of S7.1, as an ending and a sentence.
    pub(super) fn exhausted(&self, now: Instant) -> Option<(LoopEnd, String)> {
        if self.is_overdue(now) {
            return Some((LoopEnd::Deadline, self.overdue()));
        }
        let RunLimits { steps, .. } = self.limits;
        if self.steps >= steps {
            return Some((
                LoopEnd::ExhaustedSteps,
                format!("out of steps: {} of {steps} model calls made (limits.steps)", self.steps),
            ));
        }
        self.out_of_tokens().map(|why| (LoopEnd::ExhaustedTokens, why))
    }

    /// The sentence on tokens that are used up; `None` while some are left.
    pub(super) fn out_of_tokens(&self) -> Option<String> {
        let tokens = self.limits.tokens;
        let out = self.tokens >= tokens;
        out.then(|| format!("out of tokens: {} used of {tokens} (limits.tokens)", self.tokens))
    }

    /// The sentence on a deadline that has passed.
    pub(super) fn overdue(&self) -> String {
        format!(
            "out of time: the deadline of {} has passed (limits.deadline)",
            seconds(self.limits.deadline_ms)
        )
    }

    /// Tokens left.
    pub(super) fn tokens_left(&self) -> u64 {
        self.limits.tokens.saturating_sub(self.tokens)
    }

    /// Most tokens that a request of so many messages and `bytes` can have: no text has more than bytes. Where a provider
    /// has counted more than that, it is believed, and what came since is added.
    pub(super) fn most_input(&self, bytes: usize, messages: usize) -> u64 {
        let around = REQUEST_OVERHEAD.saturating_add(MESSAGE_OVERHEAD.saturating_mul(whole(messages)));
        let grown = self
            .reported
            .map_or(0, |(tokens, before)| tokens.saturating_add(whole(bytes.saturating_sub(before))));
        whole(bytes).max(grown).saturating_add(around)
    }

    /// Charges a model call that was answered. What the provider did not report is estimated from the bytes
    /// sent and received; two zeros are no report, since a call that used nothing cannot be.
    pub(super) fn charge(&mut self, model: &str, sent: usize, reply: &Reply) -> Usage {
        let nothing = |tokens: Option<u64>| tokens.unwrap_or(0) == 0;
        let said = if nothing(reply.usage.input) && nothing(reply.usage.output) {
            ReplyUsage::default()
        } else {
            reply.usage
        };
        let input = said.input.unwrap_or_else(|| estimate(sent));
        let usage = Usage {
            input,
            output: said.output.unwrap_or_else(|| estimate(received(reply))),
            cached: said.cached.unwrap_or(0).min(input),
            estimated: said.input.is_none() || said.output.is_none(),
            model: model.to_owned(),
        };
        self.reported = said.input.map(|input| (input, sent));
        self.add(&usage);
        usage
    }

    /// Charges a model call that was cut off: what was sent and what had come, by estimate, or by the provider's
    /// word where it had said more.
    pub(super) fn charge_cut(&mut self, model: &str, sent: usize, came: &Partial) -> Usage {
        let said = came.usage;
        let input = said.input.filter(|input| *input > 0).unwrap_or_else(|| estimate(sent));
        let usage = Usage {
            input,
            // The provider's sums are those of the event before at best.
            output: said.output.unwrap_or(0).max(estimate(came.bytes)),
            cached: said.cached.unwrap_or(0).min(input),
            estimated: true,
            model: model.to_owned(),
        };
        self.add(&usage);
        usage
    }

    fn add(&mut self, usage: &Usage) {
        self.tokens = self.tokens.saturating_add(usage.input).saturating_add(usage.output);
    }
}

fn received(reply: &Reply) -> usize {
    let calls: usize = reply.calls.iter().map(|c| c.name.len() + c.args.len()).sum();
    reply.text.as_ref().map_or(0, String::len) + calls
}

fn whole(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

pub(super) fn estimate(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX).div_ceil(BYTES_PER_TOKEN)
}

/// Milliseconds in the shortest exact unit.
fn seconds(ms: u64) -> String {
    if ms.is_multiple_of(1000) { format!("{} s", ms / 1000) } else { format!("{ms} ms") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Finish;

    fn reply(usage: ReplyUsage) -> Reply {
        Reply { text: Some("12345".to_owned()), calls: Vec::new(), finish: Finish::Stop, usage }
    }

    fn budget() -> Budget {
        let limits = RunLimits { steps: 1, tokens: 10, deadline_ms: 100, repeats: 0, tool_result_bytes: 1 };
        Budget::new(limits, Instant::ZERO)
    }

    #[test]
    fn what_is_not_reported_is_estimated_and_flagged() {
        let all = |input, output, cached| ReplyUsage { input, output, cached };
        for (said, want) in [
            (all(Some(7), Some(3), Some(2)), (7, 3, 2, false)),
            (all(None, None, None), (3, 2, 0, true)),
            (all(Some(7), None, None), (7, 2, 0, true)),
            (all(None, Some(3), None), (3, 3, 0, true)),
            (all(Some(0), Some(0), Some(0)), (3, 2, 0, true)),
            (all(Some(0), None, None), (3, 2, 0, true)),
            (all(Some(0), Some(3), None), (0, 3, 0, false)),
            (all(Some(7), Some(0), Some(99)), (7, 0, 7, false)),
        ] {
            let mut budget = budget();
            let usage = budget.charge("m", 9, &reply(said));
            assert_eq!((usage.input, usage.output, usage.cached, usage.estimated), want, "{said:?}");
            assert_eq!(budget.tokens_left(), 10u64.saturating_sub(usage.input + usage.output));
        }
    }

    #[test]
    fn nothing_overflows() {
        let mut budget = budget();
        let huge = ReplyUsage { input: Some(u64::MAX), output: Some(u64::MAX), cached: None };
        budget.charge("m", 0, &reply(huge));
        budget.charge("m", 0, &reply(huge));
        assert_eq!(budget.tokens_left(), 0);
        assert_eq!(budget.exhausted(Instant::ZERO).map(|(end, _)| end), Some(LoopEnd::ExhaustedTokens));
    }

    #[test]
    fn time_comes_before_steps_and_steps_before_tokens() {
        let mut budget = budget();
        assert_eq!(budget.exhausted(Instant::from_millis(99)), None);
        budget.tokens = 10;
        budget.steps = 1;
        let end = |ms| budget.exhausted(Instant::from_millis(ms)).map(|(end, _)| end);
        assert_eq!(end(99), Some(LoopEnd::ExhaustedSteps));
        assert_eq!(end(100), Some(LoopEnd::Deadline));
    }
}
