//! Starting the browser of a smoke run as nobody, with no network, its debugging pipe on its standard streams.
//!
//! Called by [`super`]. Nothing that the browser says is read here.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::{NotRun, not_run};

/// What the browser complains of, in its folder.
const COMPLAINTS: &str = "complaints";
/// How a shell ends that does not find a program.
const NOT_FOUND: i32 = 127;

/// A browser that was started.
#[derive(Debug)]
pub(super) struct Launched {
    pub(super) child: Child,
    pub(super) program: String,
    /// Its home, which ends with it.
    folder: TempDir,
}

impl Launched {
    /// Starts the program with nothing of ours but the pipe, as descriptors 3 and 4. A frame stays in the process of the page
    /// around it, so that one session of the debugger sees both.
    pub(super) fn start(program: &str) -> Result<Self, NotRun> {
        let folder = tempfile::tempdir().map_err(|e| not_run(e.to_string()))?;
        open_to_all(folder.path())?;
        let complaints = File::create(folder.path().join(COMPLAINTS)).map_err(|e| not_run(e.to_string()))?;
        let script = "command -v \"$1\" >/dev/null || exit 127; exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null";
        let mut command = Command::new("unshare");
        if is_root() {
            let python = &policy::limits().python;
            let (user, group) = (format!("--reuid={}", python.uid), format!("--regid={}", python.gid));
            command.args(["--net", "--", "setpriv", &user, &group, "--clear-groups", "--"]);
        } else {
            command.args(["--user", "--map-current-user", "--net", "--"]);
        }
        let child = command
            .args(["sh", "-c", script, "sh", program, "--headless=new", "--remote-debugging-pipe"])
            .args([
                "--disable-gpu",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-site-isolation-trials",
                "--disable-features=IsolateSandboxedIframes",
                "--mute-audio",
            ])
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .env("HOME", folder.path())
            .env("TMPDIR", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(complaints)
            .spawn()
            .map_err(|e| not_run(format!("the browser cannot be kept apart (unshare): {e}")))?;
        Ok(Self { child, program: program.to_owned(), folder })
    }

    /// Where its files are.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Why a browser that has closed its pipe before it said anything does not run.
    pub(super) fn why_not(&mut self) -> NotRun {
        let program = &self.program;
        if self.child.wait().is_ok_and(|status| status.code() == Some(NOT_FOUND)) {
            return not_run(format!("{program} is not installed"));
        }
        let said = std::fs::read(self.folder.path().join(COMPLAINTS)).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        let advice = match last.starts_with("unshare") {
            true => "; allow user namespaces on this machine, or run it as root",
            false => "",
        };
        not_run(format!("{program} could not be started apart from the network: {last}{advice}"))
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        // Behind a wall nothing can be ended from here; what a browser leaves then ends with whoever built the wall.
        if self.child.kill().is_ok() {
            let _ = self.child.wait();
        }
    }
}

#[cfg(unix)]
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

#[cfg(unix)]
fn open_to_all(folder: &Path) -> Result<(), NotRun> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777))
        .map_err(|e| not_run(e.to_string()))
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

#[cfg(not(unix))]
fn open_to_all(_: &Path) -> Result<(), NotRun> {
    Err(not_run("this system cannot keep the browser apart"))
}
