//! The files for programs, read by parsers that have nothing in common with what wrote them.

use std::collections::HashSet;
use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use catalog::{Catalog, Role};
use tests::{Installation, Ran, http};

/// A title that breaks whatever can be broken.
const HOSTILE: &str = "</title>]]> <b>\"R&D\"</b> ' \u{202e}x\u{0}\u{b} \u{2028}\u{1f642} ${1} `";

fn hostile() -> Result<Installation> {
    let here = Installation::new()?;
    here.publish()?;
    let mut catalog = Catalog::open(&here.data("catalog.db"))?;
    let mut work = catalog.published()?.remove(0);
    (work.manifest.title, work.manifest.summary) = (Some(HOSTILE.to_owned()), HOSTILE.to_owned());
    catalog.replace(&work)?;
    here.publish()?;
    Ok(here)
}

#[test]
fn the_feed_has_the_newest_works() -> Result<()> {
    let here = hostile()?;
    let bytes = fs::read(here.data("live/site/rss.xml"))?;
    let feed = feed_rs::parser::parse(&bytes[..])?;
    let mut works = Catalog::open(&here.data("catalog.db"))?.published()?;
    works.sort_by_key(|w| std::cmp::Reverse(w.released));
    assert_eq!((feed.feed_type, feed.entries.len()), (feed_rs::model::FeedType::RSS2, works.len()));
    let ids: HashSet<_> = feed.entries.iter().map(|e| e.id.clone()).collect();
    assert_eq!(ids.len(), works.len());
    let origin = format!("http://localhost:{}", here.site_port);
    for entry in &feed.entries {
        let link = &entry.links[0].href;
        let work = works.iter().find(|w| *link == format!("{origin}{}", w.path())).context(link.clone())?;
        assert_eq!(&entry.id, link, "guid is the link");
        assert_eq!(
            entry.published.map(|d| d.to_rfc3339()),
            Some(format!("{}T00:00:00+00:00", work.released))
        );
        let title = entry.title.as_ref().context("no title")?;
        let plain: String = work.manifest.title().chars().filter(|c| !c.is_control()).collect();
        assert_eq!(title.content, plain);
    }
    let days: Vec<_> = feed.entries.iter().map(|e| e.published).collect();
    assert!(days.is_sorted_by(|a, b| a >= b), "newest first");
    // The shape that validators ask for.
    let text = String::from_utf8(bytes)?;
    let xml = roxmltree::Document::parse(&text)?;
    let channel = xml.root_element().first_element_child().context("no channel")?;
    for name in ["title", "link", "description", "lastBuildDate"] {
        assert_eq!(
            channel.children().filter(|c| c.has_tag_name(name) && c.tag_name().namespace().is_none()).count(),
            1,
            "{name}"
        );
    }
    let own = channel
        .children()
        .find(|c| c.has_tag_name(("http://www.w3.org/2005/Atom", "link")))
        .context("no self")?;
    assert_eq!(
        (own.attribute("rel"), own.attribute("href")),
        (Some("self"), Some(&*format!("{origin}/rss.xml")))
    );
    Ok(())
}

#[test]
fn every_address_of_the_sitemap_answers_and_every_page_is_in_it() -> Result<()> {
    let mut here = hostile()?;
    here.serve()?;
    let text = fs::read_to_string(here.data("live/site/sitemap.xml"))?;
    let xml = roxmltree::Document::parse(&text)?;
    assert!(xml.root_element().has_tag_name(("http://www.sitemaps.org/schemas/sitemap/0.9", "urlset")));
    let origin = format!("http://localhost:{}", here.site_port);
    let mut named = HashSet::new();
    for url in xml.root_element().children().filter(|n| n.is_element()) {
        let field = |name: &str| url.children().find(|c| c.tag_name().name() == name).and_then(|c| c.text());
        let path = field("loc").and_then(|l| l.strip_prefix(&origin)).context("another origin")?;
        match field("lastmod") {
            Some(day) => assert!(day.parse::<catalog::Day>().is_ok(), "{path}: {day}"),
            // A form has no day of its own.
            None => assert_eq!(path, "/submit.html"),
        }
        assert_eq!(http::get(here.site_port, "localhost", path)?.status, 200, "{path}");
        assert!(named.insert(path.to_owned()), "{path} twice");
    }
    let root = here.data("live/site/");
    for entry in walkdir::WalkDir::new(&root).follow_links(true) {
        let entry = entry?;
        if entry.path().extension().is_some_and(|e| e == "html") {
            let path = format!("/{}", entry.path().strip_prefix(&root)?.display()).replace("index.html", "");
            // The moderators' desk is nobody else's business.
            let alone = ["/404.html", "/410.html", "/review.html"];
            assert_eq!(named.contains(&path), !alone.contains(&&*path), "{path}");
        }
    }
    Ok(())
}

#[test]
fn the_catalogue_module_is_a_module_and_has_every_work() -> Result<()> {
    let here = hostile()?;
    let works = Catalog::open(&here.data("catalog.db"))?.published()?;
    let path = here.data("live/site/data/works.js");
    let text = fs::read_to_string(&path)?;
    let part = |name: &str| -> Result<serde_json::Value> {
        let start = format!("export const {name} = ");
        let rest = text.split_once(&start).with_context(|| format!("no {name}"))?.1;
        Ok(serde_json::from_str(rest.split_once(";\n").context("never ends")?.0)?)
    };
    let (columns, rows, shards) = (part("columns")?, part("works")?, part("shards")?);
    assert_eq!(shards.as_array().map(Vec::len), Some(0));
    let column = |name: &str| {
        columns.as_array().and_then(|c| c.iter().position(|n| n == name)).context(name.to_owned())
    };
    let rows = rows.as_array().context("no rows")?;
    assert_eq!(rows.len(), works.len());
    for row in rows {
        let (creator, slug) = (row[column("creator")?].as_str(), row[column("slug")?].as_str());
        let work =
            works.iter().find(|w| (Some(w.creator.as_str()), Some(w.slug.as_str())) == (creator, slug));
        let work = work.with_context(|| row.to_string())?;
        let payload = work.file(Role::Payload).context("no payload")?;
        assert_eq!(row[column("title")?], work.manifest.title());
        assert_eq!(row[column("sha256")?], payload.digest.to_string());
        assert_eq!(row[column("bytes")?], payload.bytes);
    }
    // Where a JavaScript engine is at hand, it must see the same.
    let script = "const m = await import(process.argv[1]); console.log(JSON.stringify(m.works))";
    let module = here.config().with_file_name("works.mjs");
    fs::copy(&path, &module)?;
    if let Ok(output) = Command::new("node").args(["--input-type=module", "-e", script]).arg(&module).output()
    {
        let ran = Ran::of(&output);
        ensure!(ran.code == 0, "{ran:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&ran.stdout)?.as_array(), Some(rows));
    }
    Ok(())
}

#[test]
fn the_paths_that_others_rely_on_answer() -> Result<()> {
    let mut here = Installation::new()?;
    here.publish()?;
    here.serve()?;
    for path in [
        "/python.html",
        "/data/works.js",
        "/sitemap.xml",
        "/rss.xml",
        "/robots.txt",
        "/.well-known/security.txt",
    ] {
        assert_eq!(http::get(here.site_port, "localhost", path)?.status, 200, "{path}");
    }
    let security = http::get(here.site_port, "localhost", "/.well-known/security.txt")?.text();
    for field in [
        "Contact: mailto:security@tinyfiles.example\n",
        "Expires: 2027-11-30T00:00:00Z\n",
        "Policy: http://localhost:",
    ] {
        assert!(security.contains(field), "{security}");
    }
    let policy = security.lines().find_map(|l| l.strip_prefix("Policy: ")).context("no policy")?;
    let path = policy.split_once(&format!(":{}", here.site_port)).context("another origin")?.1;
    let (page, anchor) = path.split_once('#').context("no anchor")?;
    assert!(
        http::get(here.site_port, "localhost", page)?.text().contains(&format!("id=\"{anchor}\"")),
        "{path}"
    );
    Ok(())
}
