//! Many warm children that wait: what they cost the machine, and whether their supervisor notices that they are many.
//!
//! 50 by default. The documented measurement (docs/serve.md) is
//! `IDLE_CHILDREN=500 cargo test -p agentd-tests --test serve idle -- --nocapture`.

use crate::stage::AGENTD;
use agentd_tests::kit::{Rule, RunCommand, Running, playbook};
use std::fs;
use std::time::{Duration, Instant};

/// What one `agentd ps` may take of the supervisor's processor time, in which it does nothing else. How long a person waits is
/// printed: it is also what the rest of the machine does.
const PS: Duration = Duration::from_millis(100);

/// Looks of which that is the mean.
const LOOKS: u32 = 20;

/// Three rounds of pings.
const WINDOW: Duration = Duration::from_secs(9);

fn how_many() -> usize {
    std::env::var("IDLE_CHILDREN").map_or(50, |text| text.parse().expect("IDLE_CHILDREN is a number"))
}

fn daemon(children: usize) -> RunCommand {
    RunCommand::new(AGENTD, &playbook([Rule::subagent().says("ready")]))
        .config(&format!(
            "limits: {{subagents: {{breadth: {children}, total: {}, rate: {children}/1s}}}}",
            children * 2
        ))
        // Fewer than the children need, as many systems have it: what is there up to the hard limit is used.
        .wrapper(["bash", "-c", "ulimit -Sn 128; exec \"$0\" \"$@\""])
}

/// Threads of a process.
fn threads(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

/// Its share of memory, in kB.
fn share(pid: i32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("it lives");
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).expect("listed");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Processor time so far, in clock ticks.
fn ticks(pid: i32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let fields: Vec<&str> = stat.rsplit_once(") ").expect("a name").1.split(' ').collect();
    fields[11..=12].iter().map(|field| field.parse::<u64>().expect("a number")).sum()
}

fn look(running: &Running) -> (Duration, usize) {
    let began = Instant::now();
    let runs = running.ask(&["ps"])["runs"].as_array().map_or(0, Vec::len);
    (began.elapsed(), runs)
}

#[test]
fn idle_children_cost_little_and_are_listed_at_once() {
    let children = how_many();
    let running = daemon(children).serve();
    let supervisor = running.pid();
    // It has its threads once it has answered.
    running.ask(&["ps"]);
    let before = (threads(supervisor), running.fds());
    let mut spawned = Vec::new();
    for _ in 0..children {
        let run = running.ask(&["spawn", "--mode", "warm", "wait"]);
        spawned.push(run["handle"].as_str().expect("a handle").to_owned());
    }
    let pids: Vec<i32> = spawned.iter().map(|handle| running.child(handle)).collect();
    for handle in &spawned {
        running.wait_for_event("subagent.turn", |e| e["handle"] == handle.as_str());
    }
    assert_eq!(threads(supervisor), before.0, "no thread is a child's");

    let mut looks: Vec<Duration> = Vec::new();
    let before_looks = ticks(supervisor);
    for _ in 0..LOOKS {
        let (took, runs) = look(&running);
        assert_eq!(runs, children);
        looks.push(took);
    }
    looks.sort();
    let per_second = rustix::param::clock_ticks_per_second();
    let per_look = Duration::from_secs(ticks(supervisor) - before_looks)
        / u32::try_from(per_second).expect("100")
        / LOOKS;

    let of_children = |pids: &[i32]| pids.iter().map(|pid| ticks(*pid)).sum::<u64>();
    let (own, all) = (ticks(supervisor), of_children(&pids));
    running.lives_for(WINDOW);
    let (own, all) = (ticks(supervisor) - own, of_children(&pids) - all);
    let percent = |ticks: u64| 100.0 * ticks as f64 / per_second as f64 / WINDOW.as_secs_f64();
    let shares: Vec<u64> = pids.iter().map(|pid| share(*pid)).collect();
    println!(
        "{children} idle children: ps {} ms at best, {} ms in the middle, {} ms at worst, {} ms of it the supervisor's; idle, the \
         supervisor takes {:.2} % of a processor, \
         the children {:.2} % in all; PSS {} kB a child on average, {} kB at most, {} kB the supervisor; {} descriptors, {} threads",
        looks[0].as_millis(),
        looks[looks.len() / 2].as_millis(),
        looks[looks.len() - 1].as_millis(),
        per_look.as_millis(),
        percent(own),
        percent(all),
        shares.iter().sum::<u64>() / children as u64,
        shares.iter().max().copied().unwrap_or(0),
        share(supervisor),
        running.fds() - before.1,
        before.0,
    );
    assert!(per_look < PS, "{per_look:?}");

    let judged = running.events.seen("child.unhealthy");
    assert!(judged.is_empty(), "{judged:?}");
    running.agentd(&["drain"]);
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{}", ended.log());
}
