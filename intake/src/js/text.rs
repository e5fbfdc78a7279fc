//! The texts inside scripts, read as what they look like: markup, styles, addresses, encoded data.

use crate::address::{in_text, normalise};
use crate::rules::code::{DIRECTION, ESCAPES, SCRIPT_URL};
use crate::rules::network::{ADDRESS, WEBRTC};
use crate::scan::Scan;
use crate::source::Piece;
use crate::{css, data, html};

/// Reads the value of a literal.
pub(crate) fn scan(scan: &mut Scan<'_>, piece: &Piece<'_>) {
    let text = piece.text.as_ref();
    if text.len() < 4 {
        return;
    }
    let start: String = normalise(&text.chars().take(40).collect::<String>()).to_ascii_lowercase();
    if start.starts_with("data:") {
        data::scan(scan, piece);
        return;
    }
    if start.starts_with("javascript:") && start.len() > 11 {
        scan.add(&SCRIPT_URL, piece, 0..text.len(), "a javascript: address");
    }
    if ["stun:", "stuns:", "turn:", "turns:"].iter().any(|s| start.len() > s.len() && start.starts_with(s))
        && !start.contains(": ")
    {
        scan.add(&WEBRTC, piece, 0..text.len(), "the address of a STUN or TURN server");
    }
    let is_markup = text.as_bytes().windows(2).any(|w| matches!(w, [b'<', b] if b.is_ascii_alphabetic()));
    if is_markup {
        if scan.enter(piece, 0, text, "markup") {
            html::scan(scan, piece);
            scan.leave();
        }
    } else if (text.contains("url(") || text.contains("@import")) && scan.enter(piece, 0, text, "style") {
        css::scan(scan, piece);
        scan.leave();
    }
    for range in in_text(text) {
        let shown = html::shown(text.get(range.clone()).unwrap_or_default()).to_owned();
        scan.add(&ADDRESS, piece, range, format!("the address {shown}"));
    }
    data::literal(scan, piece);
}

/// Says so when a literal spells plain letters as escapes.
pub(super) fn escapes(scan: &mut Scan<'_>, piece: &Piece<'_>, at: usize, raw: &str, chars: usize) {
    let bytes = raw.as_bytes();
    let mut needless = 0;
    for (index, _) in raw.match_indices('\\') {
        let digits = match bytes.get(index + 1) {
            Some(b'x') => bytes.get(index + 2..index + 4),
            Some(b'u') => bytes.get(index + 2..index + 6),
            _ => None,
        };
        let code =
            digits.and_then(|d| std::str::from_utf8(d).ok()).and_then(|d| u32::from_str_radix(d, 16).ok());
        needless += usize::from(code.is_some_and(|c| (0x20..0x7F).contains(&c)));
    }
    if needless >= 16 && needless * 100 > chars * 30 {
        scan.add(&ESCAPES, piece, at..at + raw.len(), format!("{needless} plain letters written as escapes"));
    }
}

/// Says so when a script holds characters that reorder the text around them.
pub(super) fn direction(scan: &mut Scan<'_>, piece: &Piece<'_>) {
    let is_mark = |c: char| matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    if let Some(at) = piece.text.find(is_mark) {
        let from = crate::source::floor(&piece.text, at.saturating_sub(20));
        let range = at..at + 20;
        let around = piece.excerpt(from..at + 20);
        scan.add(
            &DIRECTION,
            piece,
            range,
            format!("an invisible character that reorders text, in: {around}"),
        );
    }
}
