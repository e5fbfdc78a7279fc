//! bandit as a runner has it: one `POST /lint` over the runner's Unix socket.
//!
//! The runner is trusted, and so is what it says about a failure; its answers are bounded all the same, because what
//! bandit says about a hostile file is long when the file wants it to be.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::runner;

/// What the runner says when it has no answer.
#[derive(Deserialize)]
struct Problem {
    detail: String,
}

/// What bandit says about a source, or why that is not known.
pub(super) fn ask(socket: &Path, seconds: u64, source: &[u8]) -> Result<Vec<u8>, String> {
    // As long again, for the queue before it. The runner keeps its own deadline; ours is for one that hangs.
    let patience = Duration::from_secs(seconds * 2);
    let bytes_max = policy::lint().bandit.answer_bytes_max;
    let answer = runner::post(socket, "/lint", source, patience, bytes_max).map_err(|error| {
        format!("the runner at {} could not be asked for bandit's answer: {error}", socket.display())
    })?;
    let (status, body) = runner::parse(&answer).ok_or("the runner's answer about bandit is cut short")?;
    if status == 200 {
        return Ok(body.to_vec());
    }
    let why =
        serde_json::from_slice(body).map_or_else(|_| "no reason given".to_owned(), |p: Problem| p.detail);
    Err(format!("the runner has no answer of bandit ({status}): {why}"))
}
