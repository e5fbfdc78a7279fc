//! bandit, asked as the server asks it: one pinned release, every severity, `# nosec` ignored, B311 off.
//!
//! | file | whom it asks |
//! |---|---|
//! | `program` | the program on a creator's machine, with the file on its standard input |
//! | `runner` | a runner that keeps bandit warm, over its socket |
//!
//! Both answer with the same JSON, and [`read`] makes findings of it. Anything but a complete answer holds the work: a
//! linter that is missing, crashes or takes too long has not passed anything.

mod program;
mod runner;

use std::path::PathBuf;

use serde::Deserialize;

use crate::finding::Finding;
use crate::rules::python::{BANDIT, SYNTAX};
use crate::source::shorten;

/// Where bandit is.
#[derive(Debug)]
pub struct Bandit {
    place: Place,
    seconds: u64,
}

#[derive(Debug)]
enum Place {
    /// A program of that name or path.
    Program(PathBuf),
    /// The socket of a runner.
    Runner(PathBuf),
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
    errors: Vec<Unread>,
    results: Vec<Issue>,
}

/// A file that bandit could not read.
#[derive(Deserialize)]
struct Unread {
    reason: String,
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

/// Reads a complete answer of bandit about the file `name`.
pub fn read(name: &str, answer: &[u8]) -> Lint {
    let answer: Answer = match serde_json::from_slice(answer) {
        Ok(answer) => answer,
        Err(error) => return Lint::Held(format!("bandit's answer cannot be read: {error}")),
    };
    match answer.errors.first() {
        // It says so after Python's own parser did, which knows limits that the grammar does not have.
        Some(unread) if unread.reason.starts_with("syntax error") => {
            let what = "Python itself cannot parse this file; a number may have too many digits, or a line too many levels";
            return Lint::Findings(vec![Finding::whole(&SYNTAX, name, what)]);
        }
        Some(unread) => {
            return Lint::Held(format!("bandit could not read the file: {}", shorten(&unread.reason)));
        }
        None => {}
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
        Self::new(Place::Program(program.into()))
    }

    /// bandit as the runner at that socket has it.
    pub fn of_runner(socket: impl Into<PathBuf>) -> Self {
        Self::new(Place::Runner(socket.into()))
    }

    fn new(place: Place) -> Self {
        Self { place, seconds: policy::lint().bandit.seconds_max.into() }
    }

    /// The same, with another patience.
    pub fn with_seconds(self, seconds: u64) -> Self {
        Self { seconds, ..self }
    }

    /// Asks bandit about a file.
    pub fn lint(&self, name: &str, source: &[u8]) -> Lint {
        match &self.place {
            Place::Program(program) => program::lint(program, self.seconds, name, source),
            Place::Runner(socket) => match runner::ask(socket, self.seconds, source) {
                Ok(answer) => read(name, &answer),
                Err(why) => Lint::Held(why),
            },
        }
    }
}
