//! Any order of events: the history stays valid, the run ends once, and no timeout lies in the past.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

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
        1 => Just(Step::Cancel),
    ]
}

/// Watches everything a loop asks for.
struct Oracle {
    machine: Loop,
    limits: RunLimits,
    now: Instant,
    thinking: Option<u64>,
    open: BTreeSet<u64>,
    numbers: BTreeSet<u64>,
    requests: u32,
    used: u64,
    over: bool,
}

impl Oracle {
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
        let mut outputs = Vec::new();
        self.machine.handle(self.now, input, &mut outputs);
        for output in outputs {
            assert!(!self.over, "{output:?} after the end");
            self.check(output);
        }
        if ticked {
            assert!(self.machine.poll_timeout().is_none_or(|at| at > self.now));
        }
        assert_eq!(self.machine.poll_timeout().is_none(), self.over);
        assert_valid(self.machine.history());
    }

    fn check(&mut self, output: Output) {
        match output {
            Output::CallModel { call, request } => {
                assert!(self.numbers.insert(call));
                assert!(self.thinking.replace(call).is_none() && self.open.is_empty());
                assert_valid(&request.messages);
                self.requests += 1;
                assert!(self.requests <= self.limits.steps, "a call past the steps");
                assert!(self.used < self.limits.tokens, "a call past the tokens");
                assert!(self.now.millis() < self.limits.deadline_ms, "a call past the deadline");
                assert_eq!(
                    (request.step, request.tokens_left),
                    (self.requests, self.limits.tokens - self.used)
                );
            }
            Output::AbandonModel { call } => assert_eq!(self.thinking.take(), Some(call)),
            Output::CallTool { call, args, .. } => {
                assert!(self.numbers.insert(call) && self.open.insert(call));
                assert!(args.parse().unwrap().is_object());
                assert!(self.thinking.is_none());
            }
            Output::AbandonTool { call } => assert!(self.open.remove(&call)),
            Output::Emit(Up::Usage(usage)) => self.used += usage.input + usage.output,
            Output::Emit(Up::Event(_) | Up::State(_)) => {}
            Output::Emit(other) => panic!("{other:?} is not the loop's to send"),
            Output::Finish(terminal) => {
                assert!(self.thinking.is_none() && self.open.is_empty(), "something is still in flight");
                if let Terminal::Result(result) = terminal {
                    assert!(result.partial || result.end == LoopEnd::Completed);
                    assert_eq!(result.evidence.model_calls, self.requests);
                }
                self.over = true;
            }
        }
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
                }
            }
            Step::Wait(ms) => {
                self.now = self.now + crate::time::Duration::from_millis(ms);
                self.input(Input::Tick);
            }
            Step::Cancel => self.input(Input::Cancel { reason: "x".to_owned() }),
        }
    }
}

proptest! {
    #[test]
    fn any_order_keeps_the_promises(
        steps in prop::collection::vec(any_step(), 0..80),
        max_steps in 0u32..12,
        tokens in 0u64..4_000,
        repeats in 0u32..4,
    ) {
        let mut spec = spec();
        spec.limits = RunLimits { steps: max_steps, tokens, deadline_ms: 10_000, repeats, tool_result_bytes: 80 };
        let machine = Loop::new(&spec, tools(), Vec::new(), Instant::ZERO);
        let mut oracle = Oracle {
            machine, limits: spec.limits, now: Instant::ZERO, thinking: None, open: BTreeSet::new(),
            numbers: BTreeSet::new(), requests: 0, used: 0, over: false,
        };
        oracle.step(Step::Start);
        for step in steps {
            oracle.step(step);
        }
        oracle.step(Step::Cancel);
        prop_assert!(oracle.over);
    }
}
