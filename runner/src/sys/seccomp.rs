//! Loading a seccomp filter, and the supervisor's end of a listener.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::{check, check_long};

/// One BPF instruction, as the kernel reads it.
pub type Instruction = libc::sock_filter;

/// Loads `program` for this thread and all it starts. It cannot be taken off again.
pub fn load(program: &[Instruction]) -> io::Result<()> {
    install(program, 0).map(|_| ())
}

/// Loads `program` for every thread of this process. It cannot be taken off again.
pub fn load_for_all_threads(program: &[Instruction]) -> io::Result<()> {
    match install(program, libc::SECCOMP_FILTER_FLAG_TSYNC)? {
        0 => Ok(()),
        thread => Err(io::Error::other(format!("thread {thread} does not take the filter"))),
    }
}

/// Does this kernel filter system calls?
pub fn available() -> bool {
    // SAFETY: prctl(2) PR_GET_SECCOMP takes no further argument; it fails with EINVAL on a kernel without seccomp.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP) >= 0 }
}

/// Loads `program` and returns the listener that its `USER_NOTIF` verdicts wait for.
pub fn load_with_listener(program: &[Instruction]) -> io::Result<RawFd> {
    let fd = install(program, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER)?;
    Ok(RawFd::try_from(fd).unwrap_or(-1))
}

fn install(program: &[Instruction], flags: libc::c_ulong) -> io::Result<libc::c_long> {
    let length = libc::c_ushort::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // The kernel reads the instructions only; the field is mutable for historical reasons.
    let fprog = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    let operation = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: seccomp(2) reads `len` instructions through the struct, both borrowed for the call.
    check_long(unsafe { libc::syscall(libc::SYS_seccomp, operation, flags, &raw const fprog) })
}

/// Does a filter on `clone3` answer with ENOSYS? Without any filter the kernel says EINVAL to a null argument.
pub fn clone3_is_hidden() -> bool {
    // SAFETY: clone3(2) with a null pointer and size zero fails before it does anything.
    let refused = unsafe { libc::syscall(libc::SYS_clone3, std::ptr::null::<u8>(), 0usize) };
    refused < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS)
}

/// The number of the system call that a thread behind `listener` is stopped at.
pub fn receive(listener: BorrowedFd<'_>) -> io::Result<libc::c_int> {
    let mut notice = std::mem::MaybeUninit::<libc::seccomp_notif>::zeroed();
    // SECCOMP_IOCTL_NOTIF_RECV: _IOWR('!', 0, struct seccomp_notif).
    let request: libc::c_ulong = 0xc050_2100;
    // SAFETY: the request wants a zeroed `seccomp_notif` and fills it; `listener` is open while borrowed.
    check(unsafe { libc::ioctl(listener.as_raw_fd(), request, notice.as_mut_ptr()) })?;
    // SAFETY: all fields are integers, for which zeroes are a value; the call above filled them.
    let notice = unsafe { notice.assume_init() };
    Ok(notice.data.nr)
}

/// Copies descriptor `number` of the process behind `pidfd` (pidfd_getfd(2)).
pub fn take_fd(pidfd: BorrowedFd<'_>, number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_getfd(2) takes two numbers and flags.
    let fd = check_long(unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), number, 0u32) })?;
    // SAFETY: the number was just returned by the kernel and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(RawFd::try_from(fd).unwrap_or(-1)) })
}
