//! The rest of the program: its own children, its signals, other supervisors beside it. Nothing of it is touched (S5.3).

use super::stage::{Stage, askers, on_both};
use agentd_core::record::Status;
use agentd_tests::kit::alive;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use tokio::io::{AsyncBufReadExt, BufReader as AsyncBufReader};

/// A child of the program's own that ends when its stdin does, with this code.
fn own(code: i32) -> std::process::Child {
    let script = format!("read x; exit {code}");
    Command::new("/bin/sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().expect("sh starts")
}

#[test]
fn the_programs_own_children_are_its_own_before_during_and_after() {
    on_both(|| async {
        let stage = Stage::new(askers(), "");
        let mut before = own(11);
        // One that leaves an orphan behind, which is nobody's business either.
        let mut forks = Command::new("/bin/sh")
            .args(["-c", "sleep 1000 >/dev/null & echo $!"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh starts");
        let mut line = String::new();
        BufReader::new(forks.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let orphan: i32 = line.trim().parse().expect("a pid");
        assert_eq!(forks.wait().expect("its status is there").code(), Some(0));

        let (supervisor, driving, mut asks) = stage.start();
        let run = supervisor.run("wait").await.expect("a run");
        let asked = asks.next().await;
        let mut during = own(12);
        let mut with_tokio = tokio::process::Command::new("/bin/sh")
            .args(["-c", "echo up; read x; exit 13"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh starts");
        let mut lines = AsyncBufReader::new(with_tokio.stdout.take().expect("a pipe")).lines();
        assert_eq!(lines.next_line().await.expect("a line").as_deref(), Some("up"));
        // A zombie that nobody has waited for yet.
        let mut zombie = own(14);
        drop(zombie.stdin.take());
        // Sweeps and reaps: of a run that ends by itself, of one that is killed, of the end of all.
        asked.answer.send(Ok(json!("done"))).expect("it waits");
        assert_eq!(run.result().await.expect("a result").status, Status::Completed);
        let killed = supervisor.run("wait").await.expect("a run");
        let _asked = asks.next().await;
        killed.kill("").await.expect("a result");
        supervisor.shutdown_now().await;
        driving.await.expect("no panic").expect("it ends well");
        stage.assert_nothing_left();

        let mut after = own(15);
        for (child, code) in [(&mut before, 11), (&mut during, 12), (&mut zombie, 14), (&mut after, 15)] {
            drop(child.stdin.take());
            assert_eq!(child.wait().expect("its status is there").code(), Some(code));
        }
        drop(with_tokio.stdin.take());
        assert_eq!(with_tokio.wait().await.expect("its status is there").code(), Some(13));
        assert!(alive(orphan), "what the program's child left is nobody's");
        let killed = Command::new("/bin/sh").args(["-c", &format!("kill -9 {orphan}")]).status();
        assert!(killed.expect("sh starts").success());
    });
}

#[test]
fn signals_and_subreaper_are_as_they_were() {
    on_both(|| async {
        let before = process_wide();
        let stage = Stage::new(askers(), "");
        let (supervisor, driving, mut asks) = stage.start();
        let run = supervisor.run("wait").await.expect("a run");
        let asked = asks.next().await;
        assert_eq!(process_wide(), before, "while children live");
        asked.answer.send(Ok(json!("done"))).expect("it waits");
        run.result().await.expect("a result");
        supervisor.shutdown().await;
        driving.await.expect("no panic").expect("it ends well");
        assert_eq!(process_wide(), before, "afterwards");
        stage.assert_nothing_left();
    });
}

/// What a process has once and a library must not change. `SigCgt` is left out: the runtime of another test may have
/// begun to watch SIGCHLD for `tokio::process` meanwhile.
fn process_wide() -> Vec<String> {
    let status = std::fs::read_to_string("/proc/self/status").expect("it reads");
    let mut lines: Vec<String> = status
        .lines()
        .filter(|line| line.starts_with("SigIgn") || line.starts_with("SigBlk"))
        .map(Into::into)
        .collect();
    lines.push(format!("{:?}", rustix::process::child_subreaper()));
    lines
}

#[test]
fn many_supervisors_do_not_see_each_other() {
    on_both(|| async {
        let stages: Vec<Stage> = (0..4).map(|_| Stage::new(askers(), "")).collect();
        let mut all = Vec::new();
        for stage in &stages {
            let (supervisor, driving, mut asks) = stage.start();
            let run = supervisor.run("wait").await.expect("a run");
            let asked = asks.next().await;
            all.push((supervisor, driving, run, asked));
        }
        // One ends at once, one is dropped; the others go on.
        let (supervisor, driving, ..) = all.remove(0);
        supervisor.shutdown_now().await;
        driving.await.expect("no panic").expect("it ends well");
        stages[0].assert_nothing_left();
        let (_supervisor, driving, ..) = all.remove(0);
        driving.abort();
        assert!(driving.await.is_err());
        stages[1].assert_nothing_left();
        for (i, (supervisor, driving, run, asked)) in all.into_iter().enumerate() {
            asked.answer.send(Ok(json!(i))).expect("it waits");
            let result = run.result().await.expect("a result");
            assert_eq!((result.status, result.result), (Status::Completed, json!(i.to_string())));
            supervisor.shutdown().await;
            assert_eq!(driving.await.expect("no panic").expect("it ends well").leaked, 0);
        }
        stages.iter().for_each(Stage::assert_nothing_left);
    });
}
