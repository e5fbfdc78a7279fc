//! The one fence around the kernel: each call that std has no safe form for, as one function that returns `io::Result`.
//!
//! Called by `confine`, `zygote`, `child` and `supervisor`. Knows libc and nothing else of this crate: no policy, no
//! wire bytes. The functions used between fork and the end of a child neither allocate nor take a lock.

#![expect(unsafe_code, reason = "the only place where libc is called; each block holds one operation")]

pub mod caps;
pub mod fd;
pub mod landlock;
pub mod mount;
pub mod process;
pub mod seccomp;
pub mod socket;

use std::io;

/// Turns the `-1` convention of libc into a result.
fn check(returned: libc::c_int) -> io::Result<libc::c_int> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

/// The same for raw system calls, whose value is a `long`.
fn check_long(returned: libc::c_long) -> io::Result<libc::c_long> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}
