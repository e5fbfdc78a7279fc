//! Zips that are hostile, damaged, or merely made by a person in a hurry.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod support;

use intake::archive::unpack;
use support::{Entry, usual, zip};

/// The rules that find something, and the names of the files that came out.
fn judged(bytes: &[u8]) -> (Vec<&'static str>, Vec<String>) {
    let unpacked = unpack("work.zip", bytes);
    let mut rules: Vec<_> = unpacked.findings.iter().map(|f| f.rule.id).collect();
    rules.dedup();
    (rules, unpacked.files.into_iter().map(|f| f.name).collect())
}

fn page() -> Entry {
    Entry::deflated("index.html", usual("index.html"))
}

#[test]
fn a_plain_zip_comes_out_as_it_is() {
    let bytes = zip(&[page(), Entry::new("work.json", usual("work.json")), Entry::new("a/", b"")]);
    let unpacked = unpack("work.zip", &bytes);
    assert!(unpacked.findings.is_empty(), "{:?}", unpacked.findings);
    assert_eq!(unpacked.files[0].bytes, usual("index.html"));
    assert_eq!(unpacked.files.len(), 2);
}

#[test]
fn names_that_lead_elsewhere() {
    for name in [
        "../a",
        "/a",
        "C:\\a",
        "c:/a",
        "a\0.html",
        "a.",
        "a ",
        "a./b",
        "C:a",
        "nul.txt",
        "..",
        "a/../../b",
        "\\\\server\\a",
    ] {
        assert_eq!(judged(&zip(&[page(), Entry::new(name, b"x")])), (vec!["zip-path"], vec![]), "{name:?}");
    }
    let latin = Entry::new(b"caf\xE9.html".as_slice(), b"x");
    assert_eq!(judged(&zip(&[page(), latin])).0, ["zip-path"]);
}

#[test]
fn twins() {
    for (a, b) in
        [("a.txt", "a.txt"), ("a.txt", "A.TXT"), ("é.txt", "e\u{301}.txt"), ("ﬁ.txt", "fi.txt"), ("a", "a/")]
    {
        let bytes = zip(&[page(), Entry::new(a, b"1"), Entry::new(b, b"2")]);
        assert_eq!(judged(&bytes).0, ["zip-twins"], "{a} {b}");
    }
}

#[test]
fn links_and_devices() {
    for mode in [0o120_777, 0o020_666, 0o060_666, 0o010_666] {
        let entry = Entry { mode, ..Entry::new("a.txt", b"/etc/passwd") };
        assert_eq!(judged(&zip(&[page(), entry])).0, ["zip-link"], "{mode:o}");
    }
}

#[test]
fn programs_and_archives_by_name_and_by_content() {
    for (name, data, rule) in [
        ("a.EXE", b"x".as_slice(), "zip-executable"),
        ("a.png", b"MZ\x90\0", "zip-executable"),
        ("a.txt", b"\x7FELF\x02", "zip-executable"),
        ("run", b"#!/bin/sh\n", "zip-executable"),
        ("a.txt", b"PK\x03\x04....", "zip-nested"),
        ("a.tar", b"x", "zip-nested"),
        ("a.txt", b"Rar!\x1A\x07", "zip-nested"),
    ] {
        assert_eq!(judged(&zip(&[page(), Entry::new(name, data)])).0, [rule], "{name}");
    }
}

#[test]
fn bombs_are_counted_while_they_inflate() {
    let zeros = Entry::deflated("zeros.txt", &vec![0; 6 << 20]);
    assert_eq!(judged(&zip(&[page(), zeros.clone()])).0, ["zip-bomb"], "larger than one entry may be");
    let lie = Entry { size: 100, ..zeros };
    assert_eq!(
        judged(&zip(&[page(), lie])).0,
        ["zip-unreadable"],
        "the claimed size is held against what comes out"
    );
    let small = Entry::deflated("zeros.txt", &vec![0; 2 << 20]);
    assert_eq!(judged(&zip(&[page(), small])).0, ["zip-bomb"], "the ratio is beyond what files have");
    let noise: Vec<u8> = (0..5_u32 << 20).map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    let many: Vec<Entry> = (0..4).map(|i| Entry::deflated(&format!("{i}.bin"), &noise)).collect();
    assert_eq!(judged(&zip(&many)).0, ["zip-bomb"], "together larger than a submission may be");
    let shorter = Entry { size: 3, ..Entry::deflated("a.txt", b"more than three") };
    assert_eq!(judged(&zip(&[page(), shorter])).0, ["zip-unreadable"], "a lie about a size");
}

#[test]
fn too_many_entries_are_not_even_read() {
    let entries: Vec<Entry> = (0..65_535).map(|i| Entry { crc: 0, ..base(&format!("{i}")) }).collect();
    assert_eq!(judged(&zip(&entries)).0, ["zip-bomb"]);
    let entries: Vec<Entry> = (0..100).map(|i| base(&format!("{i}.txt"))).collect();
    assert_eq!(judged(&zip(&entries)).0, Vec::<&str>::new());
}

fn base(name: &str) -> Entry {
    Entry {
        name: name.into(),
        local_name: None,
        data: Vec::new(),
        crc: 0,
        size: 0,
        method: 0,
        flags: 0,
        mode: 0o100_644,
        shares: None,
    }
}

#[test]
fn archives_that_contradict_themselves() {
    let shared = Entry { shares: Some(0), ..page() };
    let shared = Entry { name: b"index.html".to_vec(), ..shared };
    assert_eq!(judged(&zip(&[page(), shared])).0, ["zip-overlap", "zip-twins"]);
    let two_names = Entry { local_name: Some(b"other.html".to_vec()), ..page() };
    assert_eq!(judged(&zip(&[two_names])).0, ["zip-overlap"]);
    let encrypted = Entry { flags: 1, ..page() };
    assert_eq!(judged(&zip(&[encrypted])).0, ["zip-encrypted"]);
    let strange = Entry { method: 14, ..page() };
    assert_eq!(judged(&zip(&[strange])).0, ["zip-method"]);
    let wrong_sum = Entry { crc: 1, ..page() };
    assert_eq!(judged(&zip(&[wrong_sum])).0, ["zip-unreadable"]);
    let mut behind = zip(&[page()]);
    behind.extend(b"<script>more</script>");
    assert_eq!(judged(&behind).0, ["zip-unreadable"]);
    let before = [b"<script>1</script>".to_vec(), zip(&[page()])].concat();
    assert_eq!(judged(&before).0, ["zip-overlap"]);
}

#[test]
fn what_is_no_zip_is_named() {
    for (bytes, words) in [
        (b"Rar!\x1A\x07\x01\0".as_slice(), "RAR"),
        (b"7z\xBC\xAF\x27\x1C", "7z"),
        (b"\x1F\x8B\x08", "gzip"),
        (b"PK\x07\x08PK\x03\x04", "split"),
        (b"", "cut off"),
        (b"PK\x03\x04", "cut off"),
        (b"<!doctype html>", "no zip"),
    ] {
        let unpacked = unpack("work.zip", bytes);
        assert_eq!(unpacked.findings.len(), 1);
        assert!(unpacked.findings[0].what.contains(words), "{}", unpacked.findings[0].what);
    }
    let whole = zip(&[page()]);
    for length in 0..whole.len() {
        let unpacked = unpack("work.zip", &whole[..length]);
        assert!(!unpacked.findings.is_empty() && unpacked.files.is_empty(), "{length}");
    }
}

#[test]
fn a_folder_around_everything_is_taken_off_and_junk_is_left_out() {
    let bytes = zip(&[
        Entry::new("game/", b""),
        Entry::deflated("game/index.html", usual("index.html")),
        Entry::new("game/work.json", usual("work.json")),
        Entry::new("__MACOSX/game/._index.html", b"x"),
        Entry::new("game/.DS_Store", b"x"),
    ]);
    let (rules, files) = judged(&bytes);
    assert_eq!(rules, ["file-ignored", "zip-folder"]);
    assert_eq!(files, ["index.html", "work.json"]);
}
