//! `agentd logs --follow`: all that is logged of a run, once each, as it is logged, until there is nothing more to come.

use crate::stage::{AGENTD, daemon, text, told};
use agentd_tests::kit::Running;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

struct Follower {
    process: Child,
    lines: BufReader<ChildStdout>,
}

impl Follower {
    fn of(running: &Running, args: &[&str]) -> Follower {
        let mut command = running.command(AGENTD, &[&["logs", "-f"], args].concat());
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let lines = BufReader::new(process.stdout.take().expect("a pipe"));
        Follower { process, lines }
    }

    /// The lines up to the first that `last` holds of.
    fn until(&mut self, last: impl Fn(&str) -> bool) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).expect("text") > 0, "it ended after {seen:#?}");
            seen.push(line.trim_end().to_owned());
            if last(&line) {
                return seen;
            }
        }
    }

    /// What is left, its exit code and what it said besides.
    fn end(mut self) -> (Vec<String>, i32, String) {
        let rest = self.lines.lines().map(|line| line.expect("text")).collect();
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.process.stderr.take().expect("a pipe"), &mut said)
            .expect("text");
        (rest, self.process.wait().expect("it ends").code().unwrap_or(-1), said)
    }
}

fn numbers(lines: &[String]) -> Vec<u64> {
    let number = |line: &String| serde_json::from_str::<Value>(line).expect("JSON")["seq"].as_u64();
    lines.iter().map(|line| number(line).expect("a number")).collect()
}

#[test]
fn a_run_is_followed_from_its_first_event_to_its_last() {
    let running = daemon().serve();
    running.ask(&["spawn", "--mode", "warm", "first"]);
    running.wait_for_event("subagent.turn", |e| e["handle"] == "sub-1");
    let mut json = Follower::of(&running, &["sub-1", "--json"]);
    let mut people = Follower::of(&running, &["sub-1", "--lines", "1"]);
    let mut seen = json.until(|line| line.contains("subagent.turn"));
    for message in 2..=4 {
        running.ask(&["send", "sub-1", "more"]);
        let ends = move |line: &str| {
            line.contains("subagent.turn") && line.contains(&format!("\"message\":{message}"))
        };
        seen.extend(json.until(ends));
    }
    running.ask(&["retire", "sub-1"]);
    let (rest, code, said) = json.end();
    seen.extend(rest);
    assert_eq!((code, said.as_str()), (0, ""));
    let all = u64::try_from(seen.len()).expect("few");
    assert_eq!(numbers(&seen), (1..=all).collect::<Vec<u64>>(), "each once, in order");
    assert!(seen.iter().any(|line| line.contains("subagent.result")), "{seen:#?}");
    // What is asked for afterwards is the same.
    let again = text(&running.agentd(&["logs", "sub-1", "--json"]).stdout);
    assert_eq!(again.lines().collect::<Vec<_>>(), seen);
    // For people a line each, from the newest on.
    let first = people.until(|_| true);
    let (rest, code, _) = people.end();
    let shown: Vec<String> = first.into_iter().chain(rest).collect();
    assert!(code == 0 && shown.len() < seen.len() && shown[0].contains(" info  "), "{shown:#?}");
    assert!(
        shown.iter().any(|line| line.contains("subagent.result handle") || line.contains("subagent.result "))
    );
    // One that has ended is told whole, and that is all.
    let (rest, code, _) = Follower::of(&running, &["sub-1", "--json"]).end();
    assert_eq!((rest, code), (seen, 0));
    running.agentd(&["drain"]);
    assert_eq!(running.wait().code(), 0);
}

#[test]
fn a_follower_ends_with_the_daemon_or_with_its_reader() {
    let running = daemon().serve();
    running.ask(&["spawn", "stay"]);
    running.child("sub-1");
    let mut killed = Follower::of(&running, &["sub-1"]);
    killed.until(|line| line.contains("subagent.spawn"));
    // Nobody reads this one any more; the next event shows it that.
    let mut unread = Follower::of(&running, &["sub-1"]);
    unread.until(|line| line.contains("subagent.spawn"));
    let Follower { mut process, lines } = unread;
    drop(lines);
    running.ask(&["steer", "sub-1", "hurry"]);
    assert_eq!(process.wait().expect("it ends").code(), Some(0));
    let folder = running.give_up_folder();
    let (_, code, said) = killed.end();
    assert!(code == 6 && said.contains("the daemon has gone"), "{code}: {said}");

    // A drain is an end that is told.
    let running = daemon().in_folder(folder).serve();
    let mut root = Follower::of(&running, &["root", "--json"]);
    running.agentd(&["send", "root", "hello"]);
    root.until(|line| line.contains("worker.spawn"));
    let wrong = running.agentd(&["logs", "-f", "sub-99"]);
    assert!(told(&wrong).0 == 1 && told(&wrong).1.contains("unknown handle sub-99"), "{wrong:?}");
    running.agentd(&["drain"]);
    let (_, code, said) = root.end();
    assert_eq!((code, said.as_str()), (0, ""));
    assert_eq!(running.wait().code(), 0);
}
