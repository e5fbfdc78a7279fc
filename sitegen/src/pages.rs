//! The pages of `content/pages`: TOML front matter, then Markdown with template values.

use std::path::PathBuf;

use catalog::{Day, Slug};
use minijinja::context;
use minijinja::value::{Serde, Value};
use serde::Deserialize;

use crate::diagnostic::Diagnostic;
use crate::markdown;
use crate::theme::{Theme, read_text, relative};

/// One page.
pub(crate) struct TextPage {
    /// The source file, as people write it.
    pub(crate) file: PathBuf,
    /// The source.
    pub(crate) text: String,
    /// The path it is served at.
    pub(crate) path: String,
    /// When its text last changed.
    pub(crate) updated: Day,
    /// The finished page.
    pub(crate) html: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Front {
    title: String,
    summary: String,
    updated: Day,
    /// The module of the theme that the page runs, if any.
    script: Option<String>,
}

/// Renders every page. Problems are collected; a page with a problem is left out.
pub(crate) fn render(
    config: &policy::Config,
    theme: &Theme,
    problems: &mut Vec<Diagnostic>,
) -> anyhow::Result<Vec<TextPage>> {
    let mut pages = Vec::new();
    let folder = config.source.join("content/pages");
    for entry in walkdir::WalkDir::new(&folder).min_depth(1).sort_by_file_name() {
        let path = entry?.into_path();
        if path.extension().is_none_or(|e| e != "md") {
            continue;
        }
        let file = relative(config, &path);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        if let Err(e) = stem.parse::<Slug>() {
            problems.push(Diagnostic::file(file, e.to_string(), "rename the file: its name is its address"));
            continue;
        }
        match page(theme, file, read_text(&path)?, format!("/{stem}.html")) {
            Ok(page) => pages.push(page),
            Err(problem) => problems.push(problem),
        }
    }
    Ok(pages)
}

fn page(theme: &Theme, file: PathBuf, text: String, path: String) -> Result<TextPage, Diagnostic> {
    let shape =
        "a page starts with `+++`, then title, summary, updated and perhaps script as TOML, then `+++`";
    let unfinished =
        || Diagnostic::at_byte(&file, &text, 0, "front matter is missing or never ends").hint(shape);
    let (front, body) =
        text.strip_prefix("+++\n").and_then(|t| t.split_once("\n+++\n")).ok_or_else(unfinished)?;
    let offset = text.len() - body.len();
    let Front { title, summary, updated, script } = toml::from_str(front).map_err(|e| {
        let at = e.span().map_or(0, |s| s.start) + "+++\n".len();
        Diagnostic::at_byte(&file, &text, at, e.message().to_owned()).hint(shape)
    })?;
    let skipped = text[..offset].matches('\n').count();
    let markdown = theme.render_text(&file, body, skipped)?;
    let (body, headings) = markdown::page(&markdown);
    let url = Value::from_safe_string(path.clone());
    let body = Value::from_safe_string(body);
    let html = theme.render("page.html", context! { title, summary, updated => updated.to_string(), script, path => url, body, headings => Serde(&headings) })?;
    Ok(TextPage { file, text, path, updated, html })
}
