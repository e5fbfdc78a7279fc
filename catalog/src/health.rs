//! How it stands with the catalogue, read without changing it: called by `api doctor`.
//!
//! [`Catalog::open`] brings a schema up to date; nothing here does. A catalogue of another schema is looked at no further.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

use crate::db::SCHEMA;
use crate::{Catalog, CatalogError};

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// What a look at the file shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The version of its schema.
    pub schema: u32,
    /// The version that this program knows.
    pub known: u32,
    /// What SQLite found damaged.
    pub damage: Option<String>,
    /// What it holds, if the schema is known.
    pub jobs: Option<Jobs>,
}

/// How it stands with what is to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Jobs {
    /// Jobs that are not at their end.
    pub open: i64,
    /// Since when a job is due that nobody has taken up, while nobody does any other.
    pub untouched_since: Option<i64>,
    /// A job that failed and is tried again: its kind, how often it was begun, and why it failed.
    pub retried: Option<(String, u32, String)>,
    /// How many submissions and previews were given up within a day, and why the last one was.
    pub given_up: (i64, String),
    /// When something happened that no publish has followed and none is waiting to.
    pub unpublished_since: Option<i64>,
    /// For when the last verification was asked, and what it found.
    pub verified: Option<(i64, String)>,
    /// The tree of the last publish that the worker made.
    pub published: Option<String>,
    /// The first row of the audit that is not what it was.
    pub audit_broken_at: Option<i64>,
}

impl Health {
    /// Looks at the catalogue in that file.
    pub fn of(path: &Path, now: i64) -> Result<Self, CatalogError> {
        let open = |source| CatalogError::Open { path: path.to_owned(), source };
        let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(open)?;
        db.busy_timeout(std::time::Duration::from_secs(10)).map_err(open)?;
        let schema = db.pragma_query_value(None, "user_version", |r| r.get(0)).map_err(open)?;
        let verdict: String = db.query_row("PRAGMA integrity_check(1)", [], |r| r.get(0)).map_err(open)?;
        let damage = (verdict != "ok").then_some(verdict);
        let catalog = Catalog { db };
        let is_whole = schema == SCHEMA && damage.is_none();
        let jobs = is_whole.then(|| catalog.jobs(now)).transpose()?;
        Ok(Self { schema, known: SCHEMA, damage, jobs })
    }
}

impl Catalog {
    fn jobs(&self, now: i64) -> Result<Jobs, CatalogError> {
        let open = "SELECT count(*) FROM jobs WHERE state IN ('queued', 'leased')";
        let untouched =
            "SELECT min(CASE state WHEN 'queued' THEN due ELSE lease_until END) AS since FROM jobs
                         WHERE state IN ('queued', 'leased')
                         AND NOT EXISTS (SELECT 1 FROM jobs WHERE state = 'leased' AND lease_until > ?1)
                         HAVING since <= ?1";
        let retried = "SELECT kind, attempts, result FROM jobs
                       WHERE state IN ('queued', 'leased') AND attempts > 0 AND result <> '' ORDER BY attempts DESC LIMIT 1";
        let given_up = "SELECT count(*), coalesce(max(result), '') FROM jobs
                        WHERE state = 'failed' AND kind IN ('intake', 'preview') AND due > ?1";
        let unpublished = "SELECT max(at) FROM events WHERE kind IN (SELECT event FROM triggers WHERE job = 'catalog_regen')
                           AND at > (SELECT coalesce(max(at), 0) FROM audit WHERE action = 'publish')
                           AND NOT EXISTS (SELECT 1 FROM jobs WHERE kind = 'catalog_regen' AND state IN ('queued', 'leased'))";
        let verified =
            "SELECT due, result FROM jobs WHERE kind = 'verify' AND state = 'done' ORDER BY due DESC LIMIT 1";
        let published = "SELECT tree_after FROM audit WHERE action = 'publish' ORDER BY id DESC LIMIT 1";
        let db = &self.db;
        Ok(Jobs {
            open: db.query_row(open, [], |r| r.get(0))?,
            untouched_since: db.query_row(untouched, [now], |r| r.get(0)).optional()?.flatten(),
            retried: db.query_row(retried, [], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?))).optional()?,
            given_up: db.query_row(given_up, params![now - DAY_SECONDS], |r| Ok((r.get(0)?, r.get(1)?)))?,
            unpublished_since: db.query_row(unpublished, [], |r| r.get(0))?,
            verified: db.query_row(verified, [], |r| Ok((r.get(0)?, r.get(1)?))).optional()?,
            published: db.query_row(published, [], |r| r.get(0)).optional()?,
            audit_broken_at: self.check_audit()?.err(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(db: &Connection, path: &Path, now: i64) -> Jobs {
        // Read by another connection, as the doctor does.
        assert!(db.is_autocommit());
        Health::of(path, now).unwrap().jobs.unwrap()
    }

    #[test]
    fn what_is_stuck_shows_and_nothing_is_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("catalog.db");
        assert!(Health::of(&path, 0).is_err() && !path.exists());
        let catalog = Catalog::open(&path).unwrap();
        let db = &catalog.db;
        let job = |id: &str, kind: &str, state: &str, due: i64, result: &str| {
            let lease = (state == "leased").then_some(id);
            let sql = "INSERT INTO jobs (id, kind, subject, state, due, attempts, lease, lease_until, result)
                       VALUES (?1, ?2, '', ?3, ?4, 2, ?5, iif(?5 IS NULL, NULL, ?4), ?6)";
            db.execute(sql, params![id, kind, state, due, lease, result]).unwrap();
        };
        let empty = Jobs::default();
        assert_eq!(looked(db, &path, 100), empty);

        job("a", "intake", "queued", 50, "");
        assert_eq!(looked(db, &path, 49).untouched_since, None, "not due yet");
        assert_eq!(looked(db, &path, 100).untouched_since, Some(50));
        job("b", "preview", "leased", 120, "no disk");
        let at_work = looked(db, &path, 100);
        assert_eq!((at_work.open, at_work.untouched_since), (2, None), "somebody is at work");
        assert_eq!(at_work.retried, Some(("preview".to_owned(), 2, "no disk".to_owned())));
        assert_eq!(looked(db, &path, 121).untouched_since, Some(50), "the lease has ended");

        job("c", "intake", "failed", 100, "it broke");
        assert_eq!(looked(db, &path, 101).given_up, (1, "it broke".to_owned()));
        assert_eq!(looked(db, &path, 101 + DAY_SECONDS).given_up.0, 0);

        job("d", "verify", "done", 70, "0 faults");
        assert_eq!(looked(db, &path, 100).verified, Some((70, "0 faults".to_owned())));

        db.execute("INSERT INTO events (kind, subject, at) VALUES ('work.published', '/a/b/', 60)", [])
            .unwrap();
        assert_eq!(looked(db, &path, 100).unpublished_since, Some(60));
        job("e", "catalog_regen", "queued", 60, "");
        assert_eq!(looked(db, &path, 100).unpublished_since, None, "a publish waits");
        db.execute("UPDATE jobs SET state = 'done' WHERE id = 'e'", []).unwrap();
        let entry = crate::audit::Entry::new(61, "worker", "publish", "/a/b/");
        crate::audit::append(db, &crate::audit::Entry { tree_after: "t", ..entry }).unwrap();
        let after = looked(db, &path, 100);
        assert_eq!((after.unpublished_since, after.published.as_deref()), (None, Some("t")));
        assert_eq!(after.audit_broken_at, None);
        db.execute_batch("DROP TRIGGER audit_is_never_changed; UPDATE audit SET actor = 'nobody'").unwrap();
        assert_eq!(looked(db, &path, 100).audit_broken_at, Some(1));

        db.pragma_update(None, "user_version", 1).unwrap();
        let older = Health::of(&path, 100).unwrap();
        assert_eq!((older.schema, older.known, older.jobs), (1, SCHEMA, None));
    }
}
