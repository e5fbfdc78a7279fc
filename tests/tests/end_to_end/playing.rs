//! What a player does: walks there by keyboard, plays, takes the files home.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use fantoccini::Locator;
use fantoccini::actions::{InputSource as _, KeyAction, KeyActions};
use fantoccini::key::Key;
use serde_json::json;
use tests::browser::Browser;
use tests::{Installation, Ran, http};

/// Presses a key the way a keyboard does.
async fn press(browser: &Browser, key: Key) -> Result<()> {
    let key = char::from(key);
    let actions = KeyActions::new("keyboard".to_owned())
        .then(KeyAction::Down { value: key })
        .then(KeyAction::Up { value: key });
    Ok(browser.client.perform_actions(actions).await?)
}

/// Presses Tab until the focused element matches, at most `most` times.
async fn tab_to(browser: &Browser, selector: &str, most: usize) -> Result<()> {
    for _ in 0..most {
        press(browser, Key::Tab).await?;
        let there = browser.run(&format!("return document.activeElement.matches({selector:?})")).await?;
        if there == json!(true) {
            let visible = "const r = document.activeElement.getBoundingClientRect(); return r.width > 0 && r.height > 0";
            ensure!(
                browser.run(visible).await? == json!(true),
                "{selector} has the focus and cannot be seen"
            );
            return Ok(());
        }
    }
    anyhow::bail!("Tab does not come to {selector}")
}

#[tokio::test]
async fn a_keyboard_is_enough() -> Result<()> {
    let mut here = Installation::new()?;
    here.publish()?;
    here.serve()?;
    let browser = Browser::open(&[], (1280, 800)).await?;
    let start = format!("http://localhost:{}/", here.site_port);
    browser.client.goto(&start).await?;
    tab_to(&browser, "main a[href^='/'][href*='/']:not([href$='.html'])", 60).await?;
    press(&browser, Key::Enter).await?;
    browser.client.wait().for_element(Locator::Css("#play")).await?;
    let page = browser.client.current_url().await?;
    tab_to(&browser, "#play", 30).await?;
    press(&browser, Key::Enter).await?;
    let frame = browser.client.wait().for_element(Locator::Css("#stage iframe")).await?;
    // The frame has the keyboard now: a key pressed arrives in the work and does not scroll the page.
    while browser.run("return document.activeElement.localName").await? != json!("iframe") {
        tokio::task::yield_now().await;
    }
    let before = browser.run("return scrollY").await?;
    frame.enter_frame().await?;
    browser.run("addEventListener('keydown', e => (window.seen ||= []).push(e.key), true)").await?;
    press(&browser, Key::Down).await?;
    assert_eq!(browser.run("return window.seen").await?, json!(["ArrowDown"]));
    browser.client.enter_parent_frame().await?;
    assert_eq!(browser.run("return scrollY").await?, before);
    browser.client.back().await?;
    browser.client.wait().for_url(&start.parse()?).await?;
    assert_ne!(page.as_str(), start);
    browser.close().await?;
    Ok(())
}

#[test]
fn what_is_taken_home_can_be_checked_there() -> Result<()> {
    let mut here = Installation::new()?;
    here.publish()?;
    here.serve()?;
    let sitemap = http::get(here.site_port, "localhost", "/sitemap.xml")?.text();
    let origin = format!("http://localhost:{}", here.site_port);
    let content = format!("http://127.0.0.1:{}", here.content_port);
    let mut works = 0;
    for path in sitemap.split("<loc>").skip(1).filter_map(|r| r.split("</loc>").next()?.strip_prefix(&origin))
    {
        let page = http::get(here.site_port, "localhost", path)?.text();
        let links: Vec<&str> = page
            .split("href=\"")
            .skip(1)
            .filter_map(|rest| rest.split_once('"'))
            .filter(|(_, after)| after.starts_with(" download"))
            .map(|(link, _)| link)
            .collect();
        if links.is_empty() {
            continue;
        }
        works += 1;
        let home = here.folder().join("home").join(path.trim_matches('/').replace('/', "-"));
        fs::create_dir_all(&home)?;
        for link in links {
            let path = link
                .strip_prefix(&content)
                .with_context(|| format!("{link} is not on the content origin"))?;
            let answer = http::get(here.content_port, "127.0.0.1", path)?;
            assert_eq!(
                (answer.status, answer.header("content-disposition")),
                (200, Some("attachment")),
                "{link}"
            );
            fs::write(home.join(path.rsplit('/').next().unwrap_or_default()), &answer.body)?;
        }
        let check =
            |arguments: &[&str]| Command::new("sha256sum").args(arguments).current_dir(&home).output();
        let ran = Ran::of(&check(&["--check", "--strict", "checksums.txt"])?);
        ensure!(ran.code == 0, "{path}: {ran:?}");
        assert_eq!(
            ran.stdout.lines().count() + 1,
            fs::read_dir(&home)?.count(),
            "{path}: a file without a line"
        );
        // The control: a changed byte is noticed.
        fs::write(home.join("index.html"), "other bytes")?;
        assert_ne!(Ran::of(&check(&["--check", "--status", "checksums.txt"])?).code, 0);
    }
    assert!(works >= 10, "{works} works");
    Ok(())
}
