//! The parent's side of the worker protocol, as little of it as tests need: a program, frames, values as bytes.

use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) const INIT: u8 = 0x01;
pub(crate) const EVAL: u8 = 0x02;
pub(crate) const EXEC: u8 = 0x03;
pub(crate) const CALL: u8 = 0x04;
pub(crate) const GET: u8 = 0x05;
pub(crate) const SET: u8 = 0x06;
pub(crate) const DEL: u8 = 0x07;
pub(crate) const MODULE: u8 = 0x08;
pub(crate) const MOUNT: u8 = 0x09;
pub(crate) const OP: u8 = 0x0a;
pub(crate) const COLLECT: u8 = 0x0b;
pub(crate) const RETURN: u8 = 0x20;
pub(crate) const RAISE: u8 = 0x21;
pub(crate) const READY: u8 = 0x81;
pub(crate) const VALUE: u8 = 0x82;
pub(crate) const ERROR: u8 = 0x83;
pub(crate) const CALLBACK: u8 = 0x90;
pub(crate) const LOAD: u8 = 0x91;
pub(crate) const OUTPUT: u8 = 0x92;
pub(crate) const FATAL: u8 = 0x9f;

/// What INIT says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Init {
    pub(crate) protocol: u32,
    pub(crate) flags: u32,
    pub(crate) steps: u64,
    pub(crate) memory: u64,
    pub(crate) message: u32,
    pub(crate) parent: u32,
}

impl Default for Init {
    fn default() -> Init {
        Init { protocol: 1, flags: 1, steps: 0, memory: 0, message: 1 << 20, parent: std::process::id() }
    }
}

impl Init {
    pub(crate) fn fields(&self) -> Vec<u8> {
        [
            &self.protocol.to_le_bytes()[..],
            &self.flags.to_le_bytes(),
            &self.steps.to_le_bytes(),
            &self.memory.to_le_bytes(),
            &self.message.to_le_bytes(),
            &self.parent.to_le_bytes(),
        ]
        .concat()
    }
}

/// Bytes with their length in front.
pub(crate) fn text(text: &str) -> Vec<u8> {
    [&u32::try_from(text.len()).unwrap().to_le_bytes(), text.as_bytes()].concat()
}

/// A str as a value.
pub(crate) fn str_value(value: &str) -> Vec<u8> {
    [b"s".to_vec(), text(value)].concat()
}

/// An int as a value.
pub(crate) fn int(value: i64) -> Vec<u8> {
    [&b"i"[..], &value.to_le_bytes()].concat()
}

/// An object as a value.
pub(crate) fn object(handle: u64) -> Vec<u8> {
    [&b"O"[..], &handle.to_le_bytes()].concat()
}

pub(crate) const NO_ARGUMENTS: &[u8] = b"t\0\0\0\0d\0\0\0\0";

/// A frame of the parent.
pub(crate) fn frame(kind: u8, releases: &[u64], fields: &[u8]) -> Vec<u8> {
    let mut message = vec![kind];
    message.extend_from_slice(&u32::try_from(releases.len()).unwrap().to_le_bytes());
    releases.iter().for_each(|handle| message.extend_from_slice(&handle.to_le_bytes()));
    message.extend_from_slice(fields);
    [&u32::try_from(message.len()).unwrap().to_le_bytes()[..], &message].concat()
}

/// A message of the worker, or its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    Message(u8, Vec<u8>),
    /// The exit status, or minus the signal.
    Ended(i32),
}

impl Said {
    /// The fields of a message of this kind.
    #[track_caller]
    pub(crate) fn fields(self, kind: u8) -> Vec<u8> {
        match self {
            Said::Message(found, fields) if found == kind => fields,
            other => panic!("{kind:#x} expected: {}", other.readable()),
        }
    }

    /// For a person who reads a failed test, and for looking into texts.
    pub(crate) fn readable(&self) -> String {
        match self {
            Said::Message(kind, fields) => format!("{kind:#x} {}", String::from_utf8_lossy(fields)),
            Said::Ended(status) => format!("ended with {status}"),
        }
    }
}

/// A running worker.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) child: Child,
    pub(crate) input: Option<ChildStdin>,
    output: ChildStdout,
}

impl Worker {
    /// One that waits for INIT.
    pub(crate) fn bare() -> Worker {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spy-worker"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        Worker { child, input, output }
    }

    pub(crate) fn with(init: &Init) -> Worker {
        let mut worker = Worker::bare();
        worker.ask(INIT, &init.fields()).fields(READY);
        worker
    }

    pub(crate) fn new() -> Worker {
        Worker::with(&Init::default())
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        // A worker that is gone is found out by who reads.
        let _ = self.input.as_mut().unwrap().write_all(bytes);
    }

    pub(crate) fn read(&mut self) -> Said {
        let mut head = [0; 4];
        if self.output.read_exact(&mut head).is_err() {
            return self.ended();
        }
        let mut message = vec![0; usize::try_from(u32::from_le_bytes(head)).unwrap()];
        if self.output.read_exact(&mut message).is_err() {
            return self.ended();
        }
        Said::Message(message[0], message[1..].to_vec())
    }

    pub(crate) fn ended(&mut self) -> Said {
        let status = self.child.wait().unwrap();
        Said::Ended(status.code().unwrap_or_else(|| -status.signal().unwrap()))
    }

    pub(crate) fn ask(&mut self, kind: u8, fields: &[u8]) -> Said {
        self.send(&frame(kind, &[], fields));
        self.read()
    }

    pub(crate) fn eval(&mut self, source: &str) -> Said {
        self.ask(EVAL, &[text(source), text("<string>")].concat())
    }

    pub(crate) fn exec(&mut self, source: &str) -> Said {
        self.ask(EXEC, &[text(source), text("<string>")].concat())
    }

    /// Evaluates what has to be true in the engine.
    #[track_caller]
    pub(crate) fn check(&mut self, source: &str) {
        let said = self.eval(source);
        assert_eq!(said, Said::Message(VALUE, b"T".to_vec()), "{source}: {}", said.readable());
    }

    /// Evaluates what has to raise, with this in type and message.
    #[track_caller]
    pub(crate) fn refuse(&mut self, source: &str, expected: &str) {
        let said = self.eval(source);
        assert!(matches!(said, Said::Message(ERROR, _)), "{source}: {}", said.readable());
        assert!(said.readable().contains(expected), "{source}: {}", said.readable());
    }

    /// A line of /proc/PID/status.
    pub(crate) fn status(&self, field: &str) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(&format!("{field}:")));
        line.unwrap_or_default().trim().to_owned()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
