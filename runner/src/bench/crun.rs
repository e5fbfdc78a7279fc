//! The same small function in a container of `crun`, to compare with: an interpreter that is started anew, behind the
//! same kind of layers.
//!
//! Used by the bench alone, and left out with a reason where crun or the right to run it is missing. The bundle is as
//! close as the format allows: own namespaces, no network, a read-only root, uid 65534 without capabilities, a /tmp of
//! the same size, the same limits, and a filter from the same list with what starting a program takes.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::PLAIN;
use crate::confine::cgroup::CPU_PERIOD_US;
use crate::confine::seccomp::{self as filters, Policy, Role};
use crate::limits::Limits;
use crate::sys::{mount, process};

/// Where Debian mounts the second hierarchy of a hybrid machine.
const UNIFIED: &str = "/sys/fs/cgroup/unified";
/// What a program calls before it is a warm interpreter, beside what a function may.
const STARTING: &str = "access arch_prctl brk capget capset chdir close_range connect dup dup2 dup3 execve exit_group faccessat \
    faccessat2 fchdir fcntl fstat fstatfs futex getcwd getdents64 getegid geteuid getgid getpid getppid \
    getrandom gettid getuid ioctl lseek mmap mprotect munmap newfstatat open openat pread64 prctl prlimit64 \
    read readlink readlinkat rseq rt_sigaction rt_sigprocmask set_robust_list set_tid_address setgid \
    setgroups setresgid setresuid setuid sigaltstack socket stat statfs sysinfo uname write";

/// A bundle in a folder of its own, which goes with it.
#[derive(Debug)]
pub(super) struct Bundle {
    folder: PathBuf,
}

impl Bundle {
    /// Makes it and runs it once; the error says why there is nothing to compare with.
    pub(super) fn make() -> Result<Bundle, String> {
        if process::effective_ids().0 != 0 {
            return Err("a container of crun is started as root here".to_owned());
        }
        let folder = std::env::temp_dir().join(format!("tinyfiles-crun-{}", std::process::id()));
        let bundle = Bundle { folder };
        bundle.write().map_err(|e| format!("{}: {e}", bundle.folder.display()))?;
        bundle.run()?;
        Ok(bundle)
    }

    fn write(&self) -> io::Result<()> {
        // Not one that somebody else has put there.
        fs::create_dir(&self.folder)?;
        let root = self.folder.join("rootfs");
        for place in ["usr", "tmp", "dev", "proc"] {
            fs::create_dir_all(root.join(place))?;
        }
        for link in ["lib", "lib64", "bin"] {
            symlink(Path::new("usr").join(link), root.join(link))?;
        }
        fs::write(self.folder.join("config.json"), config().to_string())
    }

    /// From the start of crun to its end.
    pub(super) fn run(&self) -> Result<Duration, String> {
        // A thread that leaves the machine's mounts is not one to go on with.
        let ran = std::thread::scope(|scope| {
            let once = || {
                hide_second_hierarchy()?;
                let mut crun = Command::new("crun");
                crun.arg("--root").arg(self.folder.join("state")).args([
                    "--cgroup-manager=cgroupfs",
                    "run",
                    "-b",
                ]);
                crun.arg(&self.folder).arg(format!("tinyfiles-bench-{}", std::process::id()));
                let started = Instant::now();
                crun.stdin(Stdio::null()).output().map(|output| (started.elapsed(), output))
            };
            scope.spawn(once).join()
        });
        match ran {
            Ok(Ok((time, output)))
                if output.status.success() && output.stdout.starts_with(b"{\"sum\": 3}") =>
            {
                Ok(time)
            }
            Ok(Ok((_, output))) => Err(format!("crun: {}", String::from_utf8_lossy(&output.stderr).trim())),
            Ok(Err(e)) => Err(format!("crun: {e}")),
            Err(_) => Err("crun: the thread that ran it ended early".to_owned()),
        }
    }
}

impl Drop for Bundle {
    fn drop(&mut self) {
        // What stays is a folder in /tmp.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// crun refuses a machine with both kinds of cgroups. This thread, and what it starts, then sees the first kind only.
fn hide_second_hierarchy() -> io::Result<()> {
    if !Path::new(UNIFIED).join("cgroup.procs").exists() {
        return Ok(());
    }
    mount::unshare(libc::CLONE_NEWNS)?;
    mount::mount(c"none", c"/", c"", libc::MS_REC | libc::MS_PRIVATE, c"")?;
    mount::detach(c"/sys/fs/cgroup/unified")
}

fn config() -> Value {
    let limits = &policy::limits().python;
    let python = Policy::of(Role::Python).map(|p| p.known().filter_map(filters::name).collect::<Vec<_>>());
    let mut calls = python.unwrap_or_default();
    calls.extend(STARTING.split_whitespace());
    calls.sort_unstable();
    calls.dedup();
    let tmp = [format!("size={}", limits.tmp_bytes_max), format!("nr_inodes={}", limits.tmp_inodes_max)];
    let tmp: Vec<&str> =
        ["noexec", "nosuid", "nodev"].into_iter().chain(tmp.iter().map(String::as_str)).collect();
    let namespaces = ["pid", "network", "ipc", "uts", "mount", "cgroup"].map(|kind| json!({"type": kind}));
    json!({
        "ociVersion": "1.0.0",
        "process": {
            "terminal": false, "user": {"uid": limits.uid, "gid": limits.gid}, "cwd": "/", "env": [],
            "args": ["/usr/bin/python3", "-I", "-S", "-c", PLAIN],
            "capabilities": {}, "noNewPrivileges": true,
            "rlimits": [{"type": "RLIMIT_NOFILE", "hard": 64, "soft": 64}, {"type": "RLIMIT_CORE", "hard": 0, "soft": 0}],
        },
        "root": {"path": "rootfs", "readonly": true},
        "mounts": [
            {"destination": "/usr", "type": "bind", "source": "/usr", "options": ["bind", "ro", "nosuid", "nodev"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": tmp},
        ],
        "linux": {
            "namespaces": namespaces,
            "resources": {
                "memory": {"limit": limits.memory_bytes_max, "swap": limits.memory_bytes_max},
                "pids": {"limit": limits.processes_max},
                "cpu": {"quota": Limits::policy().cgroup.cpu_quota_us(), "period": CPU_PERIOD_US},
            },
            "seccomp": {
                "defaultAction": "SCMP_ACT_ERRNO", "architectures": ["SCMP_ARCH_X86_64"],
                "syscalls": [{"names": calls, "action": "SCMP_ACT_ALLOW"}],
            },
        },
    })
}
