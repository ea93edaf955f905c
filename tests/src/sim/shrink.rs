//! The smallest plan that still breaks the same rule: things are taken out one by one, as long as anything can be.

use super::plan::{Fault, Knobs, Nature, Plan, Rank, Script, Step};

/// Lives that shrinking may take: enough for any plan that is drawn.
const TRIES: u32 = 4_000;

/// Shrinks `plan` as long as `fails` says that what is left fails alike.
pub(super) fn shrink(plan: Plan, mut fails: impl FnMut(&Plan) -> bool) -> Plan {
    let mut best = plan;
    let mut tries = 0;
    loop {
        let mut found = false;
        for candidate in smaller(&best) {
            tries += 1;
            if tries > TRIES {
                return best;
            }
            if fails(&candidate) {
                best = candidate;
                found = true;
                break;
            }
        }
        if !found {
            return best;
        }
    }
}

/// Plans that are a little smaller, the boldest cuts first.
fn smaller(plan: &Plan) -> Vec<Plan> {
    let mut all = Vec::new();
    let with = |change: &dyn Fn(&mut Plan)| {
        let mut p = plan.clone();
        change(&mut p);
        p
    };
    for i in (1..plan.scripts.len()).rev() {
        if plan.scripts[i] != Script::default() {
            all.push(with(&|p| p.scripts[i] = Script::default()));
        }
    }
    for i in 0..plan.faults.len() {
        all.push(with(&|p| {
            p.faults.remove(i);
        }));
    }
    for i in (0..plan.prompts_ms.len()).rev() {
        all.push(with(&|p| {
            p.prompts_ms.remove(i);
        }));
    }
    for (i, script) in plan.scripts.iter().enumerate() {
        if !script.turns.is_empty() {
            all.push(with(&|p| p.scripts[i].turns = Vec::new()));
        }
        for j in (0..script.turns.len()).rev() {
            for k in (0..script.turns[j].len()).rev() {
                all.push(with(&|p| {
                    p.scripts[i].turns[j].remove(k);
                }));
            }
        }
        for j in (0..script.between.len()).rev() {
            all.push(with(&|p| {
                p.scripts[i].between.remove(j);
            }));
        }
        let n = script.steps.len();
        if n > 2 {
            all.push(with(&|p| p.scripts[i].steps.truncate(n / 2)));
        }
        for j in (0..n).rev() {
            all.push(with(&|p| {
                p.scripts[i].steps.remove(j);
            }));
        }
        if script.nature != Nature::default() {
            all.push(with(&|p| p.scripts[i].nature = Nature::default()));
        }
    }
    if plan.heal_ms.is_some() {
        all.push(with(&|p| p.heal_ms = None));
    }
    if plan.knobs != Knobs::default() {
        all.push(with(&|p| p.knobs = Knobs::default()));
    }
    all.extend(knobs(plan));
    for (i, script) in plan.scripts.iter().enumerate() {
        for (j, step) in script.steps.iter().enumerate() {
            all.extend(plainer_step(step).into_iter().map(|s| with(&|p| p.scripts[i].steps[j] = s.clone())));
        }
    }
    for (i, fault) in plan.faults.iter().enumerate() {
        all.extend(plainer_fault(fault).into_iter().map(|f| with(&|p| p.faults[i] = f.clone())));
    }
    if plan.scripts.len() > 1 && plan.scripts.last() == Some(&Script::default()) {
        all.push(with(&|p| {
            p.scripts.pop();
        }));
    }
    all
}

/// One knob at a time back to its default.
fn knobs(plan: &Plan) -> Vec<Plan> {
    let d = Knobs::default();
    let sets: [fn(&mut Knobs, &Knobs); 19] = [
        |k, d| k.one_shot = d.one_shot,
        |k, d| k.wake = d.wake,
        |k, d| k.queue = d.queue,
        |k, d| (k.idle_ms, k.stop_ms) = (d.idle_ms, d.stop_ms),
        |k, d| k.breadth = d.breadth,
        |k, d| k.total = d.total,
        |k, d| k.depth = d.depth,
        |k, d| (k.burst, k.refill_ms) = (d.burst, d.refill_ms),
        |k, d| (k.deadline_ms, k.grace_ms) = (d.deadline_ms, d.grace_ms),
        |k, d| {
            (k.ping_ms, k.pong_ms, k.progress_ms, k.ready_ms) =
                (d.ping_ms, d.pong_ms, d.progress_ms, d.ready_ms)
        },
        |k, d| (k.term_ms, k.kill_ms, k.exit_ms) = (d.term_ms, d.kill_ms, d.exit_ms),
        |k, d| k.drain_ms = d.drain_ms,
        |k, d| k.pids = d.pids,
        |k, d| k.strangers = d.strangers,
        |k, d| (k.pipe, k.read, k.write) = (d.pipe, d.read, d.write),
        |k, d| k.turn_ms = d.turn_ms,
        |k, d| k.purse = d.purse,
        |k, d| (k.priced, k.purse) = (d.priced, d.purse),
        |k, d| (k.jitter_ms, k.tick_first) = (d.jitter_ms, d.tick_first),
    ];
    sets.iter()
        .filter_map(|set| {
            let mut p = plan.clone();
            set(&mut p.knobs, &d);
            (p.knobs != plan.knobs).then_some(p)
        })
        .collect()
}

fn plainer_step(step: &Step) -> Vec<Step> {
    match step {
        Step::Run { script, mode, delegate, flaw, rank, item } => {
            let run = |delegate, flaw, rank| {
                let (script, mode, item) = (*script, *mode, *item);
                Step::Run { script, mode, delegate, flaw, rank, item }
            };
            let mut all = Vec::new();
            if item.is_some() {
                let mut plain = step.clone();
                if let Step::Run { item, .. } = &mut plain {
                    *item = None;
                }
                all.push(plain);
            }
            if flaw.is_some() {
                all.push(run(*delegate, None, *rank));
            }
            if *delegate {
                all.push(run(false, *flaw, *rank));
            }
            if *rank != Rank::Normal {
                all.push(run(*delegate, *flaw, Rank::Normal));
            }
            all
        }
        Step::Await { handles, any, timeout_ms, message } if handles.len() > 1 => {
            let handles = handles[..1].to_vec();
            vec![Step::Await { handles, any: *any, timeout_ms: *timeout_ms, message: *message }]
        }
        Step::Say(n) if *n > 1 => vec![Step::Say(n / 2)],
        Step::Send { handle, times } if *times > 1 => {
            vec![Step::Send { handle: *handle, times: 1 }, Step::Send { handle: *handle, times: times / 2 }]
        }
        Step::Steer { handle, times } if *times > 1 => {
            vec![Step::Steer { handle: *handle, times: 1 }, Step::Steer { handle: *handle, times: times / 2 }]
        }
        Step::Fork(what) => {
            let plain = crate::sim::plan::Offspring::default();
            if *what == plain { vec![] } else { vec![Step::Fork(plain)] }
        }
        _ => vec![],
    }
}

fn plainer_fault(fault: &Fault) -> Vec<Fault> {
    match fault {
        Fault::SpawnFails { nth, times, transient } if *times > 1 => {
            vec![Fault::SpawnFails { nth: *nth, times: 1, transient: *transient }]
        }
        Fault::StoreSlow { nth, times, ms } if *times > 1 => {
            vec![Fault::StoreSlow { nth: *nth, times: times / 2, ms: *ms }]
        }
        Fault::StoreFails { nth, times, retryable } if *times > 1 => {
            vec![Fault::StoreFails { nth: *nth, times: times - 1, retryable: *retryable }]
        }
        _ => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::draw;

    #[test]
    fn what_is_left_is_what_matters() {
        let mut found = 0;
        for seed in 0..200 {
            let plan = draw::plan(seed);
            let hangs = |p: &Plan| p.scripts.iter().any(|s| s.all_steps().any(|step| *step == Step::Hang));
            if !hangs(&plan) {
                continue;
            }
            found += 1;
            let small = shrink(plan, hangs);
            let steps: Vec<&Step> = small.scripts.iter().flat_map(|s| s.all_steps()).collect();
            assert_eq!(steps, [&Step::Hang]);
            assert_eq!(small.knobs, Knobs::default());
            assert!(small.faults.is_empty());
        }
        assert!(found > 5, "plans with a hang are drawn");
    }
}
