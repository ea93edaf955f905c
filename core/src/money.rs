//! Money: US dollars in whole billionths, and what tokens cost. Exact where floats are not: sums of many small
//! prices never drift.

use crate::record::Tokens;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Nanodollars in a dollar.
const NANOS: u64 = 1_000_000_000;

/// The largest amount, about a million dollars: up to here a float of dollars gives the billionths back exactly.
const LARGEST: u64 = 1 << 50;

/// An amount of US dollars, in billionths. In JSON a number of dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Usd(u64);

impl Usd {
    /// Nothing.
    pub const ZERO: Usd = Usd(0);

    /// This many billionths of a dollar; more than about a million dollars is held at that.
    pub const fn from_nanos(nanos: u64) -> Usd {
        Usd(if nanos > LARGEST { LARGEST } else { nanos })
    }

    /// In billionths.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// The sum, held at the largest amount.
    #[must_use]
    pub const fn plus(self, other: Usd) -> Usd {
        Usd::from_nanos(self.0.saturating_add(other.0))
    }

    /// Dollars to the nearest billionth; `None` for what is negative, not a number or too much.
    pub fn from_dollars(dollars: f64) -> Option<Usd> {
        let nanos = (dollars * NANOS as f64).round();
        // Both bounds are exact in a float, and the comparison is false for what is not a number.
        (0.0..=LARGEST as f64).contains(&nanos).then_some(Usd(nanos as u64))
    }

    /// As a number of dollars.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / NANOS as f64
    }
}

/// With four decimals, or two significant ones where that would show nothing: `$0.0123`, `$0.0000021`.
impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = match self.0 {
            0 | 100_000.. => 4,
            10_000.. => 6,
            1_000.. => 7,
            _ => 9,
        };
        write!(f, "${:.decimals$}", self.dollars())
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.dollars())
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Usd, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        Usd::from_dollars(dollars)
            .ok_or_else(|| serde::de::Error::custom(format!("{dollars} is no amount of dollars")))
    }
}

/// What a million tokens of a model cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// Read by the model.
    pub input: Usd,
    /// Written by it.
    pub output: Usd,
    /// Read from its cache.
    pub cached: Usd,
}

impl Price {
    /// What `tokens` cost, to the nearest billionth of a dollar.
    pub fn of(&self, tokens: &Tokens) -> Usd {
        let cached = tokens.cached.min(tokens.input);
        let parts =
            [(tokens.input - cached, self.input), (cached, self.cached), (tokens.output, self.output)];
        let millionths: u128 = parts.iter().map(|(n, price)| u128::from(*n) * u128::from(price.0)).sum();
        Usd::from_nanos(u64::try_from((millionths + 500_000) / 1_000_000).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn usd(dollars: f64) -> Usd {
        Usd::from_dollars(dollars).expect("an amount")
    }

    #[test]
    fn a_call_costs_what_the_price_list_says() {
        let price = Price { input: usd(3.0), output: usd(15.0), cached: usd(0.3) };
        let tokens = Tokens { input: 1_200, output: 80, cached: 1_000, ..Tokens::default() };
        // 200 at 3, 1,000 at 0.3, 80 at 15 dollars a million.
        assert_eq!(price.of(&tokens), usd(0.0021));
        let odd = Tokens { input: 5, output: 0, cached: 99, ..Tokens::default() };
        assert_eq!(price.of(&odd), usd(0.000_001_5), "more cached than read is read from the cache");
        let huge = Tokens { input: u64::MAX, output: u64::MAX, ..Tokens::default() };
        assert_eq!(price.of(&huge), Usd(LARGEST));
    }

    #[test]
    fn amounts_are_shown_so_that_something_is_seen() {
        for (dollars, text) in [
            (0.0, "$0.0000"),
            (12.5, "$12.5000"),
            (0.0123, "$0.0123"),
            (0.000_05, "$0.000050"),
            (0.000_002_1, "$0.0000021"),
            (0.000_000_004, "$0.000000004"),
        ] {
            assert_eq!(usd(dollars).to_string(), text);
        }
        assert_eq!(Usd::from_dollars(-1.0), None);
        assert_eq!(Usd::from_dollars(f64::NAN), None);
        assert_eq!(Usd::from_dollars(1e9), None);
    }

    proptest! {
        #[test]
        fn every_amount_survives_json(nanos in 0..=LARGEST) {
            let text = serde_json::to_string(&Usd(nanos)).expect("a number");
            prop_assert_eq!(serde_json::from_str::<Usd>(&text).expect("an amount"), Usd(nanos));
        }
    }
}
