//! Who answers a Python function during a smoke run: `runner call`, a running `runner serve`, or nobody.
//!
//! Called by [`super`]. The runner confines the function; here its outcomes become what the site's API would answer. A
//! runner that cannot be had is told apart from a function that fails: the first is a run that did not take place.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::runner;

/// Where the calls go.
#[derive(Debug, Clone)]
pub enum Backend {
    /// Nowhere: Python is closed.
    Closed,
    /// To a program `runner`, one `runner call` for each.
    Program {
        /// The program, by its name or path.
        runner: PathBuf,
        /// The function's file.
        function: PathBuf,
    },
    /// To the socket of a `runner serve`.
    Socket {
        /// Where it listens.
        socket: PathBuf,
        /// The function's file.
        function: PathBuf,
    },
}

/// What the page is answered.
#[derive(Debug)]
pub(super) enum Answer {
    /// What the function returned.
    Result(Value),
    /// A problem by its name, and what belongs to it.
    Problem { kind: String, more: Value },
}

impl Backend {
    /// The runner at `socket`, or else the program beside this one, or on the PATH.
    pub fn of(socket: Option<&Path>, function: &Path) -> Self {
        let function = function.to_owned();
        if let Some(socket) = socket {
            return Self::Socket { socket: socket.to_owned(), function };
        }
        let beside = std::env::current_exe().ok().map(|intake| intake.with_file_name("runner"));
        let runner = beside.filter(|path| path.is_file()).unwrap_or_else(|| "runner".into());
        Self::Program { runner, function }
    }

    /// Calls the function; the error says why nothing can.
    pub(super) fn call(&self, inputs: &str) -> Result<Answer, String> {
        match self {
            Self::Closed => Ok(Answer::Problem { kind: "python-closed".into(), more: json!({}) }),
            Self::Program { runner, function } => program(runner, function, inputs),
            Self::Socket { socket, function } => serve(socket, function, inputs),
        }
    }
}

fn program(runner: &Path, function: &Path, inputs: &str) -> Result<Answer, String> {
    let name = runner.display();
    let mut child = Command::new(runner)
        .arg("call")
        .arg(function)
        .args(["--inputs", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| {
            format!(
                "no function can be called ({name}: {e}); install `runner`, or name a socket with --runner"
            )
        })?;
    if let Some(mut input) = child.stdin.take() {
        // A runner that refuses to start reads nothing, and says why below.
        let _ = input.write_all(inputs.as_bytes());
    }
    let output = child.wait_with_output().map_err(|e| format!("{name}: {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().next_back().unwrap_or_default();
    let report: Value =
        serde_json::from_str(last).map_err(|_| format!("{name} has no outcome of a call: {last}"))?;
    let result = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    outcome(&report, result)
}

fn serve(socket: &Path, function: &Path, inputs: &str) -> Result<Answer, String> {
    let at = socket.display();
    let source =
        std::fs::read_to_string(function).map_err(|e| format!("cannot read {}: {e}", function.display()))?;
    let inputs: Value = serde_json::from_str(inputs).map_err(|e| e.to_string())?;
    let body = json!({ "source": source, "inputs": inputs }).to_string();
    let api = &policy::limits().api;
    let answer_max = u64::try_from(api.runner_answer_bytes_max).unwrap_or(u64::MAX);
    let patience = Duration::from_secs(api.call_seconds_max.into());
    let answer = runner::post(socket, "/call", body.as_bytes(), patience, answer_max)
        .map_err(|e| format!("the runner at {at} does not answer: {e}"))?;
    let (status, body) = runner::parse(&answer).ok_or("the runner's answer is cut short")?;
    let report: Value =
        serde_json::from_slice(body).map_err(|e| format!("the runner's answer cannot be read: {e}"))?;
    if status != 200 {
        return Err(format!(
            "the runner at {at}: {}",
            report["detail"].as_str().unwrap_or("no reason given")
        ));
    }
    let result = report["result"].clone();
    outcome(&report, result)
}

/// What the site's API would say of an outcome.
fn outcome(report: &Value, result: Value) -> Result<Answer, String> {
    let kind = match report["outcome"].as_str().unwrap_or_default() {
        "ok" => return Ok(Answer::Result(result)),
        "closed" | "" => return Err(report["message"].as_str().unwrap_or("no reason given").to_owned()),
        "output_limit" => "python-output".to_owned(),
        other => format!("python-{}", other.replace('_', "-")),
    };
    let more = json!({ "error_type": report["type"], "message": report["text"], "line": report["line"] });
    Ok(Answer::Problem { kind, more })
}
