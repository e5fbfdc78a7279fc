//! The API behind the real nginx: what reaches it, and what nginx answers itself.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;

use anyhow::{Context as _, Result, ensure};
use policy::{Config, headers, limits};
use tests::Installation;
use tests::http::{self, Answer};

const BYTES: (&str, &str) = ("Content-Type", "application/octet-stream");
const NEW: (&str, &str) = ("If-None-Match", "*");

/// A key that stands out in any file.
fn key(number: u64) -> String {
    format!("{:064x}", 0x00c0_ffee_0000_0000_u64 + number)
}

fn send(
    here: &Installation,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Result<Answer> {
    let mut head =
        format!("{method} {path} HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\n", here.site_port);
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    http::raw(here.site_port, &[head.as_bytes(), body].concat())
}

fn save(number: u64) -> String {
    format!("/api/saves/{}", key(number))
}

/// The name of a problem, whose paragraph must be on the site.
fn problem(here: &Installation, answer: &Answer) -> Result<String> {
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
    let body: serde_json::Value = serde_json::from_slice(&answer.body)?;
    assert_eq!(body["status"], answer.status, "{answer:?}");
    let name = body["type"].as_str().and_then(|t| t.strip_prefix("/problems.html#")).context("no type")?;
    let page = fs::read_to_string(here.data("live/site/problems.html"))?;
    ensure!(page.contains(&format!("id=\"{name}\"")), "{name} is not on the page");
    Ok(name.to_owned())
}

#[test]
fn a_save_goes_through_nginx_with_every_header_of_the_policy() -> Result<()> {
    let mut here = Installation::small()?;
    here.publish()?;
    here.serve()?;
    let api = here.api()?;
    // Neither a body nor an answer is ever a file: there is no folder for one.
    for folder in ["body", "proxy"] {
        fs::remove_dir_all(here.data("nginx/tmp").join(folder))?;
    }
    let big: Vec<u8> = (0..limits().save.body_bytes_max).map(|i| i.to_le_bytes()[1]).collect();
    let made = send(&here, "PUT", &save(1), &[NEW, BYTES], &big)?;
    assert_eq!(made.status, 201, "{made:?}");
    let chunks = [format!("{:x}\r\n", big.len()).as_bytes(), &big[..], b"\r\n0\r\n\r\n"].concat();
    let head = format!(
        "PUT {} HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\nIf-None-Match: *\r\nContent-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
        save(2),
        here.site_port
    );
    assert_eq!(http::raw(here.site_port, &[head.as_bytes(), &chunks].concat())?.status, 201);
    let set = headers::site(&Config::open(&here.config())?);
    let tag = made.header("etag").context("no tag")?.to_owned();
    let check = |what: &str, answer: &Answer, status: u16| {
        assert_eq!(answer.status, status, "{what}: {answer:?}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{what}");
        for header in &set {
            assert_eq!(answer.header(&header.name.to_lowercase()), Some(header.value.as_str()), "{what}");
        }
        assert!(answer.headers.iter().all(|(n, _)| !n.starts_with("access-control-")), "{what}");
    };
    let loaded = send(&here, "GET", &save(2), &[("Origin", "https://other.example")], b"")?;
    check("GET", &loaded, 200);
    assert!(loaded.body == big);
    check("201", &made, 201);
    check("404", &send(&here, "GET", &save(3), &[], b"")?, 404);
    let refused = send(&here, "PUT", &save(1), &[NEW, BYTES], b"x")?;
    check("412", &refused, 412);
    assert_eq!(refused.header("etag"), Some(tag.as_str()));
    let method = send(&here, "PATCH", &save(1), &[], b"")?;
    check("405", &method, 405);
    assert_eq!(method.header("allow"), Some("GET, HEAD, PUT, DELETE"));
    let large = send(&here, "PUT", &save(4), &[NEW, BYTES], &[&big[..], b"x"].concat())?;
    check("413", &large, 413);
    assert_eq!(problem(&here, &large)?, "too-large");
    let inputs = vec![b' '; usize::try_from(limits().python.inputs_bytes_max)? + 1];
    let large =
        send(&here, "POST", "/api/python/moth/hitch", &[("Content-Type", "application/json")], &inputs)?;
    assert_eq!((problem(&here, &large)?.as_str(), large.status), ("python-inputs", 413));
    check("204", &send(&here, "DELETE", &save(1), &[("If-Match", &tag)], b"")?, 204);
    api.stop()?;
    let away = send(&here, "GET", &save(1), &[], b"")?;
    check("502", &away, 502);
    assert_eq!(problem(&here, &away)?, "unavailable");
    Ok(())
}

#[test]
fn an_address_that_asks_too_often_is_told_to_wait() -> Result<()> {
    let mut here = Installation::small()?;
    here.publish()?;
    here.serve()?;
    let _api = here.api()?;
    let refused = (0..limits().rate.saves_burst_max * 2 + 10)
        .map(|i| send(&here, "GET", &save(u64::from(i)), &[], b""))
        .find(|a| a.as_ref().map_or(true, |a| a.status == 429))
        .context("never refused")??;
    assert_eq!(problem(&here, &refused)?, "rate");
    assert_eq!(refused.header("retry-after"), Some("1"));
    // The rest of the site is not affected, and calls have a count of their own.
    assert_eq!(send(&here, "GET", "/", &[], b"")?.status, 200);
    assert_eq!(send(&here, "GET", "/api/health", &[], b"")?.status, 200);
    let call = send(&here, "POST", "/api/python/moth/none", &[("Content-Type", "application/json")], b"{}")?;
    assert_eq!(problem(&here, &call)?, "python-unknown");
    Ok(())
}

#[test]
fn nothing_by_which_a_visitor_could_be_known_reaches_the_api() -> Result<()> {
    let mut here = Installation::small()?;
    here.publish()?;
    here.serve()?;
    let listener = UnixListener::bind(here.data("api.sock"))?;
    let heard = std::thread::spawn(move || -> std::io::Result<String> {
        let (mut stream, _) = listener.accept()?;
        let mut bytes = vec![0; 16_384];
        let read = stream.read(&mut bytes)?;
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?;
        Ok(String::from_utf8_lossy(&bytes[..read]).into_owned())
    });
    let told = [
        NEW,
        BYTES,
        ("Save-Word", "moth"),
        ("Tinyfiles-Work", "moth/hitch"),
        ("X-Forwarded-For", "192.0.2.7"),
        ("Forwarded", "for=192.0.2.7"),
        ("X-Real-IP", "192.0.2.7"),
        ("User-Agent", "mark"),
        ("Referer", "http://localhost/mark"),
        ("Cookie", "mark=1"),
        ("Accept-Language", "mark"),
        ("Via", "mark"),
        ("X-Mark", "mark"),
        ("Origin", "http://mark"),
    ];
    assert_eq!(send(&here, "PUT", &format!("{}?mark", save(1)), &told, b"x")?.status, 204);
    let heard = heard.join().map_err(|_| anyhow::anyhow!("the listener failed"))??;
    let names: Vec<String> = heard
        .lines()
        .skip(1)
        .take_while(|l| !l.is_empty())
        .filter_map(|l| Some(l.split_once(':')?.0.to_lowercase()))
        .collect();
    let expected = ["host", "content-length", "content-type", "if-none-match", "save-word", "tinyfiles-work"];
    for name in &names {
        assert!(expected.contains(&name.as_str()), "{name}: {heard}");
    }
    for name in expected {
        assert!(names.iter().any(|n| n == name), "{name} did not arrive: {heard}");
    }
    assert!(!heard.contains("192.0.2.7") && !heard.contains("127.0.0.1"), "{heard}");
    Ok(())
}
