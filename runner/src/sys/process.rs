//! Processes: the fork of a child, its end, and the descriptor that names it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use super::{check, check_long};

/// On which side of the fork the caller is.
#[derive(Debug)]
pub enum Forked {
    /// In the new process.
    Child,
    /// In the old one.
    Parent {
        /// The new process, in this process's pid namespace.
        pid: i32,
        /// The same, as a descriptor that cannot come to mean another process.
        pidfd: OwnedFd,
    },
}

/// Every namespace that a child has to itself. The network namespace is the zygote's, which is empty.
pub const CHILD_NAMESPACES: libc::c_int =
    libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | libc::CLONE_NEWCGROUP;

/// Forks into `namespaces`. The new process is a child of this one's *parent* (`CLONE_PARENT`), which waits for it.
///
/// The caller must be the only thread of its process: the raw call runs no fork handlers of glibc.
pub fn fork_for_parent(namespaces: libc::c_int) -> io::Result<Forked> {
    let flags = namespaces | libc::CLONE_PARENT | libc::CLONE_PIDFD | libc::SIGCHLD;
    let flags = libc::c_long::from(flags);
    let mut pidfd: RawFd = -1;
    let (no_stack, no_tid, no_tls) = (0usize, 0usize, 0usize);
    // SAFETY: clone(2) without CLONE_VM copies the address space, so a null stack is right; with CLONE_PIDFD the
    // third argument receives a descriptor. The process has one thread, so no lock is held by another.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, no_stack, &raw mut pidfd, no_tid, no_tls) };
    match check_long(pid)? {
        0 => Ok(Forked::Child),
        pid => {
            // SAFETY: the kernel just returned this number and it belongs to nobody else.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Forked::Parent { pid: i32::try_from(pid).unwrap_or(0), pidfd })
        }
    }
}

/// Ends the process at once: no destructors, no exit handlers.
pub fn exit_now(status: u8) -> ! {
    // SAFETY: _exit(2) takes a number and does not return.
    unsafe { libc::_exit(status.into()) }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

/// Waits for the child behind `pidfd` and reaps it. Also says how much CPU time it used.
pub fn reap(pidfd: BorrowedFd<'_>) -> io::Result<(Ended, Duration)> {
    let id = libc::id_t::try_from(pidfd.as_raw_fd()).unwrap_or(0);
    // SAFETY: siginfo_t is plain data, for which zeroes are a value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: rusage is plain data, for which zeroes are a value.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    let (kind, options) = (libc::P_PIDFD, libc::WEXITED | libc::__WALL);
    // SAFETY: the system call waitid(2), which unlike its wrapper has a fifth argument, fills both structs.
    check_long(unsafe { libc::syscall(libc::SYS_waitid, kind, id, &raw mut info, options, &raw mut used) })?;
    // SAFETY: after a successful waitid(2) the fields of SIGCHLD are filled.
    let status = unsafe { info.si_status() };
    let time = |t: libc::timeval| {
        let micros = u64::try_from(t.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(t.tv_usec).unwrap_or(0);
        Duration::from_micros(micros)
    };
    let ended = if info.si_code == libc::CLD_EXITED { Ended::Exited(status) } else { Ended::Killed(status) };
    Ok((ended, time(used.ru_utime) + time(used.ru_stime)))
}

/// Makes this process the leader of a process group, so that a terminal's signals to its caller's pass it by.
pub fn lead_group() -> io::Result<()> {
    // SAFETY: setpgid(2) takes two numbers.
    check(unsafe { libc::setpgid(0, 0) }).map(|_| ())
}

/// A descriptor that names the process with this id, which becomes readable when that process ends.
pub fn open_pid(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open(2) takes a number and flags.
    let fd = check_long(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0u32) })?;
    // SAFETY: the number was just returned by the kernel and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(RawFd::try_from(fd).unwrap_or(-1)) })
}

/// A fault ends this process by its signal, without the handlers that Rust installs to report stack overflows.
pub fn default_faults() {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: signal(2) with SIG_DFL runs no code of ours.
        let _ = unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Sends SIGKILL. To the first process of a pid namespace, that ends all of it.
pub fn kill(pidfd: BorrowedFd<'_>) -> io::Result<()> {
    let (no_info, no_flags) = (std::ptr::null::<libc::siginfo_t>(), 0u32);
    let number = libc::SYS_pidfd_send_signal;
    // SAFETY: pidfd_send_signal(2) takes a descriptor, a signal, an optional struct (null) and flags.
    check_long(unsafe { libc::syscall(number, pidfd.as_raw_fd(), libc::SIGKILL, no_info, no_flags) })
        .map(|_| ())
}

/// Sends SIGKILL to a pid, for cgroups without `cgroup.kill`.
pub fn kill_pid(pid: i32) -> io::Result<()> {
    // SAFETY: kill(2) takes two numbers.
    check(unsafe { libc::kill(pid, libc::SIGKILL) }).map(|_| ())
}

/// Wipes the path of this program out of the auxiliary vector, where every child could read it.
pub fn forget_own_path() {
    // SAFETY: getauxval(3) takes a number.
    let address = unsafe { libc::getauxval(libc::AT_EXECFN) };
    let start = std::ptr::with_exposed_provenance_mut::<libc::c_char>(usize::try_from(address).unwrap_or(0));
    if start.is_null() {
        return;
    }
    // SAFETY: AT_EXECFN is the address of a NUL-terminated string on this process's own stack (getauxval(3)).
    let length = unsafe { libc::strlen(start) };
    // SAFETY: the `length` bytes before its NUL are writable stack that nothing else refers to.
    unsafe { std::ptr::write_bytes(start, 0, length) };
}

/// Empties the C environment: what the process was started with, and what libraries have put into it.
pub fn forget_environment() {
    unsafe extern "C" {
        static mut environ: *mut *mut libc::c_char;
    }
    // SAFETY: environ(7) is null or a list that ends with a null; the process has one thread, so nobody changes it.
    let mut entry = unsafe { environ };
    while !entry.is_null() {
        // SAFETY: `entry` points into the list, at most at its end.
        let text = unsafe { entry.read() };
        if text.is_null() {
            break;
        }
        // SAFETY: an entry is a NUL-terminated string.
        let length = unsafe { libc::strlen(text) };
        // SAFETY: the bytes before its NUL are memory of this process, which nobody reads any more.
        unsafe { std::ptr::write_bytes(text, 0, length) };
        // SAFETY: the entry was not the last.
        entry = unsafe { entry.add(1) };
    }
    // SAFETY: clearenv(3) has no argument; the process has one thread, so nobody reads the environment meanwhile.
    let _ = unsafe { libc::clearenv() };
}

/// Gives free memory back and sorts what stays, so that the allocations of a child touch few pages.
pub fn trim_heap() {
    // SAFETY: malloc_trim(3) takes a number.
    let _ = unsafe { libc::malloc_trim(0) };
    // Trimming leaves what it merged in one unsorted list, which the next large request walks through and sorts: let
    // that be this one. Below the size from which malloc asks the kernel instead.
    const LARGE: usize = 100_000;
    drop(std::hint::black_box(Vec::<u8>::with_capacity(LARGE)));
}

/// Unmaps the clean pages of this process's programs and libraries. They are read back on demand, and a fork does not
/// copy their page tables anyway, so holding them only makes the process look large.
pub fn drop_clean_pages() -> io::Result<()> {
    for line in std::fs::read_to_string("/proc/self/maps")?.lines() {
        let mut fields = line.split_whitespace();
        let (Some(range), Some(rights)) = (fields.next(), fields.next()) else { continue };
        let is_file = fields.nth(2).is_some_and(|inode| inode != "0");
        // Only what was never writable: relocated pages would lose their relocations.
        let is_text = rights.starts_with("r-x");
        let ends =
            range.split_once('-').map(|(a, b)| (usize::from_str_radix(a, 16), usize::from_str_radix(b, 16)));
        if let (true, true, Some((Ok(start), Ok(end)))) = (is_file, is_text, ends) {
            let address = std::ptr::without_provenance_mut(start);
            // SAFETY: the range is executable code of a file, mapped private and never writable in this process, so
            // its pages are the file's: madvise(2) MADV_DONTNEED makes the next access read them from there.
            check(unsafe { libc::madvise(address, end - start, libc::MADV_DONTNEED) })?;
        }
    }
    Ok(())
}

/// The effective uid and gid of this process.
pub fn effective_ids() -> (u32, u32) {
    // SAFETY: geteuid(2) has no argument and cannot fail.
    let uid = unsafe { libc::geteuid() };
    // SAFETY: getegid(2) has no argument and cannot fail.
    (uid, unsafe { libc::getegid() })
}

/// Release and version of the running kernel.
pub fn kernel() -> io::Result<String> {
    // SAFETY: utsname is made of character arrays, for which zeroes are a value.
    let mut names: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: uname(2) fills the struct.
    check(unsafe { libc::uname(&raw mut names) })?;
    let text = |field: &[libc::c_char]| -> String {
        field.iter().take_while(|c| **c != 0).map(|c| char::from(c.cast_unsigned())).collect()
    };
    Ok(format!("{} {} {}", text(&names.release), text(&names.version), text(&names.machine)))
}
