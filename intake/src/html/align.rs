//! Where each character of a decoded text stands in its source: character references, line ends and CDATA marks.
//!
//! html5ever decides what the text is; this only finds the places again, so a mistake here can shift a column and
//! nothing else.

use html5ever::data::NAMED_ENTITIES;

use crate::source::Map;

/// The offsets of `decoded` in `raw`.
pub(super) fn align(raw: &str, decoded: &str) -> Map {
    if raw == decoded {
        return Map::Shift(0);
    }
    let mut runs = vec![(0, 0)];
    let (mut at, mut out) = (0, 0);
    while let (Some(source), Some(target)) = (raw[at..].chars().next(), decoded[out..].chars().next()) {
        let (taken, made) = step(&raw[at..], &decoded[out..], source, target);
        at += taken;
        out += made;
        if taken != made {
            runs.push((out, at));
        }
    }
    Map::Runs(runs)
}

/// How many bytes of the source and of the decoded text belong together at this place.
fn step(raw: &str, decoded: &str, source: char, target: char) -> (usize, usize) {
    if source == '&'
        && let Some((taken, text)) = reference(raw)
        && decoded.starts_with(&text)
    {
        return (taken, text.len());
    }
    for mark in ["<![CDATA[", "]]>", "\r"] {
        if raw.starts_with(mark) && !decoded.starts_with(mark) {
            return (mark.len(), 0);
        }
    }
    if source == target || source == '\0' {
        return (source.len_utf8(), target.len_utf8());
    }
    (source.len_utf8(), 0)
}

/// The character reference at the start of `raw`: its length and what it stands for.
fn reference(raw: &str) -> Option<(usize, String)> {
    let body = &raw[1..];
    if let Some(number) = body.strip_prefix('#') {
        let (digits, radix, skip) = match number.strip_prefix(['x', 'X']) {
            Some(hex) => (hex, 16, 3),
            None => (number, 10, 2),
        };
        let length = digits.bytes().take_while(|b| char::from(*b).is_digit(radix)).count();
        let code = u32::from_str_radix(digits.get(..length)?, radix).ok()?;
        let taken = skip + length + usize::from(digits[length..].starts_with(';'));
        return Some((taken, char::from_u32(code).unwrap_or('\u{FFFD}').to_string()));
    }
    let name = body.bytes().take_while(u8::is_ascii_alphanumeric).count();
    let longest = name + usize::from(body[name..].starts_with(';'));
    (1..=longest.min(40)).rev().find_map(|length| {
        let (first, second) = NAMED_ENTITIES.get(body.get(..length)?)?;
        let text: String =
            [*first, *second].into_iter().filter(|c| *c != 0).filter_map(char::from_u32).collect();
        (!text.is_empty()).then_some((length + 1, text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Piece;

    #[test]
    fn places_survive_decoding() {
        for (raw, decoded, needle) in [
            ("a&amp;bX", "a&bX", "X"),
            ("&#x41;&#66X", "ABX", "X"),
            ("a\r\nX", "a\nX", "X"),
            ("<![CDATA[aX]]>", "aX", "X"),
            ("&lt&notanentity;X", "<¬anentity;X", "X"),
            ("?a&b=X", "?a&b=X", "X"),
        ] {
            let file = Piece::file(raw);
            let piece = Piece::derived(&file, decoded.to_owned(), align(raw, decoded), None);
            let at = piece.root_offset(decoded.find(needle).unwrap());
            assert_eq!(&raw[at..=at], needle, "{raw}");
        }
    }
}
