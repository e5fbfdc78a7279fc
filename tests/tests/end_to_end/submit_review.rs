//! From a key made in a browser to a published work, and what happens when anything is killed on the way.

use anyhow::{Context as _, Result, ensure};
use fantoccini::{Client, Locator};
use serde_json::{Value, json};
use tests::browser::Browser;
use tests::desk::{self, Key, until};
use tests::{Installation, http};

const SIDECAR: &str = r#"{"id": "kite", "title": "Kite", "summary": "It flies."}"#;
/// The same as a pair with a function.
const PAIR: &str = r#"{"id": "kite", "title": "Kite", "summary": "It flies.", "capabilities": {"python_backend": "kite.py"}}"#;
const FUNCTION: &str = "def run(inputs):\n    return {\"high\": inputs[\"line\"] * 2}\n";
/// What a page says that has its function's answer.
const HIGH: &str = "42 metres";

fn page(colour: &str, more: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Kite</title><body><canvas id=\"sky\" width=\"300\" \
         height=\"200\"></canvas>\n<script>\nconst c = document.getElementById(\"sky\").getContext(\"2d\");\nc.fillStyle = \
         \"{colour}\";\nc.fillRect(20, 20, 100, 80);\n{more}\n</script></body></html>\n"
    )
}

/// A page that asks the function it comes with, and flies without it too.
fn pair() -> Result<String> {
    let tf = std::fs::read_to_string(tests::repository().join("theme/tf.js"))?;
    let ask = "TF.backend({ line: 21 }).then(a => { document.getElementById('high').textContent = a.high + ' metres' },\n\
               () => { document.getElementById('high').textContent = 'no wind' });";
    let with = format!("<script data-tf>\n{tf}</script><p id=\"high\"></p>\n<script>");
    Ok(page("teal", ask).replacen("<script>", &with, 1))
}

/// A published installation with nginx and the server behind `/api/`.
fn installation() -> Result<(Installation, desk::Running)> {
    let mut here = Installation::small()?;
    here.publish()?;
    let serve = desk::serve(&here)?;
    here.serve()?;
    Ok((here, serve))
}

fn status(here: &Installation, path: &str) -> Result<u16> {
    Ok(http::get(here.site_port, "localhost", path)?.status)
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
    let files = [("index.html", &*pair()?), ("work.json", PAIR), ("kite.py", FUNCTION)];
    submit_files(&maker.client, &here, &files, "pending_review").await?;
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

    // Rated by another member; the next publish takes the rating along.
    go(&moderator.client, &here, "/maker/kite/", "#rate label").await?;
    press(&moderator.client, "#rate label:has([value=\"4\"])").await?;
    shown(&moderator.client, "#rate-news:not(:empty)").await?;
    go(&moderator.client, &here, "/maker/kite/", "#rate :checked + span").await?;
    assert_eq!(text(&moderator.client, "#rate :checked + span").await?, "4");

    // An update, without its function, waits beside what is served.
    submit(&maker.client, &here, &page("crimson", ""), "pending_review").await?;
    let served = || Ok::<_, anyhow::Error>(http::get(here.content_port, "127.0.0.1", "/maker/kite/")?.text());
    assert!(served()?.contains("teal"));
    go(&moderator.client, &here, "/review.html", "#queue a").await?;
    press(&moderator.client, "#queue a").await?;
    shown(&moderator.client, "#sources summary").await?;
    press(&moderator.client, "#sources summary").await?;
    shown(&moderator.client, ".line.added").await?;
    let changed =
        text(&moderator.client, ".line.added").await? + &text(&moderator.client, ".line.removed").await?;
    assert!(changed.contains("crimson") && changed.contains("teal"), "{changed}");
    decide(&moderator.client, &here, "approve", "").await?;
    until(|| Ok(served()?.contains("crimson").then_some(())))?;
    let rated = http::get(here.site_port, "localhost", "/maker/kite/")?.text();
    assert!(rated.contains("4.0 of 5 by 1 member<"), "{rated}");

    // Taken down.
    go(&moderator.client, &here, "/review.html", "#take-down").await?;
    write(&moderator.client, "#path", "/maker/kite/").await?;
    write(&moderator.client, "#why", "Its maker asked.").await?;
    press(&moderator.client, "#take-down button").await?;
    moderator.client.accept_alert().await?;
    until(|| Ok((status(&here, "/maker/kite/")? == 410).then_some(())))?;
    assert_eq!(http::get(here.content_port, "127.0.0.1", "/maker/kite/")?.status, 410);

    // A role that ends while the desk is open.
    desk::api(&here, &["member", "revoke", "mod", "moderator"])?;
    press(&moderator.client, "#again").await?;
    moderator.client.wait().for_element(Locator::Css("#desk[hidden]")).await?;
    shown(&moderator.client, "#review-news.loud").await?;
    let told = text(&moderator.client, "#review-news").await?;
    assert!(told.starts_with("mod is not a moderator any more"), "{told}");

    // The key, brought back in another profile.
    let kept = maker.run("return sessionStorage.getItem('tinyfiles-key')").await?;
    let file =
        desk::folder(&here, "key", &[("maker.json", kept.as_str().context("no key")?)])?.join("maker.json");
    let other = Browser::open(&[], (1000, 900)).await?;
    go(&other.client, &here, "/submit.html", "#restore").await?;
    write(&other.client, "#restore", &file.display().to_string()).await?;
    shown(&other.client, "#own a").await?;
    assert_eq!(text(&other.client, "#key-name").await?, "maker");
    for browser in [maker, moderator, other] {
        browser.close().await?;
    }
    let audit = desk::api(&here, &["audit"])?;
    assert!(audit.stdout.contains("the chain holds"), "{audit:?}");
    Ok(())
}

#[test]
fn a_preview_is_seen_by_nobody_else_and_only_where_it_belongs() -> Result<()> {
    let (here, _serve) = installation()?;
    let (maker, moderator) = (Key::new(&here, 1)?.claim("maker")?, Key::new(&here, 2)?.claim("mod")?);
    desk::api(&here, &["member", "grant", "mod", "moderator"])?;
    let html = page("teal", "");
    let job = maker
        .submit(&[("payload", "a.html", html.as_bytes()), ("sidecar", "work.json", SIDECAR.as_bytes())])?;
    ensure!(desk::api(&here, &["work", "--once"])?.code == 0);
    maker.wait(&job, "pending_review")?;
    assert_eq!(maker.ask("GET", "/api/review", None)?.status, 403);
    let queue: Value = serde_json::from_slice(&moderator.ask("GET", "/api/review", None)?.body)?;
    let row = &queue["pending"][0]["id"];
    let opened = moderator.ask("POST", &format!("/api/review/{row}/preview"), Some(&json!({})))?;
    let opened: Value = serde_json::from_slice(&opened.body)?;
    let (token, path) =
        (opened["token"].as_str().context("token")?, opened["path"].as_str().context("path")?);
    ensure!(desk::api(&here, &["work", "--once"])?.code == 0);

    let wrapper = http::get(here.site_port, "localhost", path)?;
    assert_eq!((wrapper.status, wrapper.header("x-robots-tag")), (200, Some("noindex")));
    assert!(wrapper.text().contains(&format!("data-src=\"http://127.0.0.1:{}{path}\"", here.content_port)));
    let framed = http::get(here.content_port, "127.0.0.1", path)?;
    assert_eq!((framed.status, framed.text()), (200, html));
    // The headers of any work, for its own path.
    let expected = policy::headers::work(&policy::Config::open(&here.config())?, path);
    for header in expected {
        assert_eq!(framed.header(&header.name.to_lowercase()), Some(header.value.as_str()));
    }
    // No submitted page by the site, nothing by its folder, nothing for another token.
    for (port, host, path) in [
        (here.site_port, "localhost", format!("{path}work.json")),
        (here.site_port, "localhost", format!("/preview-files/{token}/index.html")),
        (here.content_port, "127.0.0.1", format!("/preview-files/{token}/index.html")),
        (here.site_port, "localhost", format!("/api/preview/{token}/index.html")),
        (here.content_port, "127.0.0.1", format!("{path}../../catalog.db")),
        (here.content_port, "127.0.0.1", path.replace(&token[..4], "0000")),
    ] {
        assert_eq!(http::get(port, host, &path)?.status, 404, "{path}");
    }
    let log = std::fs::read_to_string(here.data("nginx/access.log"))?;
    assert!(!log.contains(token), "a token is in the log");
    Ok(())
}

#[test]
fn killed_at_any_stage_a_submission_comes_through_once() -> Result<()> {
    let (here, mut serve) = installation()?;
    let maker = Key::new(&here, 1)?.claim("maker")?;
    let html = page("teal", "");
    let files = [("payload", "a.html", html.as_bytes()), ("sidecar", "work.json", SIDECAR.as_bytes())];
    let job = maker.submit(&files)?;
    // A 202 means that it is on disk: the server may go.
    serve.kill()?;
    let catalog = catalog::Catalog::open(&here.data("catalog.db"))?;
    for stage in ["checking", "playing", "storing"] {
        let mut work = desk::work(&here)?;
        until(|| {
            let found = catalog.submission(&job)?.context("it is lost")?;
            Ok((found.stage == stage || found.state.as_str() != "received").then_some(()))
        })?;
        work.kill()?;
    }
    let _work = desk::work(&here)?;
    let _serve = desk::serve(&here)?;
    maker.wait(&job, "pending_review")?;
    let pending = catalog.pending()?;
    assert_eq!(pending.len(), 1);
    let data = catalog::Data::open(&here.data(""))?;
    for file in &pending[0].work.files {
        data.objects.read(&file.digest)?;
    }
    assert_eq!(desk::names(&here.data("staging")), Vec::<String>::new());
    Ok(())
}

#[test]
fn an_approval_stands_while_publishing_fails_and_the_site_stays() -> Result<()> {
    let (here, _serve) = installation()?;
    let (maker, moderator) = (Key::new(&here, 1)?.claim("maker")?, Key::new(&here, 2)?.claim("mod")?);
    desk::api(&here, &["member", "grant", "mod", "moderator"])?;
    let html = page("teal", "");
    let job = maker
        .submit(&[("payload", "a.html", html.as_bytes()), ("sidecar", "work.json", SIDECAR.as_bytes())])?;
    ensure!(desk::api(&here, &["work", "--once"])?.code == 0);
    maker.wait(&job, "pending_review")?;
    here.edit("theme/templates/base.html", "<main id=\"main\">", "<main id=\"main\">{{ no_such_value }}")?;
    let before = here.live()?;
    let queue: Value = serde_json::from_slice(&moderator.ask("GET", "/api/review", None)?.body)?;
    let decision = format!("/api/review/{}/decision", queue["pending"][0]["id"]);
    let approve = json!({ "decision": "approve" });
    assert_eq!(moderator.ask("POST", &decision, Some(&approve))?.status, 204);
    assert_eq!(moderator.ask("POST", &decision, Some(&approve))?.status, 409);
    ensure!(desk::api(&here, &["work", "--once"])?.code == 0);
    assert_eq!((here.live()?, status(&here, "/maker/kite/")?), (before, 404));
    here.edit("theme/templates/base.html", "{{ no_such_value }}", "")?;
    let _work = desk::work(&here)?;
    until(|| Ok((status(&here, "/maker/kite/")? == 200).then_some(())))?;
    // What its creator does not want there any more goes the same way.
    assert_eq!(moderator.ask("DELETE", "/api/works/kite", None)?.status, 404, "it is not theirs");
    assert_eq!(maker.ask("DELETE", "/api/works/kite", None)?.status, 204);
    until(|| Ok((status(&here, "/maker/kite/")? == 410).then_some(())))?;
    maker.wait(&job, "withdrawn")?;
    Ok(())
}

#[test]
fn uploads_that_are_none_leave_nothing() -> Result<()> {
    let (here, _serve) = installation()?;
    let maker = Key::new(&here, 1)?.claim("maker")?;
    let stranger = Key::new(&here, 9)?;
    let html = page("teal", "");
    let good = desk::multipart(&[
        ("payload", "a.html", html.as_bytes()),
        ("sidecar", "work.json", SIDECAR.as_bytes()),
    ]);
    let many: Vec<_> = (0..10_000).map(|_| ("cover", "c.png", &b""[..])).collect();
    let large = vec![b' '; 5_242_881];
    for (body, status) in [
        (desk::multipart(&[]), 400),
        (desk::multipart(&[("sidecar", "work.json", SIDECAR.as_bytes())]), 400),
        (desk::multipart(&[("payload", "a.html", b"1"), ("payload", "b.html", b"2")]), 400),
        (desk::multipart(&many), 400),
        (desk::multipart(&[("payload", "a.html", &large)]), 413),
        (good[..good.len() - 20].to_vec(), 400),
    ] {
        let answer = maker.send("POST", "/api/submissions", desk::MULTIPART, &body)?;
        assert_eq!(answer.status, status, "{}", answer.text());
    }
    assert_eq!(stranger.send("POST", "/api/submissions", desk::MULTIPART, &good)?.status, 401);
    assert_eq!(
        http::with(here.site_port, "localhost", "POST", "/api/submissions", &[("Content-Length", "0")])?
            .status,
        401
    );
    // One that stops half way.
    let head = format!(
        "POST /api/submissions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: {}\r\n\
         Content-Length: {}\r\n\r\n",
        maker.token()?,
        desk::MULTIPART,
        good.len()
    );
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", here.site_port))?;
    std::io::Write::write_all(&mut stream, &[head.as_bytes(), &good[..good.len() / 2]].concat())?;
    drop(stream);
    until(|| Ok(desk::names(&here.data("staging")).is_empty().then_some(())))?;
    let catalog = catalog::Catalog::open(&here.data("catalog.db"))?;
    assert!(catalog.job_counts()?.is_empty());
    Ok(())
}

/// The process of the gates, asked to reach what it must not. The same probe outside it succeeds.
#[test]
fn the_process_of_the_gates_reaches_its_folder_alone() -> Result<()> {
    let here = Installation::small()?;
    here.publish()?;
    let folder =
        desk::folder(&here, "job/in", &[("payload.html", &page("teal", "")), ("work.json", SIDECAR)])?;
    let job = folder.parent().context("no parent")?.to_owned();
    let check = || desk::api(&here, &["gate", "check", &job.to_string_lossy()]);
    let well = check()?;
    assert_eq!(well.code, 0, "{well:?}");
    assert!(job.join("out/index.html").is_file());
    // A link out of the folder is a path that only the confinement stops.
    let secret = here.folder().join("secret.html");
    std::fs::write(&secret, page("red", ""))?;
    std::fs::remove_file(folder.join("payload.html"))?;
    std::os::unix::fs::symlink(&secret, folder.join("payload.html"))?;
    assert!(std::fs::read(folder.join("payload.html")).is_ok(), "outside it can be read");
    let refused = check()?;
    assert!(refused.code != 0 && refused.stderr.contains("Permission denied"), "{refused:?}");
    Ok(())
}
