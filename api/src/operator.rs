//! What the operator asks on the command line: members and their roles, submissions that wait for Python, the audit.
//!
//! Called by `main`. Each returns what there is to say.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use catalog::member::{MemberError, Role};
use catalog::{Catalog, Slug};

use crate::work::{self, now};

fn open(data: &Path) -> anyhow::Result<Catalog> {
    std::fs::create_dir_all(data).with_context(|| format!("cannot create {}", data.display()))?;
    Ok(Catalog::open(&data.join("catalog.db"))?)
}

/// The members, one a line.
pub fn list(data: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    for member in open(data)?.members()? {
        let roles: Vec<&str> = member.roles.iter().map(|r| r.as_str()).collect();
        let _ = writeln!(text, "{:<32} {:<28} {}", member.pseudonym, roles.join(", "), member.thumbprint);
    }
    Ok(if text.is_empty() { "no members yet".to_owned() } else { text.trim_end().to_owned() })
}

/// Gives a role.
pub fn grant(data: &Path, pseudonym: &Slug, role: Role) -> anyhow::Result<String> {
    let is_new = open(data)?.grant(pseudonym, role, now()).map_err(explained)?;
    Ok(format!("{pseudonym} is {} {role}", if is_new { "now" } else { "already" }))
}

/// Takes a role.
pub fn revoke(data: &Path, pseudonym: &Slug, role: Role) -> anyhow::Result<String> {
    let had = open(data)?.revoke(pseudonym, role, now()).map_err(explained)?;
    Ok(format!("{pseudonym} {} {role}", if had { "is no longer" } else { "was not" }))
}

fn explained(error: MemberError) -> anyhow::Error {
    let context = match &error {
        MemberError::Unknown(name) => {
            format!("{name} must claim the name first, on /submit.html; `api member list` shows who did")
        }
        _ => return error.into(),
    };
    anyhow::Error::new(error).context(context)
}

/// Gives all Python submissions that wait back to their creators.
pub fn return_python(data: &Path, reason: &str) -> anyhow::Result<String> {
    let returned = open(data)?.return_python(reason, now())?;
    for job in &returned {
        let _ = std::fs::remove_dir_all(work::staging(data, job));
    }
    Ok(match returned.len() {
        0 => "no Python submission waits".to_owned(),
        1 => "returned 1 submission".to_owned(),
        n => format!("returned {n} submissions"),
    })
}

/// Follows the chain of the audit.
pub fn check_audit(data: &Path) -> anyhow::Result<String> {
    let catalog = open(data)?;
    match catalog.check_audit()? {
        Ok(rows) => {
            let last = catalog.audit(1)?.pop().map(|row| row.digest).unwrap_or_default();
            Ok(format!("{rows} rows, the chain holds; the last digest is {last}"))
        }
        Err(row) => bail!("row {row} of the audit is not what it was when it was written"),
    }
}
