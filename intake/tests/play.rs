//! The smoke run, with the Chromium of this machine. CI installs it; without it, "not run" is what must be said.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use intake::play::{Backend, Report, Work, start};
use intake::submission::Verdict;

fn played_by(program: &str, html: &str) -> Report {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("index.html"), html).unwrap();
    let sidecar = r#"{"id": "a", "view": {"width": 320, "height": 200}}"#;
    fs::write(folder.path().join("work.json"), sidecar).unwrap();
    start(&Work::open(folder.path()).unwrap(), program).play(&Backend::Closed)
}

fn played(html: &str) -> Report {
    let report = played_by("chromium", html);
    assert_eq!(report.held, None);
    report
}

fn ids(report: &Report) -> Vec<&'static str> {
    let mut ids: Vec<_> = report.findings.iter().map(|f| f.rule.id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[test]
fn a_page_that_plays_gives_a_picture_and_nothing_else() {
    let result = played("<!doctype html><p>hello<script>setTimeout(() => alert('a box'), 500)</script>");
    assert!(result.findings.is_empty(), "{:?}", result.findings);
    assert_eq!(result.verdict, Verdict::Accepted);
    assert!(result.screenshot.unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn errors_refusals_blank_screens_and_long_tasks_are_seen() {
    let result = played("<!doctype html>\n<p>hello<script>\n  undefined.x\n</script>");
    let error = result.findings.iter().find(|f| f.rule.id == "play-error").unwrap();
    assert_eq!((error.line, error.column), (3, 13), "{error}");
    assert_eq!(result.verdict, Verdict::Rejected);
    assert_eq!(ids(&played("<!doctype html><body style='background:#222'>")), ["play-blank"]);
    let wants = "<p>hello<script>fetch('https://x.example/').catch(() => {}); setTimeout(() => { const t = Date.now(); while (Date.now() - t < 300); }, 1000)</script>";
    let result = played(wants);
    assert_eq!(ids(&result), ["play-refused"], "{:?}", result.findings);
    assert!(result.runs[0].longest_task_ms.unwrap() >= 250, "{:?}", result.runs);
    let leaves = played("<p>hello<script>setTimeout(() => location = 'https://x.example/', 100)</script>");
    assert!(leaves.findings.iter().any(|f| f.what.contains("x.example")), "{:?}", leaves.findings);
}

#[test]
fn a_page_that_hangs_is_a_finding() {
    let result = played("<p>hello<script>setTimeout(() => { for (;;); }, 500)</script>");
    assert_eq!(ids(&result), ["play-error"], "{:?}", result.findings);
    assert!(result.findings[0].what.contains("loop without end"));
}

#[test]
fn without_a_browser_nothing_was_run() {
    let report = played_by("no-such-browser", "<p>hello");
    assert_eq!(report.verdict, Verdict::Held);
    assert_eq!(report.held.unwrap(), "not run: no-such-browser is not installed");
}

const INTAKE: &str = env!("CARGO_BIN_EXE_intake");

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Plays what stands at a path with the program; Python functions are called by the real `runner` beside it.
fn program(path: &Path, more: &[&str]) -> (i32, String) {
    let output = Command::new(INTAKE).arg("play").arg(path).args(more).output().unwrap();
    (output.status.code().unwrap(), text(&output))
}

#[test]
fn a_pair_is_played_with_its_function_and_without() {
    let runner = Path::new(INTAKE).with_file_name("runner");
    assert!(runner.is_file(), "build it first: cargo build -p runner");
    for work in ["quillwort/low-water", "halfpenny/envelope"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../content/works").join(work);
        let (code, text) = program(&folder, &[]);
        assert_eq!(code, 0, "{work}: {text}");
        for run in ["while the function answers: played", "while Python is closed: played"] {
            assert!(text.lines().any(|l| l.starts_with(run)), "{text}");
        }
    }
}

/// A pair whose page shows what the function answers, and nothing else.
fn pair(folder: &Path, script: &str, explain: &str) {
    let page = format!("<!doctype html><body>{}<script>{script}</script>", intake::tf::element());
    fs::write(folder.join("index.html"), page).unwrap();
    let function = "def run(inputs):\n    return {'sum': inputs.get('a', 0) + 2}\n";
    fs::write(folder.join("add.py"), function).unwrap();
    let sidecar = format!(
        r#"{{"id": "add", "capabilities": {{"python_backend": "add.py"}}, "explain": {{{explain}}}}}"#
    );
    fs::write(folder.join("work.json"), sidecar).unwrap();
}

#[test]
fn a_pair_that_is_lost_without_its_function_is_found_in_that_run() {
    let folder = tempfile::tempdir().unwrap();
    let script = "TF.backend({ a: 40 }).then(r => { if (r.sum === 42) document.body.textContent = 'the sum is ' + r.sum })";
    pair(folder.path(), script, r#""play-blank": "it is about waiting""#);
    let (code, text) = program(folder.path(), &[]);
    assert_eq!(code, 1, "{text}");
    let lost: Vec<_> = text.lines().filter(|l| l.contains("[play-")).collect();
    assert!(lost.iter().all(|l| l.contains("]: while Python is closed: ")), "{text}");
    for expected in ["explain or mend [play-error]", "note [play-blank]"] {
        assert!(lost.iter().any(|l| l.contains(expected)), "{expected}: {text}");
    }
}

#[test]
fn a_function_that_python_does_not_load_is_found() {
    let folder = tempfile::tempdir().unwrap();
    pair(folder.path(), "document.body.textContent = 'hello'", "");
    fs::write(folder.path().join("add.py"), "def run(inputs):\n    break\n").unwrap();
    let (code, text) = program(folder.path(), &[]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains(
            "add.py:2:1: explain or mend [play-error]: while the function answers: Python does not load"
        ),
        "{text}"
    );
}

#[test]
fn without_a_runner_the_first_run_did_not_take_place() {
    let folder = tempfile::tempdir().unwrap();
    // What is found in the only run that there was says in which.
    pair(
        folder.path(),
        "document.body.textContent = 'hello'; fetch('https://x.example/').catch(() => {})",
        "",
    );
    let (code, text) = program(folder.path(), &["--runner", "/nowhere/runner.sock"]);
    assert_eq!(code, 4, "{text}");
    let held = text.lines().find(|l| l.starts_with("held: while the function answers: not run: ")).unwrap();
    assert!(held.contains("/nowhere/runner.sock"), "{text}");
    assert!(text.contains("note [play-refused]: while Python is closed: "), "{text}");
    assert!(text.contains("\nwhile the function answers: not run\nwhile Python is closed: played"), "{text}");
}

/// A folder that everyone can read, with the program and a page in it.
fn open_folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    fs::copy(INTAKE, folder.path().join("intake")).unwrap();
    fs::write(folder.path().join("index.html"), "<!doctype html><p>hello").unwrap();
    let page = folder.path().join("index.html");
    (folder, page)
}

/// Both users that a run can have: whoever runs the tests, and, if that is root, somebody without rights.
fn users() -> Vec<&'static [&'static str]> {
    let nobody: &[&str] = &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];
    if fs::metadata("/proc/self").unwrap().uid() == 0 { vec![&["env"], nobody] } else { vec![&["env"]] }
}

fn by(user: &[&str], program: &Path) -> Command {
    let mut command = Command::new(user[0]);
    command.args(&user[1..]).arg(program);
    command
}

/// A program in the place of Chromium tries to reach a server of this machine. Started by hand, it does.
#[test]
fn the_browser_has_no_rights_and_no_network() {
    let (folder, page) = open_folder();
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let script = format!(
        "#!/bin/bash\nexec >>\"$SEEN\"\nid -u\ngrep CapEff /proc/self/status\n\
         (exec 5<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo reached || echo refused\n"
    );
    let chromium = folder.path().join("chromium");
    fs::write(&chromium, script).unwrap();
    fs::set_permissions(&chromium, Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let seen = folder.path().join("seen");
    let run = |mut command: Command| {
        fs::write(&seen, "").unwrap();
        fs::set_permissions(&seen, Permissions::from_mode(0o666)).unwrap();
        let output = command.env("PATH", &path).env("SEEN", &seen).output().unwrap();
        (fs::read_to_string(&seen).unwrap(), text(&output))
    };
    for user in users() {
        let (by_hand, _) = run(by(user, &chromium));
        assert!(by_hand.ends_with("reached\n"), "the control: {by_hand}");
        let mut played = by(user, &folder.path().join("intake"));
        played.arg("play").arg(&page);
        let (apart, said) = run(played);
        assert!(apart.ends_with("CapEff:\t0000000000000000\nrefused\n"), "{apart}{said}");
        assert!(!apart.starts_with("0\n"), "{apart}");
        assert!(said.contains("held: not run: chromium could not be started"), "{said}");
    }
}

#[test]
fn where_chromium_is_missing_the_program_says_not_run() {
    let (folder, page) = open_folder();
    for tool in ["sh", "unshare", "setpriv"] {
        let place = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output().unwrap().stdout;
        symlink(String::from_utf8(place).unwrap().trim(), folder.path().join(tool)).unwrap();
    }
    let run = |more: &[&str]| {
        Command::new(INTAKE).arg("play").arg(&page).args(more).env("PATH", folder.path()).output().unwrap()
    };
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
    assert!(
        text(&output).starts_with("not run\nheld: not run: chromium is not installed\n"),
        "{}",
        text(&output)
    );
    let report: serde_json::Value = serde_json::from_slice(&run(&["--json"]).stdout).unwrap();
    assert_eq!(report["verdict"], "held");
}

/// What the status of a process tells of its confinement.
#[derive(Debug, Default)]
struct Confinement {
    users: Vec<u32>,
    process_namespaces: usize,
    filters: u32,
}

impl Confinement {
    fn of(status: &str) -> Self {
        let values = |key: &str| -> Vec<u32> {
            let line = status.lines().find_map(|l| l.strip_prefix(key)).unwrap_or_default();
            line.split_whitespace().map(|n| n.parse().unwrap()).collect()
        };
        Self {
            users: values("Uid:"),
            process_namespaces: values("NSpid:").len(),
            filters: values("Seccomp_filters:").first().copied().unwrap_or(0),
        }
    }

    fn is_within(&self, other: &Self) -> bool {
        self.process_namespaces > other.process_namespaces && self.filters > other.filters
    }
}

/// The renderer below that process once it is confined, or as it was at last. Chromium writes its own command lines, with
/// spaces.
fn renderer(process: &mut Child, outside: &Confinement) -> Confinement {
    let read = |pid: &str, file: &str| {
        String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default()).into_owned()
    };
    let is_below = |pid: &str, ancestor: &str| {
        let mut pid = pid.to_owned();
        while pid.parse::<u32>().is_ok_and(|p| p > 1) && pid != ancestor {
            let status = read(&pid, "status");
            pid = status.lines().find_map(|l| l.strip_prefix("PPid:\t")).unwrap_or_default().to_owned();
        }
        pid == ancestor
    };
    let mut last = Confinement::default();
    while process.try_wait().unwrap().is_none() && !last.is_within(outside) {
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let pid = entry.file_name().into_string().unwrap();
            if read(&pid, "cmdline").split(['\0', ' ']).any(|word| word == "--type=renderer")
                && is_below(&pid, &process.id().to_string())
            {
                last = Confinement::of(&read(&pid, "status"));
            }
        }
        // Nothing tells of a process of somebody else.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    last
}

#[test]
fn a_user_without_rights_plays_in_chromiums_own_sandbox() {
    let (folder, page) = open_folder();
    let outside = Confinement::of(&fs::read_to_string("/proc/self/status").unwrap());
    for user in users() {
        let mut command = by(user, &folder.path().join("intake"));
        let mut intake = command.arg("play").arg(&page).stdout(Stdio::piped()).spawn().unwrap();
        let renderer = renderer(&mut intake, &outside);
        let output = intake.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{user:?}: {}", text(&output));
        assert!(renderer.users.iter().all(|uid| *uid != 0), "{renderer:?}");
        assert!(renderer.is_within(&outside), "{renderer:?}: no sandbox of Chromium's own");
    }
}
