//! The catalogue database: works and their files, in SQLite.
//!
//! Rows are versions. A path has at most one published version, which an index enforces. Bytes are not in here: a file
//! row holds the digest of an object. Readers never block the writer (WAL), and a returned write is on disk.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::digest::DigestError;
use crate::{Day, Digest, Manifest, Slug, Status, Work, WorkFile};

/// Each entry takes the schema one version further. Entries are never edited, only added.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE works (
        id INTEGER PRIMARY KEY,
        creator TEXT NOT NULL,
        slug TEXT NOT NULL,
        version INTEGER NOT NULL,
        status TEXT NOT NULL
            CHECK (status IN ('pending_review', 'published', 'replaced', 'withdrawn', 'rejected')),
        manifest TEXT NOT NULL,
        released TEXT NOT NULL,
        updated TEXT NOT NULL,
        UNIQUE (creator, slug, version)
    ) STRICT;
    CREATE UNIQUE INDEX works_published ON works (creator, slug) WHERE status = 'published';
    CREATE TABLE work_files (
        work INTEGER NOT NULL REFERENCES works (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        role TEXT NOT NULL CHECK (role IN ('payload', 'python', 'sidecar', 'cover')),
        sha256 TEXT NOT NULL CHECK (length(sha256) = 64),
        bytes INTEGER NOT NULL CHECK (bytes >= 0),
        PRIMARY KEY (work, name)
    ) STRICT, WITHOUT ROWID;
",
    include_str!("schema/review.sql"),
];

/// The version of the schema after all of them.
pub(crate) const SCHEMA: u32 = 2;
const _: () = assert!(MIGRATIONS.len() == SCHEMA as usize);

/// An open catalogue.
pub struct Catalog {
    pub(crate) db: Connection,
}

/// Why the catalogue could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The file cannot be opened as a database.
    #[error("cannot open the catalogue {path}: {source}{}", remedy(.source))]
    Open {
        /// The database file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The file was written by a newer program.
    #[error(
        "the catalogue {path} has schema {found}, newer than the {known} this program knows; update the program"
    )]
    Newer {
        /// The database file.
        path: PathBuf,
        /// Its schema version.
        found: u32,
        /// The newest version this program has.
        known: u32,
    },
    /// Another work has the path.
    #[error("{path} is already published; withdraw that work first or choose another id")]
    PathTaken {
        /// `/creator/work/`
        path: String,
    },
    /// There is no published work at the path.
    #[error("no published work at {path}")]
    NotPublished {
        /// `/creator/work/`
        path: String,
    },
    /// A row does not hold what its column promises.
    #[error("the catalogue row of {path} is damaged: {message}")]
    Row {
        /// `/creator/work/`
        path: String,
        /// Which value, and why not.
        message: String,
    },
    /// SQLite failed.
    #[error("the catalogue database data/catalog.db: {0}{remedy}", remedy = remedy(.0))]
    Sqlite(#[from] rusqlite::Error),
}

impl CatalogError {
    /// Whether there was no room for what was to be written.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Sqlite(e) | Self::Open { source: e, .. }
            if e.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull))
    }
}

fn remedy(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull | rusqlite::ErrorCode::SystemIoFailure) => {
            "; if the disk is full, free some space and run it again"
        }
        _ => "",
    }
}

impl Catalog {
    /// Opens the catalogue at `path`, creating it or bringing its schema up to date.
    pub fn open(path: &Path) -> Result<Self, CatalogError> {
        match Self::open_in(path, "normal") {
            // A full disk has no room for the index that processes share. Alone, one does without: whoever wants to
            // free some space must be able to read.
            Err(CatalogError::Open { source, .. }) if !remedy(&source).is_empty() => {
                Self::open_in(path, "exclusive")
            }
            opened => opened,
        }
    }

    fn open_in(path: &Path, locking: &str) -> Result<Self, CatalogError> {
        let open = |source| CatalogError::Open { path: path.to_owned(), source };
        // Made, where there is none, for its owner alone: it says who decided what, and what waits. SQLite gives its other
        // files the same rights, and says itself why a file cannot be opened.
        let _ = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let mut db = Connection::open(path).map_err(open)?;
        db.busy_timeout(std::time::Duration::from_secs(10)).map_err(open)?;
        db.pragma_update(None, "locking_mode", locking).map_err(open)?;
        db.pragma_update(None, "journal_mode", "wal").map_err(open)?;
        db.pragma_update(None, "synchronous", "full").map_err(open)?;
        db.pragma_update(None, "foreign_keys", true).map_err(open)?;
        let found: u32 = db.pragma_query_value(None, "user_version", |r| r.get(0)).map_err(open)?;
        let mut version = 0;
        for sql in MIGRATIONS {
            version += 1;
            if version > found {
                let step = db.transaction()?;
                step.execute_batch(sql)?;
                step.pragma_update(None, "user_version", version)?;
                step.commit()?;
            }
        }
        if found > version {
            return Err(CatalogError::Newer { path: path.to_owned(), found, known: version });
        }
        Ok(Self { db })
    }

    /// Begins a transaction that writes: it waits for its turn now, not at its first change.
    pub(crate) fn write(&mut self) -> rusqlite::Result<rusqlite::Transaction<'_>> {
        self.db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
    }

    /// Writes new published works, all of them or, when one has a path that is taken, none.
    pub fn publish(&mut self, works: &[Work]) -> Result<(), CatalogError> {
        let all = self.db.transaction()?;
        for work in works {
            insert(&all, work, Status::Published).map_err(|e| match e {
                rusqlite::Error::SqliteFailure(f, _)
                    if f.code == rusqlite::ErrorCode::ConstraintViolation =>
                {
                    CatalogError::PathTaken { path: work.path() }
                }
                e => e.into(),
            })?;
        }
        Ok(all.commit()?)
    }

    /// Puts `work` in the place of the published version at its path, which becomes [`Status::Replaced`]. The day of
    /// the first version is kept.
    pub fn replace(&mut self, work: &Work) -> Result<(), CatalogError> {
        let both = self.db.transaction()?;
        let old =
            "UPDATE works SET status = 'replaced' WHERE creator = ?1 AND slug = ?2 AND status = 'published'
                   RETURNING released";
        let key = [work.creator.as_str(), work.slug.as_str()];
        let released: String = both
            .query_row(old, key, |r| r.get(0))
            .optional()?
            .ok_or_else(|| CatalogError::NotPublished { path: work.path() })?;
        let released = released.parse().unwrap_or(work.released);
        insert(&both, &Work { released, ..work.clone() }, Status::Published)?;
        Ok(both.commit()?)
    }

    /// Takes the published work at that path down.
    pub fn withdraw(&mut self, creator: &Slug, slug: &Slug) -> Result<(), CatalogError> {
        let sql =
            "UPDATE works SET status = 'withdrawn' WHERE creator = ?1 AND slug = ?2 AND status = 'published'";
        match self.db.execute(sql, [creator.as_str(), slug.as_str()])? {
            0 => Err(CatalogError::NotPublished { path: format!("/{creator}/{slug}/") }),
            _ => Ok(()),
        }
    }

    /// The published works, sorted by path.
    pub fn published(&self) -> Result<Vec<Work>, CatalogError> {
        let mut files = self.db.prepare(
            "SELECT f.work, f.name, f.role, f.sha256, f.bytes FROM work_files f JOIN works w ON w.id = f.work
             WHERE w.status = 'published' ORDER BY w.creator, w.slug, f.name",
        )?;
        let mut files = files.query([])?;
        let mut next_file = files.next()?.map(file_of).transpose()?;
        let mut rows = self.db.prepare(
            "SELECT id, creator, slug, manifest, released, updated FROM works
             WHERE status = 'published' ORDER BY creator, slug",
        )?;
        let mut rows = rows.query([])?;
        let mut works = Vec::new();
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            let mut own = Vec::new();
            while let Some((_, file)) = next_file.take_if(|(work, _)| *work == id) {
                own.push(file);
                next_file = files.next()?.map(file_of).transpose()?;
            }
            works.push(work_of(row, own)?);
        }
        Ok(works)
    }

    /// The paths of works that were taken down and are not published again, sorted.
    pub fn gone(&self) -> Result<Vec<(Slug, Slug)>, CatalogError> {
        let mut rows = self.db.prepare(
            "SELECT DISTINCT creator, slug FROM works w WHERE status = 'withdrawn' AND NOT EXISTS
             (SELECT 1 FROM works p WHERE p.creator = w.creator AND p.slug = w.slug AND p.status = 'published')
             ORDER BY creator, slug",
        )?;
        let paths = rows.query_map([], |r| Ok((r.get::<_, String>(0)?, r.get::<_, String>(1)?)))?;
        paths
            .map(|path| {
                let (creator, slug) = path?;
                let damaged =
                    |message: String| CatalogError::Row { path: format!("/{creator}/{slug}/"), message };
                let read = |text: &str| text.parse::<Slug>().map_err(|e| damaged(e.to_string()));
                Ok((read(&creator)?, read(&slug)?))
            })
            .collect()
    }

    /// Whether no work was ever written.
    pub fn is_empty(&self) -> Result<bool, CatalogError> {
        Ok(!self.db.query_row("SELECT EXISTS (SELECT 1 FROM works)", [], |r| r.get(0))?)
    }

    /// The digests of every file of every version: what a garbage collection must keep.
    pub fn file_digests(&self) -> Result<Vec<Digest>, CatalogError> {
        let mut rows = self.db.prepare("SELECT DISTINCT sha256 FROM work_files")?;
        let texts = rows.query_map([], |r| r.get::<_, String>(0))?;
        texts.map(|t| t?.parse().map_err(|e: DigestError| row_error("work_files", &e))).collect()
    }
}

/// Writes a further version of a work and returns its row.
pub(crate) fn insert(db: &Connection, work: &Work, status: Status) -> rusqlite::Result<i64> {
    let next = "SELECT coalesce(max(version), 0) + 1 FROM works WHERE creator = ?1 AND slug = ?2";
    let key = [work.creator.as_str(), work.slug.as_str()];
    let version: i64 = db.prepare_cached(next)?.query_row(key, |r| r.get(0))?;
    let manifest = serde_json::to_string(&work.manifest)
        .map_err(|e| rusqlite::Error::ToSqlConversionFailure(Box::new(e)))?;
    db.prepare_cached(
        "INSERT INTO works (creator, slug, version, status, manifest, released, updated)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        work.creator.as_str(),
        work.slug.as_str(),
        version,
        status.as_str(),
        manifest,
        work.released.to_string(),
        work.updated.to_string(),
    ])?;
    let id = db.last_insert_rowid();
    for file in &work.files {
        let sql = "INSERT INTO work_files (work, name, role, sha256, bytes) VALUES (?1, ?2, ?3, ?4, ?5)";
        let bytes = i64::try_from(file.bytes).unwrap_or(i64::MAX);
        db.prepare_cached(sql)?.execute(params![
            id,
            file.name,
            file.role.as_str(),
            file.digest.to_string(),
            bytes
        ])?;
    }
    Ok(id)
}

fn row_error(path: &str, error: &dyn std::fmt::Display) -> CatalogError {
    CatalogError::Row { path: path.to_owned(), message: error.to_string() }
}

pub(crate) fn file_of(row: &Row<'_>) -> Result<(i64, WorkFile), CatalogError> {
    let name: String = row.get(1)?;
    let damaged = |message: String| CatalogError::Row { path: name.clone(), message };
    let role = row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?.parse().map_err(damaged)?;
    let digest = row.get_ref(3)?.as_str().map_err(rusqlite::Error::from)?;
    let digest = digest.parse().map_err(|e: DigestError| damaged(e.to_string()))?;
    let bytes = u64::try_from(row.get::<_, i64>(4)?).map_err(|e| damaged(e.to_string()))?;
    Ok((row.get(0)?, WorkFile { role, digest, bytes, name }))
}

pub(crate) fn work_of(row: &Row<'_>, files: Vec<WorkFile>) -> Result<Work, CatalogError> {
    let (creator, slug): (String, String) = (row.get(1)?, row.get(2)?);
    let path = format!("/{creator}/{slug}/");
    let damaged = |e: &dyn std::fmt::Display| row_error(&path, e);
    let day = |column| -> Result<Day, CatalogError> {
        row.get::<_, String>(column)?.parse().map_err(|e| damaged(&e))
    };
    Ok(Work {
        creator: creator.parse().map_err(|e| damaged(&e))?,
        slug: slug.parse().map_err(|e| damaged(&e))?,
        manifest: Manifest::parse(row.get_ref(3)?.as_bytes().map_err(rusqlite::Error::from)?)
            .map_err(|e| damaged(&e))?,
        released: day(4)?,
        updated: day(5)?,
        files,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

    fn work(path: &str, payload: &[u8]) -> Work {
        let (creator, slug) = path.split_once('/').unwrap();
        let file = |name: &str, role, bytes: &[u8]| WorkFile {
            name: name.into(),
            role,
            digest: Digest::of(bytes),
            bytes: bytes.len() as u64,
        };
        let sidecar = format!(r#"{{"id": "{slug}", "title": "{path}"}}"#);
        Work {
            creator: creator.parse().unwrap(),
            slug: slug.parse().unwrap(),
            manifest: Manifest::parse(sidecar.as_bytes()).unwrap(),
            released: "2026-11-01".parse().unwrap(),
            updated: "2026-11-02".parse().unwrap(),
            files: vec![
                file("index.html", Role::Payload, payload),
                file("work.json", Role::Sidecar, sidecar.as_bytes()),
            ],
        }
    }

    fn catalog() -> (tempfile::TempDir, Catalog) {
        let dir = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(&dir.path().join("catalog.db")).unwrap();
        (dir, catalog)
    }

    #[test]
    fn what_is_published_is_read_back_in_order() {
        let (dir, mut catalog) = catalog();
        assert!(catalog.is_empty().unwrap());
        let works = [work("zoe/last", b"1"), work("ann/two", b"2"), work("ann/one", b"3")];
        catalog.publish(&works).unwrap();
        drop(catalog);
        let catalog = Catalog::open(&dir.path().join("catalog.db")).unwrap();
        let [zoe, two, one] = works;
        assert_eq!(catalog.published().unwrap(), [one, two, zoe]);
        assert!(!catalog.is_empty().unwrap());
    }

    #[test]
    fn a_path_that_is_taken_refuses_the_whole_batch() {
        let (_dir, mut catalog) = catalog();
        catalog.publish(&[work("ann/one", b"1")]).unwrap();
        let error = catalog.publish(&[work("ann/new", b"2"), work("ann/one", b"3")]).unwrap_err();
        assert!(error.to_string().starts_with("/ann/one/ is already published"), "{error}");
        assert_eq!(catalog.published().unwrap(), [work("ann/one", b"1")]);
    }

    #[test]
    fn replacing_keeps_the_first_day_and_the_old_bytes() {
        let (_dir, mut catalog) = catalog();
        assert!(matches!(catalog.replace(&work("ann/one", b"1")), Err(CatalogError::NotPublished { .. })));
        catalog.publish(&[work("ann/one", b"1")]).unwrap();
        let newer = Work { released: "2027-01-01".parse().unwrap(), ..work("ann/one", b"2") };
        catalog.replace(&newer).unwrap();
        let served = catalog.published().unwrap();
        assert_eq!(served, [work("ann/one", b"2")]);
        assert!(catalog.file_digests().unwrap().contains(&Digest::of(b"1")));
    }

    #[test]
    fn a_withdrawn_path_is_gone_until_it_is_published_again() {
        let (_dir, mut catalog) = catalog();
        let (ann, one) = ("ann".parse().unwrap(), "one".parse().unwrap());
        assert!(catalog.withdraw(&ann, &one).unwrap_err().to_string().contains("/ann/one/"));
        catalog.publish(&[work("ann/one", b"1")]).unwrap();
        catalog.withdraw(&ann, &one).unwrap();
        assert_eq!(catalog.gone().unwrap(), [(ann, one)]);
        assert_eq!(catalog.published().unwrap(), []);
        catalog.publish(&[work("ann/one", b"2")]).unwrap();
        assert_eq!(catalog.gone().unwrap(), []);
    }

    #[test]
    fn a_newer_or_foreign_file_is_refused_and_left_alone() {
        let (dir, catalog) = catalog();
        catalog.db.pragma_update(None, "user_version", 99).unwrap();
        drop(catalog);
        let error = Catalog::open(&dir.path().join("catalog.db")).err().unwrap().to_string();
        assert!(error.contains("schema 99, newer than"), "{error}");
        let text = dir.path().join("text.db");
        std::fs::write(&text, "not a database, just some text that is long enough to look like one").unwrap();
        let error = Catalog::open(&text).err().unwrap().to_string();
        assert!(error.contains("text.db") && error.contains("not a database"), "{error}");
    }

    #[test]
    fn a_damaged_row_is_named() {
        let (_dir, mut catalog) = catalog();
        catalog.publish(&[work("ann/one", b"1")]).unwrap();
        catalog.db.execute("UPDATE works SET released = 'soon'", []).unwrap();
        let error = catalog.published().unwrap_err().to_string();
        assert!(error.contains("/ann/one/ is damaged") && error.contains("soon"), "{error}");
    }
}
