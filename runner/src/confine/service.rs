//! What `runner serve` and `runner call` give up themselves, in two steps around the start of their zygotes.
//!
//! A Landlock domain covers whom a process may signal and look at: those in the same domain or one below it. So the
//! domain comes first, and zygotes and children are below it; the filter comes last, because it leaves no way to start
//! anything. There are no file-system rules: under them no zygote could mount. Called with one thread in the process,
//! since neither reaches threads that exist already.

use std::io;

use super::ids;
use super::landlock;
use super::seccomp::{KillBy, Policy, Role};
use crate::sys::{caps, process, seccomp};

/// No TCP, no abstract socket, no signal but to those that are started after this, and no new privileges.
pub fn shut_network() -> io::Result<()> {
    one_thread()?;
    caps::set_no_new_privs()?;
    landlock::confine_zygote()
}

/// Every capability but those that watching takes, and every system call that is not in the file of `role`.
pub fn shut_rest(role: Role) -> io::Result<()> {
    one_thread()?;
    if process::effective_ids().0 == 0 {
        ids::shrink_supervisor()?;
    }
    let policy = Policy::of(role).map_err(io::Error::other)?;
    seccomp::load(&policy.compile(KillBy::Kernel))
}

fn one_thread() -> io::Result<()> {
    match std::fs::read_dir("/proc/self/task")?.count() {
        1 => Ok(()),
        threads => Err(io::Error::other(format!("{threads} threads, 1 expected"))),
    }
}
