//! The program `intake`: the gates on a creator's own machine.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use intake::python::bandit::Bandit;
use intake::rules;
use intake::submission::{Report, Submission, Verdict};

const HELP: &str = "\
intake: the checks that every submission to tinyfiles passes, on your own machine

  intake check PATH [--json]    check a page, a Python function, a sidecar, a folder or a zip
  intake pack PATH [-o FILE]    put scripts, styles, images, sounds and fonts into the page
  intake rules [ID] [--json]    list the rules, or show one with its examples

exit codes
  0  accepted: nothing stands against it
  1  rejected: at least one finding must be mended or explained
  2  the command line is wrong
  3  a file cannot be read or written
  4  held: a check could not be run (bandit is missing, crashed or took too long)
";

/// What the command line asks for.
struct Command {
    verb: String,
    operand: Option<String>,
    output: Option<PathBuf>,
    json: bool,
}

fn main() -> ExitCode {
    let Some(command) = parse(std::env::args().skip(1)) else {
        return usage();
    };
    let result = match (command.verb.as_str(), &command.operand) {
        ("help", _) => print(HELP).map(|()| ExitCode::SUCCESS),
        ("check", Some(path)) => check(Path::new(path), command.json),
        ("rules", id) => list(id.as_deref(), command.json),
        _ => return usage(),
    };
    result.unwrap_or_else(|error| {
        let mut text = format!("intake: {error}");
        let mut source = error.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        let _ = writeln!(std::io::stderr(), "{text}");
        ExitCode::from(3)
    })
}

fn usage() -> ExitCode {
    let _ = std::io::stderr().write_all(HELP.as_bytes());
    ExitCode::from(2)
}

fn parse(mut words: impl Iterator<Item = String>) -> Option<Command> {
    let verb = words.next()?;
    if matches!(verb.as_str(), "--help" | "-h" | "help") {
        return Some(Command { verb: "help".into(), operand: None, output: None, json: false });
    }
    let mut command = Command { verb, operand: None, output: None, json: false };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--json" => command.json = true,
            "-o" | "--output" => command.output = Some(words.next()?.into()),
            "--help" | "-h" => command.verb = "help".into(),
            word if word.starts_with('-') || command.operand.is_some() => return None,
            _ => command.operand = Some(word),
        }
    }
    Some(command)
}

type Done = Result<ExitCode, Box<dyn std::error::Error>>;

/// Prints; a reader that has gone away is no error.
fn print(text: &str) -> Result<(), Box<dyn std::error::Error>> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

fn check(path: &Path, json: bool) -> Done {
    let report = Submission::open(path)?.check(&Bandit::default());
    if json {
        print(&format!("{}\n", serde_json::to_string_pretty(&report)?))?;
    } else {
        print(&in_words(&report))?;
    }
    Ok(ExitCode::from(match report.verdict {
        Verdict::Accepted => 0,
        Verdict::Rejected => 1,
        Verdict::Held => 4,
    }))
}

fn in_words(report: &Report) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        text.push_str(&format!("{finding}\n"));
    }
    for file in &report.files {
        text.push_str(&format!("{}  {} ({} bytes)\n", file.sha256, file.name, file.bytes));
    }
    if !report.uses.is_empty() {
        let uses: Vec<_> = report.uses.iter().map(ToString::to_string).collect();
        text.push_str(&format!("uses: {}\n", uses.join(", ")));
    }
    if let Some(held) = &report.held {
        text.push_str(&format!("held: {held}\n"));
    }
    let count = report.findings.iter().filter(|f| f.severity > intake::finding::Severity::Note).count();
    text.push_str(&match report.verdict {
        Verdict::Accepted => format!("{}: accepted\n", report.submission),
        Verdict::Rejected => format!("{}: rejected, {count} to mend or explain\n", report.submission),
        Verdict::Held => format!("{}: held, since not every check could be run\n", report.submission),
    });
    text
}

fn list(id: Option<&str>, json: bool) -> Done {
    let chosen: Vec<_> = rules::all().into_iter().filter(|r| id.is_none_or(|id| r.id == id)).collect();
    if chosen.is_empty() {
        return Err(format!("there is no rule {}", id.unwrap_or_default()).into());
    }
    if json {
        print(&format!("{}\n", serde_json::to_string_pretty(&chosen)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    let mut category = None;
    for rule in &chosen {
        if id.is_none() {
            if category.replace(rule.category) != Some(rule.category) {
                text.push_str(&format!("\n{}\n", rule.category.title()));
            }
            text.push_str(&format!("  {:22} {:16} {}\n", rule.id, rule.severity.to_string(), rule.title));
        } else {
            text.push_str(&format!("{} ({}, {})\n", rule.title, rule.id, rule.severity));
            text.push_str(&format!("  why: {}\n  fix: {}\n", rule.why, rule.fix));
            text.push_str(&format!("  found in:\n{}\n", indented(rule.fails.text)));
            text.push_str(&format!("  left alone:\n{}\n", indented(rule.passes.text)));
        }
    }
    print(text.trim_start_matches('\n'))?;
    Ok(ExitCode::SUCCESS)
}

fn indented(text: &str) -> String {
    text.lines().map(|l| format!("    {l}")).collect::<Vec<_>>().join("\n")
}
