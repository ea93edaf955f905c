//! How a secret is referred to: `{{secret:NAME}}` and `{{secret-file:PATH}}`, alone or inside a text. Owns the
//! spelling and nothing else; what a name stands for is the resolver's.

/// Beginnings of the two kinds.
const BY_NAME: &str = "{{secret:";
const BY_FILE: &str = "{{secret-file:";

/// Bytes of a name at most, as a file name.
const NAME_BYTES: usize = 255;

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// What stands as it is.
    Text(&'a str),
    /// A credential or variable of this name.
    Name(&'a str),
    /// A file.
    File(&'a str),
}

/// A reference that is not spelled as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Without its `}}`.
    #[error("a reference to a secret is not closed with }}}}")]
    Open,
    /// `{{secret: NAME}}` and the like.
    #[error("a reference to a secret has a name of letters, digits, _, - and dots, and no blanks")]
    Name,
    /// `{{secret-file:}}`.
    #[error("a reference to a secret file names no file")]
    NoPath,
    /// `{{ secret:NAME }}`, `{{secrets:NAME}}` and the like.
    #[error(
        "this looks like a reference to a secret, but is spelled neither {{{{secret:NAME}}}} nor {{{{secret-file:PATH}}}}"
    )]
    Unlike,
}

/// The pieces of a text.
pub(crate) fn parts(text: &str) -> Result<Vec<Part<'_>>, Malformed> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("{{") {
        let (before, from) = rest.split_at(at);
        let Some((part, after)) = reference(from)? else {
            let (literal, after) = rest.split_at(at + "{{".len());
            parts.push(Part::Text(literal));
            rest = after;
            continue;
        };
        if !before.is_empty() {
            parts.push(Part::Text(before));
        }
        parts.push(part);
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    Ok(parts)
}

/// Whether a text refers to a secret, or means to.
pub(crate) fn refers(text: &str) -> bool {
    parts(text).map_or(true, |parts| parts.iter().any(|part| !matches!(part, Part::Text(_))))
}

/// The same text with the paths in it changed.
pub(crate) fn map_files(text: &str, mut change: impl FnMut(&str) -> String) -> Result<String, Malformed> {
    let pieces = parts(text)?.into_iter().map(|part| match part {
        Part::Text(text) => text.to_owned(),
        Part::Name(name) => to_name(name),
        Part::File(path) => to_file(&change(path)),
    });
    Ok(pieces.collect())
}

/// The reference to a name.
pub(crate) fn to_name(name: &str) -> String {
    format!("{BY_NAME}{name}}}}}")
}

/// The reference to a file; [`can_refer`] says for which paths there is one.
pub(crate) fn to_file(path: &str) -> String {
    format!("{BY_FILE}{path}}}}}")
}

/// Whether a path can stand in a reference.
pub(crate) fn can_refer(path: &str) -> bool {
    !path.is_empty() && !path.contains("}}") && !path.ends_with('}')
}

/// The reference at the start of `from`, which begins with `{{`, and what follows it.
fn reference(from: &str) -> Result<Option<(Part<'_>, &str)>, Malformed> {
    if let Some(rest) = from.strip_prefix(BY_NAME) {
        let (name, after) = rest.split_once("}}").ok_or(Malformed::Open)?;
        return if is_name(name) { Ok(Some((Part::Name(name), after))) } else { Err(Malformed::Name) };
    }
    if let Some(rest) = from.strip_prefix(BY_FILE) {
        let (path, after) = rest.split_once("}}").ok_or(Malformed::Open)?;
        return if path.trim().is_empty() {
            Err(Malformed::NoPath)
        } else {
            Ok(Some((Part::File(path), after)))
        };
    }
    let inside = from.trim_start_matches('{').trim_start();
    let meant = inside.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("secret"));
    if meant { Err(Malformed::Unlike) } else { Ok(None) }
}

/// A file's name and a variable's at once: nothing that leads out of the folder of credentials.
fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_falls_into_its_pieces() {
        for (text, wanted) in [
            ("", vec![]),
            ("plain", vec![Part::Text("plain")]),
            ("{{secret:A_1}}", vec![Part::Name("A_1")]),
            (
                "Bearer {{secret:web.key}}!",
                vec![Part::Text("Bearer "), Part::Name("web.key"), Part::Text("!")],
            ),
            ("{{secret-file:/run/a b}}{{secret:B}}", vec![Part::File("/run/a b"), Part::Name("B")]),
            ("{{other}} {x}", vec![Part::Text("{{"), Part::Text("other}} {x}")]),
            ("{{{{", vec![Part::Text("{{"), Part::Text("{{")]),
        ] {
            assert_eq!(parts(text), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn what_is_meant_as_a_reference_is_not_taken_for_text() {
        for (text, fault) in [
            ("{{secret:A", Malformed::Open),
            ("{{secret-file:/a", Malformed::Open),
            ("{{secret:}}", Malformed::Name),
            ("{{secret: A}}", Malformed::Name),
            ("{{secret:../A}}", Malformed::Name),
            ("{{secret:.A}}", Malformed::Name),
            ("{{secret:a/b}}", Malformed::Name),
            ("{{secret:ä}}", Malformed::Name),
            ("{{secret-file: }}", Malformed::NoPath),
            ("{{ secret:A }}", Malformed::Unlike),
            ("{{Secret:A}}", Malformed::Unlike),
            ("{{secrets.A}}", Malformed::Unlike),
            ("{{{secret:A}}}", Malformed::Unlike),
        ] {
            assert_eq!(parts(text), Err(fault), "{text}");
            assert!(refers(text), "{text}");
        }
        assert!(!refers("{{other}}") && !refers("{secret:A}"));
    }

    #[test]
    fn files_are_renamed_and_nothing_else() {
        let text = "a {{secret:N}} {{secret-file:k}} {{x}}";
        let changed = map_files(text, |path| format!("/etc/{path}"));
        assert_eq!(changed.as_deref(), Ok("a {{secret:N}} {{secret-file:/etc/k}} {{x}}"));
        assert!(can_refer("/a b") && !can_refer("") && !can_refer("/a}}b") && !can_refer("/a}"));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_panics(text in "([{}secrt:AB. -]|\\{\\{secret:|\\}\\}|-file:|ä){0,24}") {
            if parts(&text).is_ok() {
                prop_assert_eq!(map_files(&text, str::to_owned), Ok(text));
            }
        }
    }
}
