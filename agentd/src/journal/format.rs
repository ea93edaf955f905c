//! The file's format: one line that names it, then records: four bytes of length, big-endian, and so many bytes
//! of CBOR. The first record of every file is its [`Header`], each other one a `Traced`. The format only ever
//! gains optional keys and event variants; anything else is another version.

use agentd_core::config::Config;
use agentd_core::time::{Now, Wall};
use agentd_core::wire::message::{Dialect, Transport};
use serde::{Deserialize, Serialize};

/// The first line of a journal; the number is the format's version.
pub(super) const MAGIC: &[u8] = b"agentd journal 1\n";

/// What every version's first line begins with.
pub(super) const MAGIC_OF_ANY_VERSION: &[u8] = b"agentd journal ";

/// Bytes of one record at most; a longer length is damage.
pub(super) const RECORD_BYTES: u32 = 64 * 1024 * 1024;

/// What stands in for the value of a server's variable, a model's key or header. References are left out with the
/// rest: an embedder may have put values in their place.
const LEFT_OUT: &str = "(not recorded)";

/// The first record of a file: what a replay starts from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the agentd that wrote it.
    pub agentd: String,
    /// When the journal began: `Core::new`'s clocks.
    pub began: Now,
    /// Which file of the journal this is, from 0. A replay needs number 0 and every one after it.
    pub segment: u64,
    /// The core's configuration, without the values of servers' variables, of keys and of headers.
    pub config: Config,
}

impl Header {
    /// The header of a journal's first file.
    pub(super) fn new(config: &Config, now: Now) -> Header {
        let mut config = config.clone();
        for server in &mut config.servers {
            match &mut server.transport {
                Transport::Stdio(stdio) => {
                    stdio.env.values_mut().for_each(|value| LEFT_OUT.clone_into(value));
                }
                Transport::Files(_) => {}
            }
        }
        for choice in config.models.values_mut().chain([&mut config.model]) {
            match &mut choice.model.dialect {
                Dialect::Mock(_) => {}
                Dialect::Openai(remote) | Dialect::Anthropic(remote) => {
                    let tokens = remote.endpoints.iter_mut().filter_map(|endpoint| endpoint.token.as_mut());
                    tokens.chain(remote.headers.values_mut()).for_each(|value| LEFT_OUT.clone_into(value));
                }
            }
        }
        Header { agentd: env!("CARGO_PKG_VERSION").to_owned(), began: now, segment: 0, config }
    }

    /// When the journal began, for people.
    pub fn began(&self) -> Wall {
        self.began.wall
    }
}

/// Appends a record.
pub(super) fn encode(record: &impl Serialize, out: &mut Vec<u8>) -> Result<(), String> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    ciborium::into_writer(record, &mut *out).map_err(|error| error.to_string())?;
    let length = u32::try_from(out.len() - start - 4).ok().filter(|length| *length <= RECORD_BYTES);
    let length = length.ok_or("the record is larger than 64 MiB")?;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}
