//! The environment variables by which a process of agentd knows what it is.

/// `1` in a child of the supervisor.
pub const SUBAGENT: &str = "AGENTD_SUBAGENT";

/// The pid of the process that started this one; if the parent is another by then, it has died.
pub const PARENT_PID: &str = "AGENTD_PARENT_PID";

/// In a keeper: the descriptor of its lifeline.
pub const KEEPER: &str = "AGENTD_KEEPER";

/// What the process calls itself for `ps` and the kernel's log, `agentd:sub-7`.
pub const NAME: &str = "AGENTD_NAME";

/// `1` in the built-in file server.
pub const FILES: &str = "AGENTD_FILES";
