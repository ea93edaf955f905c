//! `subagent.run`'s arguments (S6.1), read strictly: what is unknown, mistyped or not built is named, and
//! nothing falls back to a default in silence (S4.5). Which gate speaks is decided by the gates' order, so
//! reading never fails: problems wait in the value.

use crate::bytes::Json;
use crate::config::{LimitOverrides, Priority};
use crate::json::schema::Schema;
use crate::limits;
use crate::money::Usd;
use crate::units;
use crate::wire::message::{ContextMessage, ContextRole, Mode};
use serde_json::{Map, Value};
use std::time::Duration;

/// Keys that exist and are built.
const KEYS: [&str; 14] = [
    "instruction",
    "mode",
    "servers",
    "tools",
    "context",
    "output_contract",
    "output_schema",
    "model",
    "limits",
    "priority",
    "delegate",
    "plan_item",
    "durable",
    "resume",
];
/// Keys of S6.1 that later versions build.
const LATER: [&str; 3] = ["template", "params", "skills"];
const MODES: &str = "sync, async, detached, warm";
const LIMIT_KEYS: [&str; 6] = ["steps", "tokens", "usd", "deadline", "memory", "cpu"];
const LATER_LIMITS: [&str; 3] = ["pids", "fds", "file_size"];

/// A call of `subagent.run`, as far as it could be read.
#[derive(Debug, Clone, PartialEq)]
pub struct RunArgs {
    /// What is to be done; or what is wrong with it.
    pub instruction: Result<String, String>,
    /// The mode, `None` where the call gives none; or what is wrong with it.
    pub mode: Result<Option<Mode>, String>,
    /// Server names; `None` is every server of the agent.
    pub servers: Option<Vec<String>>,
    /// Tool patterns; `None` is every tool of the servers.
    pub tools: Option<Vec<String>>,
    /// Seed transcript.
    pub context: Vec<ContextMessage>,
    /// What the answer should look like.
    pub output_contract: Option<String>,
    /// JSON Schema that the answer must fit (S7.8).
    pub output_schema: Option<Json>,
    /// Reference of the model the call wants.
    pub model: Option<String>,
    /// Plan item that the run works on, by number.
    pub plan_item: Option<u32>,
    /// Limits the call sets.
    pub limits: LimitOverrides,
    /// Priority the call sets.
    pub priority: Option<Priority>,
    /// Whether the run may delegate onward (S6.8).
    pub delegate: bool,
    /// Whether a restart of the daemon takes the run up; `None` where the call does not say (S10.3).
    pub durable: Option<bool>,
    /// Whether it then goes on from its transcript, where there is one; `None` where the call does not say.
    pub resume: Option<bool>,
    /// Everything else that is wrong, a sentence each.
    pub problems: Vec<String>,
}

impl RunArgs {
    /// Reads a JSON object.
    pub fn read(object: &Map<String, Value>) -> RunArgs {
        let mut r = Reader { object, problems: Vec::new() };
        let mode = r.mode();
        let args = RunArgs {
            instruction: r.instruction(),
            mode,
            servers: r.names("servers"),
            tools: r.names("tools"),
            context: r.context(),
            output_contract: r.text("output_contract"),
            output_schema: r.schema(),
            model: r.text("model"),
            plan_item: r.plan_item(),
            limits: r.limits(),
            priority: r.priority(),
            delegate: r.flag("delegate").unwrap_or(false),
            durable: r.flag("durable"),
            resume: r.flag("resume"),
            problems: Vec::new(),
        };
        r.unknown();
        RunArgs { problems: r.problems, ..args }
    }
}

struct Reader<'a> {
    object: &'a Map<String, Value>,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn wrong(&mut self, key: &str, seen: &Value, accepted: &str) {
        self.problems.push(format!("{key}: saw {}, accepted is {accepted}", shape(seen)));
    }

    fn instruction(&self) -> Result<String, String> {
        match self.object.get("instruction") {
            None | Some(Value::Null) => Err("it is missing".into()),
            Some(Value::String(s)) if s.trim().is_empty() => Err("it is empty".into()),
            Some(Value::String(s)) => Ok(s.clone()),
            Some(other) => Err(format!("saw {}, accepted is a string", shape(other))),
        }
    }

    fn text(&mut self, key: &str) -> Option<String> {
        match self.object.get(key) {
            None | Some(Value::Null) => None,
            Some(Value::String(s)) => Some(s.clone()),
            Some(other) => {
                self.wrong(key, other, "a string");
                None
            }
        }
    }

    fn flag(&mut self, key: &str) -> Option<bool> {
        match self.object.get(key) {
            None | Some(Value::Null) => None,
            Some(Value::Bool(b)) => Some(*b),
            Some(other) => {
                self.wrong(key, other, "true or false");
                None
            }
        }
    }

    fn mode(&mut self) -> Result<Option<Mode>, String> {
        match self.object.get("mode") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(s)) => match s.as_str() {
                "sync" => Ok(Some(Mode::Sync)),
                "async" => Ok(Some(Mode::Async)),
                "detached" => Ok(Some(Mode::Detached)),
                "warm" => Ok(Some(Mode::Warm)),
                _ => Err(format!("saw {}, accepted are {MODES}", shape(&Value::String(s.clone())))),
            },
            Some(other) => Err(format!("saw {}, accepted are {MODES}", shape(other))),
        }
    }

    fn names(&mut self, key: &str) -> Option<Vec<String>> {
        let value = self.object.get(key)?;
        let all: Option<Vec<String>> =
            value.as_array().and_then(|a| a.iter().map(|v| v.as_str().map(str::to_owned)).collect());
        match (value, all) {
            (Value::Null, _) => None,
            (_, Some(names)) => Some(names),
            (other, None) => {
                self.wrong(key, other, "a list of strings");
                // Narrow to nothing: the gate refuses, and nothing can read this as "all".
                Some(Vec::new())
            }
        }
    }

    fn context(&mut self) -> Vec<ContextMessage> {
        let list = match self.object.get("context") {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::Array(list)) => list,
            Some(other) => {
                self.wrong("context", other, "a list of {role, content}");
                return Vec::new();
            }
        };
        let mut messages = Vec::new();
        for (i, item) in list.iter().enumerate() {
            match message(item) {
                Some(m) => messages.push(m),
                None => self.wrong(
                    &format!("context[{i}]"),
                    item,
                    "{role, content} with role user or assistant and content a string",
                ),
            }
        }
        messages
    }

    fn limits(&mut self) -> LimitOverrides {
        let mut limits = LimitOverrides::default();
        let object = match self.object.get("limits") {
            None | Some(Value::Null) => return limits,
            Some(Value::Object(o)) => o,
            Some(other) => {
                self.wrong("limits", other, "an object");
                return limits;
            }
        };
        for (key, value) in object {
            let name = format!("limits.{key}");
            match key.as_str() {
                "steps" => {
                    limits.steps = self.count(&name, value).map(|n| u32::try_from(n).unwrap_or(u32::MAX))
                }
                "tokens" => limits.tokens = self.count(&name, value),
                "usd" => limits.usd = self.dollars(&name, value),
                "deadline" => limits.deadline = self.duration(&name, value),
                "memory" => limits.memory = self.memory(&name, value),
                "cpu" => limits.cpu = self.cpu(&name, value),
                later if LATER_LIMITS.contains(&later) => {
                    self.problems
                        .push(format!("{name}: not built yet; accepted are {}", LIMIT_KEYS.join(", ")));
                }
                _ => self.problems.push(format!("{name}: unknown; accepted are {}", LIMIT_KEYS.join(", "))),
            }
        }
        limits
    }

    fn count(&mut self, name: &str, value: &Value) -> Option<u64> {
        let seen = value.as_u64().filter(|n| *n > 0);
        if seen.is_none() {
            self.wrong(name, value, "a whole number from 1");
        }
        seen
    }

    fn dollars(&mut self, name: &str, value: &Value) -> Option<Usd> {
        let seen = value.as_f64().and_then(Usd::from_dollars).filter(|usd| *usd > Usd::ZERO);
        if seen.is_none() {
            self.wrong(name, value, "a number of dollars above zero, such as 0.25");
        }
        seen
    }

    fn duration(&mut self, name: &str, value: &Value) -> Option<Duration> {
        let seen = value.as_str().and_then(|s| units::duration(s).ok()).filter(|d| !d.is_zero());
        if seen.is_none() {
            self.wrong(name, value, &format!("{}, above zero", units::DURATIONS));
        }
        seen
    }

    fn memory(&mut self, name: &str, value: &Value) -> Option<u64> {
        let floor = limits::MEMORY_FLOOR;
        let seen = value.as_str().and_then(|s| units::size(s).ok()).filter(|n| *n >= floor);
        if seen.is_none() {
            self.wrong(name, value, &format!("{}, at least {}MiB", units::SIZES, floor >> 20));
        }
        seen
    }

    /// The kernel counts processor time in whole seconds.
    fn cpu(&mut self, name: &str, value: &Value) -> Option<Duration> {
        let whole = |d: &Duration| d.as_secs() > 0 && d.subsec_nanos() == 0;
        let seen = value.as_str().and_then(|s| units::duration(s).ok()).filter(whole);
        if seen.is_none() {
            self.wrong(name, value, "whole seconds, such as 90s or 5m");
        }
        seen
    }

    fn schema(&mut self) -> Option<Json> {
        match self.object.get("output_schema") {
            None | Some(Value::Null) => None,
            Some(value @ Value::Object(_)) => {
                let json = Json::of(value);
                if json.0.len() > limits::OUTPUT_SCHEMA_BYTES {
                    let most = limits::OUTPUT_SCHEMA_BYTES;
                    let seen = json.0.len();
                    self.problems.push(format!("output_schema: {seen} bytes, at most {most} are accepted"));
                } else if let Err(problem) = Schema::read(&json.0) {
                    self.problems.push(format!("output_schema: {problem}"));
                }
                Some(json)
            }
            Some(other) => {
                self.wrong("output_schema", other, "a JSON Schema, an object");
                None
            }
        }
    }

    fn plan_item(&mut self) -> Option<u32> {
        match self.object.get("plan_item") {
            None | Some(Value::Null) => None,
            Some(value) => {
                let name = "plan_item";
                self.count(name, value).map(|n| u32::try_from(n).unwrap_or(u32::MAX))
            }
        }
    }

    fn priority(&mut self) -> Option<Priority> {
        match self.object.get("priority") {
            None | Some(Value::Null) => None,
            Some(value) => {
                let seen = match value.as_str() {
                    Some("low") => Some(Priority::Low),
                    Some("normal") => Some(Priority::Normal),
                    Some("high") => Some(Priority::High),
                    Some(_) | None => None,
                };
                if seen.is_none() {
                    self.wrong("priority", value, "low, normal or high");
                }
                seen
            }
        }
    }

    fn unknown(&mut self) {
        for key in self.object.keys() {
            if LATER.contains(&key.as_str()) {
                self.problems.push(format!("{key}: not built yet; accepted are {}", KEYS.join(", ")));
            } else if !KEYS.contains(&key.as_str()) {
                let key: String = key.chars().take(64).collect();
                self.problems.push(format!("{key:?}: unknown; accepted are {}", KEYS.join(", ")));
            }
        }
    }
}

fn message(item: &Value) -> Option<ContextMessage> {
    let object = item.as_object()?;
    if object.keys().any(|k| k != "role" && k != "content") {
        return None;
    }
    let role = match object.get("role")?.as_str()? {
        "user" => ContextRole::User,
        "assistant" => ContextRole::Assistant,
        _ => return None,
    };
    Some(ContextMessage { role, content: object.get("content")?.as_str()?.to_owned() })
}

/// What a value is, in a few words: never the whole of it.
fn shape(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => n.to_string(),
        Value::String(s) => format!("{:?}", s.chars().take(64).collect::<String>()),
        Value::Array(a) => format!("a list of {}", a.len()),
        Value::Object(o) => format!("an object of {}", o.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> RunArgs {
        RunArgs::read(value.as_object().expect("an object"))
    }

    #[test]
    fn a_whole_call() {
        let args = read(json!({
            "instruction": "count", "mode": "async", "servers": ["files"], "tools": [],
            "context": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}],
            "output_contract": "a number",
            "limits": {"steps": 3, "tokens": 10, "deadline": "5m", "memory": "700MB", "cpu": "90s", "usd": 0.25},
            "priority": "low", "delegate": true
        }));
        assert_eq!(args.problems, Vec::<String>::new());
        assert_eq!(args.mode, Ok(Some(Mode::Async)));
        assert_eq!(args.tools, Some(vec![]));
        assert_eq!(args.limits.memory, Some(700_000_000));
        assert_eq!(args.limits.usd, Usd::from_dollars(0.25));
        let said: Vec<(ContextRole, &str)> =
            args.context.iter().map(|m| (m.role, m.content.as_str())).collect();
        assert_eq!(said, [(ContextRole::User, "hi"), (ContextRole::Assistant, "ho")]);
        assert!(args.delegate);
    }

    #[test]
    fn every_mistake_is_named_and_none_widens() {
        for (value, word) in [
            (json!({"speed": 1}), "\"speed\": unknown"),
            (json!({"template": "scan"}), "template: not built yet"),
            (json!({"limits": {"pids": 3}}), "limits.pids: not built yet"),
            (json!({"limits": {"step": 3}}), "limits.step: unknown"),
            (json!({"limits": {"cpu": "1500ms"}}), "limits.cpu: saw \"1500ms\", accepted is whole seconds"),
            (json!({"limits": {"cpu": "10ms"}}), "limits.cpu"),
            (json!({"limits": {"cpu": "0s"}}), "limits.cpu"),
            (json!({"limits": {"usd": 0}}), "limits.usd: saw 0, accepted is a number of dollars above zero"),
            (json!({"limits": {"usd": -1}}), "limits.usd: saw -1"),
            (json!({"limits": {"memory": "1MiB"}}), "at least 32MiB"),
            (json!({"limits": {"steps": 0}}), "limits.steps: saw 0"),
            (json!({"limits": {"tokens": -1}}), "limits.tokens: saw -1"),
            (json!({"limits": {"steps": 1.5}}), "limits.steps: saw 1.5"),
            (json!({"limits": {"deadline": "soon"}}), "limits.deadline: saw \"soon\""),
            (json!({"limits": {"deadline": "0s"}}), "limits.deadline"),
            (json!({"limits": []}), "limits: saw a list"),
            (json!({"priority": "urgent"}), "low, normal or high"),
            (json!({"servers": "files"}), "servers: saw \"files\""),
            (json!({"tools": [1]}), "tools: saw a list of 1"),
            (json!({"context": [{"role": "system", "content": "x"}]}), "context[0]"),
            (json!({"context": [{"role": "user", "content": "x", "tools": ["*"]}]}), "context[0]"),
            (json!({"delegate": "yes"}), "true or false"),
            (json!({"output_schema": true}), "output_schema: saw true"),
            (json!({"output_schema": {"type": "strin"}}), "output_schema: at /type: "),
            (json!({"output_schema": {"$ref": "#"}}), "output_schema: "),
            (json!({"plan_item": 0}), "plan_item: saw 0"),
            (json!({"model": 4}), "model: saw 4"),
        ] {
            let args = read(value.clone());
            assert!(args.problems.iter().any(|p| p.contains(word)), "{value}: {:?}", args.problems);
        }
        assert_eq!(read(json!({"servers": "files"})).servers, Some(vec![]), "a mistake must not mean all");
        assert_eq!(read(json!({"mode": "warm"})).mode, Ok(Some(Mode::Warm)));
        assert!(read(json!({"mode": 7})).mode.unwrap_err().contains("sync, async, detached, warm"));
        let of = |bytes: usize| {
            let empty = json!({"description": ""}).to_string().len();
            read(json!({"output_schema": {"description": "x".repeat(bytes - empty)}})).problems
        };
        assert_eq!(of(limits::OUTPUT_SCHEMA_BYTES), Vec::<String>::new());
        assert!(of(limits::OUTPUT_SCHEMA_BYTES + 1)[0].contains("65537 bytes, at most 65536"));
        assert!(of(70_000)[0].contains("at most 65536"));
    }
}
