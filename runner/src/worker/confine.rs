//! The worker puts the kernel's layers around itself, without privileges, before it first runs code (PROTOCOL.md §9).
//!
//! Called once by `turn`. Unlike a child of the zygote it is not sealed from the start: a layer that the kernel lacks is
//! skipped, and [`layers`] has told the parent so; one that the kernel refuses ends the worker.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;

use super::files::Mount;
use super::start::Settings;
use crate::confine::landlock;
use crate::confine::seccomp::{KillBy, Policy};
use crate::sys::caps::{self, Rlimit};
use crate::sys::seccomp;

/// Threads, libraries and messages take address space that the allocator hooks do not count.
const ADDRESS_SPACE_SLACK: u64 = 512 << 20;
const OPEN_FILES_MAX: u64 = 64;
const CAP_DAC_OVERRIDE: u32 = 1;

/// The layers that this kernel has, by name; 0 for one that it has not.
pub(super) fn layers() -> BTreeMap<&'static str, u32> {
    BTreeMap::from([
        ("no_new_privs", 1),
        // What refuses to say its version will refuse more, and end the worker then.
        ("landlock", landlock::version().unwrap_or(1)),
        ("seccomp", u32::from(Policy::exists() && seccomp::available())),
    ])
}

/// A step failed that must not.
#[derive(Debug, thiserror::Error)]
#[error("the worker cannot confine itself: {step}: {source}")]
pub(super) struct Refused {
    step: &'static str,
    source: io::Error,
}

/// Takes every step. `mounts` are what `open()` may reach from now on.
pub(super) fn enter(settings: &'static Settings, mounts: &[Mount]) -> Result<(), Refused> {
    let at = |step| move |source| Refused { step, source };
    for limit in rlimits(settings) {
        caps::set_rlimit(limit).map_err(at("limits"))?;
    }
    drop_caps(!mounts.is_empty()).map_err(at("capabilities"))?;
    caps::set_no_new_privs().map_err(at("no_new_privs"))?;
    if landlock::version().map_err(at("landlock"))? > 0 {
        enter_landlock(mounts).map_err(at("landlock"))?;
    }
    settings.watch.watch_from_a_thread().map_err(at("watch"))?;
    if Policy::exists() && seccomp::available() {
        let policy =
            Policy::of_worker(!mounts.is_empty()).map_err(io::Error::other).map_err(at("seccomp"))?;
        seccomp::load_for_all_threads(&policy.compile(KillBy::Kernel)).map_err(at("seccomp"))?;
    }
    Ok(())
}

fn rlimits(settings: &Settings) -> Vec<Rlimit> {
    let mut limits = vec![
        Rlimit { resource: libc::RLIMIT_CORE, value: 0 },
        Rlimit { resource: libc::RLIMIT_NOFILE, value: OPEN_FILES_MAX },
    ];
    if settings.memory_limit > 0 {
        let messages = u64::try_from(settings.message_limit).unwrap_or(u64::MAX).saturating_mul(3);
        let value = settings
            .memory_limit
            .saturating_mul(2)
            .saturating_add(messages)
            .saturating_add(ADDRESS_SPACE_SLACK);
        limits.push(Rlimit { resource: libc::RLIMIT_AS, value });
    }
    limits
}

/// A worker of root keeps only what opening files of others beneath a mount takes, and that only with mounts.
fn drop_caps(mounted: bool) -> io::Result<()> {
    let held = caps::get_caps()?;
    if held == (caps::CapSets { effective: 0, permitted: 0, inheritable: 0 }) {
        return Ok(());
    }
    let kept = if mounted { held.effective & (1 << CAP_DAC_OVERRIDE) } else { 0 };
    caps::set_caps(kept)
}

fn enter_landlock(mounts: &[Mount]) -> io::Result<()> {
    let beneath: Result<Vec<_>, io::Error> = mounts
        .iter()
        .map(|mount| Ok((CString::new(mount.directory.as_os_str().as_bytes())?, mount.read_only)))
        .collect();
    landlock::confine_worker(&beneath?)
}
