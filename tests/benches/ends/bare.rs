//! The least that Linux asks for: posix_spawn, a pidfd in epoll, kill, waitid.

use agentd_core::event::Exit;
use agentd_host::Pid;
use agentd_host::process::Process;
use rustix::event::epoll;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Children that are up, and an epoll that hears their ends by index.
struct Children {
    all: Vec<(Child, Process)>,
    epoll: OwnedFd,
}

impl Children {
    fn up(count: usize) -> Children {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("epoll works");
        let all: Vec<(Child, Process)> = (0..count).map(|_| child()).collect();
        for (index, (_, process)) in all.iter().enumerate() {
            let data = epoll::EventData::new_u64(index as u64);
            epoll::add(&epoll, process.as_fd(), data, epoll::EventFlags::IN).expect("epoll works");
        }
        Children { all, epoll }
    }

    /// Waits until all have ended and calls `each` at every end.
    fn ended(&mut self, mut each: impl FnMut(&mut Process)) {
        let mut left = self.all.len();
        let mut heard = Vec::with_capacity(128);
        while left > 0 {
            heard.clear();
            epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut heard), None).expect("epoll works");
            for event in &heard {
                let process = &mut self.all[event.data.u64() as usize].1;
                each(process);
                epoll::delete(&self.epoll, process.as_fd()).expect("epoll works");
                left -= 1;
            }
        }
    }
}

fn child() -> (Child, Process) {
    let mut child = Command::new("/proc/self/exe")
        .env("AGENTD_SUBAGENT", "1")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the child starts");
    child.stdout.as_mut().expect("piped").read_exact(&mut [0]).expect("the child is up");
    let pid = i32::try_from(child.id()).ok().and_then(Pid::new).expect("a pid");
    (child, Process::open(pid).expect("pidfd_open works"))
}

pub(super) fn kill(rounds: usize, children: usize) -> Vec<Duration> {
    let one = || {
        let mut children = Children::up(children);
        let began = Instant::now();
        for (child, _) in &children.all {
            let group = rustix::process::Pid::from_child(child);
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).expect("it lives");
        }
        children.ended(|process| assert!(process.reap().expect("waitid works")));
        began.elapsed()
    };
    (0..rounds).map(|_| one()).collect()
}

pub(super) fn exit(rounds: usize, _: usize) -> Vec<Duration> {
    let one = || {
        let mut children = Children::up(1);
        let began = Instant::now();
        children.all[0].0.stdin = None;
        let mut took = Duration::ZERO;
        children.ended(|process| {
            assert_eq!(process.exit().expect("waitid works"), Some(Exit::Code(0)));
            took = began.elapsed();
            assert!(process.reap().expect("waitid works"));
        });
        took
    };
    (0..rounds).map(|_| one()).collect()
}

pub(super) fn echo(rounds: usize, _: usize) -> Vec<Duration> {
    let (mut child, process) = child();
    let (mut stdin, mut stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("epoll works");
    epoll::add(&epoll, &stdout, epoll::EventData::new_u64(0), epoll::EventFlags::IN).expect("epoll works");
    let mut buffer = [0; 4096];
    let mut heard = Vec::with_capacity(8);
    let mut one = || {
        let began = Instant::now();
        stdin.write_all(&[b'e'; 32]).expect("the child reads");
        let mut back = 0;
        while back < 32 {
            heard.clear();
            epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut heard), None).expect("epoll works");
            back += stdout.read(&mut buffer).expect("the child writes");
        }
        began.elapsed()
    };
    let took = (0..rounds).map(|_| one()).collect();
    process.kill_and_reap().expect("waitid works");
    took
}
