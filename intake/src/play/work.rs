//! What is played: a page, and beside it its sidecar and its function, found at a path.
//!
//! Called by `intake play` with what a creator names, and by the server with the files that passed. A zip is unpacked by
//! the gate for zips into a folder that ends with the work. What is wrong with a file is for `intake check` to say.

use std::fs;
use std::path::{Path, PathBuf};

use catalog::Manifest;
use tempfile::TempDir;

use crate::submission::{Submission, is_zip};

/// A page to be played.
#[derive(Debug)]
pub struct Work {
    /// Its file, as the creator knows it.
    pub(super) name: String,
    pub(super) html: String,
    pub(super) manifest: Option<Manifest>,
    /// The file of its function, if the sidecar names one.
    pub(super) function: Option<PathBuf>,
    _unpacked: Option<TempDir>,
}

/// Why there is nothing to be played.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A file.
    #[error("cannot read {path}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A folder or a zip.
    #[error("there is no file that ends in .html in {0}")]
    NoPage(PathBuf),
    /// A file that `check` finds something in.
    #[error("{path} cannot be used ({why}); `intake check` says what to mend")]
    Unfit {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

impl Work {
    /// The work at a path: a page, a folder with one, or a zip.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let cannot = |source| OpenError::Read { path: path.to_owned(), source };
        if path.is_dir() {
            return Self::beside(&page_in(path)?);
        }
        let bytes = fs::read(path).map_err(cannot)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !is_zip(&name, &bytes) {
            return Self::beside(path);
        }
        let folder = tempfile::tempdir().map_err(cannot)?;
        for file in Submission::from_zip(&name, &bytes).files() {
            fs::write(folder.path().join(&file.name), &file.bytes).map_err(cannot)?;
        }
        let page = page_in(folder.path()).map_err(|_| OpenError::NoPage(path.to_owned()))?;
        Ok(Self { _unpacked: Some(folder), ..Self::beside(&page)? })
    }

    /// A page with nothing beside it.
    pub fn alone(name: &str, html: &str) -> Self {
        Self { name: name.to_owned(), html: html.to_owned(), manifest: None, function: None, _unpacked: None }
    }

    /// The work of a page, with what stands beside it.
    fn beside(page: &Path) -> Result<Self, OpenError> {
        let unfit = |path: &Path, why: String| OpenError::Unfit { path: path.to_owned(), why };
        let bytes = read(page)?;
        let html = String::from_utf8(bytes).map_err(|e| unfit(page, e.to_string()))?;
        let folder = page.parent().unwrap_or(Path::new(""));
        let sidecar = folder.join("work.json");
        let manifest = match fs::read(&sidecar) {
            Ok(bytes) => Some(Manifest::parse(&bytes).map_err(|e| unfit(&sidecar, e.to_string()))?),
            Err(_) => None,
        };
        let named = manifest.as_ref().and_then(|m| m.capabilities.python_backend.as_ref());
        let function = named.map(|name| folder.join(name.as_str()));
        if let Some(function) = &function {
            read(function)?;
        }
        let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, html, manifest, function, _unpacked: None })
    }

    /// The file of the function that the page calls.
    pub fn function(&self) -> Option<&Path> {
        self.function.as_deref()
    }

    /// The size of its frame.
    pub(super) fn size(&self) -> (u16, u16) {
        let view = self.manifest.as_ref().and_then(|manifest| manifest.view);
        view.map_or((800, 600), |view| (view.width.into(), view.height.into()))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, OpenError> {
    fs::read(path).map_err(|source| OpenError::Read { path: path.to_owned(), source })
}

/// The page of a folder, as [`crate::submission`] chooses it.
pub fn page_in(folder: &Path) -> Result<PathBuf, OpenError> {
    let entries =
        fs::read_dir(folder).map_err(|source| OpenError::Read { path: folder.to_owned(), source })?;
    let is_page = |path: &PathBuf| {
        path.extension().is_some_and(|e| e.eq_ignore_ascii_case("html") || e.eq_ignore_ascii_case("htm"))
    };
    let mut pages: Vec<_> = entries.filter_map(|e| Some(e.ok()?.path())).filter(is_page).collect();
    pages.sort_by_key(|page| (page.file_name() != Some("index.html".as_ref()), page.clone()));
    pages.into_iter().next().ok_or_else(|| OpenError::NoPage(folder.to_owned()))
}
