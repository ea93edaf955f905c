//! Who is at the other end of a connection.
//!
//! For a local peer: its credentials as they were when it connected, and whether this process is among its ancestors. The
//! pidfd of the peer, where the kernel gives one (6.5), pins its number: without it a process that connects and ends could
//! pass for whoever gets its pid next.

use crate::process::Pid;
use crate::tree::stat;
use agentd_core::event::Peer;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{SocketAddrAny, getpeername};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

/// Generations that are looked at; nobody has more.
const GENERATIONS: usize = 4_096;

/// Who connected.
pub(super) fn of(socket: &OwnedFd) -> Peer {
    let remote = |address: Option<SocketAddrAny>| match address.map(std::net::SocketAddr::try_from) {
        Some(Ok(address)) => Some(Peer::Remote { address: address.to_string() }),
        Some(Err(_)) | None => None,
    };
    if let Some(peer) = remote(getpeername(socket).ok().flatten()) {
        return peer;
    }
    let own_uid = rustix::process::geteuid().as_raw();
    match socket_peercred(socket) {
        Ok(credentials) => {
            let pid = Pid::new(credentials.pid.as_raw_nonzero().get());
            let supervised = pid.and_then(|pid| supervised(socket, pid));
            let pid = credentials.pid.as_raw_nonzero().get().unsigned_abs();
            Peer::Local { uid: credentials.uid.as_raw(), own_uid, pid, supervised }
        }
        // Without credentials it is nobody.
        Err(_) => Peer::Local { uid: u32::MAX, own_uid, pid: 0, supervised: None },
    }
}

/// Whether this process is among the ancestors of `pid`; `None` when that cannot be told.
fn supervised(socket: &OwnedFd, pid: Pid) -> Option<bool> {
    let own = Pid::own();
    let pin = pidfd(socket);
    let mut at = pid;
    let mut found = None;
    for _ in 0..GENERATIONS {
        if at == own {
            found = Some(true);
            break;
        }
        match stat(at).ok()?.map(|stat| stat.parent) {
            Some(Some(parent)) => at = parent,
            // The first process of this namespace, or one whose parent is outside it.
            Some(None) => {
                found = Some(false);
                break;
            }
            None => return None,
        }
    }
    // Whatever was read was of this peer only if it still lives, as a process and not as a zombie.
    match pin {
        Some(pin) => is_alive(&pin).then_some(found)?,
        None => found,
    }
}

fn is_alive(pidfd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(rustix::io::retry_on_intr(|| poll(&mut fds, Some(&now))), Ok(0))
}

/// `SO_PEERPIDFD`; `None` from a kernel that has none, or of a peer that is reaped.
#[allow(unsafe_code)]
fn pidfd(socket: &OwnedFd) -> Option<OwnedFd> {
    use nix::libc;
    use std::os::fd::AsRawFd;
    const SO_PEERPIDFD: libc::c_int = 77;
    let mut fd: libc::c_int = -1;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    let into = std::ptr::from_mut(&mut fd).cast::<libc::c_void>();
    // SAFETY: `into` points to `length` bytes that live for the call, and the kernel writes a descriptor or nothing.
    let done = unsafe {
        libc::getsockopt(socket.as_fd().as_raw_fd(), libc::SOL_SOCKET, SO_PEERPIDFD, into, &mut length)
    };
    if done != 0 || fd < 0 {
        return None;
    }
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    #[test]
    fn a_peer_that_is_this_very_process_counts_as_below_it() {
        let (ours, _theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("a pair");
        let Peer::Local { uid, own_uid, pid, supervised } = of(&ours) else { panic!("a local peer") };
        assert_eq!((uid, pid, supervised), (own_uid, std::process::id(), Some(true)));
    }

    #[test]
    fn the_parent_of_this_process_is_not_below_it() {
        let (ours, _theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("a pair");
        let parent = stat(Pid::own()).expect("readable").and_then(|stat| stat.parent).expect("a parent");
        assert_eq!(supervised(&ours, parent), Some(false));
    }
}
