//! Tokens and money together, and caps on them.

use crate::money::Usd;
use crate::record::Tokens;
use serde::{Deserialize, Serialize};

/// What calls use: tokens in and out together, and what they cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// In and out.
    pub tokens: u64,
    /// At the model's price; nothing for one without.
    pub usd: Usd,
}

impl Amount {
    /// Of what a call or a run used.
    pub fn of(used: &Tokens) -> Amount {
        Amount { tokens: used.input.saturating_add(used.output), usd: used.usd }
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Amount) -> Amount {
        Amount { tokens: self.tokens.saturating_add(other.tokens), usd: self.usd.plus(other.usd) }
    }

    /// What is left of it without `other`; no part is less than nothing.
    #[must_use]
    pub fn less(self, other: Amount) -> Amount {
        let usd = Usd::from_nanos(self.usd.nanos().saturating_sub(other.usd.nanos()));
        Amount { tokens: self.tokens.saturating_sub(other.tokens), usd }
    }
}

/// Caps; an absent one bounds nothing, and zero lets nothing through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caps {
    /// In and out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<Usd>,
}

impl Caps {
    /// Whether nothing is bounded.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_none() && self.usd.is_none()
    }

    /// Whether `amount` is within them.
    pub fn hold(&self, amount: Amount) -> bool {
        self.tokens.is_none_or(|cap| amount.tokens <= cap) && self.usd.is_none_or(|cap| amount.usd <= cap)
    }

    /// What is left of them after `used`; an absent cap leaves an absent rest.
    #[must_use]
    pub fn rest(&self, used: Amount) -> Caps {
        Caps {
            tokens: self.tokens.map(|cap| cap.saturating_sub(used.tokens)),
            usd: self.usd.map(|cap| Usd::from_nanos(cap.nanos().saturating_sub(used.usd.nanos()))),
        }
    }

    /// The share of a whole that `amount` takes of the cap it fills most, in millionths of it; zero without a cap.
    pub(super) fn share(&self, amount: Amount) -> u64 {
        let of = |part: u64, whole: u64| {
            let millionths = u128::from(part) * 1_000_000 / u128::from(whole.max(1));
            u64::try_from(millionths).unwrap_or(u64::MAX)
        };
        let tokens = self.tokens.map_or(0, |cap| of(amount.tokens, cap));
        let usd = self.usd.map_or(0, |cap| of(amount.usd.nanos(), cap.nanos()));
        tokens.max(usd)
    }

    /// How `used` and `more` stand to the first cap that they pass together, for a sentence.
    pub(super) fn passed(&self, used: Amount, more: Amount) -> Option<String> {
        let all = used.plus(more);
        if let Some(cap) = self.tokens.filter(|cap| all.tokens > *cap) {
            return Some(format!(
                "{} of {cap} tokens are used or promised, and the call may need {}",
                used.tokens, more.tokens
            ));
        }
        let cap = self.usd.filter(|cap| all.usd > *cap)?;
        Some(format!("{} of {cap} are spent or promised, and the call may cost {}", used.usd, more.usd))
    }
}
