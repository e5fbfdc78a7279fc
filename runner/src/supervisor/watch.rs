//! A child that runs: fed, read within caps, and left when it ends, floods, is late, or tries what it may not.
//!
//! Nothing of what it says is believed here; `judge` does that, after its end.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use super::{Call, RunError, failing, request_bytes_max};
use crate::inspect;
use crate::outcome::Stream;
use crate::sys::fd::{self, Watch};
use crate::sys::seccomp;
use crate::wire::{self, HEAD, Hello, Request};

/// Why watching ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
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
pub(super) struct Watched {
    /// When its order was sent.
    pub(super) started: Instant,
    pub(super) pid: i32,
    pub(super) pidfd: OwnedFd,
    pub(super) frames: UnixStream,
    pub(super) received: Vec<u8>,
    pub(super) hello: Option<Hello>,
    pub(super) printed: Pipe,
    pub(super) errors: Pipe,
    pub(super) listener: Option<OwnedFd>,
    pub(super) listening: bool,
    pub(super) answer_bytes_max: usize,
}

#[derive(Debug)]
pub(super) struct Pipe {
    /// `None` after its end.
    pub(super) end: Option<OwnedFd>,
    pub(super) bytes: Vec<u8>,
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
    pub(super) fn watch(
        &mut self,
        request: Request<'_>,
        call: &Call<'_>,
        deadline: Instant,
    ) -> Result<Stop, RunError> {
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
            if left.is_zero() || !fd::wait(&mut watches, Some(left)).map_err(failing("waiting"))? {
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
        let print_max = call.limits.print_bytes;
        let whole = self.printed.drain(print_max).map_err(failing("reading print"))?;
        let rest = print_max.saturating_sub(self.printed.bytes.len());
        if !whole || !self.errors.drain(rest).map_err(failing("reading errors"))? {
            return Ok(Some(Stop::Flood(Stream::Print)));
        }
        let frames_max = self.answer_bytes_max.max(request_bytes_max());
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
                    seccomp::take_fd(self.pidfd.as_fd(), number).map_err(failing("taking the listener"))?;
                self.listener = Some(taken);
            }
        }
        self.hello = Some(hello);
        Ok(())
    }
}
