//! Tokens of an HTML file with their exact places.
//!
//! html5ever reads the file as a browser does: tokenizer and tree builder together, since only the tree knows whether
//! `<style>` holds CSS or, inside an SVG, markup. It tells no offsets, so the file is fed to it in slices that end at
//! each `>` and before each `<`: a tag is always complete at the end of a slice. The attributes of a tag are then found
//! again in its source by the few rules that tags have. The tree is not kept; its depth is bounded.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};

use super::tree::{Node, Tree};

/// What happens in the file, in its order.
#[derive(Debug)]
pub(crate) enum Event {
    /// A start tag.
    Start(Start),
    /// An end tag: its name and where it stands.
    End(String, Range<usize>),
    /// Text whose character references are resolved, only inside the elements that hold code.
    Text(String),
}

/// A start tag.
#[derive(Debug)]
pub(crate) struct Start {
    /// In lower case.
    pub(crate) name: String,
    /// Names in lower case and values with their character references resolved.
    pub(crate) attrs: Vec<Attr>,
    /// From `<` to behind `>`.
    pub(crate) range: Range<usize>,
    /// Whether what follows, up to the end tag, is raw text.
    pub(crate) is_raw: bool,
    /// Whether it is an element of SVG or MathML.
    pub(crate) is_foreign: bool,
}

/// An attribute.
#[derive(Debug)]
pub(crate) struct Attr {
    pub(crate) name: String,
    pub(crate) value: String,
    /// Where the value stands in the file, without quotes.
    pub(crate) raw: Range<usize>,
}

/// How the reading ended.
#[derive(Debug)]
pub(crate) struct Tokens {
    pub(crate) events: Vec<Event>,
    /// Where it stopped, if the elements were too many or too deep.
    pub(crate) stopped: Option<usize>,
}

/// Reads `text`.
pub(crate) fn read(text: &str) -> Tokens {
    let limits = &policy::limits().check;
    let options = TreeBuilderOpts { scripting_enabled: true, ..Default::default() };
    let recorder = Recorder {
        builder: TreeBuilder::new(Tree::default(), options),
        source: text,
        slice: Cell::new((0, 0)),
        floor: Cell::new(0),
        elements: Cell::new(0),
        in_code: Cell::new(false),
        events: RefCell::new(Vec::new()),
    };
    let tokenizer = Tokenizer::new(recorder, Default::default());
    let queue = BufferQueue::default();
    let mut start = 0;
    let mut stopped = None;
    while start < text.len() {
        let end = slice_end(text.as_bytes(), start);
        tokenizer.sink.slice.set((start, end));
        queue.push_back(StrTendril::from(&text[start..end]));
        while !queue.is_empty() {
            let _ = tokenizer.feed(&queue);
        }
        start = end;
        let tree = &tokenizer.sink.builder.sink;
        if tree.depth.get() > limits.html_depth_max
            || tokenizer.sink.elements.get() > limits.html_elements_max
        {
            stopped = Some(start.saturating_sub(1));
            break;
        }
    }
    if stopped.is_none() {
        tokenizer.sink.slice.set((text.len(), text.len()));
        tokenizer.end();
    }
    let events = tokenizer.sink.events.take();
    Tokens { events, stopped }
}

/// The end of the slice that begins at `start`: behind the next `>`, or before the next `<`.
fn slice_end(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    match rest.iter().skip(1).position(|b| matches!(b, b'<' | b'>')) {
        _ if rest.first() == Some(&b'>') => start + 1,
        Some(i) if rest.get(i + 1) == Some(&b'>') => start + i + 2,
        Some(i) => start + i + 1,
        None => bytes.len(),
    }
}

/// Stands between the tokenizer and the tree builder and writes down what passes.
struct Recorder<'t> {
    builder: TreeBuilder<Node, Tree>,
    source: &'t str,
    slice: Cell<(usize, usize)>,
    /// No tag that is still to come starts before it.
    floor: Cell<usize>,
    elements: Cell<usize>,
    in_code: Cell<bool>,
    events: RefCell<Vec<Event>>,
}

impl TokenSink for Recorder<'_> {
    type Handle = Node;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<Node> {
        match token {
            Token::TagToken(tag) => self.tag(tag, line),
            Token::CharacterTokens(text) => {
                if self.in_code.get() {
                    self.events.borrow_mut().push(Event::Text(text.to_string()));
                }
                self.pass(Token::CharacterTokens(text), line)
            }
            token @ (Token::ParseError(_) | Token::EOFToken) => self.builder.process_token(token, line),
            token => self.pass(token, line),
        }
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

impl Recorder<'_> {
    fn pass(&self, token: Token, line: u64) -> TokenSinkResult<Node> {
        self.floor.set(self.slice.get().0);
        self.builder.process_token(token, line)
    }

    fn tag(&self, tag: Tag, line: u64) -> TokenSinkResult<Node> {
        let (_, end) = self.slice.get();
        let (start, places) = self.locate(&tag, end);
        self.floor.set(end);
        let name = tag.name.to_string();
        let is_end = tag.kind == TagKind::EndTag;
        let attrs = tag.attrs.iter().map(|a| attr(self.source, a, &places, start)).collect();
        let holds_code = matches!(name.as_str(), "script" | "style");
        let result = self.builder.process_token(Token::TagToken(tag), line);
        let is_raw = matches!(result, TokenSinkResult::RawData(_) | TokenSinkResult::Plaintext);
        let is_foreign = self.builder.adjusted_current_node_present_but_not_in_html_namespace();
        if is_end {
            if holds_code {
                self.in_code.set(false);
            }
            self.events.borrow_mut().push(Event::End(name, start..end));
        } else {
            self.elements.set(self.elements.get() + 1);
            self.in_code.set(self.in_code.get() || (holds_code && !is_raw));
            let tag = Start { name, attrs, range: start..end, is_raw, is_foreign };
            self.events.borrow_mut().push(Event::Start(tag));
        }
        result
    }

    /// Where the tag that ends at `end` starts, and where its attributes stand.
    fn locate(&self, tag: &Tag, end: usize) -> (usize, Vec<Place>) {
        let bytes = self.source.as_bytes();
        let slash = usize::from(tag.kind == TagKind::EndTag);
        let mut at = self.floor.get();
        let mut tries = 0;
        while let Some(found) = bytes.get(at..end).and_then(|b| b.iter().position(|b| *b == b'<')) {
            let start = at + found;
            let name_end = start + 1 + slash + tag.name.len();
            let is_name = bytes
                .get(start + 1 + slash..name_end)
                .is_some_and(|name| name.eq_ignore_ascii_case(tag.name.as_bytes()));
            if is_name {
                tries += 1;
                let (places, stop) = places(bytes, name_end);
                if stop == end || tries > 64 {
                    return (start, places);
                }
            }
            at = start + 1;
        }
        (self.slice.get().0, Vec::new())
    }
}

fn attr(source: &str, attr: &html5ever::Attribute, places: &[Place], start: usize) -> Attr {
    let local = attr.name.local.to_string();
    let name = match &attr.name.prefix {
        Some(prefix) if !prefix.is_empty() => format!("{prefix}:{local}"),
        _ => local,
    };
    let place = places
        .iter()
        .find(|p| source.get(p.name.clone()).is_some_and(|text| text.eq_ignore_ascii_case(&name)));
    let raw = place.map_or(start..start, |p| p.value.clone());
    Attr { name, value: attr.value.to_string(), raw }
}

/// Where one attribute stands in the source.
struct Place {
    name: Range<usize>,
    value: Range<usize>,
}

/// The attributes of a tag whose name ends at `at`, and the offset behind its `>`.
fn places(bytes: &[u8], mut at: usize) -> (Vec<Place>, usize) {
    let mut found = Vec::new();
    let byte = |at: usize| bytes.get(at).copied();
    loop {
        while byte(at).is_some_and(|b| is_space(b) || b == b'/') {
            at += 1;
        }
        match byte(at) {
            None => return (found, at),
            Some(b'>') => return (found, at + 1),
            Some(_) => {}
        }
        let start = at;
        at += 1;
        while byte(at).is_some_and(|b| !is_space(b) && !matches!(b, b'/' | b'>' | b'=')) {
            at += 1;
        }
        let name = start..at;
        let mut next = at;
        while byte(next).is_some_and(is_space) {
            next += 1;
        }
        if byte(next) != Some(b'=') {
            found.push(Place { name, value: start..at });
            continue;
        }
        at = next + 1;
        while byte(at).is_some_and(is_space) {
            at += 1;
        }
        let (value, behind) = value(bytes, at);
        at = behind;
        found.push(Place { name, value });
    }
}

/// The value that begins at `at`, and the offset behind it.
fn value(bytes: &[u8], at: usize) -> (Range<usize>, usize) {
    let rest = bytes.get(at..).unwrap_or_default();
    let until = |from: usize, stop: &dyn Fn(u8) -> bool| {
        rest.iter().skip(from).position(|b| stop(*b)).map_or(rest.len(), |i| i + from)
    };
    match rest.first() {
        Some(quote @ (b'"' | b'\'')) => {
            let end = until(1, &|b| b == *quote);
            (at + 1..at + end, at + end + 1)
        }
        Some(b'>') | None => (at..at, at),
        Some(_) => {
            let end = until(0, &|b| is_space(b) || b == b'>');
            (at..at + end, at + end)
        }
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0C)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(text: &str) -> Vec<(String, String)> {
        let tokens = read(text);
        let shown = |e: &Event| match e {
            Event::Start(s) => Some((s.name.clone(), text[s.range.clone()].to_owned())),
            _ => None,
        };
        tokens.events.iter().filter_map(shown).collect()
    }

    #[test]
    fn tags_stand_where_they_stand() {
        for (text, expected) in [
            ("<p>x<b>y", vec!["<p>", "<b>"]),
            ("a < b <i title='a>b<c>'>", vec!["<i title='a>b<c>'>"]),
            ("<<div>", vec!["<div>"]),
            ("<IMG src = x y=\"<\" z>", vec!["<IMG src = x y=\"<\" z>"]),
            ("<script>if(a<b)'<p>'</script><p>", vec!["<script>", "<p>"]),
            ("<!-- <b> --><u\n>", vec!["<u\n>"]),
            ("<svg><style><i></i></style></svg>", vec!["<svg>", "<style>", "<i>"]),
            ("<a/href=x/y>", vec!["<a/href=x/y>"]),
            ("<p", vec![]),
        ] {
            let found: Vec<_> = starts(text).into_iter().map(|s| s.1).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn attribute_values_are_found_in_the_source() {
        let text = "<a HREF='x&amp;y' href=second b = c d><svg><image xlink:href=u>";
        let tokens = read(text);
        let mut found = Vec::new();
        for event in &tokens.events {
            if let Event::Start(s) = event {
                found.extend(s.attrs.iter().map(|a| (a.name.clone(), a.value.clone(), &text[a.raw.clone()])));
            }
        }
        let expected =
            [("href", "x&y", "x&amp;y"), ("b", "c", "c"), ("d", "", "d"), ("xlink:href", "u", "u")];
        assert_eq!(found, expected.map(|(n, v, r)| (n.to_owned(), v.to_owned(), r)));
    }

    #[test]
    fn depth_is_bounded() {
        let tokens = read(&"<div>".repeat(100_000));
        assert!(tokens.stopped.is_some());
        assert!(read(&"<p>".repeat(1_000)).stopped.is_none(), "paragraphs close each other");
    }
}
