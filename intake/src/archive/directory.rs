//! The directory of a zip, read as it stands: every entry, also those that a library would merge or skip.
//!
//! Every read is checked against the bytes there are. Nothing is inflated here.

use crate::finding::Rule;
use crate::rules::archive::{BOMB, OVERLAP, UNREADABLE};

/// What is wrong with an archive as a whole.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) rule: &'static Rule,
    pub(super) what: String,
}

/// What the directory says.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) entries: Vec<Entry>,
    pub(super) problems: Vec<Problem>,
}

/// One entry, as the directory describes it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    pub(super) method: u16,
    pub(super) packed: usize,
    pub(super) size: usize,
    pub(super) local_at: usize,
    flags: u16,
    made_by: u16,
    attributes: u32,
}

impl Entry {
    /// The file type bits of a Unix mode, or 0.
    pub(super) fn unix_kind(&self) -> u32 {
        // Systems 3 and 19 are Unix and macOS.
        if matches!(self.made_by >> 8, 3 | 19) { self.attributes >> 16 & 0o170_000 } else { 0 }
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.flags & 0x2041 != 0 || self.method == 99
    }
}

/// Little-endian numbers at offsets of a slice.
#[derive(Clone, Copy)]
struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn slice(self, at: usize, length: usize) -> Option<&'b [u8]> {
        self.0.get(at..at.checked_add(length)?)
    }

    fn number(self, at: usize, length: usize) -> Option<usize> {
        Some(self.slice(at, length)?.iter().rev().fold(0, |sum, b| sum << 8 | usize::from(*b)))
    }

    fn short(self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes(self.slice(at, 2)?.try_into().ok()?))
    }

    fn long(self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.slice(at, 4)?.try_into().ok()?))
    }
}

fn problem(rule: &'static Rule, what: impl Into<String>) -> Problem {
    Problem { rule, what: what.into() }
}

/// Reads the directory of a zip with at most `entries_max` entries.
pub(super) fn read(bytes: &[u8], entries_max: u64) -> Result<Directory, Problem> {
    let broken = || problem(&UNREADABLE, "this is no zip, or it was cut off");
    let all = Bytes(bytes);
    let end = find_end(bytes).ok_or_else(broken)?;
    let field = |at: usize, length: usize| all.number(end + at, length).ok_or_else(broken);
    let (disk, start_disk, here, count) = (field(4, 2)?, field(6, 2)?, field(8, 2)?, field(10, 2)?);
    let (length, start) = (field(12, 4)?, field(16, 4)?);
    if disk != 0 || start_disk != 0 || here != count {
        return Err(problem(&UNREADABLE, "this is one part of a split zip; make one plain zip"));
    }
    if count as u64 > entries_max {
        return Err(problem(&BOMB, format!("{count} entries, more than the {entries_max} allowed")));
    }
    if start == 0xFFFF_FFFF || length == 0xFFFF_FFFF {
        return Err(problem(&UNREADABLE, "this zip uses the format for giants (zip64); make a plain one"));
    }
    if start + length != end {
        return Err(problem(&OVERLAP, "there are bytes before or between the parts of the zip"));
    }
    let mut entries = Vec::new();
    let mut at = start;
    for _ in 0..count {
        let (entry, next) = entry(all, at).ok_or_else(broken)?;
        at = next;
        entries.push(entry);
    }
    if at > end {
        return Err(broken());
    }
    let problems = ranges(all, &entries, start);
    Ok(Directory { entries, problems })
}

/// The end record: the last one whose comment reaches exactly to the end of the file.
fn find_end(bytes: &[u8]) -> Option<usize> {
    let last = bytes.len().checked_sub(22)?;
    let first = last.saturating_sub(65_535);
    (first..=last).rev().find(|at| {
        let all = Bytes(bytes);
        all.slice(*at, 4) == Some(b"PK\x05\x06")
            && all.number(at + 20, 2).is_some_and(|n| at + 22 + n == bytes.len())
    })
}

fn entry(all: Bytes<'_>, at: usize) -> Option<(Entry, usize)> {
    if all.slice(at, 4)? != b"PK\x01\x02" {
        return None;
    }
    let (name, extra, comment) = (all.number(at + 28, 2)?, all.number(at + 30, 2)?, all.number(at + 32, 2)?);
    let entry = Entry {
        made_by: all.short(at + 4)?,
        flags: all.short(at + 8)?,
        method: all.short(at + 10)?,
        packed: all.number(at + 20, 4)?,
        size: all.number(at + 24, 4)?,
        attributes: all.long(at + 38)?,
        local_at: all.number(at + 42, 4)?,
        name: all.slice(at + 46, name)?.to_vec(),
    };
    Some((entry, at + 46 + name + extra + comment))
}

/// Compares each entry with its own header, and the entries with each other.
fn ranges(all: Bytes<'_>, entries: &[Entry], directory_at: usize) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut taken: Vec<(usize, usize)> = Vec::new();
    for entry in entries {
        match local_end(all, entry) {
            Some(end) if end <= directory_at => taken.push((entry.local_at, end)),
            Some(_) => problems.push(problem(&OVERLAP, "an entry reaches into the directory of the zip")),
            None => problems.push(problem(&OVERLAP, "an entry and its own header disagree")),
        }
    }
    taken.sort_unstable();
    if taken.first().is_some_and(|(start, _)| *start != 0) {
        problems.push(problem(&OVERLAP, "there are bytes before the first entry"));
    }
    if taken.windows(2).any(|pair| matches!(pair, [(_, end), (start, _)] if start < end)) {
        problems.push(problem(&OVERLAP, "two entries share bytes"));
    }
    problems.dedup_by(|a, b| a.what == b.what);
    problems
}

/// The end of an entry's data, if its own header says the same as the directory.
fn local_end(all: Bytes<'_>, entry: &Entry) -> Option<usize> {
    let at = entry.local_at;
    let (name, extra) = (all.number(at + 26, 2)?, all.number(at + 28, 2)?);
    let same = all.slice(at, 4)? == b"PK\x03\x04"
        && all.slice(at + 30, name)? == entry.name
        && all.short(at + 8)? == entry.method
        && (all.short(at + 6)? ^ entry.flags) & 0x0001 == 0;
    let sizes_follow = all.short(at + 6)? & 0x0008 != 0;
    let same_size =
        sizes_follow || (all.number(at + 18, 4)? == entry.packed && all.number(at + 22, 4)? == entry.size);
    let end = (at + 30 + name + extra).checked_add(entry.packed)?;
    (same && same_size && end <= all.0.len()).then_some(end)
}
