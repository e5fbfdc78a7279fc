//! `data:` addresses, base64 and hex: decoded, named by their content, and read again.
//!
//! Images, sounds and fonts are what tiny works are made of and are left alone. Documents, scripts, styles and SVG are
//! read by their gates; what is neither is said to be an encoded payload.

use std::sync::LazyLock;

use data_encoding::{Encoding, Specification};

use crate::js::{self, Form};
use crate::rules::code::{DATA_DOCUMENT, PAYLOAD};
use crate::rules::document::FONT;
use crate::scan::Scan;
use crate::source::{Map, Piece};
use crate::{css, html};

/// Base64 as forgiving as a browser: white space, missing padding and stray last bits do not matter.
static BASE64: LazyLock<Option<Encoding>> = LazyLock::new(|| {
    let mut specification = Specification::new();
    specification.symbols.push_str("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
    specification.check_trailing_bits = false;
    specification.ignore.push_str(" \t\n\r\u{C}=");
    specification.translate.from.push_str("-_");
    specification.translate.to.push_str("+/");
    specification.encoding().ok()
});

/// Decodes base64, also in its form for addresses.
pub fn base64(text: &str) -> Option<Vec<u8>> {
    BASE64.as_ref()?.decode(text.as_bytes()).ok()
}

/// Resolves `%41` to `A`; anything else stays.
pub fn percent(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let pair = bytes.get(at + 1..at + 3).and_then(|p| std::str::from_utf8(p).ok());
        match (byte, pair.and_then(|p| u8::from_str_radix(p, 16).ok())) {
            (b'%', Some(value)) => {
                out.push(value);
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    out
}

/// Reads what a `data:` address holds.
pub fn scan(scan: &mut Scan<'_>, text: &Piece<'_>) {
    let Some((head, body)) = text.text.split_once(',') else { return };
    let head = head.trim().to_ascii_lowercase();
    let head = head.strip_prefix("data:").unwrap_or(&head);
    let is_base64 = head.ends_with("base64");
    let kind = head.split(';').next().unwrap_or_default().trim();
    let group = kind.split('/').next().unwrap_or_default();
    let is_svg = kind.contains("svg");
    if group == "font" || kind.contains("font") {
        scan.add(&FONT, text, 0..text.text.len(), "a font as a data: address");
        return;
    }
    if matches!(group, "image" | "audio" | "video") && !is_svg {
        return;
    }
    let body_at = text.text.len() - body.len();
    let bytes =
        if is_base64 { base64(&String::from_utf8_lossy(&percent(body))) } else { Some(percent(body)) };
    let Some(bytes) = bytes else { return };
    if !is_svg && is_media(&bytes) {
        return;
    }
    let decoded = String::from_utf8_lossy(&bytes).into_owned();
    let is_same = decoded == body;
    let map = if is_same { Map::Shift(body_at) } else { Map::Point(body_at) };
    let how = match (is_same, is_base64) {
        (true, _) => None,
        (false, true) => Some("decoded from base64"),
        (false, false) => Some("decoded from a data: address"),
    };
    let is_script = kind.contains("javascript") || kind.contains("ecmascript");
    let is_document = kind.contains("html") || kind.contains("xml");
    if (is_document || is_script) && !is_svg {
        scan.add(&DATA_DOCUMENT, text, 0..text.text.len(), format!("a data: address that holds {kind}"));
    }
    if !scan.enter(text, 0, &decoded, kind) {
        return;
    }
    let inner = Piece::derived(text, decoded, map, how);
    if is_script {
        js::scan(scan, &inner, Form::Script);
    } else if is_document || is_svg {
        html::scan(scan, &inner);
    } else if kind.contains("css") {
        css::scan(scan, &inner);
    }
    scan.leave();
}

/// Looks into a long literal of a script: base64 or hex that is no known media is a payload, and is read if it is text.
pub fn literal(scan: &mut Scan<'_>, text: &Piece<'_>) {
    let min = policy::limits().check.encoded_chars_plain_max;
    let body = text.text.as_ref();
    if body.len() < min || body.starts_with("data:") {
        return;
    }
    let (bytes, name) = if body.bytes().all(|b| b.is_ascii_hexdigit()) {
        (hex(body), "hex")
    } else if body
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'-' | b'_' | b'\n' | b'\r'))
    {
        (base64(body), "base64")
    } else {
        return;
    };
    let Some(bytes) = bytes else { return };
    let distinct = body.bytes().collect::<std::collections::BTreeSet<_>>().len();
    if is_media(&bytes) || distinct < 12 {
        return;
    }
    let what = format!("{} characters of {name} that are no image, sound or font", body.len());
    scan.add(&PAYLOAD, text, 0..body.len(), what);
    if let Ok(decoded) = String::from_utf8(bytes) {
        let how = if name == "hex" { "decoded from hex" } else { "decoded from base64" };
        unknown(scan, &Piece::derived(text, decoded, Map::Point(0), Some(how)));
    }
}

/// Reads text of which nobody says what it is: as markup if it has tags, as a script if it parses as one.
pub fn unknown(scan: &mut Scan<'_>, text: &Piece<'_>) {
    if !scan.enter(text, 0, &text.text, "unknown") {
        return;
    }
    js::text::scan(scan, text);
    js::scan_if_script(scan, text);
    scan.leave();
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks_exact(2);
    pairs.map(|p| u8::from_str_radix(std::str::from_utf8(p).ok()?, 16).ok()).collect()
}

/// Whether the bytes begin like an image, a sound, a film or a font.
pub fn is_media(bytes: &[u8]) -> bool {
    const MAGIC: [&[u8]; 20] = [
        b"\x89PNG",
        b"\xFF\xD8\xFF",
        b"GIF8",
        b"BM",
        b"OggS",
        b"ID3",
        b"\xFF\xFB",
        b"\xFF\xF3",
        b"\xFF\xF2",
        b"fLaC",
        b"MThd",
        b"wOFF",
        b"wOF2",
        b"\0\x01\0\0\0",
        b"OTTO",
        b"true",
        b"\x1A\x45\xDF\xA3",
        b"\0\0\x01\0",
        b"FORM",
        b"IMPM",
    ];
    let riff = bytes.starts_with(b"RIFF") && matches!(bytes.get(8..12), Some(b"WEBP" | b"WAVE"));
    let mp4 = bytes.get(4..8) == Some(b"ftyp");
    riff || mp4 || MAGIC.iter().any(|m| bytes.starts_with(m))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_is_as_forgiving_as_a_browser() {
        assert_eq!(base64("aGk=").unwrap(), b"hi");
        assert_eq!(base64("aGk").unwrap(), b"hi");
        assert_eq!(base64("aG\n k").unwrap(), b"hi");
        assert_eq!(base64("-_-_").unwrap(), base64("+/+/").unwrap());
        assert!(base64("a*").is_none());
        assert_eq!(percent("%41%zz%4"), b"A%zz%4");
        assert_eq!(hex("414a").unwrap(), b"AJ");
    }

    #[test]
    fn media_is_known_by_its_content() {
        assert!(is_media(b"\x89PNG\r\n") && is_media(b"RIFF\0\0\0\0WAVEfmt "));
        assert!(!is_media(b"<svg>") && !is_media(b"RIFF\0\0\0\0EVIL") && !is_media(b""));
    }
}
