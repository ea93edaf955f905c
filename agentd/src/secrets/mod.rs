//! Secrets: what a reference stands for (S16.3), and putting the values into a child's first frame (S3.7).
//!
//! Owns the places that are looked at: the folder of systemd credentials, the variables this process began with,
//! files. Values live only in the frame that is being made: they are looked up anew each time, so that a rotated
//! file counts from the next spawn on, and are in no message, log or journal. Refuses what could not be sent as it
//! is. Called by the configuration's load, which looks everything up once, and by whoever encodes a spawn.

mod file;
mod frame;
pub(crate) mod reference;

pub use reference::Malformed;

use reference::Part;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Where systemd says it has put a service's credentials.
pub(crate) const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// Where secrets are looked up.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    credentials: Option<PathBuf>,
    variables: BTreeMap<OsString, OsString>,
}

/// What a value is for, which decides what it can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// A header of a request: one line of visible characters.
    Header,
    /// A variable of a process: anything without a NUL.
    Variable,
}

/// Why a reference has no value. Says where was looked, never what was found.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// It is not spelled as one.
    #[error("{0}")]
    Malformed(#[from] Malformed),
    /// Nowhere.
    #[error("the secret {name} is not there: looked for {looked}")]
    NotThere {
        /// Of the reference.
        name: String,
        /// The places.
        looked: String,
    },
    /// The system's answer.
    #[error("{what} cannot be read: {error}")]
    Unreadable {
        /// Where it should be.
        what: String,
        /// Why not.
        error: io::Error,
    },
    /// A value that cannot be what it is to be.
    #[error("{what} {fault}")]
    Unfit {
        /// Where it was found.
        what: String,
        /// What is wrong with it.
        fault: &'static str,
    },
}

impl Secrets {
    /// Secrets of a process with this environment.
    pub fn new(environment: &[(OsString, OsString)]) -> Secrets {
        let variables: BTreeMap<OsString, OsString> = environment.iter().cloned().collect();
        let credentials = variables.get(OsStr::new(CREDENTIALS)).map(PathBuf::from);
        Secrets { credentials: credentials.filter(|folder| folder.is_absolute()), variables }
    }

    /// Whether a variable is set, and to something.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.variables.get(OsStr::new(name)).is_some_and(|value| !value.is_empty())
    }

    /// The value of a variable that is no secret.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// The names of all variables that are text.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().filter_map(|name| name.to_str())
    }

    /// `text` with the values of its references.
    pub fn fill(&self, text: &str, used: Use) -> Result<String, SecretError> {
        let mut filled = String::new();
        for part in reference::parts(text)? {
            filled.push_str(&self.value(part, used)?);
        }
        Ok(filled)
    }

    /// Why `text` cannot be filled: every reference in it that has no value.
    pub(crate) fn faults(&self, text: &str, used: Use) -> Vec<SecretError> {
        let parts = match reference::parts(text) {
            Ok(parts) => parts,
            Err(fault) => return vec![fault.into()],
        };
        parts.into_iter().filter_map(|part| self.value(part, used).err()).collect()
    }

    fn value<'t>(&self, part: Part<'t>, used: Use) -> Result<Cow<'t, str>, SecretError> {
        match part {
            Part::Text(text) => Ok(text.into()),
            Part::Name(name) => self.named(name, used).map(Cow::from),
            Part::File(path) => self.of_file(Path::new(path), "file", used).map(Cow::from),
        }
    }

    /// The credential of this name, else the variable.
    fn named(&self, name: &str, used: Use) -> Result<String, SecretError> {
        let credential = self.credentials.as_ref().map(|folder| folder.join(name));
        if let Some(path) = &credential {
            match self.of_file(path, "credential", used) {
                Err(SecretError::Unreadable { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
                other => return other,
            }
        }
        let what = format!("the variable {name}");
        let Some(value) = self.variable(name) else {
            let looked = match &credential {
                Some(path) => format!("the credential {} and {what}", file::shown(path)),
                None => what,
            };
            return Err(SecretError::NotThere { name: name.to_owned(), looked });
        };
        match value.to_str() {
            Some(value) => fit(value.to_owned(), what, used),
            None => Err(SecretError::Unfit { what, fault: "is not UTF-8" }),
        }
    }

    fn of_file(&self, path: &Path, kind: &str, used: Use) -> Result<String, SecretError> {
        let what = format!("the {kind} {}", file::shown(path));
        let bytes = match file::read(path) {
            Ok(bytes) => bytes,
            Err(file::Fault::System(error)) => return Err(SecretError::Unreadable { what, error }),
            Err(file::Fault::Unfit(fault)) => return Err(SecretError::Unfit { what, fault }),
        };
        match String::from_utf8(bytes) {
            Ok(value) => fit(without_line_end(value), what, used),
            Err(_) => Err(SecretError::Unfit { what, fault: "is not UTF-8" }),
        }
    }
}

impl fmt::Debug for Secrets {
    /// Without any value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("credentials", &self.credentials).finish_non_exhaustive()
    }
}

/// What cannot be in a header's value; `None` when it can be one.
pub(crate) fn header_fault(value: &str) -> Option<&'static str> {
    if value.contains(['\n', '\r']) {
        Some("has a line break in it, which no header can carry")
    } else if value.contains(|c: char| c.is_control() && c != '\t') {
        Some("has a control character in it, which no header can carry")
    } else if !value.is_ascii() {
        Some(
            "has a character beyond ASCII in it, which no header can carry (a quote or dash of a word processor?)",
        )
    } else {
        None
    }
}

fn fit(value: String, what: String, used: Use) -> Result<String, SecretError> {
    let fault = if value.is_empty() {
        Some("is empty")
    } else if value.contains('\0') {
        Some("has a NUL character in it")
    } else {
        match used {
            Use::Header if value.trim().is_empty() => Some("holds nothing but blanks"),
            Use::Header => header_fault(&value),
            Use::Variable => None,
        }
    };
    match fault {
        Some(fault) => Err(SecretError::Unfit { what, fault }),
        None => Ok(value),
    }
}

/// Editors and `echo` end a file with a line break that is not part of the secret; one is taken off.
fn without_line_end(mut value: String) -> String {
    if value.ends_with('\n') {
        value.pop();
        if value.ends_with('\r') {
            value.pop();
        }
    }
    value
}

#[cfg(test)]
mod tests;
