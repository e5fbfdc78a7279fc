//! Identity and privileges: what a zygote keeps for its children's confinement, and how a child gives up the rest.

use std::io;

use crate::sys::caps::{self, Rlimit};

const CAP_DAC_OVERRIDE: u32 = 1;
const CAP_KILL: u32 = 5;
const CAP_SETGID: u32 = 6;
const CAP_SETUID: u32 = 7;
const CAP_SETPCAP: u32 = 8;
const CAP_SYS_PTRACE: u32 = 19;
const CAP_SYS_ADMIN: u32 = 21;
/// One past the highest number that a kernel may come to know.
const CAPS_END: u32 = 64;

/// What a zygote needs to fork and confine children: namespaces and mounts, identities, the bounding set.
const ZYGOTE_KEEPS: [u32; 4] = [CAP_SETGID, CAP_SETUID, CAP_SETPCAP, CAP_SYS_ADMIN];

/// What a supervisor needs that was started as root: its own files, the end of children, and a look at them.
const SUPERVISOR_KEEPS: [u32; 3] = [CAP_DAC_OVERRIDE, CAP_KILL, CAP_SYS_PTRACE];

/// Drops every capability of a supervisor but three.
pub fn shrink_supervisor() -> io::Result<()> {
    caps::set_caps(SUPERVISOR_KEEPS.iter().fold(0, |set, cap| set | 1 << cap))
}

/// Drops every capability but the four that children's confinement takes. Returns what is left in the bounding set.
pub fn shrink_zygote() -> io::Result<Vec<u32>> {
    for cap in 0..CAPS_END {
        if caps::bounding_has(cap).unwrap_or(false) && !ZYGOTE_KEEPS.contains(&cap) {
            caps::bounding_drop(cap)?;
        }
    }
    caps::ambient_clear()?;
    caps::set_caps(ZYGOTE_KEEPS.iter().fold(0, |set, cap| set | 1 << cap))?;
    Ok((0..CAPS_END).filter(|cap| caps::bounding_has(*cap).unwrap_or(false)).collect())
}

/// The resource limits of a child. The cgroup and the deadline come first; these stand behind them.
pub fn rlimits(tmp_bytes: u64, wall_seconds: u32) -> Vec<Rlimit> {
    // Threads reserve stacks and malloc arenas of 128 MiB each without using them; the cgroup counts what is used.
    const ADDRESS_SPACE: u64 = 4 << 30;
    const OPEN_FILES: u64 = 64;
    let rows = [
        (libc::RLIMIT_AS, ADDRESS_SPACE),
        (libc::RLIMIT_CORE, 0),
        (libc::RLIMIT_CPU, u64::from(wall_seconds) + 1),
        (libc::RLIMIT_FSIZE, tmp_bytes),
        (libc::RLIMIT_MEMLOCK, 0),
        (libc::RLIMIT_MSGQUEUE, 0),
        (libc::RLIMIT_NICE, 0),
        (libc::RLIMIT_NOFILE, OPEN_FILES),
        (libc::RLIMIT_RTPRIO, 0),
        (libc::RLIMIT_SIGPENDING, OPEN_FILES),
    ];
    rows.into_iter().map(|(resource, value)| Rlimit { resource, value }).collect()
}
