//! Directories of the host that `open()` reaches, under paths of the engine.
//!
//! `turn` adds them before code has run, `builtins` opens through them, `confine` tells the kernel. The kernel is what
//! keeps code inside them where it has Landlock; the look at the real path here is for where it has not, and for errors
//! that name the engine's path and no other.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// One directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    /// Where it is.
    pub(super) directory: PathBuf,
    /// Where the engine finds it: absolute, without `.` and `..`.
    pub(super) at: String,
    /// Whether nothing may be written there.
    pub(super) read_only: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Mounts(Vec<Mount>);

/// An absolute path without `.`, `..`, and doubled slashes; a relative one begins at the root.
pub(super) fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

impl Mounts {
    /// Adds a directory; one at the same path is replaced.
    pub(super) fn add(&mut self, mount: Mount) {
        self.0.retain(|other| other.at != mount.at);
        self.0.push(mount);
    }

    pub(super) fn all(&self) -> &[Mount] {
        &self.0
    }

    /// The mount that a normal path lies in, and the rest of the path.
    fn find<'p>(&self, path: &'p str) -> Option<(&Mount, &'p str)> {
        let inside = |mount: &Mount| {
            let rest = path.strip_prefix(mount.at.trim_end_matches('/'))?;
            (rest.is_empty() || rest.starts_with('/')).then_some(rest.trim_start_matches('/'))
        };
        let found = self.0.iter().filter_map(|mount| Some((mount, inside(mount)?)));
        found.max_by_key(|(mount, _)| mount.at.len())
    }

    /// Opens a path of the engine with flags of open(2). The descriptor is the caller's.
    pub(super) fn open(&self, path: &str, flags: i32) -> io::Result<i32> {
        let refused = || io::Error::from_raw_os_error(libc::EACCES);
        if path.contains('\0') {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let path = normal(path);
        let (mount, rest) = self.find(&path).ok_or_else(refused)?;
        let access = flags & libc::O_ACCMODE;
        let changes =
            access != libc::O_RDONLY || flags & (libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND) != 0;
        if mount.read_only && changes {
            return Err(io::Error::from_raw_os_error(libc::EROFS));
        }
        let real = real(&mount.directory.join(rest))?;
        if !real.starts_with(&mount.directory) {
            return Err(refused());
        }
        const MODE: u32 = 0o666;
        let file = OpenOptions::new()
            .read(access != libc::O_WRONLY)
            .write(access != libc::O_RDONLY)
            .custom_flags(flags & !libc::O_ACCMODE)
            .mode(MODE)
            .open(real)?;
        Ok(file.into_raw_fd())
    }
}

/// Where a path leads, symlinks followed; the last part need not exist.
fn real(path: &Path) -> io::Result<PathBuf> {
    match (fs::canonicalize(path), path.parent(), path.file_name()) {
        // A dangling symlink is not a file to be made.
        (Err(e), Some(parent), Some(name))
            if e.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_err() =>
        {
            Ok(fs::canonicalize(parent)?.join(name))
        }
        (found, _, _) => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_normal() {
        for (path, expected) in [
            ("/a/b", "/a/b"),
            ("a", "/a"),
            ("", "/"),
            ("/", "/"),
            ("//a//./b/", "/a/b"),
            ("/a/../b", "/b"),
            ("/../../etc", "/etc"),
            ("a/..", "/"),
        ] {
            assert_eq!(normal(path), expected, "{path}");
        }
    }

    #[test]
    fn only_mounts_are_reached() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (inside, outside) = (root.join("inside"), root.join("outside"));
        for made in [&inside, &outside] {
            fs::create_dir(made).unwrap();
            fs::write(made.join("file"), "text").unwrap();
        }
        std::os::unix::fs::symlink(outside.join("file"), inside.join("link")).unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("folder")).unwrap();
        std::os::unix::fs::symlink(outside.join("new"), inside.join("dangling")).unwrap();
        let mut mounts = Mounts::default();
        mounts.add(Mount { directory: inside.clone(), at: "/data".into(), read_only: false });
        mounts.add(Mount { directory: inside, at: "/data/fixed".into(), read_only: true });
        let make = libc::O_WRONLY | libc::O_CREAT;
        for (path, flags, expected) in [
            ("/data/file", libc::O_RDONLY, None),
            ("data/../data/file", libc::O_RDWR, None),
            ("/data/new", make, None),
            ("/data/fixed/file", libc::O_RDONLY, None),
            ("/data/fixed/file", libc::O_RDWR, Some(libc::EROFS)),
            ("/data/fixed/more", make, Some(libc::EROFS)),
            ("/data/none", libc::O_RDONLY, Some(libc::ENOENT)),
            ("/data/link", libc::O_RDONLY, Some(libc::EACCES)),
            ("/data/folder/file", libc::O_RDONLY, Some(libc::EACCES)),
            ("/data/folder/new", make, Some(libc::EACCES)),
            ("/data/dangling", make, Some(libc::ENOENT)),
            ("/database/file", libc::O_RDONLY, Some(libc::EACCES)),
            ("/etc/passwd", libc::O_RDONLY, Some(libc::EACCES)),
            ("/data/../etc/passwd", libc::O_RDONLY, Some(libc::EACCES)),
            ("/data/fi\0le", libc::O_RDONLY, Some(libc::EINVAL)),
        ] {
            let opened = mounts.open(path, flags).map(crate::sys::fd::adopt);
            assert_eq!(opened.err().and_then(|e| e.raw_os_error()), expected, "{path}");
        }
    }
}
