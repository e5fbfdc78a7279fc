//! Calls of the Python functions of works: from `POST /api/python/{creator}/{work}` to the runner and back.
//!
//! | module | what it is |
//! |---|---|
//! | [`http`] | the address: which function, which inputs |
//! | [`runner`] | the runner's socket: one call of one source |
//!
//! The inputs and the answer pass through; nothing of them is kept or logged, and no Python runs in this process.

pub mod http;
pub mod runner;

pub use runner::Runner;

use crate::json::JsonError;

/// Why there is no answer of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// No work is published there, or it has no function.
    Unknown,
    /// A content type that is not taken.
    BadType,
    /// Inputs that are not JSON, or too deep.
    BadInputs(JsonError),
    /// Python is closed, or nobody runs it.
    Closed(String),
    /// The queue of calls is full.
    Busy,
    /// The function raised.
    Raised {
        /// The type of the exception.
        kind: String,
        /// Its text.
        message: String,
        /// The line of the function it came from.
        line: Option<u64>,
    },
    /// The call ended in another way than by an answer.
    Ended {
        /// How.
        how: Ending,
        /// The same in a sentence.
        sentence: String,
    },
    /// A fault that stands in the log.
    Failed,
}

/// How a call can end without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It took too long.
    Timeout,
    /// It needed too much memory.
    Memory,
    /// It started too many threads.
    Processes,
    /// It wrote too much.
    Output,
    /// It returned something that is not JSON.
    BadAnswer,
    /// It made a forbidden system call.
    Denied,
    /// It died.
    Crash,
}
