//! Reloading, as far as it is not the core's (S10.8): the same files, variables and flags as at the start are read again on
//! a thread, and what surrounds the core takes its part at the moment the core says so.
//!
//! Owns what is in use, as far as it takes that to say what has changed, and what was read and is not in use yet. Refuses to
//! decide: whether a configuration is used is the core's. `begin` and `end` are where anybody else can learn that a
//! reload is in hand. Called by what surrounds the reactor.

use crate::config::{self, Effective, LogFormat, Problem, Settings, Sources};
use crate::secrets::Secrets;
use agentd_core::config::{Config, Reloaded};
use agentd_core::event::Event;
use agentd_core::note::Level;
use agentd_core::wire::message::{Model, Server};
use agentd_host::mailbox::Poster;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What a daemon's configuration is read from, and what of it is in use.
#[derive(Debug)]
pub(crate) struct Reload {
    sources: Arc<Sources>,
    in_use: Arc<InUse>,
    /// What was read last, until it is in use or dropped.
    read: Arc<Mutex<Option<Read>>>,
}

/// The part of a configuration that is looked back at.
#[derive(Debug)]
struct InUse {
    effective: Effective,
    prints: Prints,
}

/// A configuration that was read again.
#[derive(Debug)]
struct Read {
    in_use: InUse,
    around: Around,
}

/// What surrounds the core and follows it.
#[derive(Debug)]
pub(crate) struct Around {
    /// Where values of references come from.
    pub(crate) secrets: Secrets,
    /// What is logged.
    pub(crate) log_level: Level,
    /// How, where the configuration says.
    pub(crate) log_format: Option<LogFormat>,
    /// What is wrong with it and keeps nobody from using it.
    pub(crate) warnings: Vec<Problem>,
    /// `lifecycle.drain_timeout`.
    pub(crate) drain_timeout: Duration,
}

/// Stands for each connection with the values of its secrets, and tells nothing of them: the key of the hash is the
/// process's own and leaves it nowhere.
#[derive(Debug, Clone)]
struct Prints {
    key: RandomState,
    models: BTreeMap<String, u64>,
    servers: BTreeMap<String, u64>,
}

impl Reload {
    /// Of a daemon that has begun with this configuration. Where no file was named, the one that was found is the one that
    /// is read again.
    pub(crate) fn new(
        mut sources: Sources,
        config: &Config,
        settings: &Settings,
        effective: Effective,
    ) -> Reload {
        if sources.files.is_empty() {
            sources.files.clone_from(&settings.files);
        }
        let prints = Prints::of(RandomState::new(), config, &settings.secrets);
        Reload {
            sources: Arc::new(sources),
            in_use: Arc::new(InUse { effective, prints }),
            read: Arc::default(),
        }
    }

    /// A reload begins: reads everything again on a thread, which posts what comes of it.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(crate) fn begin(&self, poster: Poster) -> Result<(), String> {
        let (sources, in_use, read) =
            (Arc::clone(&self.sources), Arc::clone(&self.in_use), Arc::clone(&self.read));
        let body = move || {
            let event = match load(&sources, &in_use) {
                Ok((reloaded, new)) => {
                    *read.lock().unwrap_or_else(PoisonError::into_inner) = Some(new);
                    Event::ConfigReady(Box::new(reloaded))
                }
                Err((problems, text)) => Event::ConfigRefused { problems, text },
            };
            poster.post_when_taken(event);
        };
        let started = thread::Builder::new().name("agentd:reload".into()).spawn(body);
        started.map(drop).map_err(|error| {
            format!("there is no thread to read it on: {error}; raise the limit on processes")
        })
    }

    /// The reload is over. What surrounds the core takes from now on, where the core uses what was read.
    pub(crate) fn end(&mut self, used: bool) -> Option<Around> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Read { in_use, around } = read.filter(|_| used)?;
        self.in_use = Arc::new(in_use);
        Some(around)
    }
}

/// Reads everything again; else how much is wrong with it, and what.
fn load(sources: &Sources, in_use: &InUse) -> Result<(Reloaded, Read), (u64, String)> {
    let loaded = config::load(sources).map_err(|problems| {
        let errors = problems.iter().filter(|problem| problem.severity == config::Severity::Error).count();
        (u64::try_from(errors).unwrap_or(u64::MAX), config::render(&problems))
    })?;
    let config::Loaded { config, settings, warnings, effective: new } = loaded;
    let (live, restart) = config::changes(&in_use.effective, &new);
    let prints = Prints::of(in_use.prints.key.clone(), &config, &settings.secrets);
    let drain_timeout = config.drain_timeout;
    let reloaded = Reloaded {
        config,
        applied: live.iter().cloned().collect(),
        restart_needed: restart.into_iter().collect(),
        models: differing(&in_use.prints.models, &prints.models),
        servers: differing(&in_use.prints.servers, &prints.servers),
    };
    // A key that needs a restart stays what it was, and is told again by the next reload.
    let mut effective = in_use.effective.clone();
    effective.take(&live, &new);
    let Settings { secrets, log_level, log_format, .. } = settings;
    let around = Around { secrets, log_level, log_format, warnings, drain_timeout };
    Ok((reloaded, Read { in_use: InUse { effective, prints }, around }))
}

/// Names of which the two are not the same.
fn differing(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> BTreeSet<String> {
    let names = before.keys().chain(after.keys());
    names.filter(|name| before.get(*name) != after.get(*name)).cloned().collect()
}

impl Prints {
    fn of(key: RandomState, config: &Config, secrets: &Secrets) -> Prints {
        let models = config.models.values().chain([&config.model]).chain(&config.degraded);
        let model = |model: &Model| {
            let mut model = model.clone();
            // One whose secret is gone differs from one whose secret is there.
            let fault = model.dialect.remote_mut().and_then(|remote| secrets.put_in_remote(remote).err());
            key.hash_one(format!("{model:?} {}", fault.is_some()))
        };
        let server = |server: &Server| {
            let mut server = server.clone();
            let fault = secrets.put_in_server(&mut server).err();
            key.hash_one(format!("{server:?} {}", fault.is_some()))
        };
        let models = models.map(|choice| (choice.model.name.clone(), model(&choice.model))).collect();
        let servers = config.servers.iter().map(|one| (one.name.clone(), server(one))).collect();
        Prints { key, models, servers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    const SERVER: &str = "mcp: {servers: [{name: s, command: sh, env: {A: '{{secret-file:key}}'}}]}\n";

    fn write(folder: &Path, text: &str) {
        let base = "intelligence: {dialect: mock, endpoints: [playbook.yaml]}\n";
        fs::write(folder.join("agentd.yaml"), format!("{base}{text}")).expect("written");
    }

    fn begun(folder: &Path) -> Reload {
        fs::write(folder.join("playbook.yaml"), "rules: [{reply: {text: hi}}]\n").expect("written");
        fs::write(folder.join("key"), "one\n").expect("written");
        write(folder, SERVER);
        let sources = Sources { here: folder.to_owned(), ..Sources::default() };
        let config::Loaded { config, settings, effective, .. } = config::load(&sources).expect("it loads");
        Reload::new(sources, &config, &settings, effective)
    }

    fn names(set: &BTreeSet<String>) -> Vec<&str> {
        set.iter().map(String::as_str).collect()
    }

    #[test]
    fn a_value_that_was_rotated_is_told_by_the_name_of_its_connection_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let reload = begun(folder.path());
        let (same, _) = load(&reload.sources, &reload.in_use).expect("it loads");
        assert!(same.applied.is_empty() && same.models.is_empty() && same.servers.is_empty());
        fs::write(folder.path().join("key"), "two\n").expect("written");
        let (rotated, read) = load(&reload.sources, &reload.in_use).expect("it loads");
        assert_eq!((names(&rotated.servers), names(&rotated.models)), (vec!["s"], vec![]));
        assert!(rotated.applied.is_empty(), "no key has changed");
        let told = format!("{rotated:?}{read:?}");
        assert!(!told.contains("two"), "{told}");
        fs::write(folder.path().join("playbook.yaml"), "rules: [{reply: {text: ho}}]\n").expect("written");
        let (other, _) = load(&reload.sources, &read.in_use).expect("it loads");
        assert_eq!((names(&other.servers), names(&other.models)), (vec![], vec!["mock"]));
    }

    #[test]
    fn what_is_read_counts_only_once_it_is_in_use() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut reload = begun(folder.path());
        write(folder.path(), "observability: {log_level: debug}\nstore: {kind: memory}\n");
        let both: &[&str] = &["mcp.servers", "observability.log_level"];
        // Dropped, then used, then read once more.
        for (used, applied) in [(false, both), (true, both), (true, &[])] {
            let (reloaded, read) = load(&reload.sources, &reload.in_use).expect("it loads");
            assert_eq!(
                (reloaded.applied.as_slice(), reloaded.restart_needed.as_slice()),
                (
                    applied.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>().as_slice(),
                    ["store.kind".to_owned()].as_slice(),
                )
            );
            *reload.read.lock().expect("whole") = Some(read);
            assert_eq!(reload.end(used).is_some_and(|around| around.log_level == Level::Debug), used);
        }
        assert!(reload.end(true).is_none(), "each is taken once");
    }

    #[test]
    fn mistakes_are_counted_and_placed() {
        let folder = tempfile::tempdir().expect("a folder");
        let reload = begun(folder.path());
        write(folder.path(), "limits: {subagents: {breadth: 0, dept: 1}}\n");
        let (problems, text) = load(&reload.sources, &reload.in_use).expect_err("two mistakes");
        assert_eq!(problems, 2);
        assert!(text.contains("agentd.yaml:2:") && text.contains("breadth"), "{text}");
    }
}
