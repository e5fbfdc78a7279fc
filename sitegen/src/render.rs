//! From a page's inputs to its objects: reused where the inputs are the same, rendered and compressed where not.

use std::cell::RefCell;

use anyhow::Context as _;
use catalog::live::Writer;
use catalog::{Data, Digest};
use libdeflater::{CompressionLvl, Compressor};
use policy::Config;

use crate::cache::{Cache, Page};
use crate::diagnostic::{Diagnostic, Failure};
use crate::html::Anchors;
use crate::output::Folder;
use crate::theme::Theme;

/// A gzip sibling is made only if it saves at least this many bytes: fewer do not save a packet.
const GZIP_SAVES_BYTES_MIN: usize = 128;

/// Everything that rendering needs, shared by all pages of one publish.
pub(crate) struct Renderer<'a> {
    /// The installation.
    pub(crate) config: &'a Config,
    /// Its data folder.
    pub(crate) data: &'a Data,
    /// The right to write there.
    pub(crate) writer: &'a Writer<'a>,
    /// The theme.
    pub(crate) theme: &'a Theme,
    /// Earlier pages.
    pub(crate) cache: &'a Cache,
}

impl Renderer<'_> {
    /// The key of a page made by `template` from `inputs`: with the same key it would come out the same.
    pub(crate) fn key(&self, template: &str, inputs: impl IntoIterator<Item = Digest>) -> Digest {
        let Config { site, content, contact, .. } = self.config;
        let mut all = format!(
            "{}\n{site}\n{content}\n{contact}\n{}\n",
            env!("SITEGEN_BUILD"),
            self.theme.closure(template)
        );
        for input in inputs {
            all.push_str(&input.to_string());
        }
        Digest::of(all.as_bytes())
    }

    /// The page at `path` (as requested: `/about.html`, `/moth/`), rendered if it was not made from this key before.
    pub(crate) fn page(
        &self,
        path: &str,
        key: Digest,
        render: impl FnOnce() -> Result<String, Diagnostic>,
    ) -> Result<Page, Failure> {
        match self.cache.get(self.data, path, &key) {
            Some(page) => Ok(page),
            None => {
                let html = render()?;
                self.keep(path, key, html.as_bytes(), Anchors::of(&html))
            }
        }
    }

    /// A page that is cheap to render: only its compression is reused.
    pub(crate) fn html(&self, path: &str, html: &str) -> Result<Page, Failure> {
        self.page(path, Digest::of(html.as_bytes()), || Ok(html.to_owned()))
    }

    /// Any other text file.
    pub(crate) fn text(&self, path: &str, bytes: &[u8]) -> Result<Page, Failure> {
        let key = Digest::of(bytes);
        match self.cache.get(self.data, path, &key) {
            Some(page) => Ok(page),
            None => self.keep(path, key, bytes, Anchors::default()),
        }
    }

    fn keep(&self, path: &str, key: Digest, bytes: &[u8], anchors: Anchors) -> Result<Page, Failure> {
        let plain = self.writer.put(bytes)?;
        let gzip = gzip(bytes)?.map(|g| self.writer.put(&g)).transpose()?;
        let page = Page { plain, gzip, anchors };
        self.cache.put(path, key, &page);
        Ok(page)
    }
}

impl Page {
    /// Puts the page and its gzip sibling at a path of a tree.
    pub(crate) fn place(&self, folder: &mut Folder, path: &str) -> Result<(), Diagnostic> {
        folder.file(path, self.plain)?;
        match self.gzip {
            Some(gzip) => folder.file(&format!("{path}.gz"), gzip),
            None => Ok(()),
        }
    }
}

/// RFC 1952 at level 9, without a time or a name, so that it depends on the bytes alone; `None` if not worth it.
fn gzip(bytes: &[u8]) -> anyhow::Result<Option<Vec<u8>>> {
    thread_local! {
        static COMPRESSOR: RefCell<Compressor> = RefCell::new(Compressor::new(CompressionLvl::new(9).unwrap_or_default()));
    }
    COMPRESSOR.with_borrow_mut(|compressor| {
        let mut out = vec![0; compressor.gzip_compress_bound(bytes.len())];
        let length = compressor.gzip_compress(bytes, &mut out).context("cannot compress a page")?;
        out.truncate(length);
        Ok((length + GZIP_SAVES_BYTES_MIN <= bytes.len()).then_some(out))
    })
}
