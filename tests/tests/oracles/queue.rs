//! Faults in who waits for a permit and who begins.

use crate::tamper::{misled, misread, persisted, tampered};
use agentd_core::bytes::Json;
use agentd_core::record::Status;
use agentd_core::wire::Up;
use serde_json::Value;

#[test]
fn a_queue_that_is_too_long_or_too_short() {
    misled(|c| c.subagents.queue += 1, &["a queue has a bound"]);
    misled(|c| c.subagents.queue = 0, &["only who is over a limit is refused"]);
}

#[test]
fn those_who_wait_begin_in_another_order() {
    let alike = |up| match up {
        Up::ToolRequest(mut request) => {
            if let Ok(Value::Object(mut args)) = request.args.parse()
                && args.remove("priority").is_some()
            {
                request.args = Json::of(&Value::Object(args));
            }
            Up::ToolRequest(request)
        }
        up => up,
    };
    misread(alike, &["those who wait begin in order"]);
}

#[test]
fn somebody_overtakes_or_waits_for_nothing() {
    let skips = |_: &_, out: &mut _| {
        persisted(out, |r| {
            let even = r.handle.is_some_and(|h| h.0 % 2 == 0);
            r.status = if r.status == Status::Held && even { Status::Running } else { r.status };
        });
    };
    tampered(skips, &["nobody overtakes who waits"]);
    let waits = |_: &_, out: &mut _| {
        persisted(out, |r| {
            r.status = if r.status == Status::Running && r.depth == 1 { Status::Held } else { r.status };
        });
    };
    tampered(waits, &["nobody waits without need"]);
    let nested = |_: &_, out: &mut _| {
        persisted(out, |r| {
            r.status = if r.status == Status::Running && r.depth == 2 { Status::Held } else { r.status };
        });
    };
    tampered(nested, &["a nested spawn never waits"]);
    misled(|c| c.subagents.rate.per *= 50, &["nobody waits who could begin", "nobody waits without need"]);
}
