//! `glob`, and the pattern by which `grep` chooses files.

use super::params::Args;
use super::report::{Budget, Failure};
use super::root::bytes;
use super::rpc::Server;
use super::walk::walk;
use globset::{GlobBuilder, GlobMatcher};
use serde_json::{Value, json};
use std::path::Path;

/// Paths of one result; the rest is counted.
const PATHS: usize = 1_000;

/// A pattern over files below a folder.
#[derive(Debug)]
pub(super) struct Filter {
    matcher: GlobMatcher,
    /// The pattern has a `/`: it is about the whole path.
    whole_path: bool,
}

impl Filter {
    /// Reads a pattern.
    pub(super) fn parse(pattern: &str) -> Result<Filter, Failure> {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let glob = GlobBuilder::new(pattern).literal_separator(true).build().map_err(|e| {
            Failure::new(format!(
                "{pattern:?} is not a glob pattern: {}; such are *.rs, src/**/*.rs, {{a,b}}.txt",
                e.kind()
            ))
        })?;
        Ok(Filter { matcher: glob.compile_matcher(), whole_path: pattern.contains('/') })
    }

    /// Whether the file at `path`, relative to the folder that is searched, is chosen.
    pub(super) fn chooses(&self, path: &Path) -> bool {
        if self.whole_path {
            self.matcher.is_match(path)
        } else {
            path.file_name().is_some_and(|name| self.matcher.is_match(Path::new(name)))
        }
    }
}

/// Files below a folder whose name or path matches.
pub(super) fn glob(server: &mut Server, args: &Args) -> Result<Value, Failure> {
    let filter = Filter::parse(args.text("pattern"))?;
    let (dir, place) = server.root.folder(args.text("path"))?;
    let base = place.path();
    let (mut budget, mut paths, mut total) = (Budget::new(), Vec::new(), 0_u64);
    let unreadable = walk(dir, &base, &mut |file| {
        if filter.chooses(file.path) {
            total += 1;
            let path = below(&base, file.path);
            if paths.len() < PATHS && budget.take(&path) {
                paths.push(path);
            }
        }
        Ok(())
    })?;
    let truncated = (paths.len() as u64) < total;
    Ok(json!({"paths": paths, "total": total, "truncated": truncated, "unreadable_folders": unreadable}))
}

/// A walked file's path from the root, as tools print it.
pub(super) fn below(base: &Path, path: &Path) -> String {
    let whole = if bytes(base.as_os_str()) == b"." { path.to_owned() } else { base.join(path) };
    whole.to_string_lossy().into_owned()
}
