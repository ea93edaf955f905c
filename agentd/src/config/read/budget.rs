//! `intelligence.budget`: what model calls may cost (S15.6). Owns what its parts mean together: a policy that needs a
//! window or a cheaper model has one, and where money is counted every model that is used for certain has a price.

use super::super::check::dollars;
use super::super::problem::{Code, Problem};
use super::super::source::Place;
use super::super::tree::clip;
use super::super::values::Values;
use super::Reader;
use super::model::Models;
use agentd_core::budget::{Budget, Caps, OnExhausted, Per};
use agentd_core::config::ModelChoice;
use agentd_core::money::Usd;

const PATH: &str = "intelligence.budget";

impl Reader<'_> {
    /// The budget, and the model that calls are made with when it runs low.
    pub(super) fn budget(
        &mut self,
        intelligence: &Values<'_>,
        models: Option<&Models>,
    ) -> (Budget, Option<ModelChoice>) {
        let values = intelligence.section("budget");
        let lifetime = self.caps(&values.section("lifetime"), &format!("{PATH}.lifetime"));
        let mut windows = Vec::new();
        for (index, window) in values.items("windows").iter().enumerate() {
            let path = format!("{PATH}.windows[{index}]");
            let caps = self.caps(window, &path);
            let word = window.text("per");
            match Per::ALL.into_iter().find(|(name, _)| Some(*name) == word) {
                Some((_, per)) => windows.push((per, caps)),
                None if window.has("per") => {}
                None => self.missing(window.place(), &format!("{path}.per"), "minute, hour or day"),
            }
            if !window.has("tokens") && !window.has("usd") {
                self.missing(window.place(), &format!("{path}.tokens"), "tokens, usd, or both");
            }
        }
        let on_exhausted = match values.text("on_exhausted") {
            Some("slow") => OnExhausted::Slow,
            Some("degrade") => OnExhausted::Degrade,
            Some("refuse") => OnExhausted::Refuse,
            Some("fail") => OnExhausted::Fail,
            Some(_) | None => OnExhausted::Wait,
        };
        let budget = Budget { lifetime, windows, on_exhausted };
        let degraded = self.degraded(&values, &budget, models);
        self.budget_makes_sense(&values, &budget, models);
        (budget, degraded)
    }

    /// Caps that let something through.
    pub(super) fn caps(&mut self, values: &Values<'_>, path: &str) -> Caps {
        Caps { tokens: values.whole("tokens"), usd: self.usd(values, path) }
    }

    /// `limits.run.usd`, which counts nothing for a model without a price.
    pub(super) fn run_usd(&mut self, run: &Values<'_>, models: Option<&Models>) -> Option<Usd> {
        let usd = self.usd(run, "limits.run")?;
        if let (Some(own), Some(node)) = (models.map(|models| &models.own), run.written("usd"))
            && own.price.is_none()
        {
            self.problems.push(unpriced(&node.place, "limits.run.usd", own));
        }
        Some(usd)
    }

    /// An amount of dollars that is more than nothing.
    pub(super) fn usd(&mut self, values: &Values<'_>, path: &str) -> Option<Usd> {
        let usd = dollars(values.text("usd")?)?;
        if let (Usd::ZERO, Some(node)) = (usd, values.written("usd")) {
            let problem = Problem::at(&node.place, &format!("{path}.usd"), Code::InvalidValue, "is nothing");
            self.problems.push(problem.accepted("dollars, such as 2.50").hint("leave it out for no bound"));
        }
        Some(usd)
    }

    fn degraded(
        &mut self,
        values: &Values<'_>,
        budget: &Budget,
        models: Option<&Models>,
    ) -> Option<ModelChoice> {
        let degrade = values.section("degrade");
        let path = format!("{PATH}.degrade");
        if budget.on_exhausted != OnExhausted::Degrade {
            if let Some(node) = values.written("degrade") {
                let fault = "is used only with on_exhausted: degrade";
                self.problems.push(Problem::at(&node.place, &path, Code::InvalidValue, fault));
            }
            return None;
        }
        let Some(name) = degrade.text("model") else {
            self.missing(values.place(), &format!("{path}.model"), "one of intelligence.models");
            return None;
        };
        let models = models?;
        let found = models.named.get(name);
        if let (None, Some(node)) = (found, degrade.written("model")) {
            let names: Vec<&str> = models.named.keys().map(String::as_str).collect();
            let fault = format!("there is no model {:?}", clip(name));
            let problem = Problem::at(&node.place, &format!("{path}.model"), Code::InvalidValue, fault);
            self.problems.push(problem.accepted(match names.as_slice() {
                [] => "one of intelligence.models, of which there is none".to_owned(),
                names => names.join(", "),
            }));
        }
        found.cloned()
    }

    fn budget_makes_sense(&mut self, values: &Values<'_>, budget: &Budget, models: Option<&Models>) {
        let Some(place) = values.place() else { return };
        if budget.on_exhausted == OnExhausted::Slow && budget.windows.is_empty() {
            let fault = "slow spreads calls over a window, and there is none";
            let problem = Problem::at(place, &format!("{PATH}.on_exhausted"), Code::InvalidValue, fault);
            self.problems.push(problem.hint("add windows: [{per: hour, usd: 1}], or choose another answer"));
        }
        let Some(models) = models.filter(|_| budget.counts_money()) else { return };
        let degraded = values.section("degrade").text("model").and_then(|name| models.named.get(name));
        for choice in [Some(&models.own), degraded].into_iter().flatten() {
            if choice.price.is_none() {
                self.problems.push(unpriced(place, PATH, choice));
            }
        }
    }
}

fn unpriced(place: &Place, path: &str, choice: &ModelChoice) -> Problem {
    let fault = format!("is in dollars, and the model {:?} has no price", clip(&choice.model.name));
    Problem::at(place, path, Code::Missing, fault)
        .hint("add it to intelligence.prices, by its provider's name")
}
