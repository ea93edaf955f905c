//! The file: its schema and how that moves on, its values with their checksums, and what of it cannot be read.

use super::{FILE, StoreError};
use agentd_core::store::{Entry, Quarantined, Saved, Write};
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, params};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a statement waits for a lock of somebody else's. The supervisor tries again; the thread does not.
const BUSY: Duration = Duration::from_millis(250);

/// What tells a file of agentd's from any other database: "agtd".
const APPLICATION: i32 = 0x6167_7464;

/// The schema's steps; a file's `user_version` says how many it has taken. They are only ever added to.
const STEPS: [&str; 1] = ["
    CREATE TABLE entry (
        kind TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, sum INTEGER NOT NULL,
        PRIMARY KEY (kind, key)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE quarantine (
        id INTEGER PRIMARY KEY, at INTEGER NOT NULL DEFAULT (unixepoch()),
        kind TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, sum INTEGER NOT NULL, why TEXT NOT NULL
    ) STRICT;
"];

/// See the module.
#[derive(Debug)]
pub(super) struct Database {
    connection: Connection,
}

/// Why a batch was not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) error: String,
    pub(super) retryable: bool,
}

impl Database {
    /// Opens the file in `directory`, or makes it.
    pub(super) fn open(directory: &Path) -> Result<Database, StoreError> {
        let path = directory.join(FILE);
        // SQLite would make it readable by others.
        OpenOptions::new().append(true).create(true).mode(0o600).open(&path).map_err(|error| {
            StoreError::System { action: "open it for writing", path: path.clone(), error }
        })?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(&path, flags).map_err(|error| told("open it", &path, error))?;
        connection.busy_timeout(BUSY).map_err(|error| told("open it", &path, error))?;
        let mut database = Database { connection };
        database.is_ours(&path)?;
        database.set_up().map_err(|error| told("set it up", &path, error))?;
        database.move_on(&path)?;
        Ok(database)
    }

    /// Whether it is agentd's, or new.
    fn is_ours(&self, path: &Path) -> Result<(), StoreError> {
        let one = |sql| self.connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        let application = one("PRAGMA application_id").map_err(|error| told("read it", path, error))?;
        let tables =
            one("SELECT count(*) FROM sqlite_schema").map_err(|error| told("read it", path, error))?;
        if application == i64::from(APPLICATION) || (application == 0 && tables == 0) {
            return Ok(());
        }
        let what = format!("a database of another program (application {application}, {tables} tables)");
        Err(StoreError::Foreign { path: path.to_owned(), what })
    }

    fn set_up(&self) -> rusqlite::Result<()> {
        self.connection.pragma_update(None, "application_id", APPLICATION)?;
        self.connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        self.connection.pragma_update(None, "synchronous", "FULL")
    }

    /// Takes the steps that the file has not taken.
    fn move_on(&mut self, path: &Path) -> Result<(), StoreError> {
        let failed = |error| told("move its schema on", path, error);
        let seen: u32 =
            self.connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
        let known = u32::try_from(STEPS.len()).unwrap_or(u32::MAX);
        if seen > known {
            return Err(StoreError::Newer { path: path.to_owned(), seen, known });
        }
        for (version, step) in (1u32..).zip(STEPS).skip(seen as usize) {
            let change = self.connection.transaction().map_err(failed)?;
            change.execute_batch(step).map_err(failed)?;
            change.pragma_update(None, "user_version", version).map_err(failed)?;
            change.commit().map_err(failed)?;
        }
        Ok(())
    }

    /// Everything that can be read. What cannot be is put aside, so that the next start does not meet it again (S10.5).
    pub(super) fn load(&mut self, path: &Path) -> Result<Saved, StoreError> {
        let failed = |error| told("read it", path, error);
        let (mut whole, mut torn) = (Vec::new(), Vec::new());
        {
            let mut all =
                self.connection.prepare("SELECT kind, key, value, sum FROM entry").map_err(failed)?;
            let mut rows = all.query([]).map_err(failed)?;
            while let Some(row) = rows.next().map_err(failed)? {
                let text = |at| row.get::<_, String>(at).map_err(failed);
                let (kind, key) = (text(0)?, text(1)?);
                let (value, sum): (Vec<u8>, i64) = (row.get(2).map_err(failed)?, row.get(3).map_err(failed)?);
                if sum == sum_of(&kind, &key, &value) {
                    whole.push((kind, key, value));
                } else {
                    torn.push((kind, key));
                }
            }
        }
        let entries = whole.iter().map(|(kind, key, value)| (kind.as_str(), key.as_str(), value.as_slice()));
        let mut saved = Saved::read(entries);
        for (kind, key) in &torn {
            saved.put_aside(kind, key, &"its checksum is wrong");
        }
        self.quarantine(&saved.quarantined).map_err(failed)?;
        Ok(saved)
    }

    fn quarantine(&mut self, all: &[Quarantined]) -> rusqlite::Result<()> {
        if all.is_empty() {
            return Ok(());
        }
        let change = self.connection.transaction()?;
        for Quarantined { kind, key, why } in all {
            let aside = "INSERT INTO quarantine (kind, key, value, sum, why)
                         SELECT kind, key, value, sum, ?3 FROM entry WHERE kind = ?1 AND key = ?2";
            change.execute(aside, params![kind, key, why])?;
            change.execute("DELETE FROM entry WHERE kind = ?1 AND key = ?2", params![kind, key])?;
        }
        change.commit()
    }

    /// Makes all these changes, or none.
    pub(super) fn apply(&mut self, batch: &[Entry]) -> Result<(), Fault> {
        let made = self.transaction().and_then(|change| {
            for entry in batch {
                put(&change, entry)?;
            }
            change.commit()
        });
        made.map_err(|error| fault(&error))
    }

    fn transaction(&mut self) -> rusqlite::Result<Transaction<'_>> {
        self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
    }

    /// Moves what is in the log into the file, as far as that can be done now.
    pub(super) fn close(self) {
        // What is left in it is read at the next start.
        let _left = self.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
    }

    /// The file can grow to so many pages: a disk that is full, for tests.
    #[cfg(test)]
    pub(super) fn limit_pages(&self, pages: u32) {
        self.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).expect("a pragma");
    }
}

/// A change as it goes into the file.
pub(super) fn entry_of(write: &Write) -> Result<Entry, Fault> {
    Entry::of(write)
        .map_err(|error| Fault { error: format!("it cannot be written: {error}"), retryable: false })
}

fn put(change: &Transaction<'_>, Entry { kind, key, value }: &Entry) -> rusqlite::Result<()> {
    let kind = kind.name();
    match value {
        Some(value) => {
            let sql = "INSERT INTO entry (kind, key, value, sum) VALUES (?1, ?2, ?3, ?4)
                       ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, sum = excluded.sum";
            change.execute(sql, params![kind, key, value, sum_of(kind, key, value)])?;
        }
        None => {
            change.execute("DELETE FROM entry WHERE kind = ?1 AND key = ?2", params![kind, key])?;
        }
    }
    Ok(())
}

/// The checksum of a value where it stands: under another key it is wrong.
fn sum_of(kind: &str, key: &str, value: &[u8]) -> i64 {
    let mut sum = crc32fast::Hasher::new();
    for part in [kind.as_bytes(), b"\0", key.as_bytes(), b"\0", value] {
        sum.update(part);
    }
    i64::from(sum.finalize())
}

/// What SQLite's error means to a save.
fn fault(error: &rusqlite::Error) -> Fault {
    let retryable = match error.sqlite_error_code() {
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::DiskFull
            | ErrorCode::ReadOnly
            | ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::OutOfMemory
            | ErrorCode::FileLockingProtocolFailed
            | ErrorCode::OperationAborted
            | ErrorCode::OperationInterrupted,
        ) => true,
        Some(_) | None => false,
    };
    Fault { error: error.to_string(), retryable }
}

/// What SQLite's error means to a start.
fn told(action: &'static str, path: &Path, error: rusqlite::Error) -> StoreError {
    let path: PathBuf = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => StoreError::Foreign { path, what: "not a database".to_owned() },
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Foreign { path, what: format!("damaged ({error})") },
        Some(_) | None => StoreError::Sqlite { action, path, error },
    }
}
