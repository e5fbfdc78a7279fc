//! bandit in a child: the answer of the program itself, and an error whenever there is none.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use runner::engine::Mode;
use runner::outcome::Outcome;
use runner::supervisor::{Call, Options, RunError, Supervisor};
use serde_json::Value;

use crate::service::{Server, exchange};
use crate::{ending, options};

/// The environment that `./dev` makes from runner/bandit.txt.
fn environment() -> PathBuf {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bandit");
    assert!(place.join("bin/bandit").exists(), "run ./dev test once: it makes target/bandit");
    place
}

fn packages(environment: &Path) -> PathBuf {
    let entries = fs::read_dir(environment.join("lib")).unwrap();
    entries.map(|e| e.unwrap().path().join("site-packages")).find(|p| p.is_dir()).unwrap()
}

fn linter(packages: PathBuf) -> Result<Supervisor, RunError> {
    Supervisor::start(Options { bandit: Some(packages), ..options(Mode::Lint) })
}

/// What the program says, without the time at which it said so.
fn by_program(source: &str) -> Value {
    let mut bandit = Command::new(environment().join("bin/bandit"))
        .args(policy::lint().bandit.arguments())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    bandit.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
    without_time(&bandit.wait_with_output().unwrap().stdout)
}

fn without_time(answer: &[u8]) -> Value {
    let mut answer: Value = serde_json::from_slice(answer).unwrap();
    assert!(answer.as_object_mut().unwrap().remove("generated_at").is_some());
    answer
}

fn lint(supervisor: &Supervisor, source: &str) -> Value {
    let report = supervisor.lint(&Call { inspect: true, ..Call::to_lint(source.as_bytes()) }).unwrap();
    let ended = ending(&report);
    without_time(ended.strip_prefix("ok ").expect(&ended).as_bytes())
}

#[test]
fn a_child_says_what_the_program_says() {
    let s = linter(packages(&environment())).unwrap();
    let full = format!("def run(i):\n{}", "    exec(i)\n".repeat(1_360));
    assert!(full.len() > 16_000 && full.len() <= 16_384);
    let nested = format!("def run(i):\n    return {}1{}\n", "(".repeat(150), ")".repeat(150));
    for (source, tests) in [
        ("def run(inputs):\n    return inputs\n", vec![]),
        ("import random\ndef run(i):\n    return random.random()\n", vec![]),
        ("def run(i):\n    assert i\n    return eval(i)  # nosec\n", vec!["B101", "B307"]),
        (
            "import pickle\ndef run(i):\n    password = 'hunter2'\n    return pickle.loads(i)\n",
            vec!["B403", "B105", "B301"],
        ),
        ("import subprocess\ndef run(i):\n    return subprocess.call(i, shell=True)\n", vec!["B404", "B602"]),
        ("def run(i):\n    try:\n        return i\n    except Exception:\n        pass\n", vec!["B110"]),
        ("def run(:\n", vec![]),
        ("# coding: latin-1\ndef run(i):\n    return 'é'\n", vec![]),
        (&nested, vec![]),
        (&full, vec!["B102"; 1_360]),
    ] {
        let answer = lint(&s, source);
        assert_eq!(answer, by_program(source), "{}", &source[..source.len().min(200)]);
        let found: Vec<&str> =
            answer["results"].as_array().unwrap().iter().map(|r| r["test_id"].as_str().unwrap()).collect();
        assert_eq!(found, tests, "{}", &source[..source.len().min(200)]);
    }
    let broken = lint(&s, "def run(:\n");
    assert_eq!(broken["errors"].as_array().unwrap().len(), 1, "{broken}");
}

#[test]
fn no_answer_is_never_an_empty_one() {
    let s = linter(packages(&environment())).unwrap();
    let source = b"def run(inputs):\n    return inputs\n";
    let late = s.lint(&Call::to_lint(source).within(Duration::from_millis(1))).unwrap();
    assert_eq!(late.outcome, Outcome::Timeout);
    let long = "x".repeat(16_385);
    assert!(ending(&s.lint(&Call::to_lint(long.as_bytes())).unwrap()).contains("16384 are allowed"));
    assert!(ending(&s.lint(&Call::to_lint(b"\xff")).unwrap()).contains("not UTF-8"));
    assert_eq!(lint(&s, "def run(i):\n    exec(i)\n")["results"].as_array().unwrap().len(), 1);
}

/// Packages with a linter that calls itself bandit of `version` and does `body` about what it is given as `text`.
fn impostor(version: &str, body: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("bandit/__init__.py", "");
    write("bandit/cli/__init__.py", "");
    let read = "text = os.fdopen(sys.stdin.fileno(), 'rb').read().decode()";
    let main = format!(
        "import ctypes, os, sys\ndef main():\n    {read}\n    if 'bad' in text:\n        {body}\n    print('{{}}')\n"
    );
    write("bandit/cli/main.py", &main);
    let about = format!("bandit-{version}.dist-info/METADATA");
    write(&about, &format!("Metadata-Version: 2.1\nName: bandit\nVersion: {version}\n"));
    folder
}

#[test]
fn a_linter_that_is_missing_or_breaks_is_an_error() {
    let empty = tempfile::tempdir().unwrap();
    let missing = linter(empty.path().to_owned()).unwrap_err().to_string();
    assert!(missing.contains("bandit was not loaded"), "{missing}");
    let old = impostor("1.7.0", "pass");
    let refused = linter(old.path().to_owned()).unwrap_err().to_string();
    assert!(refused.contains("bandit 1.7.0 is installed"), "{refused}");
    for (body, expected) in [
        ("sys.exit(2)", "error: RuntimeError: bandit ended with exit code 2"),
        ("raise ValueError('no')", "error: ValueError: no"),
        ("ctypes.string_at(0)", "crash: "),
        ("os._exit(0)", "crash: "),
        ("print('[' * 9_000_000); return", "output_limit: "),
        ("print('half an ans'); return", "bad_answer: "),
        ("import socket; socket.socket()", "denied"),
        ("return", "bad_answer: "),
    ] {
        let folder = impostor(&policy::lint().bandit.version, body);
        let s = linter(folder.path().to_owned()).unwrap();
        assert_eq!(ending(&s.lint(&Call::to_lint(b"good")).unwrap()), "ok {}\n", "{body}");
        let found = ending(&s.lint(&Call::to_lint(b"bad")).unwrap());
        assert!(found.starts_with(expected), "{body}: {found}");
    }
}

#[test]
fn the_service_lints_and_says_when_it_cannot() {
    let source = "def run(i):\n    return eval(i)\n";
    let server = Server::with_linter(8, linter(packages(&environment())).map_err(|e| e.to_string()));
    let (status, answer, _) = exchange(&server.socket(), "POST /lint", source);
    assert_eq!((status, answer["results"][0]["test_id"].as_str()), (200, Some("B307")), "{answer}");
    assert_eq!(exchange(&server.socket(), "GET /lint", "").0, 405);
    let (_, metrics, _) = exchange(&server.socket(), "GET /metrics", "");
    assert!(metrics.as_str().unwrap().contains("runner_lints_total 1"), "{metrics}");
    let without = Server::with_linter(8, Err("it is not installed".to_owned()));
    let (status, problem, _) = exchange(&without.socket(), "POST /lint", source);
    assert_eq!((status, &problem["type"]), (503, &Value::from("lint-failed")), "{problem}");
    let folder = impostor(&policy::lint().bandit.version, "sys.exit(2)");
    let breaking = Server::with_linter(8, linter(folder.path().to_owned()).map_err(|e| e.to_string()));
    let (status, problem, _) = exchange(&breaking.socket(), "POST /lint", "bad");
    assert_eq!((status, &problem["type"]), (500, &Value::from("lint-failed")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("exit code 2"), "{problem}");
}

#[test]
fn the_pinned_release_is_the_one_that_is_installed() {
    let pinned = include_str!("../../bandit.txt");
    let version = &policy::lint().bandit.version;
    assert!(pinned.contains(&format!("\nbandit=={version} \\\n")), "{version}");
}
