//! A catalogue of works that nobody made, as large as a benchmark wants it.

use anyhow::Result;
use catalog::{Catalog, Data, Digest, Manifest, Role, Work, WorkFile};

use crate::Installation;

/// Three paragraphs that differ from work to work.
fn paragraphs(i: usize) -> String {
    let sentence = |n: usize| {
        format!(
            "Number {i} turns *{n}* small wheels until the [lamp](https://example.org/{n}) on top is lit. "
        )
    };
    (0..3).map(|p| (0..4).map(|s| sentence(p * 4 + s)).collect::<String>()).collect::<Vec<_>>().join("\n\n")
}

/// A work that nobody made. `version` changes its bytes.
pub fn work(i: usize, creators: usize, version: usize) -> Result<(Work, [Vec<u8>; 2])> {
    let slug = format!("work-{i}");
    let sidecar = serde_json::json!({
        "id": slug, "title": format!("Work number {i}.{version}"), "summary": format!("What number {i} does, in a line."),
        "description": paragraphs(i), "tags": [format!("tag-{}", i % 40)], "capabilities": { "audio": i.is_multiple_of(2) },
    });
    let sidecar = sidecar.to_string().into_bytes();
    let payload = format!("<!DOCTYPE html><title>{i}</title><p>{version}</p>{}", paragraphs(i)).into_bytes();
    let file = |name: &str, role, bytes: &[u8]| WorkFile {
        name: name.to_owned(),
        role,
        digest: Digest::of(bytes),
        bytes: bytes.len() as u64,
    };
    let work = Work {
        creator: format!("creator-{}", i % creators).parse()?,
        slug: slug.parse()?,
        manifest: Manifest::parse(&sidecar)?,
        released: format!("20{:02}-{:02}-{:02}", 10 + i % 16, 1 + i % 12, 1 + i % 28).parse()?,
        updated: "2026-11-30".parse()?,
        files: vec![file("index.html", Role::Payload, &payload), file("work.json", Role::Sidecar, &sidecar)],
    };
    Ok((work, [payload, sidecar]))
}

/// Fills the catalogue of an installation, which is not part of what is measured.
pub fn fill(here: &Installation, works: usize, creators: usize) -> Result<()> {
    let data = Data::open(&here.data(""))?;
    let writer = data.writer()?;
    let mut catalog = Catalog::open(&here.data("catalog.db"))?;
    let mut rows = Vec::new();
    for i in 0..works {
        let (row, bytes) = work(i, creators, 0)?;
        for bytes in bytes {
            writer.put(&bytes)?;
        }
        rows.push(row);
    }
    writer.sync()?;
    Ok(catalog.publish(&rows)?)
}

/// Changes one work.
pub fn change(here: &Installation, i: usize, creators: usize, version: usize) -> Result<()> {
    let data = Data::open(&here.data(""))?;
    let writer = data.writer()?;
    let (row, bytes) = work(i, creators, version)?;
    for bytes in bytes {
        writer.put(&bytes)?;
    }
    writer.sync()?;
    Ok(Catalog::open(&here.data("catalog.db"))?.replace(&row)?)
}
