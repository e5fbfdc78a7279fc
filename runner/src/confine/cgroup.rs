//! cgroup slots: prepared before any call, used by one call at a time, on cgroup v1, v2 and the hybrid of both.
//!
//! The supervisor finds where the three controllers live, makes `slots` directories in each hierarchy, sets the limits
//! and opens what will be needed: the file through which a child joins (handed to the zygote) and the counters that
//! tell afterwards whether a limit was met. A slot is empty between calls because the first process of the call's pid
//! namespace has been reaped; `recycle` makes sure and kills what should not be there.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::sys::process;

/// The limits of one call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Memory of everything in the call, kernel memory included, swap none.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub processes: u32,
    /// Share of one CPU.
    pub cpus: f64,
}

impl Limits {
    /// The CPU time of each period.
    pub(crate) fn cpu_quota_us(&self) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of one period, far below 2^53"
        )]
        let quota = (self.cpus * CPU_PERIOD_US as f64) as u64;
        quota
    }
}

/// What a controller is called.
const CONTROLLERS: [&str; 3] = ["memory", "pids", "cpu"];
/// The period over which the CPU share is counted.
pub(crate) const CPU_PERIOD_US: u64 = 100_000;
const PREFIX: &str = "tinyfiles-";
/// How the one ends that a supervisor lives in on v2.
const LEAF: &str = "-supervisor";

/// One generation of the kernel interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// One hierarchy for each controller.
    V1,
    /// One for all.
    V2,
}

/// The directory below which slots of some controllers are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// Its interface.
    pub version: Version,
    /// Where it is.
    pub path: PathBuf,
    /// The controllers that live here.
    pub controllers: Vec<&'static str>,
}

/// Why there are no slots, in words that say what to do.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// A controller is mounted nowhere.
    #[error(
        "no cgroup controller `{0}` (v1 or v2) is available; boot with cgroups or delegate a cgroup to this user"
    )]
    Missing(&'static str),
    /// A directory cannot be made or written.
    #[error("{path}: {source}; run as root, or name a cgroup that you own with --cgroup")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> CgroupError {
    let path = path.to_owned();
    move |source| CgroupError::Io { path, source }
}

/// Finds the bases from the texts of `/proc/self/mountinfo` and `/proc/self/cgroup`. With `below`, a path inside
/// each hierarchy, that cgroup is used and not the caller's own.
pub fn find_bases(mountinfo: &str, own: &str, below: Option<&str>) -> Result<Vec<Base>, CgroupError> {
    let mut bases: Vec<Base> = Vec::new();
    for controller in CONTROLLERS {
        let base = mountinfo.lines().find_map(|line| v1_base(line, own, below, controller));
        let base = base.or_else(|| mountinfo.lines().find_map(|line| v2_base(line, own, below, controller)));
        let base = base.ok_or(CgroupError::Missing(controller))?;
        match bases.iter_mut().find(|b| b.path == base.path) {
            Some(same) => same.controllers.push(controller),
            None => bases.push(base),
        }
    }
    Ok(bases)
}

/// Mount root, mount point, type and options of one line of mountinfo.
fn mount_fields(line: &str) -> Option<(&str, &str, &str, &str)> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let (root, point) = (before.next()?, before.next()?);
    let mut after = after.split(' ');
    let (kind, _source, options) = (after.next()?, after.next()?, after.next()?);
    Some((root, point, kind, options))
}

fn v1_base(line: &str, own: &str, below: Option<&str>, controller: &'static str) -> Option<Base> {
    let (root, point, kind, options) = mount_fields(line)?;
    if kind != "cgroup" || !options.split(',').any(|o| o == controller) {
        return None;
    }
    let place = own.lines().find_map(|l| {
        let (_, rest) = l.split_once(':')?;
        let (names, path) = rest.split_once(':')?;
        names.split(',').any(|n| n == controller).then_some(path)
    })?;
    let path = join(point, root, below.unwrap_or(place));
    Some(Base { version: Version::V1, path, controllers: vec![controller] })
}

fn v2_base(line: &str, own: &str, below: Option<&str>, controller: &'static str) -> Option<Base> {
    let (root, point, kind, _) = mount_fields(line)?;
    if kind != "cgroup2" {
        return None;
    }
    let place = own.lines().find_map(|l| l.strip_prefix("0::")).map(without_leaf)?;
    let path = join(point, root, below.unwrap_or(place));
    let offered = fs::read_to_string(path.join("cgroup.controllers")).unwrap_or_default();
    offered.split_whitespace().any(|c| c == controller).then(|| Base {
        version: Version::V2,
        path,
        controllers: vec![controller],
    })
}

/// The cgroup that was given, for a process that [`delegate`] moved into a leaf of it.
fn without_leaf(place: &str) -> &str {
    match place.rsplit_once('/') {
        Some((given, leaf)) if leaf.starts_with(PREFIX) && leaf.ends_with(LEAF) => given,
        _ => place,
    }
}

fn join(point: &str, root: &str, place: &str) -> PathBuf {
    let inside = place.strip_prefix(root).unwrap_or(place).trim_start_matches('/');
    if inside.is_empty() { PathBuf::from(point) } else { Path::new(point).join(inside) }
}

/// All slots of one supervisor. Dropping it removes their directories.
#[derive(Debug)]
pub struct Slots {
    slots: Vec<Slot>,
}

/// The cgroups of one call at a time.
#[derive(Debug)]
pub struct Slot {
    dirs: Vec<PathBuf>,
    controlled: Vec<(Version, &'static str)>,
    /// The files that hold its limits.
    settings: HashMap<&'static str, PathBuf>,
    /// What they say; `None` while that is being changed.
    in_force: Mutex<Option<Limits>>,
    joins: Vec<File>,
    memory_events: File,
    memory_peak: Option<File>,
    process_events: File,
}

/// What the counters of a slot say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Processes that the kernel killed for want of memory.
    pub memory_kills: u64,
    /// Forks and threads refused.
    pub processes_refused: u64,
    /// The most memory in use since the last recycling, where the kernel tells.
    pub memory_peak_bytes: u64,
}

impl Slots {
    /// Makes `count` slots below the caller's own cgroups, or below `below` in each hierarchy.
    pub fn prepare(count: usize, limits: Limits, below: Option<&str>) -> Result<Slots, CgroupError> {
        let read = |path: &str| fs::read_to_string(path).map_err(at(Path::new(path)));
        let bases = find_bases(&read("/proc/self/mountinfo")?, &read("/proc/self/cgroup")?, below)?;
        let mut prepared = Slots { slots: Vec::new() };
        for base in &bases {
            sweep(&base.path);
            if base.version == Version::V2 {
                delegate(base)?;
            }
        }
        let stamp = stamp();
        for n in 0..count {
            prepared.slots.push(Slot::make(
                &bases,
                &format!("{PREFIX}{}-{stamp}-{n}", std::process::id()),
                limits,
            )?);
        }
        Ok(prepared)
    }

    /// The slots.
    pub fn all(&self) -> &[Slot] {
        &self.slots
    }
}

/// Distinguishes the supervisors of one process.
fn stamp() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Drop for Slots {
    fn drop(&mut self) {
        for slot in &self.slots {
            slot.kill();
            for dir in &slot.dirs {
                // A failure leaves an empty directory that the next start sweeps away.
                let _ = fs::remove_dir(dir);
            }
        }
    }
}

impl Slot {
    fn make(bases: &[Base], name: &str, limits: Limits) -> Result<Slot, CgroupError> {
        let (mut dirs, mut joins) = (Vec::new(), Vec::new());
        let (mut controlled, mut written) = (Vec::new(), HashMap::new());
        let mut found = [const { None }; 3];
        for base in bases {
            let dir = base.path.join(name);
            fs::create_dir(&dir).map_err(at(&dir))?;
            for controller in &base.controllers {
                for (file, value) in settings(base.version, controller, limits) {
                    let path = dir.join(file);
                    // memory.memsw exists only where swap accounting is on; without swap there is nothing to bound.
                    if !path.exists() && file.contains("swap") | file.contains("memsw") {
                        continue;
                    }
                    fs::write(&path, value).map_err(at(&path))?;
                    written.insert(file, path);
                }
                controlled.push((base.version, *controller));
                let index = CONTROLLERS.iter().position(|c| c == controller).unwrap_or(0);
                found[index] = Some((base.version, dir.clone()));
            }
            // A lone thread may move itself through `tasks` without the lock that a whole process takes.
            let join = dir.join(if base.version == Version::V1 { "tasks" } else { "cgroup.procs" });
            joins.push(OpenOptions::new().write(true).open(&join).map_err(at(&join))?);
            dirs.push(dir);
        }
        let open = |index: usize, v1: &str, v2: &str| -> Result<File, CgroupError> {
            let (version, dir) = found[index].as_ref().ok_or(CgroupError::Missing(CONTROLLERS[index]))?;
            let path = dir.join(if *version == Version::V1 { v1 } else { v2 });
            OpenOptions::new().read(true).open(&path).map_err(at(&path))
        };
        let peak = |index: usize| -> Option<File> {
            let (version, dir) = found[index].as_ref()?;
            let file = if *version == Version::V1 { "memory.max_usage_in_bytes" } else { "memory.peak" };
            OpenOptions::new().read(true).write(true).open(dir.join(file)).ok()
        };
        Ok(Slot {
            memory_events: open(0, "memory.oom_control", "memory.events")?,
            memory_peak: peak(0),
            process_events: open(1, "pids.events", "pids.events")?,
            joins,
            dirs,
            controlled,
            settings: written,
            in_force: Mutex::new(Some(limits)),
        })
    }

    /// The files through which a process joins this slot by writing `0`.
    pub fn joins(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.joins.iter().map(File::as_fd)
    }

    /// Sets the limits of the next call, while nobody is in the slot.
    pub fn limit(&self, limits: Limits) -> io::Result<()> {
        let mut in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        let before = in_force.take();
        if before != Some(limits) {
            let raised = before.is_none_or(|b| limits.memory_bytes > b.memory_bytes);
            for (version, controller) in &self.controlled {
                let mut rows = settings(*version, controller, limits);
                // v1 keeps memory at or below memory with swap, so on the way up the sum goes first.
                if raised {
                    rows.reverse();
                }
                for (file, value) in rows {
                    self.settings.get(file).map_or(Ok(()), |path| fs::write(path, value))?;
                }
            }
        }
        *in_force = Some(limits);
        Ok(())
    }

    /// Reads the counters.
    pub fn counters(&self) -> io::Result<Counters> {
        Ok(Counters {
            memory_kills: counter(&self.memory_events, "oom_kill ")?,
            processes_refused: counter(&self.process_events, "max ")?,
            memory_peak_bytes: match &self.memory_peak {
                Some(file) => text(file)?.trim().parse().unwrap_or(0),
                None => 0,
            },
        })
    }

    /// Makes the slot ready for another call: nobody in it, the peak forgotten.
    pub fn recycle(&self) -> io::Result<()> {
        if let Some(mut peak) = self.memory_peak.as_ref() {
            // v2 before Linux 6.12 cannot forget; the peak is a figure for people, never a decision.
            let _ = peak.write(b"0");
        }
        if self.is_empty()? {
            return Ok(());
        }
        self.kill();
        if self.is_empty()? { Ok(()) } else { Err(io::Error::other("processes survive in a cgroup slot")) }
    }

    /// Is no process in any of its directories?
    pub fn is_empty(&self) -> io::Result<bool> {
        for dir in &self.dirs {
            if !fs::read(dir.join("cgroup.procs"))?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Ends whatever is in it.
    fn kill(&self) {
        for dir in &self.dirs {
            kill_all(dir);
        }
    }

    /// Its directories, for those who look at a machine before and after.
    pub fn dirs(&self) -> &[PathBuf] {
        &self.dirs
    }
}

/// Ends every process in the cgroup at `dir`.
fn kill_all(dir: &Path) {
    const ROUNDS: usize = 100;
    for _ in 0..ROUNDS {
        let procs = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
        if procs.is_empty() {
            return;
        }
        if fs::write(dir.join("cgroup.kill"), "1").is_err() {
            for pid in procs.lines().filter_map(|l| l.parse::<i32>().ok()) {
                // It may have ended between the two calls; the next round tells.
                let _ = process::kill_pid(pid);
            }
        }
        std::thread::yield_now();
    }
}

/// What to write where for one controller.
fn settings(version: Version, controller: &str, limits: Limits) -> Vec<(&'static str, String)> {
    let memory = limits.memory_bytes.to_string();
    let quota = limits.cpu_quota_us();
    match (version, controller) {
        (Version::V1, "memory") => vec![
            ("memory.limit_in_bytes", memory.clone()),
            ("memory.memsw.limit_in_bytes", memory),
            ("memory.swappiness", "0".to_owned()),
        ],
        (Version::V2, "memory") => vec![("memory.max", memory), ("memory.swap.max", "0".to_owned())],
        (_, "pids") => vec![("pids.max", limits.processes.to_string())],
        (Version::V1, _) => {
            vec![("cpu.cfs_period_us", CPU_PERIOD_US.to_string()), ("cpu.cfs_quota_us", quota.to_string())]
        }
        (Version::V2, _) => vec![("cpu.max", format!("{quota} {CPU_PERIOD_US}"))],
    }
}

/// On v2 only a cgroup without processes of its own may hand controllers down. Moves those of this process and its
/// children that live there into a leaf, then hands them down.
fn delegate(base: &Base) -> Result<(), CgroupError> {
    let control = base.path.join("cgroup.subtree_control");
    let wanted: Vec<String> = base.controllers.iter().map(|c| format!("+{c}")).collect();
    if fs::write(&control, wanted.join(" ")).is_ok() {
        return Ok(());
    }
    let leaf = base.path.join(format!("{PREFIX}{}{LEAF}", std::process::id()));
    fs::create_dir_all(&leaf).map_err(at(&leaf))?;
    let (from, to) = (base.path.join("cgroup.procs"), leaf.join("cgroup.procs"));
    for process in fs::read_to_string(&from).map_err(at(&from))?.lines().filter(|p| is_ours(p)) {
        fs::write(&to, process).map_err(at(&to))?;
    }
    fs::write(&control, wanted.join(" ")).map_err(at(&control))
}

/// Is it this process or a child of it?
fn is_ours(process: &str) -> bool {
    let own = std::process::id().to_string();
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in brackets, may hold anything; after it come the state and the parent.
    let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1));
    process == own || parent == Some(&own)
}

/// Removes the slots of supervisors that were killed before they could.
fn sweep(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|n| n.strip_prefix(PREFIX)).and_then(|n| n.split('-').next());
        if let Some(owner) = owner
            && owner.parse::<u32>().is_ok()
            && !Path::new("/proc").join(owner).exists()
        {
            kill_all(&entry.path());
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn text(file: &File) -> io::Result<String> {
    let mut file = file;
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text)
}

fn counter(file: &File, key: &str) -> io::Result<u64> {
    let text = text(file)?;
    Ok(text.lines().find_map(|l| l.strip_prefix(key)).and_then(|n| n.trim().parse().ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1_MOUNTS: &str = "\
30 25 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
31 25 0:27 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
32 25 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
33 25 0:29 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";
    const V1_OWN: &str = "8:pids:/\n4:memory:/a/b\n3:cpu,cpuacct:/\n0::/";

    #[test]
    fn v1_controllers_are_found_each_in_its_hierarchy() {
        let bases = find_bases(V1_MOUNTS, V1_OWN, None).unwrap();
        let paths: Vec<_> = bases.iter().map(|b| b.path.to_str().unwrap()).collect();
        assert_eq!(paths, ["/sys/fs/cgroup/memory/a/b", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/cpu,cpuacct"]);
        let below = find_bases(V1_MOUNTS, V1_OWN, Some("/mine")).unwrap();
        assert_eq!(below[0].path, Path::new("/sys/fs/cgroup/memory/mine"));
    }

    #[test]
    fn a_mount_that_shows_a_subtree_is_entered_below_its_root() {
        let mounts = V1_MOUNTS.replace("0:26 / /sys", "0:26 /a /sys");
        let bases = find_bases(&mounts, V1_OWN, None).unwrap();
        assert_eq!(bases[0].path, Path::new("/sys/fs/cgroup/memory/b"));
    }

    #[test]
    fn v2_serves_all_three_from_one_directory() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("user.slice");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("cgroup.controllers"), "cpu io memory pids\n").unwrap();
        let mounts = format!("33 25 0:29 / {} rw,relatime - cgroup2 cgroup2 rw", root.path().display());
        let bases = find_bases(&mounts, "0::/user.slice", None).unwrap();
        assert_eq!(bases.len(), 1);
        assert_eq!(
            bases[0],
            Base { version: Version::V2, path: own.clone(), controllers: CONTROLLERS.to_vec() }
        );
        // A second supervisor of the process finds the same.
        let moved = find_bases(&mounts, "0::/user.slice/tinyfiles-7-supervisor", None).unwrap();
        assert_eq!(moved, bases);
        fs::write(own.join("cgroup.controllers"), "cpu memory\n").unwrap();
        let missing = find_bases(&mounts, "0::/user.slice", None).unwrap_err();
        assert!(missing.to_string().starts_with("no cgroup controller `pids`"), "{missing}");
    }

    #[test]
    fn a_process_and_its_children_go_along_and_nobody_else() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        assert!(is_ours(&std::process::id().to_string()) && is_ours(&child.id().to_string()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_ours("1") && !is_ours(&child.id().to_string()) && !is_ours(""));
    }

    #[test]
    fn limits_are_written_as_each_version_wants_them() {
        let limits = Limits { memory_bytes: 128 << 20, processes: 32, cpus: 0.5 };
        let flat =
            |v, c| settings(v, c, limits).into_iter().map(|(f, v)| format!("{f}={v}")).collect::<Vec<_>>();
        assert_eq!(flat(Version::V2, "memory"), ["memory.max=134217728", "memory.swap.max=0"]);
        assert_eq!(flat(Version::V2, "cpu"), ["cpu.max=50000 100000"]);
        assert_eq!(flat(Version::V1, "cpu"), ["cpu.cfs_period_us=100000", "cpu.cfs_quota_us=50000"]);
        assert_eq!(flat(Version::V1, "memory")[1], "memory.memsw.limit_in_bytes=134217728");
        assert_eq!(flat(Version::V1, "pids"), ["pids.max=32"]);
    }
}
