use super::*;

/// A line of `/proc/<pid>/stat` with the given name, as a 6.x kernel writes it.
fn line(comm: &str, state: char, threads: u32) -> String {
    format!(
        "4242 ({comm}) {state} 17 4242 17 0 -1 4194560 120 0 0 0 1 2 0 0 20 0 {threads} 0 987654321 2500000 300 \
         18446744073709551615 1 1 0 0 0 0 0 0 16384 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    )
}

#[test]
fn stat_survives_names_made_to_confuse_it() {
    for comm in ["cat", "a b c", ") R 1 1 1", "((()", "))))", "x) Z 1 (y", "", "new\nline", "tab\tname"] {
        let stat = Stat::parse(line(comm, 'S', 3).as_bytes()).unwrap_or_else(|| panic!("{comm:?}"));
        assert_eq!(stat.comm, comm.as_bytes());
        assert_eq!((stat.pid.raw(), stat.state, stat.threads, stat.start), (4242, b'S', 3, 987_654_321));
        assert_eq!((stat.parent.map(Pid::raw), stat.group.map(Pid::raw)), (Some(17), Some(4242)), "{comm:?}");
    }
}

#[test]
fn stat_reads_names_that_are_not_text() {
    let mut bytes = line("@@", 'R', 1).into_bytes();
    let at = bytes.iter().position(|b| *b == b'@').expect("the name is there");
    bytes[at..at + 2].copy_from_slice(&[0xff, 0xfe]);
    assert_eq!(Stat::parse(&bytes).expect("parses").comm, [0xff, 0xfe]);
}

#[test]
fn stat_refuses_lines_that_end_early_and_never_panics() {
    let whole = line("cat", 'S', 1);
    let start_at = whole.find("987654321").expect("the start time is there");
    for cut in 0..start_at {
        assert_eq!(Stat::parse(&whole.as_bytes()[..cut]), None, "cut at {cut}");
    }
    for bad in ["", "(", ")", ")(", "0 (x) S 1 1", "-1 (x) S", "x (y) S 1 1 1"] {
        assert_eq!(Stat::parse(bad.as_bytes()), None, "{bad:?}");
    }
}

#[test]
fn a_parent_outside_the_namespace_is_none() {
    let outside = line("init", 'S', 1).replacen(" 17 4242 ", " 0 0 ", 1);
    let stat = Stat::parse(outside.as_bytes()).expect("parses");
    assert_eq!((stat.parent, stat.group), (None, None));
}

#[test]
fn a_zombie_leader_with_living_threads_is_alive() {
    let of = |state, threads| Stat::parse(line("x", state, threads).as_bytes()).expect("parses");
    assert!(of('Z', 1).is_dead());
    assert!(of('X', 0).is_dead());
    assert!(!of('Z', 2).is_dead());
    assert!(!of('T', 1).is_dead());
}

#[test]
fn own_stat_and_children_are_read_over_all_threads() {
    // The child belongs to a thread that is not the one that walks.
    let (pid, done) = std::thread::spawn(|| {
        let child = std::process::Command::new("/bin/cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat starts");
        (Pid::new(child.id() as i32).expect("a pid is positive"), child)
    })
    .join()
    .expect("the thread ends");
    let found = descendants(Pid::own()).expect("the walk works");
    let cat = found.iter().find(|p| p.pid == pid).expect("the child of the other thread is met");
    assert_eq!(cat.parent, Some(Pid::own()));
    assert!(cat.identity().is_alive());
    assert!(!Identity { start: cat.start + 1, ..cat.identity() }.is_alive(), "a later holder is another");
    let mut done = done;
    done.kill().and_then(|()| done.wait()).expect("cat ends");
    assert_eq!(stat(pid).expect("stat reads"), None);
    assert!(children(pid).expect("a gone process has no children").is_empty());
}
