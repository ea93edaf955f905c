//! Which loop drives the core (S1.2). Owns the choice, which is between what this binary was built with: a driver that
//! is not in it has no value here. Called by the command line, which reads the name, and by [`crate::supervise`].

use agentd_core::supervisor::Core;
use agentd_host::error::DriverError;
use agentd_host::outside::Outside;
use agentd_host::reactor::{Ended, Options};
use std::str::FromStr;

/// The readiness loop under a supervisor. Nothing that a run does depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Driver {
    /// mio: no async runtime.
    #[default]
    Mio,
    /// tokio, in a runtime of its own on the calling thread.
    #[cfg(feature = "tokio")]
    Tokio,
}

impl Driver {
    /// The names that [`Driver::from_str`] knows, of drivers that are not in every binary too.
    pub const NAMES: [&str; 2] = ["mio", "tokio"];

    /// Drives `core` on this thread until it says `Exit`.
    pub(crate) fn run<O: Outside>(
        self,
        core: &mut Core,
        outside: &mut O,
        options: Options,
    ) -> Result<Ended, DriverError> {
        match self {
            Driver::Mio => agentd_io_mio::run(core, outside, options),
            #[cfg(feature = "tokio")]
            Driver::Tokio => agentd_io_tokio::run_blocking(core, outside, options),
        }
    }
}

impl FromStr for Driver {
    type Err = String;

    fn from_str(name: &str) -> Result<Driver, String> {
        match name {
            "mio" => Ok(Driver::Mio),
            #[cfg(feature = "tokio")]
            "tokio" => Ok(Driver::Tokio),
            #[cfg(not(feature = "tokio"))]
            "tokio" => Err("this agentd was built without the tokio driver, which does nothing that mio does not; leave \
                            --driver out, or build it in: cargo build --release -p agentd --features tokio"
                .to_owned()),
            other => Err(format!("{other:?} is no driver; accepted are {}", Driver::NAMES.join(" and "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_is_in_the_binary_or_refused_with_what_to_do() {
        assert_eq!("mio".parse(), Ok(Driver::Mio));
        assert_eq!(Driver::default(), Driver::Mio);
        let tokio = "tokio".parse::<Driver>();
        if cfg!(feature = "tokio") {
            assert!(tokio.is_ok_and(|driver| driver != Driver::Mio));
        } else {
            assert!(tokio.is_err_and(|said| said.contains("--features tokio")));
        }
        assert!("Mio".parse::<Driver>().is_err_and(|said| said.contains("mio and tokio")));
    }
}
