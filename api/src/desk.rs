//! The desk: what members and moderators ask for, behind one door to the catalogue.
//!
//! Called by the `http` modules of members, submissions and review. The catalogue is read and written on threads that may
//! block; the connections are kept for the next request. Who a token belongs to is looked up each time: a role that was
//! revoked a moment ago is gone.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use catalog::member::{Member, Role};
use catalog::{Catalog, CatalogError, Data};
use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use policy::limits;
use tokio::sync::Semaphore;

use crate::members::pace::Pace;
use crate::members::token::{self, Claimed, Unauthorized};
use crate::work::now;

/// Where uploads lie until the gates have passed, below the data folder.
pub(crate) const STAGING: &str = "staging";
/// Where the screens of smoke runs lie while their works wait.
pub(crate) const SCREENSHOTS: &str = "screenshots";

/// The desk of one installation.
pub struct Desk {
    data: PathBuf,
    stored: Data,
    audience: String,
    pace: Pace,
    idle: Mutex<Vec<Catalog>>,
    /// Places for uploads.
    pub(crate) uploads: Semaphore,
}

/// Why somebody is turned away at the door.
#[derive(Debug)]
pub enum Turned {
    /// The token proves nothing, or nobody has its key.
    Unauthorized,
    /// The member may not.
    NotAllowed(Role),
    /// The key asks too often; so many seconds and it may again.
    TooOften(i64),
    /// A fault that stands in the log.
    Failed,
}

impl From<Unauthorized> for Turned {
    fn from(_: Unauthorized) -> Self {
        Self::Unauthorized
    }
}

/// Makes a folder, where there is none, that is closed to other users.
pub(crate) fn make_folder(path: &Path) -> anyhow::Result<()> {
    let cannot = || format!("cannot create {}", path.display());
    std::fs::create_dir_all(path.parent().unwrap_or(path)).with_context(cannot)?;
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error).with_context(cannot),
        _ => Ok(()),
    }
}

impl From<CatalogError> for Turned {
    fn from(error: CatalogError) -> Self {
        tracing::error!("{error}");
        Self::Failed
    }
}

impl Desk {
    /// Opens the catalogue and the folders in a data folder, for the members of `site`.
    pub fn open(data: &Path, site: &str) -> anyhow::Result<Self> {
        make_folder(&data.join(STAGING))?;
        make_folder(&data.join(SCREENSHOTS))?;
        Ok(Self {
            idle: Mutex::new(vec![Catalog::open(&data.join("catalog.db"))?]),
            stored: Data::open(data)?,
            data: data.to_owned(),
            audience: site.to_owned(),
            pace: Pace::new(limits().member.requests_per_minute_max),
            uploads: Semaphore::new(limits().submission.uploads_max),
        })
    }

    /// What is stored and served.
    pub(crate) fn stored(&self) -> &Data {
        &self.stored
    }

    /// The data folder.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Does something with the catalogue, on a thread that may block.
    pub(crate) async fn with<T, E>(
        self: &std::sync::Arc<Self>,
        act: impl FnOnce(&mut Catalog) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<CatalogError> + Send + 'static,
    {
        let desk = std::sync::Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || {
            let kept = desk.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut catalog = match kept {
                Some(catalog) => catalog,
                None => Catalog::open(&desk.data.join("catalog.db"))?,
            };
            let done = act(&mut catalog);
            desk.idle.lock().unwrap_or_else(PoisonError::into_inner).push(catalog);
            done
        });
        done.await.unwrap_or_else(|_| {
            let path = "a request that panicked".to_owned();
            Err(CatalogError::Row { path, message: "see the log".to_owned() }.into())
        })
    }

    /// Reads the token of a request. It proves nothing yet.
    pub(crate) fn claimed<'h>(&self, headers: &'h HeaderMap) -> Result<Claimed<'h>, Unauthorized> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return Err(Unauthorized) };
        let token = value.to_str().ok().and_then(|v| v.strip_prefix("Bearer ")).ok_or(Unauthorized)?;
        token::read(token, &self.audience, now())
    }

    /// The member who made the request, who must have that role.
    pub(crate) async fn member(
        self: &std::sync::Arc<Self>,
        headers: &HeaderMap,
        role: Option<Role>,
    ) -> Result<Member, Turned> {
        let claimed = self.claimed(headers)?;
        let thumbprint = claimed.thumbprint.clone();
        let found = self.with(move |catalog| catalog.member(&thumbprint)).await?;
        let member = found.ok_or(Turned::Unauthorized)?;
        claimed.signed_by(&token::PublicKey::parse(&member.public_key)?)?;
        self.pace.count(&member.thumbprint, now()).map_err(Turned::TooOften)?;
        match role {
            Some(role) if !member.is(role) => Err(Turned::NotAllowed(role)),
            _ => Ok(member),
        }
    }
}
