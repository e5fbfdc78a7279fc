//! Namespaces and mounts: unshare, mount, pivot_root, and what goes with them.

use std::ffi::CStr;
use std::io;

use super::check;

/// Moves this process into new namespaces (unshare(2)).
pub fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: unshare(2) takes flags only; the caller is single-threaded.
    check(unsafe { libc::unshare(flags) }).map(|_| ())
}

/// mount(2), with empty strings for what a call does not need.
pub fn mount(
    source: &CStr,
    target: &CStr,
    fstype: &CStr,
    flags: libc::c_ulong,
    data: &CStr,
) -> io::Result<()> {
    // SAFETY: mount(2) reads four NUL-terminated strings, all borrowed for the call.
    let done = unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), fstype.as_ptr(), flags, data.as_ptr().cast())
    };
    check(done).map(|_| ())
}

/// Makes `new_root` the root and hides the old one under `.` of it, as pivot_root(2) describes for `"."`, `"."`.
pub fn pivot_into_cwd() -> io::Result<()> {
    // SAFETY: pivot_root(2) reads two NUL-terminated strings.
    let done = unsafe { libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) };
    super::check_long(done).map(|_| ())
}

/// Detaches whatever is mounted at `target` (umount2(2) with MNT_DETACH).
pub fn detach(target: &CStr) -> io::Result<()> {
    // SAFETY: umount2(2) reads a NUL-terminated string.
    check(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) }).map(|_| ())
}

/// chdir(2).
pub fn chdir(path: &CStr) -> io::Result<()> {
    // SAFETY: chdir(2) reads a NUL-terminated string.
    check(unsafe { libc::chdir(path.as_ptr()) }).map(|_| ())
}

/// mkdir(2).
pub fn mkdir(path: &CStr, mode: libc::mode_t) -> io::Result<()> {
    // SAFETY: mkdir(2) reads a NUL-terminated string.
    check(unsafe { libc::mkdir(path.as_ptr(), mode) }).map(|_| ())
}

/// Sets the host and domain names of this uts namespace.
pub fn set_names(name: &CStr) -> io::Result<()> {
    // SAFETY: sethostname(2) reads `count_bytes` bytes of the borrowed string.
    check(unsafe { libc::sethostname(name.as_ptr(), name.count_bytes()) })?;
    // SAFETY: setdomainname(2) reads `count_bytes` bytes of the borrowed string.
    check(unsafe { libc::setdomainname(name.as_ptr(), name.count_bytes()) }).map(|_| ())
}

/// The bytes and inodes a mounted file system can hold, and its mount flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// All its bytes.
    pub bytes: u64,
    /// All its inodes.
    pub inodes: u64,
    /// `ST_NOEXEC` and its like.
    pub flags: u64,
}

/// statvfs(3) of `path`.
pub fn capacity(path: &CStr) -> io::Result<Capacity> {
    let mut found = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: statvfs(3) reads the string and fills the struct behind the pointer.
    check(unsafe { libc::statvfs(path.as_ptr(), found.as_mut_ptr()) })?;
    // SAFETY: all fields are integers, for which zeroes are a value; the call above filled them.
    let found = unsafe { found.assume_init() };
    Ok(Capacity { bytes: found.f_blocks * found.f_frsize, inodes: found.f_files, flags: found.f_flag })
}
