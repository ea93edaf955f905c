//! `agentd serve` and the commands of its operator, with real processes: from the first command to the drain.

mod docs;
mod hostile;
mod reload;
mod restart;
mod stage;
mod story;
mod tcp;
mod two;
