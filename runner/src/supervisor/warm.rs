//! The zygote as its supervisor has it: how it is started, spoken to and ended.
//!
//! Used by `Supervisor` alone. What the zygote does is in `zygote`; here is the other end of its control socket.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{Options, RunError, failing};
use crate::child::Order;
use crate::confine::cgroup::Slots;
use crate::confine::namespaces::Privilege;
use crate::spawner::{Spawned, Spawner};
use crate::sys::socket;
use crate::zygote::{self, Said, Start};

#[derive(Debug)]
pub(super) struct Zygote {
    control: OwnedFd,
    pub(super) process: Spawned,
    pub(super) privilege: Privilege,
    pub(super) restarts: u64,
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

/// The process that starts zygotes for `options`.
pub(super) fn spawner(options: &Options, count: u8) -> Result<Spawner, RunError> {
    let start = Start {
        mode: options.mode,
        slots: count,
        lenient: options.lenient,
        listening: options.listening,
        bandit: options.bandit.as_ref().map(|folder| folder.to_string_lossy().into_owned()),
    };
    let args = [vec!["zygote".to_owned()], start.to_args()].concat();
    Spawner::start(&options.program, &args).map_err(failing("starting the spawner"))
}

/// Starts a zygote and hands it the files of the slots.
pub(super) fn start_zygote(slots: Option<&Slots>, spawner: &Spawner, count: u8) -> Result<Zygote, RunError> {
    let (control, theirs) = socket::pair().map_err(failing("socket pair"))?;
    let process = spawner.spawn(theirs.as_fd()).map_err(failing("starting the zygote"))?;
    drop(theirs);
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
