//! Makes archives, also those that no tool would make.

#![allow(dead_code, clippy::unwrap_used, reason = "each test binary uses a part of it")]

use std::io::{Cursor, Read, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// One entry, with everything that an archive can say about it.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    pub(crate) local_name: Option<Vec<u8>>,
    pub(crate) data: Vec<u8>,
    pub(crate) crc: u32,
    pub(crate) size: u32,
    pub(crate) method: u16,
    pub(crate) flags: u16,
    pub(crate) mode: u32,
    /// Instead of writing the data again, point to the entry of that index.
    pub(crate) shares: Option<usize>,
}

impl Entry {
    /// A stored file.
    pub(crate) fn new(name: impl AsRef<[u8]>, data: &[u8]) -> Self {
        let (_, crc) = deflate(data);
        Self {
            name: name.as_ref().to_vec(),
            local_name: None,
            data: data.to_vec(),
            crc,
            size: u32::try_from(data.len()).unwrap(),
            method: 0,
            flags: 0,
            mode: 0o100_644,
            shares: None,
        }
    }

    /// A deflated file.
    pub(crate) fn deflated(name: &str, data: &[u8]) -> Self {
        let (packed, _) = deflate(data);
        Self {
            method: 8,
            data: packed,
            ..Self { size: u32::try_from(data.len()).unwrap(), ..Self::new(name, data) }
        }
    }
}

/// Raw deflated data and the checksum of what it holds.
fn deflate(data: &[u8]) -> (Vec<u8>, u32) {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    writer.start_file("a", options).unwrap();
    writer.write_all(data).unwrap();
    let bytes = writer.finish().unwrap().into_inner();
    let mut archive = ZipArchive::new(Cursor::new(bytes)).unwrap();
    let crc = archive.by_index(0).unwrap().crc32();
    let mut packed = Vec::new();
    archive.by_index_raw(0).unwrap().read_to_end(&mut packed).unwrap();
    (packed, crc)
}

/// Writes the archive.
pub(crate) fn zip(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut offsets = Vec::new();
    for entry in entries {
        if let Some(other) = entry.shares {
            offsets.push(offsets[other]);
            continue;
        }
        offsets.push(u32::try_from(out.len()).unwrap());
        let name = entry.local_name.as_ref().unwrap_or(&entry.name);
        out.extend(b"PK\x03\x04\x14\0");
        common(&mut out, entry);
        out.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        out.extend(0_u16.to_le_bytes());
        out.extend(name);
        out.extend(&entry.data);
    }
    let start = out.len();
    for (entry, offset) in entries.iter().zip(&offsets) {
        out.extend(b"PK\x01\x02\x14\x03\x14\0");
        common(&mut out, entry);
        out.extend(u16::try_from(entry.name.len()).unwrap().to_le_bytes());
        out.extend([0; 8]);
        out.extend((entry.mode << 16).to_le_bytes());
        out.extend(offset.to_le_bytes());
        out.extend(&entry.name);
    }
    let length = out.len() - start;
    let count = u16::try_from(entries.len()).unwrap();
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend(u32::try_from(length).unwrap().to_le_bytes());
    out.extend(u32::try_from(start).unwrap().to_le_bytes());
    out.extend(0_u16.to_le_bytes());
    out
}

fn common(out: &mut Vec<u8>, entry: &Entry) {
    out.extend(entry.flags.to_le_bytes());
    out.extend(entry.method.to_le_bytes());
    out.extend([0; 4]);
    out.extend(entry.crc.to_le_bytes());
    out.extend(u32::try_from(entry.data.len()).unwrap().to_le_bytes());
    out.extend(entry.size.to_le_bytes());
}

/// What a name usually holds.
pub(crate) fn usual(name: &str) -> &'static [u8] {
    let last = name.rsplit('/').next().unwrap().to_ascii_lowercase();
    match last.rsplit('.').next().unwrap() {
        "html" => b"<!doctype html><p>hello</p>",
        "json" => b"{ \"id\": \"hello\" }",
        "zip" => b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        _ => b"text",
    }
}

/// The archive that the lines of an example describe.
pub(crate) fn described(lines: &str) -> Vec<u8> {
    let mut entries: Vec<Entry> = Vec::new();
    for line in lines.lines() {
        let (name, how) =
            line.split_once(" (").map_or((line, ""), |(name, how)| (name, how.trim_end_matches(')')));
        let mut entry = Entry::deflated(name, usual(name));
        match how {
            "" => {}
            "stored" => entry = Entry::new(name, usual(name)),
            "link" => entry = Entry { mode: 0o120_777, ..Entry::new(name, b"/etc/passwd") },
            "encrypted" => entry.flags |= 1,
            "overlap" => entry = Entry { shares: Some(0), ..entries[0].clone() },
            "zeros" => entry = Entry::deflated(name, &vec![0; 6 << 20]),
            other => entry.method = other.strip_prefix("method ").unwrap().parse().unwrap(),
        }
        if how == "overlap" {
            entry.name = name.as_bytes().to_vec();
        }
        entries.push(entry);
    }
    zip(&entries)
}
