//! A submission as a whole: its files, wherever they come from, and the gates in their order.
//!
//! The command line opens a path, the server hands over an upload; from then on it is the same code with the same
//! answer. A gate that cannot be asked (bandit is not installed) does not pass: the submission is *held*.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;

use catalog::Digest;
use policy::Capability;
use serde::Serialize;

use crate::archive;
use crate::document;
use crate::finding::{Finding, Severity};
use crate::python::bandit::{Bandit, Lint};
use crate::rules::archive::{EXTRA, LINK, PAGE, RENAMED};
use crate::rules::document::{UNDECLARED, UNUSED};
use crate::rules::page::LOCAL_SHIMMED;
use crate::rules::sidecar::ABSENT;
use crate::sidecar::{self, Sidecar};

/// A file of a submission.
#[derive(Debug, Clone)]
pub struct File {
    /// Its name, without a folder.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// What is submitted.
#[derive(Debug)]
pub struct Submission {
    name: String,
    files: Vec<File>,
    findings: Vec<Finding>,
    /// One file alone is checked for itself; a folder and a zip must be complete.
    is_whole: bool,
}

/// What the gates say.
#[derive(Debug, Serialize)]
pub struct Report {
    /// What was checked.
    pub submission: String,
    /// What follows from the findings.
    pub verdict: Verdict,
    /// Why the submission is held, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// The files that would be published, with size and digest.
    pub files: Vec<Published>,
    /// The capabilities that the page uses.
    pub uses: Vec<Capability>,
    /// Everything that was found, in the order of the gates.
    pub findings: Vec<Finding>,
}

/// A file that would be published.
#[derive(Debug, Serialize)]
pub struct Published {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: usize,
    /// Its SHA-256.
    pub sha256: String,
}

/// What follows from the findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing stands against it.
    Accepted,
    /// Something must be mended or explained.
    Rejected,
    /// A gate could not be asked.
    Held,
}

/// A submission that cannot be read from disk.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}")]
pub struct OpenError {
    path: String,
    source: std::io::Error,
}

impl Submission {
    /// Reads a file, a folder or a zip.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let name = path.display().to_string();
        let read = |path: &Path| Self::open_unnamed(path);
        let mut submission = read(path).map_err(|source| OpenError { path: name.clone(), source })?;
        submission.name = name;
        Ok(submission)
    }

    fn open_unnamed(path: &Path) -> std::io::Result<Self> {
        if path.is_dir() {
            return Self::open_folder(path);
        }
        let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let bytes = read_bounded(path)?;
        if is_zip(&name, &bytes) {
            return Ok(Self::from_zip(&name, &bytes));
        }
        Ok(Self {
            name: name.clone(),
            files: vec![File { name, bytes }],
            findings: Vec::new(),
            is_whole: false,
        })
    }

    fn open_folder(path: &Path) -> std::io::Result<Self> {
        let mut entries = fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        let mut files = Vec::new();
        let mut findings = Vec::new();
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type()?;
            if kind.is_symlink() {
                findings.push(Finding::whole(&LINK, &name, "a symbolic link; put the file itself here"));
            } else if kind.is_file() && !name.starts_with('.') {
                files.push(File { name, bytes: read_bounded(&entry.path())? });
            }
        }
        Ok(Self { name: path.display().to_string(), files, findings, is_whole: true })
    }

    /// A zip in memory.
    pub fn from_zip(name: &str, bytes: &[u8]) -> Self {
        let unpacked = archive::unpack(name, bytes);
        Self { name: name.to_owned(), files: unpacked.files, findings: unpacked.findings, is_whole: true }
    }

    /// An upload: the payload (a page or a zip) and the files that were sent with it.
    pub fn from_upload(payload: File, others: Vec<File>) -> Self {
        let mut submission = if is_zip(&payload.name, &payload.bytes) {
            Self::from_zip(&payload.name, &payload.bytes)
        } else {
            Self { name: payload.name.clone(), files: vec![payload], findings: Vec::new(), is_whole: true }
        };
        submission.files.extend(others);
        submission
    }

    /// The files, as far as they could be read.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// Runs every gate; the program bandit is asked about a Python function.
    pub fn check(self, bandit: &Bandit) -> Report {
        self.check_with(&|name, source| bandit.lint(name, source))
    }

    /// Runs every gate; `lint` is asked about a Python function. A server that keeps bandit warm in a process of its
    /// own hands over what it said, read by [`crate::python::bandit::read`].
    pub fn check_with(self, lint: &dyn Fn(&str, &[u8]) -> Lint) -> Report {
        let mut findings = self.findings.clone();
        let mut held = None;
        let mut uses = BTreeMap::new();
        let page = self.page(&mut findings);
        let sidecar = self.sidecar(&mut findings);
        let manifest = sidecar.as_ref().map(|s| &s.manifest);
        if let Some(sidecar) = &sidecar {
            findings.extend(sidecar.check(&self.files));
        }
        if let Some(page) = page {
            let work = &policy::limits().work;
            let is_tinyjam = manifest.is_some_and(|m| m.tinyjam);
            let max = if is_tinyjam { work.tinyjam_bytes_max } else { work.html_bytes_max };
            let outcome = document::check(&page.name, &page.bytes, max);
            let is_shimmed = outcome.findings.iter().any(|f| f.rule.id == LOCAL_SHIMMED.id);
            findings.extend(outcome.findings);
            uses = outcome.uses;
            if let Some(sidecar) = &sidecar {
                findings.extend(capabilities(&page.name, sidecar, &uses, is_shimmed));
            }
        }
        for file in self.files.iter().filter(|f| f.name.ends_with(".py")) {
            let gate = crate::python::check(&file.name, &file.bytes, lint);
            findings.extend(gate.findings);
            held = held.or(gate.held);
        }
        if let Some(manifest) = manifest {
            explain(&mut findings, &manifest.explain);
        }
        let files = self.published(page, sidecar.as_ref(), &mut findings);
        let verdict = verdict(&findings, held.is_some());
        Report { submission: self.name, verdict, held, files, uses: uses.into_keys().collect(), findings }
    }

    /// The one page.
    fn page(&self, findings: &mut Vec<Finding>) -> Option<&File> {
        let is_page = |f: &&File| {
            let name = f.name.to_ascii_lowercase();
            name.ends_with(".html") || name.ends_with(".htm")
        };
        let pages: Vec<&File> = self.files.iter().filter(is_page).collect();
        match pages.as_slice() {
            [] if !self.is_whole && self.files.iter().any(|f| has_own_gate(&f.name)) => None,
            [] if !self.is_whole => self.files.first(),
            [] if findings.iter().any(|f| f.severity == Severity::Reject) => None,
            [] => {
                let others: Vec<&str> = self.files.iter().map(|f| f.name.as_str()).take(8).collect();
                let what = format!("there is no file that ends in .html among: {}", others.join(", "));
                findings.push(Finding::whole(&PAGE, &self.name, what));
                None
            }
            [page] => {
                if self.is_whole && page.name != "index.html" {
                    let what = format!("{} is published as index.html", page.name);
                    findings.push(Finding::whole(&RENAMED, &page.name, what));
                }
                Some(page)
            }
            [first, ..] => {
                let names: Vec<&str> = pages.iter().map(|f| f.name.as_str()).take(8).collect();
                let what = format!("there are {} pages: {}", pages.len(), names.join(", "));
                findings.push(Finding::whole(&PAGE, &self.name, what));
                pages.iter().find(|f| f.name == "index.html").copied().or(Some(first))
            }
        }
    }

    fn sidecar(&self, findings: &mut Vec<Finding>) -> Option<Sidecar<'_>> {
        let named = self.files.iter().find(|f| f.name == "work.json");
        let file = named.or_else(|| self.files.iter().find(|f| f.name.ends_with(".json")));
        let Some(file) = file else {
            if self.is_whole && !findings.iter().any(|f| f.severity == Severity::Reject) {
                findings.push(Finding::whole(&ABSENT, &self.name, "there is no work.json beside the page"));
            }
            return None;
        };
        match sidecar::read(file) {
            Ok(sidecar) => Some(sidecar),
            Err(errors) => {
                findings.extend(errors);
                None
            }
        }
    }

    /// The files that would be published; what is left over is said.
    fn published(
        &self,
        page: Option<&File>,
        sidecar: Option<&Sidecar<'_>>,
        findings: &mut Vec<Finding>,
    ) -> Vec<Published> {
        let manifest = sidecar.map(|s| &s.manifest);
        let backend = manifest.and_then(|m| m.capabilities.python_backend.as_ref()).map(|name| name.as_str());
        let cover = manifest.and_then(|m| m.cover.as_ref()).map(|cover| cover.file.as_str());
        let mut published = Vec::new();
        for file in &self.files {
            let is_page = page.is_some_and(|p| std::ptr::eq(p, file));
            let is_named = [backend, cover].into_iter().flatten().any(|name| name == file.name);
            if is_page || is_named || file.name.ends_with(".json") || file.name.ends_with(".py") {
                let sha256 = Digest::of(&file.bytes).to_string();
                published.push(Published { name: file.name.clone(), bytes: file.bytes.len(), sha256 });
            } else if self.is_whole {
                let what = format!("{} is not published", file.name);
                findings.push(Finding::whole(&EXTRA, &file.name, what));
            }
        }
        published
    }
}

fn has_own_gate(name: &str) -> bool {
    name.ends_with(".py") || name.ends_with(".json")
}

/// A file that is to be opened as an archive: it calls itself one, or is one.
pub(crate) fn is_zip(name: &str, bytes: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with(".zip") || name.ends_with(".rar") || name.ends_with(".7z") || bytes.starts_with(b"PK")
}

/// Reads a file, but no more of it than any gate takes.
fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(policy::limits().zip.archive_bytes_max + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What is used and not declared, and what is declared and not used. Storage that the shim answers may be saved, and
/// need not.
fn capabilities(
    page: &str,
    sidecar: &Sidecar<'_>,
    uses: &BTreeMap<Capability, (usize, usize)>,
    is_shimmed: bool,
) -> Vec<Finding> {
    let declared: Vec<&str> = sidecar.manifest.capabilities.declared().collect();
    let mut findings = Vec::new();
    for capability in Capability::ALL {
        let key = capability.key();
        let is_declared = declared.contains(&key);
        match uses.get(&capability) {
            Some(place) if !is_declared => {
                let value = if capability == Capability::PythonBackend { "\"FILE.py\"" } else { "true" };
                let what = format!(
                    "the page uses {key}, and work.json does not declare it: \"capabilities\": {{ \"{key}\": {value} }}"
                );
                findings.push(Finding::at(&UNDECLARED, page, *place, String::new(), what));
            }
            None if is_declared && !(is_shimmed && capability == Capability::SaveApi) => {
                let pointer = format!("/capabilities/{key}");
                findings.push(sidecar.at(&UNUSED, &pointer, "declared, but nothing in the page uses it"));
            }
            _ => {}
        }
    }
    findings
}

/// Turns what the sidecar explains into notes.
pub(crate) fn explain(findings: &mut [Finding], explain: &BTreeMap<String, String>) {
    for finding in findings.iter_mut().filter(|f| f.severity == Severity::Explainable) {
        if let Some(words) = explain.get(finding.rule.id).filter(|w| !w.trim().is_empty()) {
            finding.severity = Severity::Note;
            finding.explanation = Some(words.trim().to_owned());
        }
    }
}

fn verdict(findings: &[Finding], is_held: bool) -> Verdict {
    if findings.iter().any(|f| f.severity > Severity::Note) {
        Verdict::Rejected
    } else if is_held {
        Verdict::Held
    } else {
        Verdict::Accepted
    }
}
