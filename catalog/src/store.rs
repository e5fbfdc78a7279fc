//! The object store: bytes named by their SHA-256, mode 0444, never changed.
//!
//! An object appears under its name whole or not at all, because it is written beside it and renamed. Nothing here is
//! synced to disk: [`crate::live::Writer`] does that once for everything a publish wrote, and on the next start knows
//! whether it came to that.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::hash::BuildHasher as _;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::Digest;

/// The objects below one folder.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
}

/// Why bytes could not be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file operation failed.
    #[error("cannot {verb} {path}: {source}{}", remedy(.source))]
    Io {
        /// What was being done.
        verb: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No object has that name.
    #[error("object {0} is missing from the store; restore it from a backup")]
    Missing(Digest),
    /// An object's bytes are not those of its name.
    #[error("object {expected} is damaged: its bytes have digest {found}; restore it from a backup")]
    Damaged {
        /// The name.
        expected: Digest,
        /// What the bytes hash to.
        found: Digest,
    },
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space (`sitegen gc` removes old trees) and run it again"
        }
        io::ErrorKind::PermissionDenied => "; run as the owner of the data folder",
        io::ErrorKind::ReadOnlyFilesystem => "; mount the data folder writable",
        _ => "",
    }
}

/// Attaches a verb and a path to an I/O error.
pub(crate) fn at<'a>(verb: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> StoreError + use<'a> {
    move |source| StoreError::Io { verb, path: path.to_owned(), source }
}

/// A name that no other writer uses or has left behind: the final name, 64 random bits and a count. A process number
/// would not do: in a container every publish may be process 1.
pub(crate) fn temporary(path: &Path) -> PathBuf {
    static WRITER: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{:016x}.{count}", *WRITER))
}

impl Store {
    /// The store below `root`, which is created if it is not there.
    pub fn open(root: PathBuf) -> Result<Self, StoreError> {
        if !root.join("ff").is_dir() {
            for shard in 0..=255 {
                let path = root.join(format!("{shard:02x}"));
                fs::create_dir_all(&path).map_err(at("create", &path))?;
            }
        }
        Ok(Self { root })
    }

    /// Where the object of that digest is, or would be.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        let hex = digest.to_string();
        let mut path = self.root.join(&hex[..2]);
        path.push(&hex[2..]);
        path
    }

    /// Whether there is an object of that digest.
    pub fn has(&self, digest: &Digest) -> bool {
        self.path(digest).exists()
    }

    /// Whether the object of that digest is there with the size and time it was written with. That is cheap, and finds
    /// what people and programs do to files; what disks do to them only hashing finds.
    pub fn looks_whole(&self, digest: &Digest, bytes: u64) -> bool {
        fs::metadata(self.path(digest)).is_ok_and(|m| m.len() == bytes && m.mtime() == digest.mtime_seconds())
    }

    /// Writes `bytes` as the object of `digest`.
    pub(crate) fn write(&self, digest: &Digest, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.path(digest);
        let new = temporary(&path);
        let written = write_file(&new, bytes, digest).and_then(|()| fs::rename(&new, &path));
        written.map_err(|e| {
            // The name is not taken yet; what is left of it is only space.
            let _ = fs::remove_file(&new);
            at("write", &path)(e)
        })
    }

    /// The bytes of an object, checked against its name.
    pub fn read(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        let path = self.path(digest);
        let bytes = match fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(StoreError::Missing(*digest)),
            read => read.map_err(at("read", &path))?,
        };
        let found = Digest::of(&bytes);
        if found == *digest { Ok(bytes) } else { Err(StoreError::Damaged { expected: *digest, found }) }
    }

    /// Makes `new` a hard link to an object. A file system allows an inode only so many links (65,000 on ext4): past
    /// that, the object gets a second inode and goes on under its name.
    pub fn link(&self, digest: &Digest, new: &Path) -> Result<(), StoreError> {
        let path = self.path(digest);
        match fs::hard_link(&path, new) {
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::MLINK.raw_os_error()) => {
                self.write(digest, &self.read(digest)?)?;
                fs::hard_link(&path, new).map_err(at("link", new))
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound && !path.exists() => {
                Err(StoreError::Missing(*digest))
            }
            linked => linked.map_err(at("link", new)),
        }
    }

    /// The digests of all objects, and the paths of what interrupted writers left behind.
    pub fn list(&self) -> Result<(Vec<Digest>, Vec<PathBuf>), StoreError> {
        let (mut objects, mut rubbish) = (Vec::new(), Vec::new());
        for shard in read_dir(&self.root)? {
            for path in read_dir(&shard)? {
                let hex: Option<String> = [&shard, &path].iter().map(|p| p.file_name()?.to_str()).collect();
                match hex.and_then(|h| h.parse().ok()) {
                    Some(digest) => objects.push(digest),
                    None => rubbish.push(path),
                }
            }
        }
        Ok((objects, rubbish))
    }

    /// Removes an object. Links to it stay what they are.
    pub(crate) fn remove(&self, digest: &Digest) -> Result<(), StoreError> {
        let path = self.path(digest);
        fs::remove_file(&path).map_err(at("remove", &path))
    }
}

/// Writes a new read-only file whose time is made from `digest`.
pub(crate) fn write_file(path: &Path, bytes: &[u8], digest: &Digest) -> io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o444).open(path)?;
    file.write_all(bytes)?;
    file.set_permissions(Permissions::from_mode(0o444))?;
    let seconds = u64::try_from(digest.mtime_seconds()).unwrap_or_default();
    file.set_times(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)))
}

/// The paths in a folder, sorted.
pub(crate) fn read_dir(path: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = fs::read_dir(path).map_err(at("list", path))?;
    let mut paths =
        entries.map(|e| Ok(e.map_err(at("list", path))?.path())).collect::<Result<Vec<_>, StoreError>>()?;
    paths.sort_unstable();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use proptest::prelude::*;

    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("objects")).unwrap();
        (dir, store)
    }

    fn put(store: &Store, bytes: &[u8]) -> Digest {
        let digest = Digest::of(bytes);
        store.write(&digest, bytes).unwrap();
        digest
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn what_is_put_is_what_is_got(bytes in proptest::collection::vec(any::<u8>(), 0..5000)) {
            let (_dir, store) = store();
            let digest = put(&store, &bytes);
            prop_assert!(store.has(&digest));
            prop_assert_eq!(store.read(&digest).unwrap(), bytes);
            prop_assert_eq!(store.list().unwrap(), (vec![digest], vec![]));
        }
    }

    #[test]
    fn an_object_is_read_only_and_its_time_comes_from_its_name() {
        let (_dir, store) = store();
        let digest = put(&store, b"abc");
        let meta = fs::metadata(store.path(&digest)).unwrap();
        assert_eq!(
            (meta.mode() & 0o777, meta.mtime(), meta.mtime_nsec()),
            (0o444, digest.mtime_seconds(), 0)
        );
    }

    #[test]
    fn a_changed_or_missing_object_is_refused() {
        let (_dir, store) = store();
        let digest = put(&store, b"abc");
        let path = store.path(&digest);
        fs::remove_file(&path).unwrap();
        assert!(matches!(store.read(&digest), Err(StoreError::Missing(d)) if d == digest));
        let link = store.link(&digest, &path.with_extension("link"));
        assert!(matches!(link, Err(StoreError::Missing(d)) if d == digest));
        fs::write(&path, b"abd").unwrap();
        let error = store.read(&digest).unwrap_err().to_string();
        assert!(
            error.contains(&digest.to_string()) && error.contains(&Digest::of(b"abd").to_string()),
            "{error}"
        );
    }

    #[test]
    fn rubbish_of_an_interrupted_writer_is_told_apart() {
        let (_dir, store) = store();
        let digest = put(&store, b"abc");
        let left = temporary(&store.path(&digest));
        fs::write(&left, b"ab").unwrap();
        assert_eq!(store.list().unwrap(), (vec![digest], vec![left]));
    }

    #[test]
    fn a_failed_write_names_the_object_and_leaves_nothing() {
        let (_dir, store) = store();
        let digest = Digest::of(b"abc");
        fs::remove_dir(store.path(&digest).parent().unwrap()).unwrap();
        let error = store.write(&digest, b"abc").unwrap_err().to_string();
        assert!(error.starts_with("cannot write ") && error.contains(&digest.to_string()[2..]), "{error}");
        assert_eq!(store.list().unwrap().1, Vec::<PathBuf>::new());
    }
}
