//! The data folder of an installation: objects, directories, and which tree is served.
//!
//! ```text
//! data/objects/ab/…   bytes named by SHA-256            data/trees/000042 -> ../dirs/…   trees that were served
//! data/dirs/…         directories named by their list   data/live         -> dirs/…      the tree that is served
//! data/lock           held by the one writer            data/unsynced     a writer has not synced yet
//! ```
//!
//! A writer puts everything in place under names nothing points to yet, syncs the file system once, and then swaps
//! `live` by renaming a symlink over it. Killed anywhere, it leaves the old tree served. After a power failure a file
//! may be empty under its right name; that cannot be seen from the name, so `unsynced` records the boot in which the
//! writing began, and a writer that finds it from another boot checks the whole store before trusting it.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use crate::directory::{Directories, Directory, Entry, Fault};
use crate::store::{StoreError, at, read_dir, temporary};
use crate::{Digest, Store};

/// The data folder.
#[derive(Debug, Clone)]
pub struct Data {
    root: PathBuf,
    /// The objects.
    pub objects: Store,
    /// The directories.
    pub directories: Directories,
}

/// A tree that was served at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Its place in the order of publishing, from 1.
    pub number: u64,
    /// The digest of its root.
    pub digest: Digest,
    /// When it was published.
    pub published: SystemTime,
}

/// Why the data folder cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Somebody else is at it.
    #[error("another publish is running ({0}); wait for it to end, then run this again")]
    Locked(String),
    /// A file operation failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Data {
    /// Opens the data folder, creating what is not there.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        let trees = root.join("trees");
        fs::create_dir_all(&trees).map_err(at("create", &trees))?;
        Ok(Self {
            root: root.to_owned(),
            objects: Store::open(root.join("objects"))?,
            directories: Directories::open(root.join("dirs"))?,
        })
    }

    /// A path inside the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The digest of the tree that is served, if any is.
    pub fn live(&self) -> Result<Option<Digest>, StoreError> {
        let path = self.path("live");
        match fs::read_link(&path) {
            Ok(target) => Ok(target.file_name().and_then(|n| Digest::from_dir_name(n.to_str()?))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(at("read", &path)(e)),
        }
    }

    /// The trees that were served and are kept, oldest first.
    pub fn trees(&self) -> Result<Vec<Tree>, StoreError> {
        let mut trees = Vec::new();
        for path in read_dir(&self.path("trees"))? {
            let number = path.file_name().and_then(|n| n.to_str()?.parse().ok());
            let target = fs::read_link(&path).map_err(at("read", &path))?;
            let digest = target.file_name().and_then(|n| Digest::from_dir_name(n.to_str()?));
            let meta = fs::symlink_metadata(&path).map_err(at("read", &path))?;
            if let (Some(number), Some(digest)) = (number, digest) {
                trees.push(Tree { number, digest, published: meta.modified().map_err(at("read", &path))? });
            }
        }
        trees.sort_unstable_by_key(|t| t.number);
        Ok(trees)
    }

    /// Becomes the one writer. If the last one did not come to syncing, this first makes sure of the store.
    pub fn writer(&self) -> Result<Writer<'_>, WriteError> {
        let (path, lock) = self.lock()?;
        match lock.try_lock() {
            Ok(()) => self.write_with(lock),
            Err(TryLockError::WouldBlock) => Err(WriteError::Locked(holder(&lock))),
            Err(TryLockError::Error(e)) => Err(at("lock", &path)(e).into()),
        }
    }

    /// The same, but waits for another writer to end.
    pub fn writer_when_free(&self) -> Result<Writer<'_>, WriteError> {
        let (path, lock) = self.lock()?;
        lock.lock().map_err(at("lock", &path))?;
        self.write_with(lock)
    }

    fn lock(&self) -> Result<(PathBuf, File), StoreError> {
        let path = self.path("lock");
        let open = File::options().write(true).create(true).truncate(false).open(&path);
        let lock = open.map_err(at("open", &path))?;
        Ok((path, lock))
    }

    fn write_with(&self, lock: File) -> Result<Writer<'_>, WriteError> {
        let writer = Writer { data: self, lock, unsynced: Mutex::new(false) };
        writer.recover()?;
        Ok(writer)
    }

    /// Every directory below `root`, itself included, and every object they hold. A directory is entered once,
    /// however often it is linked.
    pub fn reachable(&self, roots: &[Digest]) -> Result<Reachable, StoreError> {
        let mut found = Reachable::default();
        let mut ahead = roots.to_vec();
        while let Some(digest) = ahead.pop() {
            if found.directories.insert(digest) {
                for (_, entry) in self.directories.read(&digest)?.entries() {
                    match entry {
                        Entry::File(file) => _ = found.objects.insert(file),
                        Entry::Dir(sub) => ahead.push(sub),
                    }
                }
            }
        }
        Ok(found)
    }

    /// Re-hashes every byte of a tree. Returns what is not as it should be, and how many directories were checked.
    pub fn verify(&self, root: Digest, mut progress: impl FnMut(usize)) -> (Vec<Fault>, usize) {
        let (mut seen, mut faults, mut ahead) = (HashSet::new(), Vec::new(), vec![root]);
        while let Some(digest) = ahead.pop() {
            if !seen.insert(digest) {
                continue;
            }
            progress(seen.len());
            match self.directories.check(&digest) {
                Ok(directory) => ahead.extend(directory.entries().filter_map(|(_, entry)| match entry {
                    Entry::Dir(sub) => Some(sub),
                    Entry::File(_) => None,
                })),
                Err(fault) => faults.push(fault),
            }
        }
        (faults, seen.len())
    }
}

/// What some trees are made of.
#[derive(Debug, Default)]
pub struct Reachable {
    /// Directories.
    pub directories: HashSet<Digest>,
    /// Objects.
    pub objects: HashSet<Digest>,
}

/// What a garbage collection removed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Entries of `trees/`.
    pub trees: usize,
    /// Directories.
    pub directories: usize,
    /// Objects.
    pub objects: usize,
}

/// The one writer of a data folder; dropping it lets the next one in.
#[derive(Debug)]
pub struct Writer<'a> {
    data: &'a Data,
    lock: File,
    unsynced: Mutex<bool>,
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        // Closing would not do: a child that another thread forks right now holds the lock until it executes something.
        let _ = self.lock.unlock();
    }
}

impl Writer<'_> {
    /// Stores `bytes` and returns their name. Writes nothing if they are there already.
    pub fn put(&self, bytes: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::of(bytes);
        if !self.data.objects.has(&digest) {
            self.begin()?;
            self.data.objects.write(&digest, bytes)?;
        }
        Ok(digest)
    }

    /// Writes a directory and returns its name. Writes nothing if it is there already. `previous` is an
    /// older directory with many of the same sub-directories, whose links are shared.
    pub fn directory(
        &self,
        directory: &Directory,
        previous: Option<(&Digest, &Directory)>,
    ) -> Result<Digest, StoreError> {
        let checksums = directory.checksums();
        let digest = Digest::of(checksums.as_bytes());
        if !self.data.directories.has(&digest) {
            self.begin()?;
            self.data.directories.write(&digest, directory, &checksums, &self.data.objects, previous)?;
        }
        Ok(digest)
    }

    /// Makes the next writer re-hash the whole store and drop what is damaged, so that it is made again where it can
    /// be.
    pub fn distrust(&self) -> Result<(), StoreError> {
        self.mark("distrusted")
    }

    /// Puts everything written so far on disk.
    pub fn sync(&self) -> Result<(), StoreError> {
        let mut unsynced = self.unsynced.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if *unsynced {
            let root = File::open(&self.data.root).map_err(at("open", &self.data.root))?;
            rustix::fs::syncfs(&root).map_err(|e| at("sync", &self.data.root)(e.into()))?;
            let marker = self.data.path("unsynced");
            fs::remove_file(&marker).map_err(at("remove", &marker))?;
            *unsynced = false;
        }
        Ok(())
    }

    /// Serves the tree of that digest from now on. It must have been written by [`Writer::directory`], or have been
    /// served before. When this returns, a power failure finds the new tree.
    pub fn serve(&self, tree: &Digest) -> Result<(), StoreError> {
        self.sync()?;
        let data = self.data;
        let number = data.trees()?.last().map_or(1, |t| t.number + 1);
        let (trees, name) = (data.path("trees"), tree.dir_name());
        let kept = trees.join(format!("{number:06}"));
        symlink(format!("../dirs/{name}"), &kept).map_err(at("create", &kept))?;
        let live = data.path("live");
        let new = temporary(&live);
        symlink(format!("dirs/{name}"), &new).map_err(at("create", &new))?;
        fs::rename(&new, &live).map_err(at("replace", &live))?;
        for path in [&trees, &data.root] {
            File::open(path).and_then(|f| f.sync_all()).map_err(at("sync", path))?;
        }
        Ok(())
    }

    /// Removes everything that neither the trees `keep` chooses, nor the served one, nor `objects` needs.
    pub fn sweep(&self, keep: impl Fn(&Tree) -> bool, objects: &[Digest]) -> Result<Swept, StoreError> {
        let data = self.data;
        let (kept, dropped): (Vec<_>, Vec<_>) = data.trees()?.into_iter().partition(keep);
        let roots: Vec<Digest> = kept.iter().map(|t| t.digest).chain(data.live()?).collect();
        let mut needed = data.reachable(&roots)?;
        needed.objects.extend(objects);
        let mut swept = Swept { trees: dropped.len(), ..Swept::default() };
        for tree in dropped {
            let path = data.path("trees").join(format!("{:06}", tree.number));
            fs::remove_file(&path).map_err(at("remove", &path))?;
        }
        let (directories, rubbish) = data.directories.list()?;
        for digest in directories.iter().filter(|d| !needed.directories.contains(d)) {
            data.directories.remove(digest)?;
            swept.directories += 1;
        }
        for path in rubbish {
            fs::remove_dir_all(&path).map_err(at("remove", &path))?;
        }
        let (stored, rubbish) = data.objects.list()?;
        for digest in stored.iter().filter(|d| !needed.objects.contains(d)) {
            data.objects.remove(digest)?;
            swept.objects += 1;
        }
        let links = read_dir(&data.root)?
            .into_iter()
            .filter(|p| p.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b".live.")));
        for path in rubbish.into_iter().chain(links) {
            fs::remove_file(&path).map_err(at("remove", &path))?;
        }
        Ok(swept)
    }

    /// Records that the store now holds bytes that may not be on disk.
    fn begin(&self) -> Result<(), StoreError> {
        let mut unsynced = self.unsynced.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !*unsynced {
            self.mark(&boot_id())?;
            *unsynced = true;
        }
        Ok(())
    }

    fn mark(&self, boot: &str) -> Result<(), StoreError> {
        let path = self.data.path("unsynced");
        let write = || -> io::Result<()> {
            let mut file = File::create(&path)?;
            file.write_all(boot.as_bytes())?;
            file.sync_all()
        };
        write().map_err(at("write", &path))
    }

    /// After a writer that never came to [`Writer::sync`]: if the machine has been restarted since, removes every
    /// object and directory that is not what its name says.
    fn recover(&self) -> Result<(), StoreError> {
        let path = self.data.path("unsynced");
        let boot = match fs::read_to_string(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            read => read.map_err(at("read", &path))?,
        };
        if boot != boot_id() {
            for digest in self.data.objects.list()?.0 {
                match self.data.objects.read(&digest) {
                    Err(StoreError::Damaged { .. }) => self.data.objects.remove(&digest)?,
                    read => _ = read?,
                }
            }
            for digest in self.data.directories.list()?.0 {
                if self.data.directories.check(&digest).is_err() {
                    self.data.directories.remove(&digest)?;
                }
            }
        }
        // What is there is whole, but perhaps still only in memory: this writer syncs it.
        *self.unsynced.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = true;
        Ok(())
    }
}

/// Who holds a lock, for people: proc_locks(5) has a line for each, with process and inode.
fn holder(lock: &File) -> String {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let inode = lock.metadata().map(|m| format!(":{}", m.ino())).unwrap_or_default();
    let fields = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let held = locks.lines().map(fields).find(|f| {
        f.get(1).is_some_and(|kind| kind == "FLOCK") && f.get(5).is_some_and(|id| id.ends_with(&inode))
    });
    held.and_then(|f| Some(format!("process {}", f.get(4)?))).unwrap_or_else(|| "process unknown".to_owned())
}

/// Names the time since the machine was started. A system that does not tell is taken for restarted each time.
fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> (tempfile::TempDir, Data) {
        let dir = tempfile::tempdir().unwrap();
        let data = Data::open(dir.path()).unwrap();
        (dir, data)
    }

    /// A root with one file and one sub-directory that holds `text`.
    fn tree(writer: &Writer<'_>, text: &str) -> Digest {
        let mut sub = Directory::default();
        sub.file("b.txt", writer.put(text.as_bytes()).unwrap());
        let mut root = Directory::default();
        root.file("a.txt", writer.put(b"a").unwrap());
        root.dir("sub", writer.directory(&sub, None).unwrap());
        writer.directory(&root, None).unwrap()
    }

    #[test]
    fn a_served_tree_can_be_read_through_live_and_checked_by_sha256sum() {
        let (dir, data) = data();
        let writer = data.writer().unwrap();
        let digest = tree(&writer, "b");
        writer.serve(&digest).unwrap();
        assert_eq!(data.live().unwrap(), Some(digest));
        assert_eq!(fs::read_to_string(dir.path().join("live/sub/b.txt")).unwrap(), "b");
        assert!(!dir.path().join("unsynced").exists());
        assert_eq!(data.verify(digest, |_| ()), (vec![], 2));
        for here in ["live", "live/sub"] {
            let ran = std::process::Command::new("sha256sum")
                .args(["--check", "--strict", "--quiet", "checksums.txt"])
                .current_dir(dir.path().join(here))
                .status();
            assert!(ran.unwrap().success(), "{here}");
        }
    }

    #[test]
    fn the_same_contents_are_the_same_tree_and_write_nothing() {
        let (dir, data) = data();
        let first = tree(&data.writer().unwrap(), "b");
        let writer = data.writer().unwrap();
        writer.sync().unwrap();
        assert_eq!(tree(&writer, "b"), first);
        assert!(!dir.path().join("unsynced").exists(), "nothing was written");
    }

    #[test]
    fn one_writer_at_a_time() {
        let (_dir, data) = data();
        let first = data.writer().unwrap();
        let error = data.writer().unwrap_err().to_string();
        let me = format!("(process {})", std::process::id());
        assert!(error.contains("another publish is running") && error.contains(&me), "{error}");
        drop(first);
        data.writer().unwrap();
    }

    #[test]
    fn trees_are_kept_in_order_and_swept_by_choice() {
        let (_dir, data) = data();
        let writer = data.writer().unwrap();
        let digests: Vec<Digest> = ["1", "2", "3"].iter().map(|t| tree(&writer, t)).collect();
        for digest in &digests {
            writer.serve(digest).unwrap();
        }
        let numbers: Vec<_> = data.trees().unwrap().iter().map(|t| (t.number, t.digest)).collect();
        assert_eq!(numbers, [(1, digests[0]), (2, digests[1]), (3, digests[2])]);
        let loose = writer.put(b"needed by a row").unwrap();
        writer.put(b"needed by nobody").unwrap();
        let swept = writer.sweep(|t| t.number == 2, &[loose]).unwrap();
        // Of the first tree its root, its sub-directory and its own object; and the loose object.
        assert_eq!(swept, Swept { trees: 2, directories: 2, objects: 2 });
        assert!(data.objects.has(&loose));
        assert_eq!(data.verify(digests[1], |_| ()), (vec![], 2));
        assert_eq!(
            data.verify(digests[2], |_| ()),
            (vec![], 2),
            "the served tree stays though it was not chosen"
        );
        assert!(!data.directories.has(&digests[0]));
    }

    #[test]
    fn serving_an_older_tree_again_is_safe_from_the_sweep() {
        let (_dir, data) = data();
        let writer = data.writer().unwrap();
        let (one, two) = (tree(&writer, "1"), tree(&writer, "2"));
        for digest in [one, two, one] {
            writer.serve(&digest).unwrap();
        }
        writer.sweep(|_| false, &[]).unwrap();
        assert_eq!(data.verify(data.live().unwrap().unwrap(), |_| ()), (vec![], 2));
    }

    #[test]
    fn a_changed_byte_a_moved_link_and_an_extra_file_are_found() {
        for damage in ["byte", "link", "extra", "list"] {
            let (_dir, data) = data();
            let writer = data.writer().unwrap();
            let (one, other) = (tree(&writer, "1"), tree(&writer, "2"));
            let path = data.directories.path(&one);
            match damage {
                "byte" => {
                    fs::remove_file(path.join("a.txt")).unwrap();
                    fs::write(path.join("a.txt"), "x").unwrap();
                }
                "link" => {
                    fs::remove_file(path.join("sub")).unwrap();
                    symlink(format!("../{}", other.dir_name()), path.join("sub")).unwrap();
                }
                "extra" => fs::write(path.join("c.txt"), "x").unwrap(),
                _ => {
                    fs::remove_file(path.join("checksums.txt")).unwrap();
                    fs::write(path.join("checksums.txt"), "").unwrap();
                }
            }
            let (faults, _) = data.verify(one, |_| ());
            assert_eq!(faults.len(), 1, "{damage}: {faults:?}");
            assert!(faults[0].path.starts_with(&path), "{damage}: {faults:?}");
        }
    }

    #[test]
    fn after_a_power_failure_damaged_names_are_not_trusted() {
        let (dir, data) = data();
        let writer = data.writer().unwrap();
        let served = tree(&writer, "served");
        writer.serve(&served).unwrap();
        let lost = tree(&writer, "lost");
        drop(writer);
        // What a power failure leaves: right names, empty files, a marker of an earlier boot.
        let object = data.objects.path(&Digest::of(b"lost"));
        fs::remove_file(&object).unwrap();
        fs::write(&object, "").unwrap();
        let list = data.directories.path(&lost).join("checksums.txt");
        fs::remove_file(&list).unwrap();
        fs::write(&list, "").unwrap();
        fs::write(dir.path().join("unsynced"), "another boot").unwrap();
        let writer = data.writer().unwrap();
        assert!(!object.exists() && !data.directories.has(&lost));
        let again = tree(&writer, "lost");
        writer.serve(&again).unwrap();
        assert_eq!((again, data.verify(again, |_| ())), (lost, (vec![], 2)));
        assert_eq!(data.verify(served, |_| ()), (vec![], 2));
        assert!(!dir.path().join("unsynced").exists());
    }
}
