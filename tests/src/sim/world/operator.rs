//! What an operator calls for, as events in time.

use super::{Due, World};
use crate::sim::agenda::Stream;
use crate::sim::plan::{Order, START};
use agentd_core::bytes::Json;
use agentd_core::event::Event;
use agentd_core::time::Duration;
use serde_json::{Value, json};

impl World<'_> {
    /// The calls of one planned act; the first is named by its place among the faults, the second by what is beyond.
    pub(super) fn operator(&mut self, stream: Stream, at_ms: u64, handle: u64, order: Order) {
        const SECOND: u64 = 1_000;
        let at = START + Duration::from_millis(at_ms);
        let call = stream.1 + 1;
        let about = json!({"handle": format!("sub-{handle}")});
        let mut asks = |after_ms: u64, event: Event| {
            self.later(at + Duration::from_millis(after_ms), stream, Due::Notice(event));
        };
        match order {
            Order::Kill { only } => {
                let args = json!({"handle": about["handle"], "reason": "the plan says so", "only": only});
                asks(0, called(call, "subagent.kill", &args));
            }
            Order::Pause { ms } => {
                asks(0, called(call, "subagent.pause", &about));
                asks(ms, called(call + SECOND, "subagent.resume", &about));
            }
            Order::Status => asks(0, called(call, "subagent.status", &about)),
            Order::Await { ms } => {
                asks(0, called(call, "subagent.await", &about));
                asks(ms, Event::OperatorHungUp { call });
            }
            Order::Nonsense => asks(0, called(call, "plan.create", &about)),
        }
    }
}

fn called(call: u64, tool: &str, args: &Value) -> Event {
    Event::OperatorCalled { call, tool: tool.to_owned(), args: Json::of(args) }
}
