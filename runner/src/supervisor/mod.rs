//! The side that nobody can reach: starts the zygote, prepares the slots, watches each call and says how it ended.
//!
//! Used by every subcommand. A [`Supervisor`] may be shared by threads, each of which runs one call at a time; what
//! they share is the control socket (one order and its answer at a time) and the queue of free slots. Nothing here
//! trusts a child: sizes are capped while reading, the clock is ours, and a reply counts only after a clean exit.

mod call;
mod judge;
mod warm;
mod watch;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use call::{Call, Report, request_bytes_max};

use crate::cache::Cache;
use crate::child::Order;
use crate::confine::Step;
use crate::confine::cgroup::{self, CgroupError, Counters, Slots};
use crate::confine::namespaces::Privilege;
use crate::engine::Mode;
use crate::limits::Limits;
use crate::outcome::Outcome;
use crate::spawner::Spawner;
use crate::sys::fd;
use crate::sys::process;
use crate::wire::Request;
use warm::Zygote;
use watch::{Pipe, Stop, Watched};

/// How a supervisor is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program to start as the zygote: this one.
    pub program: PathBuf,
    /// What the zygote loads.
    pub mode: Mode,
    /// Calls at once, each with two slots, so that a throttled one rests.
    pub calls_max: usize,
    /// A cgroup to make slots in, other than the caller's own.
    pub cgroup: Option<String>,
    /// Whether calls with fewer than all steps may be asked for.
    pub lenient: bool,
    /// Whether denied system calls are named, as a dry run does. The zygote then has no filter of its own.
    pub listening: bool,
    /// Where bandit's environment keeps its packages, for [`Mode::Lint`].
    pub bandit: Option<PathBuf>,
}

impl Options {
    /// For one call at a time in `mode`, started from the running program.
    pub fn new(mode: Mode) -> io::Result<Options> {
        let program = std::env::current_exe()?;
        Ok(Options {
            program,
            mode,
            calls_max: 1,
            cgroup: None,
            lenient: false,
            listening: false,
            bandit: None,
        })
    }
}

/// Why there is no supervisor or no child.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No slots.
    #[error("cgroup: {0}")]
    Cgroup(#[from] CgroupError),
    /// The zygote did not become ready.
    #[error("zygote: {0}")]
    Zygote(String),
    /// A child said that a step failed.
    #[error("a child could not be confined: step `{}` failed with errno {errno}", step.name())]
    Refused {
        /// Which.
        step: Step,
        /// Why.
        errno: i32,
    },
    /// A child ended or spoke before it said that it is confined.
    #[error("a child did not say that it is confined")]
    Silent,
    /// A child said so, and the host sees otherwise.
    #[error("a child is not confined as the host sees it: {0}")]
    Inspection(String),
    /// A system call of the supervisor failed.
    #[error("{what}: {source}")]
    Io {
        /// Which part.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

fn failing(what: &'static str) -> impl Fn(io::Error) -> RunError {
    move |source| RunError::Io { what, source }
}

/// See the head of this file.
#[derive(Debug)]
pub struct Supervisor {
    options: Options,
    slots: Option<Slots>,
    free: Mutex<VecDeque<u8>>,
    freed: Condvar,
    zygote: Mutex<Zygote>,
    spawner: Spawner,
    cache: Mutex<Cache>,
    under_way: Mutex<UnderWay>,
}

/// The children that run now, so that all of them can be ended at once.
#[derive(Debug, Default)]
struct UnderWay {
    /// How often all were ended: what a call forks that began before the last time is ended as well.
    ended: u64,
    children: Vec<(u8, OwnedFd)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Supervisor {
    /// Prepares the slots and starts a zygote. The calling thread must outlive the supervisor: children end with it.
    pub fn start(options: Options) -> Result<Supervisor, RunError> {
        let count = u8::try_from(options.calls_max * 2).unwrap_or(u8::MAX);
        let slots = match Slots::prepare(count.into(), Limits::policy().cgroup, options.cgroup.as_deref()) {
            Ok(slots) => Some(slots),
            Err(_) if options.lenient => None,
            Err(e) => return Err(e.into()),
        };
        let spawner = warm::spawner(&options, count)?;
        let zygote = warm::start_zygote(slots.as_ref(), &spawner, count)?;
        Ok(Supervisor {
            options,
            slots,
            free: Mutex::new((0..count).collect()),
            freed: Condvar::new(),
            zygote: Mutex::new(zygote),
            spawner,
            cache: Mutex::new(Cache::new()),
            under_way: Mutex::default(),
        })
    }

    /// Whether a user namespace stands between children and host.
    pub fn privilege(&self) -> Privilege {
        lock(&self.zygote).privilege
    }

    /// What the zygote has loaded.
    pub fn mode(&self) -> Mode {
        self.options.mode
    }

    /// The program that it starts.
    pub fn program(&self) -> &Path {
        &self.options.program
    }

    /// The pid of the zygote.
    pub fn zygote_pid(&self) -> u32 {
        lock(&self.zygote).process.pid()
    }

    /// How often a dead zygote was replaced.
    pub fn restarts(&self) -> u64 {
        lock(&self.zygote).restarts
    }

    /// Whether there are cgroups; without them only a lenient supervisor starts.
    pub fn has_cgroups(&self) -> bool {
        self.slots.is_some()
    }

    /// Ends every call that is under way, also one that is between its two children.
    pub fn end_calls(&self) {
        let mut under_way = lock(&self.under_way);
        under_way.ended += 1;
        for (_, child) in &under_way.children {
            // It may have ended by itself.
            let _ = process::kill(child.as_fd());
        }
    }

    /// Adds a child to those that `end_calls` ends, unless its call began before the last time.
    fn enlist(&self, slot: u8, call: u64, pidfd: &OwnedFd) -> Result<(), RunError> {
        let mut under_way = lock(&self.under_way);
        if under_way.ended != call {
            // It may have ended by itself.
            let _ = process::kill(pidfd.as_fd());
        }
        let copy = pidfd.try_clone().map_err(failing("copying a pidfd"))?;
        under_way.children.push((slot, copy));
        Ok(())
    }

    /// The prepared slots.
    pub fn slots(&self) -> Option<&Slots> {
        self.slots.as_ref()
    }

    /// Runs one call to its end.
    pub fn call(&self, call: &Call<'_>) -> Result<Report, RunError> {
        if let Some(outcome) = call::refuse(call) {
            return Ok(Report::only(outcome));
        }
        let digest = Cache::digest(call.source);
        let began = lock(&self.under_way).ended;
        let mut left = call.limits.wall;
        let cached = lock(&self.cache).get(&digest);
        let code = match cached {
            Some(code) => code,
            None => {
                let report = self.run(Request::Compile { source: call.source }, call, (began, left))?;
                match report {
                    (report, Some(code)) if report.outcome == Outcome::Ok(String::new()) => {
                        left = left.saturating_sub(report.wall);
                        lock(&self.cache).put(digest, code)
                    }
                    (report, _) => return Ok(report),
                }
            }
        };
        let request = Request::Run { code: &code, inputs: call.inputs };
        Ok(self.run(request, call, (began, left))?.0)
    }

    /// Has bandit read a source. What it says is the outcome's JSON; anything but `Ok` is no answer.
    pub fn lint(&self, call: &Call<'_>) -> Result<Report, RunError> {
        if let Some(outcome) = call::refuse(call) {
            return Ok(Report::only(outcome));
        }
        let began = lock(&self.under_way).ended;
        Ok(self.run(Request::Lint { source: call.source }, call, (began, call.limits.wall))?.0)
    }

    /// One child, from slot to slot. The second value is the code that it compiled.
    fn run(
        &self,
        request: Request<'_>,
        call: &Call<'_>,
        (began, wall): (u64, Duration),
    ) -> Result<(Report, Option<Vec<u8>>), RunError> {
        let slot = self.take_slot();
        let result = self.run_in(slot, request, call, (began, wall));
        let recycled = self.slot(slot).map_or(Ok(()), cgroup::Slot::recycle);
        if recycled.is_ok() {
            lock(&self.free).push_back(slot);
            self.freed.notify_one();
        }
        recycled.map_err(failing("recycling a cgroup slot"))?;
        result
    }

    fn slot(&self, slot: u8) -> Option<&cgroup::Slot> {
        self.slots.as_ref().and_then(|s| s.all().get(usize::from(slot)))
    }

    fn take_slot(&self) -> u8 {
        let mut free = lock(&self.free);
        loop {
            if let Some(slot) = free.pop_front() {
                return slot;
            }
            free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn run_in(
        &self,
        slot: u8,
        request: Request<'_>,
        call: &Call<'_>,
        (began, wall): (u64, Duration),
    ) -> Result<(Report, Option<Vec<u8>>), RunError> {
        let before = self.slot(slot).map_or(Ok(Counters::default()), cgroup::Slot::counters);
        let before = before.map_err(failing("cgroup counters"))?;
        let limited = self.slot(slot).map_or(Ok(()), |s| s.limit(call.limits.cgroup));
        limited.map_err(failing("the limits of a cgroup slot"))?;
        let order = Order { slot, steps: call.steps, tmp_bytes: call.limits.tmp_bytes };
        let mut watched = self.fork(order, call.limits.output_bytes)?;
        let started = watched.started;
        let enlisted = self.enlist(slot, began, &watched.pidfd);
        let stop = watched.watch(request, call, started + wall);
        if !matches!(stop, Ok(Stop::Ended)) {
            // It may have ended in the meantime.
            let _ = process::kill(watched.pidfd.as_fd());
        }
        let (ended, cpu) = process::reap(watched.pidfd.as_fd()).map_err(failing("waiting for a child"))?;
        let wall = started.elapsed();
        lock(&self.under_way).children.retain(|(taken, _)| *taken != slot);
        enlisted?;
        let after = self.slot(slot).map_or(Ok(Counters::default()), cgroup::Slot::counters);
        let after = after.map_err(failing("cgroup counters"))?;
        let stop = stop?;
        let compiling = matches!(request, Request::Compile { .. });
        let (outcome, code) = judge::judge(stop, ended, compiling, [before, after], &watched)?;
        let report = Report {
            outcome,
            printed: watched.printed.bytes,
            errors: watched.errors.bytes,
            wall,
            cpu,
            memory_peak_bytes: after.memory_peak_bytes,
        };
        Ok((report, code))
    }

    /// Has the zygote fork a child that may answer in so many bytes. A dead zygote is replaced, once.
    fn fork(&self, order: Order, answer_bytes_max: usize) -> Result<Watched, RunError> {
        let (ours, frames) = UnixStream::pair().map_err(failing("socket pair"))?;
        let (printed, print) = std::io::pipe().map_err(failing("pipe"))?;
        let (errors, error) = std::io::pipe().map_err(failing("pipe"))?;
        let theirs = [frames.as_fd(), print.as_fd(), error.as_fd()];
        let mut zygote = lock(&self.zygote);
        let mut started = Instant::now();
        let forked = match zygote.order(order, theirs) {
            Ok(forked) => forked,
            Err(_) => {
                let count = u8::try_from(self.options.calls_max * 2).unwrap_or(u8::MAX);
                let restarts = zygote.restarts + 1;
                *zygote = warm::start_zygote(self.slots.as_ref(), &self.spawner, count)?;
                zygote.restarts = restarts;
                started = Instant::now();
                zygote.order(order, theirs).map_err(failing("order to the zygote"))?
            }
        };
        drop(zygote);
        let (pid, pidfd) = forked?;
        ours.set_nonblocking(true).map_err(failing("nonblocking"))?;
        let (printed, errors) = (OwnedFd::from(printed), OwnedFd::from(errors));
        for end in [&printed, &errors] {
            fd::set_nonblocking(end.as_fd()).map_err(failing("nonblocking"))?;
        }
        Ok(Watched {
            started,
            pid,
            pidfd,
            frames: ours,
            received: Vec::new(),
            hello: None,
            printed: Pipe { end: Some(printed), bytes: Vec::new() },
            errors: Pipe { end: Some(errors), bytes: Vec::new() },
            listener: None,
            listening: self.options.listening && order.steps.has(Step::Seccomp),
            answer_bytes_max,
        })
    }
}
