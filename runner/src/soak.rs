//! Many calls in a row, and what the machine holds before and after: `runner soak`, and the tests.
//!
//! A count that differs is a leak, whatever it counts. The suite counts the same things around its attacks.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::supervisor::{Call, RunError, Supervisor};

/// What is called, in turn, and how it must end: the ordinary ways to leave something behind.
const WORKS: [(&str, &str); 4] = [
    ("def run(n):\n    return n\n", "ok"),
    (
        "def run(n):\n    with open(f'/tmp/{n}', 'w') as file:\n        file.write('x' * 5000)\n    return n\n",
        "ok",
    ),
    (
        "import threading\ndef run(n):\n    threading.Thread(target=threading.Event().wait, daemon=True).start()\n    return n\n",
        "ok",
    ),
    ("def run(n):\n    raise ValueError(n)\n", "error"),
];

/// When a soak ends: at whichever comes first.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// After this many calls.
    pub calls: u64,
    /// After this time.
    pub time: Duration,
    /// From how many threads.
    pub threads: usize,
}

/// What the host holds for these supervisors.
pub fn observe(supervisors: &[&Supervisor]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    counts.insert("mounts of the host".to_owned(), lines("/proc/self/mountinfo"));
    counts.insert("descriptors of the supervisor".to_owned(), entries("/proc/self/fd"));
    counts.insert("children that nobody waited for".to_owned(), zombies());
    for (n, supervisor) in supervisors.iter().enumerate() {
        let pid = supervisor.zygote_pid();
        counts.insert(format!("zygote {n}: pid"), u64::from(pid));
        counts.insert(format!("zygote {n}: descriptors"), entries(&format!("/proc/{pid}/fd")));
        counts.insert(format!("zygote {n}: mounts"), lines(&format!("/proc/{pid}/mountinfo")));
        let dirs = || supervisor.slots().map_or(&[][..], |s| s.all()).iter().flat_map(|s| s.dirs());
        let inside: u64 = dirs().map(|d| lines(&format!("{}/cgroup.procs", d.display()))).sum();
        let below =
            dirs().map(|d| fs::read_dir(d).map_or(0, |e| e.flatten().filter(|e| e.path().is_dir()).count()));
        counts.insert(format!("zygote {n}: processes in slots"), inside);
        counts.insert(
            format!("zygote {n}: cgroups below slots"),
            u64::try_from(below.sum::<usize>()).unwrap_or(0),
        );
    }
    counts
}

fn entries(path: &str) -> u64 {
    fs::read_dir(path).map_or(0, |d| u64::try_from(d.count()).unwrap_or(0))
}

fn lines(path: &str) -> u64 {
    fs::read_to_string(path).map_or(0, |t| u64::try_from(t.lines().count()).unwrap_or(0))
}

/// Children of this process that have ended and were not reaped.
fn zombies() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let children = tasks.filter_map(|t| fs::read_to_string(t.path().join("children")).ok());
    let is_zombie = |pid: &str| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.lines().any(|l| l.starts_with("State:\tZ"))
    };
    children.map(|c| c.split_whitespace().filter(|pid| is_zombie(pid)).count() as u64).sum()
}

/// Resident memory of a process in KiB.
pub fn resident_kb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let row = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap_or_default();
    row.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Calls as fast as the threads can. The report's `clean` says whether every call ended as it must and every count is
/// the same as before.
pub fn run(supervisor: &Supervisor, plan: Plan) -> Result<Value, RunError> {
    let calls = |next: &AtomicU64, end: u64, wrong: &AtomicU64, until: Instant| -> Result<(), RunError> {
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= end || Instant::now() >= until {
                return Ok(());
            }
            let (source, ends) = WORKS[usize::try_from(n).unwrap_or(0) % WORKS.len()];
            let inputs = n.to_string();
            if supervisor.call(&Call::new(source.as_bytes(), inputs.as_bytes()))?.outcome.name() != ends {
                wrong.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let wrong = AtomicU64::new(0);
    // Fills the cache and warms what there is to warm.
    calls(&AtomicU64::new(0), WORKS.len() as u64 * 2, &wrong, Instant::now() + plan.time)?;
    let (before, memory) = (observe(&[supervisor]), resident_kb(supervisor.zygote_pid()));
    let (started, next) = (Instant::now(), AtomicU64::new(0));
    let until = started + plan.time;
    let results: Vec<Result<(), RunError>> = std::thread::scope(|scope| {
        let work = || calls(&next, plan.calls, &wrong, until);
        let threads: Vec<_> = (0..plan.threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().filter_map(|t| t.join().ok()).collect()
    });
    let took = started.elapsed();
    results.into_iter().collect::<Result<(), RunError>>()?;
    let (after, wrong) = (observe(&[supervisor]), wrong.into_inner());
    // Each thread took one number more than it called.
    let done = next.into_inner().saturating_sub(plan.threads as u64);
    Ok(json!({
        "clean": before == after && wrong == 0, "calls": done, "ended_otherwise": wrong,
        "seconds": (took.as_secs_f64() * 10.0).round() / 10.0,
        "calls_per_s": (done as f64 / took.as_secs_f64() * 10.0).round() / 10.0,
        "zygote_rss_kb": [memory, resident_kb(supervisor.zygote_pid())],
        "before": before, "after": after,
    }))
}
