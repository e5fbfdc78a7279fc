//! Works as people make them who have not read the rules: each is rejected, together they meet every rule, and what they
//! are told is kept beside them in `snapshots/`, to be read by somebody who has not read the rules either.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use intake::finding::{Category, Severity};
use intake::python::bandit::Bandit;
use intake::rules;
use intake::submission::{Report, Submission, Verdict};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/bad");

/// Every work: a folder, a file, or a zip in words.
fn works() -> Vec<PathBuf> {
    let mut works: Vec<_> = fs::read_dir(FOLDER).unwrap().map(|e| e.unwrap().path()).collect();
    works.sort();
    works
}

/// The zip that stands there in words.
fn zip(work: &Path) -> Option<Vec<u8>> {
    work.extension()
        .is_some_and(|e| e == "entries")
        .then(|| support::described(&fs::read_to_string(work).unwrap()))
}

fn check(work: &Path) -> Report {
    let submission = match zip(work) {
        Some(bytes) => Submission::from_zip("work.zip", &bytes),
        None => Submission::open(work).unwrap(),
    };
    submission.check(&Bandit::at("bandit"))
}

#[test]
fn each_is_rejected_and_together_they_meet_every_rule() {
    let mut met = BTreeSet::new();
    let mut table = String::new();
    for work in works() {
        let report = check(&work);
        let name = work.file_stem().unwrap().to_string_lossy();
        assert_eq!((report.verdict, &report.held), (Verdict::Rejected, &None), "{name}");
        let found = report.findings.iter().filter(|f| f.severity > Severity::Note).map(|f| f.rule.id);
        let found: BTreeSet<_> = found.collect();
        table.push_str(&format!("{name}: {}\n", Vec::from_iter(found.iter().copied()).join(" ")));
        met.extend(found);
    }
    // The rules of the smoke run are met by the pages of `play.rs`.
    let missed: Vec<_> = rules::all()
        .into_iter()
        .filter(|r| r.severity > Severity::Note && r.category != Category::Play && !met.contains(r.id))
        .map(|r| r.id)
        .collect();
    assert!(missed.is_empty(), "no work meets {missed:?}\n{table}");
    insta::assert_snapshot!("every_work", table);
}

#[test]
fn what_is_said_can_be_read() {
    for name in [
        "base64-loader",
        "flask-server",
        "google-fonts",
        "high-score-in-local-storage",
        "level-from-a-file",
        "merge-conflict",
        "old-javascript",
        "p5-from-a-cdn",
        "saved-by-notepad",
        "several-pages",
        "sidecar-of-another-platform",
        "sound-not-declared",
        "terminal-adventure",
        "unity-export",
        "zipped-on-a-mac",
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_intake"));
        let folder = tempfile::tempdir().unwrap();
        let described = Path::new(FOLDER).join(format!("{name}.entries"));
        if described.is_file() {
            fs::write(folder.path().join("work.zip"), zip(&described).unwrap()).unwrap();
            command.args(["check", "work.zip"]).current_dir(folder.path());
        } else {
            command.args(["check", name]).current_dir(FOLDER);
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{name}");
        insta::assert_snapshot!(name, String::from_utf8(output.stdout).unwrap());
    }
}
