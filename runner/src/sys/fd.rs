//! Descriptors: moving them to fixed numbers, closing the rest, waiting on several.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use super::check;

/// Makes `target` refer to the open file behind `fd`, without close-on-exec.
pub fn place(fd: BorrowedFd<'_>, target: RawFd) -> io::Result<()> {
    // SAFETY: dup2(2) takes two numbers; `fd` is open while borrowed, and `target` is one of the standard numbers,
    // which no owned descriptor of this process holds.
    check(unsafe { libc::dup2(fd.as_raw_fd(), target) }).map(|_| ())
}

/// Closes every descriptor from `first` up.
///
/// Only for a process that will not use its owned descriptors again: a child after its fork, a zygote at its start.
pub fn close_from(first: libc::c_uint) -> io::Result<()> {
    // SAFETY: close_range(2) takes numbers only; the caller no longer uses descriptors from `first` up.
    let closed = unsafe { libc::close_range(first, libc::c_uint::MAX, 0) };
    check(closed).map(|_| ())
}

/// Switches `O_NONBLOCK` on.
pub fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: fcntl(2) F_GETFL takes no further argument; `fd` is open while borrowed.
    let flags = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) })?;
    // SAFETY: F_SETFL takes an int; `fd` is open while borrowed.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) }).map(|_| ())
}

/// Reads into `buffer`, at the current position. Zero means the end.
pub fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: read(2) writes at most `len` bytes to the exclusive borrow `buffer`.
    let got = unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

/// Writes what it can of `bytes`.
pub fn write(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: write(2) reads at most `len` bytes from the borrow `bytes`.
    let put = unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
    usize::try_from(put).map_err(|_| io::Error::last_os_error())
}

/// One descriptor to wait for, and what was seen.
#[derive(Debug, Clone, Copy)]
pub struct Watch {
    fd: RawFd,
    events: libc::c_short,
    seen: libc::c_short,
}

impl Watch {
    /// Waits until `fd` can be read, ends, or (with `write`) can be written.
    pub fn new(fd: BorrowedFd<'_>, write: bool) -> Watch {
        let events = if write { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN };
        Watch { fd: fd.as_raw_fd(), events, seen: 0 }
    }

    /// Waits until the other side of `fd` is gone, whatever there is to read.
    pub fn hang_up(fd: BorrowedFd<'_>) -> Watch {
        Watch { fd: fd.as_raw_fd(), events: 0, seen: 0 }
    }

    /// Takes part in no wait.
    pub fn none() -> Watch {
        Watch { fd: -1, events: 0, seen: 0 }
    }

    /// Something can be read, or the other side is gone.
    pub fn readable(&self) -> bool {
        self.seen & (libc::POLLIN | libc::POLLHUP | libc::POLLERR) != 0
    }

    /// Something can be written.
    pub fn writable(&self) -> bool {
        self.seen & libc::POLLOUT != 0
    }

    /// The other side is gone.
    pub fn hung_up(&self) -> bool {
        self.seen & libc::POLLHUP != 0
    }
}

/// Waits for any of `watches` for at most `limit` (for ever without one). Returns false when the time is over.
pub fn wait(watches: &mut [Watch], limit: Option<Duration>) -> io::Result<bool> {
    let mut polls = [libc::pollfd { fd: -1, events: 0, revents: 0 }; 8];
    for (poll, watch) in polls.iter_mut().zip(watches.iter()) {
        poll.fd = watch.fd;
        poll.events = watch.events;
    }
    let time = limit.map(|l| libc::timespec {
        tv_sec: libc::time_t::try_from(l.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: i64::from(l.subsec_nanos()),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = libc::nfds_t::try_from(watches.len().min(polls.len())).unwrap_or(0);
    // SAFETY: ppoll(2) reads and writes `count` entries of `polls`, which holds at least that many; the timespec
    // outlives the call or is null; a null mask leaves signals alone.
    let ready = unsafe { libc::ppoll(polls.as_mut_ptr(), count, time, std::ptr::null()) };
    let ready = match check(ready) {
        Err(e) if e.kind() == io::ErrorKind::Interrupted => 1,
        other => other?,
    };
    for (watch, poll) in watches.iter_mut().zip(polls.iter()) {
        watch.seen = poll.revents;
    }
    Ok(ready > 0)
}

/// Opens `path` as a mere handle (`O_PATH`), for a Landlock rule.
pub fn open_path(path: &std::ffi::CStr) -> io::Result<OwnedFd> {
    // SAFETY: open(2) reads the NUL-terminated `path`.
    let fd = check(unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) })?;
    // SAFETY: the number was just returned by open(2) and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// What opening `path` for reading fails with, if it does. Nothing stays open.
pub fn probe_open(path: &std::ffi::CStr, flags: libc::c_int) -> io::Result<()> {
    // SAFETY: open(2) reads the NUL-terminated `path`; the flags ask for no mode argument.
    let fd = check(unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) })?;
    // SAFETY: the number was just returned by open(2) and belongs to nobody else.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(())
}

/// Takes over one of the standard numbers that this process was started with.
///
/// Call once for each number: two owners would close it twice.
pub fn adopt(fd: RawFd) -> OwnedFd {
    // SAFETY: the caller owns the number by the contract of its start (exec with this descriptor in place).
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Lends out one of the standard numbers, which stay open for the whole life of a child.
pub fn standard(fd: RawFd) -> BorrowedFd<'static> {
    // SAFETY: a child never closes its numbers 0, 1 and 2; user code may, and then calls fail with EBADF.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// Is `number` free?
pub fn probe_fd_closed(number: RawFd) -> bool {
    // SAFETY: fcntl(2) F_GETFD takes no further argument and changes nothing, whatever the number means.
    unsafe { libc::fcntl(number, libc::F_GETFD) < 0 }
}
