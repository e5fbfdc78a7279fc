//! Text with a memory of where it came from.
//!
//! A [`Piece`] is a file, or text taken or decoded from another piece: a script inside an HTML file, an attribute with
//! its character references resolved, the content of a base64 literal. Whatever a gate finds in a piece, its place is
//! told in the file that the creator has open. Every gate uses it; it knows no rule.

use std::borrow::Cow;
use std::ops::Range;

/// The longest excerpt, in characters.
const EXCERPT_CHARS: usize = 96;

/// A piece of text and its origin.
#[derive(Debug)]
pub struct Piece<'p> {
    /// The text as a browser would read it.
    pub text: Cow<'p, str>,
    origin: Option<Origin<'p>>,
}

#[derive(Debug)]
struct Origin<'p> {
    parent: &'p Piece<'p>,
    map: Map,
    how: Option<&'static str>,
}

/// How offsets of a piece turn into offsets of its parent.
#[derive(Debug)]
pub enum Map {
    /// A slice that starts there.
    Shift(usize),
    /// Runs of equal text: from the first offset of the piece on, it stands at the second offset of the parent.
    Runs(Vec<(usize, usize)>),
    /// Decoded in a way that keeps no offsets: everything stands there.
    Point(usize),
}

impl Map {
    fn at(&self, offset: usize) -> usize {
        match self {
            Self::Shift(start) => start + offset,
            Self::Point(at) => *at,
            Self::Runs(runs) => {
                let next = runs.partition_point(|(here, _)| *here <= offset);
                let (here, there) = next.checked_sub(1).and_then(|i| runs.get(i)).copied().unwrap_or((0, 0));
                let there = there + (offset - here);
                runs.get(next).map_or(there, |(_, limit)| there.min(*limit))
            }
        }
    }
}

impl<'p> Piece<'p> {
    /// The text of a file.
    pub fn file(text: &'p str) -> Self {
        Self { text: Cow::Borrowed(text), origin: None }
    }

    /// A slice of `parent`.
    pub fn slice(parent: &'p Piece<'p>, range: Range<usize>) -> Self {
        let start = range.start;
        let text = parent.text.get(range).unwrap_or_default();
        Self { text: Cow::Borrowed(text), origin: Some(Origin { parent, map: Map::Shift(start), how: None }) }
    }

    /// Text made from `parent`. `how` says in words what was done to it, if a reader would not see it.
    pub fn derived(parent: &'p Piece<'p>, text: String, map: Map, how: Option<&'static str>) -> Self {
        Self { text: Cow::Owned(text), origin: Some(Origin { parent, map, how }) }
    }

    /// The offset in the file of an offset in this piece.
    pub fn root_offset(&self, mut offset: usize) -> usize {
        let mut piece = self;
        while let Some(origin) = &piece.origin {
            offset = origin.map.at(offset);
            piece = origin.parent;
        }
        offset
    }

    /// How the text was decoded on the way from the file, outermost first.
    pub fn decodings(&self) -> Vec<&'static str> {
        let mut steps = Vec::new();
        let mut piece = self;
        while let Some(origin) = &piece.origin {
            steps.extend(origin.how);
            piece = origin.parent;
        }
        steps.reverse();
        steps
    }

    /// What stands at `range`, on one line and shortened.
    pub fn excerpt(&self, range: Range<usize>) -> String {
        let start = floor(&self.text, range.start);
        let end = floor(&self.text, range.end.max(start));
        shorten(&self.text[start..end])
    }
}

/// `text` on one line, at most [`EXCERPT_CHARS`] long; control and direction characters are spelt out.
pub fn shorten(text: &str) -> String {
    let mut out = String::new();
    for (index, c) in text.trim().chars().enumerate() {
        if index >= EXCERPT_CHARS {
            out.push('…');
            break;
        }
        match c {
            '\n' | '\t' => out.push(' '),
            '\r' => {}
            c if c.is_control() || is_invisible(c) => out.push_str(&c.escape_unicode().to_string()),
            c => out.push(c),
        }
    }
    out
}

/// Characters that change how the text around them reads, and that nobody sees.
pub fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
}

/// The largest character boundary of `text` that is not past `offset`.
pub fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// The lines of a file, to turn offsets into places.
#[derive(Debug)]
pub struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    /// Counts the lines of `text`.
    pub fn of(text: &'t str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        Self { text, starts: std::iter::once(0).chain(breaks).collect() }
    }

    /// Line and column of an offset, both from 1; a column is a character.
    pub fn place(&self, offset: usize) -> (usize, usize) {
        let offset = floor(self.text, offset);
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).and_then(|i| self.starts.get(i)).copied().unwrap_or(0);
        (line, self.text[start..offset].chars().count() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_in_the_file() {
        let text = "<p>é</p>\n<a href='x&amp;y'>";
        let lines = Lines::of(text);
        assert_eq!(lines.place(0), (1, 1));
        assert_eq!(lines.place(5), (1, 5), "é is one column");
        let file = Piece::file(text);
        let value = text.find("x&amp;y").unwrap();
        let slice = Piece::slice(&file, value..value + 7);
        let runs = vec![(0, 0), (1, 1), (2, 6)];
        let decoded = Piece::derived(&slice, "x&y".into(), Map::Runs(runs), None);
        assert_eq!(lines.place(decoded.root_offset(2)), (2, 16));
        assert_eq!(lines.place(decoded.root_offset(1)), (2, 11));
    }

    #[test]
    fn offsets_past_the_end_and_inside_a_character_are_safe() {
        let lines = Lines::of("é\n");
        assert_eq!(lines.place(1), (1, 1));
        assert_eq!(lines.place(99), (2, 1));
        assert_eq!(Piece::file("é").excerpt(1..9), "é");
        assert_eq!(shorten(&"x".repeat(200)).chars().count(), EXCERPT_CHARS + 1);
        assert_eq!(shorten("a\u{202E}b"), "a\\u{202e}b");
    }
}
