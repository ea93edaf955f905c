//! `agentd serve` and the commands of its operator, with real processes: from the first command to the drain.

mod docs;
mod follow;
mod hostile;
mod stage;
mod story;
mod tcp;
mod top;
mod two;
