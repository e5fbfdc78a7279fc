//! Works from folders: `content/works/{creator}/{work}/` with `work.json`, `index.html`, a cover, a Python file.
//!
//! This is how our own works come into an empty catalogue. It checks what publishing relies on: names, sizes, that a
//! cover is a picture. The gates for works of others are the intake's.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use catalog::live::Writer;
use catalog::slug::{PAYLOAD, SIDECAR};
use catalog::{Catalog, Day, Manifest, Role, Slug, Work, WorkFile};
use image::{ImageFormat, ImageReader, Limits};
use policy::{Config, limits};

use crate::diagnostic::{Diagnostic, Failure};
use crate::theme::relative;

/// A work read from a folder: its row and its bytes.
struct Found {
    work: Work,
    bytes: Vec<Vec<u8>>,
}

/// Imports `content/works` into an empty catalogue, all of it or, with a problem anywhere, nothing.
pub(crate) fn samples(config: &Config, writer: &Writer<'_>, catalog: &mut Catalog) -> Result<usize, Failure> {
    let root = config.source.join("content/works");
    let (mut problems, mut found) = (Vec::new(), Vec::new());
    for creator in folders(&root)? {
        for folder in folders(&creator)? {
            match read(config, &folder) {
                Ok(work) => found.push(work),
                Err(own) => problems.extend(own),
            }
        }
    }
    if !problems.is_empty() {
        return Err(Failure::Input(problems));
    }
    for Found { bytes, .. } in &found {
        for bytes in bytes {
            writer.put(bytes)?;
        }
    }
    writer.sync()?;
    let works: Vec<Work> = found.into_iter().map(|f| f.work).collect();
    catalog.publish(&works)?;
    Ok(works.len())
}

fn folders(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if path.is_dir() {
        for entry in walkdir::WalkDir::new(path).min_depth(1).max_depth(1).sort_by_file_name() {
            let entry = entry?;
            if entry.file_type().is_dir() {
                found.push(entry.into_path());
            }
        }
    }
    Ok(found)
}

/// Reads one work. All of its problems are returned.
fn read(config: &Config, folder: &Path) -> Result<Found, Vec<Diagnostic>> {
    let here = |name: &str| relative(config, &folder.join(name));
    let name_of = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut problems = Vec::new();
    let creator = Slug::parse_creator(&name_of(folder.parent().unwrap_or(folder)));
    let creator =
        creator.map_err(|e| problems.push(Diagnostic::file(here(""), e.to_string(), "rename the folder")));
    let sidecar = std::fs::read(folder.join(SIDECAR)).map_err(|e| vec![missing(here(SIDECAR), &e)])?;
    let manifest = Manifest::parse(&sidecar).map_err(|e| {
        let at = if e.pointer.is_empty() { String::new() } else { format!("{}: ", e.pointer) };
        let place = Diagnostic::file(here(SIDECAR), format!("{at}{}", e.message), "");
        vec![
            Diagnostic { line: e.line, col: e.col, ..place }
                .hint("the keys are listed at /submission-criteria.html"),
        ]
    })?;
    if manifest.id.as_str() != name_of(folder) {
        let message =
            format!("id {:?} is not the name of its folder {:?}", manifest.id.as_str(), name_of(folder));
        problems.push(Diagnostic::file(here(SIDECAR), message, "give both the same name"));
    }
    problems
        .extend(too_long(&manifest).into_iter().map(|m| Diagnostic::file(here(SIDECAR), m, "shorten it")));
    let mut files = vec![(SIDECAR.to_owned(), Role::Sidecar), (PAYLOAD.to_owned(), Role::Payload)];
    files.extend(manifest.capabilities.python_backend.as_ref().map(|n| (n.to_string(), Role::Python)));
    files.extend(manifest.cover.as_ref().map(|c| (c.file.to_string(), Role::Cover)));
    files.sort_unstable();
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    for (name, role) in files {
        let bytes = match std::fs::read(folder.join(&name)) {
            Ok(bytes) => bytes,
            Err(e) => {
                problems.push(missing(here(&name), &e));
                continue;
            }
        };
        problems.extend(
            unfit(role, &name, &bytes, manifest.tinyjam)
                .map(|(m, hint)| Diagnostic::file(here(&name), m, hint)),
        );
        rows.push(WorkFile { name, role, digest: catalog::Digest::of(&bytes), bytes: bytes.len() as u64 });
        all.push(bytes);
    }
    let released = manifest.released.unwrap_or_else(Day::today);
    match creator {
        Ok(creator) if problems.is_empty() => {
            let slug = manifest.id.clone();
            let work = Work { creator, slug, released, updated: released, manifest, files: rows };
            Ok(Found { work, bytes: all })
        }
        _ => Err(problems),
    }
}

fn missing(file: PathBuf, error: &std::io::Error) -> Diagnostic {
    Diagnostic::file(
        file,
        format!("cannot be read: {error}"),
        "every work has work.json, index.html and the files work.json names",
    )
}

/// What in a sidecar is over its limit.
fn too_long(manifest: &Manifest) -> Vec<String> {
    let work = &limits().work;
    let tag = manifest.tags.iter().map(|t| t.as_str().len()).max().unwrap_or(0);
    [
        ("title", manifest.title().chars().count(), work.title_chars_max, "characters"),
        ("summary", manifest.summary.chars().count(), work.summary_chars_max, "characters"),
        ("description", manifest.description.len(), work.description_bytes_max, "bytes"),
        ("tags", manifest.tags.len(), work.tags_max, "tags"),
        ("a tag", tag, work.tag_chars_max, "characters"),
    ]
    .into_iter()
    .filter(|(_, found, max, _)| found > max)
    .map(|(what, found, max, unit)| format!("{what} has {found} {unit}, at most {max} are allowed"))
    .collect()
}

/// Why a file cannot have that role, and what to do about it.
fn unfit(role: Role, name: &str, bytes: &[u8], tinyjam: bool) -> Option<(String, &'static str)> {
    let work = &limits().work;
    let (max, hint) = match role {
        Role::Payload if tinyjam => (work.tinyjam_bytes_max, "make it smaller, or leave out `tinyjam`"),
        Role::Payload => (work.html_bytes_max, "make it smaller"),
        Role::Python => (work.python_bytes_max, "make it smaller"),
        Role::Sidecar => (work.sidecar_bytes_max, "make it smaller"),
        Role::Cover => (work.cover_bytes_max, "save it with fewer colours or pixels"),
    };
    let size = bytes.len() as u64;
    if size > max {
        return Some((format!("has {size} bytes, at most {max} are allowed"), hint));
    }
    match role {
        Role::Cover => picture(name, bytes)
            .err()
            .map(|m| (m, "use a PNG, JPEG, WebP or GIF picture, with its own ending")),
        Role::Payload | Role::Python if std::str::from_utf8(bytes).is_err() => {
            Some(("is not UTF-8 text".to_owned(), "save it as UTF-8"))
        }
        _ => None,
    }
}

/// Decodes a picture, to be sure that it is one, and the one its name says.
fn picture(name: &str, bytes: &[u8]) -> Result<(), String> {
    let side = limits().work.cover_side_px_max;
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(|e| e.to_string())?;
    match reader.format() {
        Some(format @ (ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::WebP | ImageFormat::Gif)) => {
            let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
            if !format.extensions_str().contains(&ending) {
                return Err(format!(
                    "is a {} picture by its content",
                    format.extensions_str()[0].to_uppercase()
                ));
            }
        }
        _ => return Err("is not a picture".to_owned()),
    }
    let mut bounds = Limits::default();
    bounds.max_image_width = Some(side);
    bounds.max_image_height = Some(side);
    reader.limits(bounds);
    reader
        .decode()
        .map(|_| ())
        .map_err(|e| format!("cannot be read as a picture of at most {side} pixels a side: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_at_the_cap_pass_and_one_byte_more_does_not() {
        for (role, tinyjam, max) in [
            (Role::Payload, false, 5_242_880),
            (Role::Payload, true, 65_536),
            (Role::Python, false, 16_384),
            (Role::Sidecar, false, 65_536),
        ] {
            assert_eq!(unfit(role, "x", &vec![b' '; max], tinyjam), None);
            let (message, _) = unfit(role, "x", &vec![b' '; max + 1], tinyjam).unwrap();
            assert_eq!(message, format!("has {} bytes, at most {max} are allowed", max + 1));
        }
        assert!(unfit(Role::Payload, "x", b"\xff\xfe", false).unwrap().0.contains("UTF-8"));
    }

    #[test]
    fn a_cover_is_a_picture_by_its_content() {
        let mut png = Cursor::new(Vec::new());
        image::DynamicImage::new_rgb8(3, 2).write_to(&mut png, ImageFormat::Png).unwrap();
        let png = png.into_inner();
        assert_eq!(unfit(Role::Cover, "x.png", &png, false), None);
        assert!(unfit(Role::Cover, "x.webp", &png, false).unwrap().0.contains("is a PNG picture"));
        assert!(
            unfit(Role::Cover, "x.png", &png[..40], false).unwrap().0.contains("cannot be read as a picture")
        );
        for other in [&b"<svg xmlns='http://www.w3.org/2000/svg'/>"[..], b"", b"<html>", b"%PDF-1.7"] {
            assert_eq!(unfit(Role::Cover, "x.png", other, false).unwrap().0, "is not a picture");
        }
    }
}
