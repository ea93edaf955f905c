//! One value by itself: text, numbers, words, and what a text of some shape must look like.

use super::super::hint;
use super::super::nearest::nearest;
use super::super::problem::{Code, Problem};
use super::super::schema::Shape;
use super::super::tree::{Kind, Node, Scalar, Value, clip};
use super::Checker;
use super::forms::{dollars, is_name, passthrough_fault, secret_fault};
use agentd_core::policy::Pattern;
use agentd_core::units;

/// Words that switch something on or off elsewhere, where `off` or a path is taken.
const SWITCHES: [(&str, bool); 5] =
    [("on", true), ("true", true), ("yes", true), ("false", false), ("no", false)];

fn is_switch(text: &str) -> bool {
    SWITCHES.iter().any(|(word, _)| text.eq_ignore_ascii_case(word))
}

/// What to write instead of one of [`SWITCHES`].
fn switch_hint(text: &str) -> String {
    if SWITCHES.iter().any(|(word, on)| *on && text.eq_ignore_ascii_case(word)) {
        format!("name the file, such as ./agentd.journal; one that is called so is ./{}", clip(text))
    } else {
        "write off".to_owned()
    }
}

impl Checker<'_> {
    pub(super) fn scalar(&mut self, node: &Node, shape: &Shape, path: &str) {
        let Value::Scalar(scalar) = &node.value else {
            self.wrong_type(node, path, "one value", &shape.accepted());
            return;
        };
        if scalar.kind() == Kind::Null {
            let problem = Problem::at(&node.place, path, Code::WrongType, "has no value");
            self.problems.push(problem.accepted(shape.accepted()).hint("write one, or remove the key"));
            return;
        }
        match shape {
            Shape::OffOrPath if is_switch(&scalar.text) => {
                let fault = format!("expected {}, saw {}", shape.accepted(), node.seen());
                let problem = Problem::at(&node.place, path, Code::InvalidValue, fault);
                self.problems.push(problem.accepted(shape.accepted()).hint(switch_hint(&scalar.text)));
            }
            Shape::Switch => match scalar.kind() {
                Kind::Bool(_) => {}
                Kind::Null | Kind::Number | Kind::Text => {
                    self.wrong_type(node, path, "true or false", &shape.accepted());
                }
            },
            Shape::Whole { min, max } => self.whole(node, scalar, *min, *max, path, shape),
            Shape::OneOf(words) => self.word(node, scalar, words, path),
            Shape::Number => self.number(node, scalar, path, shape),
            _ => {
                if self.text(node, path, &shape.accepted()) {
                    self.form(node, &scalar.text, shape, path);
                }
            }
        }
    }

    /// What a text must look like beyond being one.
    fn form(&mut self, node: &Node, text: &str, shape: &Shape, path: &str) {
        let fault = match shape {
            Shape::Duration => match units::duration(text) {
                Ok(duration) if duration.is_zero() => Some("must not be zero".to_owned()),
                Ok(_) => None,
                Err(_) => Some(format!("{:?} is not a duration", clip(text))),
            },
            Shape::Size => match units::size(text) {
                Ok(0) => Some("must not be zero".to_owned()),
                Ok(_) => None,
                Err(_) => Some(format!("{:?} is not a size", clip(text))),
            },
            Shape::Rate => units::rate(text).err().map(|_| format!("{:?} is not a rate", clip(text))),
            Shape::Name { dots } if !is_name(text, *dots) => Some(format!("{:?} is not a name", clip(text))),
            Shape::Secret => secret_fault(text),
            Shape::Path | Shape::OffOrPath if text.is_empty() => Some("is empty".to_owned()),
            _ => None,
        };
        if let Some(fault) = fault {
            let problem =
                Problem::at(&node.place, path, Code::InvalidValue, fault).accepted(shape.accepted());
            self.problems.push(match hint::of(text, shape) {
                Some(hint) => problem.hint(hint),
                None => problem,
            });
        }
    }

    fn whole(&mut self, node: &Node, scalar: &Scalar, min: u64, max: u64, path: &str, shape: &Shape) {
        let text = scalar.text.as_str();
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if scalar.plain && digits {
            if text.parse::<u64>().is_ok_and(|n| (min..=max).contains(&n)) {
                return;
            }
            let fault =
                if text.parse::<u64>().is_ok_and(|n| n < min) { "is too small" } else { "is too large" };
            let fault = format!("{} {fault}", clip(text));
            let problem = Problem::at(&node.place, path, Code::InvalidValue, fault);
            return self.problems.push(problem.accepted(format!("a whole number from {min} to {max}")));
        }
        let bare: String = text.chars().filter(|c| !matches!(c, '_' | ',' | '\'')).collect();
        let negative = bare.strip_prefix('-').is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
        let fault = if negative {
            format!("{} is negative", clip(text))
        } else {
            format!("expected a whole number, saw {}", node.seen())
        };
        let problem = Problem::at(&node.place, path, Code::WrongType, fault).accepted(shape.accepted());
        self.problems.push(match hint::whole(&bare) {
            Some(hint) => problem.hint(hint),
            None => problem,
        });
    }

    pub(super) fn word(&mut self, node: &Node, scalar: &Scalar, words: &[&str], path: &str) {
        let text = scalar.text.as_str();
        if words.contains(&text) {
            return;
        }
        let expected =
            if let [word] = words { (*word).to_owned() } else { format!("one of {}", words.join(", ")) };
        let fault = format!("expected {expected}, saw {}", node.seen());
        let problem = Problem::at(&node.place, path, Code::InvalidValue, fault).accepted(words.join(", "));
        self.problems.push(match nearest(text, words.iter().copied()) {
            Some(word) => problem.hint(format!("did you mean {word}?")),
            None => problem,
        });
    }

    /// Whether a node can be read as text; numbers are, as they are spelled.
    pub(super) fn text(&mut self, node: &Node, path: &str, accepted: &str) -> bool {
        let Value::Scalar(scalar) = &node.value else {
            self.wrong_type(node, path, "one value", accepted);
            return false;
        };
        match scalar.kind() {
            Kind::Null => self.wrong_type(node, path, "text", accepted),
            Kind::Bool(_) => {
                let fault = format!("expected text, saw {}", node.seen());
                let problem = Problem::at(&node.place, path, Code::WrongType, fault).accepted(accepted);
                self.problems.push(problem.hint("put it in quotes to make it text"));
            }
            Kind::Number | Kind::Text if scalar.text.contains('\0') => {
                let fault = "holds a NUL character, which no program can be given";
                self.problems.push(Problem::at(&node.place, path, Code::InvalidValue, fault));
            }
            Kind::Number | Kind::Text => return true,
        }
        false
    }

    pub(super) fn item(&mut self, node: &Node, shape: &Shape, path: &str) {
        let accepted = shape.accepted();
        if !self.text(node, path, &accepted) {
            return;
        }
        let Value::Scalar(scalar) = &node.value else { return };
        let fault = match shape {
            Shape::Patterns => Pattern::parse(&scalar.text).err().map(|e| e.to_string()),
            Shape::EnvNames => passthrough_fault(&scalar.text),
            _ => None,
        };
        if let Some(fault) = fault {
            self.problems.push(Problem::at(&node.place, path, Code::InvalidValue, fault).accepted(accepted));
        }
    }

    fn number(&mut self, node: &Node, scalar: &Scalar, path: &str, shape: &Shape) {
        if scalar.plain && dollars(&scalar.text).is_some() {
            return;
        }
        let negative = scalar.kind() == Kind::Number && scalar.text.starts_with('-');
        let fault = if negative {
            format!("{} is negative", clip(&scalar.text))
        } else {
            format!("expected a number, saw {}", node.seen())
        };
        let code = if scalar.kind() == Kind::Number { Code::InvalidValue } else { Code::WrongType };
        self.problems.push(Problem::at(&node.place, path, code, fault).accepted(shape.accepted()));
    }
}
