//! bandit as it answers, and everything that can keep it from answering.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use intake::python::bandit::{Bandit, Lint, read};
use intake::submission::{File, Submission, Verdict};

const SOURCE: &[u8] = b"def run(inputs):\n    return {}\n";

/// A program that answers as `script` says; `$1` is the first argument.
fn fake(folder: &tempfile::TempDir, script: &str) -> Bandit {
    let path: PathBuf = folder.path().join("bandit");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    Bandit::at(path)
}

fn held(lint: Lint) -> String {
    match lint {
        Lint::Held(why) => why,
        Lint::Findings(findings) => panic!("an answer: {findings:?}"),
    }
}

fn version() -> String {
    format!("[ \"$1\" = --version ] && {{ echo 'bandit {}'; exit; }}", policy::lint().bandit.version)
}

#[test]
fn an_answer_of_the_pinned_release_becomes_findings() {
    let answer = include_bytes!("corpus/bandit-answer.json");
    let Lint::Findings(findings) = read("work.py", answer) else { panic!() };
    let lines: Vec<_> =
        findings.iter().map(|f| (f.line, f.column, f.what.split(':').next().unwrap())).collect();
    assert_eq!(lines, [(2, 5, "B101 (low)"), (3, 18, "B307 (medium)"), (4, 16, "B105 (low)")]);
    assert!(findings.iter().all(|f| f.rule.id == "python-bandit"));
    let Lint::Findings(none) = read("work.py", br#"{"errors": [], "results": []}"#) else { panic!() };
    assert!(none.is_empty());
}

#[test]
fn what_is_no_complete_answer_holds_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let asked = |script: &str| held(fake(&folder, script).lint("work.py", SOURCE));
    assert!(held(Bandit::at("/nowhere/bandit").lint("work.py", SOURCE)).contains("pip install bandit=="));
    assert!(asked("echo 'bandit 1.0.0'").contains("only"));
    assert!(asked("exit 3").contains("unknown release"));
    assert!(asked(&format!("{}\nkill -9 $$", version())).contains("killed"));
    assert!(asked(&format!("{}\nexit 2", version())).contains("exit code 2"));
    assert!(asked(&format!("{}\necho broken", version())).contains("cannot be read"));
    assert!(asked(&format!("{}\ncat >/dev/null; exit 0", version())).contains("cannot be read"));
    let errors = r#"echo '{"errors": [{"reason": "x"}], "results": []}'"#;
    assert!(asked(&format!("{}\n{errors}", version())).contains("could not read the file"));
    let endless =
        format!("{}\nwhile :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done", version());
    assert!(!asked(&endless).is_empty());
}

#[test]
fn a_slow_bandit_holds_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let bandit = fake(&folder, &format!("{}\nsleep 600", version())).with_seconds(1);
    let start = std::time::Instant::now();
    assert!(held(bandit.lint("work.py", SOURCE)).contains("longer than 1 second"));
    assert!(start.elapsed().as_secs() < 60);
}

/// `./dev test` installs the pinned release and puts it on the path.
#[test]
fn the_pinned_release_itself_answers() {
    let lines = |source: &[u8]| match Bandit::at("bandit").lint("work.py", source) {
        Lint::Findings(findings) => findings.iter().map(|f| f.line).collect::<Vec<_>>(),
        Lint::Held(why) => panic!("{why}"),
    };
    assert_eq!(lines(SOURCE), Vec::<usize>::new());
    // What the grammar allows and Python does not.
    let digits = "9".repeat(5_000);
    let Lint::Findings(findings) =
        Bandit::at("bandit").lint("work.py", format!("def run(inputs):\n    return {digits}\n").as_bytes())
    else {
        panic!()
    };
    assert_eq!(findings.iter().map(|f| f.rule.id).collect::<Vec<_>>(), ["python-syntax"]);
    assert_eq!(lines(b"def run(inputs):\n    assert inputs\n    return eval('1')  # nosec\n"), [2, 3]);
}

#[test]
fn the_command_is_the_one_that_is_published() {
    let words = format!("bandit {} < FILE", policy::lint().bandit.arguments().join(" "));
    assert!(intake::rules::python::BANDIT.fix.contains(&words), "{words}");
    assert_eq!(policy::lint().bandit.arguments(), ["-q", "-f", "json", "--ignore-nosec", "-s", "B311", "-"]);
}

#[test]
fn a_held_work_is_not_accepted_and_a_bad_one_is_rejected_all_the_same() {
    let pair = |page: &str| {
        let file = |name: &str, text: &str| File { name: name.into(), bytes: text.into() };
        let sidecar = r#"{"id": "a", "capabilities": {"python_backend": "a.py"}}"#;
        let python = "def run(inputs):\n    return {}\n";
        let others = vec![file("work.json", sidecar), file("a.py", python)];
        Submission::from_upload(file("index.html", page), others).check(&Bandit::at("/nowhere/bandit"))
    };
    let report = pair("<script>TF.backend({})</script>");
    assert_eq!(report.verdict, Verdict::Held, "{:?}", report.findings);
    assert!(report.held.unwrap().contains("cannot be started"));
    assert_eq!(pair("<script>TF.backend(eval('1'))</script>").verdict, Verdict::Rejected);
}
