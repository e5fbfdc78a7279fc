//! The two examples of every row of the rules table: one must be found, the other must not.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod support;

use intake::finding::{Example, Finding, Kind, Rule, Severity};
use intake::python::bandit::Bandit;
use intake::submission::{File, Submission};
use intake::{document, rules};

fn file(name: &str, text: &str) -> File {
    File { name: name.to_owned(), bytes: text.as_bytes().to_vec() }
}

fn findings(example: &Example) -> Option<Vec<Finding>> {
    let html = match example.kind {
        Kind::Html => example.text.to_owned(),
        Kind::Script => format!("<script>{}</script>", example.text),
        Kind::Sidecar => return Some(pair("<p>hello</p>", example.text)),
        Kind::Pair => {
            let (sidecar, page) = example.text.split_once("\n---\n").unwrap();
            return Some(pair(page, sidecar));
        }
        Kind::Zip => {
            let bytes = support::described(example.text);
            return Some(Submission::from_zip("work.zip", &bytes).check(&Bandit::default()).findings);
        }
        Kind::Python => {
            return Some(intake::python::check_source("work.py", example.text.as_bytes()));
        }
        Kind::Words => return None,
    };
    Some(document::check("index.html", html.as_bytes(), policy::limits().work.html_bytes_max).findings)
}

fn pair(page: &str, sidecar: &str) -> Vec<Finding> {
    let submission = Submission::from_upload(file("index.html", page), vec![file("work.json", sidecar)]);
    submission.check(&Bandit::default()).findings
}

fn has(findings: &[Finding], rule: &Rule) -> bool {
    findings.iter().any(|f| f.rule.id == rule.id)
}

#[test]
fn every_example_is_judged_as_the_table_says() {
    let mut wrong = Vec::new();
    for rule in rules::all() {
        if let Some(found) = findings(&rule.fails)
            && !has(&found, rule)
        {
            wrong.push(format!("{}: not found in {}\n{found:?}", rule.id, rule.fails.text));
        }
        if let Some(found) = findings(&rule.passes) {
            for finding in found.into_iter().filter(|f| f.severity > Severity::Note || f.rule.id == rule.id) {
                wrong.push(format!("{}: the passing example gives\n{finding}", rule.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A case of `tests/corpus/*.cases`: `### kind expected-rules: what it is about`, then the text.
struct Case {
    place: String,
    kind: Kind,
    expected: Vec<String>,
    text: String,
}

fn cases(ending: &str) -> Vec<Case> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");
    let mut cases = Vec::new();
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == ending)) {
        let text = std::fs::read_to_string(file).unwrap();
        for case in text.split("### ").skip(1) {
            let (head, body) = case.split_once('\n').unwrap();
            let (words, about) = head.split_once(": ").unwrap();
            let mut words = words.split(' ');
            let kind = match words.next().unwrap() {
                "script" => Kind::Script,
                "html" => Kind::Html,
                "python" => Kind::Python,
                other => panic!("unknown kind {other}"),
            };
            let mut expected: Vec<_> = words.filter(|w| *w != "clean").map(str::to_owned).collect();
            expected.sort();
            let place = format!("{} ({about})", file.file_name().unwrap().to_string_lossy());
            cases.push(Case { place, kind, expected, text: body.trim_end_matches('\n').to_owned() });
        }
    }
    cases
}

#[test]
fn hits_near_misses_and_evasions() {
    let cases = cases("cases");
    let mut wrong = Vec::new();
    for case in &cases {
        let text: &'static str = case.text.clone().leak();
        let found = findings(&Example { kind: case.kind, text }).unwrap();
        let mut ids: Vec<_> =
            found.iter().filter(|f| f.severity > Severity::Note).map(|f| f.rule.id.to_owned()).collect();
        ids.sort();
        ids.dedup();
        if ids != case.expected {
            wrong.push(format!(
                "{}: expected {:?}, found {ids:?} in\n    {}",
                case.place, case.expected, case.text
            ));
        }
    }
    assert!(cases.len() > 150, "{}", cases.len());
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
