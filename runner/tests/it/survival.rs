//! kill -9 of each process in the middle of a call, and what the host holds before and after.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use runner::engine::Mode;
use runner::outcome::{Crash, Outcome};
use runner::supervisor::{Call, Supervisor};

use crate::{call, ending, machine, program, supervisor};

const SLEEP: &str = "import time\ndef run(i):\n    time.sleep(1)\n    return 'slept'";

/// The processes whose parent is `pid`.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|t| fs::read_to_string(t.path().join("children")).ok());
    lists.flat_map(|l| l.split_whitespace().filter_map(|p| p.parse().ok()).collect::<Vec<u32>>()).collect()
}

/// Waits for `holds`, for as long as a call may take.
pub(crate) fn until(holds: impl Fn() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(5);
    while Instant::now() < end {
        if holds() {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

pub(crate) fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
}

/// Waits for the child that sleeps inside its call: the one before it compiles, and never sleeps.
fn sleeper(supervisor: &Supervisor) -> u32 {
    let slots = supervisor.slots().unwrap().all();
    let procs = || slots.iter().filter_map(|s| fs::read_to_string(s.dirs()[0].join("cgroup.procs")).ok());
    let asleep = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/wchan")).is_ok_and(|place| place.contains("nanosleep"))
    };
    let found = || procs().find_map(|p| p.lines().next()?.parse::<u32>().ok()).filter(asleep);
    assert!(until(|| found().is_some()), "no child sleeps");
    found().unwrap()
}

#[test]
fn a_killed_zygote_is_replaced_and_costs_no_call() {
    let s = supervisor(Mode::Guarded);
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| ending(&call(&s, SLEEP, "null")));
        let zygote = s.zygote_pid();
        sleeper(&s);
        kill(zygote);
        assert_eq!(slow.join().unwrap(), "ok \"slept\"");
    });
    assert_eq!(ending(&call(&s, "def run(i):\n    return 1", "null")), "ok 1");
    assert_eq!(s.restarts(), 1);
}

#[test]
fn a_killed_child_is_a_crash() {
    let s = supervisor(Mode::Guarded);
    let source = "def run(i):\n    import random\n    random._os.kill(1, 9)\n    return 1";
    assert_eq!(call(&s, source, "null").outcome.name(), "denied");
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| s.call(&Call::new(SLEEP.as_bytes(), b"null")).unwrap());
        kill(sleeper(&s));
        assert_eq!(slow.join().unwrap().outcome, Outcome::Crash(Crash::Signal(9)));
    });
    assert_eq!(ending(&call(&s, "def run(i):\n    return 1", "null")), "ok 1");
}

#[test]
fn a_killed_supervisor_takes_everything_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("work.py");
    fs::write(&file, "def run(i):\n    while True: pass").unwrap();
    let mut command = Command::new(program());
    command.arg("call").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
    let mut supervisor = command.spawn().unwrap();
    // The spawner, the zygote and the call's own child.
    assert!(until(|| children(supervisor.id()).len() == 3), "{:?}", children(supervisor.id()));
    let family = children(supervisor.id());
    kill(supervisor.id());
    supervisor.wait().unwrap();
    let gone = |pid: &u32| !Path::new(&format!("/proc/{pid}")).exists() || is_zombie(*pid);
    assert!(until(|| family.iter().all(gone)), "{family:?} live on");
    // Its cgroups are swept away by the next start.
    drop(crate::supervisor(Mode::Guarded));
    let own = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let bases =
        runner::confine::cgroup::find_bases(&own, &fs::read_to_string("/proc/self/cgroup").unwrap(), None);
    for base in bases.unwrap() {
        let stale = format!("tinyfiles-{}-", supervisor.id());
        let names = fs::read_dir(&base.path).unwrap().flatten().map(|e| e.file_name().into_string().unwrap());
        assert_eq!(names.filter(|n| n.starts_with(&stale)).count(), 0);
    }
}

fn is_zombie(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|l| l.starts_with("State:\tZ"))
}

/// In a process of its own: other tests of this one open descriptors meanwhile.
#[test]
fn ten_thousand_calls_leave_nothing_behind() {
    let _machine = machine();
    let soak =
        Command::new(program()).args(["soak", "--calls", "10000", "--seconds", "600"]).output().unwrap();
    let report = String::from_utf8(soak.stdout).unwrap();
    assert!(soak.status.success() && report.contains("\"calls\": 10000"), "{report}");
}
