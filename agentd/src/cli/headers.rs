//! `--header 'NAME: VALUE'`, of every command that has it.

use crate::secrets::{Secrets, Use};
use std::collections::BTreeMap;

/// What the flags give. Values may refer to secrets, which a command line should not hold.
///
/// # Errors
/// One is no header, or its secret is not there.
pub(super) fn read(given: &[String]) -> Result<BTreeMap<String, String>, String> {
    let secrets = Secrets::new(&std::env::vars_os().collect::<Vec<_>>());
    let mut headers = BTreeMap::new();
    for header in given {
        let (name, value) = header.split_once(':').ok_or("--header takes 'NAME: VALUE'")?;
        let name = name.trim();
        let value =
            secrets.fill(value.trim(), Use::Header).map_err(|error| format!("--header {name}: {error}"))?;
        headers.insert(name.to_owned(), value);
    }
    Ok(headers)
}
