//! A child that does what it is told to do: its side of the channel, and what it can do next.

use crate::sim::program::{read_instruction, token_of};
use agentd_core::bytes::Json;
use agentd_core::event::Exit;
use agentd_core::wire::message::{
    LoopEnd, LoopEvidence, Mode, Pong, Ready, Resume, RunResult, Spawn, ToolRequest, Turn, TurnOutcome,
    Usage, VERSION,
};
use agentd_core::wire::{Decoded, Down, DownDecoder, Encoder, Up};
use serde_json::Value;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Puppet {
    decoder: DownDecoder,
    encoder: Encoder,
    /// Its token, once it has its first frame.
    pub(super) token: Option<String>,
    pub(super) is_ready: bool,
    /// A terminal frame was sent, and how often.
    pub(super) said: u32,
    pub(super) is_hung: bool,
    pub(super) is_broken: bool,
    pub(super) is_closed: bool,
    /// It has ended so, and whether the core knows.
    pub(super) exit: Option<Exit>,
    pub(super) exit_told: bool,
    pub(super) reports: u64,
    /// It was asked to end.
    pub(super) is_cancelled: bool,
    /// It has many turns, and the one in hand.
    pub(super) is_warm: bool,
    pub(super) turn: Option<u64>,
    /// Its calls, and how many have no answer.
    calls: u64,
    pub(super) open: u64,
    /// Frames it owes by itself: pongs.
    pub(super) owed: Vec<u8>,
}

impl Puppet {
    /// Whether it can still say something.
    pub(super) fn speaks(&self) -> bool {
        self.token.is_some() && self.exit.is_none() && !self.is_hung && !self.is_closed && !self.is_broken
    }

    /// It is handed its first frame.
    pub(super) fn begin(&mut self, spawn: &Spawn) {
        // What it says is here; any frame stands for it where they are counted.
        if let Ok(frame) = Encoder::new().encode_down(&Down::Resume(Resume {})) {
            self.decoder.push(&frame);
            while self.decoder.next().is_some() {}
        }
        self.token = read_instruction(&spawn.instruction, 1).map(|(_, token)| token);
        self.is_warm = spawn.mode == Mode::Warm;
        self.turn = self.is_warm.then_some(1);
    }

    /// It reads a frame, and answers pings.
    pub(super) fn read(&mut self, frame: &[u8]) {
        self.decoder.push(frame);
        while let Some(Ok(Decoded::Message(down))) = self.decoder.next() {
            match down {
                Down::Ping(ping) if self.speaks() && self.is_ready => {
                    let pong = self.frame(&Up::Pong(Pong { seq: ping.seq }));
                    self.owed.extend(pong);
                }
                Down::ToolResult(_) => self.open -= 1,
                Down::Cancel(cancel) => self.is_cancelled |= cancel.turn.is_none(),
                Down::Message(message) => {
                    self.turn = Some(message.id);
                    self.token = token_of(&message.text).map(str::to_owned).or(self.token.take());
                }
                _ => {}
            }
        }
    }

    fn frame(&mut self, up: &Up) -> Vec<u8> {
        self.encoder.encode_up(up).unwrap_or_default()
    }

    pub(super) fn ready(&mut self) -> Vec<u8> {
        self.is_ready = true;
        self.frame(&Up::Ready(Ready { v: VERSION }))
    }

    pub(super) fn report(&mut self) -> Vec<u8> {
        self.reports += 1;
        let input = 10 * self.reports;
        let usage = Usage { input, output: 3, cached: 1, estimated: false, model: "sim".into() };
        self.frame(&Up::Usage(usage))
    }

    /// Its result, or the end of its turn; a second one where it has sent one.
    pub(super) fn result(&mut self) -> Vec<u8> {
        let end = if self.is_cancelled { LoopEnd::Cancelled } else { LoopEnd::Completed };
        let text = self.token.as_ref().map(|token| format!("token={token}"));
        let evidence = LoopEvidence { model_calls: 1, ..LoopEvidence::default() };
        let result = RunResult { end, text, partial: false, error: None, evidence };
        if let Some(id) = self.turn.take().filter(|_| !self.is_cancelled) {
            return self.frame(&Up::Turn(Turn { id, outcome: TurnOutcome::Result(result) }));
        }
        self.said += 1;
        self.frame(&Up::Result(result))
    }

    pub(super) fn rubbish(&mut self) -> Vec<u8> {
        self.is_broken = true;
        b"Traceback (most recent call last):\n".to_vec()
    }

    pub(super) fn call(&mut self, name: &str, token: &str, args: &Value) -> Vec<u8> {
        self.calls += 1;
        self.open += 1;
        let (id, call_id) = (self.calls, format!("call-{token}"));
        self.frame(&Up::ToolRequest(ToolRequest { id, call_id, name: name.into(), args: Json::of(args) }))
    }
}
