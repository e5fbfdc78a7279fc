//! What the link check reads out of a page of ours: where it points to, and what can be pointed to.
//!
//! The pages are our own output, whose attributes are quoted with `"`; this is not a parser for other people's HTML.

use std::borrow::Cow;

/// Links and ids of a page.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Anchors {
    /// Targets on this site: `/path`, `path`, `/path#id` or `#id`, sorted, each once.
    pub(crate) links: Vec<String>,
    /// The ids.
    pub(crate) ids: Vec<String>,
}

impl Anchors {
    /// Reads a page.
    pub(crate) fn of(html: &str) -> Self {
        let (mut links, mut ids) = (Vec::new(), Vec::new());
        // Text has no `<` of its own: it is escaped. So is `>` in attributes.
        for tag in html.split('<').skip(1).filter_map(|t| Some(t.split_once('>')?.0)) {
            for attribute in tag.split("\" ").flat_map(|a| a.split_once("=\"")) {
                let (name, value) =
                    (attribute.0.rsplit(' ').next(), attribute.1.split('"').next().unwrap_or_default());
                match name {
                    Some("id") => ids.push(value.to_owned()),
                    Some("href" | "src" | "action" | "poster")
                        if !value.starts_with("//") && !has_scheme(value) =>
                    {
                        links.push(value.replace("&amp;", "&"));
                    }
                    _ => {}
                }
            }
        }
        links.sort_unstable();
        links.dedup();
        Self { links, ids }
    }
}

/// Whether a target says how it is reached, as `mailto:a@b.example` and `data:,` do (RFC 3986, 3.1).
fn has_scheme(target: &str) -> bool {
    let before = target.split_once(':').map(|(scheme, _)| scheme);
    before
        .is_some_and(|s| !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)))
}

/// The path that a target on the page `from` means (RFC 3986, 5.2).
pub(crate) fn resolved<'a>(from: &str, path: &'a str) -> Cow<'a, str> {
    if path.starts_with('/') {
        return path.into();
    }
    let mut folders: Vec<&str> = from.split('/').skip(1).collect();
    folders.pop();
    let mut last = "";
    for (i, segment) in path.split('/').enumerate() {
        if i > 0 && !last.is_empty() {
            folders.push(last);
        }
        last = "";
        match segment {
            "." => {}
            ".." => _ = folders.pop(),
            segment => last = segment,
        }
    }
    folders.push(last);
    format!("/{}", folders.join("/")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_target_is_seen_from_its_page() {
        for (from, path, expected) in [
            ("/about.html", "/x", "/x"),
            ("/about.html", "security.html", "/security.html"),
            ("/a/b/", "c.png", "/a/b/c.png"),
            ("/a/b/", "../c/", "/a/c/"),
            ("/a/b/", "./", "/a/b/"),
            ("/a/b/", "..", "/a/"),
            ("/a/b/x", "../../../c", "/c"),
        ] {
            assert_eq!(resolved(from, path), expected, "{path} on {from}");
        }
    }

    #[test]
    fn own_targets_and_ids() {
        let html = r##"<h1 id="top">x</h1><a href="/b?x=1&amp;y=2">b</a><a class="c" href="#top">t</a>
            <a href="https://other.example/">o</a><a href="//other.example/">o</a><img src="/a.png" alt="">
            <a href="/a.png">again</a><a href="mailto:a@b.example">m</a>
            <p title="a">code: &lt;a href="c.html"&gt;</p><img alt="x" src="d.png"/>"##;
        let anchors = Anchors::of(html);
        assert_eq!(anchors.links, ["#top", "/a.png", "/b?x=1&y=2", "d.png"]);
        assert_eq!(anchors.ids, ["top"]);
    }
}
