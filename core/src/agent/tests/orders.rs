//! Any order of events: the history stays valid, every turn and the run end once, no limit is passed, what is said is
//! told once, and no timeout lies in the past.

use super::*;
use crate::time::Duration;
use crate::wire::message::TurnOutcome;
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};

/// What happens next, to whatever is in flight then.
#[derive(Debug, Clone)]
enum Step {
    Start,
    Reply(Reply),
    ModelFails,
    /// Settles an open tool call, or one that is long settled.
    Settle(prop::sample::Index, bool, String),
    Stray(u64),
    Wait(u64),
    Message,
    Steer,
    /// A message or steer that came before.
    Again,
    Finish,
    Pause,
    Resume,
    HeldUp(bool),
    /// So many bytes of the reply have come.
    Came(usize),
    /// The attempt breaks off with so many bytes, or one that is paid for does so again.
    Cut(usize, bool),
    /// Another model, which restarts the turn or not.
    Swap(bool),
    CancelTurn(u64),
    Cancel,
}

fn any_reply() -> impl Strategy<Value = Reply> {
    let name = prop_oneof![
        4 => Just("files_read".to_owned()),
        2 => Just("subagent_run".to_owned()),
        1 => Just("web_get".to_owned()),
        1 => "\\PC{0,6}",
    ];
    let args =
        prop_oneof![4 => Just("{}".to_owned()), 1 => Just("{\"a\":1}".to_owned()), 1 => Just("{".to_owned())];
    let call = ("[a-c]{0,1}", name, args).prop_map(|(id, name, args)| Call { id, name, args });
    let finish = prop_oneof![
        6 => Just(Finish::ToolCalls),
        1 => Just(Finish::Length),
        1 => Just(Finish::Refusal),
        2 => Just(Finish::Missing),
    ];
    let usage = prop::option::of(0u64..400).prop_map(|n| ReplyUsage { input: n, output: n, cached: n });
    (prop::option::of("[x ]{0,3}"), prop::collection::vec(call, 0..5), finish, usage)
        .prop_map(|(text, calls, finish, usage)| Reply { text, calls, finish, usage })
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::Start),
        8 => any_reply().prop_map(Step::Reply),
        1 => Just(Step::ModelFails),
        20 => (any::<prop::sample::Index>(), any::<bool>(), "[a-c]{0,2}").prop_map(|(i, e, t)| Step::Settle(i, e, t)),
        2 => (0u64..40).prop_map(Step::Stray),
        4 => (0u64..3_000).prop_map(Step::Wait),
        2 => Just(Step::Message),
        2 => Just(Step::Steer),
        1 => Just(Step::Again),
        1 => Just(Step::Finish),
        1 => Just(Step::Pause),
        3 => Just(Step::Resume),
        1 => any::<bool>().prop_map(Step::HeldUp),
        1 => (1usize..4_000).prop_map(Step::Came),
        1 => (1usize..4_000, any::<bool>()).prop_map(|(bytes, again)| Step::Cut(bytes, again)),
        1 => (0u64..8).prop_map(Step::CancelTurn),
        2 => any::<bool>().prop_map(Step::Swap),
    ]
}

/// Watches everything a loop asks for.
struct Oracle {
    machine: Loop,
    warm: bool,
    limits: RunLimits,
    now: Instant,
    thinking: Option<u64>,
    /// At the model call in flight or the last one.
    attempt: u64,
    /// The model call of which an attempt broke off last.
    cut: Option<u64>,
    /// Times that something was paid, over all.
    paid: u32,
    open: BTreeSet<u64>,
    numbers: BTreeSet<u64>,
    /// Of the turn in hand.
    requests: u32,
    used: u64,
    since: Instant,
    /// Over all.
    all_requests: u32,
    /// The turn in hand, and those that wait, by their ids.
    turn: Option<u64>,
    waiting: VecDeque<u64>,
    steers: VecDeque<u64>,
    /// The newest model that was not taken, and whether it may be in the middle of a turn.
    swap: Option<(u64, bool)>,
    /// The model that was taken last, and whether that was acknowledged.
    model: (String, bool),
    next_id: u64,
    paused: bool,
    /// Since when it stands still at a boundary.
    stands: Option<Instant>,
    finish: bool,
    started: bool,
    over: bool,
    tape: Vec<Item>,
}

impl Oracle {
    fn new(spec: &Spawn) -> Oracle {
        let warm = spec.mode == Mode::Warm;
        let schema = spec.output_schema.as_ref().map(|text| Schema::read(&text.0).unwrap());
        Oracle {
            machine: Loop::new(
                &recorded(spec.clone(), Begins::Anew),
                tools(),
                Vec::new(),
                schema,
                Instant::ZERO,
            ),
            warm,
            limits: spec.limits.clone(),
            now: Instant::ZERO,
            thinking: None,
            attempt: 1,
            cut: None,
            paid: 0,
            open: BTreeSet::new(),
            numbers: BTreeSet::new(),
            requests: 0,
            used: 0,
            since: Instant::ZERO,
            all_requests: 0,
            turn: Some(1),
            waiting: VecDeque::new(),
            steers: VecDeque::new(),
            swap: None,
            model: ("m".to_owned(), true),
            next_id: 1 + u64::from(warm),
            paused: false,
            stands: None,
            finish: false,
            started: false,
            over: false,
            tape: Vec::new(),
        }
    }

    fn input(&mut self, input: Input) {
        let ticked = input == Input::Tick;
        if let Input::ModelReply { call, .. } = &input
            && self.thinking == Some(*call)
        {
            self.thinking = None;
        }
        if let Input::ToolDone { call, .. } = &input {
            self.open.remove(call);
        }
        if input == Input::Start {
            self.started = true;
        }
        let mut outputs = Vec::new();
        self.machine.handle(self.now, input, &mut outputs);
        for output in outputs {
            assert!(!self.over, "{output:?} after the end");
            self.check(output);
        }
        if ticked {
            assert!(self.machine.poll_timeout().is_none_or(|at| at > self.now));
        }
        let unbounded = self.over || self.turn.is_none() || self.stands.is_some();
        assert_eq!(self.machine.poll_timeout().is_none(), unbounded);
        if self.turn.is_none() && self.started && !self.over {
            assert!(self.waiting.is_empty(), "a message waits while the loop is idle");
        }
        assert_valid(self.machine.history());
        self.is_written_down();
    }

    /// What is written at any time is read back as the history, and as the turn that is in hand.
    fn is_written_down(&self) {
        if !self.started {
            return;
        }
        let past = past_of(&self.tape);
        assert_eq!((past.damaged, past.orphans.len()), (0, self.open.len()));
        if self.open.is_empty() {
            assert_eq!(past.messages, said_by(self.machine.history()));
        }
        // A run that was cancelled may be begun again, and then goes on with the turn that it was cancelled in.
        let stopped = matches!(self.tape.last(), Some(Item::Ended { stopped: true, .. }));
        assert_eq!(past.is_in_turn(), self.turn.is_some() && (!self.over || stopped));
    }

    fn check(&mut self, output: Output) {
        match output {
            Output::Record(item) => self.tape.push(*item),
            Output::CallModel { call, request } => {
                assert!(self.numbers.insert(call));
                assert!(self.thinking.replace(call).is_none() && self.open.is_empty());
                assert_valid(&request.messages);
                self.requests += 1;
                self.all_requests += 1;
                assert!(self.started && self.turn.is_some() && !self.paused && self.stands.is_none());
                assert!(self.requests <= self.limits.steps, "a call past the steps");
                assert!(self.used < self.limits.tokens, "a call past the tokens");
                let deadline = self.since + Duration::from_millis(self.limits.deadline_ms);
                assert!(self.now < deadline, "a call past the deadline");
                assert_eq!(
                    (request.step, request.tokens_left),
                    (self.requests, self.limits.tokens - self.used)
                );
                assert!(self.steers.is_empty(), "a steer is not told before the call");
                assert_eq!(request.tools.is_empty(), self.finish);
                assert_eq!((&request.model, self.model.1), (&self.model.0, true));
                assert!(
                    self.swap.is_none_or(|(_, restart)| !restart),
                    "a call of a model that is not to be used any more"
                );
            }
            Output::UseModel { swap } => {
                let (id, restart) = self.swap.take().expect("there is another model");
                assert!(id == swap && self.thinking.is_none() && self.open.is_empty());
                // Between two turns, before the first call of one, or where it restarts.
                assert!(restart || self.requests == 0 || self.turn.is_none());
                self.model = (format!("m{id}"), false);
            }
            Output::GoOnModel { call } => assert_eq!(self.thinking, Some(call)),
            Output::AbandonModel { call } => assert_eq!(self.thinking.take(), Some(call)),
            Output::CallTool { call, args, .. } => {
                assert!(self.numbers.insert(call) && self.open.insert(call));
                assert!(args.parse().unwrap().is_object());
                assert!(self.thinking.is_none());
            }
            Output::AbandonTool { call } => assert!(self.open.remove(&call)),
            Output::Emit(Up::Usage(usage)) => {
                self.used += usage.input + usage.output;
                self.paid += 1;
            }
            Output::Emit(Up::State(state)) => match state.waiting_on {
                WaitingOn::Paused => {
                    assert!(self.paused && self.thinking.is_none() && self.open.is_empty());
                    self.stands = Some(self.now);
                }
                WaitingOn::Message => assert!(self.turn.is_none()),
                WaitingOn::Throttled(_) => assert!(self.thinking.is_some()),
                _ => {}
            },
            Output::Emit(Up::Ack(ack)) => self.acked(ack.id),
            Output::Emit(Up::Event(_)) => {}
            Output::Emit(other) => panic!("{other:?} is not the loop's to send"),
            Output::Turn(turn) => {
                assert!(self.warm && self.turn.take() == Some(turn.id), "{turn:?}");
                self.ended(turn.outcome);
            }
            Output::Finish(terminal) => {
                self.ended(match terminal {
                    Terminal::Result(result) => TurnOutcome::Result(result),
                    Terminal::Failed(failed) => TurnOutcome::Failed(failed),
                });
                self.over = true;
            }
        }
    }

    fn ended(&mut self, outcome: TurnOutcome) {
        assert!(self.thinking.is_none() && self.open.is_empty(), "something is still in flight");
        let evidence = match outcome {
            TurnOutcome::Result(result) => {
                assert!(result.partial || result.end == LoopEnd::Completed);
                assert!(!self.finish || result.partial || result.end == LoopEnd::Completed);
                result.evidence
            }
            TurnOutcome::Failed(failed) => failed.evidence,
        };
        assert_eq!(evidence.model_calls, self.all_requests);
        self.finish = false;
        self.stands = None;
    }

    /// Each once, each kind in the order it came; a message begins a turn.
    fn acked(&mut self, id: u64) {
        if self.model == (format!("m{id}"), false) {
            self.model.1 = true;
            return;
        }
        if self.steers.front() == Some(&id) {
            self.steers.pop_front();
            return;
        }
        assert_eq!(self.waiting.pop_front(), Some(id));
        assert!(self.turn.replace(id).is_none(), "two turns at once");
        (self.requests, self.used, self.since) = (0, 0, self.now);
        // Its first boundary is at once, and that it stands still there may be no news.
        self.stands = self.paused.then_some(self.now);
    }

    fn step(&mut self, step: Step) {
        let reply = |this: &mut Oracle, reply| {
            if let Some(call) = this.thinking {
                this.input(Input::ModelReply { call, reply });
            }
        };
        match step {
            Step::Start => self.input(Input::Start),
            Step::Reply(said) => reply(self, Ok(said)),
            Step::ModelFails => {
                let kind = ModelErrorKind::Unreachable;
                reply(self, Err(ModelError::new(kind, "gone")));
            }
            Step::Settle(index, error, text) => {
                let open: Vec<u64> = self.open.iter().copied().collect();
                if !open.is_empty() {
                    let outcome = ToolOutcome { error, value: ToolValue::Text(text) };
                    self.input(Input::ToolDone { call: *index.get(&open), outcome });
                }
            }
            Step::Stray(call) => {
                if !self.open.contains(&call) && self.thinking != Some(call) {
                    let outcome = ToolOutcome { error: false, value: ToolValue::Text("stray".to_owned()) };
                    self.input(Input::ToolDone { call, outcome });
                    self.input(Input::ModelReply { call, reply: Ok(answer("stray")) });
                    self.input(Input::ModelWaiting { call, until_ms: Some(1) });
                }
            }
            Step::Wait(ms) => {
                self.now = self.now + Duration::from_millis(ms);
                self.input(Input::Tick);
            }
            Step::HeldUp(on) => {
                if let Some(call) = self.thinking {
                    self.input(Input::ModelWaiting { call, until_ms: on.then_some(7) });
                }
            }
            Step::Came(bytes) => {
                if let Some(call) = self.thinking {
                    let came = Partial { bytes, ..Partial::default() };
                    self.input(Input::ModelCame { call, attempt: self.attempt, came });
                }
            }
            Step::Cut(bytes, again) => {
                if let Some(call) = self.thinking {
                    let again = again && self.cut.replace(call) == Some(call);
                    self.cut = Some(call);
                    self.attempt += u64::from(!again);
                    let (came, paid) = (Partial { bytes, ..Partial::default() }, self.paid);
                    self.input(Input::ModelCut { call, attempt: self.attempt - 1, came });
                    assert_eq!(self.paid - paid, u32::from(!again), "each is paid once");
                }
            }
            Step::Swap(restart) => {
                let id = self.next_id;
                self.next_id += 1;
                self.swap = Some((id, restart)).filter(|_| !self.over);
                let model = Model { name: format!("m{id}"), dialect: Dialect::Mock(Bytes::default()) };
                let thought = self.thinking;
                self.input(Input::ModelChanged { id, model: Box::new(model), budget: None, restart });
                assert!(!restart || thought.is_none() || self.thinking != thought, "the call goes on");
            }
            Step::Cancel => self.input(Input::Cancel { reason: "x".to_owned() }),
            said
            @ (Step::Message | Step::Steer | Step::Again | Step::Finish | Step::Pause | Step::Resume) => {
                self.said(said);
            }
            Step::CancelTurn(turn) => {
                let hits = !self.over && self.turn == Some(turn);
                self.input(Input::CancelTurn { turn, reason: "x".to_owned() });
                assert!(!hits || self.over || self.turn != Some(turn), "it goes on");
            }
        }
    }

    fn said(&mut self, step: Step) {
        let (id, text) = (self.next_id, "said".to_owned());
        match step {
            Step::Message if self.warm && !self.over => {
                self.next_id += 1;
                self.waiting.push_back(id);
                self.input(Input::Message { id, text });
            }
            Step::Message => self.input(Input::Message { id, text }),
            Step::Steer => {
                self.next_id += 1;
                self.steers.push_back(id);
                self.input(Input::Steer { id, text });
            }
            Step::Again => {
                self.input(Input::Message { id: id - 1, text: text.clone() });
                self.input(Input::Steer { id: id - 1, text });
            }
            Step::Finish => {
                self.finish |= self.turn.is_some() && !self.over;
                self.input(Input::Finish { reason: "time is up".to_owned() });
            }
            Step::Pause => {
                self.paused = true;
                self.input(Input::Pause);
            }
            Step::Resume => {
                self.paused = false;
                if let Some(stood) = self.stands.take() {
                    self.since = self.since + self.now.since(stood);
                }
                self.input(Input::Resume);
            }
            other => panic!("{other:?}"),
        }
    }
}

proptest! {
    #[test]
    fn any_order_keeps_the_promises(
        early in prop::collection::vec(any_step(), 0..4),
        steps in prop::collection::vec(any_step(), 0..80),
        warm in any::<bool>(),
        schema in any::<bool>(),
        max_steps in 0u32..12,
        tokens in 0u64..4_000,
        repeats in 0u32..4,
    ) {
        let mut spec = spec();
        spec.mode = if warm { Mode::Warm } else { Mode::Async };
        spec.output_schema = schema.then(|| Json(Bytes::from(br#"{"type": "object"}"#.as_slice())));
        spec.limits = RunLimits { steps: max_steps, tokens, deadline_ms: 10_000, repeats, tool_result_bytes: 80 };
        let mut oracle = Oracle::new(&spec);
        for step in early.into_iter().chain([Step::Start]).chain(steps) {
            oracle.step(step);
        }
        oracle.step(Step::Cancel);
        prop_assert!(oracle.over);
    }
}
