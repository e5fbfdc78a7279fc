//! The zygote's namespaces: what is made once, because nothing can be left in it.
//!
//! Run as root there is no user namespace: a child's uid is 65534 to the host as well. Otherwise one is made first,
//! in which only the caller's own uid and gid exist, under the number 65534.

use std::fs;
use std::io;

use crate::sys::{mount, process};

/// Whether a user namespace stands between a child and the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// Started as root: identities are the host's.
    Root,
    /// Started by anybody else: a user namespace with a single identity.
    UserNamespace,
}

/// Moves this process, which must have one thread, into namespaces of its own.
pub fn enter(uid: u32, gid: u32) -> io::Result<Privilege> {
    let (own_uid, own_gid) = process::effective_ids();
    let privilege = if own_uid == 0 { Privilege::Root } else { Privilege::UserNamespace };
    if privilege == Privilege::UserNamespace {
        mount::unshare(libc::CLONE_NEWUSER)?;
        fs::write("/proc/self/uid_map", format!("{uid} {own_uid} 1"))?;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/gid_map", format!("{gid} {own_gid} 1"))?;
    }
    mount::unshare(
        libc::CLONE_NEWNS
            | libc::CLONE_NEWNET
            | libc::CLONE_NEWIPC
            | libc::CLONE_NEWUTS
            | libc::CLONE_NEWCGROUP,
    )?;
    mount::set_names(c"sandbox")?;
    Ok(privilege)
}

/// Moves this process into an environment to throw away, for the suite's positive controls: nothing is confined, but
/// processes, mounts, /tmp, names and System V objects made here end with it.
pub fn enter_throwaway() -> io::Result<()> {
    let (own_uid, own_gid) = process::effective_ids();
    if own_uid != 0 {
        mount::unshare(libc::CLONE_NEWUSER)?;
        fs::write("/proc/self/uid_map", format!("0 {own_uid} 1"))?;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/gid_map", format!("0 {own_gid} 1"))?;
    }
    mount::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS)?;
    mount::mount(c"none", c"/", c"", libc::MS_REC | libc::MS_PRIVATE, c"")?;
    for place in [c"/tmp", c"/dev/shm"] {
        mount::mount(c"tmp", place, c"tmpfs", libc::MS_NOSUID, c"size=64m")?;
    }
    Ok(())
}
