//! One work in Chromium: from a key made there, through gates, desk and its function, to its page and off it again.

use anyhow::{Context as _, Result, ensure};
use fantoccini::{Client, Locator};
use serde_json::json;
use tests::browser::Browser;
use tests::desk::{self, Key, until};
use tests::{Installation, http};

use crate::submit_review::{SIDECAR, installation, page, status};

/// A sidecar with a function.
const PAIR: &str = r#"{"id": "kite", "title": "Kite", "summary": "It flies.", "capabilities": {"python_backend": "kite.py"}}"#;
const FUNCTION: &str = "def run(inputs):\n    return {\"high\": inputs[\"line\"] * 2}\n";
/// What a page says that has its function's answer.
const HIGH: &str = "42 metres";

/// A page that asks the function it comes with, and flies without it too.
fn pair(colour: &str) -> Result<String> {
    let tf = std::fs::read_to_string(tests::repository().join("theme/tf.js"))?;
    let ask = "TF.backend({ line: 21 }).then(a => { document.getElementById('high').textContent = a.high + ' metres' },\n\
               () => { document.getElementById('high').textContent = 'no wind' });";
    let with = format!("<script data-tf>\n{tf}</script><p id=\"high\"></p>\n<script>");
    Ok(page(colour, ask).replacen("<script>", &with, 1))
}

/// Opens a page of the site and waits for an element.
async fn go(browser: &Client, here: &Installation, path: &str, css: &str) -> Result<()> {
    browser.goto(&format!("http://localhost:{}{path}", here.site_port)).await?;
    shown(browser, css).await
}

/// Waits until an element is there to be seen.
async fn shown(browser: &Client, css: &str) -> Result<()> {
    let script = "const e = document.querySelector(arguments[0]); return !!e && e.checkVisibility();";
    for _ in 0..1_200 {
        if browser.execute(script, vec![css.into()]).await? == true {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    anyhow::bail!("{css} does not appear:\n{}", text(browser, "main").await?)
}

async fn text(browser: &Client, css: &str) -> Result<String> {
    Ok(browser.find(Locator::Css(css)).await?.text().await?)
}

async fn press(browser: &Client, css: &str) -> Result<()> {
    Ok(browser.find(Locator::Css(css)).await?.click().await?)
}

async fn write(browser: &Client, css: &str, text: &str) -> Result<()> {
    Ok(browser.find(Locator::Css(css)).await?.send_keys(text).await?)
}

async fn claim(browser: &Client, here: &Installation, name: &str) -> Result<()> {
    go(browser, here, "/submit.html", "#claim").await?;
    write(browser, "#pseudonym", name).await?;
    press(browser, "#claim button").await?;
    shown(browser, "#key-some").await?;
    assert_eq!(text(browser, "#key-name").await?, name);
    Ok(())
}

/// Submits a page and its sidecar, and waits until the job is in that state.
async fn submit(browser: &Client, here: &Installation, html: &str, state: &str) -> Result<()> {
    submit_files(browser, here, &[("index.html", html), ("work.json", SIDECAR)], state).await
}

async fn submit_files(
    browser: &Client,
    here: &Installation,
    files: &[(&str, &str)],
    state: &str,
) -> Result<()> {
    let folder = desk::folder(here, "kite", files)?;
    go(browser, here, "/submit.html", "#key-some").await?;
    let paths: Vec<String> = files.iter().map(|(name, _)| folder.join(name).display().to_string()).collect();
    write(browser, "#files", &paths.join("\n")).await?;
    shown(browser, "#send:enabled").await?;
    press(browser, "#send").await?;
    shown(browser, &format!("#job .state.{state}")).await
}

/// Opens the first version that waits and plays its preview; returns the address of the preview.
async fn play_pending(moderator: &Browser, here: &Installation) -> Result<String> {
    let browser = &moderator.client;
    go(browser, here, "/review.html", "#queue a").await?;
    press(browser, "#queue a").await?;
    shown(browser, "#play").await?;
    let path = browser.find(Locator::Css("#play")).await?.attr("href").await?.context("no address")?;
    go(browser, here, &path, "#play").await?;
    moderator.play().await?;
    browser.wait().for_element(Locator::Css("#sky")).await?;
    has_its_answer(browser).await?;
    browser.enter_parent_frame().await?;
    Ok(path)
}

/// The work is where players look.
fn is_listed(here: &Installation) -> Result<()> {
    for file in ["/", "/rss.xml", "/sitemap.xml", "/data/works.js"] {
        let answer = http::get(here.site_port, "localhost", file)?.text();
        assert!(answer.contains("maker/kite") || answer.contains("\"kite\""), "{file}");
    }
    Ok(())
}

/// Waits until the page in the frame has what its function answered.
async fn has_its_answer(browser: &Client) -> Result<()> {
    shown(browser, "#high").await?;
    let script = "return document.getElementById('high').textContent";
    for _ in 0..1_200 {
        let said = browser.execute(script, vec![]).await?;
        if said != "" {
            ensure!(said == HIGH, "the function did not answer: {said}");
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    anyhow::bail!("the page waits for its function")
}

async fn decide(browser: &Client, here: &Installation, decision: &str, reason: &str) -> Result<()> {
    go(browser, here, "/review.html", "#queue a").await?;
    press(browser, "#queue a").await?;
    shown(browser, "#version").await?;
    write(browser, "#reason", reason).await?;
    press(browser, &format!("#decision button[value={decision}]")).await?;
    shown(browser, "#review-news.loud").await
}

/// A pair of that page.
fn files(html: &str) -> [(&str, &str); 3] {
    [("index.html", html), ("work.json", PAIR), ("kite.py", FUNCTION)]
}

/// Another member rates it; the next publish takes the rating along.
async fn rated(moderator: &Client, here: &Installation) -> Result<()> {
    go(moderator, here, "/maker/kite/", "#rate label").await?;
    press(moderator, "#rate label:has([value=\"4\"])").await?;
    shown(moderator, "#rate-news:not(:empty)").await?;
    go(moderator, here, "/maker/kite/", "#rate :checked + span").await?;
    assert_eq!(text(moderator, "#rate :checked + span").await?, "4");
    Ok(())
}

/// An update waits beside what is served, then takes its place.
async fn updated(maker: &Client, moderator: &Client, here: &Installation) -> Result<()> {
    submit_files(maker, here, &files(&pair("crimson")?), "pending_review").await?;
    let served = || Ok::<_, anyhow::Error>(http::get(here.content_port, "127.0.0.1", "/maker/kite/")?.text());
    assert!(served()?.contains("teal"));
    go(moderator, here, "/review.html", "#queue a").await?;
    press(moderator, "#queue a").await?;
    shown(moderator, "#sources summary").await?;
    press(moderator, "#sources summary").await?;
    shown(moderator, ".line.added").await?;
    let changed = text(moderator, ".line.added").await? + &text(moderator, ".line.removed").await?;
    assert!(changed.contains("crimson") && changed.contains("teal"), "{changed}");
    decide(moderator, here, "approve", "").await?;
    until(|| Ok(served()?.contains("crimson").then_some(())))?;
    let rated = http::get(here.site_port, "localhost", "/maker/kite/")?.text();
    assert!(rated.contains("4.0 of 5 by 1 member<"), "{rated}");
    Ok(())
}

async fn taken_down(moderator: &Client, here: &Installation) -> Result<()> {
    go(moderator, here, "/review.html", "#take-down").await?;
    write(moderator, "#path", "/maker/kite/").await?;
    write(moderator, "#why", "Its maker asked.").await?;
    press(moderator, "#take-down button").await?;
    moderator.accept_alert().await?;
    until(|| Ok((status(here, "/maker/kite/")? == 410).then_some(())))?;
    assert_eq!(http::get(here.content_port, "127.0.0.1", "/maker/kite/")?.status, 410);
    Ok(())
}

/// A role that ends while the desk is open.
async fn role_ended(moderator: &Client, here: &Installation) -> Result<()> {
    desk::api(here, &["member", "revoke", "mod", "moderator"])?;
    press(moderator, "#again").await?;
    moderator.wait().for_element(Locator::Css("#desk[hidden]")).await?;
    shown(moderator, "#review-news.loud").await?;
    let told = text(moderator, "#review-news").await?;
    assert!(told.starts_with("mod is not a moderator any more"), "{told}");
    Ok(())
}

/// The key, brought back in another profile.
async fn restored(maker: &Browser, here: &Installation) -> Result<Browser> {
    let kept = maker.run("return sessionStorage.getItem('tinyfiles-key')").await?;
    let file =
        desk::folder(here, "key", &[("maker.json", kept.as_str().context("no key")?)])?.join("maker.json");
    let other = Browser::open(&[], (1000, 900)).await?;
    go(&other.client, here, "/submit.html", "#restore").await?;
    write(&other.client, "#restore", &file.display().to_string()).await?;
    shown(&other.client, "#own a").await?;
    assert_eq!(text(&other.client, "#key-name").await?, "maker");
    Ok(other)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_goes_from_a_new_key_to_its_page_and_off_it_again() -> Result<()> {
    let (here, _serve) = installation()?;
    let _runner = here.linting_runner()?;
    let _work = desk::work(&here)?;
    let maker = Browser::open(&[], (1000, 900)).await?;
    let moderator = Browser::open(&[], (1000, 900)).await?;
    claim(&maker.client, &here, "maker").await?;
    claim(&moderator.client, &here, "mod").await?;
    let granted = desk::api(&here, &["member", "grant", "mod", "moderator"])?;
    ensure!(granted.code == 0, "{granted:?}");

    // Found, mended, sent again.
    submit(&maker.client, &here, &page("teal", "eval(\"1\");"), "rejected").await?;
    let findings = text(&maker.client, "#job .findings").await?;
    assert!(findings.contains("index.html:6") && findings.contains("eval"), "{findings}");
    submit_files(&maker.client, &here, &files(&pair("teal")?), "pending_review").await?;
    assert_eq!(status(&here, "/maker/kite/")?, 404);

    // Played with its function, which nobody else can call yet, and approved.
    let ask = Some(json!({ "line": 1 }));
    assert_eq!(Key::new(&here, 9)?.ask("POST", "/api/python/maker/kite", ask.as_ref())?.status, 404);
    let preview = play_pending(&moderator, &here).await?;
    decide(&moderator.client, &here, "approve", "It flies.").await?;
    until(|| Ok((status(&here, "/maker/kite/")? == 200).then_some(())))?;
    assert_eq!(status(&here, &preview)?, 404, "a preview ends with the decision");
    is_listed(&here)?;
    go(&maker.client, &here, "/maker/kite/", "#play").await?;
    maker.play().await?;
    has_its_answer(&maker.client).await?;
    maker.client.enter_parent_frame().await?;
    assert!(!maker.client.find(Locator::Css("#rate")).await?.is_displayed().await?, "one's own");

    rated(&moderator.client, &here).await?;
    updated(&maker.client, &moderator.client, &here).await?;
    taken_down(&moderator.client, &here).await?;
    role_ended(&moderator.client, &here).await?;
    let other = restored(&maker, &here).await?;
    for browser in [maker, moderator, other] {
        browser.close().await?;
    }
    let audit = desk::api(&here, &["audit"])?;
    assert!(audit.stdout.contains("the chain holds"), "{audit:?}");
    Ok(())
}
