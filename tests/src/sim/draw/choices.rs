//! What decides while a plan is drawn: a generator, or bytes that somebody else chose.

use agentd_core::rng::Rng;
use std::collections::VecDeque;

/// A source of choices.
pub(super) enum Choices {
    /// Of a seed: without end.
    Seed(Rng),
    /// Of bytes: each choice takes one, or two where one cannot tell all options apart. After the last byte the
    /// middle option is taken, which is neither the rarest nor the largest of anything.
    Bytes(VecDeque<u8>),
}

impl Choices {
    /// A number below `bound` (0 when `bound` is 0).
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        match self {
            Choices::Seed(rng) => rng.below(bound),
            Choices::Bytes(_) if bound == 0 => 0,
            Choices::Bytes(bytes) => {
                let wide = bound > 256;
                let number = bytes.pop_front().map(|low| {
                    let high = if wide { bytes.pop_front().unwrap_or(0) } else { 0 };
                    u64::from(high) * 256 + u64::from(low)
                });
                number.map_or(bound / 2, |number| number % bound)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_decide_one_choice_each_and_then_nobody_does() {
        let mut choices = Choices::Bytes([3, 250, 1, 2, 7].into());
        let seen = [4, 4, 0, 1_000, 3, 3, 256, 1_000].map(|bound| choices.below(bound));
        assert_eq!(seen, [3, 2, 0, 513, 1, 1, 128, 500]);
    }
}
