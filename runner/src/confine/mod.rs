//! The layers of the kernel boundary, one file each, and the names of the steps that put them in place.
//!
//! `zygote` applies what is made once, `child` what is made for each call, in the order of [`Step`]; `service` is the
//! supervisor's own. A step either
//! holds or ends the call with a [`ConfineError`]: there is no best effort here. Nothing in this folder knows Python,
//! frames or callers.

pub mod cgroup;
pub mod check;
pub mod ids;
pub mod landlock;
pub mod mounts;
pub mod namespaces;
pub mod seccomp;
pub mod service;

use std::io;

/// One step of confinement. The order is the order in which a child takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Step {
    /// Own pid, mount, ipc, uts and cgroup namespaces; the network namespace is the zygote's empty one.
    Namespaces = 0,
    /// Memory, process and CPU limits of the call.
    Cgroup = 1,
    /// A fresh tmpfs at /tmp.
    Tmp = 2,
    /// Three descriptors stay: the frames, print, errors.
    Descriptors = 3,
    /// Limits behind the cgroup.
    Rlimits = 4,
    /// The bounding set emptied.
    Bounding = 5,
    /// Supplementary groups left.
    Groups = 6,
    /// gid 65534.
    Gid = 7,
    /// uid 65534.
    Uid = 8,
    /// Every capability set emptied.
    LinuxCaps = 9,
    /// No new privileges, no dumps, death with the supervisor.
    NoNewPrivs = 10,
    /// The file system shrunk to /tmp.
    Landlock = 11,
    /// The child looks at what holds it.
    SelfCheck = 12,
    /// The allow-list of system calls.
    Seccomp = 13,
}

impl Step {
    /// All steps in order.
    pub const ALL: [Step; 14] = [
        Step::Namespaces,
        Step::Cgroup,
        Step::Tmp,
        Step::Descriptors,
        Step::Rlimits,
        Step::Bounding,
        Step::Groups,
        Step::Gid,
        Step::Uid,
        Step::LinuxCaps,
        Step::NoNewPrivs,
        Step::Landlock,
        Step::SelfCheck,
        Step::Seccomp,
    ];

    /// The step with this number on the wire.
    pub fn from_number(number: u8) -> Option<Step> {
        Step::ALL.get(usize::from(number)).copied()
    }

    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            Step::Namespaces => "namespaces",
            Step::Cgroup => "cgroup",
            Step::Tmp => "tmp",
            Step::Descriptors => "descriptors",
            Step::Rlimits => "rlimits",
            Step::Bounding => "bounding set",
            Step::Groups => "groups",
            Step::Gid => "gid",
            Step::Uid => "uid",
            Step::LinuxCaps => "linux capabilities",
            Step::NoNewPrivs => "no new privileges",
            Step::Landlock => "landlock",
            Step::SelfCheck => "self-check",
            Step::Seccomp => "seccomp",
        }
    }
}

/// A set of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps(u16);

impl Steps {
    /// Every step: what a call that counts has.
    pub const ALL: Steps = Steps((1 << Step::ALL.len()) - 1);
    /// None: a bare fork.
    pub const NONE: Steps = Steps(0);

    /// Is `step` among them?
    pub fn has(self, step: Step) -> bool {
        self.0 & (1 << step as u8) != 0
    }

    /// These and `step`.
    #[must_use]
    pub fn with(self, step: Step) -> Steps {
        Steps(self.0 | (1 << step as u8))
    }

    /// These less `step`.
    #[must_use]
    pub fn without(self, step: Step) -> Steps {
        Steps(self.0 & !(1 << step as u8))
    }

    /// As on the wire.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// From the wire; bits without a step are dropped.
    pub fn from_bits(bits: u16) -> Steps {
        Steps(bits & Steps::ALL.0)
    }
}

/// A layer could not be put in place.
#[derive(Debug, thiserror::Error)]
#[error("confinement step `{}` failed: {source}", step.name())]
pub struct ConfineError {
    /// Which.
    pub step: Step,
    /// Why.
    pub source: io::Error,
}

impl ConfineError {
    /// For `map_err`: names the step of an I/O error.
    pub fn at(step: Step) -> impl Fn(io::Error) -> ConfineError {
        move |source| ConfineError { step, source }
    }
}
