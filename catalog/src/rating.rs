//! Ratings: one a member and work, shown as an average with the next regeneration.
//!
//! A rating is an event like an approval, but nobody waits for it: its regeneration is enqueued for a while later, and
//! one that comes for another reason takes the ratings along.

use std::collections::HashMap;

use rusqlite::{OptionalExtension as _, params};
use serde::Serialize;

use crate::member::{self, Member, Role};
use crate::slug::SlugError;
use crate::{Catalog, CatalogError, Slug, job};

/// What members think of a work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Rating {
    /// Ten times the average number of stars, rounded.
    pub tenths: u32,
    /// How many members rated it.
    pub members: u32,
}

/// From one to five.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stars(u8);

impl Stars {
    /// Reads a number of stars.
    pub fn parse(number: u64) -> Option<Self> {
        u8::try_from(number).ok().filter(|n| (1..=5).contains(n)).map(Self)
    }
}

/// Why a rating was not taken.
#[derive(Debug, thiserror::Error)]
pub enum RateError {
    /// The member may not.
    #[error("{0} is not a rater")]
    NotRater(Slug),
    /// It is the member's own.
    #[error("nobody rates their own work")]
    Own,
    /// Nothing is published there.
    #[error("no published work at {0}")]
    NotPublished(String),
    /// The database failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl From<rusqlite::Error> for RateError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Catalog(error.into())
    }
}

impl Catalog {
    /// Rates a published work, in the place of an earlier rating. It is shown `seconds` later at the latest.
    pub fn rate(
        &mut self,
        member: &Member,
        (creator, slug): (&Slug, &Slug),
        Stars(stars): Stars,
        now: i64,
        seconds: i64,
    ) -> Result<(), RateError> {
        let all = self.write()?;
        if !member::has_role(&all, member, Role::Rater)? {
            return Err(RateError::NotRater(member.pseudonym.clone()));
        }
        if member.pseudonym == *creator {
            return Err(RateError::Own);
        }
        let path = format!("/{creator}/{slug}/");
        let published = "SELECT 1 FROM works WHERE creator = ?1 AND slug = ?2 AND status = 'published'";
        let published: Option<i64> =
            all.query_row(published, [creator.as_str(), slug.as_str()], |r| r.get(0)).optional()?;
        if published.is_none() {
            return Err(RateError::NotPublished(path));
        }
        let sql = "INSERT OR REPLACE INTO ratings (member, creator, slug, stars) VALUES (?1, ?2, ?3, ?4)";
        all.execute(sql, params![member.id, creator.as_str(), slug.as_str(), stars])?;
        job::emit(&all, "work.rated", &path, now, now + seconds)?;
        Ok(all.commit()?)
    }

    /// The stars that a member gave a work.
    pub fn stars_of(&self, member: &Member, creator: &Slug, slug: &Slug) -> Result<Option<u8>, CatalogError> {
        let sql = "SELECT stars FROM ratings WHERE member = ?1 AND creator = ?2 AND slug = ?3";
        let key = params![member.id, creator.as_str(), slug.as_str()];
        Ok(self.db.query_row(sql, key, |r| r.get(0)).optional()?)
    }

    /// What members think of each work that was rated.
    pub fn ratings(&self) -> Result<HashMap<(Slug, Slug), Rating>, CatalogError> {
        let sql = "SELECT creator, slug, CAST(round(avg(stars) * 10) AS INTEGER), count(*) FROM ratings GROUP BY 1, 2";
        let mut rows = self.db.prepare(sql)?;
        let mut rows = rows.query([])?;
        let mut ratings = HashMap::new();
        while let Some(row) = rows.next()? {
            let slug = |column| -> Result<Slug, CatalogError> {
                let text: String = row.get(column)?;
                text.parse().map_err(|e: SlugError| CatalogError::Row {
                    path: "ratings".into(),
                    message: e.to_string(),
                })
            };
            ratings.insert((slug(0)?, slug(1)?), Rating { tenths: row.get(2)?, members: row.get(3)? });
        }
        Ok(ratings)
    }
}
