//! `sitegen publish`: from catalogue, content and theme to the tree that is served.
//!
//! Everything is rendered and checked first; any problem of the input leaves the served tree as it is. One exception is
//! deliberate: a work whose stored bytes no longer match its row is left out and named, so that it can keep neither the
//! others from being published nor itself from being withdrawn.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use catalog::live::Writer;
use catalog::{Catalog, Data, Day, Digest, Directory};
use minijinja::context;
use minijinja::value::{Serde, Value};
use policy::{Capability, Config, grants, headers, limits};
use rayon::prelude::*;

use crate::cache::{Cache, Page};
use crate::diagnostic::{Diagnostic, Failure, locate};
use crate::html::{self, Anchors};
use crate::output::Folder;
use crate::pages::{self, TextPage};
use crate::progress::Progress;
use crate::render::Renderer;
use crate::site::{Card, Entry, Site};
use crate::theme::{Theme, read_text};
use crate::works::{self, CreatorPage, Unit};
use crate::{feeds, import};

/// What nginx serves from beside the tree: the runner's record of its suite runs.
const BESIDE: &str = "/data/python-status.json";

/// The folder in the data folder with the assets of every tree that is kept.
pub(crate) const KEPT_ASSETS: &str = "assets";

/// What a publish did.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Report {
    /// The digest of the tree that is served now.
    pub(crate) tree: Digest,
    /// Whether it is another one than before.
    pub(crate) changed: bool,
    /// Works in it.
    pub(crate) works: usize,
    /// Works imported because the catalogue was empty.
    pub(crate) imported: usize,
    /// Works that had to be left out.
    pub(crate) left_out: Vec<Diagnostic>,
}

/// Publishes the catalogue of an installation. If somebody else is writing, it may `wait`.
pub(crate) fn publish(config: &Config, wait: bool, progress: &Progress) -> Result<Report, Failure> {
    let data = Data::open(&config.data)?;
    let writer = if wait { data.writer_when_free()? } else { data.writer()? };
    let mut catalog = Catalog::open(&data.path("catalog.db"))?;
    let imported = if catalog.is_empty()? { import::samples(config, &writer, &mut catalog)? } else { 0 };
    let cache_file = data.path("pages.db");
    let remedy = "; free some space, or delete it: it only saves time";
    let cache =
        Cache::open(&data).with_context(|| format!("cannot open {}{remedy}", cache_file.display()))?;
    let mut problems = Vec::new();
    let mut theme = Theme::load(config, &mut problems)?;
    if !problems.is_empty() {
        return Err(Failure::Input(problems));
    }
    let (works, left_out) = works::intact(&data, catalog.published()?)?;
    let mut site = Site::new(works, catalog.gone()?);
    site.rate(&catalog.ratings()?);
    add_globals(&mut theme, config);
    let renderer = Renderer { config, data: &data, writer: &writer, theme: &theme, cache: &cache };
    let mut build = Build::new(&renderer, &site, &left_out);
    build.render(progress)?;
    let Build { site: first_party, content, .. } = build;
    let tree = write(&data, &writer, &first_party, &content)?;
    keep_assets(&data, &first_party)?;
    writer.sync()?;
    cache.save().with_context(|| format!("cannot write {}{remedy}", cache_file.display()))?;
    let changed = data.live()? != Some(tree);
    if changed {
        writer.serve(&tree)?;
    }
    if !left_out.is_empty() {
        writer.distrust()?;
    }
    Ok(Report { tree, changed, works: site.entries.len(), imported, left_out })
}

/// Values that every template and page may name.
pub(crate) fn add_globals(theme: &mut Theme, config: &Config) {
    let set = |headers: Vec<headers::Header>| -> Value {
        headers.into_iter().map(|h| context! { name => h.name, value => h.value }).collect()
    };
    let sets =
        context! { site => set(headers::site(config)), work => set(headers::work(config, "/creator/work/")) };
    let capabilities: Value = Capability::ALL
        .iter()
        .map(|c| {
            let grant = grants().grant(*c);
            context! { key => c.key(), name => grant.name.as_str(), words => grant.words.as_str() }
        })
        .collect();
    theme.add_global("headers", sets);
    theme.add_global("capabilities", capabilities);
    theme.add_global("sandbox", Value::from(grants().sandbox()));
    theme.add_global("referrerpolicy", Value::from(grants().frame.referrerpolicy.clone()));
    theme.add_global("channels_table", Value::from(policy::channels::markdown_table()));
}

/// The two trees while they are rendered.
struct Build<'a> {
    renderer: &'a Renderer<'a>,
    works: &'a Site,
    site: Folder,
    content: Folder,
    /// Pages by path, for the link check.
    pages: HashMap<String, Arc<Anchors>>,
    texts: Vec<TextPage>,
    sitemap: Vec<(String, Option<Day>)>,
    problems: Vec<Diagnostic>,
    left_out: &'a [Diagnostic],
}

impl<'a> Build<'a> {
    fn new(renderer: &'a Renderer<'a>, works: &'a Site, left_out: &'a [Diagnostic]) -> Self {
        let (site, content) = (Folder::default(), Folder::default());
        let (pages, texts, sitemap) = (HashMap::new(), Vec::new(), Vec::new());
        Self { renderer, works, site, content, pages, texts, sitemap, problems: Vec::new(), left_out }
    }

    fn render(&mut self, progress: &Progress) -> Result<(), Failure> {
        let units = progress
            .count("works", self.works.entries.len(), |tick| works::units(self.renderer, self.works, tick));
        self.catalogue()?;
        self.desks()?;
        self.texts()?;
        self.errors()?;
        self.creators()?;
        self.place_units(units)?;
        self.files()?;
        // A page that could not be rendered is missing, but the links to it are not what is wrong.
        if self.problems.is_empty() {
            self.check_links();
        }
        match std::mem::take(&mut self.problems) {
            none if none.is_empty() => Ok(()),
            problems => Err(Failure::Input(problems)),
        }
    }

    /// Puts a page into the site tree and remembers what it links to.
    fn place(&mut self, path: &str, file: &str, page: &Page) {
        if let Err(problem) = page.place(&mut self.site, file) {
            self.problems.push(problem);
        }
        self.pages.insert(path.to_owned(), Arc::new(page.anchors.clone()));
    }

    /// Sorts out how a rendering failed.
    fn take<T>(&mut self, result: Result<T, Failure>) -> Result<Option<T>, Failure> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Failure::Input(problems)) => {
                self.problems.extend(problems);
                Ok(None)
            }
            Err(Failure::Machine(error)) => Err(Failure::Machine(error)),
        }
    }

    /// The front page, and the whole catalogue in pages filled from the oldest work on, so that old ones stay.
    fn catalogue(&mut self) -> Result<(), Failure> {
        let (renderer, entries) = (self.renderer, &self.works.entries);
        let per_page = limits().site.works_per_page;
        let pages: Vec<(usize, &[Entry])> =
            entries.rchunks(per_page).enumerate().map(|(i, c)| (i + 1, c)).collect();
        let newest: Vec<&Card> = entries.iter().take(per_page).map(|e| &e.card).collect();
        let tags = popular_tags(entries);
        let bytes: u64 = entries.iter().map(|e| e.card.bytes).sum();
        let context =
            context! { works => Serde(&newest), pages => pages.len(), count => entries.len(), bytes, tags };
        let front = renderer.theme.render("index.html", context);
        let front = front.map_err(Failure::from).and_then(|html| renderer.html("/", &html));
        if let Some(page) = self.take(front)? {
            self.place("/", "index.html", &page);
            self.sitemap.push(("/".to_owned(), Site::updated(entries)));
        }
        // A page names its neighbours: only whether there are any is part of its key.
        let template = renderer.key("works.html", []);
        let last = pages.len();
        let rendered: Vec<_> = pages
            .par_iter()
            .map(|(number, chunk)| {
                let key = renderer.key("works.html", [template, Digest::of(&[u8::from(*number == last)])]);
                let works: Vec<&Entry> = chunk.iter().collect();
                let path = format!("/works/{number}/");
                works::cards_page(renderer, &path, key, &works, |cards| {
                    let (newer, older) =
                        ((*number < last).then_some(number + 1), (*number > 1).then_some(number - 1));
                    renderer
                        .theme
                        .render("works.html", context! { works => Serde(&cards), number, newer, older })
                })
            })
            .collect();
        for ((number, chunk), page) in pages.iter().zip(rendered) {
            if let Some(page) = self.take(page)? {
                self.place(&format!("/works/{number}/"), &format!("works/{number}/index.html"), &page);
                self.sitemap.push((format!("/works/{number}/"), Site::updated(*chunk)));
            }
        }
        Ok(())
    }

    fn texts(&mut self) -> Result<(), Failure> {
        let texts = pages::render(self.renderer.config, self.renderer.theme, &mut self.problems)?;
        for text in &texts {
            let page = self.renderer.html(&text.path, &text.html);
            if let Some(page) = self.take(page)? {
                self.place(&text.path, &text.path[1..], &page);
                self.sitemap.push((text.path.clone(), Some(text.updated)));
            }
        }
        self.texts = texts;
        Ok(())
    }

    /// The pages of members and moderators.
    fn desks(&mut self) -> Result<(), Failure> {
        for name in ["submit", "review"] {
            let path = format!("/{name}.html");
            let page = self.renderer.theme.render(&path[1..], context! {});
            let page = page.map_err(Failure::from).and_then(|html| self.renderer.html(&path, &html));
            if let Some(page) = self.take(page)? {
                self.place(&path, &path[1..], &page);
            }
        }
        self.sitemap.push(("/submit.html".to_owned(), None));
        Ok(())
    }

    /// The pages for answers that are not 200, on both origins.
    fn errors(&mut self) -> Result<(), Failure> {
        for status in [404, 410] {
            let own = self.renderer.theme.render(&format!("{status}.html"), context! {});
            let path = format!("/{status}.html");
            let own = own.map_err(Failure::from).and_then(|html| self.renderer.html(&path, &html));
            if let Some(page) = self.take(own)? {
                self.place(&path, &path[1..], &page);
            }
            let framed = self.renderer.theme.render("content-error.html", context! { status });
            let framed = framed
                .map_err(Failure::from)
                .and_then(|html| self.renderer.writer.put(html.as_bytes()).map_err(Failure::from));
            if let Some(digest) = self.take(framed)? {
                self.content.file(&path[1..], digest).unwrap_or_else(|p| self.problems.push(p));
            }
        }
        let empty = self.renderer.writer.put(b"")?;
        for (creator, slug) in &self.works.gone {
            let path = format!("gone/{creator}/{slug}");
            for tree in [&mut self.site, &mut self.content] {
                tree.file(&path, empty).unwrap_or_else(|p| self.problems.push(p));
            }
        }
        Ok(())
    }

    fn creators(&mut self) -> Result<(), Failure> {
        for page in works::creators(self.renderer, self.works) {
            if let Some(CreatorPage { creator, page, updated }) = self.take(page)? {
                self.place(&format!("/{creator}/"), &format!("{creator}/index.html"), &page);
                self.sitemap.push((format!("/{creator}/"), Some(updated)));
            }
        }
        Ok(())
    }

    fn place_units(&mut self, units: Vec<Result<Unit, Failure>>) -> Result<(), Failure> {
        let works = self.works;
        for (entry, unit) in works.entries.iter().zip(units) {
            let path = entry.work.path();
            let place = path.trim_matches('/');
            if let Some(unit) = self.take(unit)? {
                for (tree, (digest, files)) in
                    [(&mut self.site, unit.site), (&mut self.content, unit.content)]
                {
                    tree.dir(place, digest, files).unwrap_or_else(|p| self.problems.push(p));
                }
                self.pages.insert(path.clone(), Arc::new(unit.page.anchors));
                self.sitemap.push((path, Some(entry.work.updated)));
            }
        }
        self.problems.sort_unstable();
        self.problems.dedup();
        Ok(())
    }

    /// Assets, feeds and the other files for programs.
    fn files(&mut self) -> Result<(), Failure> {
        let Renderer { config, writer, theme, .. } = *self.renderer;
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        for asset in theme.assets() {
            files.push((format!("assets/{}", asset.published), asset.bytes.clone()));
        }
        files.extend(
            feeds::works_js(self.works).into_iter().map(|(name, bytes)| (format!("data/{name}"), bytes)),
        );
        files.push(("rss.xml".to_owned(), feeds::rss(config, self.works)?));
        files.extend(feeds::sitemap(config, &self.sitemap)?);
        files.push(("robots.txt".to_owned(), feeds::robots(config).into_bytes()));
        files.push((".well-known/security.txt".to_owned(), feeds::security_txt(config).into_bytes()));
        // Sources for everyone: the attacks that the runner is tried with, the work's end of the bridge and its types.
        for file in ["runner/src/python-test-suite.py", "theme/tf.js", "theme/types/tf.d.ts"] {
            let name = file.rsplit('/').next().unwrap_or(file);
            files.push((format!("src/{name}"), read_text(&config.source.join(file))?.into_bytes()));
        }
        files.push(("schema/work.schema.json".to_owned(), catalog::manifest::SCHEMA.as_bytes().to_vec()));
        for (path, bytes) in files {
            let compressible = !matches!(
                Path::new(&path).extension().and_then(|e| e.to_str()),
                Some("png" | "woff2" | "webp")
            );
            let placed = if compressible {
                self.renderer.text(&format!("/{path}"), &bytes)?.place(&mut self.site, &path)
            } else {
                self.site.file(&path, writer.put(&bytes)?)
            };
            placed.unwrap_or_else(|problem| self.problems.push(problem));
        }
        Ok(())
    }

    /// Every link of every page must be answered, and every anchor be there.
    fn check_links(&mut self) {
        // A work must be able to go, whoever links to it: what its creator had is not missed.
        let left_out = self.left_out.iter().filter_map(|d| d.file.to_str()?.split('/').nth(1));
        let gone = self.works.gone.iter().map(|(creator, _)| creator.as_str());
        let missed =
            |link: &str| !left_out.clone().chain(gone.clone()).any(|c| link.split('/').nth(1) == Some(c));
        let mut broken: Vec<(&str, &str)> = Vec::new();
        for (path, anchors) in &self.pages {
            for link in &anchors.links {
                if !self.leads_somewhere(path, link) && missed(link) {
                    broken.push((link, path));
                }
            }
        }
        broken.sort_unstable();
        broken.dedup_by_key(|(link, _)| *link);
        let found = broken.into_iter().map(|(link, path)| self.broken_link(path, link)).collect::<Vec<_>>();
        self.problems.extend(found);
    }

    fn leads_somewhere(&self, from: &str, link: &str) -> bool {
        let (path, anchor) = link.split_once('#').map_or((link, None), |(p, a)| (p, Some(a)));
        let path = path.split('?').next().unwrap_or(path);
        let page = if path.is_empty() { from.into() } else { html::resolved(from, path) };
        if &*page == BESIDE {
            return anchor.is_none();
        }
        if !self.site.serves(&page[1..]) {
            return false;
        }
        anchor.is_none_or(|a| self.pages.get(&*page).is_some_and(|p| p.ids.iter().any(|id| id == a)))
    }

    /// Names the source that wrote the link, as near as it can be told.
    fn broken_link(&self, page: &str, link: &str) -> Diagnostic {
        let message = format!("link to {link:?}, which is not on the site (seen on {page})");
        let own = self.texts.iter().filter(|t| t.path == page).map(|t| (t.file.as_path(), t.text.as_str()));
        let theme = self.renderer.theme.sources();
        let diagnostic = match locate(own.chain(theme), link) {
            Some((file, text, at)) => Diagnostic::at_byte(file, text, at, message),
            None => Diagnostic::file(page, message, ""),
        };
        diagnostic.hint("mend the path or the anchor, or add the page")
    }
}

/// The tags that most works have, with their counts.
fn popular_tags(entries: &[Entry]) -> Vec<Value> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for tag in entries.iter().flat_map(|e| &e.card.tags) {
        *counts.entry(tag.as_str()).or_default() += 1;
    }
    let mut tags: Vec<(&str, usize)> = counts.into_iter().collect();
    tags.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    tags.into_iter().take(24).map(|(tag, count)| context! { tag, count }).collect()
}

/// Writes both trees under one root and returns its name.
fn write(data: &Data, writer: &Writer<'_>, site: &Folder, content: &Folder) -> Result<Digest, Failure> {
    let before = data.live()?.and_then(|live| data.directories.read(&live).ok());
    let previous = |name| before.as_ref().and_then(|directory| directory.sub(name));
    let mut root = Directory::default();
    root.dir("content", content.write(data, writer, previous("content"))?);
    root.dir("site", site.write(data, writer, previous("site"))?);
    Ok(writer.directory(&root, None)?)
}

/// Links the assets of a tree beside those of earlier ones, so that a page fetched before a swap finds them after it.
/// One that is not the stored object any more is replaced.
fn keep_assets(data: &Data, site: &Folder) -> Result<(), Failure> {
    let folder = data.path(KEPT_ASSETS);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (name, digest) in site.files_in("assets") {
        let (path, new) = (folder.join(name), folder.join(format!(".{name}")));
        let inode = |path: &Path| std::fs::metadata(path).map(|m| m.ino()).ok();
        if inode(&path).is_none_or(|i| Some(i) != inode(&data.objects.path(digest))) {
            let _ = std::fs::remove_file(&new);
            data.objects.link(digest, &new)?;
            std::fs::rename(&new, &path).with_context(|| format!("cannot replace {}", path.display()))?;
        }
    }
    Ok(())
}
