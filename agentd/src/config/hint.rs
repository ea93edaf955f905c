//! What a person probably meant by a text that is no number, duration or size: said as a hint, never acted on.
//! Called by `check` for a value that was refused.

use super::schema::Shape;
use super::tree::clip;
use agentd_core::units;

/// Units in the letters that are accepted.
const DURATION_UNITS: [(&str, &[&str]); 5] = [
    ("ms", &["ms", "msec", "msecs", "milliseconds"]),
    ("s", &["s", "sec", "secs", "second", "seconds"]),
    ("m", &["m", "min", "mins", "minute", "minutes"]),
    ("h", &["h", "hr", "hrs", "hour", "hours"]),
    ("d", &["d", "day", "days"]),
];

/// Units of 1024 and of 1000 with their first letter.
const SIZE_UNITS: [(&str, &str, &str); 4] =
    [("k", "KB", "KiB"), ("m", "MB", "MiB"), ("g", "GB", "GiB"), ("t", "TB", "TiB")];

/// The longest duration there is.
const LONGEST: &str = "3650d";

/// What to write instead of a text that is not of this shape.
pub(super) fn of(text: &str, shape: &Shape) -> Option<String> {
    match shape {
        Shape::Duration if units::duration(text).is_err() => duration(text),
        Shape::Size if units::size(text).is_err() => size(text),
        Shape::Secret => Some(SECRET.to_owned()),
        _ => None,
    }
}

/// How a secret is referred to.
pub(super) const SECRET: &str = "put it into a variable NAME and write \"{{secret:NAME}}\", or into a file and write \
                                 \"{{secret-file:PATH}}\"";

/// What to write instead of a text that is no whole number. `bare` is without what groups digits.
pub(super) fn whole(bare: &str) -> Option<String> {
    if is_digits(bare) {
        return Some(format!("write {}", clip(bare)));
    }
    if let Some(hex) = bare.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
        return Some(format!("write {hex}"));
    }
    let number: f64 = bare.parse().ok()?;
    // Up to here every whole number is a float of its own, and is printed as it is.
    let exact = number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number);
    exact.then(|| format!("write {number}"))
}

fn duration(text: &str) -> Option<String> {
    let (number, unit) = parts(text)?;
    if unit.is_empty() {
        return Some(format!("give it a unit: {0}s for seconds, {0}m for minutes", clip(number)));
    }
    if text.contains('.') {
        return Some("use a whole number of a smaller unit".into());
    }
    let known = DURATION_UNITS.iter().find(|(_, names)| names.contains(&unit.to_lowercase().as_str()));
    match known {
        Some((unit, _)) => {
            let meant = format!("{number}{unit}");
            Some(if units::duration(&meant).is_ok() {
                format!("write {meant}")
            } else {
                format!("the longest is {LONGEST}")
            })
        }
        None if unit.starts_with(['e', 'E']) => Some("write the number in digits only".into()),
        None if unit.contains(|c: char| c.is_ascii_digit()) => {
            Some("use one unit, such as 90m for 1h30m".into())
        }
        None => None,
    }
}

fn size(text: &str) -> Option<String> {
    let (number, unit) = parts(text)?;
    if unit.is_empty() {
        return Some(format!("give it a unit: {0}B, {0}KiB or {0}MB", clip(number)));
    }
    if text.contains('.') {
        return Some("use a whole number of a smaller unit".into());
    }
    let unit = unit.to_lowercase();
    if unit == "b" || unit == "bytes" {
        return meant(number, "B");
    }
    let known = SIZE_UNITS.iter().find(|(letter, ..)| unit.starts_with(letter));
    match (known, unit.get(1..)) {
        (Some((_, _, binary)), Some("ib")) => meant(number, binary),
        (Some((_, decimal, binary)), Some("" | "b")) => match meant(number, binary) {
            Some(write) if write.starts_with("write") => {
                Some(format!("write {number}{binary} (powers of 1024) or {number}{decimal} (powers of 1000)"))
            }
            too_large => too_large,
        },
        _ if unit.starts_with('e') => Some("write the number in digits only".into()),
        _ => None,
    }
}

/// The size as it is written, or that there is none so large.
fn meant(number: &str, unit: &str) -> Option<String> {
    let meant = format!("{number}{unit}");
    Some(if units::size(&meant).is_ok() { format!("write {meant}") } else { "it is too large".into() })
}

/// Digits and what follows them; a point is passed over, blanks between are left out.
fn parts(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(at)?;
    (!number.is_empty()).then_some((number, unit.trim_start()))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_probably_meant() {
        for (text, hint) in [
            ("5", Some("give it a unit: 5s for seconds, 5m for minutes")),
            ("36500d", Some("the longest is 3650d")),
            ("99999999999999999999s", Some("the longest is 3650d")),
            ("5 s", Some("write 5s")),
            ("5S", Some("write 5s")),
            ("10min", Some("write 10m")),
            ("1.5h", Some("use a whole number of a smaller unit")),
            ("1h30m", Some("use one unit, such as 90m for 1h30m")),
            ("1e3s", Some("write the number in digits only")),
            ("soon", None),
            ("", None),
            ("0s", None),
        ] {
            assert_eq!(of(text, &Shape::Duration).as_deref(), hint, "{text}");
        }
        for (text, hint) in [
            ("64", Some("give it a unit: 64B, 64KiB or 64MB")),
            ("64kb", Some("write 64KiB (powers of 1024) or 64KB (powers of 1000)")),
            ("64k", Some("write 64KiB (powers of 1024) or 64KB (powers of 1000)")),
            ("64kib", Some("write 64KiB")),
            ("1g", Some("write 1GiB (powers of 1024) or 1GB (powers of 1000)")),
            ("64 B", Some("write 64B")),
            ("99999999TiB", Some("it is too large")),
            ("1e3", Some("write the number in digits only")),
            ("1.5GiB", Some("use a whole number of a smaller unit")),
            ("big", None),
            ("6é", None),
        ] {
            assert_eq!(of(text, &Shape::Size).as_deref(), hint, "{text}");
        }
        for (text, hint) in [
            ("1e3", Some("write 1000")),
            ("5.0", Some("write 5")),
            ("0x10", Some("write 16")),
            ("2000", Some("write 2000")),
            ("1.5", None),
            ("1e99", None),
            ("-1", None),
            ("inf", None),
            ("many", None),
            ("", None),
        ] {
            assert_eq!(whole(text).as_deref(), hint, "{text}");
        }
    }
}
