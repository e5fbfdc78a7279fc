//! Members: a public key, a pseudonym, roles; that is the whole record.
//!
//! A key is known by its thumbprint (RFC 7638). Whoever proves possession of it is the member; what a proof is, `api`
//! decides. A pseudonym is the first segment of its member's works' paths, so it can be none that already has works.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::audit::Entry;
use crate::work::words;
use crate::{Catalog, CatalogError, Day, Slug, audit};

words! {
    /// What a member may do.
    Role {
        /// Submit works.
        Creator = "creator",
        /// Decide on them.
        Moderator = "moderator",
        /// Rate them.
        Rater = "rater",
    }
}

/// A member as the database knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The row.
    pub(crate) id: i64,
    /// RFC 7638 thumbprint of the key, in base64url.
    pub thumbprint: String,
    /// The key as a JSON Web Key.
    pub public_key: String,
    /// The chosen name.
    pub pseudonym: Slug,
    /// What the member may do.
    pub roles: Vec<Role>,
}

impl Member {
    /// Whether the member has that role.
    pub fn is(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }
}

/// Why a pseudonym or a role could not be given.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// Somebody has it, or works are published under it.
    #[error("the pseudonym {0} is taken")]
    Taken(Slug),
    /// The key has a pseudonym already.
    #[error("this key already belongs to {0}")]
    Known(Slug),
    /// Nobody is called that.
    #[error("no member is called {0}")]
    Unknown(Slug),
    /// The database failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl From<rusqlite::Error> for MemberError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Catalog(error.into())
    }
}

impl Catalog {
    /// Gives `pseudonym` to a key. A new member may submit and rate.
    pub fn claim(
        &mut self,
        thumbprint: &str,
        public_key: &str,
        pseudonym: &Slug,
        day: Day,
    ) -> Result<Member, MemberError> {
        let all = self.write()?;
        if let Some(known) = by(&all, "thumbprint", thumbprint)? {
            return Err(MemberError::Known(known.pseudonym));
        }
        let taken = "SELECT EXISTS (SELECT 1 FROM members WHERE pseudonym = ?1)
                     OR EXISTS (SELECT 1 FROM works WHERE creator = ?1)";
        if all.query_row(taken, [pseudonym.as_str()], |r| r.get(0))? {
            return Err(MemberError::Taken(pseudonym.clone()));
        }
        let sql = "INSERT INTO members (thumbprint, public_key, pseudonym, joined) VALUES (?1, ?2, ?3, ?4)";
        all.execute(sql, params![thumbprint, public_key, pseudonym.as_str(), day.to_string()])?;
        let sql = "INSERT INTO member_roles (member, role) VALUES (last_insert_rowid(), 'creator'), (last_insert_rowid(), 'rater')";
        all.execute(sql, [])?;
        let member = by(&all, "thumbprint", thumbprint)?;
        all.commit()?;
        member.ok_or_else(|| MemberError::Unknown(pseudonym.clone()))
    }

    /// The member whose key has that thumbprint.
    pub fn member(&self, thumbprint: &str) -> Result<Option<Member>, CatalogError> {
        by(&self.db, "thumbprint", thumbprint)
    }

    /// All members, sorted by pseudonym.
    pub fn members(&self) -> Result<Vec<Member>, CatalogError> {
        let mut names = self.db.prepare("SELECT pseudonym FROM members ORDER BY pseudonym")?;
        let names = names.query_map([], |r| r.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
        names.iter().filter_map(|name| by(&self.db, "pseudonym", name).transpose()).collect()
    }

    /// Gives a role to a member; `true` if they did not have it.
    pub fn grant(&mut self, pseudonym: &Slug, role: Role, now: i64) -> Result<bool, MemberError> {
        let sql = "INSERT OR IGNORE INTO member_roles (member, role) VALUES (?1, ?2)";
        self.change_role("grant", sql, pseudonym, role, now)
    }

    /// Takes a role from a member; `true` if they had it.
    pub fn revoke(&mut self, pseudonym: &Slug, role: Role, now: i64) -> Result<bool, MemberError> {
        self.change_role(
            "revoke",
            "DELETE FROM member_roles WHERE member = ?1 AND role = ?2",
            pseudonym,
            role,
            now,
        )
    }

    fn change_role(
        &mut self,
        action: &str,
        sql: &str,
        pseudonym: &Slug,
        role: Role,
        now: i64,
    ) -> Result<bool, MemberError> {
        let all = self.write()?;
        let member = by(&all, "pseudonym", pseudonym.as_str())?
            .ok_or_else(|| MemberError::Unknown(pseudonym.clone()))?;
        let changed = all.execute(sql, params![member.id, role.as_str()])? > 0;
        if changed {
            audit::append(
                &all,
                &Entry { detail: role.as_str(), ..Entry::new(now, "operator", action, pseudonym.as_str()) },
            )?;
        }
        all.commit()?;
        Ok(changed)
    }
}

/// Whether the member has the role at this moment, inside the transaction that depends on it.
pub(crate) fn has_role(db: &Connection, member: &Member, role: Role) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM member_roles WHERE member = ?1 AND role = ?2)";
    db.query_row(sql, params![member.id, role.as_str()], |r| r.get(0))
}

pub(crate) fn by(db: &Connection, column: &'static str, value: &str) -> Result<Option<Member>, CatalogError> {
    let sql = format!("SELECT id, thumbprint, public_key, pseudonym FROM members WHERE {column} = ?1");
    let read = |r: &Row<'_>| {
        Ok((r.get::<_, i64>(0)?, r.get::<_, String>(1)?, r.get::<_, String>(2)?, r.get::<_, String>(3)?))
    };
    let Some((id, thumbprint, public_key, name)) =
        db.prepare_cached(&sql)?.query_row([value], read).optional()?
    else {
        return Ok(None);
    };
    let damaged = |message: String| CatalogError::Row { path: format!("/{name}/"), message };
    let mut roles = db.prepare_cached("SELECT role FROM member_roles WHERE member = ?1 ORDER BY role")?;
    let roles = roles.query_map([id], |r| r.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    let roles = roles.iter().map(|r| r.parse()).collect::<Result<_, _>>().map_err(damaged)?;
    let pseudonym = name.parse().map_err(|e: crate::slug::SlugError| damaged(e.to_string()))?;
    Ok(Some(Member { id, thumbprint, public_key, pseudonym, roles }))
}
