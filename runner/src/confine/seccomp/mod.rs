//! `seccomp/*.json`: one policy file per process role, read once, compiled before any fork.
//!
//! Called by `zygote` (its own filter and the children's), by `confine::service` (the supervisor's), by the worker, and
//! by the suite's sweep, which asks for a number's class. `table` makes numbers of names, `program` a program of a
//! policy. It does not decide anything: the files do.

mod program;
mod table;

use std::collections::BTreeMap;

use serde::Deserialize;

pub use table::{name, number};

use table::{NUMBERS, Table};

const PYTHON: &str = include_str!("../../../../seccomp/python.json");
const WORKER: &str = include_str!("../../../../seccomp/worker.json");
const ZYGOTE: &str = include_str!("../../../../seccomp/zygote.json");
const CALL: &str = include_str!("../../../../seccomp/call.json");
const SUPERVISOR: &str = include_str!("../../../../seccomp/supervisor.json");

/// A process role with a policy of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A confined child.
    Python,
    /// The process that forks them.
    Zygote,
    /// The engine of `small_python`.
    Worker,
    /// The service that watches them.
    Supervisor,
    /// A dry run, which watches one.
    Call,
}

/// What happens to a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is carried out.
    Allow,
    /// It fails with this errno.
    Errno(u16),
    /// It ends the process.
    Kill,
}

/// What a verdict `Kill` compiles to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillBy {
    /// The kernel ends the process.
    Kernel,
    /// The call waits for the supervisor, which learns its number and ends the process; it is never carried out.
    Listener,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    role: String,
    #[serde(rename = "what")]
    _what: String,
    default: String,
    #[serde(default)]
    include: Option<String>,
    rules: Vec<RuleRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleRow {
    calls: Vec<String>,
    action: String,
    #[serde(default)]
    errno: Option<String>,
    #[serde(default)]
    when: Vec<Condition>,
    /// Holds only in a worker with mounted directories.
    #[serde(default)]
    with_mounts: bool,
    why: String,
}

#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Condition {
    arg: u8,
    #[serde(default = "all_bits")]
    mask: u32,
    equals: Operand,
}

/// What an argument is compared with.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
enum Operand {
    Number(u32),
    Own(Own),
}

#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
enum Own {
    /// The id of the process that loads the filter.
    #[serde(rename = "own process id")]
    ProcessId,
}

impl Condition {
    fn equals(self) -> u32 {
        match self.equals {
            Operand::Number(number) => number,
            Operand::Own(Own::ProcessId) => std::process::id(),
        }
    }
}

fn all_bits() -> u32 {
    u32::MAX
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    when: Vec<Condition>,
    verdict: Verdict,
}

/// One policy, by system call number.
#[derive(Debug)]
pub struct Policy {
    rules: BTreeMap<u32, Vec<Rule>>,
    default: Verdict,
    table: Table,
}

/// Why a policy file cannot be used. The files are compiled in, so this is a bug of the build and a test finds it.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// Not JSON of this shape.
    #[error("seccomp/{role}.json: {source}")]
    Json {
        /// The file.
        role: &'static str,
        /// What serde said.
        source: serde_json::Error,
    },
    /// A name, action or reason that means nothing.
    #[error("seccomp/{role}.json: {what} `{value}`")]
    Value {
        /// The file.
        role: &'static str,
        /// What is wrong.
        what: &'static str,
        /// With which value.
        value: String,
    },
}

/// All policy files with their text, for the policy digest.
pub fn sources() -> [(&'static str, &'static str); 4] {
    // Not the worker's and the dry run's: the gate is about the function service, which has neither.
    [
        ("python.json", PYTHON),
        ("supervisor.json", SUPERVISOR),
        ("x86_64.tsv", NUMBERS),
        ("zygote.json", ZYGOTE),
    ]
}

impl Role {
    fn file(self) -> (&'static str, &'static str) {
        match self {
            Role::Python => ("python", PYTHON),
            Role::Zygote => ("zygote", ZYGOTE),
            Role::Worker => ("worker", WORKER),
            Role::Supervisor => ("supervisor", SUPERVISOR),
            Role::Call => ("call", CALL),
        }
    }
}

impl Policy {
    /// Reads the policy of `role`.
    pub fn of(role: Role) -> Result<Policy, PolicyError> {
        Policy::read(role, true, Table::NATIVE)
    }

    /// Reads the policy of a worker, with the calls on files or without.
    pub fn of_worker(mounts: bool) -> Result<Policy, PolicyError> {
        Policy::read(Role::Worker, mounts, Table::NATIVE)
    }

    /// Are there policies for this machine's table of system calls?
    pub fn exists() -> bool {
        cfg!(any(target_arch = "x86_64", target_arch = "aarch64"))
    }

    fn read(role: Role, mounts: bool, table: Table) -> Result<Policy, PolicyError> {
        let mut policy = Policy { rules: BTreeMap::new(), default: Verdict::Kill, table };
        let mut next = Some(role);
        while let Some(role) = next {
            next = policy.add(role, mounts)?;
        }
        Ok(policy)
    }

    /// Appends the rules of a file: for one number, earlier rules win. Returns the role whose rules follow.
    fn add(&mut self, role: Role, mounts: bool) -> Result<Option<Role>, PolicyError> {
        let (role, text) = role.file();
        let bad = |what, value: &str| PolicyError::Value { role, what, value: value.to_owned() };
        let file: File = serde_json::from_str(text).map_err(|source| PolicyError::Json { role, source })?;
        if file.role != role {
            return Err(bad("unexpected role", &file.role));
        }
        self.default = match file.default.as_str() {
            "kill" => Verdict::Kill,
            other => Verdict::Errno(errno(other).ok_or_else(|| bad("unknown default", other))?),
        };
        for row in file.rules {
            if row.with_mounts && !mounts {
                continue;
            }
            if row.why.len() < 4 {
                return Err(bad("no reason for", &row.calls.join(", ")));
            }
            let verdict = match (row.action.as_str(), row.errno.as_deref()) {
                ("allow", None) => Verdict::Allow,
                ("kill", None) => Verdict::Kill,
                ("errno", Some(e)) => Verdict::Errno(errno(e).ok_or_else(|| bad("unknown errno", e))?),
                _ => return Err(bad("unknown action", &row.action)),
            };
            for call in row.calls {
                let Some(number) = self.table.number(&call) else {
                    // Younger tables lack what has become another call since (open, stat, poll).
                    if Table::X86_64.number(&call).is_some() {
                        continue;
                    }
                    return Err(bad("unknown call", &call));
                };
                self.rules.entry(number).or_default().push(Rule { when: row.when.clone(), verdict });
            }
        }
        match file.include.as_deref() {
            None => Ok(None),
            Some("python") => Ok(Some(Role::Python)),
            Some("supervisor") => Ok(Some(Role::Supervisor)),
            Some(other) => Err(bad("unknown include", other)),
        }
    }

    /// What the policy says to `number` called with `args` (low halves).
    pub fn verdict(&self, number: u32, args: [u32; 6]) -> Verdict {
        let holds = |c: &Condition| args.get(usize::from(c.arg)).is_some_and(|a| a & c.mask == c.equals());
        let rules = self.rules.get(&number).map_or(&[][..], Vec::as_slice);
        rules.iter().find(|r| r.when.iter().all(holds)).map_or(self.default, |r| r.verdict)
    }

    /// Every number that is not killed with all arguments zero or whatever they are.
    pub fn known(&self) -> impl Iterator<Item = u32> {
        self.rules.keys().copied()
    }
}

fn errno(name: &str) -> Option<u16> {
    let known = [
        ("EPERM", libc::EPERM),
        ("ENOSYS", libc::ENOSYS),
        ("ENOTTY", libc::ENOTTY),
        ("EACCES", libc::EACCES),
    ];
    known.iter().find(|(n, _)| *n == name).and_then(|(_, v)| u16::try_from(*v).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_never_be_allowed_is_not() {
        let policy = Policy::of(Role::Python).unwrap();
        let never = "execve execveat fork vfork socket socketpair connect bind listen accept sendto sendmsg recvmsg ptrace \
            process_vm_readv process_vm_writev pidfd_getfd pidfd_open memfd_create memfd_secret io_uring_setup \
            io_uring_enter userfaultfd bpf perf_event_open keyctl add_key request_key mount umount2 fsopen open_tree \
            move_mount pivot_root chroot unshare setns personality modify_ldt vmsplice splice shmget msgget semget \
            fanotify_init inotify_init1 init_module finit_module delete_module kexec_load reboot swapon iopl ioperm \
            kcmp name_to_handle_at open_by_handle_at mknod mknodat symlink symlinkat link linkat setuid setresuid \
            setgid setgroups capset seccomp landlock_create_ruleset uname kill tkill rt_sigqueueinfo setsid setpgid \
            timer_create mlock mlockall quotactl syslog acct sethostname clock_settime settimeofday adjtimex \
            arch_prctl lookup_dcookie mq_open ioprio_set move_pages migrate_pages mbind set_mempolicy";
        for call in never.split_whitespace() {
            let number = number(call).unwrap_or_else(|| panic!("{call}"));
            for value in [0, 1, 2, 21, u32::MAX] {
                assert_eq!(policy.verdict(number, [value; 6]), Verdict::Kill, "{call}");
            }
        }
        let clone = number("clone").unwrap();
        for flags in [0, 17, 0x11 | 0x0200_0000, 0x1000_0000 | 4_001_536, 0x4000, 0x100 | 0x4000 | 17] {
            assert_eq!(policy.verdict(clone, [flags, 0, 0, 0, 0, 0]), Verdict::Kill, "clone {flags:#x}");
        }
        for prot in [4, 5, 7] {
            let mmap = [0, 0, prot, 0, 0, 0];
            assert!(matches!(policy.verdict(number("mmap").unwrap(), mmap), Verdict::Errno(_)));
            assert!(matches!(policy.verdict(number("mprotect").unwrap(), mmap), Verdict::Errno(_)));
        }
        for command in [0x5412 /* TIOCSTI */, 0x541c /* TIOCLINUX */, 0x8912 /* SIOCGIFCONF */] {
            assert_eq!(policy.verdict(number("ioctl").unwrap(), [0, command, 0, 0, 0, 0]), Verdict::Kill);
        }
    }

    #[test]
    fn a_worker_is_refused_files_without_mounts_and_the_rest_always() {
        let refused = Verdict::Errno(1);
        for mounts in [false, true] {
            let policy = Policy::of_worker(mounts).unwrap();
            let verdict = |call: &str, args| policy.verdict(number(call).unwrap(), args);
            for call in "execve execveat fork vfork clone clone3 socket socketpair connect sendmsg pipe2 dup2 ptrace memfd_create \
                io_uring_setup userfaultfd bpf keyctl mount unshare setns prctl seccomp setuid setpgid setsid unlink \
                mkdirat rename symlinkat linkat chmod chown truncate chdir mknodat inotify_init1 pidfd_open uname \
                prlimit64 sysinfo shmget process_vm_readv".split_whitespace()
            {
                for value in [0, 1, 17, u32::MAX] {
                    assert_eq!(verdict(call, [value; 6]), refused, "{call}");
                }
            }
            let files = if mounts { Verdict::Allow } else { refused };
            for call in ["open", "openat", "newfstatat", "lseek", "readlink"] {
                assert_eq!(verdict(call, [0; 6]), files, "{call}");
            }
            for call in ["kill", "tgkill"] {
                assert_eq!(verdict(call, [std::process::id(), 0, 0, 0, 0, 0]), Verdict::Allow, "{call}");
                assert_eq!(verdict(call, [1, 0, 0, 0, 0, 0]), refused, "{call}");
                assert_eq!(verdict(call, [u32::MAX, 0, 0, 0, 0, 0]), refused, "{call}");
            }
            assert_eq!(verdict("mmap", [0, 0, 3, 0, 0, 0]), Verdict::Allow);
            assert_eq!(verdict("mmap", [0, 0, 5, 0, 0, 0]), refused);
            assert_eq!(verdict("mprotect", [0, 0, 4, 0, 0, 0]), refused);
        }
    }

    #[test]
    fn a_supervisor_starts_nothing_and_reaches_nobody() {
        let [policy, call] = [Role::Supervisor, Role::Call].map(|role| Policy::of(role).unwrap());
        let never = "execve execveat fork vfork socket connect bind listen ptrace process_vm_readv process_vm_writev \
            pidfd_getfd memfd_create io_uring_setup userfaultfd bpf perf_event_open mount umount2 pivot_root chroot \
            unshare setns init_module kexec_load setuid setresuid capset link linkat symlinkat chmod \
            fchmodat mkdirat mknodat open_by_handle_at personality";
        for name in never.split_whitespace() {
            let number = number(name).unwrap_or_else(|| panic!("{name}"));
            for value in [0, 1, 2, 9, 21, u32::MAX] {
                assert_eq!(policy.verdict(number, [value; 6]), Verdict::Kill, "{name}");
                let dry_run = if name == "pidfd_getfd" { Verdict::Allow } else { Verdict::Kill };
                assert_eq!(call.verdict(number, [value; 6]), dry_run, "{name}");
            }
        }
        for signal in [1, 15, 19] {
            assert_eq!(policy.verdict(number("kill").unwrap(), [1, signal, 0, 0, 0, 0]), Verdict::Kill);
        }
    }
}
