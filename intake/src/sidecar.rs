//! The gate for the sidecar: its form, its lengths, its explanations, its covers, and what it declares.
//!
//! `catalog` owns the shape; the limits are policy. Every value that is wrong gets its own finding with a JSON pointer:
//! after an error the value is taken out and the rest is read again.

use catalog::Manifest;
use catalog::manifest::ManifestError;

use crate::cover;
use crate::finding::{Finding, Rule, Severity};
use crate::json;
use crate::rules;
use crate::rules::sidecar::{BACKEND, COVER, EXPLAIN, JSON, LENGTH, VALUE};
use crate::source::{Lines, shorten};
use crate::submission::File;

/// Errors that are looked for one after the other, at most.
const ERRORS: usize = 20;

/// What is often written as a list, and what it has to be.
const LISTS: [(&str, &str); 3] = [
    ("/capabilities", "{ \"audio\": true }"),
    ("/view", "{ \"width\": 640, \"height\": 480 }"),
    ("/explain", "{ \"storage-local\": \"the reason\" }"),
];

/// A sidecar that was read.
#[derive(Debug)]
pub struct Sidecar<'f> {
    file: &'f str,
    text: &'f str,
    /// What it says.
    pub manifest: Manifest,
}

/// Reads a sidecar; if it is not one, the findings say why.
pub fn read(file: &File) -> Result<Sidecar<'_>, Vec<Finding>> {
    let max = policy::limits().work.sidecar_bytes_max;
    if file.bytes.len() as u64 > max {
        let what = format!("{} bytes, more than the {max} allowed", file.bytes.len());
        return Err(vec![Finding::whole(&LENGTH, &file.name, what)]);
    }
    let Ok(text) = std::str::from_utf8(&file.bytes) else {
        return Err(vec![Finding::whole(&JSON, &file.name, "this file is not UTF-8")]);
    };
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    match Manifest::parse(text.as_bytes()) {
        Ok(manifest) => Ok(Sidecar { file: &file.name, text, manifest }),
        Err(error) => Err(errors(&file.name, text, error)),
    }
}

/// The first error, and those behind it.
fn errors(file: &str, text: &str, first: ManifestError) -> Vec<Finding> {
    let Ok(mut value) = serde_json::from_str::<serde_json::Value>(text) else {
        let place = (first.line, first.col);
        return vec![Finding::at(&JSON, file, place, String::new(), first.message)];
    };
    let mut findings = Vec::new();
    for (pointer, example) in LISTS {
        if value.pointer(pointer).is_some_and(serde_json::Value::is_array) && remove(&mut value, pointer) {
            let message = format!("a list, where {example} is meant");
            findings.push(wrong_value(
                file,
                text,
                &ManifestError { pointer: pointer.into(), message, ..first.clone() },
            ));
        }
    }
    let mut error = match Manifest::parse(value.to_string().as_bytes()) {
        Ok(_) => return findings,
        Err(_) if findings.is_empty() => first,
        Err(rest) => rest,
    };
    for _ in 0..ERRORS {
        let is_missing = error.message.starts_with("missing field");
        // What misses a value that was taken out before goes without a word.
        if !is_missing || findings.is_empty() {
            findings.push(wrong_value(file, text, &error));
        }
        if !remove(&mut value, &error.pointer) {
            break;
        }
        match Manifest::parse(value.to_string().as_bytes()) {
            Ok(_) => break,
            Err(next) => error = next,
        }
    }
    findings.sort_by_key(|f| (f.line, f.column));
    findings
}

fn wrong_value(file: &str, text: &str, error: &ManifestError) -> Finding {
    let range = json::locate(text, &error.pointer);
    let place = range.as_ref().map_or((error.line, error.col), |r| Lines::of(text).place(r.start));
    let excerpt = range.and_then(|r| text.get(r)).map(shorten).unwrap_or_default();
    let pointer = if error.pointer.is_empty() { "the whole file" } else { &error.pointer };
    let message =
        error.message.replace("expected u16", "expected a whole number").replace("a sequence", "a list");
    Finding::at(&VALUE, file, place, excerpt, format!("{pointer}: {message}"))
}

/// Takes the value at `pointer` out, or puts another into the place of an id, which nothing can be without; whether that
/// could be done.
fn remove(value: &mut serde_json::Value, pointer: &str) -> bool {
    if pointer == "/id" || pointer.is_empty() && value.get("id").is_none() {
        return value
            .as_object_mut()
            .is_some_and(|map| map.insert("id".into(), "a".into()).is_none_or(|id| id != "a"));
    }
    let Some((parent, key)) = pointer.rsplit_once('/') else { return false };
    let key = key.replace("~1", "/").replace("~0", "~");
    match value.pointer_mut(parent) {
        Some(serde_json::Value::Object(map)) => map.remove(&key).is_some(),
        Some(serde_json::Value::Array(items)) => match key.parse::<usize>() {
            Ok(index) if index < items.len() => {
                items.remove(index);
                true
            }
            _ => false,
        },
        _ => false,
    }
}

impl Sidecar<'_> {
    /// A finding about the value at `pointer`.
    pub fn at(&self, rule: &'static Rule, pointer: &str, what: impl Into<String>) -> Finding {
        let range = json::locate(self.text, pointer);
        let place = range.as_ref().map_or((1, 1), |r| Lines::of(self.text).place(r.start));
        let excerpt = range.and_then(|r| self.text.get(r)).map(shorten).unwrap_or_default();
        Finding::at(rule, self.file, place, excerpt, format!("{pointer}: {}", what.into()))
    }

    /// Checks everything that the shape does not say. `files` are the files beside the sidecar.
    pub fn check(&self, files: &[File]) -> Vec<Finding> {
        let mut findings = self.lengths();
        findings.extend(self.covers(files));
        findings.extend(self.backend(files));
        for rule in self.manifest.explain.keys() {
            let pointer = format!("/explain/{}", rule.replace('~', "~0").replace('/', "~1"));
            match rules::find(rule) {
                Some(known) if known.severity == Severity::Reject => {
                    findings.push(self.at(&EXPLAIN, &pointer, "no reason is accepted for this rule"));
                }
                Some(_) => {}
                None => findings.push(self.at(&EXPLAIN, &pointer, "there is no rule of this id")),
            }
        }
        findings
    }

    fn lengths(&self) -> Vec<Finding> {
        let limits = &policy::limits().work;
        let manifest = &self.manifest;
        let chars = |text: &str| text.chars().count();
        let mut findings = Vec::new();
        let title = manifest.title.as_deref().unwrap_or_default();
        for (pointer, length, max, unit) in [
            ("/title", chars(title), limits.title_chars_max, "characters"),
            ("/summary", chars(&manifest.summary), limits.summary_chars_max, "characters"),
            ("/description", manifest.description.len(), limits.description_bytes_max, "bytes"),
            ("/controls", manifest.controls.len(), limits.description_bytes_max, "bytes"),
            ("/license", chars(&manifest.license), limits.summary_chars_max, "characters"),
            ("/tags", manifest.tags.len(), limits.tags_max, "tags"),
        ] {
            if length > max {
                findings.push(self.at(
                    &LENGTH,
                    pointer,
                    format!("{length} {unit}, more than the {max} allowed"),
                ));
            }
        }
        for (index, tag) in manifest.tags.iter().enumerate() {
            if chars(tag.as_str()) > limits.tag_chars_max {
                let what = format!("a tag of more than {} characters", limits.tag_chars_max);
                findings.push(self.at(&LENGTH, &format!("/tags/{index}"), what));
            }
        }
        findings
    }

    fn covers(&self, files: &[File]) -> Option<Finding> {
        let cover = self.manifest.cover.as_ref()?;
        let name = cover.file.as_str();
        let what = match files.iter().find(|f| f.name == name) {
            Some(file) => cover::problem(&file.bytes)?,
            None => format!("the picture {name} is not there"),
        };
        Some(self.at(&COVER, "/cover/file", what))
    }

    fn backend(&self, files: &[File]) -> Option<Finding> {
        let python = files.iter().find(|f| f.name.ends_with(".py"));
        match (&self.manifest.capabilities.python_backend, python) {
            (Some(name), _) if !files.iter().any(|f| f.name == name.as_str()) => {
                let what = format!("the file {} is not there", name.as_str());
                Some(self.at(&BACKEND, "/capabilities/python_backend", what))
            }
            (None, Some(file)) => {
                let what = format!(
                    "this file is there, but capabilities.python_backend of {} does not name it",
                    self.file
                );
                Some(Finding::whole(&BACKEND, &file.name, what))
            }
            _ => None,
        }
    }
}
