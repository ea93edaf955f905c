//! The one name each server tool has (S14.4): `<ns>.<tool>`, else `<tool>`; where names collide,
//! `<server>.<tool>` for all of them.
//!
//! Owns the rule and nothing else: it holds no state, so the supervisor and a child that see the same servers
//! give the same names. A name once given (`known`) stands, whatever turns up later. It refuses names that no
//! grant could spell. Called by the supervisor when a worker has reported a server's tools, and by the child
//! when its servers are connected.

use crate::policy::grant::{Pattern, SEEN_BYTES};
use crate::preview::preview;
use crate::wire::message::{Server, ToolName};
use std::collections::{BTreeMap, BTreeSet};

/// Names that belong to the supervisor's own tools, in every agent and whether or not a run is offered them:
/// a server's tool never takes one.
const RESERVED: [&str; 6] =
    ["status", "finish", "delegate", "manage_work", "handoff_artifact", "deliver_artifact"];

/// Namespaces of the supervisor's own tools.
const RESERVED_NAMESPACES: [&str; 2] = ["subagent.", "plan."];

/// What [`names`] found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names {
    /// One entry a tool, servers in the order given, tools in the server's order.
    pub names: Vec<ToolName>,
    /// A sentence for each name that several tools wanted, for the log.
    pub collisions: Vec<String>,
    /// A sentence for each tool that has no usable name and is not offered, for the log.
    pub unusable: Vec<String>,
}

impl Names {
    /// The tool of a registry name.
    pub fn find(&self, name: &str) -> Option<&ToolName> {
        self.names.iter().find(|n| n.name == name)
    }
}

/// Names every tool in `offered` (a server's own names, by server) that its server's settings let through.
/// Servers that are not in `servers` are not looked at.
pub fn names(servers: &[Server], offered: &BTreeMap<String, Vec<String>>, known: &[ToolName]) -> Names {
    let mut result = Names::default();
    let mut candidates = candidates(servers, offered, known, &mut result.unusable);
    qualify_collisions(&mut candidates, known, &mut result.collisions);
    number_what_is_left(&mut candidates, known, &mut result.collisions);
    result.names = candidates
        .into_iter()
        .map(|c| ToolName { server: c.server.to_owned(), tool: c.tool.to_owned(), name: c.name })
        .collect();
    result
}

/// Whether the server's `allow` and `exclude` let its tool through; `exclude` wins. A list that cannot be read
/// lets nothing through.
pub fn server_allows(server: &Server, tool: &str) -> bool {
    let allowed = match &server.allow {
        None => true,
        Some(patterns) => any_match(patterns, tool).unwrap_or(false),
    };
    allowed && !any_match(&server.exclude, tool).unwrap_or(true)
}

/// `None` when an entry cannot be read.
fn any_match(patterns: &[String], tool: &str) -> Option<bool> {
    let read: Option<Vec<Pattern>> = patterns.iter().map(|p| Pattern::parse(p).ok()).collect();
    read.map(|patterns| patterns.iter().any(|p| p.matches(tool)))
}

struct Candidate<'a> {
    server: &'a str,
    tool: &'a str,
    name: String,
    /// Known before: nothing changes it.
    fixed: bool,
}

impl Candidate<'_> {
    fn qualified(&self) -> String {
        format!("{}.{}", self.server, self.tool)
    }
}

fn candidates<'a>(
    servers: &'a [Server],
    offered: &'a BTreeMap<String, Vec<String>>,
    known: &[ToolName],
    unusable: &mut Vec<String>,
) -> Vec<Candidate<'a>> {
    let known: BTreeMap<(&str, &str), &str> =
        known.iter().map(|k| ((k.server.as_str(), k.tool.as_str()), k.name.as_str())).collect();
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for server in servers {
        for tool in offered.get(&server.name).map(Vec::as_slice).unwrap_or_default() {
            if !seen.insert((server.name.as_str(), tool.as_str())) || !server_allows(server, tool) {
                continue;
            }
            let given = known.get(&(server.name.as_str(), tool.as_str()));
            let name = match (given, &server.ns) {
                (Some(name), _) => (*name).to_owned(),
                (None, Some(ns)) => format!("{ns}.{tool}"),
                (None, None) => tool.clone(),
            };
            let candidate = Candidate { server: &server.name, tool, name, fixed: given.is_some() };
            if is_name(&candidate.name) && is_name(&candidate.qualified()) {
                found.push(candidate);
            } else {
                unusable.push(format!(
                    "server {}: its tool `{}` is not offered: a name has 1 to 256 characters, no `*`, no white \
                     space and no control characters",
                    server.name,
                    preview(tool, SEEN_BYTES)
                ));
            }
        }
    }
    found
}

/// Whether a grant could spell it exactly.
fn is_name(name: &str) -> bool {
    Pattern::parse(name).is_ok_and(|p| p.is_exact())
}

/// Names that the candidates must keep clear of: those given before and the supervisor's own.
fn is_taken(name: &str, known: &BTreeSet<&str>) -> bool {
    known.contains(name)
        || RESERVED.contains(&name)
        || RESERVED_NAMESPACES.iter().any(|prefix| name.starts_with(prefix))
}

/// Turns every colliding name into `<server>.<tool>`. A qualified name can collide with a plain one, so this
/// goes on until nothing changes; every round qualifies at least one more candidate.
fn qualify_collisions(candidates: &mut [Candidate<'_>], known: &[ToolName], collisions: &mut Vec<String>) {
    let known: BTreeSet<&str> = known.iter().map(|k| k.name.as_str()).collect();
    loop {
        let mut wanted: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, candidate) in candidates.iter().enumerate().filter(|(_, c)| !c.fixed) {
            wanted.entry(candidate.name.clone()).or_default().push(index);
        }
        let mut changed = false;
        for (name, indices) in wanted {
            if indices.len() < 2 && !is_taken(&name, &known) {
                continue;
            }
            let mut moved = Vec::new();
            for index in indices {
                let qualified = candidates[index].qualified();
                if candidates[index].name != qualified {
                    candidates[index].name.clone_from(&qualified);
                    moved.push(qualified);
                }
            }
            if !moved.is_empty() {
                changed = true;
                collisions
                    .push(format!("the tool name {name} is wanted more than once: now {}", moved.join(", ")));
            }
        }
        if !changed {
            return;
        }
    }
}

/// Two qualified names can still be the same text (`a` + `b.c`, `a.b` + `c`): the later ones get a number.
fn number_what_is_left(candidates: &mut [Candidate<'_>], known: &[ToolName], collisions: &mut Vec<String>) {
    let known: BTreeSet<&str> = known.iter().map(|k| k.name.as_str()).collect();
    let mut given: BTreeSet<String> = BTreeSet::new();
    // Only names that nobody else asked for are free to be made up.
    let asked: BTreeSet<String> = candidates.iter().map(|c| c.name.clone()).collect();
    for candidate in candidates.iter_mut().filter(|c| !c.fixed) {
        if !is_taken(&candidate.name, &known) && given.insert(candidate.name.clone()) {
            continue;
        }
        let base = candidate.name.clone();
        let free = (2u64..)
            .map(|n| numbered(&base, candidate, n))
            .find(|name| !is_taken(name, &known) && !given.contains(name) && !asked.contains(name));
        if let Some(name) = free {
            collisions.push(format!("the tool name {base} is wanted more than once: now {name}"));
            given.insert(name.clone());
            candidate.name = name;
        }
    }
}

/// `base_<n>`; a name in a namespace of the supervisor's leaves that first.
fn numbered(base: &str, candidate: &Candidate<'_>, n: u64) -> String {
    if RESERVED_NAMESPACES.iter().any(|prefix| base.starts_with(prefix)) {
        format!("{}_{n}.{}", candidate.server, candidate.tool)
    } else {
        format!("{base}_{n}")
    }
}

#[cfg(test)]
mod tests;
