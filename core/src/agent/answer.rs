//! A final answer with a schema (S7.8): which part of the text is the JSON, and whether it fits.

use crate::json::schema::Schema;
use crate::json::{preview, value};
use crate::limits::{FRAME_BYTES, PREVIEW_BYTES, RESULT_DEPTH};

/// The JSON of an answer that fits, without what stands around it; or what does not fit. JSON is the whole text, or
/// the one fenced block in it.
pub(super) fn fitting(schema: &Schema, text: &str) -> Result<String, Vec<String>> {
    let whole = text.trim();
    let part = match (value(whole.as_bytes(), FRAME_BYTES, RESULT_DEPTH), fenced(whole).as_slice()) {
        (Err(_), [only]) => *only,
        (Ok(_) | Err(_), _) => whole,
    };
    let value = value(part.as_bytes(), FRAME_BYTES, RESULT_DEPTH).map_err(|problem| {
        vec![format!("it is not JSON: {}", preview(problem.to_string(), 2 * PREVIEW_BYTES))]
    })?;
    schema.check(&value).map(|()| part.to_owned())
}

/// What stands in blocks between lines of three backticks, marked `json` or not at all.
fn fenced(text: &str) -> Vec<&str> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, bool)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        if let Some(mark) = line.trim().strip_prefix("```") {
            open = match open {
                None => Some((end, mark.is_empty() || mark.trim().eq_ignore_ascii_case("json"))),
                Some((begin, wanted)) => {
                    if wanted {
                        blocks.push(text[begin..at].trim());
                    }
                    None
                }
            };
        }
        at = end;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn schema() -> Schema {
        Schema::read(br#"{"type": "object", "required": ["n"]}"#).unwrap()
    }

    #[test]
    fn json_is_the_whole_text_or_its_one_fenced_block() {
        for text in [
            "{\"n\": 1}",
            " \n{\"n\": 1}\n",
            "```json\n{\"n\": 1}\n```",
            "```JSON\n{\"n\": 1}\n```\n",
            "Here it is:\n\n```\n{\"n\": 1}\n```\nAnything else?",
            "```json\r\n{\"n\": 1}\r\n```\r\n",
            "```sh\nls\n```\nand\n  ```json\n  {\"n\": 1}\n  ```",
        ] {
            assert_eq!(fitting(&schema(), text).as_deref(), Ok("{\"n\": 1}"), "{text}");
        }
        // Inside a string a fence is text.
        let quoted = "{\"n\": \"\\n```json\\n{}\\n```\\n\"}";
        assert_eq!(fitting(&schema(), quoted).as_deref(), Ok(quoted));
    }

    #[test]
    fn what_is_no_one_json_value_is_told_so() {
        for text in [
            "",
            "n is 1",
            "{\"n\": 1",
            "{\"n\": 1} {\"n\": 2}",
            "{\"n\": 1, \"n\": 2}",
            "```json\n{\"n\": 1}",
            "```json\n{\"n\": 1}\n```\n```json\n{\"n\": 2}\n```",
            "so: {\"n\": 1}",
            "```json\n\n```",
        ] {
            let told = fitting(&schema(), text).expect_err(text);
            assert!(told.len() == 1 && told[0].starts_with("it is not JSON: "), "{text}: {told:?}");
            assert!(told[0].len() < 600);
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(fitting(&schema(), &deep).is_err());
        assert_eq!(
            fitting(&schema(), "[1]").unwrap_err(),
            ["the value: an array where an object is expected"]
        );
    }

    proptest! {
        #[test]
        fn any_text_gets_a_verdict(text in "(```(json)?|\\{\"n\":1\\}|[a\\n\\r é`{}])*") {
            if let Ok(part) = fitting(&schema(), &text) {
                prop_assert!(text.contains(&part));
            }
        }
    }
}
