//! One piece of work, as a caller asks for it: the arguments of `subagent.run`, by name and type. What a name means is
//! in `docs/tools.md`; what is wrong with a value is said by the gate that refuses it.

use agentd_core::config::Priority;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// What is to be done and what may be used for it. Everything but the instruction has a default.
///
/// ```
/// use agentd_io_tokio::Work;
/// use std::time::Duration;
///
/// let work = Work::new("Which of these tickets are the same?")
///     .context("Tickets 7, 8 and 12 are about the login page.")
///     .servers(["crm"])
///     .deadline(Duration::from_secs(300));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "work is done when it is given to Supervisor::run"]
pub struct Work {
    args: Map<String, Value>,
}

impl Work {
    /// Work whose result can be awaited. The instruction is all that the run sees, besides [`Work::context`].
    pub fn new(instruction: impl Into<String>) -> Work {
        let args = Map::from_iter([
            ("instruction".to_owned(), Value::String(instruction.into())),
            ("mode".to_owned(), "async".into()),
        ]);
        Work { args }
    }

    /// The run stays: the instruction is its first turn, and each [`crate::Run::send`] one more.
    pub fn warm(self) -> Work {
        self.with("mode", "warm")
    }

    /// Adds a message that it starts with, as a user's.
    pub fn context(mut self, text: impl Into<String>) -> Work {
        let message = json!({ "role": "user", "content": text.into() });
        match self.args.get_mut("context") {
            Some(Value::Array(messages)) => messages.push(message),
            Some(_) | None => drop(self.args.insert("context".to_owned(), json!([message]))),
        }
        self
    }

    /// The servers it may use, the program's own [`crate::Tools`] among them; all by default.
    pub fn servers<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Work {
        self.with("servers", names.into_iter().map(Into::into).collect::<Vec<String>>())
    }

    /// The tools it may use: names, or `prefix*`; all of its servers by default.
    pub fn tools<S: Into<String>>(self, patterns: impl IntoIterator<Item = S>) -> Work {
        self.with("tools", patterns.into_iter().map(Into::into).collect::<Vec<String>>())
    }

    /// What the answer should look like, in prose.
    pub fn output_contract(self, contract: impl Into<String>) -> Work {
        self.with("output_contract", contract.into())
    }

    /// A JSON Schema that its answer must fit.
    pub fn output_schema(self, schema: Value) -> Work {
        self.with("output_schema", schema)
    }

    /// A configured model, by name.
    pub fn model(self, name: impl Into<String>) -> Work {
        self.with("model", name.into())
    }

    /// Model calls at most.
    pub fn steps(self, steps: u32) -> Work {
        self.limit("steps", steps)
    }

    /// Tokens at most.
    pub fn tokens(self, tokens: u64) -> Work {
        self.limit("tokens", tokens)
    }

    /// Time at most; whole milliseconds.
    pub fn deadline(self, deadline: Duration) -> Work {
        self.limit("deadline", format!("{}ms", deadline.as_millis()))
    }

    /// Memory of each of its processes at most, in bytes.
    pub fn memory(self, bytes: u64) -> Work {
        self.limit("memory", format!("{bytes}B"))
    }

    /// Who goes first when work waits, and how the scheduler sees it.
    pub fn priority(self, priority: Priority) -> Work {
        let name = match priority {
            Priority::Low => "low",
            Priority::Normal => "normal",
            Priority::High => "high",
        };
        self.with("priority", name)
    }

    /// It may delegate onward, while `limits.subagents.depth` allows.
    pub fn delegate(self) -> Work {
        self.with("delegate", true)
    }

    pub(crate) fn into_args(self) -> Value {
        Value::Object(self.args)
    }

    fn with(mut self, key: &str, value: impl Into<Value>) -> Work {
        self.args.insert(key.to_owned(), value.into());
        self
    }

    fn limit(mut self, key: &str, value: impl Into<Value>) -> Work {
        match self.args.get_mut("limits") {
            Some(Value::Object(limits)) => drop(limits.insert(key.to_owned(), value.into())),
            Some(_) | None => drop(self.args.insert("limits".to_owned(), json!({ key: value.into() }))),
        }
        self
    }
}

impl From<&str> for Work {
    fn from(instruction: &str) -> Work {
        Work::new(instruction)
    }
}

impl From<String> for Work {
    fn from(instruction: String) -> Work {
        Work::new(instruction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::admit::RunArgs;
    use agentd_core::wire::message::Mode;

    /// What the gate reads of it.
    fn read(work: Work) -> RunArgs {
        RunArgs::read(work.into_args().as_object().expect("an object"))
    }

    #[test]
    fn the_gate_reads_what_was_said() {
        let args = read(
            Work::new("count")
                .context("a")
                .context("b")
                .servers(["crm"])
                .tools(Vec::<String>::new())
                .output_contract("a number")
                .output_schema(json!({"type": "object"}))
                .model("small")
                .steps(3)
                .tokens(10)
                .deadline(Duration::from_millis(1_500))
                .memory(64 << 20)
                .priority(Priority::Low)
                .delegate(),
        );
        assert_eq!(args.problems, Vec::<String>::new());
        assert_eq!((args.instruction.as_deref(), &args.mode), (Ok("count"), &Ok(Some(Mode::Async))));
        assert_eq!(args.context.iter().map(|m| m.content.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!((args.servers, args.tools), (Some(vec!["crm".to_owned()]), Some(vec![])));
        assert_eq!((args.limits.steps, args.limits.tokens), (Some(3), Some(10)));
        assert_eq!(args.limits.deadline, Some(Duration::from_millis(1_500)));
        assert_eq!((args.limits.memory, args.priority), (Some(64 << 20), Some(Priority::Low)));
        assert!(args.delegate && args.output_schema.is_some() && args.model.is_some());
    }

    #[test]
    fn modes_are_what_they_say_and_nonsense_is_left_to_the_gate() {
        assert_eq!(read("x".into()).mode, Ok(Some(Mode::Async)));
        assert_eq!(read(Work::new("x").warm()).mode, Ok(Some(Mode::Warm)));
        assert!(read(Work::new(" ")).instruction.is_err());
        for (work, key) in [
            (Work::new("x").deadline(Duration::from_nanos(1)), "limits.deadline"),
            (Work::new("x").steps(0), "limits.steps"),
            (Work::new("x").memory(1), "limits.memory"),
        ] {
            let problems = read(work).problems;
            assert!(problems.iter().any(|p| p.contains(key)), "{key}: {problems:?}");
        }
    }
}
