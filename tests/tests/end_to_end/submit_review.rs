//! From an upload to a published work, over HTTP, and what happens when anything is killed on the way.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tests::desk::{self, Key, until};
use tests::{Installation, http};

pub(crate) const SIDECAR: &str = r#"{"id": "kite", "title": "Kite", "summary": "It flies."}"#;
pub(crate) fn page(colour: &str, more: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Kite</title><body><canvas id=\"sky\" width=\"300\" \
         height=\"200\"></canvas>\n<script>\nconst c = document.getElementById(\"sky\").getContext(\"2d\");\nc.fillStyle = \
         \"{colour}\";\nc.fillRect(20, 20, 100, 80);\n{more}\n</script></body></html>\n"
    )
}

/// A published installation with nginx and the server behind `/api/`.
pub(crate) fn installation() -> Result<(Installation, desk::Running)> {
    let mut here = Installation::small()?;
    here.publish()?;
    let serve = desk::serve(&here)?;
    here.serve()?;
    Ok((here, serve))
}

pub(crate) fn status(here: &Installation, path: &str) -> Result<u16> {
    Ok(http::get(here.site_port, "localhost", path)?.status)
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
    // Also where the last one was killed between the row and the folder.
    until(|| Ok(desk::names(&here.data("staging")).is_empty().then_some(())))?;
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
