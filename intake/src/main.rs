//! The program `intake`: the gates on a creator's own machine.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use intake::finding::Severity;
use intake::play::{self, Backend, Work};
use intake::python::bandit::Bandit;
use intake::rules;
use intake::submission::{Report, Submission, Verdict};

const HELP: &str = "\
intake: the checks that every submission to tinyfiles passes, on your own machine

  intake check PATH [--json]    check a page, a Python function, a sidecar, a folder or a zip; a function is also read by
                                bandit, from the PATH or, with --runner SOCKET, as a running `runner serve` has it
  intake pack PATH [-o FOLDER]  put scripts, styles, images, sounds, fonts and tf.js into the page; PATH is a page or its
                                folder, FOLDER is `packed` beside the page unless you name another
  intake play PATH [--json]     play a page, or the page of a folder or a zip, for five seconds in a headless Chromium, apart
                                from the network; -o FILE writes a picture of the screen. A page with a Python function is
                                played twice: while it answers, through `runner call` or --runner SOCKET, and while Python
                                is closed
  intake rules [ID] [--json]    list the rules, or show one with its examples; --markdown: the page /rules.html

exit codes
  0  accepted: nothing stands against it
  1  rejected: at least one finding must be mended or explained; pack: something could not be put inside
  2  the command line is wrong
  3  a file cannot be read or written
  4  held: a check could not be run (bandit is missing, crashed or took too long; play: there was no run)
";

/// What the command line asks for.
struct Command {
    verb: String,
    operand: Option<String>,
    output: Option<PathBuf>,
    runner: Option<PathBuf>,
    json: bool,
    markdown: bool,
}

fn main() -> ExitCode {
    let Some(command) = parse(std::env::args().skip(1)) else {
        return usage();
    };
    let result = match (command.verb.as_str(), &command.operand) {
        ("help", _) => print(HELP).map(|()| ExitCode::SUCCESS),
        ("check", Some(path)) => check(Path::new(path), &command),
        ("pack", Some(path)) => pack(Path::new(path), command.output.as_deref()),
        ("play", Some(path)) => play(Path::new(path), &command),
        ("rules", None) if command.markdown => print(&rules::markdown::page()).map(|()| ExitCode::SUCCESS),
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
        return Some(Command {
            verb: "help".into(),
            operand: None,
            output: None,
            runner: None,
            json: false,
            markdown: false,
        });
    }
    let mut command =
        Command { verb, operand: None, output: None, runner: None, json: false, markdown: false };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--markdown" => command.markdown = true,
            "--json" => command.json = true,
            "--runner" => command.runner = Some(words.next()?.into()),
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

fn check(path: &Path, command: &Command) -> Done {
    let bandit = command.runner.as_ref().map_or_else(Bandit::default, Bandit::of_runner);
    let report = Submission::open(path)?.check(&bandit);
    if command.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&report)?))?;
    } else {
        print(&in_words(&report))?;
    }
    Ok(code(report.verdict))
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
    let count = report.findings.iter().filter(|f| f.severity > Severity::Note).count();
    text.push_str(&match report.verdict {
        Verdict::Accepted => format!("{}: accepted\n", report.submission),
        Verdict::Rejected => format!("{}: rejected, {count} to mend or explain\n", report.submission),
        Verdict::Held => format!("{}: held, since not every check could be run\n", report.submission),
    });
    text
}

fn pack(path: &Path, output: Option<&Path>) -> Done {
    let page = if path.is_dir() { play::page_in(path)? } else { path.to_owned() };
    let folder = page.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let html = std::fs::read_to_string(&page).map_err(|e| format!("cannot read {}: {e}", page.display()))?;
    let packed = intake::pack::pack(&html, folder);
    let output = output.map_or_else(|| folder.join("packed"), Path::to_owned);
    std::fs::create_dir_all(&output)?;
    let target = output.join("index.html");
    std::fs::write(&target, &packed.html).map_err(|e| format!("cannot write {}: {e}", target.display()))?;
    let mut text: String = packed.done.iter().map(|d| format!("{d}\n")).collect();
    for entry in std::fs::read_dir(folder)?.filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let goes_along = name == "work.json" || name.ends_with(".py") || name.starts_with("cover.");
        let to = output.join(&name);
        if goes_along && entry.file_type()?.is_file() && to != entry.path() {
            std::fs::copy(entry.path(), &to)?;
            text.push_str(&format!("copied {name}\n"));
        }
    }
    if packed.html == html {
        text.push_str("nothing to pack: the page holds everything it needs\n");
    }
    for left in &packed.left {
        text.push_str(&format!("left: {left}\n"));
    }
    text.push_str(&format!("{}: {} bytes\n", target.display(), packed.html.len()));
    print(&text)?;
    Ok(ExitCode::from(u8::from(!packed.left.is_empty())))
}

/// Plays a work, and keeps the picture of the first run that took place.
fn play(path: &Path, command: &Command) -> Done {
    let work = Work::open(path)?;
    let backend = work.function().map(|function| Backend::of(command.runner.as_deref(), function));
    let report = play::start(&work, "chromium").play(&backend.unwrap_or(Backend::Closed));
    if let (Some(output), Some(picture)) = (&command.output, &report.screenshot) {
        std::fs::write(output, picture).map_err(|e| format!("cannot write {}: {e}", output.display()))?;
    }
    if command.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&report)?))?;
    } else {
        print(&played_in_words(path, &report))?;
    }
    Ok(code(report.verdict))
}

fn played_in_words(path: &Path, report: &play::Report) -> String {
    let mut text: String = report.findings.iter().map(|finding| format!("{finding}\n")).collect();
    for run in &report.runs {
        let condition = if run.condition.is_empty() { String::new() } else { format!("{}: ", run.condition) };
        text.push_str(&match run.longest_task_ms {
            Some(ms) => format!("{condition}played, longest task {ms} ms\n"),
            None => format!("{condition}not run\n"),
        });
    }
    if let Some(held) = &report.held {
        text.push_str(&format!("held: {held}\n"));
    }
    let count = report.findings.iter().filter(|f| f.severity > Severity::Note).count();
    let verdict = match report.verdict {
        Verdict::Accepted => "played, nothing to mend".to_owned(),
        Verdict::Rejected => format!("played, {count} to mend or explain"),
        Verdict::Held => "held, since not every run took place".to_owned(),
    };
    text + &format!("{}: {verdict}\n", path.display())
}

fn code(verdict: Verdict) -> ExitCode {
    ExitCode::from(match verdict {
        Verdict::Accepted => 0,
        Verdict::Rejected => 1,
        Verdict::Held => 4,
    })
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
