//! Linux capabilities, identities, resource limits and the bits that prctl(2) keeps.

use std::io;

use super::{check, check_long};

const CAPABILITY_VERSION_3: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: libc::c_int,
}

#[repr(C)]
#[derive(Default, Clone, Copy)]
struct Data {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// The three sets of this thread, 64 bits each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapSets {
    /// What is in force.
    pub effective: u64,
    /// What could be put in force.
    pub permitted: u64,
    /// What an exec could keep.
    pub inheritable: u64,
}

/// capget(2) of this thread.
pub fn get_caps() -> io::Result<CapSets> {
    let mut header = Header { version: CAPABILITY_VERSION_3, pid: 0 };
    let mut data = [Data::default(); 2];
    // SAFETY: capget(2) with version 3 reads one header and fills two data structs.
    check_long(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) })?;
    let join = |low: u32, high: u32| u64::from(low) | (u64::from(high) << 32);
    Ok(CapSets {
        effective: join(data[0].effective, data[1].effective),
        permitted: join(data[0].permitted, data[1].permitted),
        inheritable: join(data[0].inheritable, data[1].inheritable),
    })
}

/// Leaves this thread with exactly the capabilities of `kept` (a bit each), and none inheritable.
pub fn set_caps(kept: u64) -> io::Result<()> {
    let half = |shift: u32| u32::try_from((kept >> shift) & 0xffff_ffff).unwrap_or(0);
    let mut header = Header { version: CAPABILITY_VERSION_3, pid: 0 };
    let data = [0, 32].map(|shift| Data { effective: half(shift), permitted: half(shift), inheritable: 0 });
    // SAFETY: capset(2) with version 3 reads one header and two data structs.
    check_long(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, data.as_ptr()) }).map(|_| ())
}

/// prctl(2) with integers only. Not for options that take a pointer.
fn prctl(option: libc::c_int, value: libc::c_ulong) -> io::Result<libc::c_int> {
    let zero: libc::c_ulong = 0;
    // SAFETY: the options used in this file take integers, never a pointer.
    check(unsafe { libc::prctl(option, value, zero, zero, zero) })
}

/// Is `cap` in the bounding set? An error means that the kernel has no such capability.
pub fn bounding_has(cap: u32) -> io::Result<bool> {
    prctl(libc::PR_CAPBSET_READ, cap.into()).map(|has| has == 1)
}

/// Takes `cap` out of the bounding set.
pub fn bounding_drop(cap: u32) -> io::Result<()> {
    prctl(libc::PR_CAPBSET_DROP, cap.into()).map(|_| ())
}

/// Empties the ambient set.
pub fn ambient_clear() -> io::Result<()> {
    prctl(libc::PR_CAP_AMBIENT, libc::c_ulong::try_from(libc::PR_CAP_AMBIENT_CLEAR_ALL).unwrap_or(0))
        .map(|_| ())
}

/// Forbids this process and all it starts to gain privileges.
pub fn set_no_new_privs() -> io::Result<()> {
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1).map(|_| ())
}

/// Is [`set_no_new_privs`] in force?
pub fn no_new_privs() -> io::Result<bool> {
    prctl(libc::PR_GET_NO_NEW_PRIVS, 0).map(|v| v == 1)
}

/// Memory that was once writable never becomes executable in this process or its children (Linux 6.3).
pub fn deny_write_execute() -> io::Result<()> {
    const PR_SET_MDWE: libc::c_int = 65;
    const PR_MDWE_REFUSE_EXEC_GAIN: libc::c_ulong = 1;
    prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN).map(|_| ())
}

/// Neither core dumps nor ptrace by equals.
pub fn set_undumpable() -> io::Result<()> {
    prctl(libc::PR_SET_DUMPABLE, 0).map(|_| ())
}

/// SIGKILL to this process when the thread that is its parent ends.
pub fn die_with_parent() -> io::Result<()> {
    prctl(libc::PR_SET_PDEATHSIG, libc::c_ulong::try_from(libc::SIGKILL).unwrap_or(9)).map(|_| ())
}

/// Leaves all supplementary groups.
pub fn clear_groups() -> io::Result<()> {
    // SAFETY: setgroups(2) with a length of zero reads nothing.
    check_long(unsafe { libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()) }).map(|_| ())
}

/// The number of supplementary groups.
pub fn group_count() -> io::Result<usize> {
    // SAFETY: getgroups(2) with a length of zero writes nothing.
    let count = check(unsafe { libc::getgroups(0, std::ptr::null_mut()) })?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Sets real, effective and saved gid. The raw call: glibc's would signal other threads.
pub fn set_gids(gid: u32) -> io::Result<()> {
    // SAFETY: setresgid(2) takes three numbers.
    check_long(unsafe { libc::syscall(libc::SYS_setresgid, gid, gid, gid) }).map(|_| ())
}

/// Sets real, effective and saved uid.
pub fn set_uids(uid: u32) -> io::Result<()> {
    // SAFETY: setresuid(2) takes three numbers.
    check_long(unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) }).map(|_| ())
}

/// Real, effective and saved uid, then gid.
pub fn ids() -> io::Result<([u32; 3], [u32; 3])> {
    let (mut u, mut g) = ([0u32; 3], [0u32; 3]);
    let [ru, eu, su] = &mut u;
    // SAFETY: getresuid(2) fills three numbers, each exclusively borrowed.
    check(unsafe { libc::getresuid(ru, eu, su) })?;
    let [rg, eg, sg] = &mut g;
    // SAFETY: getresgid(2) fills three numbers, each exclusively borrowed.
    check(unsafe { libc::getresgid(rg, eg, sg) })?;
    Ok((u, g))
}

/// One of the limits of setrlimit(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rlimit {
    /// `RLIMIT_…`.
    pub resource: libc::__rlimit_resource_t,
    /// Soft and hard limit alike.
    pub value: u64,
}

/// Sets one limit, soft and hard.
pub fn set_rlimit(limit: Rlimit) -> io::Result<()> {
    let both = libc::rlimit { rlim_cur: limit.value, rlim_max: limit.value };
    // SAFETY: setrlimit(2) reads the struct.
    check(unsafe { libc::setrlimit(limit.resource, &raw const both) }).map(|_| ())
}

/// Reads one limit: soft, hard.
pub fn rlimit(resource: libc::__rlimit_resource_t) -> io::Result<(u64, u64)> {
    let mut both = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit(2) fills the struct.
    check(unsafe { libc::getrlimit(resource, &raw mut both) })?;
    Ok((both.rlim_cur, both.rlim_max))
}
