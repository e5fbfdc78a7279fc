//! `api doctor`: one line for each thing that an installation needs, asked of the thing itself.
//!
//! | module | what it looks at |
//! |---|---|
//! | [`files`] | the data folder: rights, room, databases, the secret, the tree that is served |
//! | [`jobs`] | what is to be done: whether anything is stuck or failed, and the last verification |
//! | [`services`] | what runs: nginx, API, worker, runner, the browser, the units |
//!
//! Called by `main`. It changes nothing but a file that it makes in the data folder and removes. Run it as the user of the
//! services: what that user cannot open is missing. What seals a Python function is `runner doctor`'s.

mod files;
mod jobs;
mod services;

use std::fmt::Write as _;
use std::path::Path;

use catalog::health::Health;
use policy::Config;
use serde::Serialize;

use crate::work::now;

/// How it stands with a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it must be.
    Ok,
    /// Nothing is wrong, and there is something to know.
    Note,
    /// Not as it must be.
    Wrong,
}

/// One thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Its name.
    pub thing: &'static str,
    /// How it stands.
    pub state: State,
    /// What was looked at, and what was seen.
    pub seen: String,
    /// What to do when it is not as it must be.
    pub remedy: &'static str,
}

/// What was seen, on its way to its line.
struct Seen(State, String);

fn ok(text: impl Into<String>) -> Seen {
    Seen(State::Ok, text.into())
}

fn note(text: impl Into<String>) -> Seen {
    Seen(State::Note, text.into())
}

fn wrong(text: impl Into<String>) -> Seen {
    Seen(State::Wrong, text.into())
}

impl From<Result<String, String>> for Seen {
    fn from(found: Result<String, String>) -> Self {
        found.map_or_else(wrong, ok)
    }
}

/// Looks at every thing, those first that others need. `file` is the configuration's.
pub fn look(config: &Config, file: &Path) -> Vec<Line> {
    let health = Health::of(&config.data.join("catalog.db"), now());
    let (files, services) = (files::look(config), services::look(config, file));
    let all = files.into_iter().chain(jobs::look(&health, config)).chain(services);
    all.map(|(thing, Seen(state, seen), remedy)| Line { thing, state, seen, remedy }).collect()
}

/// Whether nothing is wrong.
pub fn is_well(lines: &[Line]) -> bool {
    lines.iter().all(|line| line.state != State::Wrong)
}

/// The lines as text.
pub fn report(lines: &[Line]) -> String {
    let mut text = String::new();
    for Line { thing, state, seen, remedy } in lines {
        let word = match state {
            State::Ok => "ok",
            State::Note => "note",
            State::Wrong => "WRONG",
        };
        let seen = seen.replace('\n', " ");
        let _ = write!(text, "{word:<6} {thing:<15} {seen}");
        let _ = if *state == State::Wrong { writeln!(text, " -> {remedy}") } else { writeln!(text) };
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_wrong_and_what_to_do() {
        let line = |Seen(state, seen)| Line { thing: "saves", state, seen, remedy: "do this" };
        let lines = [line(ok("here")), line(note("look")), line(wrong("gone\naway"))];
        let text = "ok     saves           here\nnote   saves           look\nWRONG  saves           gone away -> do this";
        assert_eq!(report(&lines), text);
        assert!(!is_well(&lines) && is_well(&lines[..2]));
        let json = serde_json::to_value(&lines[2]).unwrap();
        assert_eq!(json["state"], "wrong");
    }
}
