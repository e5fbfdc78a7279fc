//! The programs that a worker starts: a fixed list, each with a deadline and a bounded answer.
//!
//! What reads hostile bytes is one of them, so that the worker, which may write the catalogue, never does. A child is
//! the head of a process group, which ends with it, however it ends. While one runs, its worker is asked every now and then whether the
//! job is still its own.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// The most that is read of what a program complains.
const COMPLAINT_BYTES_MAX: u64 = 4096;

/// The programs there are.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    /// This program, for the gates.
    pub(super) api: PathBuf,
    /// The renderer, beside it.
    pub(super) sitegen: PathBuf,
    /// The configuration that all are given.
    pub(super) config: PathBuf,
}

/// How a program ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// Its exit code.
    pub(super) code: i32,
    /// Its standard output.
    pub(super) output: Vec<u8>,
    /// The beginning of its standard error.
    pub(super) complaint: String,
}

/// What a program may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Its time.
    pub(super) seconds_max: u64,
    /// Its answer.
    pub(super) output_bytes_max: u64,
    /// How often the worker is asked whether to go on.
    pub(super) asked_every: Duration,
}

impl Programs {
    /// The programs of an installation whose configuration is at `config`.
    pub(super) fn beside_this_one(config: &Path) -> anyhow::Result<Self> {
        let api = std::env::current_exe().context("cannot tell where this program is")?;
        let sitegen = api.with_file_name("sitegen");
        ensure!(sitegen.is_file(), "{} is missing; install it beside {}", sitegen.display(), api.display());
        let config = std::path::absolute(config).context("cannot tell where the configuration is")?;
        Ok(Self { api, sitegen, config })
    }

    /// `api gate` with these words.
    pub(super) fn gate(&self, words: [&str; 2], folder: &Path) -> Command {
        let mut command = Command::new(&self.api);
        command.arg("--config").arg(&self.config).args(words).arg(folder);
        command
    }

    /// `sitegen` with these words.
    pub(super) fn sitegen(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.sitegen);
        command.arg("--config").arg(&self.config).arg("--json").args(words);
        command
    }
}

/// Runs a program to its end, or to the end of its bounds.
pub(super) fn run(
    mut command: Command,
    bounds: Bounds,
    go_on: &mut dyn FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Ended> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = Group(command.spawn().with_context(|| format!("cannot start {name}"))?);
    let (answer, complaint) = (child.0.stdout.take(), child.0.stderr.take());
    let (send, received) = channel();
    let sender = send.clone();
    // The threads end with the pipes, and the pipes with the group.
    std::thread::spawn(move || {
        let mut output = Vec::new();
        let read = answer.map(|pipe| pipe.take(bounds.output_bytes_max + 1).read_to_end(&mut output));
        sender.send(read.is_some_and(|r| r.is_ok()).then_some((0, output)))
    });
    std::thread::spawn(move || {
        let mut output = Vec::new();
        let mut pipe = complaint?;
        let _ = pipe.by_ref().take(COMPLAINT_BYTES_MAX).read_to_end(&mut output);
        // A program that complains at length must not stand still for it.
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        send.send(Some((1, output))).ok()
    });
    let end = Instant::now() + Duration::from_secs(bounds.seconds_max);
    let mut outputs = [Vec::new(), Vec::new()];
    let mut open = outputs.len();
    while open > 0 {
        let left = end.saturating_duration_since(Instant::now());
        match received.recv_timeout(left.min(bounds.asked_every)) {
            Ok(Some((place, output))) => {
                open -= 1;
                outputs[place] = output;
                let length = u64::try_from(outputs[0].len()).unwrap_or(u64::MAX);
                ensure!(length <= bounds.output_bytes_max, "{name} answers with too many bytes");
            }
            Ok(None) => bail!("the answer of {name} cannot be read"),
            Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                bail!("{name} took longer than {} seconds", bounds.seconds_max)
            }
            Err(_) => go_on()?,
        }
    }
    let status = child.end().with_context(|| format!("cannot wait for {name}"))?;
    let [output, complaint] = outputs;
    let complaint = String::from_utf8_lossy(&complaint).trim().to_owned();
    let Some(code) = status.code() else { bail!("{name} was killed: {status} {complaint}") };
    Ok(Ended { code, output, complaint })
}

/// A child and whatever it started.
struct Group(Child);

impl Group {
    /// Waits until the child has ended, and ends what it left behind.
    fn end(&mut self) -> std::io::Result<ExitStatus> {
        if let Some(pid) = self.pid() {
            // Unreaped, it keeps its number from being given to another group.
            waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
            let _ = kill_process_group(pid, Signal::KILL);
        }
        self.0.wait()
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.0.id()).ok().and_then(Pid::from_raw)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let (Some(pid), Ok(None)) = (self.pid(), self.0.try_wait()) {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = self.0.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, seconds_max: u64) -> anyhow::Result<Ended> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let bounds = Bounds { seconds_max, output_bytes_max: 10, asked_every: Duration::from_millis(20) };
        run(command, bounds, &mut || Ok(()))
    }

    #[test]
    fn a_program_is_read_to_its_end() {
        let ended = sh("echo so; echo but >&2; exit 3", 20).unwrap();
        assert_eq!((ended.code, ended.output.as_slice(), ended.complaint.as_str()), (3, &b"so\n"[..], "but"));
    }

    #[test]
    fn one_that_answers_without_end_or_not_at_all_is_ended_with_all_it_started() {
        assert!(sh("yes", 20).unwrap_err().to_string().contains("too many bytes"));
        let slow = sh("sleep 1000 & wait", 1).unwrap_err().to_string();
        assert!(slow.contains("longer than 1 seconds"), "{slow}");
        assert!(sh("kill -9 $$", 20).unwrap_err().to_string().contains("was killed"));
    }

    #[test]
    fn what_a_program_leaves_behind_ends_too() {
        // The one that is left has the pipe of the one before it, which closes with it.
        let (mut left, pipe) = std::io::pipe().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "exec 3>&0; sleep 1000 & exit 0"]).stdin(pipe);
        let mut child = Group(command.process_group(0).spawn().unwrap());
        drop(command);
        assert!(child.end().unwrap().success());
        assert_eq!(left.read_to_end(&mut Vec::new()).unwrap(), 0);
    }

    #[test]
    fn one_whose_job_is_lost_is_ended() {
        let mut command = Command::new("sleep");
        command.arg("1000");
        let bounds = Bounds { seconds_max: 900, output_bytes_max: 10, asked_every: Duration::from_millis(5) };
        let lost = run(command, bounds, &mut || bail!("the lease has ended"));
        assert_eq!(lost.unwrap_err().to_string(), "the lease has ended");
    }
}
