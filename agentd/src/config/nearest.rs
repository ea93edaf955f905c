//! Did you mean: the known name closest to an unknown one.

/// The name of `names` that `seen` most likely stands for; `None` when none is close.
pub(crate) fn nearest<'a>(seen: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A name that is longer than any key by far is no slip of the pen, and comparing it would cost.
    if seen.len() > 128 {
        return None;
    }
    let seen = seen.to_lowercase().replace('-', "_");
    let far = (seen.chars().count() / 3).max(1);
    names
        .into_iter()
        .map(|name| (strsim::osa_distance(&seen, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= far && *distance < name.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_slips_and_nothing_far_fetched() {
        let names = ["steps", "tokens", "deadline", "tool_result_bytes"];
        assert_eq!(nearest("stesp", names), Some("steps"));
        assert_eq!(nearest("step", names), Some("steps"));
        assert_eq!(nearest("Tokens", names), Some("tokens"));
        assert_eq!(nearest("tool-result-bytes", names), Some("tool_result_bytes"));
        assert_eq!(nearest("budget", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(nearest(&"s".repeat(100_000), names), None);
    }
}
