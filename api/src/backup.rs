//! `api backup DIR` and `api restore DIR`: the databases and the objects they name, as a folder that can be checked.
//!
//! A backup is made beside a running server: each database is copied in one read transaction, then the objects that the
//! copied catalogue names. Everything is checked and synced before the folder gets its name, so a folder of that name
//! is a whole backup, whenever the program was killed. `sha256sum -c checksums.txt` checks it without this program.
//! The secret of the words is not in it: whoever finds a backup must not find both.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use catalog::{Catalog, Data, Digest};
use rusqlite::{Connection, OpenFlags};

use crate::{app, db};

const CHECKSUMS: &str = "checksums.txt";

/// Where the databases are in a backup, and in a data folder.
fn databases(data: &Path) -> [(&'static str, PathBuf); 2] {
    [("catalog.db", data.join("catalog.db")), ("saves.db", app::saves_path(data))]
}

/// Backs `data` up into the folder `to`, which must not be there yet. Returns how many files that were.
pub fn backup(data: &Path, to: &Path) -> anyhow::Result<usize> {
    ensure!(!to.exists(), "{} is there already; name a new folder for each backup", to.display());
    let mut partial = to.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    if partial.exists() {
        // What an earlier one left when it was killed.
        fs::remove_dir_all(&partial).with_context(|| format!("cannot remove {}", partial.display()))?;
    }
    fs::create_dir_all(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
    let mut files = BTreeMap::new();
    for (name, path) in databases(data) {
        if !path.exists() {
            bail!("{} is not there; is `data` in the configuration the right folder?", path.display());
        }
        let copy = partial.join(name);
        copy_database(&path, &copy)?;
        files.insert(name.to_owned(), digest_of(&copy)?);
    }
    let store = Data::open(data)?.objects;
    for digest in Catalog::open(&partial.join("catalog.db"))?.file_digests()? {
        let name = object_name(&digest);
        let copy = partial.join(&name);
        copy_file(&store.path(&digest), &copy)?;
        let found = digest_of(&copy)?;
        ensure!(
            found == digest,
            "the object {digest} is damaged: its bytes have digest {found}; mend it first"
        );
        files.insert(name, digest);
    }
    leave_wal(&partial.join("catalog.db"))?;
    files.insert("catalog.db".to_owned(), digest_of(&partial.join("catalog.db"))?);
    let lines: String = files.iter().map(|(name, digest)| format!("{digest}  {name}\n")).collect();
    fs::write(partial.join(CHECKSUMS), lines)?;
    sync(&partial)?;
    fs::rename(&partial, to).with_context(|| format!("cannot name the finished backup {}", to.display()))?;
    sync(to.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
    Ok(files.len())
}

/// Puts a backup into `data`, where no database may be; what is there of the same backup already is kept. Returns how
/// many files it has.
pub fn restore(from: &Path, data: &Path) -> anyhow::Result<usize> {
    let list = from.join(CHECKSUMS);
    let text = fs::read_to_string(&list)
        .with_context(|| format!("cannot read {}; a whole backup has it", list.display()))?;
    let mut files = Vec::new();
    for line in text.lines() {
        let (digest, name) =
            line.split_once("  ").with_context(|| format!("{}: {line:?}", list.display()))?;
        let digest: Digest = digest.parse().with_context(|| format!("{}: {line:?}", list.display()))?;
        ensure!(!name.starts_with('/') && !name.contains(".."), "{}: {line:?}", list.display());
        let found = digest_of(&from.join(name))?;
        ensure!(
            found == digest,
            "{} is damaged: its bytes have digest {found}; nothing was restored",
            from.join(name).display()
        );
        files.push((digest, name));
    }
    for (name, path) in databases(data) {
        let digest = files.iter().find(|(_, n)| *n == name).map(|(digest, _)| *digest);
        let digest = digest.with_context(|| format!("{} does not name {name}", list.display()))?;
        check(&from.join(name))?;
        if path.exists() && digest_of(&path)? != digest {
            bail!(
                "{} is there already; move it and its -wal and -shm away, or restore into an empty `data` folder",
                path.display()
            );
        }
    }
    fs::create_dir_all(data).with_context(|| format!("cannot create {}", data.display()))?;
    for (_, name) in files.iter().filter(|(_, name)| name.starts_with("objects/")) {
        let to = data.join(name);
        if !to.exists() {
            put(&from.join(name), &to)?;
        }
    }
    sync(data)?;
    for (name, path) in databases(data) {
        if !path.exists() {
            put(&from.join(name), &path)?;
        }
    }
    sync(data)?;
    Ok(files.len())
}

/// Where an object is, in a backup as in a data folder.
fn object_name(digest: &Digest) -> String {
    let hex = digest.to_string();
    format!("objects/{}/{}", &hex[..2], &hex[2..])
}

/// Copies what was committed up to now, packed, and checks the copy.
fn copy_database(from: &Path, to: &Path) -> anyhow::Result<()> {
    let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .with_context(|| format!("cannot open {}", from.display()))?;
    source.busy_timeout(db::PATIENCE)?;
    let text = to.to_str().with_context(|| format!("{} is not UTF-8", to.display()))?;
    source
        .execute("VACUUM INTO ?1", [text])
        .with_context(|| format!("cannot copy {} to {text}", from.display()))?;
    check(to)
}

fn check(path: &Path) -> anyhow::Result<()> {
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .with_context(|| format!("cannot open {}", path.display()))?;
    let verdict: String = db.query_row("PRAGMA integrity_check", [], |r| r.get(0))?;
    ensure!(verdict == "ok", "{} is damaged: {verdict}", path.display());
    Ok(())
}

/// The catalogue was opened to be read: it is one file again afterwards.
fn leave_wal(path: &Path) -> anyhow::Result<()> {
    Connection::open(path)?.pragma_update(None, "journal_mode", "delete")?;
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> anyhow::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Copies under another name first: what has its name is whole.
fn put(from: &Path, to: &Path) -> anyhow::Result<()> {
    let mut partial = to.as_os_str().to_owned();
    partial.push(".partial");
    copy_file(from, Path::new(&partial))?;
    File::open(&partial)?.sync_all()?;
    fs::rename(&partial, to).with_context(|| format!("cannot write {}", to.display()))
}

fn digest_of(path: &Path) -> anyhow::Result<Digest> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Digest::of_reader(file).with_context(|| format!("cannot read {}", path.display()))?.0)
}

/// Has everything below a folder written to disk.
fn sync(folder: &Path) -> anyhow::Result<()> {
    let file = File::open(folder).with_context(|| format!("cannot open {}", folder.display()))?;
    rustix::fs::syncfs(&file)
        .map_err(io::Error::from)
        .with_context(|| format!("cannot sync {}", folder.display()))
}
