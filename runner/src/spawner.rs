//! The one way to another program: a small process, started first, that runs one fixed command as often as it is asked.
//!
//! Filters and Landlock domains are inherited, so a supervisor that has taken its own could start neither a zygote nor
//! the suite, and under its filter it has no `execve` at all. [`Spawner`] is its end of the socket to `runner spawner`,
//! which was started before and remembers what to start; the supervisor chooses when, and what is on standard input.
//! What it starts is a child of the *supervisor*, which waits for it; it ends with that socket.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::sys::process::{self, Ended, Forked};
use crate::sys::{fd, socket};
use crate::zygote::Said;

const GO: &[u8] = b"G";
/// The program itself, even when another file has taken its place: what is started is of the same build.
const SELF: &str = "/proc/self/exe";

/// A process that starts others. The thread that starts it must outlive them: to their kernel it is their parent.
#[derive(Debug)]
pub struct Spawner {
    /// `None` only while it is being dropped.
    control: Mutex<Option<OwnedFd>>,
    process: Child,
}

/// What was started. Dropping it ends it.
#[derive(Debug)]
pub struct Spawned {
    pid: i32,
    pidfd: OwnedFd,
}

impl Spawner {
    /// Starts the process that will run `program` with `args`.
    pub fn start(program: &Path, args: &[String]) -> io::Result<Spawner> {
        let (control, theirs) = socket::pair()?;
        let mut command = Command::new(program);
        command.arg("spawner").args(args).env_clear().stdin(Stdio::from(theirs)).stdout(Stdio::null());
        Ok(Spawner { control: Mutex::new(Some(control)), process: command.spawn()? })
    }

    /// Runs the command once, with `input` as its standard input.
    pub fn spawn(&self, input: BorrowedFd<'_>) -> io::Result<Spawned> {
        let control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let control = control.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        socket::send(control.as_fd(), GO, &[input])?;
        let (mut bytes, mut fds) = ([0; 8], Vec::new());
        let got = socket::receive(control.as_fd(), &mut bytes, &mut fds)?;
        match (bytes.get(..got).and_then(Said::parse), fds.pop()) {
            (Some(Said::Forked(pid)), Some(pidfd)) => Ok(Spawned { pid, pidfd }),
            (Some(Said::NotForked(errno)), _) => Err(io::Error::from_raw_os_error(errno)),
            _ => Err(io::Error::other("the spawner is gone")),
        }
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        // It ends with the socket. A signal may be out of reach: the suite's spawner is not in the supervisor's domain.
        *self.control.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        let _ = self.process.wait();
    }
}

impl Spawned {
    /// Its pid.
    pub fn pid(&self) -> u32 {
        u32::try_from(self.pid).unwrap_or(0)
    }

    /// Waits for its end.
    pub fn wait(self) -> io::Result<Ended> {
        process::reap(self.pidfd.as_fd()).map(|(ended, _)| ended)
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        // Either may find that it has ended, or was waited for, already.
        let _ = process::kill(self.pidfd.as_fd());
        let _ = process::reap(self.pidfd.as_fd());
    }
}

/// `runner spawner ARGS`: starts `runner ARGS` for each message, to the end of the control socket.
pub fn run(args: &[String]) -> io::Result<()> {
    let control = fd::adopt(0);
    loop {
        let (mut bytes, mut fds) = ([0; GO.len()], Vec::with_capacity(1));
        if socket::receive(control.as_fd(), &mut bytes, &mut fds)? == 0 {
            return Ok(());
        }
        let (GO, Some(input)) = (&bytes[..], fds.pop()) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        match process::fork_for_parent(0) {
            Ok(Forked::Child) => {
                let mut command = Command::new(SELF);
                // It returns only if the program cannot be started; whoever asked then finds a process that has ended.
                let _ = command.arg0("runner").args(args).env_clear().stdin(Stdio::from(input)).exec();
                process::exit_now(127);
            }
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
