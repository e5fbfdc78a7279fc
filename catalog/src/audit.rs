//! The audit: what was decided, by whom, when, and which tree was served before and after.
//!
//! Rows are only ever appended, which triggers in the database enforce against mistakes. Against somebody who writes
//! to the file itself, every row holds the digest of the one before it: [`Catalog::check_audit`] names the first that
//! does not fit. Whoever wants to prove that no row was cut from the end keeps the last digest elsewhere.

use rusqlite::{Connection, OptionalExtension as _, params};
use serde::Serialize;

use crate::{Catalog, CatalogError, Digest};

/// A row as it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    /// When.
    pub(crate) at: i64,
    /// Who.
    pub(crate) actor: &'a str,
    /// What.
    pub(crate) action: &'a str,
    /// To what.
    pub(crate) subject: &'a str,
    /// Reasons, digests: what the action was about.
    pub(crate) detail: &'a str,
    /// The tree that was served before.
    pub(crate) tree_before: &'a str,
    /// The tree that is served after, where the action changed it itself.
    pub(crate) tree_after: &'a str,
}

impl<'a> Entry<'a> {
    pub(crate) fn new(at: i64, actor: &'a str, action: &'a str, subject: &'a str) -> Self {
        Self { at, actor, action, subject, detail: "", tree_before: "", tree_after: "" }
    }
}

/// A row as it is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Audited {
    /// Its place, from 1.
    pub id: i64,
    /// Seconds since 1970.
    pub at: i64,
    /// A pseudonym, `operator` or `worker`.
    pub actor: String,
    /// What was done.
    pub action: String,
    /// To what: a path or a pseudonym.
    pub subject: String,
    /// Reasons, digests.
    pub detail: String,
    /// The tree that was served before.
    pub tree_before: String,
    /// The tree that is served after.
    pub tree_after: String,
    /// The digest of the row before.
    pub previous: String,
    /// The digest of this row.
    pub digest: String,
}

impl Audited {
    /// What the digest must be: that of all other columns, as one JSON array.
    fn expected(&self) -> String {
        let Self { id, at, actor, action, subject, detail, tree_before, tree_after, previous, .. } = self;
        let all =
            serde_json::json!([id, at, actor, action, subject, detail, tree_before, tree_after, previous]);
        Digest::of(all.to_string().as_bytes()).to_string()
    }
}

pub(crate) fn append(db: &Connection, entry: &Entry<'_>) -> rusqlite::Result<()> {
    let last = "SELECT id, digest FROM audit ORDER BY id DESC LIMIT 1";
    let (id, previous) = db
        .query_row(last, [], |r| Ok((r.get::<_, i64>(0)?, r.get::<_, String>(1)?)))
        .optional()?
        .unwrap_or_default();
    let mut row = Audited {
        id: id + 1,
        at: entry.at,
        actor: entry.actor.to_owned(),
        action: entry.action.to_owned(),
        subject: entry.subject.to_owned(),
        detail: entry.detail.to_owned(),
        tree_before: entry.tree_before.to_owned(),
        tree_after: entry.tree_after.to_owned(),
        previous,
        digest: String::new(),
    };
    row.digest = row.expected();
    db.prepare_cached("INSERT INTO audit VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?.execute(
        params![
            row.id,
            row.at,
            row.actor,
            row.action,
            row.subject,
            row.detail,
            row.tree_before,
            row.tree_after,
            row.previous,
            row.digest
        ],
    )?;
    Ok(())
}

impl Catalog {
    /// The last `most` rows, newest first.
    pub fn audit(&self, most: usize) -> Result<Vec<Audited>, CatalogError> {
        let mut rows = self.db.prepare("SELECT * FROM audit ORDER BY id DESC LIMIT ?1")?;
        let rows = rows.query_map([i64::try_from(most).unwrap_or(i64::MAX)], row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Follows the chain: the number of the first row that does not fit, or how many fit.
    pub fn check_audit(&self) -> Result<Result<i64, i64>, CatalogError> {
        let mut rows = self.db.prepare("SELECT * FROM audit ORDER BY id")?;
        let (mut place, mut previous) = (0, String::new());
        for found in rows.query_map([], row)? {
            let found = found?;
            place += 1;
            if found.id != place || found.previous != previous || found.digest != found.expected() {
                return Ok(Err(place));
            }
            previous = found.digest;
        }
        Ok(Ok(place))
    }
}

fn row(r: &rusqlite::Row<'_>) -> rusqlite::Result<Audited> {
    Ok(Audited {
        id: r.get(0)?,
        at: r.get(1)?,
        actor: r.get(2)?,
        action: r.get(3)?,
        subject: r.get(4)?,
        detail: r.get(5)?,
        tree_before: r.get(6)?,
        tree_after: r.get(7)?,
        previous: r.get(8)?,
        digest: r.get(9)?,
    })
}
