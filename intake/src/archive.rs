//! The gate for zips: reads the directory itself, judges every entry, then unpacks what is plain and small.
//!
//! The `zip` crate inflates; what the archive says about itself is read apart from it (`directory`), since a directory
//! with two entries of one name, or entries that share bytes, never reaches a caller of a library. Sizes that an
//! archive claims are never believed: bytes are counted as they come out, and the work stops at the limit.

use std::collections::HashMap;
use std::io::{Cursor, Read};

use unicode_normalization::UnicodeNormalization;
use zip::ZipArchive;

use crate::finding::{Finding, Rule};
use crate::rules::archive::{
    BOMB, ENCRYPTED, EXECUTABLE, EXTRA, FOLDER, LINK, METHOD, NESTED, OVERLAP, TWINS, UNREADABLE,
};
use crate::submission::File;

mod directory;
mod names;

use directory::{Directory, Entry};

/// What came out of a zip.
#[derive(Debug)]
pub struct Unpacked {
    /// The files, by their names inside the one folder that may be around them.
    pub files: Vec<File>,
    /// What was found; a reject means that not everything was unpacked.
    pub findings: Vec<Finding>,
}

/// Unpacks a zip.
pub fn unpack(name: &str, bytes: &[u8]) -> Unpacked {
    let mut gate = Gate { name, findings: Vec::new() };
    let files = gate.unpack(bytes).unwrap_or_default();
    Unpacked { files, findings: gate.findings }
}

struct Gate<'n> {
    name: &'n str,
    findings: Vec<Finding>,
}

impl Gate<'_> {
    fn add(&mut self, rule: &'static Rule, entry: &str, what: impl Into<String>) {
        let file = if entry.is_empty() { self.name.to_owned() } else { format!("{}/{entry}", self.name) };
        self.findings.push(Finding::whole(rule, &file, what));
    }

    fn unpack(&mut self, bytes: &[u8]) -> Option<Vec<File>> {
        let limits = &policy::limits().zip;
        if bytes.len() as u64 > limits.archive_bytes_max {
            let what = format!("the zip is larger than the {} bytes allowed", limits.archive_bytes_max);
            self.add(&BOMB, "", what);
            return None;
        }
        if let Some(what) = other_format(bytes) {
            self.add(&UNREADABLE, "", what);
            return None;
        }
        let directory = match directory::read(bytes, limits.entries_max) {
            Ok(directory) => directory,
            Err(problem) => {
                self.add(problem.rule, "", problem.what);
                return None;
            }
        };
        let entries = self.judge(&directory);
        if !self.findings.is_empty() {
            return None;
        }
        let mut files = self.inflate(bytes, &directory, &entries)?;
        self.strip(&mut files);
        Some(files)
    }

    /// Judges what the directory says; the answer is the index and the path of each file.
    fn judge(&mut self, directory: &Directory) -> Vec<(usize, String)> {
        let mut files = Vec::new();
        let mut seen: HashMap<String, String> = HashMap::new();
        for problem in &directory.problems {
            self.add(problem.rule, "", problem.what.clone());
        }
        for (index, entry) in directory.entries.iter().enumerate() {
            let path = match names::path(&entry.name) {
                Ok(path) => path,
                Err(problem) => {
                    self.add(&crate::rules::archive::PATH, &problem.shown, problem.what);
                    continue;
                }
            };
            let folded: String = path.trim_end_matches('/').nfkc().collect::<String>().to_lowercase();
            if let Some(other) = seen.insert(folded, path.clone()) {
                self.add(&TWINS, &path, format!("two entries of one name: {other} and {path}"));
            }
            self.kind(entry, &path);
            if !path.ends_with('/') {
                files.push((index, path));
            }
        }
        files
    }

    fn kind(&mut self, entry: &Entry, path: &str) {
        match entry.unix_kind() {
            0 | 0o040_000 | 0o100_000 => {}
            0o120_000 => self.add(&LINK, path, "a symbolic link"),
            _ => self.add(&LINK, path, "a device or a pipe"),
        }
        if entry.is_encrypted() {
            self.add(&ENCRYPTED, path, "this entry needs a password");
        } else if !matches!(entry.method, 0 | 8) {
            self.add(&METHOD, path, format!("packed by method {}", entry.method));
        }
        let ending = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        if names::PROGRAMS.contains(&ending.as_str()) {
            self.add(&EXECUTABLE, path, format!("a program, by its ending .{ending}"));
        }
        if names::ARCHIVES.contains(&ending.as_str()) {
            self.add(&NESTED, path, format!("an archive, by its ending .{ending}"));
        }
    }

    fn inflate(
        &mut self,
        bytes: &[u8],
        directory: &Directory,
        entries: &[(usize, String)],
    ) -> Option<Vec<File>> {
        let mut archive = match ZipArchive::new(Cursor::new(bytes)) {
            Ok(archive) => archive,
            Err(error) => {
                self.add(&UNREADABLE, "", format!("the zip cannot be read: {error}"));
                return None;
            }
        };
        if archive.len() != directory.entries.len() {
            self.add(&OVERLAP, "", "two readings of the directory differ");
            return None;
        }
        let limits = &policy::limits().zip;
        let mut left = limits.total_bytes_max;
        let mut files = Vec::new();
        let mut ignored = Vec::new();
        for (index, path) in entries {
            if names::is_junk(path) {
                ignored.push(path.as_str());
                continue;
            }
            let entry = directory.entries.get(*index)?;
            let max = left.min(limits.entry_bytes_max);
            let content = self.inflate_one(&mut archive, *index, entry, path, max)?;
            left = left.saturating_sub(content.len() as u64);
            self.content(path, &content);
            files.push(File { name: path.clone(), bytes: content });
        }
        if let Some(first) = ignored.first() {
            let what = format!(
                "{first} and the like are left by the system and ignored ({} of them)",
                ignored.len()
            );
            self.add(&EXTRA, first, what);
        }
        Some(files)
    }

    fn inflate_one(
        &mut self,
        archive: &mut ZipArchive<Cursor<&[u8]>>,
        index: usize,
        entry: &Entry,
        path: &str,
        max: u64,
    ) -> Option<Vec<u8>> {
        let mut file = match archive.by_index(index) {
            Ok(file) => file,
            Err(error) => {
                self.add(&UNREADABLE, path, format!("this entry cannot be read: {error}"));
                return None;
            }
        };
        if file.name_raw() != entry.name || file.header_start() != entry.local_at as u64 {
            drop(file);
            self.add(&OVERLAP, path, "two readings of the directory differ");
            return None;
        }
        let mut content = Vec::new();
        let result = (&mut file).take(max + 1).read_to_end(&mut content);
        drop(file);
        let (inflated, packed) = (content.len() as u64, entry.packed as u64);
        let limits = &policy::limits().zip;
        if inflated > max {
            self.add(
                &BOMB,
                path,
                format!("this entry inflates to more than {max} bytes; unpacking stopped there"),
            );
        } else if inflated > limits.ratio_bytes_min && inflated > packed.saturating_mul(limits.ratio_max) {
            self.add(&BOMB, path, format!("{packed} bytes that inflate to {inflated}"));
        } else if let Err(error) = result {
            self.add(&UNREADABLE, path, format!("this entry is damaged: {error}"));
        } else if inflated != entry.size as u64 {
            self.add(&OVERLAP, path, format!("the zip says {} bytes, and {inflated} came out", entry.size));
        } else {
            return Some(content);
        }
        None
    }

    /// Judges an entry by its content.
    fn content(&mut self, path: &str, content: &[u8]) {
        let programs: [(&[u8], &str); 7] = [
            (b"MZ", "a Windows program"),
            (b"\x7FELF", "a Linux program"),
            (b"\xCA\xFE\xBA\xBE", "a Java or macOS program"),
            (b"\xCF\xFA\xED\xFE", "a macOS program"),
            (b"\xCE\xFA\xED\xFE", "a macOS program"),
            (b"\0asm", "a WebAssembly program"),
            (b"#!", "a script for a shell"),
        ];
        if let Some((_, name)) = programs.iter().find(|(magic, _)| content.starts_with(magic)) {
            self.add(&EXECUTABLE, path, format!("{name}, by its content"));
        }
        if other_format(content).is_some() || content.starts_with(b"PK\x03\x04") {
            self.add(&NESTED, path, "an archive, by its content");
        }
    }

    /// Takes the files out of the one folder around them.
    fn strip(&mut self, files: &mut [File]) {
        let folder =
            files.first().and_then(|f| f.name.split_once('/')).map(|(folder, _)| format!("{folder}/"));
        let Some(folder) = folder.filter(|folder| files.iter().all(|f| f.name.starts_with(folder.as_str())))
        else {
            return;
        };
        for file in files.iter_mut() {
            file.name = file.name.split_off(folder.len());
        }
        let what = format!("everything lies in the folder {folder} inside the zip; it was taken out of it");
        self.add(&FOLDER, &folder, what);
    }
}

/// An archive that is no zip, in words.
fn other_format(bytes: &[u8]) -> Option<&'static str> {
    let formats: [(&[u8], &str); 8] = [
        (b"Rar!", "this is a RAR archive, whatever its name says; make a zip"),
        (b"7z\xBC\xAF\x27\x1C", "this is a 7z archive, whatever its name says; make a zip"),
        (b"\x1F\x8B", "this is a gzip file, whatever its name says; make a zip"),
        (b"BZh", "this is a bzip2 file, whatever its name says; make a zip"),
        (b"\xFD7zXZ", "this is an xz file, whatever its name says; make a zip"),
        (b"\x28\xB5\x2F\xFD", "this is a zstd file, whatever its name says; make a zip"),
        (b"PK\x07\x08", "this is one part of a split zip; make one plain zip"),
        (b"PK00", "this is one part of a split zip; make one plain zip"),
    ];
    formats.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, name)| *name)
}
