//! The files for programs: `works.js`, `rss.xml`, `sitemap.xml`, `robots.txt`, `security.txt`.

use catalog::Day;
use policy::{Config, limits};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use serde_json::json;

use crate::site::{Entry, Site};

/// `/data/works.js`: an ES module with the catalogue, newest first. Past one shard's worth of works it holds the names
/// of the shards instead, each a JSON file; shards are filled from the oldest work on, so old ones do not change.
///
/// A work is a row `[creator, slug, title, summary, bytes, sha256, released, tags, capabilities, tinyjam, cover]`.
pub(crate) fn works_js(site: &Site) -> Vec<(String, Vec<u8>)> {
    let size = limits().site.works_per_shard;
    let head = "// Every published work, newest first, as rows of the named columns.\n\
                export const columns = [\"creator\", \"slug\", \"title\", \"summary\", \"bytes\", \"sha256\", \"released\", \
                \"tags\", \"capabilities\", \"tinyjam\", \"cover\"];\n";
    if site.entries.len() <= size {
        let module =
            format!("{head}export const works = {};\nexport const shards = [];\n", rows(site.entries.iter()));
        return vec![("works.js".to_owned(), module.into_bytes())];
    }
    let mut files = Vec::new();
    let mut names = Vec::new();
    for (i, shard) in site.entries.rchunks(size).enumerate() {
        let name = format!("works-{}.json", i + 1);
        names.push(format!("/data/{name}"));
        files.push((name, rows(shard.iter()).into_bytes()));
    }
    names.reverse();
    let module = format!("{head}export const works = [];\nexport const shards = {};\n", json!(names));
    files.push(("works.js".to_owned(), module.into_bytes()));
    files
}

fn rows<'a>(entries: impl Iterator<Item = &'a Entry>) -> String {
    let rows = entries.map(|Entry { work, card, .. }| {
        let cover = card.cover.as_ref().and_then(|c| c.src.as_str()?.rsplit('/').next().map(str::to_owned));
        json!([
            work.creator,
            work.slug,
            card.title,
            card.summary,
            card.bytes,
            card.sha256,
            card.released,
            card.tags,
            card.capabilities,
            card.tinyjam,
            cover
        ])
        .to_string()
    });
    format!("[\n{}\n]", rows.collect::<Vec<_>>().join(",\n"))
}

/// `/rss.xml`: RSS 2.0 with the newest works.
pub(crate) fn rss(config: &Config, site: &Site) -> anyhow::Result<Vec<u8>> {
    let origin = config.site.to_string();
    let newest = &site.entries[..site.entries.len().min(limits().site.feed_items_max)];
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 1);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let rss = xml
        .create_element("rss")
        .with_attributes([("version", "2.0"), ("xmlns:atom", "http://www.w3.org/2005/Atom")]);
    rss.write_inner_content(|xml| {
        xml.create_element("channel").write_inner_content(|xml| {
            element(xml, "title", "tinyfiles: new works")?;
            element(xml, "link", &format!("{origin}/"))?;
            element(xml, "description", "The newest works of tinyfiles, each one small file.")?;
            element(xml, "language", "en")?;
            if let Some(day) = newest.iter().map(|e| e.work.released).max() {
                element(xml, "lastBuildDate", &day.rfc822())?;
            }
            let own = format!("{origin}/rss.xml");
            let link = [("href", own.as_str()), ("rel", "self"), ("type", "application/rss+xml")];
            xml.create_element("atom:link").with_attributes(link).write_empty()?;
            for Entry { work, card, .. } in newest {
                xml.create_element("item").write_inner_content(|xml| {
                    let link = format!("{origin}{}", work.path());
                    element(xml, "title", &card.title)?;
                    element(xml, "link", &link)?;
                    element(xml, "guid", &link)?;
                    element(xml, "pubDate", &card.released.rfc822())?;
                    // Readers take a description for HTML: what the creator wrote is text there too.
                    let words = quick_xml::escape::escape(&card.summary);
                    let description = format!("{words} ({} bytes, by {})", card.bytes, work.creator);
                    element(xml, "description", description.trim_start())
                })?;
            }
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(finished(xml))
}

/// The sitemap of these paths and the day of their last change: `/sitemap.xml`, and past the limit of one file an index
/// of `/sitemap-1.xml` and on.
pub(crate) fn sitemap(
    config: &Config,
    pages: &[(String, Option<Day>)],
) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let size = limits().site.sitemap_urls_max;
    if pages.len() <= size {
        return Ok(vec![("sitemap.xml".to_owned(), urls(config, "urlset", "url", pages)?)]);
    }
    let mut files = Vec::new();
    let mut index = Vec::new();
    for (i, part) in pages.chunks(size).enumerate() {
        let name = format!("sitemap-{}.xml", i + 1);
        index.push((format!("/{name}"), part.iter().filter_map(|(_, day)| *day).max()));
        files.push((name, urls(config, "urlset", "url", part)?));
    }
    files.push(("sitemap.xml".to_owned(), urls(config, "sitemapindex", "sitemap", &index)?));
    Ok(files)
}

fn urls(config: &Config, root: &str, each: &str, pages: &[(String, Option<Day>)]) -> anyhow::Result<Vec<u8>> {
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 1);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let root =
        xml.create_element(root).with_attribute(("xmlns", "http://www.sitemaps.org/schemas/sitemap/0.9"));
    root.write_inner_content(|xml| {
        for (path, day) in pages {
            xml.create_element(each).write_inner_content(|xml| {
                element(xml, "loc", &format!("{}{path}", config.site))?;
                day.map_or(Ok(()), |day| element(xml, "lastmod", &day.to_string()))
            })?;
        }
        Ok(())
    })?;
    Ok(finished(xml))
}

fn element(xml: &mut Writer<Vec<u8>>, name: &str, text: &str) -> std::io::Result<()> {
    // XML 1.0 has no way to write most control characters.
    let plain: String =
        text.chars().filter(|c| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}')).collect();
    xml.create_element(name).write_text_content(BytesText::new(&plain)).map(|_| ())
}

fn finished(xml: Writer<Vec<u8>>) -> Vec<u8> {
    let mut bytes = xml.into_inner();
    bytes.push(b'\n');
    bytes
}

/// `/robots.txt` of the site.
pub(crate) fn robots(config: &Config) -> String {
    format!("User-agent: *\nAllow: /\n\nSitemap: {}/sitemap.xml\n", config.site)
}

/// `/.well-known/security.txt` (RFC 9116).
pub(crate) fn security_txt(config: &Config) -> String {
    let Config { site, contact, security_txt_expires: expires, .. } = config;
    format!(
        "Contact: {contact}\nExpires: {expires}T00:00:00Z\nPreferred-Languages: en\n\
         Canonical: {site}/.well-known/security.txt\nPolicy: {site}/security.html#vulnerability-disclosure\n"
    )
}
