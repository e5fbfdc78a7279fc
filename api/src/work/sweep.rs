//! Removes what nobody needs any more: leases of the dead, staged files, previews, screenshots. Called by an idle worker.
//!
//! The catalogue says what is needed; a folder that it does not know may still be an upload under way, and is left
//! alone until no upload can be that old. Nothing here can fail a job: what cannot be removed is removed another time.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use catalog::submission::State;
use catalog::{Catalog, CatalogError};
use policy::limits;

use super::now;
use crate::desk::{SCREENSHOTS, STAGING};

pub(super) fn all(data: &Path, catalog: &Catalog) {
    if let Err(error) = super::holder::end_of_others(data, catalog) {
        tracing::warn!("cannot look after leases: {error:#}");
    }
    if let Err(error) = known(data, catalog) {
        tracing::warn!("cannot tidy up: {error}");
    }
}

fn known(data: &Path, catalog: &Catalog) -> Result<(), CatalogError> {
    let upload = Duration::from_secs(limits().submission.upload_seconds_max) * 2;
    remove(&data.join(STAGING), |job, age| match catalog.submission(job) {
        Ok(Some(submission)) => submission.state != State::Received,
        Ok(None) => age > upload,
        Err(_) => false,
    });
    catalog.close_previews(now())?;
    let previews: HashSet<String> = catalog.open_previews(now())?.into_iter().collect();
    for side in ["site", "content"] {
        remove(&data.join("preview").join(side), |name, _| !previews.contains(name.trim_start_matches('.')));
    }
    let folder = data.join(SCREENSHOTS);
    if folder.is_dir() {
        let waiting: HashSet<String> = catalog.pending()?.into_iter().map(|p| p.job).collect();
        // One that is new may belong to a work that is about to be written down.
        remove(&folder, |name, age| !waiting.contains(name.trim_end_matches(".png")) && age > upload);
    }
    Ok(())
}

fn remove(folder: &Path, needless: impl Fn(&str, Duration) -> bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let modified = entry.metadata().and_then(|m| m.modified());
        let age = modified.ok().and_then(|m| SystemTime::now().duration_since(m).ok()).unwrap_or_default();
        if needless(&entry.file_name().to_string_lossy(), age) {
            let path = entry.path();
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            if let Err(error) = removed {
                tracing::warn!("cannot remove {}: {error}", path.display());
            }
        }
    }
}
