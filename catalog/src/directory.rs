//! Directories named by their contents.
//!
//! A directory holds hard links to objects, symlinks to other directories, and `checksums.txt`: one line of
//! `sha256sum` a file and one line for the list of each sub-directory, sorted by path. The digest of that list is the
//! directory's name, so the name of a root names every byte below it, and `sha256sum -c checksums.txt` checks it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::slug::CHECKSUMS;
use crate::store::{at, read_dir, temporary, write_file};
use crate::{Digest, Store};

pub use crate::store::StoreError;

/// What a directory holds: file names and `name/checksums.txt` for sub-directories, each with its digest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directory {
    lines: BTreeMap<String, Digest>,
}

/// One entry of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// The object of a file.
    File(Digest),
    /// The name of a sub-directory.
    Dir(Digest),
}

/// A list that is not the `checksums.txt` of a directory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text:?} is not `<sha256>  <name>` in sorted order")]
pub struct ChecksumsError {
    /// Line, from 1.
    pub line: usize,
    /// What it says.
    pub text: String,
}

impl Directory {
    /// Adds a file. Names are plain: no slash, backslash, line break, and not `checksums.txt`.
    pub fn file(&mut self, name: &str, digest: Digest) {
        assert!(is_plain(name), "{name:?} cannot be a file of a directory");
        self.lines.insert(name.to_owned(), digest);
    }

    /// Adds a sub-directory.
    pub fn dir(&mut self, name: &str, digest: Digest) {
        assert!(is_plain(name), "{name:?} cannot be a sub-directory");
        self.lines.insert(format!("{name}/{CHECKSUMS}"), digest);
    }

    /// The entries, sorted by path.
    pub fn entries(&self) -> impl Iterator<Item = (&str, Entry)> {
        self.lines.iter().map(|(path, digest)| match path.split_once('/') {
            Some((name, _)) => (name, Entry::Dir(*digest)),
            None => (path.as_str(), Entry::File(*digest)),
        })
    }

    /// The sub-directory of that name.
    pub fn sub(&self, name: &str) -> Option<Digest> {
        self.lines.get(&format!("{name}/{CHECKSUMS}")).copied()
    }

    /// The text of `checksums.txt`.
    pub fn checksums(&self) -> String {
        let mut text = String::with_capacity(self.lines.len() * 90);
        for (path, digest) in &self.lines {
            let _ = writeln!(text, "{digest}  {path}");
        }
        text
    }

    /// Reads a `checksums.txt`.
    pub fn parse(text: &str) -> Result<Self, ChecksumsError> {
        let mut lines = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let error = || ChecksumsError { line: number + 1, text: line.to_owned() };
            let (digest, path) = line.split_once("  ").ok_or_else(error)?;
            let name = path.strip_suffix(&format!("/{CHECKSUMS}")).unwrap_or(path);
            let sorted = lines.last_key_value().is_none_or(|(last, _): (&String, _)| last.as_str() < path);
            if !is_plain(name) || !sorted {
                return Err(error());
            }
            lines.insert(path.to_owned(), digest.parse().map_err(|_| error())?);
        }
        Ok(Self { lines })
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name != "."
        && name != ".."
        && name != CHECKSUMS
        && !name.contains(['/', '\\', '\n', '\r'])
}

/// The directories below one folder.
#[derive(Debug, Clone)]
pub struct Directories {
    root: PathBuf,
}

impl Directories {
    /// The directories below `root`, which is created if it is not there.
    pub fn open(root: PathBuf) -> Result<Self, StoreError> {
        fs::create_dir_all(&root).map_err(at("create", &root))?;
        Ok(Self { root })
    }

    /// Where the directory of that digest is, or would be.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        self.root.join(digest.dir_name())
    }

    /// Whether there is a directory of that digest.
    pub fn has(&self, digest: &Digest) -> bool {
        self.path(digest).exists()
    }

    /// What the directory of that digest holds, checked against its name.
    pub fn read(&self, digest: &Digest) -> Result<Directory, StoreError> {
        let path = self.path(digest).join(CHECKSUMS);
        let bytes = fs::read(&path).map_err(at("read", &path))?;
        let found = Digest::of(&bytes);
        let damaged = StoreError::Damaged { expected: *digest, found };
        if found != *digest {
            return Err(damaged);
        }
        std::str::from_utf8(&bytes).ok().and_then(|text| Directory::parse(text).ok()).ok_or(damaged)
    }

    /// Writes a directory whose list is `checksums`. `previous` is an older directory with many of the same
    /// sub-directories: links to those are shared with it, which costs the file system less than new ones.
    pub(crate) fn write(
        &self,
        digest: &Digest,
        directory: &Directory,
        checksums: &str,
        store: &Store,
        previous: Option<(&Digest, &Directory)>,
    ) -> Result<(), StoreError> {
        let path = self.path(digest);
        let new = temporary(&path);
        let written = self.fill(&new, digest, directory, checksums, store, previous).and_then(|()| {
            match fs::rename(&new, &path) {
                // Another thread wrote the same directory meanwhile.
                Err(_) if path.exists() => fs::remove_dir_all(&new).map_err(at("remove", &new)),
                renamed => renamed.map_err(at("write", &path)),
            }
        });
        if written.is_err() {
            // The name is not taken yet; what is left of it is only space.
            let _ = fs::remove_dir_all(&new);
        }
        written
    }

    fn fill(
        &self,
        new: &Path,
        digest: &Digest,
        directory: &Directory,
        checksums: &str,
        store: &Store,
        previous: Option<(&Digest, &Directory)>,
    ) -> Result<(), StoreError> {
        fs::create_dir(new).map_err(at("create", new))?;
        let previous = previous.map(|(digest, old)| (self.path(digest), old));
        for (name, entry) in directory.entries() {
            let here = new.join(name);
            match entry {
                Entry::File(file) => store.link(&file, &here)?,
                Entry::Dir(sub) => {
                    let shared = previous
                        .as_ref()
                        .filter(|(_, old)| old.sub(name) == Some(sub))
                        .is_some_and(|(path, _)| fs::hard_link(path.join(name), &here).is_ok());
                    if !shared {
                        symlink(format!("../{}", sub.dir_name()), &here).map_err(at("link", &here))?;
                    }
                }
            }
        }
        let list = new.join(CHECKSUMS);
        write_file(&list, checksums.as_bytes(), digest).map_err(at("write", &list))
    }

    /// The digests of all directories, and the paths of what interrupted writers left behind.
    pub fn list(&self) -> Result<(Vec<Digest>, Vec<PathBuf>), StoreError> {
        let (mut directories, mut rubbish) = (Vec::new(), Vec::new());
        for path in read_dir(&self.root)? {
            match path.file_name().and_then(|n| Digest::from_dir_name(n.to_str()?)) {
                Some(digest) => directories.push(digest),
                None => rubbish.push(path),
            }
        }
        Ok((directories, rubbish))
    }

    /// Removes a directory. What it held stays. The name goes first, so that whoever is killed here leaves no
    /// directory that lacks half of what its name promises.
    pub(crate) fn remove(&self, digest: &Digest) -> Result<(), StoreError> {
        let path = self.path(digest);
        let old = temporary(&path);
        fs::rename(&path, &old).and_then(|()| fs::remove_dir_all(&old)).map_err(at("remove", &path))
    }

    /// Compares a directory with its name: the list, the bytes of every file, the target of every link, and that
    /// there is nothing else. Sub-directories are named, not entered.
    pub fn check(&self, digest: &Digest) -> Result<Directory, Fault> {
        let path = self.path(digest);
        let fault = |message: String| Fault { path: path.clone(), message };
        let directory = self.read(digest).map_err(|e| Fault {
            path: path.join(CHECKSUMS),
            message: match e {
                StoreError::Damaged { found, .. } => {
                    format!("its bytes have digest {found}, its name says {digest}")
                }
                e => e.to_string(),
            },
        })?;
        let present = read_dir(&path).map_err(|e| fault(e.to_string()))?.len();
        if present != directory.lines.len() + 1 {
            return Err(fault(format!(
                "holds {present} files, its list names {}",
                directory.lines.len() + 1
            )));
        }
        for (name, entry) in directory.entries() {
            let here = path.join(name);
            let fault = |message: String| Fault { path: here.clone(), message };
            let io = |e: io::Error| fault(e.to_string());
            match entry {
                Entry::File(expected) => {
                    let (found, _) = Digest::of_reader(fs::File::open(&here).map_err(io)?).map_err(io)?;
                    if found != expected {
                        return Err(fault(format!(
                            "its bytes have digest {found}, its list says {expected}"
                        )));
                    }
                }
                Entry::Dir(sub) => {
                    let target = fs::read_link(&here).map_err(io)?;
                    if target != Path::new(&format!("../{}", sub.dir_name())) {
                        return Err(fault(format!("points to {}, its list says {sub}", target.display())));
                    }
                }
            }
        }
        Ok(directory)
    }
}

/// Something in a tree that is not what its name says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct Fault {
    /// The file or directory.
    pub path: PathBuf,
    /// What was found, and what was expected.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_list_is_sorted_lines_of_sha256sum() {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        let mut directory = Directory::default();
        directory.dir("a", a);
        directory.file("a-b", b);
        let text = format!("{b}  a-b\n{a}  a/checksums.txt\n");
        assert_eq!(directory.checksums(), text);
        assert_eq!(Directory::parse(&text), Ok(directory.clone()));
        assert_eq!(directory.sub("a"), Some(a));
        assert_eq!(directory.sub("a-b"), None);
        assert_eq!(directory.entries().collect::<Vec<_>>(), [("a-b", Entry::File(b)), ("a", Entry::Dir(a))]);
    }

    #[test]
    fn lists_that_are_refused() {
        let d = Digest::of(b"");
        for (text, line) in [
            ("x  y\n".to_owned(), 1),
            (format!("{d} y\n"), 1),
            (format!("{d}  b\n{d}  a\n"), 2),
            (format!("{d}  a\n{d}  a\n"), 2),
            (format!("{d}  ../a\n"), 1),
            (format!("{d}  a/b/checksums.txt\n"), 1),
            (format!("{d}  checksums.txt\n"), 1),
        ] {
            assert_eq!(Directory::parse(&text).unwrap_err().line, line, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_list_says_all_of_a_directory(names in proptest::collection::btree_set("[a-z.-]{1,6}", 0..12)) {
            let mut directory = Directory::default();
            for (i, name) in names.iter().filter(|n| is_plain(n)).enumerate() {
                if i % 2 == 0 { directory.file(name, Digest::of(name.as_bytes())) }
                else { directory.dir(name, Digest::of(name.as_bytes())) }
            }
            prop_assert_eq!(Directory::parse(&directory.checksums()), Ok(directory));
        }
    }
}
