//! What a process was started with and cannot be asked later: whether its stdout was open.
//!
//! Rust's runtime opens `/dev/null` in the place of a standard descriptor that is closed, before main, so that an
//! answer would go nowhere and every write would succeed. Owns the one look before that. Called by programs whose
//! stdout is their answer.

use std::sync::atomic::{AtomicBool, Ordering};

static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether stdout was closed when the process began.
pub fn stdout_was_closed() -> bool {
    STDOUT_WAS_CLOSED.load(Ordering::Relaxed)
}

/// Runs before the runtime of Rust does: the loader calls what stands in this section, then the C main.
#[used]
#[allow(unsafe_code)]
// SAFETY: the section is an array of function pointers, and this is one; the loader calls each once, with arguments
// that a function without parameters ignores in the C calling convention.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

#[allow(unsafe_code)]
extern "C" fn look() {
    // SAFETY: asks for a descriptor's flags; no memory is involved, and a closed descriptor is an answer.
    let flags = unsafe { nix::libc::fcntl(nix::libc::STDOUT_FILENO, nix::libc::F_GETFD) };
    STDOUT_WAS_CLOSED.store(flags < 0, Ordering::Relaxed);
}
