//! The process that forks children: a warm interpreter that never runs user code.
//!
//! `runner zygote` is started by `supervisor` with the control socket as its standard input, an empty environment and
//! nothing else open but its error output. It starts CPython, gives up everything that children's confinement does not
//! need, says that it is ready, and then forks once for each order until the socket ends. It has one thread, which is
//! what makes its forks sound; it never sees what a caller sent.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::child::{self, Order, Prepared};
use crate::confine::check::Expected;
use crate::confine::mounts::Tmp;
use crate::confine::namespaces::Privilege;
use crate::confine::seccomp::{KillBy, Policy, Role};
use crate::confine::{Step, Steps, ids, landlock, mounts, namespaces};
use crate::engine::{Bounds, Engine, Mode};
use crate::sys::process::{self, Forked};
use crate::sys::{caps, fd, seccomp, socket};

/// How a zygote is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// What it loads.
    pub mode: Mode,
    /// The slots whose files will follow.
    pub slots: u8,
    /// Whether orders with fewer than all steps are carried out: measurements and `--unproved` only.
    pub lenient: bool,
    /// Whether denied calls go to a listener that learns their number. The kernel prefers a filter that kills to one
    /// that asks, so the zygote then has none of its own.
    pub listening: bool,
    /// Where bandit is installed, in the mode that lints.
    pub bandit: Option<String>,
}

/// A message of the zygote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// It is confined and waits for orders.
    Ready(Privilege),
    /// It is not, and has ended.
    Failed(String),
    /// An order was carried out: a child with this pid runs; its pidfd comes with the message.
    Forked(i32),
    /// It was not: this errno.
    NotForked(i32),
}

/// The longest message.
pub const MESSAGE_MAX: usize = 1_024;
const ORDER: u8 = b'O';
const SLOT: u8 = b'S';

impl Said {
    /// As a message.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Said::Ready(Privilege::Root) => vec![b'R', 0],
            Said::Ready(Privilege::UserNamespace) => vec![b'R', 1],
            Said::Failed(why) => {
                [b"X", why.as_bytes().get(..MESSAGE_MAX - 1).unwrap_or(why.as_bytes())].concat()
            }
            Said::Forked(pid) => [&b"C"[..], &pid.to_le_bytes()].concat(),
            Said::NotForked(errno) => [&b"E"[..], &errno.to_le_bytes()].concat(),
        }
    }

    /// From the bytes of a message.
    pub fn parse(bytes: &[u8]) -> Option<Said> {
        let (kind, rest) = bytes.split_first()?;
        let number = || <[u8; 4]>::try_from(rest).ok().map(i32::from_le_bytes);
        match kind {
            b'R' => Some(Said::Ready(if rest == [0] { Privilege::Root } else { Privilege::UserNamespace })),
            b'X' => Some(Said::Failed(String::from_utf8_lossy(rest).into_owned())),
            b'C' => number().map(Said::Forked),
            b'E' => number().map(Said::NotForked),
            _ => None,
        }
    }
}

/// The length of an order.
const ORDER_BYTES: usize = 12;

/// The message that gives an order; three descriptors go with it.
pub fn order_bytes(order: Order) -> [u8; ORDER_BYTES] {
    let [low, high] = order.steps.bits().to_le_bytes();
    let [a, b, c, d, e, f, g, h] = order.tmp_bytes.to_le_bytes();
    [ORDER, order.slot, low, high, a, b, c, d, e, f, g, h]
}

/// The message that hands over the files of a slot.
pub fn slot_bytes(slot: u8) -> [u8; 2] {
    [SLOT, slot]
}

impl Start {
    /// As arguments of `runner zygote`.
    pub fn to_args(&self) -> Vec<String> {
        let mode = match self.mode {
            Mode::Guarded => "guarded",
            Mode::Bare => "bare",
            Mode::Lint => "lint",
        };
        let care = if self.lenient { "lenient" } else { "strict" };
        let ears = if self.listening { "listening" } else { "deaf" };
        let mut args = vec![mode.to_owned(), self.slots.to_string(), care.to_owned(), ears.to_owned()];
        args.extend(self.bandit.clone());
        args
    }

    /// From its arguments.
    pub fn from_args(args: &[String]) -> Option<Start> {
        let (head, bandit) = args.split_at_checked(4)?;
        let [mode, slots, care, ears] = head else { return None };
        Some(Start {
            mode: match mode.as_str() {
                "guarded" => Mode::Guarded,
                "bare" => Mode::Bare,
                "lint" => Mode::Lint,
                _ => return None,
            },
            slots: slots.parse().ok()?,
            lenient: care == "lenient",
            listening: ears == "listening",
            bandit: bandit.first().cloned(),
        })
    }
}

/// Runs to the end of the control socket.
pub fn run(start: Start) -> io::Result<()> {
    let control = fd::adopt(0);
    let mut joins: Vec<Vec<OwnedFd>> = Vec::new();
    for expected in 0..start.slots {
        let (mut bytes, mut fds) = ([0; 2], Vec::new());
        let got = socket::receive(control.as_fd(), &mut bytes, &mut fds)?;
        if bytes.get(..got) != Some(&slot_bytes(expected)[..]) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        joins.push(fds);
    }
    let ready = prepare(&start, joins);
    let said = match &ready {
        Ok((prepared, _)) => Said::Ready(prepared.privilege),
        Err(why) => Said::Failed(why.clone()),
    };
    socket::send(control.as_fd(), &said.to_bytes(), &[])?;
    match ready {
        Ok((prepared, engine)) => fork_on_order(&control, &start, &prepared, &engine),
        Err(why) => Err(io::Error::other(why)),
    }
}

fn prepare(start: &Start, joins: Vec<Vec<OwnedFd>>) -> Result<(Prepared, Engine), String> {
    let limits = &policy::limits().python;
    // From files: the interpreter and its modules, the policies. Nothing can be opened after the pivot.
    let mut engine = Engine::start(start.mode, policy::python()).map_err(|e| e.to_string())?;
    if start.mode == Mode::Lint {
        let folder = start.bandit.as_deref().ok_or("where bandit is was not said")?;
        engine.load_linter(folder).map_err(|e| e.to_string())?;
    }
    let threads = fs::read_dir("/proc/self/task").map_err(|e| format!("/proc/self/task: {e}"))?.count();
    if threads != 1 {
        return Err(format!("{threads} threads after the start of CPython, 1 expected"));
    }
    landlock::available().map_err(|e| format!("landlock: {e}"))?;
    let compile = |role, kill| Policy::of(role).map(|p| p.compile(kill)).map_err(|e| e.to_string());
    let kill = if start.listening { KillBy::Listener } else { KillBy::Kernel };
    let filter = compile(Role::Python, kill)?;
    let own_filter = compile(Role::Zygote, KillBy::Kernel)?;
    let bounds = Bounds { output_bytes_max: start.mode.answer_bytes_max(), depth_max: limits.json_depth_max };
    engine.rehearse(bounds).map_err(|e| e.to_string())?;
    engine.seal().map_err(|e| e.to_string())?;
    process::forget_own_path();
    process::forget_environment();
    process::trim_heap();
    process::drop_clean_pages().map_err(|e| format!("clean pages: {e}"))?;
    let (privilege, bounding) = confine(limits.uid, limits.gid)?;
    let prepared = Prepared {
        joins,
        rlimits: ids::rlimits(limits.tmp_bytes_max, start.mode.wall_seconds_max()),
        bounding,
        privilege,
        expected: Expected {
            uid: limits.uid,
            gid: limits.gid,
            no_groups: privilege == Privilege::Root,
            tmp_bytes: limits.tmp_bytes_max,
            tmp_inodes: limits.tmp_inodes_max.into(),
        },
        filter,
        listening: start.listening,
        bounds,
        request_bytes_max: crate::supervisor::request_bytes_max(),
    };
    if !start.listening {
        seccomp::load(&own_filter).map_err(|e| format!("zygote seccomp: {e}"))?;
    }
    Ok((prepared, engine))
}

/// Everything that the zygote gives up itself, in order.
fn confine(uid: u32, gid: u32) -> Result<(Privilege, Vec<u32>), String> {
    let privilege = namespaces::enter(uid, gid).map_err(|e| format!("namespaces: {e}"))?;
    mounts::enter_empty_root().map_err(|e| format!("empty root: {e}"))?;
    let bounding = ids::shrink_zygote().map_err(|e| format!("capabilities: {e}"))?;
    caps::set_no_new_privs().map_err(|e| format!("no new privileges: {e}"))?;
    caps::deny_write_execute().map_err(|e| format!("write-execute refusal (Linux 6.3): {e}"))?;
    landlock::confine_zygote().map_err(|e| format!("landlock: {e}"))?;
    Ok((privilege, bounding))
}

fn fork_on_order(control: &OwnedFd, start: &Start, prepared: &Prepared, engine: &Engine) -> io::Result<()> {
    let limits = &policy::limits().python;
    loop {
        let (mut bytes, mut fds) = ([0; ORDER_BYTES], Vec::with_capacity(3));
        if socket::receive(control.as_fd(), &mut bytes, &mut fds)? == 0 {
            return Ok(());
        }
        let [kind, slot, low, high, tmp @ ..] = bytes;
        let steps = Steps::from_bits(u16::from_le_bytes([low, high]));
        let order = Order { slot, steps, tmp_bytes: u64::from_le_bytes(tmp) };
        let complete = order.steps == Steps::ALL || start.lenient;
        // A size of 0 would mean to the kernel that there is no limit.
        let bounded = (1..=limits.tmp_bytes_max).contains(&order.tmp_bytes);
        let Ok(fds) = <[OwnedFd; 3]>::try_from(fds) else { return Err(io::ErrorKind::InvalidData.into()) };
        if kind != ORDER || !complete || !bounded {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let tmp = Tmp::new(order.tmp_bytes, limits.tmp_inodes_max, limits.uid, limits.gid);
        let namespaces = if order.steps.has(Step::Namespaces) { process::CHILD_NAMESPACES } else { 0 };
        match process::fork_for_parent(namespaces) {
            Ok(Forked::Child) => child::live(prepared, engine, (order, &tmp), fds),
            Ok(Forked::Parent { pid, pidfd }) => {
                socket::send(control.as_fd(), &Said::Forked(pid).to_bytes(), &[pidfd.as_fd()])?;
            }
            Err(e) => {
                let errno = e.raw_os_error().unwrap_or(0);
                socket::send(control.as_fd(), &Said::NotForked(errno).to_bytes(), &[])?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_back() {
        for said in [
            Said::Ready(Privilege::Root),
            Said::Ready(Privilege::UserNamespace),
            Said::Failed("landlock: no".into()),
            Said::Forked(4711),
            Said::NotForked(11),
        ] {
            assert_eq!(Said::parse(&said.to_bytes()), Some(said));
        }
        for bytes in [&b""[..], b"?", b"C12"] {
            assert_eq!(Said::parse(bytes), None);
        }
    }

    #[test]
    fn arguments_are_read_back() {
        let start = Start { mode: Mode::Bare, slots: 4, lenient: true, listening: false, bandit: None };
        assert_eq!(Start::from_args(&start.to_args()), Some(start.clone()));
        let start = Start { mode: Mode::Lint, bandit: Some("/opt/bandit".to_owned()), ..start };
        assert_eq!(Start::from_args(&start.to_args()), Some(start));
        assert_eq!(Start::from_args(&["guarded".into()]), None);
    }
}
