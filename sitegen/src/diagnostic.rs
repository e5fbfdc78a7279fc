//! Problems of the input: what a person wrote that cannot be published.
//!
//! They are collected, all of a stage at once, and leave the published site as it is. Failures of the machine (a full
//! disk, a missing permission) are errors instead.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// One problem, at a place in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Diagnostic {
    /// The file, relative to the source folder where it is in it.
    pub(crate) file: PathBuf,
    /// Line, from 1; 0 for the file as a whole.
    pub(crate) line: usize,
    /// Column in characters, from 1; 0 for the line as a whole.
    pub(crate) col: usize,
    /// What is wrong, with the value.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: String,
}

impl Diagnostic {
    /// A problem of a whole file.
    pub(crate) fn file(
        file: impl Into<PathBuf>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { file: file.into(), line: 0, col: 0, message: message.into(), hint: hint.into() }
    }

    /// A problem at a byte of `text`, the contents of `file`.
    pub(crate) fn at_byte(
        file: impl Into<PathBuf>,
        text: &str,
        byte: usize,
        message: impl Into<String>,
    ) -> Self {
        let before = &text[..text.floor_char_boundary(byte)];
        let line = before.matches('\n').count() + 1;
        let col = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Self { line, col, ..Self::file(file, message, "") }
    }

    /// The same with advice.
    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.col)?;
        }
        write!(f, ": {}", self.message)?;
        if !self.hint.is_empty() {
            write!(f, "\n  {}", self.hint)?;
        }
        Ok(())
    }
}

/// Why something was not done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input has these problems.
    Input(Vec<Diagnostic>),
    /// The machine failed: a full disk, a missing permission, somebody else writing.
    Machine(anyhow::Error),
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::Input(vec![diagnostic])
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Machine(error.into())
    }
}

/// Where the first occurrence of `needle` is among the files that could have written it.
pub(crate) fn locate<'a>(
    sources: impl IntoIterator<Item = (&'a Path, &'a str)>,
    needle: &str,
) -> Option<(PathBuf, &'a str, usize)> {
    sources.into_iter().find_map(|(file, text)| Some((file.to_owned(), text, text.find(needle)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let text = "ab\ncdé\nf";
        for (byte, line, col) in [(0, 1, 1), (2, 1, 3), (3, 2, 1), (7, 2, 4), (8, 3, 1), (99, 3, 2)] {
            let d = Diagnostic::at_byte("x", text, byte, "m");
            assert_eq!((d.line, d.col), (line, col), "{byte}");
        }
        let d = Diagnostic::at_byte("x.md", text, 3, "bad").hint("mend it");
        assert_eq!(d.to_string(), "x.md:2:1: bad\n  mend it");
        assert_eq!(Diagnostic::file("x.md", "bad", "").to_string(), "x.md: bad");
    }
}
