//! The gate: whether Python is open, and why not.
//!
//! A proof is a full pass of the suite. It is bound to what it proved: the program's bytes, the policy, the kernel.
//! Anything else in their place, or no proof, and the gate is closed. Every run is kept, failures included, in
//! `suite-runs.jsonl`; `python-status.json` beside it says the same for the site's status page, and nginx serves it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::confine::seccomp;
use crate::suite::{self, Finished};
use crate::sys::process;

/// What a proof holds for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// SHA-256 of the program.
    pub build: String,
    /// SHA-256 of limits, module lists, filters and the suite.
    pub policy: String,
    /// Release and version of the kernel.
    pub kernel: String,
}

/// One line of the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// What was proved, or not.
    #[serde(flatten)]
    pub subject: Subject,
    /// Seconds since 1970.
    pub at: u64,
    /// All passed.
    pub passed: bool,
    /// How many attacks were run, in both modes.
    pub attacks: usize,
    /// What failed, by name and mode.
    pub failures: Vec<String>,
    /// Who is credited for the attacks that succeeded.
    #[serde(default)]
    pub reporters: Vec<String>,
}

/// The history, a run in each line.
const RUNS: &str = "suite-runs.jsonl";

/// Open, or closed for a reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// A full pass holds for this program, policy and kernel.
    Open(Run),
    /// None does.
    Closed(String),
}

/// The folder with the history.
#[derive(Debug, Clone)]
pub struct Gate {
    folder: PathBuf,
    subject: Subject,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

impl Subject {
    /// What runs now.
    pub fn current(program: &Path) -> io::Result<Subject> {
        let mut policy = Sha256::new();
        for (name, text) in policy::sources().into_iter().chain(seccomp::sources()) {
            policy.update(format!("{name} {}\n", text.len()));
            policy.update(text);
        }
        policy.update(suite::SOURCE);
        Ok(Subject {
            build: hex(&Sha256::digest(fs::read(program)?)),
            policy: hex(&policy.finalize()),
            kernel: process::kernel()?,
        })
    }
}

impl Gate {
    /// The gate of `program`, with its history in `folder`.
    pub fn open_in(folder: &Path, program: &Path) -> io::Result<Gate> {
        fs::create_dir_all(folder)?;
        Ok(Gate { folder: folder.to_owned(), subject: Subject::current(program)? })
    }

    /// Every run so far, oldest first. A line that cannot be read counts as a failed run of nothing known.
    pub fn history(&self) -> io::Result<Vec<Run>> {
        let text = match fs::read_to_string(self.folder.join(RUNS)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
            other => other?,
        };
        Ok(text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect())
    }

    /// Decides from the last run for what runs now.
    pub fn state(&self) -> io::Result<State> {
        let last = self.history()?.into_iter().rev().find(|r| r.subject == self.subject);
        Ok(match last {
            None => State::Closed("the suite has not passed for this program, policy and kernel".to_owned()),
            Some(run) if !run.passed => {
                State::Closed(format!("the suite failed: {}", run.failures.join("; ")))
            }
            Some(run) => State::Open(run),
        })
    }

    /// Keeps a run. Only a full one of the published suite may be kept.
    pub fn keep(&self, finished: &Finished) -> io::Result<Run> {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let broken = |row: &&serde_json::Value| {
            row["guarded"]["blocked"] == false || row["bare"]["blocked"] == false || row["control"] == "fails"
        };
        let rows = finished.report["attacks"].as_array().map_or(&[][..], Vec::as_slice);
        let reporters =
            rows.iter().filter(broken).filter_map(|r| r["reported"].as_str().map(str::to_owned)).collect();
        let run = Run {
            subject: self.subject.clone(),
            at,
            passed: finished.failures.is_empty(),
            attacks: finished.attacks,
            failures: finished.failures.clone(),
            reporters,
        };
        self.append(&run)?;
        Ok(run)
    }

    /// Closes the gate for a reason found outside the suite, until the next full pass.
    pub fn close(&self, why: &str) -> io::Result<()> {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let failures = vec![why.to_owned()];
        self.append(&Run {
            subject: self.subject.clone(),
            at,
            passed: false,
            attacks: 0,
            failures,
            reporters: Vec::new(),
        })
    }

    fn append(&self, run: &Run) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(self.folder.join(RUNS))?;
        file.write_all(format!("{}\n", serde_json::to_string(run)?).as_bytes())?;
        file.sync_data()?;
        self.publish()
    }

    /// Writes what the status page shows: whether Python is open, for what, and every run, newest first.
    pub fn publish(&self) -> io::Result<()> {
        let (state, why) = match self.state()? {
            State::Open(_) => ("open", None),
            State::Closed(why) => ("closed", Some(why)),
        };
        let runs: Vec<Run> = self.history()?.into_iter().rev().collect();
        let status = json!({"state": state, "why": why, "now": self.subject, "runs": runs});
        let (beside, place) =
            (self.folder.join(".python-status.new"), self.folder.join("python-status.json"));
        fs::write(&beside, status.to_string())?;
        fs::rename(beside, place)
    }

    /// What runs now.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(failures: &[&str]) -> Finished {
        let rows = serde_json::json!({"attacks": [{"guarded": {"blocked": false}, "bare": {"blocked": true},
            "control": "succeeds", "reported": "Ada"}]});
        Finished { report: rows, attacks: 1, failures: failures.iter().map(|f| (*f).to_owned()).collect() }
    }

    #[test]
    fn closed_until_proved_for_this_very_subject() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        fs::write(&program, "one").unwrap();
        let gate = Gate::open_in(folder.path(), &program).unwrap();
        assert!(matches!(gate.state().unwrap(), State::Closed(_)));
        gate.keep(&finished(&[])).unwrap();
        assert!(matches!(gate.state().unwrap(), State::Open(_)));
        // Another build is another subject.
        fs::write(&program, "two").unwrap();
        let other = Gate::open_in(folder.path(), &program).unwrap();
        assert!(matches!(other.state().unwrap(), State::Closed(_)));
        assert!(matches!(gate.state().unwrap(), State::Open(_)));
        // One failure closes; only a full pass opens again.
        gate.keep(&finished(&["read_etc_passwd (bare): it succeeded"])).unwrap();
        let State::Closed(why) = gate.state().unwrap() else { panic!("open") };
        assert!(why.contains("read_etc_passwd"));
        assert_eq!(gate.history().unwrap().last().unwrap().reporters, ["Ada"]);
        gate.keep(&finished(&[])).unwrap();
        gate.close("an inspection failed").unwrap();
        assert!(matches!(gate.state().unwrap(), State::Closed(_)));
        assert_eq!(gate.history().unwrap().len(), 4);
        // The status page has the same, newest first.
        let status = fs::read_to_string(folder.path().join("python-status.json")).unwrap();
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        assert_eq!((&status["state"], status["runs"].as_array().unwrap().len()), (&json!("closed"), 4));
        assert_eq!(status["runs"][0]["failures"], json!(["an inspection failed"]));
        assert_eq!(status["runs"][2]["reporters"], json!(["Ada"]));
        assert_eq!(status["now"]["build"], gate.subject().build);
    }
}
