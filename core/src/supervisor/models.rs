//! Which model a run gets (S15.3): the call's, else `subagents.defaults.model`, else the agent's.

use super::Core;
use crate::config::ModelChoice;
use crate::id::NodeId;
use crate::json;
use crate::limits;

/// Stands for the model of the run that asks.
const INHERIT: &str = "inherit";

impl Core {
    /// The model of a run that `requester` asks for.
    ///
    /// # Errors
    /// There is no such model, or its credential cannot be found: a sentence that names the field.
    pub(super) fn model_for(&self, requester: NodeId, asked: Option<&str>) -> Result<&ModelChoice, String> {
        let wanted = asked.or(self.config.defaults.model.as_deref());
        let own = &self.config.model;
        let found = match wanted {
            None => own,
            Some(INHERIT) => {
                let of = self.runs.get(&requester).map_or("", |run| run.model.as_str());
                self.named_model(of).unwrap_or(own)
            }
            Some(name) => self.named_model(name).ok_or_else(|| self.unknown_model(name))?,
        };
        match &found.unusable {
            Some(why) => Err(format!("model: {} cannot be used: {why}", found.model.name)),
            None => Ok(found),
        }
    }

    pub(super) fn named_model(&self, name: &str) -> Option<&ModelChoice> {
        let own = Some(&self.config.model).filter(|own| own.model.name == name);
        self.config.models.get(name).or(own)
    }

    /// Whether this name is the agent's own model's and nobody else's.
    pub(super) fn is_own_model(&self, name: &str) -> bool {
        !self.config.models.contains_key(name) && self.config.model.model.name == name
    }

    pub(super) fn unknown_model(&self, name: &str) -> String {
        let own = self.config.model.model.name.as_str();
        let mut names: Vec<&str> = self.config.models.keys().map(String::as_str).collect();
        if !own.is_empty() && !names.contains(&own) {
            names.push(own);
        }
        names.push(INHERIT);
        let name = json::preview(name, limits::PREVIEW_BYTES);
        format!("model: unknown {name}; accepted are {}", names.join(", "))
    }
}
