//! Markdown to HTML: trusted for the pages of `content/`, restricted for what creators write about their works.

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// A heading of a page, for its table of contents.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Heading {
    /// The id.
    pub(crate) id: String,
    /// The text.
    pub(crate) text: String,
    /// 2 for `##`, and so on.
    pub(crate) level: u8,
}

/// Renders a page of ours. Every heading gets an id made of its text; tables are wrapped so that they scroll alone.
pub(crate) fn page(text: &str) -> (String, Vec<Heading>) {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut events: Vec<Event<'_>> = Parser::new_ext(text, options).collect();
    let headings = name_headings(&mut events);
    let mut out = String::with_capacity(text.len() * 2);
    let mut tables = 0;
    let wrapped = events.into_iter().flat_map(|event| match event {
        Event::Start(Tag::Table(_)) => {
            tables += 1; // each region has a name of its own
            let open =
                format!("<div class=\"table\" role=\"region\" aria-label=\"Table {tables}\" tabindex=\"0\">");
            vec![Event::Html(CowStr::from(open)), event]
        }
        Event::End(TagEnd::Table) => vec![event, Event::Html(CowStr::Borrowed("</div>\n"))],
        event => vec![event],
    });
    html::push_html(&mut out, wrapped);
    // Tables have no width of their own there, and code blocks scroll: both must be reachable by keyboard.
    (out.replace("<th></th>", "<td></td>").replace("<pre>", "<pre tabindex=\"0\">"), headings)
}

fn name_headings(events: &mut [Event<'_>]) -> Vec<Heading> {
    let mut headings: Vec<Heading> = Vec::new();
    let mut i = 0;
    while i < events.len() {
        let end =
            events[i..].iter().position(|e| matches!(e, Event::End(TagEnd::Heading(_)))).map_or(i, |n| i + n);
        let text: String = events[i..end]
            .iter()
            .filter_map(|e| match e {
                Event::Text(t) | Event::Code(t) => Some(t.as_ref()),
                _ => None,
            })
            .collect();
        if let Event::Start(Tag::Heading { level, id, .. }) = &mut events[i] {
            let slug = slugify(&text);
            let repeats = headings.iter().filter(|h| h.id == slug).count();
            let name = if repeats == 0 { slug } else { format!("{slug}-{repeats}") };
            *id = Some(CowStr::from(name.clone()));
            headings.push(Heading { id: name, text, level: level_of(*level) });
        }
        i += 1;
    }
    headings
}

fn level_of(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

/// Lower case, letters and digits kept, everything between them one hyphen; apostrophes and dots vanish.
fn slugify(text: &str) -> String {
    let kept =
        text.chars().filter(|c| !matches!(c, '\'' | '’' | '.' | ',' | ':' | '?' | '!' | '(' | ')' | '/'));
    let words: String = kept.map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    words.to_lowercase().split_whitespace().collect::<Vec<_>>().join("-")
}

/// Renders what a creator wrote: paragraphs, lists, emphasis, code, and https links. Markup becomes visible text,
/// pictures their description, headings paragraphs in bold, other links their text.
pub(crate) fn untrusted(text: &str) -> String {
    let mut link_open = Vec::new();
    let events = Parser::new(text).filter_map(|event| match event {
        Event::Html(t) | Event::InlineHtml(t) => Some(Event::Text(t)),
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => None,
        Event::Start(Tag::Link { dest_url, .. }) => {
            let allowed = dest_url.starts_with("https://");
            link_open.push(allowed);
            let mut open = String::from("<a rel=\"nofollow noopener ugc\" href=\"");
            pulldown_cmark_escape::escape_href(&mut open, &dest_url).ok()?;
            open.push_str("\">");
            allowed.then(|| Event::InlineHtml(CowStr::from(open)))
        }
        Event::End(TagEnd::Link) => link_open.pop()?.then_some(Event::InlineHtml(CowStr::Borrowed("</a>"))),
        Event::Start(Tag::Heading { .. }) => Some(Event::Html(CowStr::Borrowed("<p><strong>"))),
        Event::End(TagEnd::Heading(_)) => Some(Event::Html(CowStr::Borrowed("</strong></p>\n"))),
        event => Some(event),
    });
    let mut out = String::with_capacity(text.len() * 2);
    html::push_html(&mut out, events);
    out.replace("<pre>", "<pre tabindex=\"0\">")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_get_ids_that_do_not_collide() {
        let (html, headings) =
            page("# A page\n## What's in: `run(inputs)`?\n## Same\n## Same\n### 3. Acceptable use\n");
        let ids: Vec<_> = headings.iter().map(|h| (h.id.as_str(), h.level)).collect();
        assert_eq!(
            ids,
            [("a-page", 1), ("whats-in-runinputs", 2), ("same", 2), ("same-1", 2), ("3-acceptable-use", 3)]
        );
        assert!(html.contains("<h2 id=\"same-1\">Same</h2>"), "{html}");
    }

    #[test]
    fn a_table_scrolls_alone() {
        let (html, _) = page("| a | b |\n|---|---|\n| 1 | 2 |\n");
        assert!(
            html.starts_with("<div class=\"table\" role=\"region\"") && html.ends_with("</div>\n"),
            "{html}"
        );
    }

    #[test]
    fn a_creator_cannot_write_markup() {
        for (text, expected) in [
            ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
            ("a <b onclick=x>b</b>", "<p>a &lt;b onclick=x&gt;b&lt;/b&gt;</p>\n"),
            ("[x](javascript:alert(1))", "<p>x</p>\n"),
            ("[x](/security.html)", "<p>x</p>\n"),
            (
                "[x](https://a.example/?\"><b>)",
                "<p><a rel=\"nofollow noopener ugc\" href=\"https://a.example/?%22%3E%3Cb%3E\">x</a></p>\n",
            ),
            (
                "[x](<https://a.example/?\"b>)",
                "<p><a rel=\"nofollow noopener ugc\" href=\"https://a.example/?%22b\">x</a></p>\n",
            ),
            ("![cat](https://a.example/c.png)", "<p>cat</p>\n"),
            ("# Loud", "<p><strong>Loud</strong></p>\n"),
            ("*a* `b` & c", "<p><em>a</em> <code>b</code> &amp; c</p>\n"),
        ] {
            assert_eq!(untrusted(text), expected, "{text}");
        }
    }
}
