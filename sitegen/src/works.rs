//! The pages of works and creators: a wrapper page and a content directory for each work, a page for each creator.

use catalog::directory::StoreError;
use catalog::slug::PictureName;
use catalog::{Data, Day, Digest, Directory, Role, Slug, Work};
use minijinja::context;
use minijinja::value::{Serde, Value};
use policy::grants;
use rayon::prelude::*;
use serde::Serialize;

use crate::cache::Page;
use crate::diagnostic::{Diagnostic, Failure};
use crate::markdown;
use crate::render::Renderer;
use crate::site::{Card, Entry, Site};

/// A work as it goes into the trees.
pub(crate) struct Unit {
    /// Its directory on the site, with the names in it: the wrapper page and the cover.
    pub(crate) site: (Digest, Vec<String>),
    /// Its directory on the content origin: the very files of the row.
    pub(crate) content: (Digest, Vec<String>),
    /// The wrapper page.
    pub(crate) page: Page,
}

/// What the wrapper page shows of a work beyond its card.
#[derive(Serialize)]
pub(crate) struct Shown<'a> {
    #[serde(flatten)]
    card: &'a Card,
    description: Value,
    controls: &'a str,
    license: &'a str,
    width: u16,
    height: u16,
    has_view: bool,
    grants: Vec<(&'static str, &'static str)>,
    allow: Value,
    files: Vec<Download<'a>>,
}

/// A file of a work, to be kept.
#[derive(Serialize)]
struct Download<'a> {
    name: &'a str,
    words: &'static str,
    sha256: String,
    bytes: u64,
    href: Value,
}

/// The natural size of a work that names none, in CSS pixels.
const DEFAULT_VIEW: (u16, u16) = (960, 600);

/// Renders every work, those that did not change from the cache.
pub(crate) fn units(
    renderer: &Renderer<'_>,
    site: &Site,
    progress: impl Fn() + Sync,
) -> Vec<Result<Unit, Failure>> {
    let key = renderer.key("work.html", []);
    site.entries
        .par_iter()
        .map(|entry| {
            let unit = unit(renderer, site, entry, key);
            progress();
            unit
        })
        .collect()
}

fn unit(renderer: &Renderer<'_>, site: &Site, entry: &Entry, template: Digest) -> Result<Unit, Failure> {
    let work = &entry.work;
    let content = files_of(work);
    let content_digest = renderer.writer.directory(&content, None)?;
    let related: Vec<&Entry> = entry.related.iter().map(|i| &site.entries[*i]).collect();
    let mut inputs = template.to_string();
    for key in std::iter::once(entry.key).chain(related.iter().map(|e| e.key)) {
        inputs.push_str(&key.to_string());
    }
    let path = work.path();
    let page = renderer.page(&path, Digest::of(inputs.as_bytes()), || {
        let cards: Vec<&Card> = related.iter().map(|e| &e.card).collect();
        let shown = shown(entry, &renderer.config.content.to_string());
        renderer.theme.render("work.html", context! { work => Serde(&shown), related => Serde(&cards) })
    })?;
    let mut directory = Directory::default();
    directory.file("index.html", page.plain);
    if let Some(gzip) = page.gzip {
        directory.file("index.html.gz", gzip);
    }
    for cover in work.files.iter().filter(|f| f.role == Role::Cover) {
        directory.file(&cover.name, cover.digest);
    }
    let names = |d: &Directory| d.entries().map(|(name, _)| name.to_owned()).collect();
    let site = (renderer.writer.directory(&directory, None)?, names(&directory));
    Ok(Unit { site, content: (content_digest, names(&content)), page })
}

/// Sets aside the works whose stored bytes are not those of their rows, each with what is wrong. A work that was
/// published before is hashed again only if its files do not look as they were written: the rest is for `verify`.
pub(crate) fn intact(data: &Data, works: Vec<Work>) -> Result<(Vec<Work>, Vec<Diagnostic>), StoreError> {
    let checked: Vec<Vec<Diagnostic>> =
        works.par_iter().map(|work| damage(data, work)).collect::<Result<_, _>>()?;
    let sound = works.into_iter().zip(&checked).filter(|(_, problems)| problems.is_empty());
    Ok((sound.map(|(work, _)| work).collect(), checked.concat()))
}

fn damage(data: &Data, work: &Work) -> Result<Vec<Diagnostic>, StoreError> {
    let known = data.directories.has(&Digest::of(files_of(work).checksums().as_bytes()));
    if known && work.files.iter().all(|f| data.objects.looks_whole(&f.digest, f.bytes)) {
        return Ok(Vec::new());
    }
    let mut problems = Vec::new();
    for file in &work.files {
        let message = match data.objects.read(&file.digest) {
            Err(e @ (StoreError::Damaged { .. } | StoreError::Missing(_))) => e.to_string(),
            Ok(_) if file.role == Role::Cover && file.name.parse::<PictureName>().is_err() => {
                format!("{:?} is not the name of a picture", file.name)
            }
            read => {
                read?;
                continue;
            }
        };
        let hint = "the work is left out; restore its bytes from a backup or withdraw it";
        problems.push(Diagnostic::file(format!("{}{}", work.path(), file.name), message, hint));
    }
    Ok(problems)
}

/// The directory of a work on the content origin.
fn files_of(work: &Work) -> Directory {
    let mut content = Directory::default();
    for file in &work.files {
        content.file(&file.name, file.digest);
    }
    content
}

/// The values of a wrapper page.
pub(crate) fn shown<'a>(entry: &'a Entry, content_origin: &str) -> Shown<'a> {
    let manifest = &entry.work.manifest;
    let view = manifest.view.map(|v| (u16::from(v.width), u16::from(v.height)));
    let (width, height) = view.unwrap_or(DEFAULT_VIEW);
    let mut files: Vec<_> = entry.work.files.iter().collect();
    files.sort_by_key(|f| match f.role {
        Role::Payload => 0,
        Role::Python => 1,
        Role::Sidecar => 2,
        Role::Cover => 3,
    });
    let files = files.into_iter().map(|file| Download {
        name: &file.name,
        words: match file.role {
            Role::Payload => "the work",
            Role::Python => "its Python function",
            Role::Sidecar => "what the creator says about it",
            Role::Cover => "the cover",
        },
        sha256: file.digest.to_string(),
        bytes: file.bytes,
        href: Value::from_safe_string(format!("{content_origin}{}{}", entry.work.path(), file.name)),
    });
    Shown {
        card: &entry.card,
        description: Value::from_safe_string(markdown::untrusted(&manifest.description)),
        controls: &manifest.controls,
        license: &manifest.license,
        width,
        height,
        has_view: view.is_some(),
        grants: entry.granted_words(),
        allow: Value::from_safe_string(grants().allow(&entry.card.capabilities)),
        files: files.collect(),
    }
}

/// A creator's page.
pub(crate) struct CreatorPage<'a> {
    /// The creator.
    pub(crate) creator: &'a Slug,
    /// The page at `/creator/`.
    pub(crate) page: Page,
    /// When one of the works last changed.
    pub(crate) updated: Day,
}

/// Renders the page of every creator.
pub(crate) fn creators<'a>(renderer: &Renderer<'_>, site: &'a Site) -> Vec<Result<CreatorPage<'a>, Failure>> {
    let template = renderer.key("creator.html", []);
    site.creators
        .par_iter()
        .filter_map(|(creator, own)| {
            let mut works: Vec<&Entry> = own.iter().map(|i| &site.entries[*i]).collect();
            works.sort_by_key(|e| std::cmp::Reverse(e.work.released));
            let updated = Site::updated(works.iter().copied())?;
            let page = cards_page(renderer, &format!("/{creator}/"), template, &works, |cards| {
                let bytes: u64 = works.iter().map(|e| e.card.bytes).sum();
                let creator = Value::from_safe_string(creator.to_string());
                renderer.theme.render("creator.html", context! { creator, works => Serde(&cards), bytes })
            });
            Some(page.map(|page| CreatorPage { creator, page, updated }))
        })
        .collect()
}

/// A page whose inputs are the cards of some works.
pub(crate) fn cards_page(
    renderer: &Renderer<'_>,
    path: &str,
    template: Digest,
    works: &[&Entry],
    render: impl FnOnce(Vec<&Card>) -> Result<String, Diagnostic>,
) -> Result<Page, Failure> {
    let mut inputs = template.to_string();
    for entry in works {
        inputs.push_str(&entry.key.to_string());
    }
    renderer.page(path, Digest::of(inputs.as_bytes()), || render(works.iter().map(|e| &e.card).collect()))
}
