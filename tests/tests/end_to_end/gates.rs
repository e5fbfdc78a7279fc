//! The gates of the server are those of a creator's machine: the same findings, and a process that reaches nothing else.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tests::{Installation, desk, program, repository};

/// What `intake` prints about something on a creator's machine.
fn intake(words: &[&str], path: &Path) -> Result<Value> {
    let output = Command::new(program("intake")).args(words).arg(path).arg("--json").output()?;
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{words:?}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// What the server's process of the gates says about a staged submission.
fn gate(here: &Installation, verb: &str, job: &Path) -> Result<Value> {
    let ran = desk::api(here, &["gate", verb, &job.to_string_lossy()])?;
    ensure!(ran.code == 0, "{ran:?}");
    Ok(serde_json::from_str(&ran.stdout)?)
}

fn rules(report: &Value) -> Vec<&str> {
    report["findings"].as_array().into_iter().flatten().filter_map(|f| f["rule"].as_str()).collect()
}

const PAGE: &str = "<!doctype html>\n<title>Kite</title>\n<a href=https://me.example>me</a>\n<script>\n  localStorage.best = eval('3');\n</script>\n";
const SIDECAR: &str =
    r#"{"id": "kite", "capabilities": {"audio": true}, "explain": {"storage-local": "read once"}}"#;

#[test]
fn a_check_says_the_same_on_the_server() -> Result<()> {
    let here = Installation::small()?;
    here.publish()?;
    let files = [("index.html", PAGE), ("work.json", SIDECAR)];
    let creators = desk::folder(&here, "mine", &files)?;
    let page = desk::folder(&here, "page/in", &[("payload.html", PAGE), ("work.json", SIDECAR)])?;
    let zipped = desk::folder(&here, "zipped/in", &[])?;
    let zip = zipped.join("payload.zip");
    let made = Command::new("python3")
        .args(["-m", "zipfile", "-c"])
        .arg(&zip)
        .args(files.map(|(name, _)| creators.join(name)))
        .status()?;
    ensure!(made.success(), "no zip");
    for (mine, job) in [(&creators, &page), (&zip, &zipped)] {
        let mut mine = intake(&["check"], mine)?;
        let theirs = gate(&here, "check", job.parent().context("no parent")?)?;
        assert_eq!(rules(&mine), ["nav-link", "storage-local", "eval-call", "capability-unused"], "{mine:#}");
        // Each says how the submission came to it.
        mine["submission"] = theirs["report"]["submission"].clone();
        assert_eq!(mine, theirs["report"]);
    }
    Ok(())
}

/// A pair that is lost while Python is closed.
const PAIR: &str = "<!doctype html>\n<body><script>\n  TF.backend({ a: 40 }).then(r => { if (r.sum === 42) document.body.textContent = 'the sum is ' + r.sum });\n</script>\n";
const FUNCTION: &str = "def run(inputs):\n    return {'sum': inputs.get('a', 0) + 2}\n";
const PAIRED: &str = r#"{"id": "add", "capabilities": {"python_backend": "add.py"}}"#;

/// The function of one of two equal submissions is a link out of its folder: the process opens it before it is confined, and
/// must not reach it afterwards.
#[test]
fn a_smoke_run_says_the_same_on_the_server_and_reaches_its_folder_alone() -> Result<()> {
    let here = Installation::small()?;
    here.publish()?;
    let _runner = here.runner()?;
    let tf = format!("<script data-tf>{}</script>", fs::read_to_string(repository().join("theme/tf.js"))?);
    let page = PAIR.replace("<body>", &format!("<body>{tf}"));
    let files = [("index.html", page.as_str()), ("work.json", PAIRED), ("add.py", FUNCTION)];
    let plain = desk::folder(&here, "plain/out", &files)?;
    let linked = desk::folder(&here, "linked/out", &files)?;
    fs::rename(linked.join("add.py"), here.folder().join("secret.py"))?;
    std::os::unix::fs::symlink(here.folder().join("secret.py"), linked.join("add.py"))?;
    let socket = here.data("runner.sock").to_string_lossy().into_owned();
    let (mine, theirs, refused) = std::thread::scope(|scope| {
        let mine = scope.spawn(|| intake(&["play", "--runner", &socket], &plain));
        let theirs = scope.spawn(|| gate(&here, "play", &here.folder().join("plain")));
        let refused = scope.spawn(|| gate(&here, "play", &here.folder().join("linked")));
        let ended = "a thread panicked";
        (mine.join().expect(ended), theirs.join().expect(ended), refused.join().expect(ended))
    });
    let (mine, theirs, refused) = (mine?, theirs?, refused?);
    assert_eq!(rules(&mine), ["play-error", "play-blank"], "{mine:#}");
    for key in ["verdict", "findings"] {
        assert_eq!(mine[key], theirs["report"][key]);
    }
    assert_eq!(mine["runs"].as_array().map(Vec::len), Some(2), "{mine:#}");
    assert!(theirs["held"].is_null() && fs::metadata(here.folder().join("plain/screen.png"))?.len() > 0);
    let held = refused["held"].as_str().with_context(|| format!("{refused:#}"))?;
    assert!(held.contains("while the function answers") && held.contains("Permission denied"), "{held}");
    Ok(())
}
