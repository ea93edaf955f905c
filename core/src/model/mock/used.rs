//! Which filters and tests a template uses. The template engine looks them up when it comes to them, which in a
//! playbook is in the middle of a run; a slip is to be told when the playbook is read.
//!
//! Owns a reading of the source that knows strings, comments and raw blocks and nothing else of the language: after
//! `|` stands a filter's name, after `is` a test's. Called by `template` for sources that have been compiled.

/// A name and what it is used as.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Used {
    Filter(String),
    Test(String),
}

/// What the code in a template's source uses: between `{{ }}` and `{% %}`.
pub(super) fn in_template(source: &str) -> Vec<Used> {
    let (mut used, mut rest) = (Vec::new(), source);
    while let Some(at) = rest.find('{') {
        let from = &rest[at..];
        if let Some(comment) = from.strip_prefix("{#") {
            rest = after(comment, "#}");
        } else if from.starts_with("{{") || from.starts_with("{%") {
            let close = if from.starts_with("{{") { "}}" } else { "%}" };
            let code = &from["{{".len()..];
            let tokens = tokens(code, Some(close));
            rest = &code[tokens.end..];
            if close == "%}" && tokens.names.first().is_some_and(|first| *first == Token::Name("raw")) {
                rest = after_raw(rest);
            } else {
                collect(&tokens.names, close == "%}", &mut used);
            }
        } else {
            rest = &from[1..];
        }
    }
    used
}

/// What an expression uses.
pub(super) fn in_expression(source: &str) -> Vec<Used> {
    let mut used = Vec::new();
    collect(&tokens(source, None).names, false, &mut used);
    used
}

/// As much of a token as matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'s> {
    Name(&'s str),
    Pipe,
    /// A name after it belongs to a value.
    Dot,
    Other,
}

struct Tokens<'s> {
    names: Vec<Token<'s>>,
    /// Bytes read, the closing mark included.
    end: usize,
}

fn tokens<'s>(code: &'s str, close: Option<&str>) -> Tokens<'s> {
    let (mut names, mut at) = (Vec::new(), 0);
    while let Some(c) = code[at..].chars().next() {
        let rest = &code[at..];
        if let Some(close) = close.filter(|close| rest.starts_with(close)) {
            at += close.len();
            return Tokens { names, end: at };
        }
        match c {
            '"' | '\'' => {
                names.push(Token::Other);
                at += string(rest, c);
            }
            c if c.is_alphabetic() || c == '_' => {
                let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                names.push(Token::Name(&rest[..length]));
                at += length;
            }
            // A number's exponent is no name.
            c if c.is_ascii_digit() => {
                names.push(Token::Other);
                at += rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            }
            c => {
                match c {
                    '|' => names.push(Token::Pipe),
                    '.' => names.push(Token::Dot),
                    c if c.is_whitespace() => {}
                    _ => names.push(Token::Other),
                }
                at += c.len_utf8();
            }
        }
    }
    Tokens { names, end: at }
}

/// Bytes of a string from its quote to its quote.
fn string(from: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in from.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    from.len()
}

fn collect(tokens: &[Token<'_>], is_block: bool, used: &mut Vec<Used>) {
    if let (true, [Token::Name("filter"), Token::Name(name), ..]) = (is_block, tokens) {
        used.push(Used::Filter((*name).to_owned()));
    }
    for (at, token) in tokens.iter().enumerate() {
        match (token, &tokens[at + 1..]) {
            (Token::Pipe, [Token::Name(name), ..]) => used.push(Used::Filter((*name).to_owned())),
            (Token::Name("is"), [Token::Name("not"), Token::Name(name), ..] | [Token::Name(name), ..])
                if at > 0 && tokens[at - 1] != Token::Dot =>
            {
                used.push(Used::Test((*name).to_owned()));
            }
            _ => {}
        }
    }
}

fn after<'s>(rest: &'s str, mark: &str) -> &'s str {
    rest.split_once(mark).map_or("", |(_, after)| after)
}

/// What follows the end of a raw block, in which nothing is code.
fn after_raw(mut rest: &str) -> &str {
    while let Some((_, from)) = rest.split_once("{%") {
        let inside = from.trim_start_matches(['-', '+']).trim_start();
        if inside.starts_with("endraw") {
            return after(inside, "%}");
        }
        rest = from;
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(used: Vec<Used>) -> Vec<String> {
        let word = |used| match used {
            Used::Filter(name) => format!("|{name}"),
            Used::Test(name) => format!("is {name}"),
        };
        used.into_iter().map(word).collect()
    }

    #[test]
    fn filters_and_tests_are_found_where_code_is() {
        for (source, wanted) in [
            ("{{ a|upper | join(', ') }} | no {{ b }}", vec!["|upper", "|join"]),
            ("{% if a is defined and b is not none %}x{% endif %}", vec!["is defined", "is none"]),
            ("{% filter upper %}a|b{% endfilter %}", vec!["|upper"]),
            ("{{ 'a|b is c }}' ~ \"%}|d\" | e }}", vec!["|e"]),
            ("{{ 'it\\'s |x' | y }}", vec!["|y"]),
            ("{# a|b #}{{ c|d }}{#", vec!["|d"]),
            ("{% raw %}{{ a|b }}{%- endraw %}{{ c|d }}", vec!["|d"]),
            ("{{ a.is.b }}{{ x.y|z }}", vec!["|z"]),
            ("{{ a|b if c is d else e|f }}", vec!["|b", "is d", "|f"]),
            ("no { code | here } is it", vec![]),
            ("{{ 1e3|g }}", vec!["|g"]),
            ("{{ a", vec![]),
        ] {
            assert_eq!(names(in_template(source)), wanted, "{source}");
        }
        assert_eq!(names(in_expression("a|b is c")), ["|b", "is c"]);
    }

    proptest! {
        #[test]
        fn any_source_is_read_to_its_end(source in "([{}%#|'\"\\\\ .aé1-]|is|raw|endraw){0,40}") {
            let _ = (in_template(&source), in_expression(&source));
        }
    }
}
