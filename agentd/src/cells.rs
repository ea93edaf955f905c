//! Text in the columns of a terminal: exact widths, counts, money, and nothing that a terminal would act on. Called by the
//! live tree, by `top` and by what prints events.

use agentd_core::money::Usd;
use agentd_core::preview::misleads;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A count in three digits or so: `950`, `1.2k`, `34k`, `5.6M`.
pub(crate) fn amount(n: u64) -> String {
    let scaled = |unit: u64, name: &str| {
        let tenths = n / (unit / 10);
        if tenths < 100 {
            format!("{}.{}{name}", tenths / 10, tenths % 10)
        } else {
            format!("{}{name}", n / unit)
        }
    };
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => scaled(1_000, "k"),
        1_000_000..1_000_000_000 => scaled(1_000_000, "M"),
        _ => scaled(1_000_000_000, "G"),
    }
}

/// What was paid, `+` where a part has no price.
pub(crate) fn cost(usd: Usd, unpriced: bool) -> String {
    let more = if unpriced { "+" } else { "" };
    format!("${:.3}{more}", usd.dollars())
}

/// Without anything a terminal would act on.
pub(crate) fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() && !misleads(*c)).collect()
}

/// On one line, with what a terminal would act on as its escape.
pub(crate) fn one_line(text: &str) -> String {
    let escape =
        |c: char| if c.is_control() || misleads(c) { c.escape_default().to_string() } else { c.into() };
    text.chars().map(escape).collect()
}

/// Exactly this many columns: filled with blanks, or cut and marked.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let width = text.width();
    if width <= columns {
        return format!("{text}{}", " ".repeat(columns - width));
    }
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide + 1 > columns {
            break;
        }
        kept.push(c);
        used += wide;
    }
    if columns > 0 {
        kept.push('…');
        used += 1;
    }
    format!("{kept}{}", " ".repeat(columns - used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_keep_their_size() {
        for (n, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1.0k"),
            (9_999, "9.9k"),
            (10_000, "10k"),
            (999_999, "999k"),
            (1_500_000, "1.5M"),
            (u64::MAX, "18446744073G"),
        ] {
            assert_eq!(amount(n), text);
        }
    }

    #[test]
    fn text_is_as_wide_as_it_is_to_be() {
        for (text, columns, wanted) in [
            ("ab", 4, "ab  "),
            ("abcd", 4, "abcd"),
            ("abcde", 4, "abc…"),
            ("日本語", 4, "日… "),
            ("ab", 0, ""),
        ] {
            assert_eq!(fit(text, columns), wanted, "{text} on {columns}");
        }
    }
}
