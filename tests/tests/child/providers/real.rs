//! A real model, very small (`tests/peers/real_model.py`): a child completes a turn, and a cancel and a deadline land in the
//! middle of what it writes. Built with `--features real-model` only, for a person who has started one; its address is in
//! `REAL_MODEL`.

use super::run;
use crate::rig::Rig;
use agentd_core::wire::Up;
use agentd_core::wire::message::{LoopEnd, WaitingOn};
use agentd_tests::model_server::Speaks;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Stands between the child and the model, and tells when the first events of an answer go by.
struct Relay {
    base: String,
    begun: Receiver<Instant>,
    closed: Receiver<()>,
}

impl Relay {
    fn start() -> Relay {
        let base = std::env::var("REAL_MODEL").expect("REAL_MODEL, such as http://127.0.0.1:18080/v1");
        let model = base.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let base = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let ((tell_begun, begun), (tell_closed, closed)) = (channel(), channel());
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let mut there = TcpStream::connect(&model).expect("the model is there");
                let (mut up, mut asks) =
                    (there.try_clone().expect("cloned"), client.try_clone().expect("cloned"));
                let tell_closed = tell_closed.clone();
                std::thread::spawn(move || {
                    let _gone = std::io::copy(&mut asks, &mut up);
                    let _gone = up.shutdown(std::net::Shutdown::Both);
                    let _over = tell_closed.send(());
                });
                let (mut bytes, mut seen) = ([0; 4096], 0);
                while let Ok(n @ 1..) = there.read(&mut bytes) {
                    seen += bytes[..n].windows(5).filter(|w| w == b"data:").count();
                    // The first event says no more than that it has begun.
                    if seen > 1 {
                        seen = 0;
                        let _over = tell_begun.send(Instant::now());
                    }
                    if client.write_all(&bytes[..n]).is_err() {
                        break;
                    }
                }
                let _gone = client.shutdown(std::net::Shutdown::Both);
            }
        });
        Relay { base, begun, closed }
    }

    fn until_begun(&self) -> Instant {
        self.begun.recv_timeout(Duration::from_secs(600)).expect("the model writes")
    }
}

fn asking(relay: &Relay, speaks: Speaks, tokens: u64) -> crate::rig::Run {
    run(speaks, &[&relay.base]).change(|spawn| {
        spawn.instruction = "Say hello.".into();
        spawn.limits.deadline_ms = 3_600_000;
        spawn.model.dialect.remote_mut().expect("a remote model").max_output = Some(tokens);
    })
}

/// The next frames, however slow the model is.
fn terminal(rig: &mut Rig, relay: &Relay) -> Up {
    relay.until_begun();
    loop {
        if let Some(up @ (Up::Result(_) | Up::Failed(_))) = rig.next() {
            return up;
        }
    }
}

#[test]
fn a_child_completes_a_turn() {
    for speaks in Speaks::ALL {
        let (relay, since) = (Relay::start(), Instant::now());
        let mut rig = Rig::start(asking(&relay, speaks, 16));
        let ended = terminal(&mut rig, &relay);
        let Up::Result(result) = &ended else { panic!("{ended:?}") };
        assert!(matches!(result.end, LoopEnd::Completed), "{ended:?}");
        let usages = super::usages(&rig);
        assert!(matches!(usages[..], [(1.., 1.., false)]), "{usages:?}");
        println!("{speaks:?}: {:?} in {:?}, {usages:?}", result.text, since.elapsed());
        assert!(rig.end().0.success());
    }
}

#[test]
fn a_cancel_in_the_middle_lands_within_a_second() {
    for speaks in Speaks::ALL {
        let relay = Relay::start();
        let mut rig = Rig::start(asking(&relay, speaks, 400));
        rig.until_waiting_on(&WaitingOn::Model);
        relay.until_begun();
        let since = Instant::now();
        rig.cancel();
        let Up::Result(result) = rig.terminal() else { panic!("{:?}", rig.seen) };
        let took = since.elapsed();
        assert_eq!(result.end, LoopEnd::Cancelled);
        assert!(took < Duration::from_secs(1), "{took:?}");
        relay.closed.recv_timeout(Duration::from_secs(1)).expect("the connection is shut");
        println!("{speaks:?}: cancelled after {took:?}, {:?}", super::usages(&rig));
        assert!(rig.end().0.success());
    }
}

#[test]
fn a_deadline_in_the_middle_lands_within_a_second() {
    let relay = Relay::start();
    // How long it takes to begin, on this machine now.
    let since = Instant::now();
    let mut rig = Rig::start(asking(&relay, Speaks::Openai, 400));
    let begins = relay.until_begun().duration_since(since);
    rig.cancel();
    rig.terminal();
    assert!(rig.end().0.success());
    let relay = Relay::start();
    let deadline = begins * 2 + Duration::from_secs(2);
    let since = Instant::now();
    let run = asking(&relay, Speaks::Openai, 4_000);
    let mut rig = Rig::start(run.change(|spawn| {
        spawn.limits.deadline_ms = u64::try_from(deadline.as_millis()).expect("short");
    }));
    let Up::Result(result) = terminal(&mut rig, &relay) else { panic!("{:?}", rig.seen) };
    let took = since.elapsed();
    assert_eq!(result.end, LoopEnd::Deadline);
    assert!(took >= deadline && took < deadline + Duration::from_secs(1), "{took:?} of {deadline:?}");
    println!("ended {:?} after its deadline of {deadline:?}, {:?}", took - deadline, super::usages(&rig));
    assert!(rig.end().0.success());
}
