//! The gate for HTML: reads a page as a browser does and hands its scripts, styles and addresses to their gates.
//!
//! | file | what it does |
//! |---|---|
//! | `tokens` | html5ever's tokens with their exact places |
//! | `tree` | the least tree that html5ever needs |
//! | `align` | finds the places of a decoded attribute again |
//! | `elements` | what each element and attribute may be |
//!
//! The same code reads a whole file, markup inside a string of a script, a `srcdoc` and an SVG in a `data:` address.

use crate::css;
use crate::js::{self, Form};
use crate::rules::document::{ENCODING, NESTING};
use crate::scan::Scan;
use crate::source::Piece;
use crate::tf;

mod align;
mod elements;
pub(crate) use elements::candidates;
pub use elements::{missing, resource, shown};
pub(crate) mod tokens;
mod tree;

use tokens::{Event, Start};

/// Scripts are read before handlers, which may call what any script declares.
struct Code {
    /// Where each stands, and how it is run; nothing for the canonical `tf.js`.
    scripts: Vec<(std::ops::Range<usize>, Option<Form>)>,
    foreign: Vec<(String, std::ops::Range<usize>, Form)>,
}

/// Reads `piece` as HTML and adds what it finds.
pub fn scan(scan: &mut Scan<'_>, piece: &Piece<'_>) {
    let tokens = tokens::read(&piece.text);
    let mut code = Code { scripts: Vec::new(), foreign: Vec::new() };
    for (index, event) in tokens.events.iter().enumerate() {
        let Event::Start(start) = event else { continue };
        elements::scan(scan, piece, start);
        match start.name.as_str() {
            "script" => script(scan, piece, start, &tokens.events, index, &mut code),
            "style" => style(scan, piece, start, &tokens.events, index),
            "noscript" if start.is_raw => {
                let content = content(start, &tokens.events, index, piece.text.len());
                self::scan(scan, &Piece::slice(piece, content));
            }
            _ => {}
        }
    }
    for (range, form) in code.scripts {
        match form {
            Some(form) => js::scan(scan, &Piece::slice(piece, range), form),
            None => scan.shim = true,
        }
    }
    for (text, range, form) in code.foreign {
        let map = align::align(piece.text.get(range.clone()).unwrap_or_default(), &text);
        let slice = Piece::slice(piece, range);
        js::scan(scan, &Piece::derived(&slice, text, map, None), form);
    }
    for event in &tokens.events {
        if let Event::Start(start) = event {
            elements::handlers(scan, piece, start);
        }
    }
    if let Some(at) = tokens.stopped {
        let max = policy::limits().check.html_depth_max;
        let what = format!(
            "more than {max} elements inside each other, or far too many: nothing after this was read"
        );
        scan.add(&NESTING, piece, at..at, what);
    }
}

/// From behind a start tag to its end tag.
fn content(start: &Start, events: &[Event], index: usize, length: usize) -> std::ops::Range<usize> {
    let end = events.iter().skip(index + 1).find_map(|e| match e {
        Event::End(name, range) if *name == start.name => Some(range.start),
        _ => None,
    });
    start.range.end..end.unwrap_or(length)
}

/// The text of a foreign `<script>` or `<style>`, whose character references are resolved.
fn foreign_text(start: &Start, events: &[Event], index: usize) -> String {
    let inside = events
        .iter()
        .skip(index + 1)
        .take_while(|e| !matches!(e, Event::End(name, _) if *name == start.name));
    inside.filter_map(|e| if let Event::Text(text) = e { Some(text.as_str()) } else { None }).collect()
}

fn script(
    scan: &mut Scan<'_>,
    piece: &Piece<'_>,
    start: &Start,
    events: &[Event],
    index: usize,
    code: &mut Code,
) {
    let Some(form) = elements::script_form(scan, piece, start) else { return };
    let range = content(start, events, index, piece.text.len());
    if !start.is_raw {
        code.foreign.push((foreign_text(start, events, index), range, form));
    } else {
        let is_tf = tf::is_canonical(piece.text.get(range.clone()).unwrap_or_default());
        code.scripts.push((range, (!is_tf).then_some(form)));
    }
}

fn style(scan: &mut Scan<'_>, piece: &Piece<'_>, start: &Start, events: &[Event], index: usize) {
    let range = content(start, events, index, piece.text.len());
    let slice = Piece::slice(piece, range.clone());
    if start.is_raw {
        css::scan(scan, &slice);
    } else {
        let text = foreign_text(start, events, index);
        let map = align::align(&slice.text, &text);
        css::scan(scan, &Piece::derived(&slice, text, map, None));
    }
}

/// Says so when a `charset` is not the one that every work is served with.
fn charset(scan: &mut Scan<'_>, piece: &Piece<'_>, at: std::ops::Range<usize>, charset: &str) {
    let charset = charset.trim().trim_matches(['"', '\'']);
    if !charset.eq_ignore_ascii_case("utf-8") && !charset.eq_ignore_ascii_case("utf8") {
        let what = format!("this page says that it is {charset}, but every work is served as UTF-8");
        scan.add(&ENCODING, piece, at, what);
    }
}
