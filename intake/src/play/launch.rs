//! Starting the browser of a smoke run as nobody, with no network, and reading its debugging pipe.
//!
//! Called by [`super`], which speaks over the pipe and knows what is played.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;

use serde_json::Value;

use super::{NotRun, not_run};

/// Starts the program as nobody, with no network, its pipes as descriptors 3 and 4. A frame stays in the process of the
/// page around it, so that one session of the debugger sees both.
pub(super) fn launch(program: &str, folder: &Path, to: &Path, from: &Path) -> Result<Child, NotRun> {
    let script = "command -v \"$1\" >/dev/null || exit 127; exec \"$@\" 3<\"$TO\" 4>\"$FROM\"";
    let mut command = Command::new("unshare");
    command.args(if is_root() {
        &["--net", "--"][..]
    } else {
        &["--user", "--map-current-user", "--net", "--"]
    });
    if is_root() {
        let python = &policy::limits().python;
        let (user, group) = (format!("--reuid={}", python.uid), format!("--regid={}", python.gid));
        command.args(["setpriv", &user, &group, "--clear-groups", "--"]);
    }
    command
        .args([
            "sh",
            "-c",
            script,
            "sh",
            program,
            "--headless=new",
            "--remote-debugging-pipe",
            "--disable-gpu",
        ])
        .args([
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-site-isolation-trials",
            "--disable-features=IsolateSandboxedIframes",
            "--mute-audio",
        ])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .env("TO", to)
        .env("FROM", from)
        .env("HOME", folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| not_run(format!("the browser cannot be kept apart (unshare): {e}")))
}

/// The messages of the pipe, each ended by a NUL.
pub(super) fn read(output: File, send: Sender<Value>) {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(output);
        let mut bytes = Vec::new();
        while matches!(reader.read_until(0, &mut bytes), Ok(n) if n > 0) {
            bytes.pop();
            if let Ok(message) = serde_json::from_slice(&bytes)
                && send.send(message).is_err()
            {
                break;
            }
            bytes.clear();
        }
    });
}

pub(super) fn ended(code: Option<i32>, program: &str) -> String {
    match code {
        Some(127) => format!("{program} is not installed"),
        code => format!("the browser could not be started apart from the network (exit code {code:?})"),
    }
}

#[cfg(unix)]
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

#[cfg(unix)]
pub(super) fn open_to_all(folder: &Path) -> Result<(), NotRun> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777))
        .map_err(|e| not_run(e.to_string()))
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

#[cfg(not(unix))]
pub(super) fn open_to_all(_: &Path) -> Result<(), NotRun> {
    Err(not_run("this system cannot keep the browser apart"))
}
