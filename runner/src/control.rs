//! The positive control of an attack: the same code outside the sandbox, in an environment to throw away.
//!
//! `suite` starts `runner control`, which moves into mount, pid, ipc and uts namespaces of its own (so that a /tmp, a
//! fork bomb or a signal to everybody ends with it) but keeps the host's network and files, to which the canaries
//! belong. Then it runs the attack with the plain interpreter. What succeeds here is what the sandbox has to stop.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::confine::namespaces;

/// Runs the attack and prints one line: `true`, `absent` (this kernel lacks the call), or `false` with a reason.
const WRAPPER: &str = include_str!("control.py");
/// Seconds after which a control is ended.
const SECONDS_MAX: &str = "20";

/// What a control showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// The attack succeeds outside.
    Succeeds,
    /// The kernel has no such call, so there is nothing to block.
    Absent,
    /// It would take root to show it.
    NeedsRoot,
    /// It fails outside as well, so it proves nothing.
    Fails(String),
}

/// The program of `runner control`: enters the environment and becomes the interpreter's parent.
pub fn enter(source: &str, host: &str) -> io::Result<bool> {
    namespaces::enter_throwaway()?;
    let python = Path::new(env!("TINYFILES_PYTHON_HOME")).join("bin/python3");
    // `timeout` is process 1 of the namespace: all ends with it.
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", SECONDS_MAX]).arg(python).args(["-I", "-B", "-c", WRAPPER, source, host]);
    command.stdin(Stdio::null());
    Ok(command.status()?.success())
}

/// Has `program` run the control of one attack.
pub fn show(program: &Path, source: &str, host: &Value, ends: Option<&str>) -> io::Result<Shown> {
    let mut command = Command::new(program);
    command.args(["control", source, &host.to_string(), ends.unwrap_or("")]);
    command.env("TINYFILES_CANARY", "set").stdin(Stdio::null()).current_dir(std::env::temp_dir());
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or_default().trim();
    Ok(match last {
        "true" => Shown::Succeeds,
        "absent" => Shown::Absent,
        "needs root" => Shown::NeedsRoot,
        // An attack that must end as `denied` need only end otherwise here.
        _ if ends.is_some() => Shown::Succeeds,
        other => {
            let errors = String::from_utf8_lossy(&output.stderr);
            let why = errors.lines().last().unwrap_or_default();
            Shown::Fails(format!("{other} {why}").trim().to_owned())
        }
    })
}
