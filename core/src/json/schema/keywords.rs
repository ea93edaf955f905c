//! The keywords: the shape each must have, and the rule it stands for.

use super::compile::{Compiler, escaped};
use super::equal::canonical;
use super::{ListRule, NodeId, NumberRule, ObjectRule, Rule, SchemaProblem, TextRule};
use crate::json::preview;
use crate::limits::PREVIEW_BYTES;
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;

/// What is accepted as `$schema`.
pub(super) const SAME_DRAFTS: &str =
    "the drafts 2020-12, 2019-09, 7 and 6 are accepted; leave `$schema` out or name one of them";

/// Names of types.
const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

/// Keywords that would change what a schema means, and what to do instead.
const UNSUPPORTED: [(&str, &str); 5] = [
    ("$dynamicRef", "write a `$ref`"),
    ("$recursiveRef", "write a `$ref`"),
    ("unevaluatedItems", "write `items` beside `prefixItems`"),
    ("unevaluatedProperties", "write `additionalProperties` beside `properties`"),
    ("id", "it is draft 4's; leave it out"),
];

type Fields<'s> = &'s Map<String, Value>;

/// Makes the rule of a number.
type Bound = fn(Number) -> NumberRule;

/// Appends the rules of one place.
pub(super) fn read<'s>(
    compiler: &mut Compiler<'s>,
    at: NodeId,
    map: Fields<'s>,
    rules: &mut Vec<Rule>,
) -> Result<(), SchemaProblem> {
    let mut place = Reader { compiler, at, map };
    place.refuse_unsupported()?;
    place.definitions()?;
    place.values(rules)?;
    place.numbers(rules)?;
    place.texts(rules)?;
    place.lists(rules)?;
    place.objects(rules)?;
    place.combinations(rules)
}

/// What a value is, for a message.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// One place being read.
struct Reader<'c, 's> {
    compiler: &'c mut Compiler<'s>,
    at: NodeId,
    map: Fields<'s>,
}

impl<'s> Reader<'_, 's> {
    fn refuse_unsupported(&self) -> Result<(), SchemaProblem> {
        for (keyword, instead) in UNSUPPORTED {
            // `id` is an ordinary word; only draft 4's is an address.
            let is_address = self.map.get(keyword).is_some_and(|value| keyword != "id" || value.is_string());
            if is_address {
                return Err(self.wrong(keyword, format!("not supported: {instead}")));
            }
        }
        if self.at != 0 && self.map.contains_key("$id") {
            let what = "not supported below the top, where it would change what `$ref` means: leave it out";
            return Err(self.wrong("$id", what));
        }
        Ok(())
    }

    /// Definitions are read even when nothing refers to them: a mistake in one is a mistake.
    fn definitions(&mut self) -> Result<(), SchemaProblem> {
        for keyword in ["$defs", "definitions"] {
            self.named(keyword)?;
        }
        Ok(())
    }

    fn values(&mut self, rules: &mut Vec<Rule>) -> Result<(), SchemaProblem> {
        if let Some(types) = self.map.get("type") {
            rules.push(Rule::Types(self.types(types)?));
        }
        if let Some(value) = self.map.get("const") {
            rules.push(Rule::Const(canonical(value)));
        }
        if let Some(values) = self.map.get("enum") {
            let Some(values) = values.as_array() else {
                return Err(self.expected("enum", "a list of values", values));
            };
            rules.push(Rule::Enum(values.iter().map(canonical).collect()));
        }
        Ok(())
    }

    fn types(&self, value: &Value) -> Result<Vec<&'static str>, SchemaProblem> {
        let names = match value {
            Value::Array(names) if !names.is_empty() => names.iter().map(Value::as_str).collect(),
            Value::String(name) => vec![Some(name.as_str())],
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                vec![None]
            }
        };
        let known = |name: Option<&str>| TYPES.into_iter().find(|known| Some(*known) == name);
        names.into_iter().map(known).collect::<Option<Vec<_>>>().ok_or_else(|| {
            let seen = preview(value.to_string(), PREVIEW_BYTES);
            self.wrong(
                "type",
                format!("`{seen}`: one of {}, or a list of them, is accepted", TYPES.join(", ")),
            )
        })
    }

    fn numbers(&mut self, rules: &mut Vec<Rule>) -> Result<(), SchemaProblem> {
        let bounds: [(&str, Bound); 4] = [
            ("maximum", NumberRule::Maximum),
            ("exclusiveMaximum", NumberRule::ExclusiveMaximum),
            ("minimum", NumberRule::Minimum),
            ("exclusiveMinimum", NumberRule::ExclusiveMinimum),
        ];
        for (keyword, rule) in bounds {
            match self.map.get(keyword) {
                None => {}
                Some(Value::Number(number)) => rules.push(Rule::Number(rule(number.clone()))),
                Some(other) => return Err(self.expected(keyword, "a number", other)),
            }
        }
        match self.map.get("multipleOf") {
            None => Ok(()),
            Some(Value::Number(step)) if step.as_f64().is_some_and(|step| step > 0.0) => {
                rules.push(Rule::Number(NumberRule::MultipleOf(step.clone())));
                Ok(())
            }
            Some(other) => Err(self.expected("multipleOf", "a number over 0", other)),
        }
    }

    fn texts(&mut self, rules: &mut Vec<Rule>) -> Result<(), SchemaProblem> {
        let max = self.count("maxLength")?.map(TextRule::Max);
        let min = self.count("minLength")?.map(TextRule::Min);
        rules.extend([max, min].into_iter().flatten().map(Rule::Text));
        match self.map.get("pattern") {
            None => {}
            Some(Value::String(text)) => {
                let pattern = self.compiler.pattern(self.at, "pattern", text)?;
                rules.push(Rule::Text(TextRule::Pattern(pattern)));
            }
            Some(other) => return Err(self.expected("pattern", "a string", other)),
        }
        Ok(())
    }

    fn lists(&mut self, rules: &mut Vec<Rule>) -> Result<(), SchemaProblem> {
        let by_prefix = self.several("prefixItems")?;
        let (first, rest) = match self.map.get("items") {
            Some(Value::Array(_)) if by_prefix.is_some() => {
                return Err(self.wrong("items", "a list of schemas beside `prefixItems`: write one schema"));
            }
            // As up to draft 2019-09.
            Some(Value::Array(_)) => (self.several("items")?, self.one("additionalItems")?),
            Some(_) => (by_prefix, self.one("items")?),
            None => (by_prefix, None),
        };
        if first.is_some() || rest.is_some() {
            rules.push(Rule::List(ListRule::Items { first: first.unwrap_or_default(), rest }));
        }
        let max = self.count("maxItems")?.map(ListRule::Max);
        let min = self.count("minItems")?.map(ListRule::Min);
        rules.extend([max, min].into_iter().flatten().map(Rule::List));
        match self.map.get("uniqueItems") {
            None | Some(Value::Bool(false)) => {}
            Some(Value::Bool(true)) => rules.push(Rule::List(ListRule::Unique)),
            Some(other) => return Err(self.expected("uniqueItems", "true or false", other)),
        }
        let (min, max) = (self.count("minContains")?, self.count("maxContains")?);
        if let Some(node) = self.one("contains")? {
            rules.push(Rule::List(ListRule::Contains { node, min: min.unwrap_or(1), max }));
        }
        Ok(())
    }

    fn objects(&mut self, rules: &mut Vec<Rule>) -> Result<(), SchemaProblem> {
        let mut found = Vec::new();
        found.extend(self.count("maxProperties")?.map(ObjectRule::Max));
        found.extend(self.count("minProperties")?.map(ObjectRule::Min));
        if let Some(required) = self.map.get("required") {
            found.push(ObjectRule::Required(self.keys("required", required)?));
        }
        let named = self.named("properties")?;
        let mut alike = Vec::new();
        for (text, node) in self.named("patternProperties")?.unwrap_or_default() {
            alike.push((self.compiler.pattern(self.at, "patternProperties", &text)?, node));
        }
        let rest = self.one("additionalProperties")?;
        if named.is_some() || !alike.is_empty() || rest.is_some() {
            found.push(ObjectRule::Properties { named: named.unwrap_or_default(), alike, rest });
        }
        found.extend(self.one("propertyNames")?.map(ObjectRule::Names));
        found.extend(self.named("dependentSchemas")?.map(ObjectRule::Implies));
        if let Some(dependent) = self.fields("dependentRequired")? {
            let mut keys = BTreeMap::new();
            for (key, needs) in dependent {
                keys.insert(key.clone(), self.keys("dependentRequired", needs)?);
            }
            found.push(ObjectRule::Needs(keys));
        }
        self.dependencies(&mut found)?;
        rules.extend(found.into_iter().map(Rule::Object));
        Ok(())
    }

    /// Draft 7's: each key needs other keys, or the whole to fit a schema.
    fn dependencies(&mut self, found: &mut Vec<ObjectRule>) -> Result<(), SchemaProblem> {
        let (mut keys, mut schemas) = (BTreeMap::new(), BTreeMap::new());
        for (key, needs) in self.fields("dependencies")?.into_iter().flatten() {
            if needs.is_array() {
                keys.insert(key.clone(), self.keys("dependencies", needs)?);
            } else {
                schemas.insert(key.clone(), self.below("dependencies", Some(key), needs)?);
            }
        }
        if !keys.is_empty() {
            found.push(ObjectRule::Needs(keys));
        }
        if !schemas.is_empty() {
            found.push(ObjectRule::Implies(schemas));
        }
        Ok(())
    }

    fn combinations(&mut self, rules: &mut Vec<Rule>) -> Result<(), SchemaProblem> {
        rules.extend(self.several("allOf")?.map(Rule::AllOf));
        rules.extend(self.several("anyOf")?.map(Rule::AnyOf));
        rules.extend(self.several("oneOf")?.map(Rule::OneOf));
        rules.extend(self.one("not")?.map(Rule::Not));
        let (then, otherwise) = (self.one("then")?, self.one("else")?);
        if let Some(condition) = self.one("if")? {
            rules.push(Rule::If { condition, then, otherwise });
        }
        Ok(())
    }

    /// The schema under a keyword.
    fn one(&mut self, keyword: &str) -> Result<Option<NodeId>, SchemaProblem> {
        self.map.get(keyword).map(|value| self.below(keyword, None, value)).transpose()
    }

    /// The schemas of a keyword that takes a list of them.
    fn several(&mut self, keyword: &str) -> Result<Option<Vec<NodeId>>, SchemaProblem> {
        match self.map.get(keyword) {
            None => Ok(None),
            Some(Value::Array(values)) if !values.is_empty() => {
                let nodes = values.iter().enumerate();
                nodes
                    .map(|(i, value)| self.below(keyword, Some(&i.to_string()), value))
                    .collect::<Result<_, _>>()
                    .map(Some)
            }
            Some(other) => Err(self.expected(keyword, "a list of schemas, at least one,", other)),
        }
    }

    /// The schemas of a keyword that gives each a name.
    fn named(&mut self, keyword: &str) -> Result<Option<BTreeMap<String, NodeId>>, SchemaProblem> {
        let Some(fields) = self.fields(keyword)? else { return Ok(None) };
        let nodes = fields.iter();
        nodes
            .map(|(key, value)| Ok((key.clone(), self.below(keyword, Some(key), value)?)))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    fn below(&mut self, keyword: &str, key: Option<&str>, value: &'s Value) -> Result<NodeId, SchemaProblem> {
        let key = key.map_or_else(String::new, |key| format!("/{}", escaped(key)));
        self.compiler.place(Some(self.at), format!("/{keyword}{key}"), value)
    }

    fn fields(&self, keyword: &str) -> Result<Option<Fields<'s>>, SchemaProblem> {
        match self.map.get(keyword) {
            None => Ok(None),
            Some(Value::Object(fields)) => Ok(Some(fields)),
            Some(other) => Err(self.expected(keyword, "an object", other)),
        }
    }

    fn keys(&self, keyword: &str, value: &Value) -> Result<Vec<String>, SchemaProblem> {
        let keys = value.as_array().and_then(|keys| {
            keys.iter().map(|key| key.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        keys.ok_or_else(|| self.expected(keyword, "a list of keys, each a string,", value))
    }

    fn count(&self, keyword: &str) -> Result<Option<u64>, SchemaProblem> {
        let Some(value) = self.map.get(keyword) else { return Ok(None) };
        let whole = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=9e15).contains(number));
        // In that range the conversion is exact.
        let count = value.as_u64().or(whole.map(|number| number as u64));
        count.map(Some).ok_or_else(|| self.expected(keyword, "a whole number from 0", value))
    }

    fn expected(&self, keyword: &str, what: &str, seen: &Value) -> SchemaProblem {
        let shown = preview(seen.to_string(), PREVIEW_BYTES);
        self.wrong(keyword, format!("{what} is expected, and it is `{shown}`"))
    }

    fn wrong(&self, keyword: &str, what: impl Into<String>) -> SchemaProblem {
        self.compiler.problem(self.at, keyword, what)
    }
}
