//! The command line as a creator meets it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::program;
use crate::survival::{children, kill, until};

fn run(args: &[&str], source: &str, stdin: &str) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("work.py");
    std::fs::write(&file, source).unwrap();
    let mut command = Command::new(program());
    command.arg("call").arg(&file).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_call_prints_its_result_and_nothing_else_on_stdout() {
    let output =
        run(&["--inputs", "-"], "def run(i):\n    print('hi')\n    return {'n': i['n'] + 1}", "{\"n\": 1}");
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "{\"n\":2}\n"));
    assert_eq!(text(&output.stderr), "hi\nrunner: ok: The function returned.\n");
}

#[test]
fn each_outcome_has_its_exit_code() {
    for (source, code) in [
        ("def run(i):\n    return i.x", 10),
        ("def run(i):\n    while True: pass", 11),
        ("def run(i):\n    return 'x' * (300 << 20)", 12),
        ("def run(i):\n    while True: print('x' * 999)", 14),
        ("def run(i):\n    return {1}", 15),
        ("def run(i):\n    import random\n    random._os.fork()", 16),
        ("def run(i):\n    import random\n    random._os._exit(0)", 17),
    ] {
        let output = run(&[], source, "");
        assert_eq!(output.status.code(), Some(code), "{source}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_denied_call_is_named() {
    for (body, name) in [
        ("import socket\n    socket.socket()", "socket"),
        ("import os\n    os.fork()", "clone"),
        ("import os\n    os.execv('/bin/sh', ['sh'])", "execve"),
        ("import ctypes\n    ctypes.CDLL(None).syscall(599)", "number 599"),
    ] {
        let output = run(&["--bare", "--json"], &format!("def run(i):\n    {body}"), "");
        let last = text(&output.stderr).lines().last().unwrap_or_default().to_owned();
        let report: serde_json::Value = serde_json::from_str(&last).unwrap();
        assert_eq!(
            (report["outcome"].as_str(), report["call"].as_str()),
            (Some("denied"), Some(name)),
            "{last}"
        );
    }
}

#[test]
fn nonsense_is_told_with_the_help() {
    for args in
        [&["call"][..], &["call", "/nowhere.py"], &["dance"], &["call", "x.py", "--fast"], &["zygote"]]
    {
        let output = Command::new(program()).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains("runner call FILE"), "{args:?}");
    }
}

#[test]
fn an_unproved_call_never_ends_with_zero() {
    let output = run(&["--unproved"], "def run(i):\n    return 1", "");
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("--unproved"));
}

#[test]
fn a_dry_run_is_confined_itself() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("work.py");
    std::fs::write(&file, "def run(i):\n    while True: pass").unwrap();
    let mut running = Command::new(program());
    let mut running = running.arg("call").arg(&file).stderr(Stdio::null()).spawn().unwrap();
    let row = |pid: u32, key: &str| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.lines().find_map(|l| l.strip_prefix(key)).unwrap_or_default().trim().to_owned()
    };
    // The spawner, the zygote and the call's own child.
    assert!(until(|| children(running.id()).len() == 3));
    assert_eq!((row(running.id(), "Seccomp:"), row(running.id(), "NoNewPrivs:")), ("2".into(), "1".into()));
    // The spawner is under no filter, which shows that this test can tell.
    assert!(children(running.id()).iter().any(|child| row(*child, "Seccomp:") == "0"));
    kill(running.id());
    running.wait().unwrap();
}

#[test]
fn the_bench_has_a_row_for_everything_that_is_aimed_at() {
    let output = Command::new(program()).args(["bench", "--rounds", "2", "--seconds", "1"]).output().unwrap();
    let table = text(&output.stdout);
    for row in [
        "call to bare fork",
        "resident memory of the zygote",
        "beside the sum of the parts measured alone",
        "a cached source of 16 KiB",
        "memory of a call",
        "memory beyond what a function allocates",
        "`crun run`",
        "beside what the p50 promises",
    ] {
        assert!(table.contains(&format!("| {row}")), "{row}: {table}{}", text(&output.stderr));
    }
    assert!(table.contains("| counts of the host that differ afterwards | [] |"), "{table}");
    // On a busy machine the short deadline may come before the limit that a flood is after.
    for (inputs, count, ends) in
        [("a loop", 2, "timeout"), ("memory in", 2, "memory"), ("a flood", 3, "output_limit")]
    {
        let rows = table.lines().filter(|line| line.starts_with(&format!("| {inputs}")));
        let as_expected =
            |row: &&str| [ends, "timeout"].iter().any(|end| row.ends_with(&format!("| {end} |")));
        assert_eq!(rows.filter(as_expected).count(), count, "{inputs}: {table}");
    }
}
