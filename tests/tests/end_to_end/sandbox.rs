//! What a work can reach from inside: nothing of the page around it, of the site, or of the browser's storage.
//!
//! Each question is asked in the work's own document, framed and opened on its own, and once as a control in a page of
//! the site, where the answer must be the other one.

use std::fs;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tests::Installation;
use tests::browser::Browser;

const HOSTS: &[(&str, &str)] = &[("tinyfiles.tv", "127.0.0.1"), ("content-sandbox.com", "127.0.0.1")];

/// The name of the exception, or what came back.
const ASK: &str = "
    const ask = f => { try { return f() } catch (e) { return e.name } };
    return {
        origin: self.origin,
        cookie: ask(() => { document.cookie = 'a=b'; return document.cookie }),
        local: ask(() => localStorage.length),
        session: ask(() => sessionStorage.length),
        indexed: ask(() => typeof indexedDB.open('x')),
        caches: ask(() => typeof caches),
        popup: ask(() => window.open('about:blank') === null),
        parent: ask(() => parent === self ? 'alone' : parent.document.title),
        top: ask(() => top === self ? 'alone' : top.location.href),
        leave: ask(() => { if (top === self) return 'alone'; top.location = 'about:blank'; return 'left' }),
        domain: ask(() => { document.domain = document.domain; return 'set' }),
    };";

/// Works that declare nothing, and everything that needs no file.
fn installation() -> Result<Installation> {
    let mut here = Installation::with_public_names()?;
    for (name, capabilities) in [
        ("none", json!({})),
        ("all", json!({"audio": true, "fullscreen": true, "pointer_lock": true, "save_api": true})),
    ] {
        let folder = here.source().join("content/works/probe").join(name);
        fs::create_dir_all(&folder)?;
        fs::write(
            folder.join("index.html"),
            "<!DOCTYPE html><html lang=en><title>probe</title><body>probe</body></html>",
        )?;
        let sidecar = json!({"id": name, "released": "2026-11-30", "capabilities": capabilities});
        fs::write(folder.join("work.json"), sidecar.to_string())?;
    }
    here.publish()?;
    here.serve()?;
    Ok(here)
}

/// The document of the work must be there before it is asked.
async fn loaded(browser: &Browser) -> Result<()> {
    while browser.run("return document.title === 'probe' && document.readyState === 'complete'").await?
        != json!(true)
    {
        tokio::task::yield_now().await;
    }
    Ok(())
}

#[tokio::test]
async fn a_work_reaches_nothing_but_itself() -> Result<()> {
    let here = installation()?;
    let browser = Browser::open(HOSTS, (1280, 800)).await?;
    let (site, content) = (
        format!("https://tinyfiles.tv:{}", here.site_port),
        format!("https://content-sandbox.com:{}", here.content_port),
    );
    browser.client.goto(&format!("{site}/probe/none/")).await?;
    browser.play().await?;
    loaded(&browser).await?;
    let denied = "SecurityError";
    let framed = browser.run(ASK).await?;
    let expected = json!({
        "origin": "null", "cookie": denied, "local": denied, "session": denied, "indexed": denied, "caches": denied,
        "popup": true, "parent": denied, "top": denied, "leave": denied, "domain": denied,
    });
    assert_same(&framed, &expected);
    browser.client.goto(&format!("{content}/probe/none/")).await?;
    loaded(&browser).await?;
    let alone = browser.run(ASK).await?;
    let mut expected_alone = expected.clone();
    for key in ["parent", "top", "leave"] {
        expected_alone[key] = json!("alone");
    }
    assert_same(&alone, &expected_alone);
    // The control: a page of the site can do what is denied above, so the questions are the right ones.
    browser.client.goto(&format!("{site}/about.html")).await?;
    let control = browser.run(ASK).await?;
    for key in ["origin", "local", "session", "indexed", "caches"] {
        assert_ne!(control[key], expected[key], "{key}");
    }
    assert_eq!(control["origin"], json!(site));
    browser.close().await?;
    Ok(())
}

fn assert_same(found: &Value, expected: &Value) {
    for (key, value) in expected.as_object().into_iter().flatten() {
        assert_eq!(&found[key], value, "{key} in {found}");
    }
}

#[tokio::test]
async fn a_capability_is_granted_to_the_one_that_declares_it() -> Result<()> {
    let here = installation()?;
    let browser = Browser::open(HOSTS, (1280, 800)).await?;
    for (name, granted) in [("none", false), ("all", true)] {
        browser.client.goto(&format!("https://tinyfiles.tv:{}/probe/{name}/", here.site_port)).await?;
        browser.play().await?;
        loaded(&browser).await?;
        let found = browser
            .run("const p = document.featurePolicy; return { fullscreen: document.fullscreenEnabled, allowed: p.allowedFeatures().sort() }")
            .await?;
        assert_eq!(found["fullscreen"], json!(granted), "{name}");
        let allowed: Vec<&str> =
            found["allowed"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let beyond: Vec<_> = allowed.iter().filter(|f| !f.starts_with("ch-")).collect();
        let expected: &[&str] = if granted { &["autoplay", "fullscreen"] } else { &[] };
        assert_eq!(
            beyond,
            expected.iter().collect::<Vec<_>>(),
            "{name}: a feature is neither granted nor denied by policy"
        );
    }
    browser.close().await?;
    Ok(())
}

#[tokio::test]
async fn nobody_else_frames_a_work_and_nobody_frames_the_site() -> Result<()> {
    let here = installation()?;
    let browser = Browser::open(HOSTS, (1280, 800)).await?;
    for url in [
        format!("https://content-sandbox.com:{}/probe/none/", here.content_port),
        format!("https://tinyfiles.tv:{}/about.html", here.site_port),
    ] {
        browser.client.goto(&format!("data:text/html,<iframe src='{url}'></iframe>")).await?;
        let frame = browser.client.wait().for_element(fantoccini::Locator::Css("iframe")).await?;
        frame.enter_frame().await?;
        let shown = browser.run("return document.documentElement.outerHTML").await?;
        let shown = shown.as_str().unwrap_or_default();
        ensure!(
            !shown.contains("<title>probe") && !shown.contains("<title>About"),
            "{url} can be framed: {shown}"
        );
    }
    browser.close().await?;
    Ok(())
}

#[tokio::test]
async fn visiting_every_page_leaves_no_trace() -> Result<()> {
    let here = installation()?;
    let browser = Browser::open(HOSTS, (1280, 800)).await?;
    let sitemap = fs::read_to_string(here.data("live/site/sitemap.xml"))?;
    let pages: Vec<&str> =
        sitemap.split("<loc>").skip(1).filter_map(|rest| rest.split("</loc>").next()).collect();
    assert!(pages.len() > 10, "{sitemap}");
    for page in &pages {
        browser.client.goto(page).await?;
        let stored = browser
            .run("return [document.cookie, localStorage.length, (await indexedDB.databases()).length]")
            .await?;
        assert_eq!(stored, json!(["", 0, 0]), "{page}");
    }
    assert_eq!(browser.client.get_all_cookies().await?.len(), 0);
    // The control: what is looked for would be found.
    let stored = browser.run("localStorage.a = 1; return localStorage.length").await?;
    assert_eq!(stored, json!(1));
    browser.close().await?;
    Ok(())
}
