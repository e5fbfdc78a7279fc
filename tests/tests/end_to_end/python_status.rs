//! The status page of Python: what the runner keeps, as a visitor sees it, and what it says while there is nothing.

use anyhow::{Result, ensure};
use fantoccini::Locator;
use serde_json::json;
use tests::browser::Browser;
use tests::{Installation, http};

#[tokio::test]
async fn every_run_is_shown_with_what_failed_and_who_is_credited() -> Result<()> {
    let mut here = Installation::new()?;
    here.publish()?;
    here.serve()?;
    let browser = Browser::open(&[], (1280, 800)).await?;
    let page = format!("http://localhost:{}/python-status.html", here.site_port);
    browser.client.goto(&page).await?;
    let said = browser.client.wait().for_element(Locator::Css("#python-status > p")).await?.text().await?;
    ensure!(said.contains("No run is on record"), "{said}");

    let now = json!({"build": "ab".repeat(32), "policy": "cd".repeat(32), "kernel": "6.12.0 #1 x86_64"});
    let run = |at: u64, passed: bool, failures: &[&str], reporters: &[&str]| {
        json!({"build": now["build"], "policy": now["policy"], "kernel": now["kernel"], "at": at, "passed": passed,
            "attacks": 161, "failures": failures, "reporters": reporters})
    };
    let hostile = "<img src=x onerror=document.title='owned'> (bare): it succeeded";
    let runs = [
        run(1_780_000_000, true, &[], &[]),
        run(1_770_000_000, false, &[hostile, "read_etc_passwd (bare): it succeeded"], &["Ada Lovelace"]),
        run(1_760_000_000, true, &[], &[]),
    ];
    let record = json!({"state": "open", "why": null, "now": now, "runs": runs});
    std::fs::create_dir_all(here.data("runner"))?;
    std::fs::write(here.data("runner/python-status.json"), record.to_string())?;
    let answer = http::get(here.site_port, "localhost", "/data/python-status.json")?;
    ensure!(answer.status == 200 && answer.header("content-type") == Some("application/json; charset=utf-8"));

    browser.client.refresh().await?;
    browser.client.wait().for_element(Locator::Css("#python-status .gate.open")).await?;
    let text = browser.run("return document.getElementById('python-status').innerText").await?.to_string();
    for part in [
        "Python is open",
        "161 of 161",
        "read_etc_passwd",
        "Ada Lovelace",
        "<img src=x",
        "abababababab",
        "6.12.0",
    ] {
        ensure!(text.contains(part), "{part}: {text}");
    }
    let drawn = "return [document.querySelectorAll('.runs .passed').length, document.querySelectorAll('.runs .failed').length,
        document.querySelectorAll('#python-status img').length, document.querySelectorAll('#python-status tbody tr').length]";
    // A failed run is a bar with a gap: two pieces.
    ensure!(browser.run(drawn).await? == json!([2, 2, 0, 3]));
    browser.close().await?;
    Ok(())
}
