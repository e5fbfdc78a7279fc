//! The headers that a client sees, for every class of answer on every server, beside what the policy says.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use catalog::Catalog;
use policy::headers::{self, Header};
use policy::{Config, limits};
use tests::http::{self, Answer};
use tests::{Installation, Ran};

/// Headers that belong to an answer rather than to the policy.
const OF_THE_ANSWER: &[&str] = &[
    "accept-ranges",
    "allow",
    "cache-control",
    "connection",
    "content-disposition",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "etag",
    "location",
    "retry-after",
    "server",
    "transfer-encoding",
    "vary",
];

/// Checks status, caching, and that the headers are those of the policy, each once, and no others.
fn expect(what: &str, answer: &Answer, status: u16, cache: &str, set: &[Header]) {
    assert_eq!(answer.status, status, "{what}: {answer:?}");
    for header in set {
        let name = header.name.to_lowercase();
        assert_eq!(answer.header(&name), Some(header.value.as_str()), "{what}: {name}");
    }
    assert_eq!(answer.header("cache-control"), Some(cache), "{what}");
    for (name, value) in &answer.headers {
        let known =
            OF_THE_ANSWER.contains(&name.as_str()) || set.iter().any(|h| h.name.eq_ignore_ascii_case(name));
        assert!(known, "{what}: {name}: {value} is in no set of the policy");
    }
    assert_eq!(answer.header("server"), Some("nginx"), "{what}: no version");
    let retry = [(429, "1"), (503, "60")].iter().find(|(s, _)| *s == status).map(|(_, after)| *after);
    assert_eq!(answer.header("retry-after"), retry, "{what}");
    assert_eq!(answer.header("allow"), (status == 405).then_some("GET, HEAD"), "{what}");
}

/// One of the two origins, for requests.
struct Origin {
    port: u16,
    host: &'static str,
    config: Config,
    is_site: bool,
}

impl Origin {
    fn both(here: &Installation) -> Result<[Self; 2]> {
        let config = Config::open(&here.config())?;
        let site = Self { port: here.site_port, host: "localhost", config: config.clone(), is_site: true };
        let content = Self { port: here.content_port, host: "127.0.0.1", config, is_site: false };
        Ok([site, content])
    }

    /// The policy for an answer about `work_path`, `/-/` where it is about no work.
    fn set(&self, work_path: &str) -> Vec<Header> {
        if self.is_site { headers::site(&self.config) } else { headers::work(&self.config, work_path) }
    }

    fn with(&self, method: &str, path: &str, extra: &[(&str, &str)]) -> Result<Answer> {
        http::with(self.port, self.host, method, path, extra)
    }

    fn get(&self, path: &str) -> Result<Answer> {
        self.with("GET", path, &[])
    }

    fn check(&self, what: &str, answer: &Answer, status: u16, cache: &str, work_path: &str) {
        expect(&format!("{what} of {}", self.host), answer, status, cache, &self.set(work_path));
    }
}

const WORK: &str = "/moth/hitch/";

#[test]
fn found_partial_unchanged_moved() -> Result<()> {
    let mut here = Installation::new()?;
    here.publish()?;
    here.serve()?;
    for origin in Origin::both(&here)? {
        let whole = origin.get(WORK)?;
        origin.check("200", &whole, 200, "no-cache", WORK);
        assert_eq!(whole.header("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(whole.header("content-disposition"), None, "a work is opened, not kept");
        let tag = whole.header("etag").context("no tag")?.to_owned();

        let head = origin.with("HEAD", WORK, &[])?;
        origin.check("HEAD", &head, 200, "no-cache", WORK);
        assert_eq!(head.body, b"");
        assert_eq!(head.header("content-length"), whole.header("content-length"));

        let part = origin.with("GET", WORK, &[("Range", "bytes=2-5")])?;
        origin.check("206", &part, 206, "no-cache", WORK);
        assert_eq!(part.body, &whole.body[2..6]);
        let beyond = origin.with("GET", WORK, &[("Range", "bytes=99999999-")])?;
        origin.check("416", &beyond, 416, "no-cache", WORK);

        let same = origin.with("GET", WORK, &[("If-None-Match", &tag)])?;
        origin.check("304", &same, 304, "no-cache", WORK);
        let late = ("If-Modified-Since", "Sat, 01 Jan 2050 00:00:00 GMT");
        origin.check("200 whatever its date", &origin.with("GET", WORK, &[late])?, 200, "no-cache", WORK);
        let other = origin.with("GET", WORK, &[("If-Match", "\"other\"")])?;
        origin.check("412", &other, 412, "no-store", WORK);

        let moved = origin.get("/moth/hitch?x=1")?;
        origin.check("301", &moved, 301, "no-cache", WORK_WITHOUT_SLASH);
        assert_eq!(moved.header("location"), Some("/moth/hitch/?x=1"));
    }
    Ok(())
}

/// The path of a work without its slash is that of no work yet.
const WORK_WITHOUT_SLASH: &str = "/-/";

#[test]
fn refusals_of_every_class() -> Result<()> {
    let mut here = Installation::new()?;
    here.publish()?;
    Catalog::open(&here.data("catalog.db"))?.withdraw(&"moth".parse()?, &"tin-roof".parse()?)?;
    here.publish()?;
    here.serve()?;
    let (long, body) = ("x".repeat(9_000), "y".repeat(2_000));
    let _socket = unopenable(&here)?;
    for origin in Origin::both(&here)? {
        let missing = origin.get("/moth/nothing/")?;
        origin.check("404", &missing, 404, "no-store", "/-/");
        let (site_words, framed_words) =
            ("There is nothing at this address.", "There is no work at this address.");
        assert!(missing.text().contains(if origin.is_site { site_words } else { framed_words }));
        if !origin.is_site {
            origin.check("404 of a folder", &origin.get("/moth/")?, 404, "no-store", "/-/");
        }
        for hidden in ["/gone/", "/gone", "/gone/moth/tin-roof", "/../tinyfiles.toml", "/%2e%2e/catalog.db"] {
            let status = origin.get(hidden)?.status;
            assert!([400, 404].contains(&status), "{hidden}: {status}");
        }

        for path in ["/moth/tin-roof/", "/moth/tin-roof", "/moth/tin-roof/cover.png"] {
            let gone = origin.get(path)?;
            origin.check("410", &gone, 410, "no-store", "/-/");
            assert!(gone.text().contains("taken down"), "{path}: {}", gone.text());
        }
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "PROPFIND"] {
            origin.check(method, &origin.with(method, WORK, &[])?, 405, "no-store", WORK);
        }
        let posting = |method: &str| {
            let head = format!(
                "{method} {WORK} HTTP/1.1\r\nHost: {}:{}\r\nConnection: close\r\n",
                origin.host, origin.port
            );
            http::raw(origin.port, format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())
        };
        origin.check("413", &posting("GET")?, 413, "no-store", WORK);
        origin.check("405 with a body", &posting("POST")?, 405, "no-store", WORK);
        let strange = [("Transfer-Encoding", "strange")];
        origin.check("501", &origin.with("GET", WORK, &strange)?, 501, "no-store", WORK);
        // Past the buffer for headers nginx knows the host already.
        let cookies = [("Cookie", long.as_str())];
        origin.check(
            "431, which nginx calls 400",
            &origin.with("GET", WORK, &cookies)?,
            400,
            "no-store",
            WORK,
        );
        let twice = [("Host", "other.example")];
        origin.check("400, two hosts", &origin.with("GET", WORK, &twice)?, 400, "no-store", WORK);
    }
    let site = &Origin::both(&here)?[0];
    site.check("500", &site.get("/assets/socket.css")?, 500, "no-store", "/-/");

    // Where no host was read, the server for other names answers.
    for origin in Origin::both(&here)? {
        let set = headers::work(&origin.config, "/-/");
        let no_one = |what: &str, request: &str, status| -> Result<()> {
            expect(what, &http::raw(origin.port, request.as_bytes())?, status, "no-store", &set);
            Ok(())
        };
        no_one("400, not HTTP", "\x16\x03\x01 hello\r\n\r\n", 400)?;
        no_one("400, no host", "GET / HTTP/1.1\r\nConnection: close\r\n\r\n", 400)?;
        no_one("414", &format!("GET /{long} HTTP/1.1\r\nHost: {}\r\n\r\n", origin.host), 414)?;
        no_one("505", "GET / HTTP/3.0\r\nHost: x\r\nConnection: close\r\n\r\n", 505)?;
        no_one("421, HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", 421)?;
        no_one("421", "GET /index.html HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n", 421)?;
    }
    // A name of one origin on the port of the other is another name.
    let crossed = http::get(here.content_port, "localhost", "/")?;
    assert_eq!(crossed.status, 421);
    Ok(())
}

/// A file among the assets that fails to open in a way that nginx holds to be grave.
fn unopenable(here: &Installation) -> Result<UnixListener> {
    // Its path may be longer than a socket's may.
    let short = tempfile::tempdir()?;
    let socket = UnixListener::bind(short.path().join("s"))?;
    fs::rename(short.path().join("s"), here.data("assets/socket.css"))?;
    Ok(socket)
}

#[test]
fn without_a_tree_the_answer_is_503_until_there_is_one() -> Result<()> {
    let mut here = Installation::new()?;
    here.publish()?;
    here.serve()?;
    let (live, aside) = (here.data("live"), here.data("aside"));
    fs::rename(&live, &aside)?;
    for origin in Origin::both(&here)? {
        origin.check("503", &origin.get(WORK)?, 503, "no-store", WORK);
    }
    fs::rename(&aside, &live)?;
    for origin in Origin::both(&here)? {
        assert_eq!(origin.get(WORK)?.status, 200);
    }
    Ok(())
}

#[test]
fn one_address_has_so_many_connections_and_no_more() -> Result<()> {
    let mut here = Installation::with_own_source()?;
    // Files that do not fit into the buffers of a connection nobody reads from.
    fs::create_dir_all(here.source().join("theme/image"))?;
    fs::write(here.source().join("theme/image/big.png"), vec![b'x'; 16 << 20])?;
    fs::write(here.source().join("content/works/moth/hitch/work.json"), "{\"id\": \"hitch\"}")?;
    fs::write(
        here.source().join("content/works/moth/hitch/index.html"),
        vec![b' '; usize::try_from(limits().work.html_bytes_max)?],
    )?;
    here.publish()?;
    here.serve()?;
    let big = fs::read_dir(here.data("assets"))?
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .find(|name| name.starts_with("big."))
        .context("no big asset")?;
    for origin in Origin::both(&here)? {
        let path = if origin.is_site { format!("/assets/{big}") } else { WORK.to_owned() };
        let mut open = Vec::new();
        for _ in 0..limits().http.connections_per_address_max {
            let mut stream = TcpStream::connect(("127.0.0.1", origin.port))?;
            write!(stream, "GET {path} HTTP/1.1\r\nHost: {}:{}\r\n\r\n", origin.host, origin.port)?;
            let mut first = [0; 12];
            stream.read_exact(&mut first)?;
            assert_eq!(&first, b"HTTP/1.1 200");
            open.push(stream);
        }
        origin.check("429", &origin.get(WORK)?, 429, "no-store", WORK);
        drop(open);
    }
    Ok(())
}

#[test]
fn each_kind_of_file_has_its_type_and_downloads_are_attachments() -> Result<()> {
    let mut here = Installation::new()?;
    here.publish()?;
    here.serve()?;
    let [site, content] = Origin::both(&here)?;
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/about.html", "text/html; charset=utf-8"),
        ("/rss.xml", "text/xml; charset=utf-8"),
        ("/sitemap.xml", "text/xml; charset=utf-8"),
        ("/data/works.js", "text/javascript; charset=utf-8"),
        ("/robots.txt", "text/plain; charset=utf-8"),
        ("/.well-known/security.txt", "text/plain; charset=utf-8"),
        ("/checksums.txt", "text/plain; charset=utf-8"),
        ("/schema/work.schema.json", "application/json; charset=utf-8"),
        ("/moth/hitch/cover.png", "image/png"),
    ] {
        let answer = site.get(path)?;
        site.check(path, &answer, 200, "no-cache", "/-/");
        assert_eq!(answer.header("content-type"), Some(kind), "{path}");
        assert_eq!(answer.header("content-disposition"), None, "{path}");
    }
    let own = "/halfpenny/envelope/";
    for (name, kind) in [
        ("index.html", "text/html; charset=utf-8"),
        ("envelope.py", "text/x-python; charset=utf-8"),
        ("work.json", "application/json; charset=utf-8"),
        ("cover.png", "image/png"),
        ("checksums.txt", "text/plain; charset=utf-8"),
    ] {
        for suffix in ["", "?x=/", "?", "#/"] {
            let answer = content.get(&format!("{own}{name}{suffix}"))?;
            content.check(name, &answer, 200, "no-cache", own);
            assert_eq!(answer.header("content-type"), Some(kind), "{name}");
            assert_eq!(answer.header("content-disposition"), Some("attachment"), "{name}{suffix}");
        }
    }
    for path in [own.to_owned(), format!("{own}?x=1"), format!("{own}?/x")] {
        assert_eq!(content.get(&path)?.header("content-disposition"), None, "{path}");
    }
    Ok(())
}

#[test]
fn assets_are_immutable_and_pages_have_a_compressed_twin() -> Result<()> {
    let mut here = Installation::with_own_source()?;
    fs::write(here.source().join("theme/style/site.css"), "body { margin: 1px }\n".repeat(100))?;
    here.publish()?;
    here.serve()?;
    let [site, content] = Origin::both(&here)?;
    let page = site.get("/")?;
    let asset =
        page.text().split('"').find(|t| t.starts_with("/assets/site.")).context("no style")?.to_owned();
    let immutable = format!("public, max-age={}, immutable", limits().http.asset_cache_seconds);
    site.check("asset", &site.get(&asset)?, 200, &immutable, "/-/");
    site.check("missing asset", &site.get("/assets/none.css")?, 404, "no-store", "/-/");

    let accepts = [("Accept-Encoding", "gzip")];
    for (origin, path) in [(&site, "/"), (&site, asset.as_str()), (&site, "/data/works.js"), (&content, WORK)]
    {
        let (plain, packed) = (origin.get(path)?, origin.with("GET", path, &accepts)?);
        assert_eq!(packed.header("content-encoding"), Some("gzip"), "{path}");
        assert_eq!(plain.header("content-encoding"), None, "{path}");
        for answer in [&plain, &packed] {
            assert_eq!(answer.header("vary"), Some("Accept-Encoding"), "{path}");
            assert_eq!(answer.header("content-type"), plain.header("content-type"), "{path}");
        }
        assert_ne!(plain.header("etag"), packed.header("etag"), "{path}: two forms, two tags");
        assert_eq!(unpacked(&packed.body)?, plain.body, "{path}");
    }
    Ok(())
}

fn unpacked(bytes: &[u8]) -> Result<Vec<u8>> {
    let file = tempfile::NamedTempFile::new()?;
    fs::write(file.path(), bytes)?;
    let output = Command::new("gzip").args(["-dc"]).stdin(fs::File::open(file.path())?).output()?;
    ensure!(output.status.success(), "not gzip");
    Ok(output.stdout)
}

#[test]
fn a_creator_may_have_a_name_that_starts_like_a_folder_of_the_site() -> Result<()> {
    let mut here = Installation::with_own_source()?;
    for creator in ["gone-fishing", "assetsandcards", "dataset"] {
        tests::copy(
            &here.source().join("content/works/moth"),
            &here.source().join("content/works").join(creator),
        )?;
    }
    here.publish()?;
    here.serve()?;
    for origin in Origin::both(&here)? {
        for creator in ["gone-fishing", "assetsandcards", "dataset"] {
            let path = format!("/{creator}/hitch/");
            origin.check(&path, &origin.get(&path)?, 200, "no-cache", &path);
        }
    }
    Ok(())
}

#[test]
fn nobody_who_asks_is_written_down() -> Result<()> {
    let mut here = Installation::new()?;
    here.publish()?;
    here.serve()?;
    let _socket = unopenable(&here)?;
    // An address of their own, so that it can be told from the origin's name.
    let ask = |port: u16, host: &str, path: &str, extra: &[&str]| -> Result<String> {
        let mut curl = Command::new("curl");
        curl.args([
            "-s",
            "--noproxy",
            "*",
            "--interface",
            "127.77.77.77",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
        ]);
        curl.args([
            "-A",
            "mark-agent",
            "-e",
            "http://mark-referrer.example/",
            "-H",
            &format!("Host: {host}:{port}"),
        ]);
        curl.args(extra).arg(format!("http://127.0.0.1:{port}{path}?mark-query=1"));
        Ok(Ran::of(&curl.output()?).stdout)
    };
    for (port, host) in [(here.site_port, "localhost"), (here.content_port, "127.0.0.1")] {
        let long = format!("Cookie: {}", "mark-cookie".repeat(900));
        for (path, extra, status) in [
            (WORK, &[][..], "200"),
            ("/moth/none/", &[], "404"),
            (WORK, &["-X", "POST"], "405"),
            (WORK, &["-X", "GET", "--data-binary", &"mark-body".repeat(200)], "413"),
            (WORK, &["-H", "Range: bytes=99999999-"], "416"),
            (WORK, &["-H", &long], "400"),
        ] {
            assert_eq!(ask(port, host, path, extra)?, status, "{path} {extra:?}");
        }
    }
    assert_eq!(ask(here.site_port, "localhost", "/assets/socket.css", &[])?, "500");
    assert_eq!(ask(here.site_port, "mark-host.example", "/", &[])?, "421");
    here.stop()?;
    let log = fs::read_to_string(here.data("nginx/access.log"))?;
    assert!(log.contains(&format!("localhost GET {WORK}index.html 200 ")), "the log is written: {log}");
    assert!(log.contains(" 413 ") && log.contains(" 500 "), "{log}");
    let mut searched = 0;
    for entry in walkdir::WalkDir::new(here.data("")) {
        let entry = entry?;
        if entry.file_type().is_file() && !entry.path().starts_with(here.data("objects")) {
            let text = String::from_utf8_lossy(&fs::read(entry.path())?).into_owned();
            for mark in ["127.77.77.77", "mark-"] {
                let found = text.lines().find(|l| l.contains(mark) && !l.contains("bookmark-"));
                assert_eq!(found, None, "{} holds {mark}", entry.path().display());
            }
            searched += 1;
        }
    }
    assert!(searched > 20, "{searched} files searched");
    Ok(())
}
