//! The zygote as its supervisor has it: how it is started, spoken to and ended.
//!
//! Used by `Supervisor` alone. What the zygote does is in `zygote`; here is the other end of its control socket.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use super::{Options, RunError, failing};
use crate::child::Order;
use crate::confine::cgroup::Slots;
use crate::confine::namespaces::Privilege;
use crate::sys::socket;
use crate::zygote::{self, Said, Start};

/// A thread that starts zygotes and outlives them: a child of a zygote counts the thread that started the zygote as
/// its parent and dies with it.
#[derive(Debug)]
pub(super) struct Keeper {
    ask: Option<Sender<(Command, Sender<io::Result<Child>>)>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(super) fn start() -> Keeper {
        let (ask, asked) = mpsc::channel::<(Command, Sender<io::Result<Child>>)>();
        let thread = std::thread::spawn(move || {
            while let Ok((mut command, answer)) = asked.recv() {
                // Nobody waits any more only when the supervisor is being dropped.
                let _ = answer.send(command.spawn());
            }
        });
        Keeper { ask: Some(ask), thread: Some(thread) }
    }

    fn spawn(&self, command: Command) -> io::Result<Child> {
        let gone = || io::Error::other("the keeper is gone");
        let (answer, answered) = mpsc::channel();
        self.ask.as_ref().ok_or_else(gone)?.send((command, answer)).map_err(|_| gone())?;
        answered.recv().map_err(|_| gone())?
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.ask = None;
        if let Some(thread) = self.thread.take() {
            // It holds nothing and cannot have panicked.
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
pub(super) struct Zygote {
    control: OwnedFd,
    pub(super) process: Child,
    pub(super) privilege: Privilege,
    pub(super) restarts: u64,
}

impl Drop for Zygote {
    fn drop(&mut self) {
        // Either may find that it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(super) type ForkResult = Result<(i32, OwnedFd), RunError>;

impl Zygote {
    /// Sends an order. The outer error means that the zygote is gone.
    pub(super) fn order(&self, order: Order, fds: [BorrowedFd<'_>; 3]) -> io::Result<ForkResult> {
        socket::send(self.control.as_fd(), &zygote::order_bytes(order), &fds)?;
        let (said, fds) = self.hear()?;
        Ok(match (said, fds.into_iter().next()) {
            (Said::Forked(pid), Some(pidfd)) => Ok((pid, pidfd)),
            (Said::NotForked(errno), _) => {
                Err(RunError::Io { what: "fork", source: io::Error::from_raw_os_error(errno) })
            }
            _ => Err(RunError::Zygote("an unexpected message".to_owned())),
        })
    }

    fn hear(&self) -> io::Result<(Said, Vec<OwnedFd>)> {
        let (mut bytes, mut fds) = ([0; zygote::MESSAGE_MAX], Vec::new());
        let got = socket::receive(self.control.as_fd(), &mut bytes, &mut fds)?;
        let said = bytes.get(..got).and_then(Said::parse).ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok((said, fds))
    }
}

pub(super) fn start_zygote(
    options: &Options,
    slots: Option<&Slots>,
    keeper: &Keeper,
    count: u8,
) -> Result<Zygote, RunError> {
    let (control, theirs) = socket::pair().map_err(failing("socket pair"))?;
    let start = Start {
        mode: options.mode,
        slots: count,
        lenient: options.lenient,
        listening: options.listening,
        bandit: options.bandit.as_ref().map(|folder| folder.to_string_lossy().into_owned()),
    };
    let mut command = Command::new(&options.program);
    command.arg("zygote").args(start.to_args()).env_clear();
    command.stdin(Stdio::from(theirs)).stdout(Stdio::null()).stderr(Stdio::inherit());
    let process = keeper.spawn(command).map_err(failing("starting the zygote"))?;
    let mut zygote = Zygote { control, process, privilege: Privilege::Root, restarts: 0 };
    for slot in 0..count {
        let joins: Vec<BorrowedFd<'_>> =
            slots.and_then(|s| s.all().get(usize::from(slot))).map_or_else(Vec::new, |s| s.joins().collect());
        let sent = socket::send(zygote.control.as_fd(), &zygote::slot_bytes(slot), &joins);
        sent.map_err(|e| RunError::Zygote(format!("it ended at its start ({e})")))?;
    }
    match zygote.hear() {
        Ok((Said::Ready(privilege), _)) => {
            zygote.privilege = privilege;
            Ok(zygote)
        }
        Ok((Said::Failed(why), _)) => Err(RunError::Zygote(why)),
        Ok(_) => Err(RunError::Zygote("an unexpected message".to_owned())),
        Err(e) => Err(RunError::Zygote(format!("it ended at its start ({e})"))),
    }
}
