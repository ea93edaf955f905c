//! The environment a process of ours begins with: the baseline of S3.3 and nothing that happens to be set.
//!
//! Owns the list. Refuses every other name, secrets included. Called by whoever makes a child, by a child for
//! its keepers and by a keeper for its server.

pub use agentd_host::marker::{FILES, KEEPER, NAME, PARENT_PID, SUBAGENT};
use std::ffi::{OsStr, OsString};

const NAMES: [&str; 9] =
    ["PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "RUST_LOG"];

const PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// In capitals or in small letters.
const PROXIES: [&str; 4] = ["NO_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];

/// The baseline's part of this process's environment.
pub fn baseline() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| is_baseline(name))
}

/// Whether a variable of this name belongs to the baseline.
pub fn is_baseline(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    NAMES.contains(&name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || PROXIES.iter().any(|proxy| name == *proxy || name == proxy.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baseline_is_the_list_and_no_neighbour_of_it() {
        for name in ["PATH", "LC_ALL", "XDG_CONFIG_HOME", "https_proxy", "ALL_PROXY", "RUST_LOG"] {
            assert!(is_baseline(OsStr::new(name)), "{name}");
        }
        for name in [
            "",
            "path",
            "LCX",
            "Https_Proxy",
            "HOME_",
            "AGENTD_SUBAGENT",
            "AWS_SECRET_ACCESS_KEY",
            "LD_PRELOAD",
        ] {
            assert!(!is_baseline(OsStr::new(name)), "{name}");
        }
    }
}
