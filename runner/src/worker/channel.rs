//! The two streams of the worker, frame by frame, and how it ends.
//!
//! Called by `turn` and `mod`. Frames are read whole before anything is done with them. When the parent is gone there is
//! nobody to tell, so the process ends right here.

use std::io;
use std::os::fd::BorrowedFd;

use super::fields::{Frame, HEAD};
use super::message::FATAL;
use super::{EXIT_OK, EXIT_VIOLATION};
use crate::sys::{fd, process};

/// Bytes asked of the kernel at once.
const CHUNK: usize = 64 << 10;

/// Standard input and output as streams of frames.
#[derive(Debug)]
pub(super) struct Channel {
    input: BorrowedFd<'static>,
    output: BorrowedFd<'static>,
    /// Received and not yet used: at most a frame and what came with it.
    ahead: Vec<u8>,
    /// Where the kernel puts what it has.
    room: Box<[u8]>,
    /// The longest message, either way.
    message_max: usize,
}

impl Channel {
    /// Before INIT.
    pub(super) fn new(message_max: usize) -> Channel {
        Channel {
            input: fd::standard(0),
            output: fd::standard(1),
            ahead: Vec::new(),
            room: vec![0; CHUNK].into_boxed_slice(),
            message_max,
        }
    }

    pub(super) fn message_max(&self) -> usize {
        self.message_max
    }

    pub(super) fn set_message_max(&mut self, bytes: usize) {
        self.message_max = bytes;
    }

    /// The next message: its kind and fields. Ends the process when the stream ends.
    pub(super) fn read(&mut self) -> Vec<u8> {
        while self.ahead.len() < HEAD {
            let (got, first) = (self.receive(), self.ahead.is_empty());
            self.take(got, first);
        }
        let length = self.ahead.first_chunk::<HEAD>().map_or(0, |head| u32::from_le_bytes(*head));
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length == 0 || length > self.message_max {
            self.fatal(&format!("a message of {length} bytes; 1 to {} are allowed", self.message_max));
        }
        // Memory grows with what has arrived, not with what was announced.
        while self.ahead.len() < HEAD + length {
            let got = self.receive();
            self.take(got, false);
        }
        let rest = self.ahead.split_off(HEAD + length);
        let mut message = std::mem::replace(&mut self.ahead, rest);
        message.drain(..HEAD);
        message
    }

    /// Waits for bytes; they lie in the room.
    fn receive(&mut self) -> usize {
        loop {
            match fd::read(self.input, &mut self.room) {
                Ok(got) => return got,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => process::exit_now(EXIT_OK),
            }
        }
    }

    /// Appends `got` bytes of the room. None is the end of the stream, which is right only between frames.
    fn take(&mut self, got: usize, between_frames: bool) {
        match self.room.get(..got) {
            Some(bytes) if got > 0 => self.ahead.extend_from_slice(bytes),
            _ if between_frames => process::exit_now(EXIT_OK),
            _ => self.fatal("the stream ended within a frame"),
        }
    }

    /// Sends a frame.
    pub(super) fn write(&self, frame: &[u8]) {
        let mut rest = frame;
        while !rest.is_empty() {
            match fd::write(self.output, rest) {
                Ok(put) => rest = rest.get(put..).unwrap_or_default(),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => process::exit_now(EXIT_OK),
            }
        }
    }

    /// Says why and ends the process.
    pub(super) fn fatal(&self, why: &str) -> ! {
        self.end(EXIT_VIOLATION, why)
    }

    /// The same with another status.
    pub(super) fn end(&self, status: u8, why: &str) -> ! {
        let mut frame = Frame::new(FATAL, self.message_max);
        // A reason too long for the limit is not sent; the status says enough.
        let _ = frame.put_bytes(why.as_bytes());
        self.write(&frame.finish());
        process::exit_now(status)
    }
}
