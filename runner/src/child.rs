//! The life of a child, as a numbered list: from the fork to the end of one call.
//!
//! Entered by `zygote` right after the fork and never left: it ends in `exit_now`. Everything that allocates was made
//! before the fork ([`Prepared`]), except the Landlock ruleset. Nothing user-made is read before step 14 holds.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use crate::confine::check::{self, Expected};
use crate::confine::mounts::Tmp;
use crate::confine::namespaces::Privilege;
use crate::confine::{ConfineError, Step, Steps, landlock};
use crate::engine::{Bounds, Engine};
use crate::sys::caps::{self, Rlimit};
use crate::sys::seccomp::{self, Instruction};
use crate::sys::{fd, process};
use crate::wire::{self, HEAD, Hello, Request};

/// The child's numbers: frames, print, errors.
const FRAMES: i32 = 0;
const PRINT: i32 = 1;
const ERRORS: i32 = 2;

/// The exit status of a child that refused to go on.
pub const EXIT_REFUSED: u8 = 70;

/// What a child finds ready when it is forked.
#[derive(Debug)]
pub struct Prepared {
    /// For each slot, the files through which a process joins its cgroups.
    pub joins: Vec<Vec<OwnedFd>>,
    /// Limits behind the cgroup.
    pub rlimits: Vec<Rlimit>,
    /// What is left in the bounding set.
    pub bounding: Vec<u32>,
    /// Whether a user namespace stands in front of the host.
    pub privilege: Privilege,
    /// The identity, and what the self-check wants to find.
    pub expected: Expected,
    /// The filter.
    pub filter: Vec<Instruction>,
    /// Whether it asks the supervisor's listener where it would kill.
    pub listening: bool,
    /// Bounds of the answer.
    pub bounds: Bounds,
    /// The largest request.
    pub request_bytes_max: usize,
}

/// What the supervisor asked the zygote for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// The slot whose cgroups to join.
    pub slot: u8,
    /// The steps to take: all of them, but in measurements.
    pub steps: Steps,
    /// The size of its /tmp.
    pub tmp_bytes: u64,
}

/// Lives, with the /tmp that its order asks for. `fds` are frames, print, errors, in this order.
pub fn live(prepared: &Prepared, engine: &Engine, (order, tmp): (Order, &Tmp), fds: [OwnedFd; 3]) -> ! {
    // 1 to 14, as numbered in `Step`; the namespaces came with the fork.
    let (hello, status) = match confine(prepared, (order, tmp), fds) {
        Ok(listener) => (Hello::Confined { steps: order.steps, listener }, 0),
        Err(e) => {
            (Hello::Refused { step: e.step, errno: e.source.raw_os_error().unwrap_or(0) }, EXIT_REFUSED)
        }
    };
    // 15. Say so, before a byte of the request is read.
    if write_all(&hello.to_frame()).is_err() || status != 0 {
        process::exit_now(EXIT_REFUSED);
    }
    // 16. Read the request.
    let Ok((kind, payload)) = read_request(prepared.request_bytes_max) else {
        process::exit_now(EXIT_REFUSED)
    };
    let Ok(request) = Request::parse(kind, &payload) else { process::exit_now(EXIT_REFUSED) };
    // 17. Run it and answer.
    engine.after_fork();
    let reply = engine.serve(request, prepared.bounds);
    let written = write_all(&reply.to_frame());
    // 18. End: no exit handlers, no destructors, no waiting for threads.
    process::exit_now(u8::from(written.is_err()))
}

/// Steps 2 to 14. Returns the number of the listener, if one was asked for.
fn confine(
    prepared: &Prepared,
    (order, tmp): (Order, &Tmp),
    fds: [OwnedFd; 3],
) -> Result<Option<i32>, ConfineError> {
    let steps = order.steps;
    let take = |step: Step, run: &dyn Fn() -> io::Result<()>| {
        if steps.has(step) { run().map_err(ConfineError::at(step)) } else { Ok(()) }
    };
    take(Step::Cgroup, &|| join(prepared, order.slot))?;
    take(Step::Tmp, &|| tmp.mount())?;
    // Taken in every mode: without its numbers a child could not speak.
    descriptors(fds).map_err(ConfineError::at(Step::Descriptors))?;
    take(Step::Rlimits, &|| prepared.rlimits.iter().try_for_each(|l| caps::set_rlimit(*l)))?;
    take(Step::Bounding, &|| prepared.bounding.iter().try_for_each(|c| caps::bounding_drop(*c)))?;
    take(Step::Groups, &|| leave_groups(prepared.privilege))?;
    take(Step::Gid, &|| caps::set_gids(prepared.expected.gid))?;
    take(Step::Uid, &|| caps::set_uids(prepared.expected.uid))?;
    take(Step::LinuxCaps, &|| caps::set_caps(0))?;
    take(Step::NoNewPrivs, &|| no_new_privs(prepared.privilege))?;
    take(Step::Landlock, &|| landlock::confine_child(Tmp::PATH))?;
    if steps.has(Step::SelfCheck) {
        let expected = Expected { tmp_bytes: order.tmp_bytes, ..prepared.expected };
        check::look(&expected).map_err(|(step, source)| ConfineError { step, source })?;
    }
    if !steps.has(Step::Seccomp) {
        return Ok(None);
    }
    filter(prepared).map_err(ConfineError::at(Step::Seccomp))
}

fn join(prepared: &Prepared, slot: u8) -> io::Result<()> {
    let joins = prepared.joins.get(usize::from(slot)).ok_or(io::ErrorKind::InvalidInput)?;
    if joins.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    joins.iter().try_for_each(|file| fd::write(file.as_fd(), b"0").map(|_| ()))
}

fn descriptors(fds: [OwnedFd; 3]) -> io::Result<()> {
    for (fd, number) in fds.iter().zip([FRAMES, PRINT, ERRORS]) {
        fd::place(fd.as_fd(), number)?;
    }
    // The numbers above are closed all at once; closing them singly as well could hit their successors.
    std::mem::forget(fds);
    fd::close_from(3)
}

fn leave_groups(privilege: Privilege) -> io::Result<()> {
    match privilege {
        Privilege::Root => caps::clear_groups(),
        // A user namespace with a single group forbids setgroups; the groups mean nothing inside.
        Privilege::UserNamespace => Ok(()),
    }
}

fn no_new_privs(privilege: Privilege) -> io::Result<()> {
    caps::set_no_new_privs()?;
    // Without root the supervisor may look at its child only while that is dumpable; to the host the child then has the
    // uid of whoever started it, and nobody inside can trace anything.
    if privilege == Privilege::Root {
        caps::set_undumpable()?;
    }
    caps::die_with_parent()?;
    // A supervisor that died before the line above sends no signal: its end of the frames is closed.
    let mut watch = [fd::Watch::new(fd::standard(FRAMES), false)];
    fd::wait(&mut watch, Some(Duration::ZERO))?;
    if watch[0].hung_up() { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
}

fn filter(prepared: &Prepared) -> io::Result<Option<i32>> {
    let listener = if prepared.listening {
        Some(seccomp::load_with_listener(&prepared.filter)?)
    } else {
        seccomp::load(&prepared.filter)?;
        None
    };
    // The zygote's filter hides clone3 as well; what only this one does is refuse a new listener or domain, and that
    // would end the child. `clone3_is_hidden` shows that filters answer at all.
    if seccomp::clone3_is_hidden() {
        Ok(listener)
    } else {
        Err(io::Error::other("the filter does not answer"))
    }
}

fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let put = fd::write(fd::standard(FRAMES), bytes)?;
        bytes = bytes.get(put..).unwrap_or_default();
    }
    Ok(())
}

fn read_exact(buffer: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|r| !r.is_empty()) {
        match fd::read(fd::standard(FRAMES), rest)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            got => filled += got,
        }
    }
    Ok(())
}

/// The kind and payload of the request.
fn read_request(bytes_max: usize) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; HEAD];
    read_exact(&mut head)?;
    let length = wire::announced(head);
    if length > bytes_max {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut payload = vec![0; length];
    read_exact(&mut payload)?;
    Ok((head[0], payload))
}
