//! The smoke run, with the Chromium of this machine. CI installs it; without it, "not run" is what must be said.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use intake::play::{Played, play};

fn played(html: &str) -> Played {
    play("index.html", html, (320, 200), "chromium").unwrap_or_else(|why| panic!("{why}"))
}

fn ids(played: &Played) -> Vec<&'static str> {
    let mut ids: Vec<_> = played.findings.iter().map(|f| f.rule.id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[test]
fn a_page_that_plays_gives_a_picture_and_nothing_else() {
    let result = played("<!doctype html><p>hello<script>setTimeout(() => alert('a box'), 500)</script>");
    assert!(result.findings.is_empty(), "{:?}", result.findings);
    assert!(result.screenshot.starts_with(b"\x89PNG"));
}

#[test]
fn errors_refusals_blank_screens_and_long_tasks_are_seen() {
    let result = played("<!doctype html>\n<p>hello<script>\n  undefined.x\n</script>");
    let error = result.findings.iter().find(|f| f.rule.id == "play-error").unwrap();
    assert_eq!((error.line, error.column), (3, 13), "{error}");
    assert_eq!(ids(&played("<!doctype html><body style='background:#222'>")), ["play-blank"]);
    let wants = "<p>hello<script>fetch('https://x.example/').catch(() => {}); setTimeout(() => { const t = Date.now(); while (Date.now() - t < 300); }, 1000)</script>";
    let result = played(wants);
    assert_eq!(ids(&result), ["play-refused"], "{:?}", result.findings);
    assert!(result.longest_task_ms >= 250, "{}", result.longest_task_ms);
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
    let why = play("index.html", "<p>hello", (320, 200), "no-such-browser").unwrap_err();
    assert_eq!(why.to_string(), "not run: no-such-browser is not installed");
}

/// Plays what stands at a path with the program; Python functions are called by the real `runner` beside it.
fn program(path: &std::path::Path, more: &[&str]) -> (i32, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_intake"));
    let output = command.arg("play").arg(path).args(more).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code().unwrap(), text + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_pair_is_played_with_its_function_and_without() {
    let runner = std::path::Path::new(env!("CARGO_BIN_EXE_intake")).with_file_name("runner");
    assert!(runner.is_file(), "build it first: cargo build -p runner");
    for work in ["quillwort/low-water", "halfpenny/envelope"] {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../content/works").join(work);
        let (code, text) = program(&folder, &[]);
        assert_eq!(code, 0, "{work}: {text}");
        for run in ["while the function answers: ", "while Python is closed: "] {
            assert!(
                text.lines().any(|l| l.starts_with(run) && l.ends_with("played, 0 to mend or explain")),
                "{text}"
            );
        }
    }
}

/// A pair whose page shows what the function answers, and nothing else.
fn pair(folder: &std::path::Path, script: &str) {
    let page = format!("<!doctype html><body>{}<script>{script}</script>", intake::tf::element());
    std::fs::write(folder.join("index.html"), page).unwrap();
    std::fs::write(folder.join("add.py"), "def run(inputs):\n    return {'sum': inputs.get('a', 0) + 2}\n")
        .unwrap();
    let sidecar = r#"{"id": "add", "summary": "Adds.", "license": "CC0-1.0", "capabilities": {"python_backend": "add.py"}}"#;
    std::fs::write(folder.join("work.json"), sidecar).unwrap();
}

#[test]
fn a_pair_that_is_lost_without_its_function_is_found_in_that_run() {
    let folder = tempfile::tempdir().unwrap();
    pair(
        folder.path(),
        "TF.backend({ a: 40 }).then(r => { if (r.sum === 42) document.body.textContent = 'the sum is ' + r.sum })",
    );
    let (code, text) = program(folder.path(), &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("while the function answers: ") && text.contains("played, 0 to mend"), "{text}");
    let lost: Vec<_> = text.lines().filter(|l| l.contains("[play-")).collect();
    assert!(lost.iter().all(|l| l.starts_with("while Python is closed: ")), "{text}");
    for rule in ["play-error", "play-blank"] {
        assert!(lost.iter().any(|l| l.contains(rule)), "{rule}: {text}");
    }
}

#[test]
fn without_a_runner_the_first_run_did_not_take_place() {
    let folder = tempfile::tempdir().unwrap();
    pair(folder.path(), "document.body.textContent = 'hello'");
    let (code, text) = program(folder.path(), &["--runner", "/nowhere/runner.sock"]);
    assert_eq!(code, 4, "{text}");
    let first = text.lines().find(|l| l.starts_with("while the function answers: ")).unwrap();
    assert!(first.contains("not run") && first.contains("/nowhere/runner.sock"), "{text}");
    assert!(text.contains("while Python is closed: ") && text.contains("played, 0 to mend"), "{text}");
}
