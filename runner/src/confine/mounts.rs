//! The root of a zygote and the /tmp of a child.
//!
//! The zygote pivots into a tmpfs that holds one empty directory and is then made read-only, so the mount table that
//! every child copies has one line, and no path of the host exists in it.

use std::ffi::{CStr, CString};
use std::io;

use crate::sys::mount;

const SEALED: libc::c_ulong = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

/// Leaves the host's file system for an empty, read-only root.
pub fn enter_empty_root() -> io::Result<()> {
    mount::mount(c"none", c"/", c"", libc::MS_REC | libc::MS_PRIVATE, c"")?;
    // Any directory will do to stand on: it is covered in this mount namespace only.
    mount::mount(c"root", c"/tmp", c"tmpfs", SEALED, c"size=4k,nr_inodes=4,mode=0555")?;
    mount::chdir(c"/tmp")?;
    mount::mkdir(c"tmp", 0o555)?;
    mount::pivot_into_cwd()?;
    mount::detach(c".")?;
    mount::chdir(c"/")?;
    mount::mount(c"none", c"/", c"", libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | SEALED, c"")
}

/// The options of a child's /tmp, made before the fork.
#[derive(Debug)]
pub struct Tmp {
    options: CString,
}

impl Tmp {
    /// For a tmpfs with these bounds, owned by the child.
    pub fn new(bytes: u64, inodes: u32, uid: u32, gid: u32) -> Tmp {
        let options = format!("size={bytes},nr_inodes={inodes},mode=0700,uid={uid},gid={gid}");
        Tmp { options: CString::new(options).unwrap_or_default() }
    }

    /// Mounts it.
    pub fn mount(&self) -> io::Result<()> {
        mount::mount(c"tmp", Tmp::PATH, c"tmpfs", SEALED, &self.options)
    }

    /// Where it is.
    pub const PATH: &'static CStr = c"/tmp";
}
