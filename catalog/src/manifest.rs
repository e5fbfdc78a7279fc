//! The sidecar of a work: `work.json`, what the creator says about it and what it needs.
//!
//! `catalog/schema/work.schema.json` is the same shape as a JSON Schema for editors and for the intake; a test holds
//! the two together. How long a title may be, or how large a file, is policy and checked where works are taken in.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Day;
use crate::slug::{PictureName, PythonName, Slug};

/// The published JSON Schema of the sidecar.
pub const SCHEMA: &str = include_str!("../schema/work.schema.json");

/// A sidecar. Every key but `id` may be left out; an unknown key is an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The slug of the work, unique for its creator.
    pub id: Slug,
    /// What the work is called, shown as written. Default: the slug in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// One plain sentence.
    #[serde(default)]
    pub summary: String,
    /// A few paragraphs of Markdown.
    #[serde(default)]
    pub description: String,
    /// How it is played.
    #[serde(default)]
    pub controls: String,
    /// Words to find it by, each a slug.
    #[serde(default)]
    pub tags: Vec<Slug>,
    /// An SPDX expression or a sentence.
    #[serde(default)]
    pub license: String,
    /// The day of its first version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<Day>,
    /// Whether it keeps to the smaller cap.
    #[serde(default)]
    pub tinyjam: bool,
    /// Its natural size; the page scales the frame to fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<View>,
    /// A picture for the catalogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cover: Option<Cover>,
    /// What it may be given.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// For a rule of the intake that may be explained: why the work needs it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub explain: BTreeMap<String, String>,
}

/// A size in CSS pixels, 16 to 4096 each way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct View {
    /// Pixels across.
    pub width: ViewSide,
    /// Pixels down.
    pub height: ViewSide,
}

/// One side of a view, in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "u16", try_from = "u16")]
pub struct ViewSide(u16);

impl TryFrom<u16> for ViewSide {
    type Error = String;

    fn try_from(pixels: u16) -> Result<Self, String> {
        if (16..=4096).contains(&pixels) {
            Ok(Self(pixels))
        } else {
            Err(format!("{pixels} pixels is outside 16 to 4096"))
        }
    }
}

impl From<ViewSide> for u16 {
    fn from(side: ViewSide) -> Self {
        side.0
    }
}

/// A picture and what it shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cover {
    /// The picture beside the sidecar.
    pub file: PictureName,
    /// What a person who does not see it is told.
    #[serde(default)]
    pub alt: String,
}

/// What a work declares that it needs. Everything it leaves out is denied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capabilities {
    /// Sound.
    #[serde(default)]
    pub audio: bool,
    /// The whole screen.
    #[serde(default)]
    pub fullscreen: bool,
    /// Pointer movement beyond the edge of the screen.
    #[serde(default)]
    pub pointer_lock: bool,
    /// Saves.
    #[serde(default)]
    pub save_api: bool,
    /// The file with the Python function of the pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python_backend: Option<PythonName>,
}

impl Capabilities {
    /// The keys of what is declared, in the order of the struct.
    pub fn declared(&self) -> impl Iterator<Item = &'static str> {
        [
            ("audio", self.audio),
            ("fullscreen", self.fullscreen),
            ("pointer_lock", self.pointer_lock),
            ("save_api", self.save_api),
            ("python_backend", self.python_backend.is_some()),
        ]
        .into_iter()
        .filter_map(|(key, on)| on.then_some(key))
    }
}

/// Where and why a sidecar is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ManifestError {
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub col: usize,
    /// RFC 6901 pointer to the value, empty for the document.
    pub pointer: String,
    /// What is wrong and what is expected.
    pub message: String,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.col)?;
        if !self.pointer.is_empty() {
            write!(f, "{}: ", self.pointer)?;
        }
        f.write_str(&self.message)
    }
}

impl Manifest {
    /// Reads a sidecar.
    pub fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        let mut json = serde_json::Deserializer::from_slice(bytes);
        let manifest = serde_path_to_error::deserialize(&mut json).map_err(|e| {
            let pointer = pointer(e.path());
            positioned(e.into_inner(), pointer)
        })?;
        json.end().map_err(|e| positioned(e, String::new()))?;
        Ok(manifest)
    }

    /// The title, made of the slug where none is given.
    pub fn title(&self) -> String {
        self.title.clone().filter(|t| !t.trim().is_empty()).unwrap_or_else(|| self.id.to_title())
    }
}

fn positioned(error: serde_json::Error, pointer: String) -> ManifestError {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let message = text.strip_suffix(&place).unwrap_or(&text).to_owned();
    ManifestError { line: error.line().max(1), col: error.column().max(1), pointer, message }
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let mut text = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => text.push_str(&format!("/{index}")),
            Segment::Map { key } => text.push_str(&format!("/{}", key.replace('~', "~0").replace('/', "~1"))),
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> jsonschema::Validator {
        jsonschema::validator_for(&serde_json::from_str(SCHEMA).unwrap()).unwrap()
    }

    /// Both readers must agree about `json`; `expected` is in the message of the typed one.
    fn refused(json: &str, expected: &str) {
        let error = Manifest::parse(json.as_bytes()).expect_err(json).to_string();
        assert!(error.contains(expected), "{json}: {error}");
        if let Ok(value) = serde_json::from_str(json) {
            assert!(!schema().is_valid(&value), "the schema accepts {json}");
        }
    }

    fn accepted(json: &str) -> Manifest {
        let value = serde_json::from_str(json).unwrap();
        let errors: Vec<String> = schema().iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{json}: {errors:?}");
        Manifest::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn the_two_published_examples_are_valid() {
        let m = accepted(
            r#"{ "id": "unravel", "capabilities": { "save_api": true, "pointer_lock": false, "fullscreen": false, "audio": true } }"#,
        );
        assert_eq!(m.capabilities.declared().collect::<Vec<_>>(), ["audio", "save_api"]);
        assert_eq!(m.title(), "Unravel");
        let m = accepted(
            r#"{ "id": "text-adventure", "capabilities": { "python_backend": "text-adventure.py" } }"#,
        );
        assert_eq!(m.capabilities.declared().collect::<Vec<_>>(), ["python_backend"]);
    }

    #[test]
    fn every_key() {
        let text = r#"{"id": "a", "title": "A 🙂", "summary": "s", "description": "d", "controls": "c",
            "tags": ["one", "two-three"], "license": "CC0-1.0", "released": "2026-11-30", "tinyjam": true,
            "view": {"width": 640, "height": 400}, "cover": {"file": "cover.png", "alt": "x"},
            "capabilities": {"audio": true, "fullscreen": true, "pointer_lock": true, "save_api": true,
            "python_backend": "a.py"}, "explain": {"storage.local": "guarded"}}"#;
        let manifest = accepted(text);
        let again: Manifest = serde_json::from_str(&serde_json::to_string(&manifest).unwrap()).unwrap();
        assert_eq!(again, manifest);
    }

    #[test]
    fn a_refusal_names_the_place_and_the_value() {
        refused(
            "{\n  \"id\": \"a\",\n  \"colour\": 1}",
            "3:10: /colour: unknown field `colour`, expected one of `id`",
        );
        refused(
            r#"{"id": "a", "tinyjam": "yes"}"#,
            "/tinyjam: invalid type: string \"yes\", expected a boolean",
        );
        refused(r#"{"id": "A b"}"#, "/id: \"A b\" is not a slug: use a-z");
        refused(r"{}", "missing field `id`");
        refused(
            r#"{"id": "a", "view": {"width": 8, "height": 9}}"#,
            "/view/width: 8 pixels is outside 16 to 4096",
        );
        refused(r#"{"id": "a", "tags": ["x", "Y"]}"#, "/tags/1: \"Y\" is not a slug");
        refused(
            r#"{"id": "a", "cover": {"file": "../x.png"}}"#,
            "/cover/file: \"../x.png\" cannot be a file name",
        );
        refused(
            r#"{"id": "a", "cover": {"file": "x.html"}}"#,
            "/cover/file: \"x.html\" cannot be the name of a picture: end it in .png",
        );
        refused(r#"{"id": "a", "released": "soon"}"#, "/released: \"soon\" is not a day");
        refused(
            r#"{"id": "a", "capabilities": {"network": true}}"#,
            "/capabilities/network: unknown field `network`",
        );
        refused(
            r#"{"id": "a", "capabilities": {"python_backend": true}}"#,
            "/capabilities/python_backend: invalid type",
        );
        refused(r#"{"id": "a"} x"#, "1:13: trailing characters");
        refused("[1]", "");
        refused(r#"{"id": "a", "#, "EOF while parsing");
        refused(r#"{"id": "a", "id": "b"}"#.replace("\"id\": \"b\"", "\"i\": 0").as_str(), "unknown field");
    }

    #[test]
    fn a_key_given_twice_is_refused() {
        let error = Manifest::parse(br#"{"id": "a", "id": "b"}"#).unwrap_err();
        assert!(error.message.contains("duplicate field `id`"), "{error}");
    }
}
