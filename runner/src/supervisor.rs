//! The side that nobody can reach: starts the zygote, prepares the slots, watches each call and says how it ended.
//!
//! Used by every subcommand. A [`Supervisor`] may be shared by threads, each of which runs one call at a time; what
//! they share is the control socket (one order and its answer at a time) and the queue of free slots. Nothing here
//! trusts a child: sizes are capped while reading, the clock is ours, and a reply counts only after a clean exit.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::cache::Cache;
use crate::child::Order;
use crate::confine::cgroup::{self, CgroupError, Counters, Slots};
use crate::confine::namespaces::Privilege;
use crate::confine::seccomp as filters;
use crate::confine::{Step, Steps};
use crate::engine::Mode;
use crate::inspect;
use crate::json;
use crate::outcome::{Crash, Outcome, Stream};
use crate::sys::fd::{self, Watch};
use crate::sys::process::{self, Ended};
use crate::sys::{seccomp, socket};
use crate::wire::{self, HEAD, Hello, Reply, Request};
use crate::zygote::{self, Said, Start};

/// The largest request that a child reads: compiled code is at most this many times its source.
pub fn request_bytes_max() -> usize {
    const CODE_PER_SOURCE: u64 = 64;
    let limits = policy::limits();
    let bytes = limits.work.python_bytes_max * CODE_PER_SOURCE + limits.python.inputs_bytes_max + 64;
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

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
}

impl Options {
    /// For one call at a time in `mode`, started from the running program.
    pub fn new(mode: Mode) -> io::Result<Options> {
        let program = std::env::current_exe()?;
        Ok(Options { program, mode, calls_max: 1, cgroup: None, lenient: false, listening: false })
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

fn io(what: &'static str) -> impl Fn(io::Error) -> RunError {
    move |source| RunError::Io { what, source }
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The function's file.
    pub source: &'a [u8],
    /// One JSON value.
    pub inputs: &'a [u8],
    /// The time it may take, compiling included.
    pub wall: Duration,
    /// Whether the host looks at the child before it gets its request.
    pub inspect: bool,
    /// The steps to take: all, but in measurements and with `--unproved`.
    pub steps: Steps,
}

impl<'a> Call<'a> {
    /// With every step and the limits of the policy.
    pub fn new(source: &'a [u8], inputs: &'a [u8]) -> Call<'a> {
        let wall = Duration::from_secs(policy::limits().python.wall_seconds_max.into());
        Call { source, inputs, wall, inspect: false, steps: Steps::ALL }
    }
}

/// What is known of a call after its end.
#[derive(Debug, Clone)]
pub struct Report {
    /// How it ended.
    pub outcome: Outcome,
    /// What it printed.
    pub printed: Vec<u8>,
    /// What it wrote as errors.
    pub errors: Vec<u8>,
    /// From the fork of its child to its end.
    pub wall: Duration,
    /// The CPU time of its child, confinement included.
    pub cpu: Duration,
    /// The most memory it held, where the kernel tells.
    pub memory_peak_bytes: u64,
}

impl Report {
    fn only(outcome: Outcome) -> Report {
        Report {
            outcome,
            printed: Vec::new(),
            errors: Vec::new(),
            wall: Duration::ZERO,
            cpu: Duration::ZERO,
            memory_peak_bytes: 0,
        }
    }
}

/// See the head of this file.
#[derive(Debug)]
pub struct Supervisor {
    options: Options,
    slots: Option<Slots>,
    free: Mutex<VecDeque<u8>>,
    freed: Condvar,
    zygote: Mutex<Zygote>,
    keeper: Keeper,
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

#[derive(Debug)]
struct Zygote {
    control: OwnedFd,
    process: Child,
    privilege: Privilege,
    restarts: u64,
}

/// A thread that starts zygotes and outlives them: a child of a zygote counts the thread that started the zygote as
/// its parent and dies with it.
#[derive(Debug)]
struct Keeper {
    ask: Option<Sender<(Command, Sender<io::Result<Child>>)>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    fn start() -> Keeper {
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

impl Drop for Zygote {
    fn drop(&mut self) {
        // Either may find that it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Supervisor {
    /// Prepares the slots and starts a zygote.
    pub fn start(options: Options) -> Result<Supervisor, RunError> {
        let limits = &policy::limits().python;
        let count = u8::try_from(options.calls_max * 2).unwrap_or(u8::MAX);
        let cgroup = cgroup::Limits {
            memory_bytes: limits.memory_bytes_max,
            processes: limits.processes_max,
            cpus: limits.cpus_max,
        };
        let slots = match Slots::prepare(count.into(), cgroup, options.cgroup.as_deref()) {
            Ok(slots) => Some(slots),
            Err(_) if options.lenient => None,
            Err(e) => return Err(e.into()),
        };
        let keeper = Keeper::start();
        let zygote = start_zygote(&options, slots.as_ref(), &keeper, count)?;
        Ok(Supervisor {
            options,
            slots,
            free: Mutex::new((0..count).collect()),
            freed: Condvar::new(),
            zygote: Mutex::new(zygote),
            keeper,
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

    /// The pid of the zygote.
    pub fn zygote_pid(&self) -> u32 {
        lock(&self.zygote).process.id()
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
        let copy = pidfd.try_clone().map_err(io("copying a pidfd"))?;
        under_way.children.push((slot, copy));
        Ok(())
    }

    /// The prepared slots.
    pub fn slots(&self) -> Option<&Slots> {
        self.slots.as_ref()
    }

    /// Runs one call to its end.
    pub fn call(&self, call: &Call<'_>) -> Result<Report, RunError> {
        if let Some(outcome) = refuse(call) {
            return Ok(Report::only(outcome));
        }
        let digest = Cache::digest(call.source);
        let began = lock(&self.under_way).ended;
        let mut left = call.wall;
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
        recycled.map_err(io("recycling a cgroup slot"))?;
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
        let before = before.map_err(io("cgroup counters"))?;
        let order = Order { slot, steps: call.steps };
        let mut watched = self.fork(order)?;
        let started = watched.started;
        let enlisted = self.enlist(slot, began, &watched.pidfd);
        let stop = watched.watch(request, call, started + wall);
        if !matches!(stop, Ok(Stop::Ended)) {
            // It may have ended in the meantime.
            let _ = process::kill(watched.pidfd.as_fd());
        }
        let (ended, cpu) = process::reap(watched.pidfd.as_fd()).map_err(io("waiting for a child"))?;
        let wall = started.elapsed();
        lock(&self.under_way).children.retain(|(taken, _)| *taken != slot);
        enlisted?;
        let after = self.slot(slot).map_or(Ok(Counters::default()), cgroup::Slot::counters);
        let after = after.map_err(io("cgroup counters"))?;
        let stop = stop?;
        let compiling = matches!(request, Request::Compile { .. });
        let (outcome, code) = judge(stop, ended, compiling, [before, after], &watched)?;
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

    /// Has the zygote fork a child. A dead zygote is replaced, once.
    fn fork(&self, order: Order) -> Result<Watched, RunError> {
        let (ours, frames) = UnixStream::pair().map_err(io("socket pair"))?;
        let (printed, print) = std::io::pipe().map_err(io("pipe"))?;
        let (errors, error) = std::io::pipe().map_err(io("pipe"))?;
        let theirs = [frames.as_fd(), print.as_fd(), error.as_fd()];
        let mut zygote = lock(&self.zygote);
        let mut started = Instant::now();
        let forked = match zygote.order(order, theirs) {
            Ok(forked) => forked,
            Err(_) => {
                let count = u8::try_from(self.options.calls_max * 2).unwrap_or(u8::MAX);
                let restarts = zygote.restarts + 1;
                *zygote = start_zygote(&self.options, self.slots.as_ref(), &self.keeper, count)?;
                zygote.restarts = restarts;
                started = Instant::now();
                zygote.order(order, theirs).map_err(io("order to the zygote"))?
            }
        };
        drop(zygote);
        let (pid, pidfd) = forked?;
        ours.set_nonblocking(true).map_err(io("nonblocking"))?;
        let (printed, errors) = (OwnedFd::from(printed), OwnedFd::from(errors));
        for end in [&printed, &errors] {
            fd::set_nonblocking(end.as_fd()).map_err(io("nonblocking"))?;
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
        })
    }
}

type ForkResult = Result<(i32, OwnedFd), RunError>;

impl Zygote {
    /// Sends an order. The outer error means that the zygote is gone.
    fn order(&self, order: Order, fds: [BorrowedFd<'_>; 3]) -> io::Result<ForkResult> {
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

fn start_zygote(
    options: &Options,
    slots: Option<&Slots>,
    keeper: &Keeper,
    count: u8,
) -> Result<Zygote, RunError> {
    let (control, theirs) = socket::pair().map_err(io("socket pair"))?;
    let start =
        Start { mode: options.mode, slots: count, lenient: options.lenient, listening: options.listening };
    let mut command = Command::new(&options.program);
    command.arg("zygote").args(start.to_args()).env_clear();
    command.stdin(Stdio::from(theirs)).stdout(Stdio::null()).stderr(Stdio::inherit());
    let process = keeper.spawn(command).map_err(io("starting the zygote"))?;
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

/// What is wrong with a call before anything is forked for it.
fn refuse(call: &Call<'_>) -> Option<Outcome> {
    let limits = policy::limits();
    let bytes = u64::try_from(call.source.len()).unwrap_or(u64::MAX);
    if bytes > limits.work.python_bytes_max {
        let most = limits.work.python_bytes_max;
        return Some(Outcome::rejected(
            "SourceError",
            format!("the file has {bytes} bytes; {most} are allowed"),
        ));
    }
    if let Err(e) = std::str::from_utf8(call.source) {
        let place = e.valid_up_to();
        return Some(Outcome::rejected("SourceError", format!("the file is not UTF-8 at byte {place}")));
    }
    if let Some(place) = call.source.iter().position(|b| *b == 0) {
        return Some(Outcome::rejected("SourceError", format!("the file has a NUL at byte {place}")));
    }
    let bytes = u64::try_from(call.inputs.len()).unwrap_or(u64::MAX);
    if bytes > limits.python.inputs_bytes_max {
        let most = limits.python.inputs_bytes_max;
        return Some(Outcome::rejected(
            "InputsError",
            format!("the inputs have {bytes} bytes; {most} are allowed"),
        ));
    }
    match json::check(call.inputs, limits.python.json_depth_max) {
        Ok(_) => None,
        Err(e) => {
            Some(Outcome::rejected("InputsError", format!("the inputs are not acceptable JSON at {e}")))
        }
    }
}

/// Why watching ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stop {
    /// The child did.
    Ended,
    /// Its time did.
    Late,
    /// It wrote too much.
    Flood(Stream),
    /// It tried this call.
    Denied(i32),
}

/// A child that runs.
#[derive(Debug)]
struct Watched {
    /// When its order was sent.
    started: Instant,
    pid: i32,
    pidfd: OwnedFd,
    frames: UnixStream,
    received: Vec<u8>,
    hello: Option<Hello>,
    printed: Pipe,
    errors: Pipe,
    listener: Option<OwnedFd>,
    listening: bool,
}

#[derive(Debug)]
struct Pipe {
    /// `None` after its end.
    end: Option<OwnedFd>,
    bytes: Vec<u8>,
}

impl Pipe {
    /// Reads what is there, but no more than `bytes_max` in all. False means that there was more.
    fn drain(&mut self, bytes_max: usize) -> io::Result<bool> {
        let mut buffer = [0; 16_384];
        while let Some(end) = &self.end {
            match fd::read(end.as_fd(), &mut buffer) {
                Ok(0) => self.end = None,
                Ok(got) => {
                    self.bytes.extend_from_slice(buffer.get(..got).unwrap_or_default());
                    if self.bytes.len() > bytes_max {
                        self.bytes.truncate(bytes_max);
                        return Ok(false);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }
}

impl Watched {
    /// Feeds and reads the child until it ends, floods, is late, or tries what it may not.
    fn watch(&mut self, request: Request<'_>, call: &Call<'_>, deadline: Instant) -> Result<Stop, RunError> {
        let request = request.to_frame();
        // A listener or a look from outside comes before the request; otherwise it waits in the socket.
        let hold = self.listening || call.inspect;
        let mut unsent: &[u8] = &request;
        loop {
            let may_send = !hold || self.hello.is_some();
            if may_send && !unsent.is_empty() {
                unsent = self.send(unsent)?;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let none = Watch::none;
            let pipe = |p: &Pipe| p.end.as_ref().map_or_else(none, |e| Watch::new(e.as_fd(), false));
            let mut watches = [
                Watch::new(self.frames.as_fd(), may_send && !unsent.is_empty()),
                pipe(&self.printed),
                pipe(&self.errors),
                Watch::new(self.pidfd.as_fd(), false),
                self.listener.as_ref().map_or_else(none, |l| Watch::new(l.as_fd(), false)),
            ];
            if left.is_zero() || !fd::wait(&mut watches, Some(left)).map_err(io("waiting"))? {
                return Ok(Stop::Late);
            }
            let [_, _, _, ended, denied] = watches;
            if let Some(stop) = self.read(call)? {
                return Ok(stop);
            }
            if let (true, Some(listener)) = (denied.readable(), &self.listener)
                && let Ok(number) = seccomp::receive(listener.as_fd())
            {
                return Ok(Stop::Denied(number));
            }
            if ended.readable() {
                // What it wrote last may have come after the reading above.
                return Ok(self.read(call)?.unwrap_or(Stop::Ended));
            }
        }
    }

    fn send<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], RunError> {
        match fd::write(self.frames.as_fd(), bytes) {
            Ok(put) => Ok(bytes.get(put..).unwrap_or_default()),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(bytes),
            // It has closed its end; how it ends says the rest.
            Err(e) if matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
                Ok(&[])
            }
            Err(e) => Err(RunError::Io { what: "sending a request", source: e }),
        }
    }

    /// Reads all three streams, within their caps.
    fn read(&mut self, call: &Call<'_>) -> Result<Option<Stop>, RunError> {
        let limits = &policy::limits().python;
        let print_max = usize::try_from(limits.print_bytes_max).unwrap_or(usize::MAX);
        let whole = self.printed.drain(print_max).map_err(io("reading print"))?;
        let rest = print_max.saturating_sub(self.printed.bytes.len());
        if !whole || !self.errors.drain(rest).map_err(io("reading errors"))? {
            return Ok(Some(Stop::Flood(Stream::Print)));
        }
        let frames_max =
            usize::try_from(limits.output_bytes_max).unwrap_or(usize::MAX).max(request_bytes_max());
        let mut buffer = [0; 16_384];
        loop {
            match fd::read(self.frames.as_fd(), &mut buffer) {
                Ok(0) => break,
                Ok(got) => self.received.extend_from_slice(buffer.get(..got).unwrap_or_default()),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => break,
                Err(e) => return Err(RunError::Io { what: "reading frames", source: e }),
            }
            self.greet(call)?;
            let announced = match self.received.first_chunk::<HEAD>() {
                Some(head) if self.hello.is_some() => wire::announced(*head),
                _ => 0,
            };
            if self.received.len().max(announced) > frames_max {
                return Ok(Some(Stop::Flood(Stream::Frames)));
            }
        }
        Ok(None)
    }

    /// Takes the first frame off, once it is there, and looks at the child if asked to.
    fn greet(&mut self, call: &Call<'_>) -> Result<(), RunError> {
        if self.hello.is_some() {
            return Ok(());
        }
        let Some((kind, payload, rest)) = wire::split(&self.received) else { return Ok(()) };
        let hello = Hello::parse(kind, payload).map_err(|_| RunError::Silent)?;
        self.received = rest.to_vec();
        if let Hello::Refused { step, errno } = hello {
            return Err(RunError::Refused { step, errno });
        }
        if let Hello::Confined { steps, listener } = hello {
            if steps != call.steps || listener.is_some() != self.listening {
                return Err(RunError::Silent);
            }
            if call.inspect {
                inspect::look(self.pid, self.listening).map_err(RunError::Inspection)?;
            }
            if let Some(number) = listener {
                let taken =
                    seccomp::take_fd(self.pidfd.as_fd(), number).map_err(io("taking the listener"))?;
                self.listener = Some(taken);
            }
        }
        self.hello = Some(hello);
        Ok(())
    }
}

/// How a call ended: first what the host saw, last what the child says.
fn judge(
    stop: Stop,
    ended: Ended,
    compiling: bool,
    [before, after]: [Counters; 2],
    watched: &Watched,
) -> Result<(Outcome, Option<Vec<u8>>), RunError> {
    let out_of_memory = after.memory_kills > before.memory_kills;
    let outcome = match (stop, ended) {
        (Stop::Flood(stream), _) => Outcome::OutputLimit(stream),
        (Stop::Denied(number), _) => Outcome::Denied { call: Some(call_name(number)) },
        (_, Ended::Killed(libc::SIGSYS)) => Outcome::Denied { call: None },
        (_, Ended::Killed(_)) if out_of_memory => Outcome::Memory,
        (Stop::Late, _) => Outcome::Timeout,
        _ if watched.hello.is_none() => return Err(RunError::Silent),
        (Stop::Ended, Ended::Killed(signal)) => Outcome::Crash(Crash::Signal(signal)),
        (Stop::Ended, Ended::Exited(0)) => {
            let refused = after.processes_refused > before.processes_refused;
            return Ok(believe(&watched.received, compiling, refused));
        }
        (Stop::Ended, Ended::Exited(status)) => Outcome::Crash(Crash::Exit(status)),
    };
    Ok((outcome, None))
}

fn call_name(number: i32) -> String {
    let known = u32::try_from(number).ok().and_then(filters::name);
    known.map_or_else(|| format!("number {number}"), str::to_owned)
}

/// What a child that ended cleanly claims.
fn believe(received: &[u8], compiling: bool, processes_refused: bool) -> (Outcome, Option<Vec<u8>>) {
    let limits = &policy::limits().python;
    let bad = |path: &str, why: String| Outcome::BadAnswer { path: path.to_owned(), why };
    if received.is_empty() {
        return (Outcome::Crash(Crash::Exit(0)), None);
    }
    let outcome = match Reply::parse(received) {
        Err(e) => bad("$", e.to_string()),
        Ok(Reply::Compiled(code)) if compiling => return (Outcome::Ok(String::new()), Some(code)),
        Ok(Reply::Compiled(_)) => bad("$", "compiled code is no answer".to_owned()),
        Ok(Reply::BadAnswer { path, why }) => bad(&path, why),
        Ok(Reply::Raised(raised)) if raised.kind == "MemoryError" => Outcome::Memory,
        Ok(Reply::Raised(_)) if processes_refused => Outcome::Processes,
        Ok(Reply::Raised(raised)) => Outcome::Error(raised),
        Ok(Reply::Answer(answer)) => {
            let most = usize::try_from(limits.output_bytes_max).unwrap_or(usize::MAX);
            match json::check(&answer, limits.json_depth_max) {
                _ if answer.len() > most => bad("$", format!("more than {most} bytes")),
                Ok(text) => Outcome::Ok(text.to_owned()),
                Err(e) => bad(&e.path(), e.why),
            }
        }
    };
    (outcome, None)
}
