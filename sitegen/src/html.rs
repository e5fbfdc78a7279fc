//! What the link check reads out of a page of ours: where it points to, and what can be pointed to.
//!
//! The pages are our own output, whose attributes are quoted with `"`; this is not a parser for other people's HTML.

/// Links and ids of a page.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Anchors {
    /// Targets on this site: `/path`, `/path#id` or `#id`, sorted, each once.
    pub(crate) links: Vec<String>,
    /// The ids.
    pub(crate) ids: Vec<String>,
}

impl Anchors {
    /// Reads a page.
    pub(crate) fn of(html: &str) -> Self {
        let mut links: Vec<String> = ["href", "src", "action", "poster"]
            .iter()
            .flat_map(|name| attributes(html, name))
            .filter(|v| v.starts_with('#') || v.starts_with('/') && !v.starts_with("//"))
            .map(|v| v.replace("&amp;", "&"))
            .collect();
        links.sort_unstable();
        links.dedup();
        Self { links, ids: attributes(html, "id").map(str::to_owned).collect() }
    }
}

/// The values of an attribute, in order.
fn attributes<'a>(html: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let opening = format!(" {name}=\"");
    let mut rest = html;
    std::iter::from_fn(move || {
        let start = rest.find(&opening)? + opening.len();
        let (value, after) = rest[start..].split_once('"')?;
        rest = after;
        Some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_targets_and_ids() {
        let html = r##"<h1 id="top">x</h1><a href="/b?x=1&amp;y=2">b</a><a class="c" href="#top">t</a>
            <a href="https://other.example/">o</a><a href="//other.example/">o</a><img src="/a.png" alt="">
            <a href="/a.png">again</a><a href="mailto:a@b.example">m</a>"##;
        let anchors = Anchors::of(html);
        assert_eq!(anchors.links, ["#top", "/a.png", "/b?x=1&y=2"]);
        assert_eq!(anchors.ids, ["top"]);
    }
}
