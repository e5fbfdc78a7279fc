//! The names of entries: what may be a path, and what is left by systems.

use crate::source::is_invisible;

/// Endings of programs.
pub(super) const PROGRAMS: [&str; 18] = [
    "exe", "dll", "com", "bat", "cmd", "sh", "msi", "scr", "jar", "ps1", "vbs", "so", "dylib", "app", "apk",
    "deb", "rpm", "wasm",
];
/// Endings of archives.
pub(super) const ARCHIVES: [&str; 10] = ["zip", "rar", "7z", "gz", "tgz", "bz2", "xz", "tar", "zst", "iso"];

const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "com1", "lpt1"];

/// Why a name is no path.
pub(super) struct Problem {
    pub(super) shown: String,
    pub(super) what: String,
}

/// The path that a raw name stands for; a folder's ends in `/`.
pub(super) fn path(raw: &[u8]) -> Result<String, Problem> {
    let shown = crate::source::shorten(&String::from_utf8_lossy(raw));
    let problem =
        |what: &str| Err(Problem { shown: shown.clone(), what: format!("the name {shown:?} {what}") });
    let max = policy::limits().zip.name_bytes_max;
    let Ok(name) = std::str::from_utf8(raw) else {
        return problem("is in an old encoding; use plain letters");
    };
    let mut chars = name.chars();
    let has_drive = chars.next().is_some_and(|c| c.is_ascii_alphabetic()) && chars.next() == Some(':');
    if name.is_empty() || name.len() > max {
        return problem("is empty or too long");
    }
    if name.contains('\\') {
        return problem("has a backslash");
    }
    if name.starts_with('/') || has_drive {
        return problem("is absolute");
    }
    if name.chars().any(|c| c.is_control() || is_invisible(c)) {
        return problem("has characters that nobody sees");
    }
    for part in name.strip_suffix('/').unwrap_or(name).split('/') {
        let stem = part.split('.').next().unwrap_or_default().to_ascii_lowercase();
        match part {
            "" | "." => return problem("has an empty part"),
            ".." => return problem("leads out of the folder"),
            _ if part.ends_with(['.', ' ']) => return problem("ends in a dot or a space"),
            _ if part.contains(['<', '>', ':', '"', '|', '?', '*']) => {
                return problem("has a character that no file has");
            }
            _ if DEVICES.contains(&stem.as_str()) => return problem("is a device on Windows"),
            _ => {}
        }
    }
    Ok(name.to_owned())
}

/// Whether the system that made the zip left the file in it.
pub(super) fn is_junk(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or(path);
    path.starts_with("__MACOSX/")
        || path.contains("/__MACOSX/")
        || last.starts_with("._")
        || ["ds_store", "thumbs.db", "desktop.ini"]
            .contains(&last.trim_start_matches('.').to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_paths() {
        for good in ["index.html", "a/b.png", "a/", "cover..png", "Größe.txt", "a b"] {
            assert!(path(good.as_bytes()).is_ok(), "{good}");
        }
        for (bad, why) in [
            ("../a", "leads out"),
            ("a/../b", "leads out"),
            ("a/..", "leads out"),
            ("/etc/passwd", "absolute"),
            ("C:/a", "absolute"),
            ("c:a", "absolute"),
            ("a\\b", "backslash"),
            ("a\0b", "nobody sees"),
            ("a\u{202E}b", "nobody sees"),
            ("a.", "dot or a space"),
            ("a /b", "dot or a space"),
            ("a//b", "empty part"),
            ("./a", "empty part"),
            ("", "empty"),
            ("NUL.txt", "device"),
            ("a?b", "no file has"),
        ] {
            let problem = path(bad.as_bytes()).err().unwrap_or_else(|| panic!("{bad}"));
            assert!(problem.what.contains(why), "{bad}: {}", problem.what);
        }
        assert!(path(b"caf\x82.html").err().unwrap().what.contains("old encoding"));
        assert!(path(&[b'a'; 241]).is_err() && path(&[b'a'; 240]).is_ok());
    }

    #[test]
    fn junk_is_known() {
        for junk in ["__MACOSX/._a", "game/__MACOSX/a", "a/.DS_Store", "Thumbs.db", "._index.html"] {
            assert!(is_junk(junk), "{junk}");
        }
        assert!(!is_junk("index.html") && !is_junk("a/b_.png"));
    }
}
