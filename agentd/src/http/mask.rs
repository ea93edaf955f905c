//! Keeps credentials out of what people read: servers and proxies quote requests in their errors.

/// What stands for a credential.
const MASK: &str = "[secret]";

/// Shorter values are words rather than secrets; masking them would only garble a message.
const SHORTEST: usize = 8;

/// Of the values that a request carries, those that nobody is to read.
pub(crate) fn secrets<'a>(values: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    let all = values.into_iter().map(|value| value.trim().to_owned());
    all.filter(|value| value.len() >= SHORTEST).collect()
}

/// The text with every secret masked, also one of which only the beginning is quoted.
pub(crate) fn mask(mut text: String, secrets: &[String]) -> String {
    for secret in secrets {
        let mut ends: Vec<usize> = secret.char_indices().map(|(at, _)| at).chain([secret.len()]).collect();
        ends.retain(|end| *end >= SHORTEST);
        for end in ends.into_iter().rev() {
            if text.contains(&secret[..end]) {
                text = text.replace(&secret[..end], MASK);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_and_cut_secrets_are_masked() {
        let secrets = ["sk-verysecretindeed".to_owned()];
        for (text, want) in [
            ("no key here", "no key here"),
            ("bad key sk-verysecretindeed!", "bad key [secret]!"),
            ("Bearer sk-verysecr… [900 bytes in all]", "Bearer [secret]… [900 bytes in all]"),
            ("sk-verysecretindeed sk-verysecretindeed", "[secret] [secret]"),
            ("sk-very", "sk-very"),
        ] {
            assert_eq!(mask(text.to_owned(), &secrets), want);
        }
    }
}
