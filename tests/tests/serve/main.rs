//! `agentd serve` and the commands of its operator, with real processes: from the first command to the drain.

mod cancels;
mod docs;
mod drains;
mod follow;
mod full;
mod hostile;
mod idle;
mod listings;
mod reload;
mod restart;
mod stage;
mod story;
mod systemd;
mod tcp;
mod top;
mod two;
mod units;
