//! A child: one run in a process of its own, from its spawn frame to its terminal frame.
//!
//! The core's machines decide ([`agentd_core::agent::Loop`], [`agentd_core::mcp::Client`]); here are the blocking
//! threads around them. Refuses to do anything without a spawn frame, and to outlive its supervisor.
//!
//! | thread | owns | waits on |
//! |---|---|---|
//! | main | the loop, the order of things | its inbox and the next deadline |
//! | control | stdin | stdin |
//! | writer | stdout, frame numbers | its queue, stdout |
//! | model | the model connection | its orders, its attempts, waits between them |
//! | one an attempt at a model call | the HTTP connection | the wire |
//! | one a server | its MCP machine; its pipes and keeper, or its exchanges | all of them at once |
//! | one an exchange with a server at an address | the HTTP connection | the wire |
//!
//! Nobody waits for the writer, so an unread stdout stops no pong, no cancel and no tool call in flight. The main
//! thread makes the keepers before there is any other thread: a keeper is told of its child's death by the thread
//! that made it, and the main thread is the one that lasts.

mod catalogue;
mod clock;
mod connect;
mod control;
mod end;
mod first;
mod inbox;
mod model;
mod outbox;
pub(crate) mod probe;
mod server;
mod session;
mod transcript;

pub(crate) use model::probe as model_probe;

use crate::environment;
use agentd_core::wire::message::{FailKind, Failed, Ready, Spawn, VERSION};
use agentd_core::wire::{DownDecoder, Encoder, Up};
use agentd_host::entry;
use clock::Clock;
use first::NoSpawn;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;

/// A child's main. 0 after a terminal frame, 1 when it could not be sent, 2 when nobody supervises.
pub fn main() -> ExitCode {
    match begin() {
        Ok((spawn, decoder, pipes)) => run(spawn, decoder, pipes),
        Err(NoSpawn::OtherVersion(error)) => refuse(error),
        Err(NoSpawn::NotASupervisor(seen)) => {
            // One line, in one write. Stderr may be closed, and then nobody wants it.
            let _unheard = io::stderr().write_all(by_hand(&seen).as_bytes());
            ExitCode::from(2)
        }
    }
}

/// The control channel.
struct Pipes {
    stdin: File,
    stdout: File,
}

fn begin() -> Result<(Box<Spawn>, DownDecoder, Pipes), NoSpawn> {
    let own = |e: io::Error| NoSpawn::NotASupervisor(format!("its own pipes cannot be used: {e}"));
    let parent = std::env::var(environment::PARENT_PID)
        .ok()
        .and_then(|pid| pid.parse().ok())
        .ok_or_else(|| NoSpawn::NotASupervisor(format!("{} holds no pid", environment::PARENT_PID)))?;
    entry::child(parent, &std::env::var(environment::NAME).unwrap_or_default())
        .map_err(|e| NoSpawn::NotASupervisor(e.to_string()))?;
    // Unbuffered, so that the first frame is read and not a byte more.
    let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned().map_err(own)?);
    let stdout = File::from(io::stdout().as_fd().try_clone_to_owned().map_err(own)?);
    let (spawn, decoder) = first::read(&mut stdin)?;
    Ok((spawn, decoder, Pipes { stdin, stdout }))
}

fn by_hand(seen: &str) -> String {
    format!(
        "agentd: {}=1 makes this process a subagent, which only an agentd supervisor can start, with a spawn frame on \
         standard input; {seen}. To run an agent by hand: agentd run PROMPT\n",
        environment::SUBAGENT
    )
}

/// Tells a supervisor of another version why there will be no run.
fn refuse(error: String) -> ExitCode {
    let failed = Failed { kind: FailKind::Spawn, error, text: None, evidence: Default::default() };
    match say(&mut io::stdout(), &mut Encoder::new(), Up::Failed(failed)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Says `ready` before anything is dialled, then does the work.
fn run(spawn: Box<Spawn>, decoder: DownDecoder, mut pipes: Pipes) -> ExitCode {
    let clock = Clock::start();
    let who = spawn.handle.map_or_else(|| "worker".to_owned(), |handle| handle.to_string());
    // A name is for people; without it the child works as well.
    let _unnamed = entry::name(&format!("agentd:{who}"));
    let mut encoder = Encoder::new();
    if say(&mut pipes.stdout, &mut encoder, Up::Ready(Ready { v: VERSION })).is_err() {
        return ExitCode::FAILURE;
    }
    session::run(spawn, clock, decoder, encoder, pipes)
}

/// Writes one small frame, before there is a writer.
fn say(to: &mut impl Write, encoder: &mut Encoder, up: Up) -> io::Result<()> {
    let frame =
        encoder.encode_up(&up).map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e.to_string()))?;
    to.write_all(&frame)?;
    to.flush()
}
