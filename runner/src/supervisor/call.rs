//! A call before and after: what is asked for, what is wrong with it before anything is forked, what came of it.

use std::time::Duration;

use crate::confine::Steps;
use crate::json;
use crate::limits::Limits;
use crate::outcome::Outcome;

/// The largest request that a child reads: compiled code is at most this many times its source.
pub fn request_bytes_max() -> usize {
    const CODE_PER_SOURCE: u64 = 64;
    let limits = policy::limits();
    let bytes = limits.work.python_bytes_max * CODE_PER_SOURCE + limits.python.inputs_bytes_max + 64;
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The function's file.
    pub source: &'a [u8],
    /// One JSON value.
    pub inputs: &'a [u8],
    /// What it may use.
    pub limits: Limits,
    /// Whether the host looks at the child before it gets its request.
    pub inspect: bool,
    /// The steps to take: all, but in measurements and with `--unproved`.
    pub steps: Steps,
}

impl<'a> Call<'a> {
    /// With every step and the limits of the policy.
    pub fn new(source: &'a [u8], inputs: &'a [u8]) -> Call<'a> {
        Call { source, inputs, limits: Limits::policy(), inspect: false, steps: Steps::ALL }
    }

    /// For bandit to read: with every step and its own patience.
    pub fn to_lint(source: &'a [u8]) -> Call<'a> {
        let bandit = &policy::lint().bandit;
        let limits = Limits {
            wall: Duration::from_secs(bandit.seconds_max.into()),
            output_bytes: usize::try_from(bandit.answer_bytes_max).unwrap_or(usize::MAX),
            ..Limits::policy()
        };
        Call { limits, ..Call::new(source, b"null") }
    }

    /// The same with another time.
    pub fn within(self, wall: Duration) -> Call<'a> {
        Call { limits: Limits { wall, ..self.limits }, ..self }
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
    pub(super) fn only(outcome: Outcome) -> Report {
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

/// What is wrong with a call before anything is forked for it.
pub(super) fn refuse(call: &Call<'_>) -> Option<Outcome> {
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
