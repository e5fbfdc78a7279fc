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
