//! What people write wrong: one clear message that names the thing, the value and the remedy; what is served stays.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use catalog::{Catalog, Data, Digest, Role};
use policy::limits;
use tests::{Installation, Ran, Served};

/// Breaks something, publishes, and expects exit code 3 and one problem that says all of `words`.
fn refused(here: &Installation, what: &str, words: &[&str]) -> Result<()> {
    let ran = here.sitegen(&["publish"])?;
    assert_eq!(ran.code, 3, "{what}: {ran:?}");
    assert_eq!(ran.stdout, "", "{what}");
    for word in words {
        assert!(ran.stderr.contains(word), "{what}: {word:?} is not in\n{}", ran.stderr);
    }
    assert!(ran.stderr.ends_with("\n1 problem, nothing was published\n"), "{what}: {}", ran.stderr);
    let json = here.sitegen(&["--json", "publish"])?;
    let problems: serde_json::Value = serde_json::from_str(&json.stderr).context(json.stderr)?;
    let problem = &problems["problems"][0];
    assert_eq!(problems["problems"].as_array().map(Vec::len), Some(1), "{what}");
    for key in ["file", "message", "hint"] {
        assert!(problem[key].as_str().is_some_and(|t| !t.is_empty()), "{what}: no {key} in {problem}");
    }
    Ok(())
}

const SIDECAR: &str = "content/works/moth/hitch/work.json";
const PAYLOAD: &str = "content/works/moth/hitch/index.html";

#[test]
fn a_work_that_cannot_be_imported() -> Result<()> {
    let sidecar = |json: &str| json.replace('\'', "\"");
    let rows: &[(&str, &str, &[&str])] = &[
        (
            "unknown key",
            "{'id': 'hitch', 'colour': 'red'}",
            &["work.json:1:24: /colour: unknown field `colour`", "submission-criteria"],
        ),
        (
            "wrong type",
            "{'id': 'hitch',\n 'tinyjam': 'yes'}",
            &["work.json:2:", "/tinyjam: invalid type: string \"yes\", expected a boolean"],
        ),
        ("bad slug", "{'id': 'Hitch It'}", &["/id: \"Hitch It\" is not a slug: use a-z"]),
        (
            "another's id",
            "{'id': 'other'}",
            &["id \"other\" is not the name of its folder \"hitch\"", "give both the same name"],
        ),
        ("no id", "{'title': 'x'}", &["missing field `id`"]),
        ("not JSON", "{'id': 'hitch'", &["work.json:1:14: EOF while parsing"]),
        ("a second value", "{'id': 'hitch'} {}", &["trailing characters"]),
        (
            "missing cover",
            "{'id': 'hitch', 'cover': {'file': 'none.png'}}",
            &["hitch/none.png: cannot be read", "every work has"],
        ),
        (
            "cover outside",
            "{'id': 'hitch', 'cover': {'file': '../pond/cover.png'}}",
            &["/cover/file: \"../pond/cover.png\" cannot be a file name"],
        ),
        (
            "cover is no picture",
            "{'id': 'hitch', 'cover': {'file': 'notes.png'}}",
            &["hitch/notes.png: is not a picture", "PNG, JPEG, WebP or GIF"],
        ),
        (
            "cover is cut off",
            "{'id': 'hitch', 'cover': {'file': 'half.png'}}",
            &["hitch/half.png: cannot be read as a picture", "PNG, JPEG, WebP or GIF"],
        ),
        (
            "cover is SVG",
            "{'id': 'hitch', 'cover': {'file': 'x.svg'}}",
            &[
                "/cover/file: \"x.svg\" cannot be the name of a picture: end it in .png, .jpg, .jpeg, .webp or .gif",
            ],
        ),
        (
            "cover is called like a page",
            "{'id': 'hitch', 'cover': {'file': 'png.html'}}",
            &["/cover/file: \"png.html\" cannot be the name of a picture"],
        ),
        (
            "cover is called like a compressed page",
            "{'id': 'hitch', 'cover': {'file': 'index.html.gz'}}",
            &["/cover/file: \"index.html.gz\" cannot be"],
        ),
        (
            "cover has another picture's name",
            "{'id': 'hitch', 'cover': {'file': 'png.webp'}}",
            &["hitch/png.webp: is a PNG picture by its content", "with its own ending"],
        ),
        (
            "day",
            "{'id': 'hitch', 'released': 'soon'}",
            &["/released: \"soon\" is not a day; write it as 2026-11-30"],
        ),
        (
            "no Python file",
            "{'id': 'hitch', 'capabilities': {'python_backend': 'a.py'}}",
            &["hitch/a.py: cannot be read"],
        ),
        (
            "one file for two things",
            "{'id': 'hitch', 'cover': {'file': 'cover.png'}, 'capabilities': {'python_backend': 'cover.png'}}",
            &[
                "/capabilities/python_backend: \"cover.png\" cannot be the name of a Python file: end it in .py",
            ],
        ),
    ];
    let here = Installation::small()?;
    let folder = here.source().join("content/works/moth/hitch");
    let png = fs::read(folder.join("cover.png"))?;
    fs::write(folder.join("notes.png"), "<html>notes")?;
    fs::write(folder.join("half.png"), &png[..png.len() / 2])?;
    fs::write(folder.join("png.webp"), &png)?;
    fs::write(folder.join("x.svg"), "<svg xmlns=\"http://www.w3.org/2000/svg\"/>")?;
    let good = fs::read_to_string(here.source().join(SIDECAR))?;
    for (what, json, words) in rows {
        fs::write(here.source().join(SIDECAR), sidecar(json))?;
        refused(&here, what, words)?;
        assert!(!here.data("live").exists(), "{what}: all or nothing");
    }
    fs::write(here.source().join(SIDECAR), good)?;
    fs::rename(here.source().join("content/works/moth"), here.source().join("content/works/admin"))?;
    let ran = here.sitegen(&["publish"])?;
    assert!(
        ran.code == 3 && ran.stderr.contains("\"admin\" is reserved for the site; choose another name"),
        "{ran:?}"
    );
    fs::rename(here.source().join("content/works/admin"), here.source().join("content/works/moth"))?;
    here.publish()
}

#[test]
fn sizes_at_the_cap_and_one_byte_past_it() -> Result<()> {
    let here = Installation::small()?;
    let payload = here.source().join(PAYLOAD);
    let python = payload.with_file_name("hitch.py");
    let work = &limits().work;
    assert_eq!((work.html_bytes_max, work.tinyjam_bytes_max), (5_242_880, 65_536));
    let jam = r#"{"id": "hitch", "tinyjam": true}"#;
    let pair = r#"{"id": "hitch", "capabilities": {"python_backend": "hitch.py"}}"#;
    let long = |n: usize| format!(r#"{{"id": "hitch", "title": "{}"}}"#, "ä".repeat(n));
    fs::write(&python, "def run(inputs): return 1\n")?;
    for (json, file, cap) in [
        (r#"{"id": "hitch"}"#, &payload, work.html_bytes_max),
        (jam, &payload, work.tinyjam_bytes_max),
        (pair, &python, work.python_bytes_max),
    ] {
        fs::write(here.source().join(SIDECAR), json)?;
        let cap = usize::try_from(cap)?;
        fs::write(file, vec![b' '; cap + 1])?;
        let words = format!("has {} bytes, at most {cap} are allowed", cap + 1);
        refused(&here, json, &[&words, "make it smaller"])?;
        fs::write(file, vec![b' '; cap])?;
        here.publish()?;
        fs::remove_dir_all(here.data(""))?;
        fs::write(file, " ")?;
    }
    let cap = work.title_chars_max;
    fs::write(here.source().join(SIDECAR), long(cap + 1))?;
    refused(
        &here,
        "title",
        &[&format!("title has {} characters, at most {cap} are allowed", cap + 1), "shorten it"],
    )?;
    fs::write(here.source().join(SIDECAR), long(cap))?;
    here.publish()?;
    fs::remove_dir_all(here.data(""))?;
    fs::write(&payload, b"<p>\xff")?;
    refused(&here, "not UTF-8", &["index.html: is not UTF-8 text", "save it as UTF-8"])
}

#[test]
fn every_problem_of_every_work_is_said_at_once() -> Result<()> {
    let here = Installation::small()?;
    for work in ["hitch", "lamplight"] {
        fs::write(here.source().join(format!("content/works/moth/{work}/index.html")), b"\xff")?;
        fs::write(here.source().join(format!("content/works/moth/{work}/cover.png")), b"x")?;
    }
    let ran = here.sitegen(&["publish"])?;
    assert!(ran.code == 3 && ran.stderr.ends_with("4 problems, nothing was published\n"), "{ran:?}");
    Ok(())
}

#[test]
fn a_page_or_a_template_that_cannot_be_published() -> Result<()> {
    let here = Installation::small()?;
    here.publish()?;
    let served = Served::by(&here)?;
    let about = "content/pages/about.md";
    let rows: &[(&str, &str, &str, &str, &[&str])] = &[
        (
            "front matter never ends",
            about,
            "\n+++\n",
            "\n",
            &["about.md:1:1: front matter is missing or never ends", "starts with `+++`"],
        ),
        ("no front matter", about, "+++\n", "", &["about.md:1:1: front matter is missing"]),
        (
            "unknown key",
            about,
            "+++\ntitle",
            "+++\ncolour = 1\ntitle",
            &["about.md:2:1: unknown field `colour`"],
        ),
        (
            "not a day",
            about,
            "updated = \"",
            "updated = \"not ",
            &["about.md:", "is not a day; write it as 2026-11-30"],
        ),
        (
            "undefined in a page",
            about,
            "\n+++\n",
            "\n+++\n\nline {{ nonsense }}\n",
            &["about.md:7:9: undefined value", "nonsense", "mend the name"],
        ),
        (
            "broken link",
            about,
            "\n+++\n",
            "\n+++\n\n[x](/nowhere/)\n",
            &["about.md:", "link to \"/nowhere/\", which is not on the site", "mend the path"],
        ),
        (
            "missing anchor",
            about,
            "\n+++\n",
            "\n+++\n\n[x](/about.html#nowhere)\n",
            &["link to \"/about.html#nowhere\"", "mend the path or the anchor"],
        ),
        (
            "relative link",
            about,
            "\n+++\n",
            "\n+++\n\n[x](no-such.html) [y](security.html)\n",
            &["about.md:7:5: link to \"no-such.html\"", "mend the path"],
        ),
        (
            "template syntax",
            "theme/templates/404.html",
            "{% block main %}",
            "{% block %}",
            &["theme/templates/404.html:", "syntax error", "404.html"],
        ),
        (
            "undefined in a template",
            "theme/templates/404.html",
            "{% block main %}",
            "{% block main %}{{ wrok }}",
            &["theme/templates/404.html:", "undefined value: `wrok`"],
        ),
        (
            "unknown filter",
            "theme/templates/work.html",
            "{% block main %}",
            "{% block main %}{{ 1 | nosuch }}",
            &["theme/templates/work.html:", "unknown filter", "nosuch"],
        ),
        (
            "no such template",
            "theme/templates/410.html",
            "base.html",
            "bass.html",
            &["theme/templates/410.html:1:", "bass.html"],
        ),
        (
            "no such asset",
            "theme/templates/base.html",
            "asset(\"site.css\")",
            "asset(\"sight.css\")",
            &["theme/templates/base.html:", "no asset \"sight.css\""],
        ),
        (
            "import of nothing",
            "theme/script/wrapper.js",
            "\n",
            "\nimport \"./nothing.js\";\n",
            &["theme/script/wrapper.js:", "imports \"nothing.js\", which is not in the theme"],
        ),
    ];
    for (what, file, from, to, words) in rows {
        let path = here.source().join(file);
        let good = fs::read_to_string(&path)?;
        ensure!(good.contains(from), "{what}: no {from:?} in {file}");
        fs::write(&path, good.replacen(from, to, 1))?;
        refused(&here, what, words)?;
        assert_eq!(Served::by(&here)?, served, "{what}");
        fs::write(&path, good)?;
    }
    fs::write(
        here.source().join("content/pages/a page.md"),
        "+++\ntitle = 'x'\nsummary = 'y'\nupdated = '2026-01-01'\n+++\n",
    )?;
    refused(&here, "page name", &["content/pages/a page.md", "rename"])?;
    fs::remove_file(here.source().join("content/pages/a page.md"))?;
    // Two sources of one path: the page of an error, and a page called like it.
    fs::copy(here.source().join(about), here.source().join("content/pages/404.md"))?;
    refused(
        &here,
        "two sources",
        &["/404.html: two sources make a file at this path", "rename one of them"],
    )?;
    fs::remove_file(here.source().join("content/pages/404.md"))?;
    assert_eq!(Served::by(&here)?, served);
    here.publish()?;
    assert_eq!(Served::by(&here)?, served);
    Ok(())
}

#[test]
fn a_path_that_is_taken_is_refused_and_nothing_of_the_batch_is_written() -> Result<()> {
    let here = Installation::small()?;
    here.publish()?;
    let mut catalog = Catalog::open(&here.data("catalog.db"))?;
    let works = catalog.published()?;
    let error = catalog.publish(&works[..1]).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("{} is already published; withdraw that work first or choose another id", works[0].path())
    );
    assert_eq!(catalog.published()?, works);
    Ok(())
}

/// Overwrites a stored file in place, as a broken disk or a curious person would.
fn tamper(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    Ok(fs::write(path, bytes)?)
}

#[test]
fn a_work_whose_bytes_changed_is_left_out_and_named_and_the_others_stay() -> Result<()> {
    for when in ["before it was ever served", "while it is served"] {
        let here = Installation::small()?;
        here.publish()?;
        let work = Catalog::open(&here.data("catalog.db"))?.published()?.remove(0);
        assert_eq!(work.path(), "/moth/hitch/");
        let payload = work.file(Role::Payload).context("no payload")?;
        let object = Data::open(&here.data(""))?.objects.path(&payload.digest);
        let good = fs::read(&object)?;
        if when.starts_with("before") {
            for name in ["dirs", "trees", "assets"] {
                fs::remove_dir_all(here.data(name))?;
            }
            fs::remove_file(here.data("live"))?;
        }
        let mut bad = good.clone();
        bad[10] ^= 1;
        tamper(&object, &bad)?;
        let ran = here.sitegen(&["publish"])?;
        assert_eq!(ran.code, 4, "{when}: {ran:?}");
        let text = format!("{}{}", ran.stdout, ran.stderr);
        for word in
            ["/moth/hitch/index.html", &payload.digest.to_string(), &Digest::of(&bad).to_string(), "restore"]
        {
            assert!(text.contains(word), "{when}: {word} is not in {text}");
        }
        let live = here.data("live");
        for gone in ["site/moth/hitch", "content/moth/hitch"] {
            assert!(!live.join(gone).exists(), "{when}: {gone}");
        }
        for kept in
            ["site/moth/lamplight/index.html", "content/moth/lamplight/index.html", "site/moth/index.html"]
        {
            assert!(live.join(kept).exists(), "{when}: {kept}");
        }
        let front = fs::read_to_string(live.join("site/index.html"))?;
        let feeds = ["data/works.js", "rss.xml", "sitemap.xml"]
            .map(|f| fs::read_to_string(live.join("site").join(f)));
        for text in std::iter::once(front).chain(feeds.into_iter().collect::<std::io::Result<Vec<_>>>()?) {
            assert!(!text.contains("hitch"), "{when}: a page still names the work: {text}");
        }
        assert_eq!(here.sitegen(&["verify"])?.code, 0, "{when}");
        fs::remove_file(&object)?;
        assert_eq!(Data::open(&here.data(""))?.writer()?.put(&good)?, payload.digest);
        here.publish()?;
        assert_eq!(fs::read(live.join("content/moth/hitch/index.html"))?, good, "{when}");
        assert_eq!(here.sitegen(&["verify"])?.code, 0, "{when}");
    }
    Ok(())
}

#[test]
fn two_publishes_at_once() -> Result<()> {
    let here = Installation::small()?;
    here.publish()?;
    let served = Served::by(&here)?;
    // A page that is a pipe: the first publish waits in the middle of its work until somebody writes it.
    let pipe = here.source().join("content/pages/slow.md");
    ensure!(Command::new("mkfifo").arg(&pipe).status()?.success());
    let first = here.command(&["publish"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut page = fs::File::options().write(true).open(&pipe)?;
    let message = format!(
        "another publish is running (process {}); wait for it to end, then run this again",
        first.id()
    );
    for command in ["publish", "gc", "rollback"] {
        let ran = here.sitegen(&[command])?;
        assert_eq!((ran.code, ran.stderr), (1, format!("sitegen: {message}\n")), "{command}");
    }
    for command in ["verify", "list"] {
        assert_eq!(here.sitegen(&[command])?.code, 0, "{command} needs no lock");
    }
    assert_eq!(Served::by(&here)?, served);
    page.write_all(b"+++\ntitle = \"Slow\"\nsummary = \"x\"\nupdated = \"2026-01-01\"\n+++\nHello.\n")?;
    drop(page);
    let ran = Ran::of(&first.wait_with_output()?);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(here.data("live/site/slow.html").exists());
    Ok(())
}

#[test]
fn what_is_typed_wrong() -> Result<()> {
    let here = Installation::small()?;
    for (arguments, code, words) in [
        (&["pubish"][..], 2, &["pubish", "publish"][..]),
        (&["publish", "--fast"], 2, &["--fast"]),
        (&["verify"], 1, &["nothing was published yet; run `sitegen publish`"]),
        (&["rollback"], 1, &["nothing was published yet; run `sitegen publish`"]),
        (&["list"], 0, &["nothing was published yet"]),
        (&["gc"], 0, &["removed 0 trees"]),
        (&["publish"], 0, &["imported 3 works", "published 3 works, tree "]),
        (&["rollback"], 1, &["no older tree is kept; see `sitegen list`"]),
        (&["rollback", "ffff0000"], 1, &["no kept tree starts with \"ffff0000\"; see `sitegen list`"]),
        (&["rollback", ""], 1, &["\"\""]),
        (&["gc"], 0, &["removed 0 trees"]),
    ] {
        let ran = here.sitegen(arguments)?;
        assert_eq!(ran.code, code, "{arguments:?}: {ran:?}");
        for word in words {
            assert!(format!("{}{}", ran.stdout, ran.stderr).contains(word), "{arguments:?}: {ran:?}");
        }
    }
    let nowhere = Command::new(tests::program("sitegen")).args(["--config", "/nowhere.toml"]).output()?;
    let ran = Ran::of(&nowhere);
    assert!(
        ran.code == 1 && ran.stderr.contains("/nowhere.toml") && ran.stderr.contains("--config FILE"),
        "{ran:?}"
    );
    // A reader who has seen enough is no reason to panic.
    let mut list = here.command(&["list"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    drop(list.stdout.take());
    let ran = Ran::of(&list.wait_with_output()?);
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
    Ok(())
}
