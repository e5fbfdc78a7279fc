//! `api doctor` beside a whole installation: what it says of one that is well, and of one that was broken on purpose.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tests::{Installation, desk};

/// What the doctor finds wrong, and what it says with it. Whether Chromium starts in time is left out: that depends on what
/// else the machine does, and submissions show that it plays.
fn wrong(here: &Installation) -> Result<Vec<(String, String)>> {
    let ran = desk::api(here, &["doctor", "--json"])?;
    ensure!(ran.code == 1, "no runner is started here, so something is wrong: {ran:?}");
    let lines: Vec<Value> = serde_json::from_str(&ran.stdout).with_context(|| format!("{ran:?}"))?;
    let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    let wrong = lines.iter().filter(|line| line["state"] == "wrong" && line["thing"] != "chromium");
    Ok(wrong.map(|line| (text(line, "thing"), text(line, "seen") + &text(line, "remedy"))).collect())
}

#[test]
fn what_is_broken_is_named_and_nothing_else() -> Result<()> {
    let mut here = Installation::small()?;
    here.publish()?;
    let _serve = desk::serve(&here)?;
    here.serve()?;
    let mut work = desk::work(&here)?;
    let catalog = catalog::Catalog::open(&here.data("catalog.db"))?;
    desk::until(|| {
        let jobs = catalog.job_counts()?;
        Ok(jobs.iter().any(|(kind, state, _)| kind == "verify" && state == "done").then_some(()))
    })?;
    let names = |found: &[(String, String)]| found.iter().map(|(thing, _)| thing.clone()).collect::<Vec<_>>();
    let found = wrong(&here)?;
    assert_eq!(names(&found), ["runner's gate", "bandit"], "{found:?}");

    fs::set_permissions(here.data("saves"), fs::Permissions::from_mode(0o755))?;
    fs::rename(here.data("word.secret"), here.data("elsewhere"))?;
    work.kill()?;
    fs::write(here.data("nginx/headers-work.conf"), "# older\n")?;
    fs::remove_file(here.data("live"))?;
    let found = wrong(&here)?;
    let expected = [
        ("rights", "mode 0755"),
        ("word.secret", "put the copy back"),
        ("tree", "sitegen publish"),
        ("api work", "tinyfiles-work"),
        ("runner's gate", "runner doctor"),
        ("bandit", "runner/bandit.txt"),
        ("nginx files", "headers-work.conf"),
        ("site", "no site in the tree"),
        ("content site", "no content in the tree"),
        ("site to API", "503"),
    ];
    assert_eq!(names(&found), expected.map(|(thing, _)| thing), "{found:?}");
    for ((thing, said), (_, part)) in found.iter().zip(expected) {
        assert!(said.contains(part), "{thing}: {said}");
    }
    Ok(())
}
