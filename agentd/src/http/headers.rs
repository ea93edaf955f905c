//! Headers of a request, checked here so that an error names the header and never shows its value.

use super::dial::{Failure, Kind};
use agentd_core::preview::preview;
use ureq::http::{HeaderMap, HeaderName, HeaderValue};

/// Puts headers in, each in place of one of the same name.
pub(crate) fn put<'a>(
    map: &mut HeaderMap,
    headers: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Result<(), Failure> {
    let rejected = |message| Failure::unsent(Kind::Rejected, message);
    for (name, value) in headers {
        let shown = preview(name, 80);
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| rejected(format!("`{shown}` is no name that a header can have")))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| {
            rejected(format!(
                "the value of the header `{shown}` has a character that no header can have (a line end, perhaps)"
            ))
        })?;
        value.set_sensitive(true);
        map.insert(name, value);
    }
    Ok(())
}
