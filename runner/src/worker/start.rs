//! The worker's first acts, INIT, and the watch over its parent (PROTOCOL.md §9).
//!
//! [`shed_the_caller`] runs before anything else; `turn` reads INIT into [`Settings`] and waits with [`Watch`].

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::EXIT_OK;
use super::fields::{Fields, Violation};
use super::message::{MESSAGE_MAX, MESSAGE_MIN, PROTOCOL};
use crate::sys::fd::{self, Watch as Poll};
use crate::sys::process;

/// Leaves the caller's folder, process group, descriptors and environment, whatever they were.
pub(super) fn shed_the_caller() {
    let _ = std::env::set_current_dir("/");
    let _ = process::lead_group();
    let _ = fd::close_from(3);
    process::forget_environment();
    process::forget_own_path();
    process::default_faults();
}

/// What INIT says.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) standard: bool,
    pub(super) loader: bool,
    pub(super) unconfined: bool,
    pub(super) step_limit: u64,
    pub(super) memory_limit: u64,
    pub(super) message_limit: usize,
    pub(super) watch: Watch,
}

const STANDARD: u32 = 1;
const LOADER: u32 = 2;
const UNCONFINED: u32 = 4;

impl Settings {
    /// From the fields of INIT after its releases.
    pub(super) fn parse(fields: &mut Fields<'_>) -> Result<Settings, Violation> {
        let protocol = fields.u32()?;
        if protocol != PROTOCOL {
            return Err(Violation(format!("protocol {protocol}, this worker speaks {PROTOCOL}")));
        }
        let flags = fields.u32()?;
        if flags & !(STANDARD | LOADER | UNCONFINED) != 0 {
            return Err(Violation(format!("unknown flags in {flags:#x}")));
        }
        let (step_limit, memory_limit) = (fields.u64()?, fields.u64()?);
        let message_limit = usize::try_from(fields.u32()?).unwrap_or(usize::MAX);
        if !(MESSAGE_MIN..=MESSAGE_MAX).contains(&message_limit) {
            return Err(Violation(format!(
                "a message_limit of {message_limit}; {MESSAGE_MIN} to {MESSAGE_MAX} are allowed"
            )));
        }
        let parent = fields.u32()?;
        fields.end()?;
        Ok(Settings {
            standard: flags & STANDARD != 0,
            loader: flags & LOADER != 0,
            unconfined: flags & UNCONFINED != 0,
            step_limit,
            memory_limit,
            message_limit,
            watch: Watch::over(parent)?,
        })
    }
}

/// What tells that the parent is gone.
#[derive(Debug)]
pub(super) struct Watch {
    /// None where the kernel has no such descriptors; the hang-up of standard input is left then.
    parent: Option<OwnedFd>,
}

impl Watch {
    fn over(parent: u32) -> Result<Watch, Violation> {
        let handle = match process::open_pid(parent) {
            Ok(handle) => Some(handle),
            Err(e) if e.raw_os_error() == Some(libc::ENOSYS) => None,
            Err(e) => return Err(Violation(format!("process {parent} cannot be watched: {e}"))),
        };
        // Asked after the descriptor was opened: while this is true, it means that process and no later one.
        if std::os::unix::process::parent_id() != parent {
            return Err(Violation(format!("process {parent} is not the parent")));
        }
        Ok(Watch { parent: handle })
    }

    fn poll_parent(&self) -> Poll {
        self.parent.as_ref().map_or_else(Poll::none, |fd| Poll::new(fd.as_fd(), false))
    }

    /// Waits until there is something to read. Ends the process if the parent ends first.
    pub(super) fn wait_for_input(&self) {
        let mut polls = [Poll::new(fd::standard(0), false), self.poll_parent()];
        let waited = fd::wait(&mut polls, None);
        let [_, parent] = polls;
        if waited.is_err() || parent.readable() {
            process::exit_now(EXIT_OK);
        }
    }

    /// From now on a thread of its own ends the process when the parent ends or standard input hangs up.
    ///
    /// Started between Landlock and seccomp: it has the first by inheritance and gets the second with all threads.
    pub(super) fn watch_from_a_thread(&'static self) -> io::Result<()> {
        const STACK_BYTES: usize = 64 << 10;
        let (running, started) = std::sync::mpsc::channel();
        let watch = move || {
            // A thread takes system calls to begin that the filter will not allow.
            let _ = running.send(());
            loop {
                let mut polls = [Poll::hang_up(fd::standard(0)), self.poll_parent()];
                let waited = fd::wait(&mut polls, None);
                let [input, parent] = polls;
                if waited.is_err() || input.readable() || parent.readable() {
                    process::exit_now(EXIT_OK);
                }
            }
        };
        std::thread::Builder::new().stack_size(STACK_BYTES).spawn(watch)?;
        started.recv().map_err(io::Error::other)
    }
}
