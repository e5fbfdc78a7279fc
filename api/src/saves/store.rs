//! The records: readers in parallel, and one writer thread that commits in groups.
//!
//! A change is answered after the commit it was part of. Changes of one group go in by key, so that the order of rows
//! tells no more about time than the group does; of one key they keep their order. A group that fails is tried again
//! one by one, so that a small save is not refused for a large neighbour. A full queue refuses; nothing waits for it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Transaction, TransactionBehavior, params};
use tokio::sync::{mpsc, oneshot};

use super::{Key, Position, Refusal, Revision, Today};
use crate::db::{self, DbError};

/// A record without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// What the server can read of it.
    pub position: Position,
    /// The hash of its word, if it has one.
    pub word: Option<String>,
    /// What is left of the tries at its word; below zero, the waits that have been.
    pub tries_left: i64,
    /// Its revision.
    pub revision: Revision,
    /// The day on which it was last read or written.
    pub day: Today,
}

/// What happens to the word of a record that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewWord {
    /// It stays as it is.
    Keep,
    /// It becomes the one with this hash.
    Set(String),
    /// There is none any more.
    Remove,
}

/// A change of one record.
#[derive(Debug)]
pub enum Change {
    /// Make it; it must not be there.
    Create {
        /// What the server can read of it.
        position: Position,
        /// Its bytes.
        body: bytes::Bytes,
        /// The hash of its word.
        word: Option<String>,
    },
    /// Put another body in the place of that revision.
    Replace {
        /// The revision that is replaced.
        expected: Revision,
        /// What the server can read of it.
        position: Position,
        /// Its bytes.
        body: bytes::Bytes,
        /// What becomes of its word.
        word: NewWord,
    },
    /// Remove that revision.
    Delete {
        /// The revision that is removed.
        expected: Revision,
    },
    /// It was read today.
    Touch,
    /// A try at its word, paid before the word is looked at.
    SpendTry {
        /// The revision whose word is tried.
        expected: Revision,
    },
    /// The word was right: its tries are all there again.
    GiveTriesBack,
    /// Remove it if nobody has used it since that day.
    Expire {
        /// The first day that still counts as used.
        before: Today,
    },
}

/// What a change led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// The revision that is there now.
    pub revision: Revision,
    /// What is left of the tries at its word; below zero, the waits that have been.
    pub tries_left: i64,
}

struct Order {
    key: Key,
    change: Change,
    answer: oneshot::Sender<Result<Done, Refusal>>,
}

/// Counters of the writer.
#[derive(Debug, Default)]
pub struct Counters {
    /// Commits.
    pub commits: AtomicU64,
    /// Changes that went into them.
    pub changes: AtomicU64,
}

/// The saves of an installation.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    readers: Mutex<Vec<Connection>>,
    orders: mpsc::Sender<Order>,
    /// What the writer did.
    pub counters: Arc<Counters>,
}

/// Sizes of the writer's queue, from the policy.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Changes that wait.
    pub waiting_max: usize,
    /// Changes of one commit.
    pub together_max: usize,
    /// Wrong words of a new record that cost no wait.
    pub tries: u32,
}

/// A store that is open and not yet served.
#[derive(Debug)]
pub struct Opened {
    store: Store,
    writer: Connection,
    orders: mpsc::Receiver<Order>,
    sizes: Sizes,
}

impl Opened {
    /// Whether any record has a word.
    pub fn has_words(&self) -> Result<bool, rusqlite::Error> {
        let sql = "SELECT EXISTS (SELECT 1 FROM save_codes WHERE word IS NOT NULL)";
        self.writer.query_row(sql, [], |r| r.get(0))
    }

    /// Starts the writer. It ends when the store is dropped and everything that was accepted is on disk.
    pub fn start(self) -> std::io::Result<(Store, JoinHandle<()>)> {
        let Self { store, writer, orders, sizes } = self;
        let counters = Arc::clone(&store.counters);
        let thread = std::thread::Builder::new()
            .name("saves-writer".to_owned())
            .spawn(move || Writer { db: writer, sizes, counters }.run(orders))?;
        Ok((store, thread))
    }
}

impl Store {
    /// Opens the database at `path`, creating it where there is none, with `readers` connections for reading.
    pub fn open(path: &Path, sizes: Sizes, readers: usize) -> Result<Opened, DbError> {
        let writer = db::open_writer(path)?;
        let readers = (0..readers.max(1)).map(|_| db::open_reader(path)).collect::<Result<_, _>>()?;
        let (sender, orders) = mpsc::channel(sizes.waiting_max);
        let counters = Arc::default();
        let store = Self { path: path.to_owned(), readers: Mutex::new(readers), orders: sender, counters };
        Ok(Opened { store, writer, orders, sizes })
    }

    /// The record under `key` without its body.
    pub fn head(&self, key: &Key) -> Result<Option<Head>, Refusal> {
        self.read(|db| {
            let mut sql = db.prepare_cached(
                "SELECT position, word, revision, attempts_left, day FROM save_codes WHERE key = ?1",
            )?;
            sql.query_row([&key.as_bytes()[..]], head_of).optional()
        })
    }

    /// The record under `key`.
    pub fn load(&self, key: &Key) -> Result<Option<(Head, Vec<u8>)>, Refusal> {
        self.read(|db| {
            let mut sql = db.prepare_cached(
                "SELECT position, word, revision, attempts_left, day, body FROM save_codes WHERE key = ?1",
            )?;
            sql.query_row([&key.as_bytes()[..]], |row| Ok((head_of(row)?, row.get(5)?))).optional()
        })
    }

    /// Removes records that nobody has used since `before`, and says how many those were. It looks through all of them
    /// a piece at a time, and gives way to whoever saves.
    pub async fn expire(&self, before: Today) -> Result<usize, Refusal> {
        let (mut removed, mut after) = (0, Some(0));
        while let Some(from) = after {
            let keys;
            (keys, after) = self.idle(before, from)?;
            for key in keys {
                while self.waiting() > 0 {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                match self.change(key, Change::Expire { before }).await {
                    Err(Refusal::Missing) => removed += 1,
                    // Used in the meantime.
                    Err(Refusal::Newer(_)) => {}
                    Err(refusal) => return Err(refusal),
                    Ok(_) => {}
                }
            }
            tokio::task::yield_now().await;
        }
        Ok(removed)
    }

    /// Keys that nobody has used since `before` among the next records, and where to look on.
    fn idle(&self, before: Today, after: i64) -> Result<(Vec<Key>, Option<i64>), Refusal> {
        self.read(|db| {
            let sql = "SELECT rowid, key, day FROM save_codes WHERE rowid > ?1 ORDER BY rowid LIMIT 500";
            let mut sql = db.prepare_cached(sql)?;
            let mut rows = sql.query([after])?;
            let (mut keys, mut last) = (Vec::new(), None);
            while let Some(row) = rows.next()? {
                last = Some(row.get(0)?);
                if row.get::<_, i64>(2)? < before.0 {
                    keys.push(Key(row.get(1)?));
                }
            }
            Ok((keys, last))
        })
    }

    /// A read is a few pages that the system mostly has in memory: it takes less time than handing it to another
    /// thread would.
    fn read<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Refusal> {
        let pool = || self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = pool().pop();
        let db = match idle {
            Some(db) => db,
            None => db::open_reader(&self.path).map_err(|e| {
                tracing::error!("{e}");
                Refusal::Failed
            })?,
        };
        let result = read(&db).map_err(|e| refused(&e));
        pool().push(db);
        result
    }

    /// Has a change made, and returns when it is on disk.
    pub async fn change(&self, key: Key, change: Change) -> Result<Done, Refusal> {
        self.send(key, change)?.await.unwrap_or(Err(Refusal::Failed))
    }

    /// Has a change made that nobody waits for. With a full queue it is not made.
    pub fn change_later(&self, key: Key, change: Change) {
        let _ = self.send(key, change);
    }

    fn send(&self, key: Key, change: Change) -> Result<oneshot::Receiver<Result<Done, Refusal>>, Refusal> {
        let (answer, answered) = oneshot::channel();
        match self.orders.try_send(Order { key, change, answer }) {
            Ok(()) => Ok(answered),
            Err(mpsc::error::TrySendError::Full(_)) => Err(Refusal::Busy),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(Refusal::Failed),
        }
    }

    /// Changes that wait for the writer.
    pub fn waiting(&self) -> usize {
        self.orders.max_capacity() - self.orders.capacity()
    }
}

fn head_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Head> {
    let position = match row.get_ref(0)?.as_str()? {
        "plaintext" => Position::Plaintext,
        _ => Position::Encrypted,
    };
    Ok(Head {
        position,
        word: row.get(1)?,
        revision: Revision(row.get(2)?),
        tries_left: row.get(3)?,
        day: Today(row.get(4)?),
    })
}

/// What a failure of SQLite is to a client. The rest of it goes into the log.
fn refused(error: &rusqlite::Error) -> Refusal {
    tracing::error!("the saves database: {error}");
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Refusal::Full,
        _ => Refusal::Failed,
    }
}

struct Writer {
    db: Connection,
    sizes: Sizes,
    counters: Arc<Counters>,
}

impl Writer {
    fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        let mut group = Vec::with_capacity(self.sizes.together_max);
        while orders.blocking_recv_many(&mut group, self.sizes.together_max) > 0 {
            group.sort_by_key(|order| order.key);
            self.write(&mut group);
        }
    }

    /// Commits a group and answers it.
    fn write(&mut self, group: &mut Vec<Order>) {
        match self.commit(group) {
            Ok(results) => answer(group.drain(..), results),
            Err(_) if group.len() > 1 => {
                for order in group.drain(..) {
                    let one = [order];
                    let result = self.commit(&one).unwrap_or_else(|e| vec![Err(refused(&e))]);
                    answer(one, result);
                }
            }
            Err(error) => answer(group.drain(..), vec![Err(refused(&error))]),
        }
    }

    /// All of a group or, when SQLite fails, nothing of it.
    fn commit(&mut self, group: &[Order]) -> rusqlite::Result<Vec<Result<Done, Refusal>>> {
        let (today, tries) = (Today::now(), i64::from(self.sizes.tries));
        let all = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let changes = group.iter().map(|order| apply(&all, &order.key, &order.change, today, tries));
        let results = changes.collect::<rusqlite::Result<Vec<_>>>()?;
        all.commit()?;
        self.counters.commits.fetch_add(1, Ordering::Relaxed);
        self.counters.changes.fetch_add(group.len() as u64, Ordering::Relaxed);
        Ok(results)
    }
}

fn answer(orders: impl IntoIterator<Item = Order>, results: Vec<Result<Done, Refusal>>) {
    for (order, result) in orders.into_iter().zip(results) {
        // Whoever asked may have gone.
        let _ = order.answer.send(result);
    }
}

/// Makes one change.
fn apply(
    db: &Transaction<'_>,
    key: &Key,
    change: &Change,
    today: Today,
    tries: i64,
) -> rusqlite::Result<Result<Done, Refusal>> {
    let id = &key.as_bytes()[..];
    match change {
        Change::Create { position, body, word } => {
            let mut insert = db.prepare_cached(
                "INSERT INTO save_codes (key, position, word, attempts_left, revision, day, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (key) DO NOTHING",
            )?;
            let revision = first_revision();
            let row = params![id, position.as_str(), word, tries, revision.0, today.0, &body[..]];
            if insert.execute(row)? == 1 {
                return Ok(Ok(Done { revision, tries_left: tries }));
            }
        }
        Change::Replace { expected, position, body, word } => {
            let mut update = db.prepare_cached(
                "UPDATE save_codes SET position = ?3, body = ?4, day = ?5, revision = revision + 1,
                 word = CASE ?6 WHEN 'keep' THEN word ELSE ?7 END WHERE key = ?1 AND revision = ?2
                 RETURNING revision, attempts_left",
            )?;
            let (how, hash) = match word {
                NewWord::Keep => ("keep", None),
                NewWord::Set(hash) => ("set", Some(hash)),
                NewWord::Remove => ("set", None),
            };
            let row = params![id, expected.0, position.as_str(), &body[..], today.0, how, hash];
            if let Some(done) = update.query_row(row, done_of).optional()? {
                return Ok(Ok(done));
            }
        }
        Change::Delete { expected } => {
            let sql = "DELETE FROM save_codes WHERE key = ?1 AND revision = ?2";
            if db.prepare_cached(sql)?.execute(params![id, expected.0])? == 1 {
                return Ok(Ok(Done { revision: *expected, tries_left: 0 }));
            }
        }
        Change::SpendTry { expected } => {
            let sql =
                "UPDATE save_codes SET attempts_left = attempts_left - 1 WHERE key = ?1 AND revision = ?2
                       RETURNING revision, attempts_left";
            let row = db.prepare_cached(sql)?.query_row(params![id, expected.0], done_of).optional()?;
            if let Some(done) = row {
                return Ok(Ok(done));
            }
        }
        Change::Touch => {
            let sql = "UPDATE save_codes SET day = ?2 WHERE key = ?1 AND day < ?2";
            db.prepare_cached(sql)?.execute(params![id, today.0])?;
        }
        Change::GiveTriesBack => {
            let sql = "UPDATE save_codes SET attempts_left = ?2 WHERE key = ?1";
            db.prepare_cached(sql)?.execute(params![id, tries])?;
        }
        Change::Expire { before } => {
            let sql = "DELETE FROM save_codes WHERE key = ?1 AND day < ?2";
            db.prepare_cached(sql)?.execute(params![id, before.0])?;
        }
    }
    let mut now = db.prepare_cached("SELECT revision FROM save_codes WHERE key = ?1")?;
    let revision = now.query_row([id], |r| r.get(0)).optional()?;
    Ok(Err(revision.map_or(Refusal::Missing, |r| Refusal::Newer(Revision(r)))))
}

fn done_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Done> {
    Ok(Done { revision: Revision(row.get(0)?), tries_left: row.get(1)? })
}

fn first_revision() -> Revision {
    // Without a random source the clock has to do: it must differ from earlier ones, not be secret.
    Revision(getrandom::u32().map_or_else(|_| Today::now().0, i64::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { waiting_max: 4, together_max: 2, tries: 5 };

    fn key(number: u8) -> Key {
        Key([number; 32])
    }

    fn create(body: &'static [u8]) -> Change {
        Change::Create { position: Position::Encrypted, body: body.into(), word: None }
    }

    #[tokio::test]
    async fn a_full_queue_refuses_and_does_not_wait() {
        let dir = tempfile::tempdir().unwrap();
        let opened = Store::open(&dir.path().join("saves.db"), SIZES, 1).unwrap();
        // The writer has not started, so nothing leaves the queue.
        let accepted: Vec<_> = (0..4).map(|i| opened.store.send(key(i), create(b"x")).unwrap()).collect();
        assert!(matches!(opened.store.send(key(9), create(b"x")), Err(Refusal::Busy)));
        assert_eq!(opened.store.waiting(), 4);
        let (store, writer) = opened.start().unwrap();
        for answered in accepted {
            assert!(answered.await.unwrap().is_ok());
        }
        // What was accepted is written before the writer ends.
        store.change_later(key(9), create(b"x"));
        let path = store.path.clone();
        drop(store);
        writer.join().unwrap();
        let rows: i64 = db::open_reader(&path)
            .unwrap()
            .query_row("SELECT count(*) FROM save_codes", [], |r| r.get(0))
            .unwrap();
        assert_eq!(rows, 5);
    }

    #[tokio::test]
    async fn what_nobody_uses_expires_and_what_is_read_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _writer) = Store::open(&dir.path().join("saves.db"), SIZES, 1).unwrap().start().unwrap();
        for i in 0..3 {
            store.change(key(i), create(b"x")).await.unwrap();
        }
        let today = Today::now();
        let old = db::open_writer(&store.path).unwrap();
        old.execute("UPDATE save_codes SET day = ?1 WHERE key <> ?2", params![today.0 - 800, &key(0).0[..]])
            .unwrap();
        // A save that is read is used.
        assert_eq!(
            store.change(key(1), Change::Touch).await,
            Err(Refusal::Newer(store.head(&key(1)).unwrap().unwrap().revision))
        );
        assert_eq!(store.expire(today.years_ago(2)).await, Ok(1));
        assert_eq!(store.expire(today.years_ago(2)).await, Ok(0));
        let left: Vec<bool> = (0..3).map(|i| store.head(&key(i)).unwrap().is_some()).collect();
        assert_eq!(left, [true, true, false]);
    }

    #[tokio::test]
    async fn changes_of_one_key_keep_their_order_in_a_group() {
        let dir = tempfile::tempdir().unwrap();
        let sizes = Sizes { waiting_max: 4, together_max: 4, tries: 5 };
        let opened = Store::open(&dir.path().join("saves.db"), sizes, 1).unwrap();
        let first = opened.store.send(key(7), create(b"first")).unwrap();
        let second = opened.store.send(key(7), create(b"second")).unwrap();
        let other = opened.store.send(key(1), create(b"other")).unwrap();
        let (store, _writer) = opened.start().unwrap();
        let made = first.await.unwrap().unwrap();
        assert_eq!(second.await.unwrap(), Err(Refusal::Newer(made.revision)));
        assert!(other.await.unwrap().is_ok());
        assert_eq!(store.load(&key(7)).unwrap().unwrap().1, b"first");
        assert_eq!(store.counters.commits.load(Ordering::Relaxed), 1);
    }
}
