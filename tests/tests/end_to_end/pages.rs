//! Rendered pages, whole, beside the ones that were looked at. `INSTA_UPDATE=always cargo test -p tests pages` takes
//! new ones; look at the difference before committing it.

use std::fs;

use anyhow::Result;
use serde_json::json;
use tests::Installation;

/// Ports, fingerprints of assets and their integrity change with every run or style: they are not what is looked at.
fn steady(here: &Installation, html: &str) -> String {
    let html =
        html.replace(&format!(":{}", here.site_port), "").replace(&format!(":{}", here.content_port), "");
    let mut text = String::new();
    for (i, part) in html.split('"').enumerate() {
        if i > 0 {
            text.push('"');
        }
        match part.strip_prefix("/assets/").map(|name| name.split('.').collect::<Vec<_>>()).as_deref() {
            Some([stem, _, extension]) => text.push_str(&format!("/assets/{stem}.….{extension}")),
            _ if part.starts_with("sha256-") => text.push_str("sha256-…"),
            _ => text.push_str(part),
        }
    }
    text
}

#[test]
fn a_hostile_title_and_a_bare_work() -> Result<()> {
    let here = Installation::with_public_names()?;
    let title = "<script>alert(1)</script> 🎲 \"مرحبا\" & friends";
    let full = json!({
        "id": "full", "title": title, "summary": "Summary with <b>markup</b>.", "description": "One *two* <img src=x>",
        "controls": "Arrows & space", "tags": ["puzzle", "two-words"], "license": "CC0-1.0", "released": "2026-11-01",
        "tinyjam": true, "view": {"width": 320, "height": 240}, "capabilities": {"audio": true, "python_backend": "f.py"},
    });
    let bare = json!({"id": "bare", "released": "2026-11-02"});
    for (name, sidecar) in [("full", full), ("bare", bare)] {
        let folder = here.source().join("content/works/ann").join(name);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("work.json"), sidecar.to_string())?;
        fs::write(folder.join("index.html"), format!("<!DOCTYPE html><title>{name}</title>"))?;
        fs::write(folder.join("f.py"), "def run(inputs):\n    return inputs\n")?;
    }
    here.publish()?;
    for (name, file) in [
        ("work_full", "site/ann/full/index.html"),
        ("work_bare", "site/ann/bare/index.html"),
        ("creator", "site/ann/index.html"),
        ("catalogue", "site/index.html"),
        ("rss", "site/rss.xml"),
        ("works_js", "site/data/works.js"),
        ("checksums", "content/ann/full/checksums.txt"),
    ] {
        let page = steady(&here, &fs::read_to_string(here.data("live").join(file))?);
        // In a script or a list of digests it is a string and means nothing.
        let markup = page.contains("<script>alert") || page.contains("<img src=x>");
        assert!(!markup || !file.ends_with("ml"), "{file}");
        insta::assert_snapshot!(name, page);
    }
    Ok(())
}
