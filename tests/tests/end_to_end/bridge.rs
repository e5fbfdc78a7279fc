//! The bridge between a work and the page around it: what a work asks for, is granted, is refused, and floods.

use std::fs;

use anyhow::{Context as _, Result};
use fantoccini::Locator;
use serde_json::{Value, json};
use tests::browser::Browser;
use tests::{Installation, repository};

/// Publishes one work of that name for each script, after `tf.js`, with these capabilities.
fn installation(works: &[(&str, &str, Value)]) -> Result<Installation> {
    let mut here = Installation::with_public_names()?;
    let tf = fs::read_to_string(repository().join("theme/tf.js"))?;
    for (name, script, capabilities) in works {
        let folder = here.source().join("content/works/probe").join(name);
        fs::create_dir_all(&folder)?;
        let html = format!(
            "<!DOCTYPE html><html lang=en><title>probe</title><script>{tf}</script><body><script>{script}</script>"
        );
        fs::write(folder.join("index.html"), html)?;
        let sidecar = json!({"id": name, "released": "2026-11-30", "capabilities": capabilities});
        fs::write(folder.join("work.json"), sidecar.to_string())?;
    }
    here.publish()?;
    here.serve()?;
    Ok(here)
}

const HOSTS: &[(&str, &str)] = &[("tinyfiles.tv", "127.0.0.1"), ("content-sandbox.com", "127.0.0.1")];

async fn play(browser: &Browser, here: &Installation, name: &str) -> Result<()> {
    browser.client.goto(&format!("https://tinyfiles.tv:{}/probe/{name}/", here.site_port)).await?;
    browser.play().await
}

/// Waits until a script returns something other than null.
async fn until(browser: &Browser, script: &str) -> Result<Value> {
    loop {
        let found = browser.run(script).await?;
        if !found.is_null() {
            return Ok(found);
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_work_is_answered_by_what_it_declares() -> Result<()> {
    let script = "Promise.allSettled([TF.ready, TF.save(1), TF.pointerLock(), TF.backend({})]).then(all =>
        window.answers = all.map(a => a.value ?? a.reason.type))";
    let here = installation(&[("none", script, json!({})), ("saves", script, json!({"save_api": true}))])?;
    let browser = Browser::open(HOSTS, (1280, 800)).await?;
    for (name, expected) in [
        ("none", json!([{"capabilities": []}, "undeclared", "undeclared", "undeclared"])),
        ("saves", json!([{"capabilities": ["save_api"]}, "unreachable", "undeclared", "undeclared"])),
    ] {
        play(&browser, &here, name).await?;
        assert_eq!(until(&browser, "return window.answers ?? null").await?, expected, "{name}");
    }
    // Opened on its own, it is told so at once, and a storage in memory stands in for the one that throws.
    browser.client.goto(&format!("https://content-sandbox.com:{}/probe/none/", here.content_port)).await?;
    assert_eq!(
        until(&browser, "return window.answers ?? null").await?,
        json!(["alone", "alone", "alone", "alone"])
    );
    let stored = browser.run("localStorage.setItem('a', 1); localStorage.b = 2; return [localStorage.getItem('a'), localStorage.length]");
    assert_eq!(stored.await?, json!(["1", 2]));
    browser.close().await?;
    Ok(())
}

#[tokio::test]
async fn a_flood_ends_the_work_and_not_the_page() -> Result<()> {
    let flood = "setInterval(() => { for (let i = 0; i < 2000; i++) parent.postMessage({tf: 'hello', version: 1}, '*') }, 5)";
    let nonsense = "TF.ready.then(() => { for (const m of [null, 7, {}, [], {tf: 'hello'}, {tf: {}}, JSON.parse('{\"__proto__\": {\"x\": 1}}')])
        parent.postMessage(m, '*'); window.sent = true })";
    let here = installation(&[("flood", flood, json!({})), ("nonsense", nonsense, json!({}))])?;
    let browser = Browser::open(HOSTS, (1280, 800)).await?;
    browser.client.goto(&format!("https://tinyfiles.tv:{}/probe/flood/", here.site_port)).await?;
    browser.client.wait().for_element(Locator::Css("#play")).await?.click().await?;
    let said = until(
        &browser,
        "const r = document.getElementById('reason'); return r.hidden ? null : r.textContent",
    )
    .await?;
    assert!(said.as_str().context("a sentence")?.contains("more messages"), "{said}");
    assert_eq!(browser.run("return document.querySelectorAll('iframe').length").await?, json!(0));
    play(&browser, &here, "nonsense").await?;
    until(&browser, "return window.sent ?? null").await?;
    browser.client.enter_parent_frame().await?;
    assert_eq!(
        browser.run("return [document.querySelectorAll('iframe').length, ({}).x ?? null]").await?,
        json!([1, null])
    );
    browser.client.find(Locator::Css("#stop")).await?.click().await?;
    assert_eq!(browser.run("return document.querySelectorAll('iframe').length").await?, json!(0));
    browser.close().await?;
    Ok(())
}

/// In a real window, because a headless browser locks no pointer.
#[tokio::test]
async fn the_page_holds_the_pointer_and_the_work_gets_the_movement() -> Result<()> {
    let script = "let x = 0; TF.onpointer = dx => { x += dx; window.moved = x };
        TF.onpointerlost = () => window.lost = true;
        addEventListener('click', () => TF.pointerLock().then(() => window.locked = true, e => window.locked = e.type))";
    let here =
        installation(&[("aims", script, json!({"pointer_lock": true})), ("may-not", script, json!({}))])?;
    let browser = Browser::open_window(HOSTS, (1000, 800)).await?;
    for (name, expected) in [("may-not", json!("undeclared")), ("aims", json!(true))] {
        play(&browser, &here, name).await?;
        until(&browser, "return document.body ? true : null").await?;
        browser.client.enter_parent_frame().await?;
        let middle = browser
            .run(
                "const f = document.querySelector('iframe'); f.scrollIntoView({block: 'center'});
                 const r = f.getBoundingClientRect();
                 return [screenX + r.x + r.width / 2, screenY + outerHeight - innerHeight + r.y + r.height / 2]",
            )
            .await?;
        let at = |i: usize| middle[i].as_f64().map(|v| format!("{v:.0}")).unwrap_or_default();
        browser.xdotool(&["mousemove", "--sync", &at(0), &at(1), "click", "1"])?;
        browser.client.find(Locator::Css("iframe")).await?.enter_frame().await?;
        assert_eq!(until(&browser, "return window.locked ?? null").await?, expected, "{name}");
    }
    browser.xdotool(&["mousemove_relative", "--", "40", "0"])?;
    let moved = until(&browser, "return window.moved ?? null").await?;
    assert!(moved.as_f64().is_some_and(|x| x > 0.0), "{moved}");
    browser.xdotool(&["key", "Escape"])?;
    assert_eq!(until(&browser, "return window.lost ?? null").await?, json!(true));
    browser.close().await?;
    Ok(())
}
