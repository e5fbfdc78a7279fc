//! The snippet of `theme/tf.js`: small enough to be pasted, and the same in every sample work that has it.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use tests::repository;

/// What pages and documentation promise.
const BYTES_MAX: usize = 4096;
const OPEN: &str = "<script data-tf>\n";
const CLOSE: &str = "</script>";

#[test]
fn every_pasted_snippet_is_the_published_one() -> Result<()> {
    let snippet = fs::read_to_string(repository().join("theme/tf.js"))?;
    ensure!(snippet.len() < BYTES_MAX, "theme/tf.js has {} bytes", snippet.len());
    ensure!(!snippet.contains("</script"), "theme/tf.js would end its own script");
    let mut pasted = 0;
    for creator in fs::read_dir(repository().join("content/works"))? {
        for work in fs::read_dir(creator?.path())? {
            let path = work?.path().join("index.html");
            let html = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            for rest in html.split("<script data-tf").skip(1) {
                let at = format!("{}: run `./dev paste-tf`", path.display());
                let text = rest.strip_prefix(&OPEN["<script data-tf".len()..]).context(at.clone())?;
                ensure!(text.split(CLOSE).next() == Some(&snippet), at);
                pasted += 1;
            }
        }
    }
    ensure!(pasted > 0, "no sample work has the snippet");
    Ok(())
}
