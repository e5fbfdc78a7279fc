//! The mark of a work: a small figure drawn from the SHA-256 of its payload. Same bytes, same mark.
//!
//! `theme/script/mark.js` draws the same figure in the browser; a test in `tests/` compares the two.

use catalog::Digest;
use serde::Serialize;

/// Cells across and down.
const SIDE: u8 = 7;
/// Colour classes that the style sheet has.
pub(crate) const HUES: u8 = 12;

/// A figure on a grid of 7 by 7 unit cells, the right half the mirror of the left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Mark {
    /// The `d` of an SVG path in a view box of `0 0 7 7`.
    pub(crate) path: String,
    /// Which of the colour classes `h0` to `h11`.
    pub(crate) hue: u8,
}

impl Mark {
    /// The mark of the payload with that digest: bit `n` of the bytes fills the cell `n` of the left four columns,
    /// row by row, and the last byte chooses the colour.
    pub(crate) fn of(digest: &Digest) -> Self {
        let bytes = digest.as_bytes();
        let filled = |row: u8, col: u8| {
            let bit = row * 4 + if col > 3 { SIDE - 1 - col } else { col };
            bytes[usize::from(bit / 8)] >> (7 - bit % 8) & 1 == 1
        };
        let mut path = String::new();
        for row in 0..SIDE {
            let mut col = 0;
            while col < SIDE {
                let run = (col..SIDE).take_while(|c| filled(row, *c)).count();
                if run > 0 {
                    path.push_str(&format!("M{col} {row}h{run}v1h-{run}z"));
                }
                col += u8::try_from(run).unwrap_or(SIDE) + 1;
            }
        }
        Self { path, hue: bytes[31] % HUES }
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
        // ba7816bf…ad: rows of four bits 1011 1010 0111 1000 0001 0110 1011, mirrored; 0xad % 12 = 5.
        assert_eq!(
            mark.path,
            "M0 0h1v1h-1zM2 0h3v1h-3zM6 0h1v1h-1z\
             M0 1h1v1h-1zM2 1h1v1h-1zM4 1h1v1h-1zM6 1h1v1h-1z\
             M1 2h5v1h-5zM0 3h1v1h-1zM6 3h1v1h-1zM3 4h1v1h-1z\
             M1 5h2v1h-2zM4 5h2v1h-2zM0 6h1v1h-1zM2 6h3v1h-3zM6 6h1v1h-1z"
        );
        assert_eq!(mark.hue, 5);
    }
}
