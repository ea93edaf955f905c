//! Who may ask: the credentials of a peer and the token of a request (S16.6).
//!
//! The core never sees a token. Whoever hands it the bytes of a connection has put a mark in place of each token that it
//! knows, of the same length, so that no journal holds one. A mark is made of bytes that no UTF-8 text has, and what a
//! client sends of such bytes is made harmless first, so a mark cannot be forged.

use crate::config::{Control, Principal};
use crate::event::{Door, Peer};
use crate::http::Request;

/// A token is `TOKEN_MARK`, its principal's place in [`Control::principals`] in decimal digits, and `TOKEN_MARK` again up
/// to the token's length.
pub const TOKEN_MARK: u8 = 0xfe;

/// Why somebody may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Denied {
    /// 401 or 403.
    pub status: u16,
    /// For the log and for labels.
    pub word: &'static str,
    /// What was seen and what would make it work.
    pub reason: &'static str,
}

const SUPERVISED: Denied = Denied {
    status: 403,
    word: "supervised",
    reason: "a process below this agentd cannot be its operator, with a token or without",
};

const STRANGER: Denied = Denied {
    status: 403,
    word: "uid",
    reason: "only the user that agentd runs as, and root, are its operators here; others use TCP and a token",
};

const NO_ANCESTRY: Denied = Denied {
    status: 403,
    word: "ancestry",
    reason: "it cannot be told whether this process is one of agentd's own; the connection's maker must live as it is made",
};

const NO_TOKEN: Denied = Denied {
    status: 401,
    word: "token",
    reason: "a token is needed: `Authorization: Bearer TOKEN`, on the control socket the one in control.token in the state \
             directory, on TCP that of one of a2a.principals",
};

const WRONG_TOKEN: Denied = Denied {
    status: 401,
    word: "token",
    reason: "the token is not known here; that of the control socket changes with every start of agentd and is in control.token \
             in the state directory",
};

/// Whether a peer may be here at all, before it has said anything.
///
/// # Errors
/// Why not.
pub fn peer(door: Door, peer: &Peer) -> Result<(), Denied> {
    match (door, peer) {
        (Door::Control, Peer::Local { uid, own_uid, .. }) if uid != own_uid && *uid != 0 => Err(STRANGER),
        (Door::Control, Peer::Local { supervised: Some(false), .. }) => Ok(()),
        (Door::Control, Peer::Local { supervised: Some(true), .. }) => Err(SUPERVISED),
        (Door::Control, Peer::Local { supervised: None, .. } | Peer::Remote { .. }) => Err(NO_ANCESTRY),
        (Door::Tcp | Door::Metrics, _) => Ok(()),
    }
}

/// Whose request this is.
///
/// # Errors
/// It has no token, or not one that counts at this door.
pub fn principal<'a>(door: Door, request: &Request, control: &'a Control) -> Result<&'a Principal, Denied> {
    let Some(value) = request.header("authorization") else { return Err(NO_TOKEN) };
    let (scheme, token) = value.split_at(value.iter().position(|byte| *byte == b' ').unwrap_or(value.len()));
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        return Err(NO_TOKEN);
    }
    let place = marked(token.trim_ascii()).ok_or(WRONG_TOKEN)?;
    let counts = match door {
        Door::Control => place == 0,
        Door::Tcp => place > 0,
        Door::Metrics => false,
    };
    control.principals.get(place).filter(|_| counts).ok_or(WRONG_TOKEN)
}

/// The place that a mark names.
fn marked(token: &[u8]) -> Option<usize> {
    let rest = token.strip_prefix(&[TOKEN_MARK])?;
    let end = rest.iter().position(|byte| *byte == TOKEN_MARK)?;
    let (digits, tail) = rest.split_at(end);
    let whole = digits.iter().all(u8::is_ascii_digit) && tail.iter().all(|byte| *byte == TOKEN_MARK);
    whole.then(|| std::str::from_utf8(digits).ok()?.parse().ok())?
}
