//! What this program does when it is started as a child: its name says.

use rustix::fs::OFlags;
use std::io::Write;
use std::process::ExitCode;

pub(crate) fn main() -> ExitCode {
    let name = std::env::var("AGENTD_NAME").unwrap_or_default();
    match name.as_str() {
        "hello" => println!("hello"),
        // One write is one packet: each read on the other side takes one and leaves the rest.
        "packets" => {
            let flags = rustix::fs::fcntl_getfl(std::io::stdout()).expect("flags are read");
            rustix::fs::fcntl_setfl(std::io::stdout(), flags | OFlags::DIRECT).expect("flags are set");
            for packet in 0..10_u8 {
                rustix::io::write(std::io::stdout(), &[b'0' + packet; 3]).expect("the pipe has room");
            }
            std::process::abort();
        }
        "much" => {
            rustix::pipe::fcntl_setpipe_size(std::io::stdout(), 1 << 20).expect("a large pipe");
            let mut stdout = std::io::stdout();
            stdout.write_all(&vec![b'm'; 1 << 20]).and_then(|()| stdout.flush()).expect("the pipe has room");
            std::process::abort();
        }
        // As a real child: what escapes from below it stays below it.
        other if other.starts_with("subreaper:") => {
            rustix::process::set_child_subreaper(Some(rustix::process::getpid())).expect("prctl works");
            let script = &other["subreaper:".len()..];
            let status = std::process::Command::new("/bin/sh").args(["-c", script]).status();
            assert!(status.expect("sh starts").success());
        }
        other => {
            eprintln!("no part is called {other:?}");
            return ExitCode::from(64);
        }
    }
    ExitCode::SUCCESS
}
