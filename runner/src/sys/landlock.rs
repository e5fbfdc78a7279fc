//! Landlock's three system calls, with the structs as of ABI 6. Which rights to ask for is `confine`'s business.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::check_long;

/// What a ruleset takes charge of; each bit set here is denied unless a rule allows it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RulesetAttr {
    /// File-system rights.
    pub fs: u64,
    /// TCP rights.
    pub net: u64,
    /// Scopes: abstract Unix sockets, signals.
    pub scoped: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: RawFd,
}

const CREATE_RULESET_VERSION: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;

/// The ABI of the running kernel; an error when Landlock is not there or not enabled.
pub fn abi() -> io::Result<u32> {
    let none: *const RulesetAttr = std::ptr::null();
    // SAFETY: landlock_create_ruleset(2) with the version flag takes a null pointer and size zero.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0usize, CREATE_RULESET_VERSION) };
    check_long(version).map(|v| u32::try_from(v).unwrap_or(0))
}

/// Makes a ruleset without rules.
pub fn create(attr: &RulesetAttr) -> io::Result<OwnedFd> {
    let size = size_of::<RulesetAttr>();
    // SAFETY: landlock_create_ruleset(2) reads `size` bytes of the borrowed struct.
    let fd =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::from_ref(attr), size, 0u32) };
    let fd = RawFd::try_from(check_long(fd)?).unwrap_or(-1);
    // SAFETY: the number was just returned by the kernel and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Allows `allowed` beneath the directory behind `parent`.
pub fn allow_beneath(ruleset: BorrowedFd<'_>, parent: BorrowedFd<'_>, allowed: u64) -> io::Result<()> {
    let rule = PathBeneath { allowed, parent: parent.as_raw_fd() };
    let number = libc::SYS_landlock_add_rule;
    // SAFETY: landlock_add_rule(2) reads one path-beneath struct; both descriptors are open while borrowed.
    let added =
        unsafe { libc::syscall(number, ruleset.as_raw_fd(), RULE_PATH_BENEATH, &raw const rule, 0u32) };
    check_long(added).map(|_| ())
}

/// Puts the ruleset in force for this thread and all it starts.
pub fn restrict_self(ruleset: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: landlock_restrict_self(2) takes a descriptor, open while borrowed, and flags.
    let done = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0u32) };
    check_long(done).map(|_| ())
}
