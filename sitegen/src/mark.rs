//! The mark of a work: a small figure drawn from the SHA-256 of its payload. Same bytes, same mark.
//!
//! `theme/script/mark.js` draws the same figure in the browser; both are held to `theme/test/marks.json`.

use catalog::Digest;
use serde::Serialize;

/// Cells across and down.
const SIDE: u8 = 6;
/// Colour classes that the style sheet has.
const HUES: u8 = 12;

/// A figure on a grid of 6 by 6 unit cells, the right half the mirror of the left, in a colour and its accent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Mark {
    /// The `d` of an SVG path in a view box of `0 0 6 6`.
    pub(crate) path: String,
    /// The same for the cells in the accent colour.
    pub(crate) accent: String,
    /// Which of the colour classes `h0` to `h11`.
    pub(crate) hue: u8,
}

impl Mark {
    /// The mark of the payload with that digest. The hexadecimal digits 0 to 17 are the shapes of the left three
    /// columns, row by row; the digits 18 to 35 choose the accent where they are below 5; the last byte is the colour.
    pub(crate) fn of(digest: &Digest) -> Self {
        let bytes = digest.as_bytes();
        let digit = |n: u8| bytes[usize::from(n / 2)] >> (4 * (1 - n % 2)) & 15;
        let (mut path, mut accent) = (String::new(), String::new());
        for cell in 0..SIDE * SIDE / 2 {
            let (row, col) = (cell / (SIDE / 2), cell % (SIDE / 2));
            let layer = if digit(18 + cell) < 5 { &mut accent } else { &mut path };
            piece(layer, digit(cell), col, row, false);
            piece(layer, digit(cell), SIDE - 1 - col, row, true);
        }
        Self { path, accent, hue: bytes[31] % HUES }
    }
}

/// Draws one cell: nothing, a square, a disc, a quarter of a disc about one corner, or a triangle in one.
fn piece(out: &mut String, shape: u8, x: u8, y: u8, mirrored: bool) {
    // The corners clockwise from the top left; the mirror swaps neighbours.
    let corner = (shape % 4) ^ u8::from(mirrored);
    let (right, below) = (matches!(corner, 1 | 2), corner > 1);
    let (across, back) = if right { (-1, 1) } else { (1, -1) };
    let down = if below { -1 } else { 1 };
    let (cx, cy) = (x + u8::from(right), y + u8::from(below));
    match shape {
        0..4 => {}
        4..7 => out.push_str(&format!("M{x} {y}h1v1h-1z")),
        7 => out.push_str(&format!("M{x} {y}.5a.5 .5 0 0 1 1 0 .5 .5 0 0 1-1 0z")),
        8..12 => {
            let sweep = u8::from(right == below);
            out.push_str(&format!("M{cx} {cy}h{across}a1 1 0 0 {sweep} {back} {down}z"));
        }
        _ => out.push_str(&format!("M{cx} {cy}h{across}l{back} {down}z")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_have_the_same_mark_and_others_another() {
        let mark = Mark::of(&Digest::of(b"abc"));
        assert_eq!(mark, Mark::of(&Digest::of(b"abc")));
        assert_ne!(mark, Mark::of(&Digest::of(b"abd")));
        // ba78…ea 4141 40…: the first shape is 11, a quarter about the lower left corner, in the accent since 4 < 5.
        assert!(mark.accent.starts_with("M0 1h1a1 1 0 0 0 -1 -1zM6 1h-1a1 1 0 0 1 1 -1z"), "{}", mark.accent);
        assert_eq!(mark.hue, 5);
    }

    /// `UPDATE=1 cargo test -p sitegen` writes the file anew.
    #[test]
    fn the_script_is_held_to_the_same_marks() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../theme/test/marks.json");
        let marks: std::collections::BTreeMap<String, Mark> = (0..40u8)
            .map(|n| {
                let digest = Digest::of(&[n]);
                (digest.to_string(), Mark::of(&digest))
            })
            .collect();
        let text = serde_json::to_string_pretty(&marks).unwrap() + "\n";
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(path).unwrap_or_default(),
            text,
            "run UPDATE=1 cargo test -p sitegen"
        );
    }
}
