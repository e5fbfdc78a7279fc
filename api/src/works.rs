//! The works that are published, as the catalogue has them at the moment of asking.
//!
//! Asked by `python::http` for functions, and by `metrics` for whether a name is one that may be counted.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use catalog::db::CatalogError;
use catalog::store::StoreError;
use catalog::{Catalog, Data, Digest, Slug, Work};

/// The catalogue and its objects, read only.
pub struct Works {
    catalog: Mutex<Catalog>,
    data: Data,
}

impl Works {
    /// Opens the catalogue of a data folder.
    pub fn open(data: &Path) -> Result<Self, anyhow::Error> {
        Ok(Self { data: Data::open(data)?, catalog: Mutex::new(Catalog::open(&data.join("catalog.db"))?) })
    }

    /// The published version at a path.
    pub fn published(&self, creator: &Slug, slug: &Slug) -> Result<Option<Work>, CatalogError> {
        let catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        catalog.published_version(creator, slug).inspect_err(|e| tracing::error!("{e}"))
    }

    /// The version that waits and may be seen under the token of a preview.
    pub fn previewed(&self, token: &Slug, now: i64) -> Result<Option<Work>, CatalogError> {
        let catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        let pending = catalog.preview(token.as_str(), now).inspect_err(|e| tracing::error!("{e}"))?;
        Ok(pending.map(|p| p.work))
    }

    /// The bytes of an object.
    pub fn object(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        self.data.objects.read(digest).inspect_err(|e| tracing::error!("{e}"))
    }
}
