//! How a call ended: a value from a closed set, never an error.
//!
//! Made by `supervisor` from what it saw itself (signals, counters, clocks) and, last, from what the child claimed.
//! The words here are what creators and players read.

use serde_json::{Value, json};

use crate::limits::Limits;
use crate::wire::Raised;

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// `run` returned this JSON value.
    Ok(String),
    /// An exception left the function, or the source is not one that can be run.
    Error(Raised),
    /// The deadline passed.
    Timeout,
    /// More memory than allowed.
    Memory,
    /// More processes or threads than allowed.
    Processes,
    /// More output than allowed.
    OutputLimit(Stream),
    /// What `run` returned, or what came in its place, is not acceptable JSON.
    BadAnswer {
        /// The way to the culprit, from `$`.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The kernel ended the process for a system call outside its list.
    Denied {
        /// Its name or number, when a listener was on.
        call: Option<String>,
    },
    /// The process ended before it answered.
    Crash(Crash),
    /// Python is closed.
    Closed {
        /// Why.
        why: String,
    },
}

/// Where the output went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// print.
    Print,
    /// The frames.
    Frames,
}

/// How a process ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// By a signal.
    Signal(i32),
    /// By leaving, with this status.
    Exit(i32),
}

impl Outcome {
    /// The name of this kind of ending.
    pub fn name(&self) -> &'static str {
        match self {
            Outcome::Ok(_) => "ok",
            Outcome::Error(_) => "error",
            Outcome::Timeout => "timeout",
            Outcome::Memory => "memory",
            Outcome::Processes => "processes",
            Outcome::OutputLimit(_) => "output_limit",
            Outcome::BadAnswer { .. } => "bad_answer",
            Outcome::Denied { .. } => "denied",
            Outcome::Crash(_) => "crash",
            Outcome::Closed { .. } => "closed",
        }
    }

    /// Every name with the exit code of `runner call`.
    pub const EXIT_CODES: [(&'static str, u8); 10] = [
        ("ok", 0),
        ("error", 10),
        ("timeout", 11),
        ("memory", 12),
        ("processes", 13),
        ("output_limit", 14),
        ("bad_answer", 15),
        ("denied", 16),
        ("crash", 17),
        ("closed", 18),
    ];

    /// The exit code of `runner call`.
    pub fn exit_code(&self) -> u8 {
        Self::EXIT_CODES.iter().find(|(name, _)| *name == self.name()).map_or(1, |(_, code)| *code)
    }

    /// An error in the source or the inputs, before anything ran.
    pub fn rejected(kind: &str, message: impl Into<String>) -> Outcome {
        Outcome::Error(Raised { kind: kind.to_owned(), message: message.into(), line: 0, frames: Vec::new() })
    }

    /// One sentence for a person, about a call under the limits of the policy.
    pub fn sentence(&self) -> String {
        self.sentence_under(&Limits::policy())
    }

    /// The same about a call under these.
    pub fn sentence_under(&self, limits: &Limits) -> String {
        match self {
            Outcome::Ok(_) => "The function returned.".to_owned(),
            Outcome::Error(raised) if raised.line > 0 => {
                format!("{}: {} (line {})", raised.kind, raised.message, raised.line)
            }
            Outcome::Error(raised) => format!("{}: {}", raised.kind, raised.message),
            Outcome::Timeout => {
                format!("The function ran longer than {} seconds.", limits.wall.as_secs_f64())
            }
            Outcome::Memory => {
                format!("The function needed more than {} MiB of memory.", limits.cgroup.memory_bytes >> 20)
            }
            Outcome::Processes => {
                format!("The function started more than {} threads.", limits.cgroup.processes)
            }
            Outcome::OutputLimit(Stream::Print) => {
                format!("The function printed more than {} bytes.", limits.print_bytes)
            }
            Outcome::OutputLimit(Stream::Frames) => {
                format!("The function wrote more than {} bytes as its answer.", limits.output_bytes)
            }
            Outcome::BadAnswer { path, why } => {
                format!("The answer is not acceptable JSON at {path}: {why}.")
            }
            Outcome::Denied { call: Some(call) } => {
                format!("The function used the system call `{call}`, which no function may use.")
            }
            Outcome::Denied { call: None } => {
                "The function used a system call that no function may use.".to_owned()
            }
            Outcome::Crash(Crash::Signal(signal)) => {
                format!("The process died of signal {signal} before it answered.")
            }
            Outcome::Crash(Crash::Exit(status)) => {
                format!("The process left with status {status} before it answered.")
            }
            Outcome::Closed { why } => format!("Python is closed: {why}"),
        }
    }

    /// The outcome as a JSON object: `outcome`, `message`, and what belongs to its kind. The result is not in it: it
    /// is the caller's to place, verbatim.
    pub fn to_json(&self) -> Value {
        let mut object = json!({"outcome": self.name(), "message": self.sentence()});
        let more = match self {
            Outcome::Error(raised) => json!({
                "type": raised.kind, "text": raised.message,
                "line": if raised.line > 0 { json!(raised.line) } else { Value::Null },
                "frames": raised.frames.iter().map(|(l, n)| json!({"line": l, "function": n})).collect::<Vec<_>>(),
            }),
            Outcome::BadAnswer { path, why } => json!({"path": path, "why": why}),
            Outcome::Denied { call } => json!({"call": call}),
            Outcome::Crash(Crash::Signal(signal)) => json!({"signal": signal}),
            Outcome::Crash(Crash::Exit(status)) => json!({"status": status}),
            _ => Value::Null,
        };
        if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
            object.extend(more);
        }
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_a_name_and_its_own_exit_code() {
        let all = [
            Outcome::Ok("1".into()),
            Outcome::rejected("E", "m"),
            Outcome::Timeout,
            Outcome::Memory,
            Outcome::Processes,
            Outcome::OutputLimit(Stream::Print),
            Outcome::BadAnswer { path: "$".into(), why: "w".into() },
            Outcome::Denied { call: None },
            Outcome::Crash(Crash::Signal(11)),
            Outcome::Closed { why: "w".into() },
        ];
        let codes: std::collections::HashSet<u8> = all.iter().map(Outcome::exit_code).collect();
        assert_eq!(codes.len(), all.len());
        for outcome in all {
            assert!(!outcome.sentence().is_empty());
            assert_eq!(outcome.to_json()["outcome"], outcome.name());
        }
    }

    #[test]
    fn an_error_shows_its_line_and_frames() {
        let raised = Raised {
            kind: "KeyError".into(),
            message: "'x'".into(),
            line: 4,
            frames: vec![(9, "run".into())],
        };
        let outcome = Outcome::Error(raised);
        assert_eq!(outcome.sentence(), "KeyError: 'x' (line 4)");
        assert_eq!(outcome.to_json()["frames"][0]["function"], "run");
    }
}
