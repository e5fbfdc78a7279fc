//! `runner doctor`: one line for each layer: is it there, is it enforced, what proves it, what to do if not.
//!
//! Most lines come from one call whose child is looked at from outside; the rest from asking the kernel.

use std::path::Path;
use std::time::Duration;

use crate::confine::{cgroup, landlock};
use crate::engine::Mode;
use crate::inspect;
use crate::outcome::Outcome;
use crate::supervisor::{Call, Options, Supervisor};
use crate::sys::process;

/// One layer.
#[derive(Debug, Clone)]
pub struct Line {
    /// Its name.
    pub layer: &'static str,
    /// Whether it holds, and how that was seen; else the reason.
    pub found: Result<String, String>,
    /// What to do when it does not.
    pub remedy: &'static str,
}

/// Looks at every layer, in the order in which they are put on.
pub fn look(options: &Options) -> Vec<Line> {
    let mut lines = vec![
        Line {
            layer: "kernel",
            found: process::kernel().map_err(|e| e.to_string()),
            remedy: "Linux 6.12 or newer",
        },
        Line {
            layer: "landlock",
            found: landlock::available().map(|abi| format!("ABI {abi}")).map_err(|e| e.to_string()),
            remedy: "boot a kernel from 6.12 on with `lsm=landlock,…`",
        },
        Line {
            layer: "cgroup",
            found: cgroups(options.cgroup.as_deref()),
            remedy: "run as root, or delegate a cgroup with memory, pids and cpu and name it with --cgroup",
        },
        Line {
            layer: "user namespace",
            found: user_namespace(),
            remedy: "allow unprivileged user namespaces (kernel.apparmor_restrict_unprivileged_userns=0), or run as root",
        },
        Line {
            layer: "control interpreter",
            found: {
                let python = Path::new(env!("TINYFILES_PYTHON_HOME")).join("bin/python3");
                if python.exists() {
                    Ok(python.display().to_string())
                } else {
                    Err("not installed".to_owned())
                }
            },
            remedy: "install python3: the suite's positive controls run with it",
        },
    ];
    let call = one_call(options);
    let seen = |how: &str| call.clone().map(|()| how.to_owned());
    let from_call: [(&'static str, &str); 11] = [
        ("namespaces", "six links in /proc/PID/ns differ from the supervisor's; the child is process 1"),
        ("empty root", "the child lists nothing but /tmp; Landlock refuses even that"),
        ("/tmp", "statvfs in the child: size, inodes, noexec, nosuid, nodev"),
        ("descriptors", "three in /proc/PID/fd"),
        ("rlimits", "getrlimit in the child"),
        ("bounding set", "CapBnd is zero in /proc/PID/status"),
        ("identity", "Uid, Gid and Groups in /proc/PID/status"),
        ("linux capabilities", "CapEff, CapPrm, CapInh and CapAmb are zero"),
        ("no new privileges", "NoNewPrivs is 1"),
        ("seccomp", "Seccomp is 2 with two filters; clone3 says ENOSYS"),
        ("import guard", "a forbidden import names its rule"),
    ];
    let remedy = "see the reason; `runner call --unproved` runs without cgroups only";
    lines.extend(from_call.map(|(layer, how)| Line { layer, found: seen(how), remedy }));
    lines
}

fn cgroups(below: Option<&str>) -> Result<String, String> {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"));
    let (mounts, own) = (read("/proc/self/mountinfo")?, read("/proc/self/cgroup")?);
    let bases = cgroup::find_bases(&mounts, &own, below).map_err(|e| e.to_string())?;
    let words =
        bases.iter().map(|b| format!("{:?} {} ({})", b.version, b.path.display(), b.controllers.join(", ")));
    Ok(words.collect::<Vec<_>>().join("; "))
}

fn user_namespace() -> Result<String, String> {
    if process::effective_ids().0 == 0 {
        return Ok("not needed: started as root, so children are uid 65534 to the host".to_owned());
    }
    let most = std::fs::read_to_string("/proc/sys/user/max_user_namespaces").map_err(|e| e.to_string())?;
    if most.trim() == "0" {
        Err("user.max_user_namespaces is 0".to_owned())
    } else {
        Ok("allowed".to_owned())
    }
}

fn one_call(options: &Options) -> Result<(), String> {
    let supervisor =
        Supervisor::start(Options { mode: Mode::Guarded, ..options.clone() }).map_err(|e| e.to_string())?;
    let source = b"def run(inputs):\n    import os\n";
    // Whether layers hold, not how fast: that is for the suite and the bench, and an emulated machine is slow.
    let call = Call { inspect: true, ..Call::new(source, b"null").within(Duration::from_secs(60)) };
    let report = supervisor.call(&call).map_err(|e| e.to_string())?;
    match report.outcome {
        Outcome::Error(raised) if raised.message.contains("python-import-system") => Ok(()),
        other => Err(format!("the call ended as {}", other.name())),
    }
}

/// The same look that the doctor has, as a positive control: this process itself must not pass it.
pub fn control() -> bool {
    i32::try_from(std::process::id()).is_ok_and(|pid| inspect::look(pid, false).is_err())
}
