//! How the saves database is opened: the pragmas that make an acknowledged save durable.
//!
//! Called by `saves::store` and `backup`. WAL, so that readers never wait for the writer; FULL, so that a commit is
//! on disk when it returns; pages of 8 KiB, because most saves then lie beside their row; freed bytes are overwritten,
//! because a deleted save is removed, not hidden.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

/// How long a connection waits for a lock of another one.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The version of the schema, kept in the file.
const VERSION: u32 = 1;
/// "tfsv": says what the file is.
const APPLICATION: u32 = 0x7466_7376;

const SCHEMA: &str = "
    CREATE TABLE save_codes (
        key BLOB NOT NULL UNIQUE CHECK (length(key) = 32),
        position TEXT NOT NULL CHECK (position IN ('encrypted', 'plaintext')),
        word TEXT CHECK (word IS NULL OR position = 'plaintext'),
        attempts_left INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        day INTEGER NOT NULL,
        body BLOB NOT NULL
    ) STRICT;
";

/// Why the database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// SQLite said no.
    #[error("cannot open the saves database {path}: {source}")]
    Open {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// It is a database of something else.
    #[error("{path} is not a saves database; move it away or name another `data` folder")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It was written by a newer program.
    #[error("{path} has schema {found}, newer than the {VERSION} this program knows; update the program")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

/// Opens the database for its one writer, creating it where there is none.
pub fn open_writer(path: &Path) -> Result<Connection, DbError> {
    let open = |source| DbError::Open { path: path.to_owned(), source };
    let db =
        connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE).map_err(open)?;
    let pragma = |name: &str| db.pragma_query_value(None, name, |r| r.get::<_, u32>(0)).map_err(open);
    let is_new = pragma("schema_version")? == 0;
    if is_new {
        // Before anything is written, or it has no effect.
        db.pragma_update(None, "page_size", 8192).map_err(open)?;
    } else if pragma("application_id")? != APPLICATION {
        return Err(DbError::Foreign { path: path.to_owned() });
    }
    let found = pragma("user_version")?;
    if found > VERSION {
        return Err(DbError::Newer { path: path.to_owned(), found });
    }
    db.pragma_update(None, "journal_mode", "wal").map_err(open)?;
    db.pragma_update(None, "synchronous", "full").map_err(open)?;
    db.pragma_update(None, "secure_delete", true).map_err(open)?;
    // What a burst leaves of the log is cut off at the next checkpoint.
    db.pragma_update(None, "journal_size_limit", 64 << 20).map_err(open)?;
    if is_new {
        let schema = format!(
            "BEGIN IMMEDIATE; {SCHEMA} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT;"
        );
        db.execute_batch(&schema).map_err(open)?;
    }
    Ok(db)
}

/// Opens the database for reading, beside its writer.
pub fn open_reader(path: &Path) -> Result<Connection, DbError> {
    let open = |source| DbError::Open { path: path.to_owned(), source };
    let db = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(open)?;
    db.pragma_update(None, "query_only", true).map_err(open)?;
    Ok(db)
}

fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    // A connection is used by one thread at a time.
    let db = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    db.busy_timeout(PATIENCE)?;
    // SQLite seeds its random numbers from a file when it first needs one, and that may be too late.
    db.query_row("SELECT randomblob(1)", [], |_| Ok(()))?;
    // Nothing is written beside the database and its log.
    db.pragma_update(None, "temp_store", "memory")?;
    Ok(db)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a record holds is what the saves page says it holds. Another column needs another page.
    #[test]
    fn a_record_has_these_columns_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let db = open_writer(&dir.path().join("saves.db")).unwrap();
        let list = |sql: &str| -> Vec<String> {
            let mut rows = db.prepare(sql).unwrap();
            rows.query_map([], |r| r.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
        };
        assert_eq!(list("SELECT name FROM sqlite_schema WHERE type = 'table'"), ["save_codes"]);
        let indexes = list("SELECT name FROM sqlite_schema WHERE type <> 'table'");
        assert_eq!(indexes, ["sqlite_autoindex_save_codes_1"]);
        let columns = list("SELECT name FROM pragma_table_info('save_codes') ORDER BY name");
        assert_eq!(columns, ["attempts_left", "body", "day", "key", "position", "revision", "word"]);
    }

    #[test]
    fn an_acknowledged_commit_is_on_disk() {
        let dir = tempfile::tempdir().unwrap();
        let db = open_writer(&dir.path().join("saves.db")).unwrap();
        let pragma = |name| db.pragma_query_value(None, name, |r| r.get::<_, i64>(0)).unwrap();
        assert_eq!((pragma("synchronous"), pragma("page_size"), pragma("secure_delete")), (2, 8192, 1));
        let journal: String = db.pragma_query_value(None, "journal_mode", |r| r.get(0)).unwrap();
        assert_eq!(journal, "wal");
    }

    #[test]
    fn other_files_are_not_taken_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("saves.db");
        std::fs::write(&path, "not a database, but long enough to be read as the head of one".repeat(9))
            .unwrap();
        assert!(open_writer(&path).unwrap_err().to_string().contains("file is not a database"));
        std::fs::remove_file(&path).unwrap();
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
        assert!(open_writer(&path).unwrap_err().to_string().contains("is not a saves database"));
        std::fs::remove_file(&path).unwrap();
        open_writer(&path).unwrap().pragma_update(None, "user_version", 9).unwrap();
        assert!(open_writer(&path).unwrap_err().to_string().contains("schema 9, newer than the 1"));
    }
}
