//! What must hold of the gates, whatever is submitted: no panic, every finding in a place that the file has, and work
//! within what policy allows.
//!
//! Called by the fuzz targets and by `intake/tests/seeds.rs`.

use ::intake::finding::Finding;
use ::intake::submission::File;
use ::intake::{archive, document, python as functions, sidecar as sidecars};

/// A zip: what comes out is within the limits of what may, whatever the archive claims.
pub fn zip(bytes: &[u8]) {
    let limits = &policy::limits().zip;
    let unpacked = archive::unpack("a.zip", bytes);
    let total: usize = unpacked.files.iter().map(|file| file.bytes.len()).sum();
    assert!(total as u64 <= limits.total_bytes_max, "{total} bytes came out");
    assert!(unpacked.files.len() as u64 <= limits.entries_max, "{} files", unpacked.files.len());
    for file in &unpacked.files {
        let name = &file.name;
        assert!(
            !name.starts_with('/') && name.split('/').all(|part| !["", ".", ".."].contains(&part)),
            "{name:?}"
        );
    }
}

/// A sidecar.
pub fn sidecar(bytes: &[u8]) {
    let file = File { name: "work.json".to_owned(), bytes: bytes.to_vec() };
    match sidecars::read(&file) {
        Ok(sidecar) => placed(bytes, &sidecar.check(&[])),
        Err(findings) => placed(bytes, &findings),
    }
}

/// A page.
pub fn page(bytes: &[u8]) {
    placed(bytes, &document::check("index.html", bytes, policy::limits().work.html_bytes_max).findings);
}

/// The one script of a page.
pub fn script(bytes: &[u8]) {
    page(&[b"<script>", bytes, b"</script>"].concat());
}

/// A Python function.
pub fn python(bytes: &[u8]) {
    placed(bytes, &functions::check_source("function.py", bytes));
}

/// Every finding is about the file as a whole or about a place in it. A column may be the one behind a line's end.
fn placed(bytes: &[u8], findings: &[Finding]) {
    // A carriage return may end a line too, so this is the most lines that a reader can count.
    let lines = 1 + bytes.iter().filter(|byte| matches!(byte, b'\n' | b'\r' | b'\x0C')).count();
    let columns = 1 + bytes.len();
    for finding in findings {
        let place = (finding.line, finding.column);
        let whole = place == (0, 0);
        assert!(whole || (1..=lines).contains(&place.0) && (1..=columns).contains(&place.1), "{finding:?}");
    }
}
