//! The marks that packers and obfuscators leave.
//!
//! None of them is malice: competitions with 13 KiB limits made packing a habit. But a packed work needs eval, which
//! no work has here, and nobody can read it. So the finding says what to submit instead, and it stands alone: what the
//! packer's own eval would add is not repeated.

use crate::rules::code::{LONG_LINE, OBFUSCATED, PACKED};
use crate::scan::Scan;
use crate::source::Piece;

/// Notes a minified line.
pub(super) fn lines(scan: &mut Scan<'_>, piece: &Piece<'_>) {
    let max = policy::limits().check.line_chars_plain_max;
    let mut at = 0;
    for line in piece.text.split_inclusive('\n') {
        if line.len() > max {
            scan.add(
                &LONG_LINE,
                piece,
                at..at + 40,
                format!("a line of {} characters", line.trim_end().len()),
            );
            return;
        }
        at += line.len();
    }
}

/// Whether the script is the output of a packer; says so.
pub(super) fn judge(scan: &mut Scan<'_>, piece: &Piece<'_>) -> bool {
    let text = piece.text.as_ref();
    let Some((name, at)) = packer(text) else { return false };
    scan.add(&PACKED, piece, at..at + 60, format!("this script was packed ({name})"));
    true
}

fn packer(text: &str) -> Option<(&'static str, usize)> {
    let marks = [
        ("a Dean Edwards packer", "eval(function(p,a,c,k,e,"),
        ("a Dean Edwards packer", "eval(function(p, a, c, k, e,"),
        ("JSCrush or RegPack", "with(_.split("),
        ("jjencode", "=~[];"),
        ("aaencode", "ﾟωﾟ"),
    ];
    for (name, mark) in marks {
        if let Some(at) = text.find(mark) {
            return Some((name, at));
        }
    }
    let letters = text.bytes().filter(|b| !b.is_ascii_whitespace()).count();
    let bare = text.bytes().filter(|b| matches!(b, b'[' | b']' | b'(' | b')' | b'!' | b'+')).count();
    if letters > 200 && bare * 100 >= letters * 98 {
        return Some(("JSFuck", 0));
    }
    None
}

/// Says that a script is one long text with an eval at its end, the shape of Roadroller, RegPack and JSCrush.
pub(super) fn is_self_extracting(text: &str, longest_literal: usize) -> bool {
    longest_literal >= 200 && longest_literal * 100 >= text.len() * 40
}

/// The obfuscator that renames everything to `_0x…`.
pub(super) fn names<'n>(scan: &mut Scan<'_>, piece: &Piece<'_>, names: impl Iterator<Item = &'n str>) {
    let is_mark = |name: &str| {
        name.strip_prefix("_0x")
            .is_some_and(|hex| hex.len() >= 3 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    let mut marks: Vec<&str> = names.filter(|n| is_mark(n)).collect();
    marks.sort_unstable();
    marks.dedup();
    if marks.len() >= 8 {
        let at = marks.first().and_then(|m| piece.text.find(m)).unwrap_or(0);
        scan.add(&OBFUSCATED, piece, at..at + 40, format!("{} names of the form _0x…", marks.len()));
    }
}
