//! The gate for one HTML file: its bytes, its encoding, then everything in it.

use crate::finding::Finding;
use crate::rules::document::{CONTROL, DISGUISE, EMPTY, ENCODING, SIZE};
use crate::scan::{Outcome, Scan};
use crate::source::{Lines, Piece};
use crate::{data, html};

/// Checks the bytes of an HTML file of at most `bytes_max`.
///
/// It runs on a thread of its own, whose stack holds the most nested script that is accepted.
pub fn check(file: &str, bytes: &[u8], bytes_max: u64) -> Outcome {
    let stack = policy::limits().check.script_stack_bytes_max;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("intake".into()).stack_size(stack);
        match thread.spawn_scoped(scope, || read(file, bytes, bytes_max)) {
            Ok(handle) => handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => only(Finding::whole(
                &SIZE,
                file,
                "this machine has no memory left to check the file; try again",
            )),
        }
    })
}

fn only(finding: Finding) -> Outcome {
    Outcome { findings: vec![finding], ..Outcome::default() }
}

fn read(file: &str, bytes: &[u8], bytes_max: u64) -> Outcome {
    if bytes.len() as u64 > bytes_max {
        let jam = if bytes_max == policy::limits().work.tinyjam_bytes_max { " in the tinyjam" } else { "" };
        let more = bytes.len() as u64 - bytes_max;
        let what = format!("{} bytes, {more} more than the {bytes_max} allowed{jam}", bytes.len());
        return only(Finding::whole(&SIZE, file, what));
    }
    if let Some(finding) = disguise(file, bytes) {
        return only(finding);
    }
    let text = match decode(file, bytes) {
        Ok(text) => text,
        Err(finding) => return only(*finding),
    };
    if text.trim().is_empty() {
        return only(Finding::whole(&EMPTY, file, "this file holds nothing but white space"));
    }
    let mut scan = Scan::new(file, text);
    let piece = Piece::file(text);
    let is_stray =
        |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{C}' | '\u{80}'..='\u{9F}');
    for (at, c) in text.match_indices(is_stray) {
        scan.add(
            &CONTROL,
            &piece,
            at..at + c.len(),
            format!("the control character U+{:04X}", c.chars().next().map_or(0, u32::from)),
        );
    }
    html::scan(&mut scan, &piece);
    scan.finish()
}

/// A file that begins like something else.
fn disguise(file: &str, bytes: &[u8]) -> Option<Finding> {
    let known: [(&[u8], &str); 9] = [
        (b"PK\x03\x04", "a zip; give it the ending .zip"),
        (b"Rar!", "a RAR archive; make a zip instead"),
        (b"7z\xBC\xAF", "a 7z archive; make a zip instead"),
        (b"\x1F\x8B", "a gzip file; unpack it first"),
        (b"%PDF", "a PDF"),
        (b"MZ", "a Windows program"),
        (b"\x7FELF", "a Linux program"),
        (b"\xCA\xFE\xBA\xBE", "a Java or macOS program"),
        (b"#!", "a script of another kind"),
    ];
    let name = known.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, name)| *name);
    let name = name.or_else(|| data::is_media(bytes).then_some("a picture, a sound or a font"))?;
    Some(Finding::whole(&DISGUISE, file, format!("this file begins like {name}")))
}

/// The text, if it is UTF-8. A byte order mark stays, since browsers skip it and columns count it.
fn decode<'b>(file: &str, bytes: &'b [u8]) -> Result<&'b str, Box<Finding>> {
    let wide = match bytes {
        [0xFF, 0xFE, ..] | [b'<', 0, ..] => Some("UTF-16, little endian"),
        [0xFE, 0xFF, ..] | [0, b'<', ..] => Some("UTF-16, big endian"),
        _ => None,
    };
    if let Some(name) = wide {
        return Err(Box::new(Finding::whole(&ENCODING, file, format!("this file is {name}"))));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let good =
            std::str::from_utf8(bytes.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default();
        let place = Lines::of(good).place(good.len());
        let byte = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
        let what = format!("the byte 0x{byte:02X} here is not UTF-8");
        Box::new(Finding::at(&ENCODING, file, place, String::new(), what))
    })
}
