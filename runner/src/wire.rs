//! Frames: what supervisor and child say to each other on the child's one private descriptor.
//!
//! A frame is one byte of kind, four bytes of length (little endian), and that many bytes. The supervisor sends one
//! [`Request`]; the child answers with [`Hello`] before it has read a byte of it, then with one [`Reply`]. Everything
//! after `Hello` may have been written by user code, so it is parsed as hostile bytes: bounded, without recursion,
//! and as a whole (a second frame or a trailing byte makes all of it void). Wire bytes never reach `sys`. Each kind of
//! frame has vectors, `vectors/frames*.tsv`, which `tests/it/frames.rs` reads.

use crate::confine::{Step, Steps};

/// Bytes before the payload.
pub const HEAD: usize = 5;
/// The most frames of a traceback that a child reports.
pub const FRAMES_MAX: usize = 16;
/// The most characters of a name or message in a report.
pub const TEXT_MAX: usize = 2_000;

/// Why bytes are not what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The stream ended within a frame.
    #[error("a frame is cut short")]
    Short,
    /// Bytes follow the last frame.
    #[error("bytes follow the last frame")]
    Trailing,
    /// No such kind of frame here.
    #[error("unexpected frame of kind {0}")]
    Kind(u8),
    /// A payload that does not hold what its kind says.
    #[error("a frame of kind {0} is malformed")]
    Malformed(u8),
}

/// What a child is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// Compile a source and return the code as bytes.
    Compile {
        /// The function's file.
        source: &'a [u8],
    },
    /// Run code that a child compiled.
    Run {
        /// What `Compile` returned.
        code: &'a [u8],
        /// One JSON value.
        inputs: &'a [u8],
    },
    /// Say what bandit finds in a source.
    Lint {
        /// The function's file.
        source: &'a [u8],
    },
}

/// The first frame of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hello {
    /// All these steps hold.
    Confined {
        /// Which.
        steps: Steps,
        /// The number of the seccomp listener in the child, when one was asked for.
        listener: Option<i32>,
    },
    /// A step does not, and the child ends.
    Refused {
        /// Which.
        step: Step,
        /// Its errno, 0 if there is none.
        errno: i32,
    },
}

/// An exception that left the function.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Raised {
    /// The name of its type.
    pub kind: String,
    /// What it says.
    pub message: String,
    /// The line of the creator's file where it arose; 0 if it has none.
    pub line: u32,
    /// The creator's own frames, outermost first: line and function.
    pub frames: Vec<(u32, String)>,
}

/// The last frame of a child, a claim of user code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// What `run` returned, as JSON.
    Answer(Vec<u8>),
    /// It raised.
    Raised(Raised),
    /// It returned what is not JSON.
    BadAnswer {
        /// The way to the culprit, from `$`.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// Compiled code.
    Compiled(Vec<u8>),
}

const REQUEST_COMPILE: u8 = 1;
const REQUEST_RUN: u8 = 2;
const REQUEST_LINT: u8 = 3;
const HELLO_CONFINED: u8 = 16;
const HELLO_REFUSED: u8 = 17;
const REPLY_ANSWER: u8 = 32;
const REPLY_RAISED: u8 = 33;
const REPLY_BAD_ANSWER: u8 = 34;
const REPLY_COMPILED: u8 = 35;

/// Begins a frame of `kind` with `payload`.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + payload.len());
    bytes.push(kind);
    put_length(&mut bytes, payload.len());
    bytes.extend_from_slice(payload);
    bytes
}

fn put_length(bytes: &mut Vec<u8>, length: usize) {
    bytes.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_bytes(bytes: &mut Vec<u8>, part: &[u8]) {
    put_length(bytes, part.len());
    bytes.extend_from_slice(part);
}

/// Cuts `text` to what a report may hold.
fn clipped(text: &str) -> &str {
    text.char_indices().nth(TEXT_MAX).map_or(text, |(end, _)| &text[..end])
}

/// Takes parts off a payload.
struct Parts<'a> {
    rest: &'a [u8],
    kind: u8,
}

impl<'a> Parts<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (part, rest) = self.rest.split_at_checked(count).ok_or(WireError::Malformed(self.kind))?;
        self.rest = rest;
        Ok(part)
    }

    fn number(&mut self) -> Result<u32, WireError> {
        let bytes = self.take(4)?;
        Ok(bytes.iter().rev().fold(0, |n, b| n << 8 | u32::from(*b)))
    }

    fn bytes(&mut self) -> Result<&'a [u8], WireError> {
        let count = self.number()?;
        self.take(usize::try_from(count).map_err(|_| WireError::Malformed(self.kind))?)
    }

    fn text(&mut self) -> Result<String, WireError> {
        let text = std::str::from_utf8(self.bytes()?).map_err(|_| WireError::Malformed(self.kind))?;
        if text.chars().count() > TEXT_MAX {
            Err(WireError::Malformed(self.kind))
        } else {
            Ok(text.to_owned())
        }
    }

    fn end(self) -> Result<(), WireError> {
        if self.rest.is_empty() { Ok(()) } else { Err(WireError::Malformed(self.kind)) }
    }
}

/// Splits the first frame off `bytes`: kind, payload, the rest. `None` while it is incomplete.
pub fn split(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let (kind, length) = head.split_first()?;
    let length = length.iter().rev().fold(0usize, |n, b| n << 8 | usize::from(*b));
    let (payload, rest) = rest.split_at_checked(length)?;
    Some((*kind, payload, rest))
}

/// The length of the payload that a frame's head announces.
pub fn announced(head: [u8; HEAD]) -> usize {
    let [_, length @ ..] = head;
    usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX)
}

impl<'a> Request<'a> {
    /// As a frame.
    pub fn to_frame(&self) -> Vec<u8> {
        match self {
            Request::Compile { source } => frame(REQUEST_COMPILE, source),
            Request::Lint { source } => frame(REQUEST_LINT, source),
            Request::Run { code, inputs } => {
                let mut payload = Vec::with_capacity(8 + code.len() + inputs.len());
                put_bytes(&mut payload, code);
                put_bytes(&mut payload, inputs);
                frame(REQUEST_RUN, &payload)
            }
        }
    }

    /// From the kind and payload of a frame.
    pub fn parse(kind: u8, payload: &'a [u8]) -> Result<Request<'a>, WireError> {
        let mut parts = Parts { rest: payload, kind };
        match kind {
            REQUEST_COMPILE => Ok(Request::Compile { source: payload }),
            REQUEST_LINT => Ok(Request::Lint { source: payload }),
            REQUEST_RUN => {
                let (code, inputs) = (parts.bytes()?, parts.bytes()?);
                parts.end()?;
                Ok(Request::Run { code, inputs })
            }
            other => Err(WireError::Kind(other)),
        }
    }
}

impl Hello {
    /// As a frame, without allocation: it is made between two steps of confinement.
    pub fn to_frame(&self) -> [u8; HEAD + 6] {
        let (kind, first, second) = match self {
            Hello::Confined { steps, listener } => (HELLO_CONFINED, steps.bits(), listener.unwrap_or(-1)),
            Hello::Refused { step, errno } => (HELLO_REFUSED, u16::from(*step as u8), *errno),
        };
        let ([a, b], [c, d, e, f]) = (first.to_le_bytes(), second.to_le_bytes());
        [kind, 6, 0, 0, 0, a, b, c, d, e, f]
    }

    /// From the kind and payload of a frame.
    pub fn parse(kind: u8, payload: &[u8]) -> Result<Hello, WireError> {
        let Ok([a, b, c, d, e, f]) = <[u8; 6]>::try_from(payload) else {
            return Err(WireError::Malformed(kind));
        };
        let (first, second) = (u16::from_le_bytes([a, b]), i32::from_le_bytes([c, d, e, f]));
        match kind {
            HELLO_CONFINED => Ok(Hello::Confined {
                steps: Steps::from_bits(first),
                listener: (second >= 0).then_some(second),
            }),
            HELLO_REFUSED => {
                let step = u8::try_from(first).ok().and_then(Step::from_number);
                Ok(Hello::Refused { step: step.ok_or(WireError::Malformed(kind))?, errno: second })
            }
            other => Err(WireError::Kind(other)),
        }
    }
}

impl Reply {
    /// As a frame.
    pub fn to_frame(&self) -> Vec<u8> {
        match self {
            Reply::Answer(json) => frame(REPLY_ANSWER, json),
            Reply::Compiled(code) => frame(REPLY_COMPILED, code),
            Reply::BadAnswer { path, why } => {
                let mut payload = Vec::new();
                put_bytes(&mut payload, clipped(path).as_bytes());
                put_bytes(&mut payload, clipped(why).as_bytes());
                frame(REPLY_BAD_ANSWER, &payload)
            }
            Reply::Raised(raised) => {
                let mut payload = Vec::new();
                put_bytes(&mut payload, clipped(&raised.kind).as_bytes());
                put_bytes(&mut payload, clipped(&raised.message).as_bytes());
                payload.extend_from_slice(&raised.line.to_le_bytes());
                let kept = &raised.frames[raised.frames.len().saturating_sub(FRAMES_MAX)..];
                put_length(&mut payload, kept.len());
                for (line, name) in kept {
                    payload.extend_from_slice(&line.to_le_bytes());
                    put_bytes(&mut payload, clipped(name).as_bytes());
                }
                frame(REPLY_RAISED, &payload)
            }
        }
    }

    /// From everything that followed `Hello`, which must be exactly one frame.
    pub fn parse(bytes: &[u8]) -> Result<Reply, WireError> {
        let (kind, payload, rest) = split(bytes).ok_or(WireError::Short)?;
        if !rest.is_empty() {
            return Err(WireError::Trailing);
        }
        let mut parts = Parts { rest: payload, kind };
        match kind {
            REPLY_ANSWER => Ok(Reply::Answer(payload.to_vec())),
            REPLY_COMPILED => Ok(Reply::Compiled(payload.to_vec())),
            REPLY_BAD_ANSWER => {
                let (path, why) = (parts.text()?, parts.text()?);
                parts.end()?;
                Ok(Reply::BadAnswer { path, why })
            }
            REPLY_RAISED => {
                let mut raised = Raised {
                    kind: parts.text()?,
                    message: parts.text()?,
                    line: parts.number()?,
                    frames: Vec::new(),
                };
                let count = usize::try_from(parts.number()?).unwrap_or(usize::MAX);
                if count > FRAMES_MAX {
                    return Err(WireError::Malformed(kind));
                }
                for _ in 0..count {
                    raised.frames.push((parts.number()?, parts.text()?));
                }
                parts.end()?;
                Ok(Reply::Raised(raised))
            }
            other => Err(WireError::Kind(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_frame_is_refused_or_another() {
        let raised =
            Raised { kind: "E".into(), message: "m".into(), line: 2, frames: vec![(2, "run".into())] };
        let whole = Reply::Raised(raised).to_frame();
        for end in 0..whole.len() {
            assert!(Reply::parse(&whole[..end]).is_err());
        }
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(reply) = Reply::parse(&bytes) {
                assert_eq!(reply.to_frame(), bytes);
            }
        }
    }

    #[test]
    fn long_texts_are_cut_when_written_and_refused_when_read() {
        let raised =
            Raised { message: "é".repeat(5_000), frames: vec![(1, "f".into()); 40], ..Raised::default() };
        let Ok(Reply::Raised(read)) = Reply::parse(&Reply::Raised(raised).to_frame()) else {
            panic!("parse")
        };
        assert_eq!((read.message.chars().count(), read.frames.len()), (TEXT_MAX, FRAMES_MAX));
        // And refused where they are read: a child is not bound to the writer.
        let mut payload = Vec::new();
        put_bytes(&mut payload, "é".repeat(TEXT_MAX + 1).as_bytes());
        put_bytes(&mut payload, b"");
        let refused = Err(WireError::Malformed(REPLY_BAD_ANSWER));
        assert_eq!(Reply::parse(&frame(REPLY_BAD_ANSWER, &payload)), refused);
    }
}
