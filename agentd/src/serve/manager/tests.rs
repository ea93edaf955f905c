//! When what is said, by a clock of the tests' own.

use super::*;
use agentd_core::note::Level;
use agentd_core::record::Tokens;
use agentd_core::time::Wall;
use std::os::unix::net::UnixDatagram;

/// A daemon's manager, and the socket on which it hears.
struct Stage {
    manager: Manager,
    hears: UnixDatagram,
    path: std::path::PathBuf,
    _folder: tempfile::TempDir,
}

fn stage(watchdog: Option<Duration>) -> Stage {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notify");
    let hears = hears(&path);
    let handed = Handed { notify: Some(path.clone().into()), watchdog, sockets: Vec::new() };
    let manager = Manager::of(&handed, Duration::from_secs(25)).expect("a place").expect("it is told");
    Stage { manager, hears, path, _folder: folder }
}

fn hears(path: &std::path::Path) -> UnixDatagram {
    let hears = UnixDatagram::bind(path).expect("bound");
    hears.set_nonblocking(true).expect("set");
    hears
}

impl Stage {
    /// All that was said since the last time.
    fn heard(&self) -> Vec<String> {
        let mut room = [0; 512];
        let mut all = Vec::new();
        while let Ok(read) = self.hears.recv(&mut room) {
            all.push(String::from_utf8_lossy(&room[..read]).into_owned());
        }
        all
    }

    /// One turn as the reactor makes it.
    fn turn(&mut self, ms: u64, happened: bool, draining: bool) -> Turned {
        if self.manager.looks(at(ms), happened) {
            self.manager.see(&snapshot(ms, draining));
        }
        self.manager.turned(at(ms))
    }
}

fn at(ms: u64) -> Now {
    Now { mono: Instant::from_millis(ms), wall: Wall(0) }
}

fn snapshot(ms: u64, draining: bool) -> Snapshot {
    let total = Tokens::default();
    Snapshot { now: at(ms), runs: Vec::new(), total, ended: (2, 1), draining, store: StoreView::Works }
}

fn note(event: &str) -> Note {
    Note::of_daemon(Level::Info, event)
}

const STATUS: &str = "STATUS=0 live, 0 held, 2 ended, 1 of them completed";

#[test]
fn ready_comes_first_and_nothing_is_said_twice() {
    let mut stage = stage(None);
    assert_eq!(stage.turn(0, true, false), Turned::default());
    assert_eq!(stage.heard(), ["READY=1", STATUS]);
    for ms in [1, 3_000, 9_000] {
        assert_eq!(stage.turn(ms, true, false), Turned::default(), "and nobody is woken");
    }
    assert_eq!(stage.heard(), [""; 0]);
}

#[test]
fn a_sign_of_life_is_a_turn_at_half_of_the_interval() {
    let mut stage = stage(Some(Duration::from_secs(10)));
    let wanted = |ms| Turned { wanted: Some(Instant::from_millis(ms)), fault: None };
    assert_eq!(stage.turn(0, true, false), wanted(5_000));
    assert_eq!(stage.heard()[0], "WATCHDOG=1");
    assert_eq!(stage.turn(4_999, false, false), wanted(5_000));
    assert_eq!(stage.heard(), [""; 0], "not before it is due");
    assert_eq!(
        stage.turn(7_000, false, false),
        wanted(12_000),
        "a turn that is late is one sign and no more"
    );
    assert_eq!(stage.heard(), ["WATCHDOG=1"]);
}

#[test]
fn a_status_follows_a_change_and_only_so_often() {
    let mut stage = stage(None);
    stage.turn(0, true, false);
    stage.heard();
    stage.manager.noted(&note("subagent.spawn"));
    let turned = stage.turn(100, true, false);
    assert_eq!(
        turned.wanted,
        Some(Instant::from_millis(2_000)),
        "what changed is looked at later, by a turn of its own"
    );
    assert_eq!(stage.turn(2_000, false, false), Turned::default());
    assert_eq!(stage.heard(), [""; 0], "it is as it was");
}

#[test]
fn the_end_is_said_at_once_with_the_time_that_it_may_take() {
    let mut stage = stage(None);
    stage.turn(0, true, false);
    stage.heard();
    stage.manager.noted(&note("drain.start"));
    stage.manager.noted(&note("drain.start"));
    stage.manager.reloading();
    stage.turn(10, true, true);
    assert_eq!(
        stage.heard(),
        ["STOPPING=1\nEXTEND_TIMEOUT_USEC=40000000".to_owned(), STATUS.replace("0 live", "draining: 0 live")]
    );
}

#[test]
fn a_reload_is_said_from_its_beginning_to_its_end() {
    let mut stage = stage(None);
    stage.turn(0, true, false);
    stage.heard();
    stage.manager.reloading();
    stage.manager.reloading();
    stage.turn(10, false, false);
    stage.manager.reloaded(None);
    stage.manager.reloaded(None);
    stage.turn(20, false, false);
    let heard = stage.heard();
    assert!(heard.len() == 2 && heard[0].starts_with("RELOADING=1\nMONOTONIC_USEC="), "{heard:?}");
    assert_eq!(heard[1], "READY=1");
}

#[test]
fn what_is_not_taken_is_said_again_and_complained_of_once() {
    let mut stage = stage(Some(Duration::from_secs(60)));
    std::fs::remove_file(&stage.path).expect("removed");
    let turned = stage.turn(0, true, false);
    assert!(turned.fault.is_some_and(|fault| fault.contains("No such file")));
    assert_eq!(turned.wanted, Some(Instant::from_millis(1_000)));
    assert_eq!(stage.turn(1_000, false, false).fault, None);
    stage.hears = hears(&stage.path);
    assert_eq!(stage.turn(1_500, false, false).wanted, Some(Instant::from_millis(2_000)), "not yet again");
    stage.turn(2_000, false, false);
    assert_eq!(stage.heard(), ["READY=1", STATUS]);
    std::fs::remove_file(&stage.path).expect("removed");
    stage.manager.noted(&note("drain.start"));
    assert!(stage.turn(3_000, true, true).fault.is_some(), "another time is another complaint");
}
