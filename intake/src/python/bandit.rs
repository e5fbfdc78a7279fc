//! bandit, asked as the server asks it: one pinned release, every severity, `# nosec` ignored, B311 off.
//!
//! `bandit -q -f json --ignore-nosec -s B311 -` with the file on its standard input. Anything but a complete answer of
//! that release holds the work: a linter that is missing, crashes or takes too long has not passed anything.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::finding::Finding;
use crate::rules::python::BANDIT;
use crate::source::shorten;

/// The most that is read of an answer.
const ANSWER_BYTES: u64 = 4 << 20;

/// Where bandit is.
#[derive(Debug)]
pub struct Bandit {
    program: PathBuf,
    seconds: u64,
}

/// What came of asking.
#[derive(Debug)]
pub enum Lint {
    /// A complete answer.
    Findings(Vec<Finding>),
    /// None, and why.
    Held(String),
}

impl Default for Bandit {
    fn default() -> Self {
        Self::at("bandit")
    }
}

#[derive(Deserialize)]
struct Answer {
    errors: Vec<serde_json::Value>,
    results: Vec<Issue>,
}

#[derive(Deserialize)]
struct Issue {
    code: String,
    col_offset: usize,
    issue_severity: String,
    issue_text: String,
    line_number: usize,
    more_info: String,
    test_id: String,
}

/// The arguments of the one command that is run.
pub fn arguments() -> Vec<String> {
    let mut words: Vec<String> = ["-q", "-f", "json", "--ignore-nosec"].map(str::to_owned).into();
    let skip = &policy::lint().bandit.skip;
    if !skip.is_empty() {
        words.extend(["-s".to_owned(), skip.join(",")]);
    }
    words.push("-".to_owned());
    words
}

/// Reads a complete answer of bandit about the file `name`.
pub fn read(name: &str, answer: &[u8]) -> Lint {
    let answer: Answer = match serde_json::from_slice(answer) {
        Ok(answer) => answer,
        Err(error) => return Lint::Held(format!("bandit's answer cannot be read: {error}")),
    };
    if !answer.errors.is_empty() {
        return Lint::Held("bandit could not read the file".to_owned());
    }
    let finding = |issue: Issue| {
        let severity = issue.issue_severity.to_ascii_lowercase();
        let what = format!("{} ({severity}): {} {}", issue.test_id, issue.issue_text, issue.more_info);
        let excerpt = issue.code.lines().find(|l| l.starts_with(&format!("{} ", issue.line_number)));
        let excerpt = excerpt.and_then(|l| l.split_once(' ')).map_or("", |(_, code)| code);
        Finding::at(&BANDIT, name, (issue.line_number, issue.col_offset + 1), shorten(excerpt), what)
    };
    Lint::Findings(answer.results.into_iter().map(finding).collect())
}

impl Bandit {
    /// bandit as a program of that name or path.
    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), seconds: policy::lint().bandit.seconds_max }
    }

    /// The same, with another patience.
    pub fn with_seconds(self, seconds: u64) -> Self {
        Self { seconds, ..self }
    }

    /// Asks bandit about a file.
    pub fn lint(&self, name: &str, source: &[u8]) -> Lint {
        let pinned = &policy::lint().bandit.version;
        let install = format!("pip install bandit=={pinned}");
        let version = match self.run(&["--version".to_owned()], b"") {
            Ok((_, output)) => String::from_utf8_lossy(&output).into_owned(),
            Err(why) => return Lint::Held(format!("{why} ({install})")),
        };
        let found =
            version.lines().next().and_then(|l| l.strip_prefix("bandit ")).unwrap_or("of an unknown release");
        if found.trim() != pinned {
            return Lint::Held(format!("bandit {found} is installed, and only {pinned} counts ({install})"));
        }
        match self.run(&arguments(), source) {
            Ok((0 | 1, output)) => read(name, &output),
            Ok((code, _)) => Lint::Held(format!("bandit ended with exit code {code}")),
            Err(why) => Lint::Held(why),
        }
    }

    /// Runs the program with `input` and reads its output, both bounded by policy.
    fn run(&self, arguments: &[String], input: &[u8]) -> Result<(i32, Vec<u8>), String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut child = Command::new(&self.program)
            .args(arguments)
            .env_clear()
            .env("PATH", path)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(std::env::temp_dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("bandit cannot be started: {error}"))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take();
        let input = input.to_vec();
        // The threads end with the pipes; one that something else still holds open is left behind, not waited for.
        std::thread::spawn(move || stdin.map(|mut pipe| pipe.write_all(&input)));
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut output = Vec::new();
            let is_read = stdout.is_some_and(|pipe| pipe.take(ANSWER_BYTES).read_to_end(&mut output).is_ok());
            send.send(is_read.then_some(output))
        });
        let code = wait(&mut child, self.seconds)?;
        match receive.recv_timeout(Duration::from_secs(1)) {
            Ok(Some(output)) => Ok((code, output)),
            _ => Err("bandit's answer could not be read".to_owned()),
        }
    }
}

/// Waits for the program, but not longer than that.
fn wait(child: &mut Child, seconds: u64) -> Result<i32, String> {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.code().ok_or_else(|| "bandit was killed".to_owned()),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("bandit took longer than {seconds} seconds"));
            }
            Err(error) => return Err(format!("bandit cannot be waited for: {error}")),
        }
    }
}
