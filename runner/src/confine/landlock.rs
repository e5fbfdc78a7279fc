//! The Landlock rules of a zygote, of a child and of a worker.
//!
//! The zygote takes network and scope rules only: under a domain that handles the file system `mount` fails, and each
//! child still has to mount its /tmp. The child's ruleset is made in the child, after that mount: one made before the
//! fork and extended in one child would leak into the next.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::AsFd;

use crate::sys::fd;
use crate::sys::landlock::{RulesetAttr, abi, allow_beneath, create, restrict_self};

/// The lowest ABI with everything asked for here: scopes came with Linux 6.12.
pub const ABI_MIN: u32 = 6;

/// Every file-system right up to ABI 5, from EXECUTE to IOCTL_DEV.
const FS_ALL: u64 = 0xffff;
/// Bind and connect TCP.
const NET_ALL: u64 = 0x3;
/// Abstract Unix sockets and signals.
const SCOPE_ALL: u64 = 0x3;
/// What a child may do beneath /tmp: write, read, list, remove, make directories and regular files, truncate.
const FS_TMP: u64 = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 14;
/// Read files, list directories.
const FS_READ: u64 = 1 << 2 | 1 << 3;
/// Write, make and truncate regular files.
const FS_WRITE: u64 = 1 << 1 | 1 << 8 | 1 << 14;

/// The ABI of this kernel if it is enough.
pub fn available() -> io::Result<u32> {
    let found = abi()?;
    if found < ABI_MIN {
        return Err(io::Error::other(format!("Landlock ABI {found}, {ABI_MIN} needed (Linux 6.12)")));
    }
    Ok(found)
}

/// The version that this kernel has; 0 for none. An error is a kernel that has it and refuses to say.
pub fn version() -> io::Result<u32> {
    match abi() {
        Err(e) if matches!(e.raw_os_error(), Some(libc::ENOSYS | libc::EOPNOTSUPP)) => Ok(0),
        known => known,
    }
}

/// As much as this kernel's version can do, from version 1 on: no file beyond `mounts`, each with whether it is
/// read-only; no TCP; no abstract socket and no signal beyond this process.
pub fn confine_worker(mounts: &[(CString, bool)]) -> io::Result<()> {
    let version = abi()?;
    let known = RulesetAttr {
        fs: match version {
            1 => FS_ALL >> 3,
            2 => FS_ALL >> 2,
            3 | 4 => FS_ALL >> 1,
            _ => FS_ALL,
        },
        net: if version >= 4 { NET_ALL } else { 0 },
        scoped: if version >= 6 { SCOPE_ALL } else { 0 },
    };
    let ruleset = create(&known)?;
    for (directory, read_only) in mounts {
        let beneath = fd::open_path(directory)?;
        let allowed = if *read_only { FS_READ } else { FS_READ | FS_WRITE };
        allow_beneath(ruleset.as_fd(), beneath.as_fd(), allowed & known.fs)?;
    }
    restrict_self(ruleset.as_fd())
}

/// No TCP, no abstract socket and no signal beyond this process and its children.
pub fn confine_zygote() -> io::Result<()> {
    let ruleset = create(&RulesetAttr { fs: 0, net: NET_ALL, scoped: SCOPE_ALL })?;
    restrict_self(ruleset.as_fd())
}

/// All of that, and no file beyond `tmp`.
pub fn confine_child(tmp: &CStr) -> io::Result<()> {
    let ruleset = create(&RulesetAttr { fs: FS_ALL, net: NET_ALL, scoped: SCOPE_ALL })?;
    let beneath = fd::open_path(tmp)?;
    allow_beneath(ruleset.as_fd(), beneath.as_fd(), FS_TMP)?;
    restrict_self(ruleset.as_fd())
}
