//! Jobs: what is still to be done, leased to one worker at a time.
//!
//! A lease is a random word with an end. Whoever finishes a job must still hold its lease, and does so in the
//! transaction that has the effect: a worker that was slow, stopped or killed can neither lose a job nor finish it
//! twice. A lease that ends later than one could from now on was made by a clock that has since jumped back, and counts
//! as ended; so does a job that seems to be put off for longer than any is.

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::work::words;
use crate::{Catalog, CatalogError};

words! {
    /// What is to be done.
    Kind {
        /// Put a submission through the gates.
        Intake = "intake",
        /// Render a pending work for its moderator.
        Preview = "preview",
        /// Publish the catalogue as it is.
        CatalogRegen = "catalog_regen",
        /// Re-hash what is served.
        Verify = "verify",
    }
}

/// A job in the hands of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leased {
    /// Its name.
    pub id: String,
    /// What is to be done.
    pub kind: Kind,
    /// With what.
    pub subject: String,
    /// How often it was begun, this time included.
    pub attempts: u32,
    /// The word that proves the lease.
    pub(crate) lease: String,
}

/// How a failed attempt goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// Not before that second.
    Again(i64),
    /// Never.
    GivenUp,
}

/// Why a job could not be finished.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The lease ended, and the job is or was somebody else's.
    #[error("the lease of job {0} has ended; its work is dropped")]
    LeaseLost(String),
    /// The database failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl From<rusqlite::Error> for JobError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Catalog(error.into())
    }
}

/// The longest that a job is put off, but for the verification of another day.
const PUT_OFF_SECONDS_MAX: i64 = 600;

impl Catalog {
    /// Takes the next job for `seconds`: previews first, since somebody waits for them, then publishing, then the rest
    /// in its order. `lease` must be a word that was never used.
    pub fn lease(&mut self, lease: &str, now: i64, seconds: i64) -> Result<Option<Leased>, CatalogError> {
        let sql =
            "UPDATE jobs SET state = 'leased', lease = ?1, lease_until = ?2 + ?3, attempts = attempts + 1
             WHERE seq = (
                 SELECT seq FROM jobs
                 WHERE (state = 'queued' AND (due <= ?2 OR (due > ?2 + ?4 AND kind <> 'verify')) AND NOT (kind = 'catalog_regen' AND EXISTS (
                        SELECT 1 FROM jobs WHERE kind = 'catalog_regen' AND state = 'leased')))
                    OR (state = 'leased' AND (lease_until <= ?2 OR lease_until > ?2 + ?3))
                 ORDER BY kind = 'preview' DESC, kind = 'catalog_regen' DESC, seq LIMIT 1)
             RETURNING id, kind, subject, attempts";
        let all = self.write()?;
        let leased = all
            .prepare_cached(sql)?
            .query_row(params![lease, now, seconds, PUT_OFF_SECONDS_MAX], |r| {
                Ok((r.get::<_, String>(0)?, r.get::<_, String>(1)?, r.get::<_, String>(2)?, r.get(3)?))
            })
            .optional()?;
        all.commit()?;
        let Some((id, kind, subject, attempts)) = leased else { return Ok(None) };
        let kind = kind.parse().map_err(|message| CatalogError::Row { path: id.clone(), message })?;
        Ok(Some(Leased { id, kind, subject, attempts, lease: lease.to_owned() }))
    }

    /// Holds the lease for `seconds` from now on.
    pub fn renew(&self, job: &Leased, now: i64, seconds: i64) -> Result<(), JobError> {
        let sql = "UPDATE jobs SET lease_until = ?3 WHERE id = ?1 AND lease = ?2";
        match self.db.execute(sql, params![job.id, job.lease, now + seconds])? {
            0 => Err(JobError::LeaseLost(job.id.clone())),
            _ => Ok(()),
        }
    }

    /// The words of the leases that are held.
    pub fn leases(&self) -> Result<Vec<String>, CatalogError> {
        let mut rows = self.db.prepare("SELECT lease FROM jobs WHERE state = 'leased'")?;
        Ok(rows.query_map([], |r| r.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Ends a lease whose holder is known to be gone.
    pub fn end_lease(&self, lease: &str, now: i64) -> Result<(), CatalogError> {
        self.db.execute("UPDATE jobs SET lease_until = ?2 WHERE lease = ?1", params![lease, now])?;
        Ok(())
    }

    /// Puts a job without a result behind it.
    pub fn finish(&mut self, job: &Leased, result: &str) -> Result<(), JobError> {
        let all = self.write()?;
        finish(&all, job, result)?;
        Ok(all.commit()?)
    }

    /// Lets go of a job that cannot be done yet; it does not count as an attempt.
    pub fn postpone(&mut self, job: &Leased, due: i64, why: &str) -> Result<(), JobError> {
        let all = self.write()?;
        let sql = "UPDATE jobs SET state = 'queued', lease = NULL, lease_until = NULL, due = ?3, result = ?4,
                   attempts = attempts - 1 WHERE id = ?1 AND lease = ?2";
        if all.execute(sql, params![job.id, job.lease, due, why])? == 0 {
            return Err(JobError::LeaseLost(job.id.clone()));
        }
        all.execute("UPDATE submissions SET note = ?2 WHERE job = ?1", [&job.id, why])?;
        Ok(all.commit()?)
    }

    /// Records that an attempt failed. A regeneration that waits already does the same, so this one ends.
    pub fn fail(&mut self, job: &Leased, after: After, why: &str, now: i64) -> Result<(), JobError> {
        let all = self.write()?;
        let waits = "SELECT EXISTS (SELECT 1 FROM jobs WHERE kind = ?1 AND kind IN ('catalog_regen', 'verify') AND state = 'queued')";
        let waits: bool = all.query_row(waits, [job.kind.as_str()], |r| r.get(0))?;
        let (state, due) = match after {
            After::Again(due) if !waits => ("queued", due),
            _ => ("failed", now),
        };
        let sql = "UPDATE jobs SET state = ?3, lease = NULL, lease_until = NULL, due = ?4, result = ?5
                   WHERE id = ?1 AND lease = ?2";
        if all.execute(sql, params![job.id, job.lease, state, due, why])? == 0 {
            return Err(JobError::LeaseLost(job.id.clone()));
        }
        if state == "failed" {
            let sql = "UPDATE submissions SET state = 'failed', note = ?2, changed = ?3
                       WHERE job = ?1 AND state = 'received'";
            all.execute(sql, params![job.id, why, now])?;
        }
        Ok(all.commit()?)
    }

    /// Enqueues a job of our own; of a kind that waits only once, the one that waits is begun when the earlier of both is due.
    pub fn enqueue(&self, id: &str, kind: Kind, subject: &str, due: i64) -> Result<(), CatalogError> {
        enqueue(&self.db, id, kind.as_str(), subject, due)?;
        Ok(())
    }

    /// When the next job may be begun, if any is open: what an idle worker waits for.
    pub fn next_due(&self) -> Result<Option<i64>, CatalogError> {
        let sql = "SELECT min(CASE state WHEN 'queued' THEN due ELSE lease_until END) FROM jobs
                   WHERE state IN ('queued', 'leased')";
        Ok(self.db.query_row(sql, [], |r| r.get(0))?)
    }

    /// How many jobs of each kind and state there are, for the operator.
    pub fn job_counts(&self) -> Result<Vec<(String, String, i64)>, CatalogError> {
        let mut rows =
            self.db.prepare("SELECT kind, state, count(*) FROM jobs GROUP BY 1, 2 ORDER BY 1, 2")?;
        let rows = rows.query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The state of a job and what it left.
    pub fn job(&self, id: &str) -> Result<Option<(String, String)>, CatalogError> {
        let sql = "SELECT state, result FROM jobs WHERE id = ?1";
        Ok(self.db.query_row(sql, [id], |r| Ok((r.get(0)?, r.get(1)?))).optional()?)
    }
}

/// Marks a job as done, as long as its lease holds. To be called inside the transaction that has its effect.
pub(crate) fn finish(db: &Connection, job: &Leased, result: &str) -> Result<(), JobError> {
    let sql = "UPDATE jobs SET state = 'done', lease = NULL, lease_until = NULL, result = ?3
               WHERE id = ?1 AND lease = ?2";
    match db.prepare_cached(sql)?.execute(params![job.id, job.lease, result])? {
        0 => Err(JobError::LeaseLost(job.id.clone())),
        _ => Ok(()),
    }
}

pub(crate) fn enqueue(
    db: &Connection,
    id: &str,
    kind: &str,
    subject: &str,
    due: i64,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO jobs (id, kind, subject, state, due) VALUES (?1, ?2, ?3, 'queued', ?4)
               ON CONFLICT (id) DO NOTHING
             ON CONFLICT (kind) WHERE kind IN ('catalog_regen', 'verify') AND state = 'queued'
             DO UPDATE SET due = min(due, excluded.due)";
    db.prepare_cached(sql)?.execute(params![id, kind, subject, due]).map(|_| ())
}

/// Records an event and enqueues what the seeded triggers say, to be begun at `due`, in the transaction of what happened.
pub(crate) fn emit(db: &Connection, event: &str, subject: &str, now: i64, due: i64) -> rusqlite::Result<()> {
    db.execute("INSERT INTO events (kind, subject, at) VALUES (?1, ?2, ?3)", params![event, subject, now])?;
    let number = db.last_insert_rowid();
    let mut jobs = db.prepare_cached("SELECT job FROM triggers WHERE event = ?1")?;
    let jobs = jobs.query_map([event], |r| r.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    jobs.iter().try_for_each(|kind| enqueue(db, &format!("event-{number}-{kind}"), kind, subject, due))
}
