//! The API behind the real nginx: what reaches it, what nginx answers itself, and what neither writes down.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use policy::{Config, headers, limits};
use tests::http::{self, Answer};
use tests::{Installation, desk, program};

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

/// What Prometheus would read.
fn counters(here: &Installation) -> Result<String> {
    let mut stream = UnixStream::connect(here.data("api-admin.sock"))?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

#[test]
fn an_address_that_asks_too_often_is_told_to_wait() -> Result<()> {
    let mut here = Installation::small()?;
    here.publish()?;
    here.serve()?;
    let _api = here.api()?;
    const WORK: (&str, &str) = ("Tinyfiles-Work", "moth/hitch");
    let large = vec![b'x'; usize::try_from(limits().save.body_bytes_max)? + 1];
    assert_eq!(send(&here, "PUT", &save(1), &[NEW, BYTES, WORK], &large)?.status, 413);
    let refused = (0..limits().rate.saves_burst_max * 2 + 10)
        .map(|i| send(&here, "GET", &save(u64::from(i)), &[WORK], b""))
        .find(|a| a.as_ref().map_or(true, |a| a.status == 429))
        .context("never refused")??;
    assert_eq!(problem(&here, &refused)?, "rate");
    assert_eq!(refused.header("retry-after"), Some("1"));
    // What nginx refuses is counted for the work all the same: one of each by then.
    for why in ["size", "rate"] {
        let line = format!("api_work_refusals_total{{work=\"moth/hitch\",why=\"{why}\"}} 1\n");
        desk::until(|| Ok(counters(&here)?.contains(&line).then_some(())))?;
    }
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

/// `api serve` with its log in a file, as a service would have it.
fn logged_api(here: &Installation) -> Result<Child> {
    let log = fs::File::options().create(true).append(true).open(here.data("api.log"))?;
    let mut command = Command::new(program("api"));
    command
        .arg("--config")
        .arg(here.config())
        .arg("serve")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    let mut child = command.spawn().context("cannot run api")?;
    while std::os::unix::net::UnixStream::connect(here.data("api.sock")).is_err() {
        ensure!(child.try_wait()?.is_none(), "api ended: {}", fs::read_to_string(here.data("api.log"))?);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Ok(child)
}

/// Asks from an address that nothing else has.
fn from_elsewhere(port: u16, host: &str, path: &str, extra: &[&str]) -> Result<String> {
    let mut curl = Command::new("curl");
    curl.args([
        "-s",
        "--noproxy",
        "*",
        "--path-as-is",
        "--interface",
        "127.77.77.77",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
    ]);
    curl.args(["-H", &format!("Host: {host}:{port}")]).args(extra);
    let output = curl.arg(format!("http://127.0.0.1:{port}{path}")).output().context("cannot run curl")?;
    Ok(String::from_utf8(output.stdout)?)
}

/// The files below a folder that hold those bytes.
fn holding(folder: &Path, needle: &[u8]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in walkdir::WalkDir::new(folder) {
        let entry = entry?;
        if entry.file_type().is_file() {
            let bytes = fs::read(entry.path())?;
            if bytes.windows(needle.len()).any(|w| w.eq_ignore_ascii_case(needle)) {
                found.push(entry.path().strip_prefix(folder)?.display().to_string());
            }
        }
    }
    Ok(found)
}

/// What was sent and must not be found afterwards.
struct Secrets {
    key: String,
    code: String,
}

impl Secrets {
    /// A code and its key, as a browser would derive it.
    fn read() -> Result<Self> {
        let vectors = fs::read(tests::repository().join("tests/vectors/saves.json"))?;
        let vectors: serde_json::Value = serde_json::from_slice(&vectors)?;
        let text = |name: &str| -> Result<String> {
            Ok(vectors["keys"][0][name].as_str().context("no vector")?.to_owned())
        };
        Ok(Self { key: text("key")?, code: text("code")?.replace('-', "") })
    }

    /// The files of the data folder that hold one of them or the address, but those that a publish or a test wrote.
    fn found(&self, here: &Installation) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for needle in [self.key.as_bytes(), self.code.as_bytes(), b"127.77.77.77", b"/api/saves/"] {
            found.extend(holding(&here.data(""), needle)?);
        }
        let published = ["objects/", "dirs/", "trees/", "assets/", "nginx/nginx.conf"];
        found.retain(|f| !published.iter().any(|p| f.starts_with(p)));
        Ok(found)
    }

    /// Every way in which a save is asked for and refused.
    fn send(&self, here: &Installation) -> Result<()> {
        let own = format!("/api/saves/{}", self.key);
        let ask = |path: &str, extra: &[&str]| from_elsewhere(here.site_port, "localhost", path, extra);
        let put = ["-X", "PUT", "-H", "Content-Type: application/octet-stream"];
        let new = [&put[..], &["-H", "If-None-Match: *", "--data-binary", "mark-body"]].concat();
        let big = here.folder().join("big");
        fs::write(&big, vec![b'x'; limits().save.body_bytes_max as usize + 1])?;
        let big = format!("@{}", big.display());
        assert_eq!(ask("/moth/hitch/", &[])?, "200");
        assert_eq!(ask(&own, &[])?, "404");
        assert_eq!(ask(&own, &new)?, "201");
        assert_eq!(ask(&own, &[])?, "200");
        assert_eq!(ask(&own, &new)?, "412");
        assert_eq!(ask(&own, &[&put[..], &["--data-binary", "mark-body"]].concat())?, "428");
        assert_eq!(
            ask(&own, &[&put[..], &["-H", "If-None-Match: *", "--data-binary", &big]].concat())?,
            "413"
        );
        assert_eq!(ask(&own, &["-H", &format!("Cookie: {}", "mark".repeat(5_000))])?, "400");
        assert_eq!(ask(&own, &["-X", "PATCH"])?, "405");
        ask(&format!("/api/saves/{}", self.code), &new)?;
        for path in [
            format!("/{own}"),
            format!("{own}/x"),
            own.replace("saves", "%73aves"),
            own.replace("/api", "/API"),
            own.replace("/api/saves", "/saves"),
            format!("/moth/..{own}"),
            format!("/?{own}"),
            own.to_uppercase(),
        ] {
            ask(&path, &[])?;
            ask(&path, &new)?;
            from_elsewhere(here.content_port, "127.0.0.1", &path, &new)?;
            from_elsewhere(here.site_port, "other.example", &path, &[])?;
        }
        let mut statuses = (0..limits().rate.saves_burst_max * 2).map(|_| ask(&own, &[]));
        ensure!(statuses.any(|s| s.is_ok_and(|s| s == "429")), "never refused");
        Ok(())
    }
}

#[test]
fn nothing_on_disk_joins_a_save_to_a_request() -> Result<()> {
    let mut here = Installation::small()?;
    here.publish()?;
    here.serve()?;
    let mut api = logged_api(&here)?;
    let secrets = Secrets::read()?;
    let own = format!("/api/saves/{}", secrets.key);
    // A body that never comes: nginx gives up (408, which it answers by hanging up), while the rest goes on.
    let mut slow = TcpStream::connect(("127.0.0.1", here.site_port))?;
    write!(
        slow,
        "PUT {own} HTTP/1.1\r\nHost: localhost:{}\r\nContent-Type: application/octet-stream\r\nIf-None-Match: *\r\nContent-Length: 99\r\n\r\nmark",
        here.site_port
    )?;
    secrets.send(&here)?;
    let log = fs::read_to_string(here.data("api.log"))?;
    assert!(log.contains("serving"), "{log}");
    api.kill()?;
    api.wait()?;
    // The count of the address empties by itself.
    let mut away = "429".to_owned();
    while away == "429" {
        std::thread::sleep(std::time::Duration::from_millis(50));
        away = from_elsewhere(here.site_port, "localhost", &own, &[])?;
    }
    assert_eq!(away, "502");
    let end = slow.read_to_end(&mut Vec::new());
    assert!(
        end.as_ref().map_or_else(|e| e.kind() == std::io::ErrorKind::ConnectionReset, |n| *n == 0),
        "{end:?}"
    );
    here.stop()?;

    // The search finds what is there: the record's own key in the database, the page in the log.
    let raw = data_encoding::HEXLOWER.decode(secrets.key.as_bytes())?;
    let database = holding(&here.data(""), &raw)?;
    assert!(!database.is_empty() && database.iter().all(|f| f.starts_with("saves/saves.db")), "{database:?}");
    assert_eq!(holding(&here.data(""), b"GET /moth/hitch/index.html 200")?, ["nginx/access.log"]);
    assert_eq!(secrets.found(&here)?, [""; 0]);

    // And it would find what a careless configuration writes down.
    let conf = here.data("nginx/nginx.conf");
    let text = fs::read_to_string(&conf)?;
    let careless = text.replace(" if=$logged", "").replace("'$time_iso8601", "'$remote_addr $time_iso8601");
    ensure!(careless.len() > text.len(), "the log was not switched on");
    fs::write(&conf, careless)?;
    here.start_nginx()?;
    assert_eq!(from_elsewhere(here.site_port, "localhost", &own, &[])?, "502");
    here.stop()?;
    // By the key, by the address, and by the path.
    assert_eq!(secrets.found(&here)?, ["nginx/access.log"; 3]);
    Ok(())
}
