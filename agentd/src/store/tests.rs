//! The store against a disk that does what disks do.

use super::database::Database;
use super::*;
use agentd_core::event::Event;
use agentd_core::store::{Class, ConversationRow, Saved, Write};
use agentd_host::mailbox::Mailbox;
use agentd_host::outside::StoreAnswer;
use rusqlite::Connection;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

fn options(directory: &Path) -> Options {
    Options { directory: directory.join("state"), min_free: 0 }
}

fn talk(last: u64, text: &str) -> Write {
    let spoken = agentd_core::wire::message::ContextMessage {
        role: agentd_core::wire::message::ContextRole::User,
        content: text.to_owned(),
    };
    Write::Conversation(Box::new(ConversationRow { last, past: vec![spoken], ..ConversationRow::default() }))
}

/// A store and who hears its answers.
struct Desk {
    store: Option<Store>,
    mailbox: Mailbox,
    seq: u64,
}

impl Desk {
    fn open(options: &Options) -> (Desk, Saved) {
        Desk::with(options, |_| {})
    }

    fn with(options: &Options, before: impl FnMut(&Database) + Send + 'static) -> (Desk, Saved) {
        let (opened, saved) = Opened::open(options).expect("it opens");
        let mailbox = Mailbox::new().expect("an eventfd");
        let store = opened.before(before).answer_to(mailbox.poster()).expect("a thread");
        (Desk { store: Some(store), mailbox, seq: 0 }, saved)
    }

    fn persist(&mut self, class: Class, writes: Vec<Write>) {
        self.seq += 1;
        let store = self.store.as_ref().expect("it is open");
        assert_eq!(store.persist(self.seq, class, writes), StoreAnswer::Later);
    }

    /// Waits for what is on its way; the answers, in order.
    fn answers(&mut self) -> Vec<Event> {
        self.store.take().expect("it is open").close();
        std::iter::from_fn(|| self.mailbox.take()).collect()
    }
}

#[test]
fn what_was_saved_is_there_at_the_next_start_and_answered_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = options(folder.path());
    let (mut desk, saved) = Desk::open(&options);
    assert_eq!(saved, Saved::default());
    for n in 1..=500 {
        desk.persist(Class::Progress, vec![talk(n, "hello"), Write::Handles(n)]);
    }
    let answers = desk.answers();
    assert_eq!(answers, (1..=500).map(|seq| Event::Stored { seq }).collect::<Vec<_>>());
    let (_desk, saved) = Desk::open(&options);
    assert_eq!((saved.handles, saved.conversation.map(|row| row.last)), (500, Some(500)));
}

#[test]
fn all_that_waits_is_one_transaction() {
    let folder = tempfile::tempdir().expect("a folder");
    let (count, hold) =
        (std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0)), std::sync::mpsc::channel::<()>());
    let counted = std::sync::Arc::clone(&count);
    let (release, held) = hold;
    let (mut desk, _) = Desk::with(&options(folder.path()), move |_| {
        if counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 {
            held.recv().expect("released");
        }
    });
    for n in 1..=300 {
        desk.persist(Class::Progress, vec![Write::Handles(n)]);
    }
    release.send(()).expect("it waits");
    assert_eq!(desk.answers().len(), 300);
    let made = count.load(std::sync::atomic::Ordering::SeqCst);
    assert!(made <= 3, "{made} transactions");
}

#[test]
fn nobody_else_can_look_in_and_a_second_daemon_is_told_who_holds_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = options(folder.path());
    let (desk, _) = Desk::open(&options);
    let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&options.directory), 0o700);
    for name in ["agentd.db", "agentd.db-wal", "agentd.db-shm", "lock"] {
        assert_eq!(mode(&options.directory.join(name)), 0o600, "{name}");
    }
    let refused = Opened::open(&options).expect_err("it is held").to_string();
    let own = format!("in use by pid {} since 20", std::process::id());
    assert!(refused.contains(&own) && refused.contains("store.path"), "{refused}");
    drop(desk);
    Opened::open(&options).expect("it is free again");
}

#[test]
fn values_that_are_torn_or_foreign_are_put_aside_once_and_the_rest_loads() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = options(folder.path());
    let (mut desk, _) = Desk::open(&options);
    desk.persist(Class::Progress, vec![talk(3, "hello"), Write::Handles(7), Write::Plan(None)]);
    desk.answers();
    let file = Connection::open(options.directory.join(FILE)).expect("a database");
    let torn = "UPDATE entry SET value = substr(value, 1, length(value) / 2) WHERE kind = 'conversation'";
    file.execute(torn, []).expect("it is torn");
    file.execute("INSERT INTO entry VALUES ('orders', 'x', x'00', 0)", []).expect("it is foreign");
    file.execute("UPDATE entry SET key = 'elsewhere' WHERE kind = 'plan'", []).expect("it is moved");
    drop(file);
    let (desk, saved) = Desk::open(&options);
    assert_eq!((saved.handles, &saved.conversation), (7, &None));
    let mut kinds: Vec<&str> = saved.quarantined.iter().map(|aside| aside.kind.as_str()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["conversation", "orders", "plan"]);
    drop(desk);
    let (_desk, again) = Desk::open(&options);
    assert_eq!(again.quarantined, []);
    let file = Connection::open(options.directory.join(FILE)).expect("a database");
    let kept: i64 = file.query_row("SELECT count(*) FROM quarantine", [], |row| row.get(0)).expect("a count");
    assert_eq!(kept, 3, "nothing is lost");
}

#[test]
fn a_file_that_is_not_ours_or_of_a_later_agentd_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = options(folder.path());
    std::fs::create_dir_all(&options.directory).expect("a folder");
    let path = options.directory.join(FILE);
    std::fs::write(&path, "dear diary, ".repeat(1_000)).expect("written");
    let refused = Opened::open(&options).expect_err("no database").to_string();
    assert!(refused.contains("not a database") && refused.contains("nothing in it was changed"), "{refused}");
    assert!(std::fs::read_to_string(&path).expect("it is there").starts_with("dear diary"));
    std::fs::remove_file(&path).expect("removed");
    let other = Connection::open(&path).expect("a database");
    other.execute_batch("CREATE TABLE photos (id)").expect("a table");
    drop(other);
    let refused = Opened::open(&options).expect_err("another's").to_string();
    assert!(refused.contains("another program"), "{refused}");
    std::fs::remove_file(&path).expect("removed");
    drop(Opened::open(&options).expect("a new one"));
    let file = Connection::open(&path).expect("a database");
    file.pragma_update(None, "user_version", 99).expect("a pragma");
    drop(file);
    let refused = Opened::open(&options).expect_err("newer").to_string();
    assert!(refused.contains("has schema 99") && refused.contains("knows 1"), "{refused}");
}

#[test]
fn f34_a_full_disk_a_lock_and_too_little_space_are_told_and_pass() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = options(folder.path());
    let (mut desk, _) = Desk::with(&options, |database| database.limit_pages(1));
    desk.persist(Class::Ending, vec![talk(1, &"x".repeat(1 << 20))]);
    let full = desk.answers();
    let Event::StoreFailed { error, retryable: true, .. } = &full[0] else { panic!("{full:?}") };
    assert!(error.contains("full"), "{error}");

    let (mut desk, _) = Desk::open(&options);
    let other = Connection::open(options.directory.join(FILE)).expect("a database");
    other.execute_batch("BEGIN EXCLUSIVE").expect("locked");
    desk.persist(Class::Ending, vec![talk(1, "hello")]);
    let locked = desk.answers();
    let Event::StoreFailed { error, retryable: true, .. } = &locked[0] else { panic!("{locked:?}") };
    assert!(error.contains("locked"), "{error}");
    drop(other);

    let scarce = Options { min_free: u64::MAX, ..options.clone() };
    let (mut desk, _) = Desk::open(&scarce);
    desk.persist(Class::Spawn, vec![Write::Handles(1)]);
    desk.persist(Class::Ending, vec![talk(2, "hello")]);
    let answers = desk.answers();
    let Event::StoreFailed { error, retryable: true, .. } = &answers[0] else { panic!("{answers:?}") };
    assert!(error.contains("store.min_free"), "{error}");
    assert_eq!(answers[1], Event::Stored { seq: 2 });
    let (_desk, saved) = Desk::open(&options);
    assert_eq!((saved.handles, saved.conversation.map(|row| row.last)), (0, Some(2)));
}

#[test]
fn a_read_only_file_is_told_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = options(folder.path());
    drop(Opened::open(&options).expect("a new one"));
    let path = options.directory.join(FILE);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).expect("changed");
    match Opened::open(&options) {
        Err(refused) => assert!(refused.to_string().contains("Permission denied"), "{refused}"),
        // Root writes to what it likes.
        Ok(_) => assert!(rustix::process::geteuid().is_root()),
    }
}

#[test]
fn the_state_directory_is_where_it_is_said_to_be() {
    for (named, [state, xdg, home], wanted) in [
        (Some("/srv/state"), ["/var/lib/a", "/x", "/home/ann"], Some("/srv/state")),
        (None, ["/var/lib/a:/var/lib/b", "/x", "/home/ann"], Some("/var/lib/a")),
        (None, ["relative", "/x", "/home/ann"], None),
        (None, ["", "/x", "/home/ann"], Some("/x/agentd/crew")),
        (None, ["", "relative", "/home/ann"], Some("/home/ann/.local/state/agentd/crew")),
        (None, ["", "", "relative"], None),
        (None, ["", "", ""], None),
    ] {
        let variable = |name: &str| match name {
            "STATE_DIRECTORY" => Some(state.into()),
            "XDG_STATE_HOME" => Some(xdg.into()),
            "HOME" => Some(home.into()),
            _ => None,
        };
        let found = state_directory(named.map(Into::into), "crew", &variable).ok();
        assert_eq!(found.as_deref(), wanted.map(Path::new), "{named:?} {state} {xdg} {home}");
    }
}

/// An fsync that takes seconds holds up nobody who saves (S10.2).
#[test]
fn a_slow_disk_never_makes_the_caller_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    let (release, held) = std::sync::mpsc::channel::<()>();
    let (mut desk, _) = Desk::with(&options(folder.path()), move |_| {
        let _released = held.recv_timeout(Duration::from_secs(60));
    });
    // Were it to wait for the disk, this would not come to an end before the disk is let go on.
    for n in 1..=1_000 {
        desk.persist(Class::Progress, vec![Write::Handles(n)]);
    }
    assert!(desk.mailbox.take().is_none());
    drop(release);
    assert_eq!(desk.answers().len(), 1_000);
}
