//! Durations, sizes and rates as people write them. One reading for the configuration, tool arguments and
//! flags, so that `5m` means the same everywhere and nothing is guessed.

use std::time::Duration;

/// A text that is not what it should be: what was seen and what is accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{seen:?} is not a {what}; accepted: {accepted}")]
pub struct InvalidUnit {
    /// The first 64 characters of what was given.
    pub seen: String,
    /// `duration`, `size` or `rate`.
    pub what: &'static str,
    /// Examples of what is accepted.
    pub accepted: &'static str,
}

/// What [`duration`] accepts, for messages.
pub const DURATIONS: &str = "a whole number with a unit, such as 500ms, 5s, 10m, 1h or 7d, at most 3650d";
/// What [`size`] accepts, for messages.
pub const SIZES: &str = "a whole number with a unit, such as 512B, 64KiB, 512MB or 1GiB";
/// What [`rate`] accepts, for messages.
pub const RATES: &str = "count/duration, such as 8/2s";

/// Longest duration accepted: ten years, far from any overflow.
const LONGEST: Duration = Duration::from_secs(3650 * 86_400);

/// Parses `500ms`, `5s`, `10m`, `1h`, `7d`. Zero is accepted here; who needs a positive one says so.
pub fn duration(text: &str) -> Result<Duration, InvalidUnit> {
    let bad = || InvalidUnit { seen: clip(text), what: "duration", accepted: DURATIONS };
    let (number, unit) = split(text).ok_or_else(bad)?;
    let ms_per = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(bad()),
    };
    let duration = Duration::from_millis(number.checked_mul(ms_per).ok_or_else(bad)?);
    if duration > LONGEST { Err(bad()) } else { Ok(duration) }
}

/// Parses `64KiB` (1024) and `512MB` (1000); bytes.
pub fn size(text: &str) -> Result<u64, InvalidUnit> {
    let bad = || InvalidUnit { seen: clip(text), what: "size", accepted: SIZES };
    let (number, unit) = split(text).ok_or_else(bad)?;
    let per: u64 = match unit {
        "B" => 1,
        "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return Err(bad()),
    };
    number.checked_mul(per).ok_or_else(bad)
}

/// Parses `8/2s`: both parts positive.
pub fn rate(text: &str) -> Result<(u32, Duration), InvalidUnit> {
    let bad = || InvalidUnit { seen: clip(text), what: "rate", accepted: RATES };
    let (count, per) = text.split_once('/').ok_or_else(bad)?;
    let count = digits(count).and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0).ok_or_else(bad)?;
    let per = duration(per).ok().filter(|d| !d.is_zero()).ok_or_else(bad)?;
    Ok((count, per))
}

fn split(text: &str) -> Option<(u64, &str)> {
    let at = text.find(|c: char| !c.is_ascii_digit())?;
    digits(&text[..at]).map(|n| (n, &text[at..]))
}

/// Digits only: no sign, no space, no underscore.
fn digits(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) { None } else { text.parse().ok() }
}

fn clip(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, ms) in [
            ("0s", 0),
            ("500ms", 500),
            ("5s", 5_000),
            ("10m", 600_000),
            ("1h", 3_600_000),
            ("7d", 604_800_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for bad in [
            "",
            "5",
            "s",
            "5 s",
            "-5s",
            "+5s",
            "5.5s",
            "5S",
            "5sec",
            "1e3s",
            "99999999999999999999s",
            "4000d",
            "５s",
        ] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(size("64KiB"), Ok(65_536));
        assert_eq!(size("512MB"), Ok(512_000_000));
        assert_eq!(size("0B"), Ok(0));
        for bad in ["", "64", "64kb", "64 KiB", "1.5GiB", "-1B", "18446744073709551615TiB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rates() {
        assert_eq!(rate("8/2s"), Ok((8, Duration::from_secs(2))));
        for bad in ["", "8", "0/2s", "8/0s", "8/2", "/2s", "8/2s/3", "5000000000/1s"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
    }
}
