//! Who holds leases: a worker process, as long as it lives.
//!
//! A process locks a file of its own and puts that file's name before every lease. The kernel lets go of the lock when
//! the process ends, however it ends; so whoever finds a lease whose file is not locked may end it, and a job of a worker
//! that was killed goes on as soon as another one looks, not when its lease runs out. On another machine, or after the
//! file is gone, the lease's own end still holds.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use anyhow::Context as _;
use catalog::Catalog;

use super::{now, word};

/// This process, as a holder of leases.
pub(super) struct Holder {
    name: String,
    _lock: File,
}

impl Holder {
    /// Begins to hold.
    pub(super) fn new(data: &Path) -> anyhow::Result<Self> {
        let (folder, name) = (data.join("workers"), word()?);
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        // Locked before it has its name, so that nobody finds it unlocked.
        let (new, path) = (folder.join(format!(".{name}")), folder.join(&name));
        let lock = File::create_new(&new).with_context(|| format!("cannot create {}", new.display()))?;
        lock.try_lock().context("a new file is locked already")?;
        fs::rename(&new, &path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self { name, _lock: lock })
    }

    /// A word for a new lease.
    pub(super) fn lease(&self) -> anyhow::Result<String> {
        Ok(format!("{}.{}", self.name, word()?))
    }
}

/// Ends the leases of processes that are gone, and removes their files.
pub(super) fn end_of_others(data: &Path, catalog: &Catalog) -> anyhow::Result<()> {
    let leases = catalog.leases()?;
    for entry in fs::read_dir(data.join("workers")).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let Ok(file) = File::open(entry.path()) else { continue };
        match file.try_lock() {
            Ok(()) if !name.starts_with('.') => {}
            Ok(()) | Err(TryLockError::WouldBlock | TryLockError::Error(_)) => continue,
        }
        for lease in leases.iter().filter(|l| l.split('.').next() == Some(&name)) {
            tracing::info!(lease, "its holder is gone");
            catalog.end_lease(lease, now())?;
        }
        // Last, so that whoever is killed before it leaves the rest to the next one.
        fs::remove_file(entry.path())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use catalog::job::Kind;

    #[test]
    fn leases_end_with_their_holder_and_not_before() {
        let dir = tempfile::tempdir().unwrap();
        let mut catalog = Catalog::open(&dir.path().join("catalog.db")).unwrap();
        catalog.enqueue("job", Kind::Verify, "", 0).unwrap();
        let holder = Holder::new(dir.path()).unwrap();
        catalog.lease(&holder.lease().unwrap(), now(), 60).unwrap().unwrap();
        end_of_others(dir.path(), &catalog).unwrap();
        assert!(catalog.lease("other", now(), 60).unwrap().is_none());
        drop(holder);
        end_of_others(dir.path(), &catalog).unwrap();
        assert_eq!(catalog.lease("other", now(), 60).unwrap().unwrap().attempts, 2);
        assert_eq!(fs::read_dir(dir.path().join("workers")).unwrap().count(), 0);
    }
}
