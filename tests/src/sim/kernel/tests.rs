//! The fake machine keeps the rules of a real one.

use super::*;

fn offspring() -> Offspring {
    Offspring::default()
}

fn ends(effects: &[Effect]) -> Vec<Serial> {
    effects
        .iter()
        .filter_map(|e| match e {
            Effect::Ends { serial, .. } => Some(*serial),
            Effect::Terminated(_) | Effect::Continued(_) => None,
        })
        .collect()
}

#[test]
fn a_zombie_pins_its_pid_and_a_reaped_one_is_taken_at_once() {
    let mut k = Kernel::new(2);
    let (a, pid) = k.spawn(NodeId(1), 0).expect("room");
    k.spawn(NodeId(2), 0).expect("room");
    assert!(k.spawn(NodeId(3), 0).is_none(), "no pid is left");
    assert!(!k.reap(NodeId(1)), "nothing to wait for while it lives");
    k.end(a).expect("it lived");
    assert!(k.end(a).is_none(), "it ends once");
    assert!(k.spawn(NodeId(3), 0).is_none(), "a zombie is still a process");
    assert!(k.reap(NodeId(1)));
    assert!(!k.reap(NodeId(1)));
    let (_, again) = k.spawn(NodeId(3), 0).expect("room");
    assert_eq!(again, pid);
}

#[test]
fn a_group_kill_misses_who_left_and_the_sweep_does_not() {
    let mut k = Kernel::new(9);
    let (root, _) = k.spawn(NodeId(1), 0).expect("room");
    let stays = k.fork_below(NodeId(1), &offspring()).expect("room");
    let left = k.fork_below(NodeId(1), &Offspring { escapes: true, ..offspring() }).expect("room");
    assert_eq!(ends(&k.kill_group(NodeId(1))), [root, stays]);
    assert_eq!(ends(&k.kill_group(NodeId(1))), [], "they are dying already");
    k.end(root).expect("it lived");
    k.end(stays).expect("it lived");
    let (killed, remaining, effects) = k.sweep(NodeId(1), false);
    assert_eq!((killed, remaining), (1, 1));
    assert_eq!(ends(&effects), [left]);
    k.end(left).expect("it lived");
    assert_eq!(k.orphan_zombie(), Some(left), "it had landed on the daemon");
    assert_eq!(k.sweep(NodeId(1), false), (0, 0, vec![]));
    assert_eq!(k.orphan_zombie(), None);
}

#[test]
fn keepers_see_the_end_of_their_child_and_are_killed_only_when_asked() {
    let mut k = Kernel::new(9);
    let (root, _) = k.spawn(NodeId(1), 0).expect("room");
    let keeper = Offspring { escapes: true, keeper_ms: Some(300), ..offspring() };
    let keeper = k.fork_below(NodeId(1), &keeper).expect("room");
    let ended = k.end(root).expect("it lived");
    assert_eq!(ended.effects, [Effect::Ends { serial: keeper, after_ms: 300, exit: Exit::Code(0) }]);
    assert_eq!(k.sweep(NodeId(1), false), (0, 1, vec![]));
    assert_eq!(ends(&k.sweep(NodeId(1), true).2), [keeper]);
}

#[test]
fn one_that_forks_on_leaves_another_when_killed() {
    let mut k = Kernel::new(9);
    let (root, _) = k.spawn(NodeId(1), 0).expect("room");
    let forking = k.fork_below(NodeId(1), &Offspring { respawns: 1, ..offspring() }).expect("room");
    k.end(root).expect("it lived");
    k.sweep(NodeId(1), false);
    k.end(forking).expect("it lived");
    assert_eq!(k.below(NodeId(1)).count(), 1);
    let (_, remaining, effects) = k.sweep(NodeId(1), false);
    assert_eq!(remaining, 1);
    k.end(ends(&effects)[0]).expect("it lived");
    assert_eq!(k.ours().count(), 0);
}

#[test]
fn sigterm_with_sigcont_wakes_a_stopped_program() {
    let mut k = Kernel::new(9);
    k.spawn(NodeId(1), 0).expect("room");
    k.stop(NodeId(1));
    assert!(k.alive(NodeId(1)) && !k.running(NodeId(1)));
    let effects = k.terminate_group(NodeId(1));
    assert_eq!(effects, [Effect::Continued(NodeId(1)), Effect::Terminated(NodeId(1))]);
    assert!(k.running(NodeId(1)));
}
