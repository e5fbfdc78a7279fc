//! The whole suite, as the gate demands it; and that a hole would be found.

use std::process::{Command, Output};

use runner::gate::{Gate, State};
use serde_json::Value;

use crate::{machine, program};

fn suite(args: &[&str]) -> Output {
    Command::new(program()).arg("suite").args(args).output().unwrap()
}

#[test]
fn every_attack_is_blocked_in_both_modes_and_succeeds_outside() {
    let _machine = machine();
    let folder = tempfile::tempdir().unwrap();
    let gate = Gate::open_in(folder.path(), &program()).unwrap();
    assert!(matches!(gate.state().unwrap(), State::Closed(_)));
    let output = suite(&["--json", "--state", folder.path().to_str().unwrap()]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["failures"], serde_json::json!([]), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    assert!(report["attacks"].as_array().unwrap().len() >= 80);
    assert_eq!(report["sweep"]["numbers"], 601);
    let State::Open(run) = gate.state().unwrap() else { panic!("closed after a pass") };
    assert_eq!(
        (report["build"].as_str(), report["kernel"].as_str()),
        (Some(&*run.subject.build), Some(&*run.subject.kernel))
    );
}

#[test]
fn an_attack_that_succeeds_is_reported_in_each_mode() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.py");
    let docs = "\"\"\"Tries: t\n    Blocked: b\n    Reported: Ada\"\"\"";
    std::fs::write(
        &file,
        format!("@attack(\"mine\")\ndef arithmetic(host):\n    {docs}\n    return 1 + 1\n"),
    )
    .unwrap();
    let output = suite(&["--json", "--attack", file.to_str().unwrap()]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(report["failures"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!(report["attacks"][0]["control"], "succeeds");
    // One that cannot succeed anywhere is found out as well.
    std::fs::write(
        &file,
        format!("@attack(\"mine\")\ndef nothing(host):\n    {docs}\n    return undefined\n"),
    )
    .unwrap();
    let report: Value =
        serde_json::from_slice(&suite(&["--json", "--attack", file.to_str().unwrap()]).stdout).unwrap();
    let failures = report["failures"].as_array().unwrap();
    assert!(
        failures.len() == 1 && failures[0].as_str().unwrap().contains("it fails outside as well"),
        "{report}"
    );
}

#[test]
fn the_doctor_has_nothing_to_prescribe() {
    let output = Command::new(program()).arg("doctor").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.lines().count() >= 14 && !text.contains("MISSING"), "{text}");
}

#[test]
fn the_doctor_names_what_is_missing_and_a_remedy() {
    let output = Command::new(program()).args(["doctor", "--cgroup", "/nowhere/at/all"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("MISSING") && text.contains("--cgroup"), "{text}");
}
