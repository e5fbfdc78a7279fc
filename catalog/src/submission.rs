//! Submissions: what a member sent, how far it has come, and what was said about it.
//!
//! A submission begins together with its `intake` job and is known by that job's name. Its bytes lie in a staging folder
//! until the gates have passed; then they are objects, and a `works` row that waits for a moderator.

use rusqlite::{OptionalExtension as _, Row, params};

use crate::job::{self, JobError, Kind, Leased};
use crate::member::Member;
use crate::work::words;
use crate::{Catalog, CatalogError, Slug, Status, Work, db};

words! {
    /// How far a submission has come.
    State {
        /// Its job is open.
        Received = "received",
        /// The gates found something.
        Rejected = "rejected",
        /// It waits for a moderator.
        PendingReview = "pending_review",
        /// A moderator said no.
        Declined = "declined",
        /// A moderator said yes.
        Published = "published",
        /// Its creator took it back.
        Withdrawn = "withdrawn",
        /// The operator gave it back, because a gate will not open soon.
        Returned = "returned",
        /// The machine could not do it, however often it tried.
        Failed = "failed",
    }
}

/// A submission.
#[derive(Debug, Clone)]
pub struct Submission {
    /// The name of its job.
    pub job: String,
    /// Who sent it.
    pub creator: Slug,
    /// How far it has come.
    pub state: State,
    /// What the worker is doing with it right now.
    pub stage: String,
    /// Why it waits, was declined or given back.
    pub note: String,
    /// The slug its sidecar names, once that was read.
    pub slug: String,
    /// What the gates said, as JSON; empty before.
    pub report: String,
    /// When it came, in seconds since 1970.
    pub received: i64,
    /// How many open jobs of its kind are before it; `None` once it is taken.
    pub ahead: Option<i64>,
}

/// Why a submission was not taken.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// The member sent as many as policy allows.
    #[error("{0} submissions within an hour are the most; wait a while")]
    TooMany(u32),
    /// The database failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl From<rusqlite::Error> for SubmitError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Catalog(error.into())
    }
}

const HOUR_SECONDS: i64 = 3600;

impl Catalog {
    /// Writes a submission and its job. The files are in place.
    pub fn submit(
        &mut self,
        job: &str,
        member: &Member,
        now: i64,
        hourly_max: u32,
    ) -> Result<(), SubmitError> {
        let all = self.write()?;
        let recent =
            "SELECT count(*) FROM submissions WHERE member = ?1 AND received > ?2 AND received <= ?3";
        let recent: u32 = all.query_row(recent, params![member.id, now - HOUR_SECONDS, now], |r| r.get(0))?;
        if recent >= hourly_max {
            return Err(SubmitError::TooMany(hourly_max));
        }
        job::enqueue(&all, job, Kind::Intake.as_str(), "", now)?;
        let sql = "INSERT INTO submissions (job, member, state, received, changed) VALUES (?1, ?2, 'received', ?3, ?3)";
        all.execute(sql, params![job, member.id, now])?;
        Ok(all.commit()?)
    }

    /// A submission by the name of its job.
    pub fn submission(&self, job: &str) -> Result<Option<Submission>, CatalogError> {
        let sql = format!("{SELECT} WHERE s.job = ?1");
        self.db.prepare_cached(&sql)?.query_row([job], read).optional()?.transpose()
    }

    /// A member's submissions, newest first.
    pub fn submissions_of(&self, member: &Member, most: u32) -> Result<Vec<Submission>, CatalogError> {
        let mut rows = self
            .db
            .prepare(&format!("{SELECT} WHERE s.member = ?1 ORDER BY s.received DESC, s.job LIMIT ?2"))?;
        let rows = rows.query_map(params![member.id, most], read)?.collect::<Result<Vec<_>, _>>()?;
        rows.into_iter().collect()
    }

    /// The names of all submissions whose files are still needed in staging.
    pub fn staged(&self) -> Result<Vec<String>, CatalogError> {
        let mut rows = self.db.prepare("SELECT job FROM submissions WHERE state = 'received'")?;
        Ok(rows.query_map([], |r| r.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Says what the worker is doing with a submission, and what became known of it.
    pub fn note_stage(&self, job: &Leased, stage: &str, is_python: bool) -> Result<(), CatalogError> {
        let sql = "UPDATE submissions SET stage = ?2, note = '', is_python = ?3
                   WHERE job = ?1 AND EXISTS (SELECT 1 FROM jobs WHERE id = ?1 AND lease = ?4)";
        self.db.execute(sql, params![job.id, stage, is_python, job.lease])?;
        Ok(())
    }

    /// The gates found something: the report stays, the bytes go.
    pub fn reject(&mut self, job: &Leased, slug: &str, report: &str, now: i64) -> Result<(), JobError> {
        let all = self.write()?;
        job::finish(&all, job, "rejected")?;
        let sql = "UPDATE submissions SET state = 'rejected', stage = '', note = '', slug = ?2, report = ?3, changed = ?4
                   WHERE job = ?1 AND state = 'received'";
        all.execute(sql, params![job.id, slug, report, now])?;
        Ok(all.commit()?)
    }

    /// The gates passed: the work waits for a moderator, in the place of an earlier version that still waited. Its
    /// files must be objects on disk. `false` if the creator has taken it back meanwhile.
    pub fn accept(&mut self, job: &Leased, work: &Work, report: &str, now: i64) -> Result<bool, JobError> {
        let all = self.write()?;
        job::finish(&all, job, "accepted")?;
        let waits = "SELECT EXISTS (SELECT 1 FROM submissions WHERE job = ?1 AND state = 'received')";
        if !all.query_row(waits, [&job.id], |r| r.get::<_, bool>(0))? {
            all.commit()?;
            return Ok(false);
        }
        let earlier = "SELECT id FROM works WHERE creator = ?1 AND slug = ?2 AND status = 'pending_review'";
        let key = [work.creator.as_str(), work.slug.as_str()];
        let earlier: Option<i64> = all.query_row(earlier, key, |r| r.get(0)).optional()?;
        if let Some(earlier) = earlier {
            drop_pending(&all, earlier)?;
            let sql = "UPDATE submissions SET state = 'withdrawn', note = 'a newer version was submitted', changed = ?2
                       WHERE work = ?1";
            all.execute(sql, params![earlier, now])?;
        }
        let row = db::insert(&all, work, Status::PendingReview)?;
        let sql =
            "UPDATE submissions SET state = 'pending_review', stage = '', note = '', slug = ?2, report = ?3, work = ?4,
                   changed = ?5 WHERE job = ?1";
        all.execute(sql, params![job.id, work.slug.as_str(), report, row, now])?;
        all.commit()?;
        Ok(true)
    }

    /// The creator takes a submission back before it is decided; `false` if it is too late or not theirs.
    pub fn take_back(&mut self, job: &str, member: &Member, now: i64) -> Result<bool, CatalogError> {
        let all = self.write()?;
        let sql = "UPDATE submissions SET state = 'withdrawn', stage = '', changed = ?3
                   WHERE job = ?1 AND member = ?2 AND state IN ('received', 'pending_review')
                   RETURNING work";
        let found: Option<Option<i64>> =
            all.query_row(sql, params![job, member.id, now], |r| r.get(0)).optional()?;
        if let Some(work) = found {
            let sql = "UPDATE jobs SET state = 'done', lease = NULL, lease_until = NULL, result = 'withdrawn'
                       WHERE id = ?1 AND state IN ('queued', 'leased')";
            all.execute(sql, [job])?;
            work.map(|work| drop_pending(&all, work)).transpose()?;
        }
        all.commit()?;
        Ok(found.is_some())
    }

    /// Gives every Python submission that still waits back to its creator. Returns their names.
    pub fn return_python(&mut self, reason: &str, now: i64) -> Result<Vec<String>, CatalogError> {
        let all = self.write()?;
        let sql = "UPDATE submissions SET state = 'returned', stage = '', note = ?1, changed = ?2
                   WHERE state = 'received' AND is_python RETURNING job";
        let jobs: Vec<String> = {
            let mut rows = all.prepare(sql)?;
            rows.query_map(params![reason, now], |r| r.get(0))?.collect::<Result<_, _>>()?
        };
        for job in &jobs {
            let sql = "UPDATE jobs SET state = 'done', lease = NULL, lease_until = NULL, result = 'returned'
                       WHERE id = ?1";
            all.execute(sql, [job])?;
        }
        all.commit()?;
        Ok(jobs)
    }
}

/// Takes a pending version out of the catalogue: its row stays, its bytes are free.
pub(crate) fn drop_pending(db: &rusqlite::Connection, work: i64) -> rusqlite::Result<()> {
    db.execute("UPDATE works SET status = 'rejected' WHERE id = ?1 AND status = 'pending_review'", [work])?;
    db.execute("DELETE FROM work_files WHERE work = ?1", [work])?;
    db.execute("DELETE FROM previews WHERE work = ?1", [work]).map(|_| ())
}

const SELECT: &str = "SELECT s.job, m.pseudonym, s.state, s.stage, s.note, s.slug, s.report, s.received,
    CASE j.state WHEN 'queued' THEN (SELECT count(*) FROM jobs o WHERE o.kind = 'intake' AND o.state = 'queued'
                                     AND o.seq < j.seq) END
    FROM submissions s JOIN members m ON m.id = s.member JOIN jobs j ON j.id = s.job";

fn read(r: &Row<'_>) -> rusqlite::Result<Result<Submission, CatalogError>> {
    let (job, creator, state): (String, String, String) = (r.get(0)?, r.get(1)?, r.get(2)?);
    let damaged = |message| CatalogError::Row { path: format!("submission {job}"), message };
    let creator = creator.parse().map_err(|e: crate::slug::SlugError| damaged(e.to_string()));
    let state = state.parse().map_err(damaged);
    let (creator, state) = match (creator, state) {
        (Ok(creator), Ok(state)) => (creator, state),
        (Err(e), _) | (_, Err(e)) => return Ok(Err(e)),
    };
    Ok(Ok(Submission {
        creator,
        state,
        stage: r.get(3)?,
        note: r.get(4)?,
        slug: r.get(5)?,
        report: r.get(6)?,
        received: r.get(7)?,
        ahead: r.get(8)?,
        job,
    }))
}
