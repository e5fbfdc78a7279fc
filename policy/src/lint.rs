//! `lint.toml` as types: what intake reads in a Python function beside its imports, and how bandit is asked.

use std::sync::LazyLock;

use serde::Deserialize;

/// The rules in force.
pub fn lint() -> &'static Lint {
    static LINT: LazyLock<Lint> =
        LazyLock::new(|| crate::embedded("lint.toml", include_str!("../data/lint.toml")));
    &LINT
}

/// The whole of `lint.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lint {
    /// The form of the function.
    pub function: Function,
    /// Names of functions and attributes.
    pub names: Names,
    /// The linter.
    pub bandit: Bandit,
}

/// The form of the function.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Function {
    /// The name of the only entry point.
    pub entry: String,
    /// The name of its only parameter.
    pub parameter: String,
}

/// Names of functions and attributes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Names {
    /// Functions that are rejected on sight.
    pub calls: Vec<String>,
    /// Names with two underscores that may be used.
    pub dunder: Vec<String>,
}

/// The linter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bandit {
    /// The release whose answer counts.
    pub version: String,
    /// Tests that are off.
    pub skip: Vec<String>,
    /// How long it may take.
    pub seconds_max: u32,
    /// How long its answer may be.
    pub answer_bytes_max: u64,
}

impl Bandit {
    /// The arguments of the one command that is run, wherever it is run.
    pub fn arguments(&self) -> Vec<String> {
        let mut words: Vec<String> = ["-q", "-f", "json", "--ignore-nosec"].map(str::to_owned).into();
        if !self.skip.is_empty() {
            words.extend(["-s".to_owned(), self.skip.join(",")]);
        }
        words.push("-".to_owned());
        words
    }
}
