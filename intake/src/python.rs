//! The gate for Python functions: bytes, shape, reach, readability, then bandit.
//!
//! | file | what it does |
//! |---|---|
//! | `shape` | one `def run(inputs)`, and nothing that runs when the file is loaded |
//! | `reach` | imports, names and attributes, by every spelling |
//! | `readable` | what a person could not read |
//! | `bandit` | the linter, pinned, every severity |
//!
//! The kernel's sandbox is the boundary; this gate is for clarity, as the Python page promises it.

use ruff_python_ast::PythonVersion;
use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};
use ruff_text_size::Ranged;

use crate::finding::{Finding, Rule};
use crate::rules::python::{ENCODING, SIZE, SYNTAX};
use crate::source::{Lines, Piece, is_invisible};

pub mod bandit;
mod reach;
mod readable;
mod shape;

use bandit::Lint;

/// What the gate says.
#[derive(Debug, Default)]
pub struct Gate {
    /// What was found.
    pub findings: Vec<Finding>,
    /// Why a part of the gate could not be asked.
    pub held: Option<String>,
}

/// Checks a Python function; `lint` asks bandit.
pub fn check(name: &str, bytes: &[u8], lint: &dyn Fn(&str, &[u8]) -> Lint) -> Gate {
    let mut findings = check_source(name, bytes);
    let is_parsed = !findings.iter().any(|f| [SIZE.id, ENCODING.id, SYNTAX.id].contains(&f.rule.id));
    if !is_parsed {
        return Gate { findings, held: None };
    }
    match lint(name, bytes) {
        Lint::Findings(found) => {
            findings.extend(found);
            Gate { findings, held: None }
        }
        Lint::Held(why) => Gate { findings, held: Some(why) },
    }
}

/// Checks a Python function by reading it.
pub fn check_source(name: &str, bytes: &[u8]) -> Vec<Finding> {
    let max = policy::limits().work.python_bytes_max;
    if bytes.len() as u64 > max {
        return vec![Finding::whole(
            &SIZE,
            name,
            format!("{} bytes, more than the {max} allowed", bytes.len()),
        )];
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let good = bytes
                .get(..error.valid_up_to())
                .and_then(|b| std::str::from_utf8(b).ok())
                .unwrap_or_default();
            let place = Lines::of(good).place(good.len());
            return vec![Finding::at(&ENCODING, name, place, String::new(), "a byte here is not UTF-8")];
        }
    };
    let mut source =
        Source { name, text, lines: Lines::of(text), piece: Piece::file(text), findings: Vec::new() };
    source.characters();
    // The parser grows its stack itself; what walks over the tree gets one that the longest file cannot exhaust.
    let stack = policy::limits().check.script_stack_bytes_max;
    let is_read = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(stack).spawn_scoped(scope, || source.parse());
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(())) => true,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => false,
        }
    });
    if !is_read {
        source.findings.push(Finding::whole(&SIZE, name, "no memory left to check the file; try again"));
    }
    source.findings.sort_by(|a, b| (a.line, a.column, a.rule.id).cmp(&(b.line, b.column, b.rule.id)));
    source.findings.dedup_by(|a, b| (a.line, a.column, a.rule.id) == (b.line, b.column, b.rule.id));
    source.findings
}

/// A Python file under the gate.
struct Source<'s> {
    name: &'s str,
    text: &'s str,
    lines: Lines<'s>,
    piece: Piece<'s>,
    findings: Vec<Finding>,
}

impl Source<'_> {
    fn add(&mut self, rule: &'static Rule, range: std::ops::Range<usize>, what: impl Into<String>) {
        let place = self.lines.place(range.start);
        let excerpt = self.piece.excerpt(range);
        self.findings.push(Finding::at(rule, self.name, place, excerpt, what));
    }

    fn add_at(&mut self, rule: &'static Rule, node: &impl Ranged, what: impl Into<String>) {
        let range = node.range();
        self.add(rule, range.start().to_usize()..range.end().to_usize(), what);
    }

    /// Characters and coding lines that make the file something else than what is read.
    fn characters(&mut self) {
        let text = self.text;
        let start = if text.starts_with('\u{FEFF}') { 3 } else { 0 };
        for (at, c) in text.char_indices().skip_while(|(at, _)| *at < start) {
            if (c.is_control() && !matches!(c, '\n' | '\r' | '\t')) || is_invisible(c) {
                let what = format!("the invisible character U+{:04X}", u32::from(c));
                self.add(&ENCODING, at..at + c.len_utf8(), what);
                break;
            }
        }
        let mut at = 0;
        for line in text.split_inclusive(['\n', '\r']).take(3) {
            if let Some(name) = coding(line)
                && !["utf-8", "utf8", "utf_8", "utf-8-sig"].contains(&name.to_ascii_lowercase().as_str())
            {
                self.add(&ENCODING, at..at + line.len(), format!("a coding line that says {name}"));
            }
            at += line.len();
        }
    }

    fn parse(&mut self) {
        let text = self.text.strip_prefix('\u{FEFF}').unwrap_or(self.text);
        let options = ParseOptions::from(Mode::Module).with_target_version(PythonVersion::PY311);
        let Some(parsed) = parse_unchecked(text, options).try_into_module() else { return };
        let shift = self.text.len() - text.len();
        if let Some(error) = parsed.errors().first() {
            let at = error.location.start().to_usize() + shift;
            self.add(&SYNTAX, at..at + 40, format!("{}", error.error));
            return;
        }
        if let Some(error) = parsed.unsupported_syntax_errors().first() {
            let at = error.range.start().to_usize() + shift;
            self.add(&SYNTAX, at..at + 40, format!("{error}"));
            return;
        }
        if shift > 0 {
            self.add(&ENCODING, 0..3, "a byte order mark");
            return;
        }
        let indents: Vec<_> = parsed.tokens().iter().filter(|t| t.kind() == TokenKind::Indent).collect();
        let with = |c: char| indents.iter().find(|t| text[t.range()].contains(c));
        if let (Some(tab), Some(_)) = (with('\t'), with(' ')) {
            self.add_at(&SYNTAX, *tab, "tabs and spaces are mixed in the indentation, which Python refuses");
        }
        let body = &parsed.syntax().body;
        shape::check(self, body);
        reach::check(self, body);
        readable::check(self, body);
    }
}

/// The encoding that a line declares, as PEP 263 reads it.
fn coding(line: &str) -> Option<&str> {
    let comment = line.trim_start_matches([' ', '\t', '\u{C}']).strip_prefix('#')?;
    let (_, rest) = comment.split_once("coding")?;
    let rest = rest.strip_prefix([':', '='])?.trim_start_matches([' ', '\t']);
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c)).unwrap_or(rest.len());
    rest.get(..end).filter(|name| !name.is_empty())
}
