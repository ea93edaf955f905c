//! Reloading (S10.8): the configuration is read again outside of the core, comes as one event, and counts from there on, all
//! of it that can or nothing.
//!
//! Owns which load is in hand, who waits for it, and what a new configuration means to what there is already. Refuses a
//! reload once a drain has begun. Called by `route`, by the drain and by the control surface; `swapping` has the models of
//! runs that work.

use super::conversation::Phase;
use super::{Core, daemon_note};
use crate::action::{Action, Actions};
use crate::config::{Config, Reloaded, Store};
use crate::error::Refusal;
use crate::id::NodeId;
use crate::note::Level;
use crate::run::process::Process;
use crate::run::swap::Calls;
use crate::wire::message::{Role, Server};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The gate that a configuration with mistakes does not pass.
const GATE: &str = "configuration";

/// Bytes of the mistakes in a log event; whoever asked for the reload is told all of them.
const LOGGED_BYTES: usize = 4_096;

/// Which loads there were.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Reload {
    /// The number of the last load that was begun, from 1.
    begun: u64,
    /// One is in hand.
    loading: bool,
    /// Somebody asked while it was: what they changed it may not have read, so another one follows.
    again: bool,
}

impl Core {
    /// Somebody wants the configuration read again. The number of the load that reads it as it is now or later.
    ///
    /// # Errors
    /// A drain has begun.
    pub(super) fn ask_for_reload(&mut self, by: &str, out: &mut Actions) -> Result<u64, Refusal> {
        if self.drain.is_some() {
            let refusal = draining();
            let note = daemon_note(Level::Warn, "config.reload.refused").with("by", by);
            out.push(note.with("why", refusal.message.as_str()).into());
            return Err(refusal);
        }
        out.push(daemon_note(Level::Info, "config.reload.start").with("by", by).into());
        if self.reload.loading {
            self.reload.again = true;
            return Ok(self.reload.begun + 1);
        }
        Ok(self.begin_load(out))
    }

    fn begin_load(&mut self, out: &mut Actions) -> u64 {
        self.reload = Reload { begun: self.reload.begun + 1, loading: true, again: false };
        out.push(Action::LoadConfig);
        self.reload.begun
    }

    /// A drain begins: whoever waits for a reload is told that there is none.
    pub(super) fn refuse_reloads(&mut self, out: &mut Actions) {
        self.reload.again = false;
        for load in [self.reload.begun, self.reload.begun + 1] {
            self.tell_reloaded(load, &Err(draining()), out);
        }
    }

    /// It was read and can be used.
    pub(super) fn config_ready(&mut self, reloaded: Reloaded, out: &mut Actions) {
        if self.drain.is_some() {
            let note = daemon_note(Level::Warn, "config.reload.refused");
            out.push(note.with("why", draining().message).into());
            return self.end_load(Err(draining()), out);
        }
        let Reloaded { applied, restart_needed, models, servers, .. } = &reloaded;
        let note = daemon_note(Level::Info, "config.reload").with("applied", applied.join(", "));
        let note = note.with("models", names(models)).with("servers", names(servers));
        out.push(note.with("restart_needed", restart_needed.join(", ")).into());
        if !restart_needed.is_empty() {
            let note = daemon_note(Level::Warn, "config.restart_needed");
            out.push(note.with("keys", restart_needed.join(", ")).into());
        }
        let told = json!({
            "reloaded": true, "applied": applied, "models": models, "servers": servers,
            "restart_needed": restart_needed,
        });
        // What is asked for from here on is done by the new configuration.
        out.push(Action::EndReload { used: true });
        self.adopt(reloaded, out);
        self.end_load(Ok(told), out);
    }

    /// It was read and cannot be used.
    pub(super) fn config_refused(&mut self, problems: u64, text: String, out: &mut Actions) {
        let shown: String = text.chars().take(LOGGED_BYTES).collect();
        let note = daemon_note(Level::Warn, "config.reload.failed").with("problems", problems);
        out.push(note.with("error", shown).into());
        let refusal = Refusal {
            gate: GATE.into(),
            message: text,
            limit: None,
            observed: Some(problems.to_string()),
            hint: "the configuration that was in use stays in use; correct this and reload again".into(),
        };
        self.end_load(Err(refusal), out);
    }

    /// Tells whoever waited for the load in hand, and begins the next one, if somebody asked meanwhile.
    fn end_load(&mut self, told: Result<Value, Refusal>, out: &mut Actions) {
        if !std::mem::take(&mut self.reload.loading) {
            // Nobody asked for it.
            return;
        }
        if told.is_err() {
            out.push(Action::EndReload { used: false });
        }
        self.tell_reloaded(self.reload.begun, &told, out);
        if self.reload.again && self.drain.is_none() {
            self.begin_load(out);
        }
    }

    /// Takes what can change while the daemon lives, and looks at everything anew that hangs on it.
    fn adopt(&mut self, reloaded: Reloaded, out: &mut Actions) {
        let Reloaded { config, models, servers, .. } = reloaded;
        let old = self.follow(config);
        let now = self.now;
        self.admission.set_limits(self.config.subagents, now.mono);
        self.ledger.set_budget(self.config.budget.clone(), now.wall);
        self.budget_moved();
        if let Some(until) = &mut self.conversation.idle_until {
            *until = until.before(old.worker_idle) + self.config.worker_idle;
        }
        let configured = |name: &String| {
            let same = |server: &&Server| server.name == *name && !servers.contains(name);
            let is_now = self.config.servers.iter().find(same).map(Server::without_values);
            is_now.is_some() && is_now == old.servers.iter().find(same).map(Server::without_values)
        };
        self.offered.retain(|name, _| configured(name));
        self.retime(&old);
        let outdated = self.outdates_worker(&old, !servers.is_empty());
        self.renew_payloads(&old);
        self.renew_worker(outdated, out);
        self.swap_models(&old, &models, out);
    }

    /// Clocks of runs hang on `lifecycle`.
    fn retime(&mut self, old: &Config) {
        self.touched.extend(self.busy.iter().copied());
        let (now, keys) = (self.now.mono, self.config.liveness);
        if keys == old.liveness {
            return;
        }
        for run in self.runs.values_mut() {
            if let Process::Alive(alive) = &mut run.process {
                alive.liveness.retime(now, &keys);
            }
        }
    }

    /// Takes the parts of another configuration that can change while the daemon lives, and gives back what was in use.
    /// The others are the keys that `restart_needed` names, and what is no key.
    fn follow(&mut self, new: Config) -> Config {
        let old = self.config.clone();
        let Config {
            agent: _,
            instruction,
            model,
            models,
            one_shot: _,
            worker_idle,
            wake_on_results,
            servers,
            host: _,
            run,
            run_usd,
            budget,
            degraded,
            swap,
            subagents,
            defaults,
            liveness,
            kill,
            drain_timeout,
            reap_orphans_always: _,
            log_level,
            sessions: _,
            store: Store { keeps: _, commit: _, work },
            max_attempts,
            control: _,
        } = new;
        self.config = Config {
            agent: old.agent.clone(),
            instruction,
            model,
            models,
            one_shot: old.one_shot,
            worker_idle,
            wake_on_results,
            servers,
            host: old.host.clone(),
            run,
            run_usd,
            budget,
            degraded,
            swap,
            subagents,
            defaults,
            liveness,
            kill,
            drain_timeout,
            reap_orphans_always: old.reap_orphans_always,
            log_level,
            sessions: old.sessions.clone(),
            store: Store { work, ..old.store },
            max_attempts,
            control: old.control.clone(),
        };
        old
    }

    /// Whether a worker that was begun before is not what one would be that is begun now, its model aside. What it logs is
    /// not worth the loss of what it remembers beyond the text of the conversation.
    fn outdates_worker(&self, old: &Config, servers_renewed: bool) -> bool {
        let new = &self.config;
        let servers = |config: &Config| config.servers.iter().map(Server::without_values).collect::<Vec<_>>();
        let delegates = |config: &Config| config.subagents.depth > 0;
        servers_renewed
            || old.instruction != new.instruction
            || old.run != new.run
            || old.run_usd != new.run_usd
            || delegates(old) != delegates(new)
            || servers(old) != servers(new)
    }

    /// A worker that is not what it should be is replaced between two turns; the new one is told what was said.
    fn renew_worker(&mut self, outdated: bool, out: &mut Actions) {
        // One that was handed nothing yet has what counts now.
        let handed = |node: NodeId| self.runs.get(&node).is_some_and(|run| run.payload.is_none());
        if !outdated || !self.conversation.worker.is_some_and(handed) {
            return;
        }
        self.conversation.outdated = true;
        if self.conversation.phase == Phase::Quiet {
            self.retire_worker(out);
        }
    }

    /// Runs that were admitted and not handed anything yet are handed what counts now: their connections. Their limits are
    /// those that they were admitted with.
    fn renew_payloads(&mut self, old: &Config) {
        let waiting = self.busy_with(|run| run.payload.is_some());
        for node in waiting {
            if self.is_worker(node) {
                self.gear_worker_anew(node);
            } else {
                self.connect_anew(node, old);
            }
        }
    }

    /// A subagent that was handed nothing yet.
    fn connect_anew(&mut self, node: NodeId, old: &Config) {
        let Some(run) = self.runs.get(&node) else { return };
        let Some(payload) = &run.payload else { return };
        // What is configured no more is what the run was granted.
        let renewed = |server: &Server| self.config.servers.iter().find(|new| new.name == server.name);
        let servers: Vec<Server> =
            payload.servers.iter().map(|server| renewed(server).unwrap_or(server).clone()).collect();
        let host = self.config.host.iter().filter(|group| run.servers.contains(&group.name));
        let names = self.names_of(&servers, host);
        let choice = self.successor(old, &run.model).filter(|choice| choice.unusable.is_none());
        let (model, price) = match choice {
            Some(choice) => (choice.model.clone(), choice.price),
            None => (payload.model.clone(), run.price),
        };
        let budget = self.call_budget(run.parent, &run.caps);
        let asks = budget.is_some();
        let cheaper = self.cheaper().filter(|_| asks);
        let log_level = self.config.log_level.clone();
        let Some(run) = self.run(node) else { return };
        run.endpoints = super::gear::endpoints(&model);
        run.take_calls(Calls { model: model.name.clone(), price, asks, cheaper });
        if let Some(payload) = &mut run.payload {
            (payload.servers, payload.names, payload.model) = (servers, names, model);
            (payload.budget, payload.log_level) = (budget, log_level);
        }
    }

    /// A worker that was handed nothing yet.
    fn gear_worker_anew(&mut self, node: NodeId) {
        let Some(run) = self.run(node).filter(|run| run.record.role == Role::Worker) else { return };
        let (Some(payload), place) = (run.payload.take(), run.transcript.clone()) else { return };
        let (text, attempt) = (payload.instruction.clone(), payload.attempt);
        let mut gear =
            self.worker_gear(&text, payload.run_id, payload.trace.clone(), place, payload.transcript.clone());
        gear.payload.attempt = attempt;
        gear.payload.context = payload.context.clone();
        if let Some(run) = self.run(node) {
            gear.equip(run);
        }
    }
}

fn names(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn draining() -> Refusal {
    Refusal {
        gate: "draining".into(),
        message: "draining: this daemon is stopping, so its configuration stays what it is".into(),
        limit: None,
        observed: None,
        hint: "the next start reads it".into(),
    }
}
