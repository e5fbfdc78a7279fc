//! Decisions: approve, decline, take down, and what follows from each, in one transaction up to the job.
//!
//! A decision is an audit row, a changed status, an event, and the job that the event's trigger enqueues: all of them
//! or none. Publishing itself is that job's, at least once, and never undone by its failing. A version is decided once:
//! of two moderators one is told so. Whether the moderator still is one is looked up inside the transaction.

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::audit::{self, Entry};
use crate::db::{file_of, work_of};
use crate::job::{self, JobError, Leased};
use crate::member::{self, Member, Role};
use crate::submission::drop_pending;
use crate::{Catalog, CatalogError, Day, Digest, Slug, Status, Work};

/// A version that waits for a moderator.
#[derive(Debug, Clone)]
pub struct Pending {
    /// The row of the version.
    pub row: i64,
    /// The version.
    pub work: Work,
    /// The submission it came with.
    pub job: String,
    /// When that came, in seconds since 1970.
    pub received: i64,
    /// What the gates said, as JSON.
    pub report: String,
}

/// Why a decision was not taken.
#[derive(Debug, thiserror::Error)]
pub enum DecideError {
    /// The member may not.
    #[error("{0} is not a moderator")]
    NotModerator(Slug),
    /// There is nothing left to decide.
    #[error("{0} is not waiting: it was decided or taken back by somebody else")]
    Decided(String),
    /// The database failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl From<rusqlite::Error> for DecideError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Catalog(error.into())
    }
}

/// What every decision is made with.
#[derive(Debug, Clone, Copy)]
pub struct Decision<'a> {
    /// Who decides.
    pub moderator: &'a Member,
    /// Why, in words; may be empty for an approval.
    pub reason: &'a str,
    /// When, in seconds since 1970.
    pub now: i64,
    /// The tree that is served now.
    pub tree: Option<Digest>,
}

impl Decision<'_> {
    fn record(&self, db: &Connection, action: &str, path: &str, digest: &str) -> Result<(), DecideError> {
        if !member::has_role(db, self.moderator, Role::Moderator)? {
            return Err(DecideError::NotModerator(self.moderator.pseudonym.clone()));
        }
        let detail = serde_json::json!({ "payload": digest, "reason": self.reason }).to_string();
        let tree = self.tree.map(|t| t.to_string()).unwrap_or_default();
        let entry = Entry::new(self.now, self.moderator.pseudonym.as_str(), action, path);
        Ok(audit::append(db, &Entry { detail: &detail, tree_before: &tree, ..entry })?)
    }
}

impl Catalog {
    /// The versions that wait, the oldest first.
    pub fn pending(&self) -> Result<Vec<Pending>, CatalogError> {
        let sql = "SELECT w.id FROM works w JOIN submissions s ON s.work = w.id
                   WHERE w.status = 'pending_review' ORDER BY s.received, w.id";
        let mut rows = self.db.prepare(sql)?;
        let rows = rows.query_map([], |r| r.get(0))?.collect::<Result<Vec<i64>, _>>()?;
        rows.into_iter().filter_map(|row| self.pending_version(row).transpose()).collect()
    }

    /// One of them.
    pub fn pending_version(&self, row: i64) -> Result<Option<Pending>, CatalogError> {
        let Some(work) = version(&self.db, row, Status::PendingReview)? else { return Ok(None) };
        let sql = "SELECT job, received, report FROM submissions WHERE work = ?1";
        let read = |r: &rusqlite::Row<'_>| {
            Ok(Pending { row, work, job: r.get(0)?, received: r.get(1)?, report: r.get(2)? })
        };
        Ok(self.db.query_row(sql, [row], read).optional()?)
    }

    /// The published version at a path.
    pub fn published_version(&self, creator: &Slug, slug: &Slug) -> Result<Option<Work>, CatalogError> {
        let sql = "SELECT id FROM works WHERE creator = ?1 AND slug = ?2 AND status = 'published'";
        let row = self.db.query_row(sql, [creator.as_str(), slug.as_str()], |r| r.get(0)).optional()?;
        row.map_or(Ok(None), |row| version(&self.db, row, Status::Published))
    }

    /// Publishes a version in the place of the one that is served.
    pub fn approve(&mut self, row: i64, today: Day, decision: &Decision<'_>) -> Result<(), DecideError> {
        let all = self.write()?;
        let work = waiting(&all, row)?;
        decision.record(&all, "approve", &work.path(), &payload(&work))?;
        let key = [work.creator.as_str(), work.slug.as_str()];
        let first = "SELECT min(released) FROM works WHERE creator = ?1 AND slug = ?2
                     AND status IN ('published', 'replaced', 'withdrawn')";
        let first: Option<String> = all.query_row(first, key, |r| r.get(0))?;
        let old =
            "UPDATE works SET status = 'replaced' WHERE creator = ?1 AND slug = ?2 AND status = 'published'";
        all.execute(old, key)?;
        let today = today.to_string();
        let new = "UPDATE works SET status = 'published', released = ?2, updated = ?3 WHERE id = ?1";
        all.execute(new, params![row, first.as_ref().unwrap_or(&today), today])?;
        let sql = "UPDATE submissions SET state = 'published', note = ?2, changed = ?3 WHERE work = ?1";
        all.execute(sql, params![row, decision.reason, decision.now])?;
        all.execute("DELETE FROM previews WHERE work = ?1", [row])?;
        job::emit(&all, "work.published", &work.path(), decision.now, decision.now)?;
        Ok(all.commit()?)
    }

    /// Refuses a version. Its findings stay, its bytes are free.
    pub fn decline(&mut self, row: i64, decision: &Decision<'_>) -> Result<(), DecideError> {
        let all = self.write()?;
        let work = waiting(&all, row)?;
        decision.record(&all, "decline", &work.path(), &payload(&work))?;
        drop_pending(&all, row)?;
        let sql = "UPDATE submissions SET state = 'declined', note = ?2, changed = ?3 WHERE work = ?1";
        all.execute(sql, params![row, decision.reason, decision.now])?;
        Ok(all.commit()?)
    }

    /// Takes a published work down.
    pub fn take_down(
        &mut self,
        creator: &Slug,
        slug: &Slug,
        decision: &Decision<'_>,
    ) -> Result<(), DecideError> {
        let all = self.write()?;
        let path = format!("/{creator}/{slug}/");
        let note = format!("A moderator took it down: {}", decision.reason);
        let digest = withdraw(&all, (creator, slug), &note, decision.now)?
            .ok_or_else(|| DecideError::Decided(path.clone()))?;
        decision.record(&all, "take_down", &path, &digest)?;
        job::emit(&all, "work.withdrawn", &path, decision.now, decision.now)?;
        Ok(all.commit()?)
    }

    /// Takes a published work down whose stored bytes are not those of its row. `false` if it is down already.
    pub fn take_down_damaged(
        &mut self,
        creator: &Slug,
        slug: &Slug,
        what: &str,
        tree: &str,
        now: i64,
    ) -> Result<bool, CatalogError> {
        let all = self.write()?;
        let path = format!("/{creator}/{slug}/");
        let note = "Its stored bytes were damaged, so it was taken down. Submit it again.";
        let Some(_) = withdraw(&all, (creator, slug), note, now)? else { return Ok(false) };
        let entry = Entry::new(now, "worker", "verify_failed", &path);
        audit::append(&all, &Entry { detail: what, tree_before: tree, ..entry })?;
        job::emit(&all, "work.withdrawn", &path, now, now)?;
        all.commit()?;
        Ok(true)
    }

    /// The creator takes a published work of their own back.
    pub fn retire(&mut self, member: &Member, slug: &Slug, now: i64) -> Result<bool, CatalogError> {
        let all = self.write()?;
        let path = format!("/{}/{slug}/", member.pseudonym);
        let note = "You took it off the site.";
        let Some(digest) = withdraw(&all, (&member.pseudonym, slug), note, now)? else { return Ok(false) };
        let entry = Entry::new(now, member.pseudonym.as_str(), "retire", &path);
        audit::append(&all, &Entry { detail: &digest, ..entry })?;
        job::emit(&all, "work.withdrawn", &path, now, now)?;
        all.commit()?;
        Ok(true)
    }

    /// Ends a regeneration with the trees before and after it.
    pub fn regenerated(
        &mut self,
        job: &Leased,
        before: &str,
        after: &str,
        left_out: &str,
        now: i64,
    ) -> Result<(), JobError> {
        let all = self.write()?;
        job::finish(&all, job, after)?;
        let entry = Entry::new(now, "worker", "publish", &job.subject);
        audit::append(&all, &Entry { detail: left_out, tree_before: before, tree_after: after, ..entry })?;
        Ok(all.commit()?)
    }

    /// Opens a preview of a pending version under `token` until that second, and enqueues its rendering. `false` if
    /// the version is not pending.
    pub fn open_preview(
        &mut self,
        row: i64,
        token: &str,
        now: i64,
        expires: i64,
    ) -> Result<bool, CatalogError> {
        let all = self.write()?;
        let sql = "INSERT INTO previews (token, work, expires)
                   SELECT ?1, id, ?3 FROM works WHERE id = ?2 AND status = 'pending_review'";
        let opened = all.execute(sql, params![token, row, expires])? > 0;
        if opened {
            job::enqueue(&all, &format!("preview-{token}"), "preview", token, now)?;
        }
        all.commit()?;
        Ok(opened)
    }

    /// The version that may be seen under `token` at that second.
    pub fn preview(&self, token: &str, now: i64) -> Result<Option<Pending>, CatalogError> {
        let sql = "SELECT work FROM previews WHERE token = ?1 AND expires > ?2";
        let row = self.db.query_row(sql, params![token, now], |r| r.get(0)).optional()?;
        row.map_or(Ok(None), |row| self.pending_version(row))
    }

    /// The tokens that may still be used.
    pub fn open_previews(&self, now: i64) -> Result<Vec<String>, CatalogError> {
        let mut rows = self.db.prepare("SELECT token FROM previews WHERE expires > ?1")?;
        Ok(rows.query_map([now], |r| r.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Removes the rows of previews that have ended.
    pub fn close_previews(&self, now: i64) -> Result<usize, CatalogError> {
        Ok(self.db.execute("DELETE FROM previews WHERE expires <= ?1", [now])?)
    }
}

fn payload(work: &Work) -> String {
    work.file(crate::Role::Payload).map(|f| f.digest.to_string()).unwrap_or_default()
}

/// The version in that row, if it still waits.
fn waiting(db: &Connection, row: i64) -> Result<Work, DecideError> {
    version(db, row, Status::PendingReview)?.ok_or_else(|| DecideError::Decided(format!("version {row}")))
}

fn version(db: &Connection, row: i64, status: Status) -> Result<Option<Work>, CatalogError> {
    let mut files = db.prepare_cached(
        "SELECT work, name, role, sha256, bytes FROM work_files WHERE work = ?1 ORDER BY name",
    )?;
    let mut rows = files.query([row])?;
    let mut own = Vec::new();
    while let Some(file) = rows.next()? {
        own.push(file_of(file)?.1);
    }
    let sql =
        "SELECT id, creator, slug, manifest, released, updated FROM works WHERE id = ?1 AND status = ?2";
    let mut works = db.prepare_cached(sql)?;
    let mut rows = works.query(params![row, status.as_str()])?;
    rows.next()?.map(|r| work_of(r, own)).transpose()
}

/// Takes the published version of a path down, tells its creator why, and returns the digest of its payload.
fn withdraw(
    db: &Connection,
    (creator, slug): (&Slug, &Slug),
    note: &str,
    now: i64,
) -> rusqlite::Result<Option<String>> {
    let sql = "UPDATE works SET status = 'withdrawn' WHERE creator = ?1 AND slug = ?2 AND status = 'published'
               RETURNING id, (SELECT sha256 FROM work_files f WHERE f.work = works.id AND f.role = 'payload')";
    let found = db.query_row(sql, [creator.as_str(), slug.as_str()], |r| {
        Ok((r.get::<_, i64>(0)?, r.get::<_, Option<String>>(1)?))
    });
    let Some((row, digest)) = found.optional()? else { return Ok(None) };
    let sql = "UPDATE submissions SET state = 'withdrawn', note = ?2, changed = ?3 WHERE work = ?1";
    db.execute(sql, params![row, note, now])?;
    Ok(Some(digest.unwrap_or_default()))
}
