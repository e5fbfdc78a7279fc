//! `intake pack`: puts scripts, styles, images, sounds and fonts into the page, and the canonical `tf.js` before them.
//!
//! It edits the page's own text at the places that the parser tells, so everything else stays byte for byte. Packing
//! what is packed changes nothing. What it cannot put inside (modules that import each other, data that is fetched) it
//! says and leaves.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use data_encoding::BASE64;

use crate::address::{Address, classify, normalise};
use crate::css::{self, Found};
use crate::document;
use crate::html::candidates;
use crate::html::tokens::{self, Attr, Event, Start};
use crate::rules::page::LOCAL;
use crate::tf;

/// A packed page.
#[derive(Debug)]
pub struct Packed {
    /// The page.
    pub html: String,
    /// What was done, one sentence each.
    pub done: Vec<String>,
    /// What could not be done, one sentence each.
    pub left: Vec<String>,
}

/// Times that a page is looked at again: a script that was put in can name an image.
const PASSES: usize = 4;

/// Packs the page `html`, whose files lie in `folder`.
pub fn pack(html: &str, folder: &Path) -> Packed {
    let mut packed = Packed { html: html.to_owned(), done: Vec::new(), left: Vec::new() };
    for _ in 0..PASSES {
        let html = once(&packed.html, folder, &mut packed.done, &mut packed.left);
        let is_done = html == packed.html;
        packed.html = html;
        if is_done {
            break;
        }
    }
    let rest = document::check("page", packed.html.as_bytes(), u64::MAX).missing;
    packed.left.extend(rest.iter().map(|file| format!("{file} is not there, or cannot be put inside")));
    for sentences in [&mut packed.left, &mut packed.done] {
        let mut seen = BTreeSet::new();
        sentences.retain(|sentence| seen.insert(sentence.clone()));
    }
    packed
}

fn once(html: &str, folder: &Path, done: &mut Vec<String>, left: &mut Vec<String>) -> String {
    let mut packer = Packer { folder, html, edits: Vec::new(), tail: String::new(), done, left };
    let outcome = document::check("page", html.as_bytes(), u64::MAX);
    let events = tokens::read(html).events;
    for (index, event) in events.iter().enumerate() {
        if let Event::Start(start) = event {
            packer.element(start, &events, index, &outcome.missing);
        }
    }
    let uses_storage = outcome.findings.iter().any(|f| f.rule.id == LOCAL.id);
    packer.tf(&events, uses_storage || html.contains("TF."));
    packer.append(&events);
    packer.apply()
}

struct Packer<'p> {
    folder: &'p Path,
    html: &'p str,
    edits: Vec<(Range<usize>, String)>,
    /// Deferred scripts: they run when the page is read, so they go to its end.
    tail: String,
    done: &'p mut Vec<String>,
    left: &'p mut Vec<String>,
}

impl Packer<'_> {
    fn element(&mut self, start: &Start, events: &[Event], index: usize, missing: &BTreeSet<String>) {
        let end = events.iter().skip(index + 1).find_map(|e| match e {
            Event::End(name, range) if *name == start.name => Some(range.clone()),
            _ => None,
        });
        let end = end.unwrap_or(self.html.len()..self.html.len());
        let inside = start.range.end..end.start;
        match start.name.as_str() {
            "script" if start.get("src").is_some() => return self.script(start, end),
            "script" if start.is_raw => self.literals(inside, missing),
            "style" if start.is_raw => {
                let packed = self.style(self.html.get(inside.clone()).unwrap_or_default(), "");
                self.replace(inside, packed);
            }
            "link"
                if start.get("rel").is_some_and(|r| r.value.to_ascii_lowercase().contains("stylesheet")) =>
            {
                return self.stylesheet(start);
            }
            _ => {}
        }
        for attr in &start.attrs {
            self.attribute(start, attr);
        }
    }

    fn attribute(&mut self, start: &Start, attr: &Attr) {
        let is_file = match (start.name.as_str(), attr.name.as_str()) {
            (
                "img" | "audio" | "video" | "source" | "track" | "input" | "image" | "feimage",
                "src" | "href" | "xlink:href",
            )
            | (_, "poster" | "background")
            | ("link", "href") => true,
            ("img" | "source", "srcset") => {
                let mut value = attr.value.clone();
                for range in candidates(&attr.value).into_iter().rev() {
                    if let Some(data) =
                        attr.value.get(range.clone()).and_then(|address| self.data(address, ""))
                    {
                        value.replace_range(range, &data);
                    }
                }
                return self.set(attr, value);
            }
            (_, "style") => {
                let packed = self.style(&attr.value, "");
                return self.set(attr, packed);
            }
            _ => false,
        };
        if is_file && let Some(data) = self.data(&attr.value, "") {
            self.set(attr, data);
        }
    }

    /// Writes a new value of an attribute, if it is new.
    fn set(&mut self, attr: &Attr, value: String) {
        if value == attr.value {
            return;
        }
        let quote = self.html.as_bytes().get(attr.raw.start.wrapping_sub(1)).copied();
        let value = value.replace('&', "&amp;").replace('"', "&quot;").replace('\'', "&#39;");
        let is_quoted = matches!(quote, Some(b'"' | b'\''));
        self.edits.push((attr.raw.clone(), if is_quoted { value } else { format!("\"{value}\"") }));
    }

    fn replace(&mut self, range: Range<usize>, text: String) {
        if self.html.get(range.clone()) != Some(text.as_str()) {
            self.edits.push((range, text));
        }
    }

    /// `<script src=…>` becomes a script with its text.
    fn script(&mut self, start: &Start, end: Range<usize>) {
        let Some((name, bytes)) = start.get("src").and_then(|src| self.file(&src.value, "")) else { return };
        let Ok(text) = String::from_utf8(bytes) else {
            self.left.push(format!("{name} is not UTF-8"));
            return;
        };
        let mut open = String::from("<script");
        for attr in start
            .attrs
            .iter()
            .filter(|a| !["src", "defer", "async", "integrity", "crossorigin"].contains(&a.name.as_str()))
        {
            open.push_str(&format!(
                " {}=\"{}\"",
                attr.name,
                attr.value.replace('&', "&amp;").replace('"', "&quot;")
            ));
        }
        let text = text
            .trim_start_matches('\u{FEFF}')
            .replace("</script", "<\\/script")
            .replace("</SCRIPT", "<\\/SCRIPT");
        let element = format!("{open}>\n{}\n</script>", text.trim_end());
        self.done.push(format!("put the script {name} into the page"));
        let waits = (start.get("defer").is_some() || start.get("async").is_some())
            && start.get("type").is_none_or(|t| t.value != "module");
        let range = start.range.start..end.end;
        if waits {
            self.tail.push_str(&element);
            self.tail.push('\n');
            self.edits.push((range, String::new()));
        } else {
            self.edits.push((range, element));
        }
    }

    fn stylesheet(&mut self, start: &Start) {
        let Some((name, bytes)) = start.get("href").and_then(|href| self.file(&href.value, "")) else {
            return;
        };
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        let text = self.style(String::from_utf8_lossy(&bytes).trim_start_matches('\u{FEFF}'), &folder);
        let media = start
            .get("media")
            .map_or_else(String::new, |m| format!(" media=\"{}\"", m.value.replace('"', "&quot;")));
        let text = text.replace("</style", "<\\/style");
        self.done.push(format!("put the style sheet {name} into the page"));
        self.edits.push((start.range.clone(), format!("<style{media}>\n{}\n</style>", text.trim_end())));
    }

    /// CSS with its files as data, read from `folder`.
    fn style(&mut self, text: &str, folder: &str) -> String {
        let mut found = Vec::new();
        css::walk(text, &mut |f| {
            if let Found::Address { token, address, import_at } = f {
                found.push((token, address, import_at));
            }
        });
        let mut out = text.to_owned();
        for (token, address, import_at) in found.into_iter().rev() {
            if let Some(at) = import_at {
                let Some((name, bytes)) = self.file(&address, folder) else { continue };
                let end = text[token.end..].find(';').map_or(text.len(), |i| token.end + i + 1);
                let inner_folder = name.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
                let inner = self.style(&String::from_utf8_lossy(&bytes), &inner_folder);
                let query = text[token.end..end].trim_matches([';', ')', ' ', '\n']).to_owned();
                let inner = if query.is_empty() { inner } else { format!("@media {query} {{\n{inner}\n}}") };
                self.done.push(format!("put the style sheet {name} into the one that imports it"));
                out.replace_range(at..end, &inner);
            } else if let Some(data) = self.data(&address, folder) {
                let is_url = text.get(token.clone()).is_some_and(|t| t.starts_with(['u', 'U']));
                out.replace_range(
                    token,
                    &if is_url { format!("url(\"{data}\")") } else { format!("\"{data}\"") },
                );
            }
        }
        out
    }

    /// Names of media files that a script sets as an address.
    fn literals(&mut self, inside: Range<usize>, missing: &BTreeSet<String>) {
        let Some(text) = self.html.get(inside.clone()) else { return };
        let mut packed = text.to_owned();
        for name in missing {
            for quote in ['"', '\'', '`'] {
                let literal = format!("{quote}{name}{quote}");
                if packed.contains(&literal)
                    && let Some(data) = self.data(name, "")
                {
                    packed = packed.replace(&literal, &format!("{quote}{data}{quote}"));
                }
            }
        }
        self.replace(inside, packed);
    }

    /// A file as a `data:` address, if it is an image, a sound, a film or a font that is there.
    fn data(&mut self, address: &str, folder: &str) -> Option<String> {
        let (name, bytes) = self.file(address, folder)?;
        let kind = media_type(&name)?;
        self.done.push(format!("put {name} into the page as data ({} bytes)", bytes.len()));
        Some(format!("data:{kind};base64,{}", BASE64.encode(&bytes)))
    }

    /// The name from the page's folder and the content of a file that an address names, if it lies in that folder.
    fn file(&mut self, address: &str, folder: &str) -> Option<(String, Vec<u8>)> {
        let address = normalise(address);
        let Address::File(file) = classify(&address) else { return None };
        let file = file.split(['?', '#']).next().unwrap_or(file);
        let decoded = String::from_utf8(crate::data::percent(file)).ok()?;
        let mut path = PathBuf::new();
        for part in Path::new(folder).join(decoded.trim_start_matches('/')).components() {
            match part {
                Component::Normal(name) => path.push(name),
                Component::ParentDir if path.pop() => {}
                Component::CurDir => {}
                _ => return None,
            }
        }
        let whole = self.folder.join(&path).canonicalize().ok()?;
        if !whole.starts_with(self.folder.canonicalize().ok()?) || !whole.is_file() {
            return None;
        }
        if std::fs::metadata(&whole).ok()?.len() > policy::limits().work.html_bytes_max {
            self.left.push(format!("{} is larger than a whole work may be", path.display()));
            return None;
        }
        let bytes = std::fs::read(&whole).ok()?;
        Some((path.to_string_lossy().replace('\\', "/"), bytes))
    }

    /// Puts the canonical `tf.js` before the first script, or renews the one that is there.
    fn tf(&mut self, events: &[Event], is_needed: bool) {
        let mut first = None;
        for (index, event) in events.iter().enumerate() {
            let Event::Start(start) = event else { continue };
            if start.name != "script" {
                continue;
            }
            let content = match events.iter().skip(index + 1).find(|e| matches!(e, Event::End(..))) {
                Some(Event::End(_, end)) => start.range.end..end.start,
                _ => continue,
            };
            let text = self.html.get(content.clone()).unwrap_or_default();
            if tf::is_canonical(text) {
                return;
            }
            if start.get("data-tf").is_some() {
                self.done.push("put the current tf.js in the place of an older one".to_owned());
                self.edits.retain(|(range, _)| *range != content);
                self.edits.push((content, format!("\n{}\n", tf::SOURCE.trim())));
                return;
            }
            first = first.or(Some(start.range.start));
        }
        if let Some(at) = first.filter(|_| is_needed) {
            self.done.push("added tf.js before the first script".to_owned());
            self.edits.push((at..at, format!("{}\n", tf::element())));
        }
    }

    /// Puts deferred scripts before the end of the body.
    fn append(&mut self, events: &[Event]) {
        if self.tail.is_empty() {
            return;
        }
        let end = events.iter().rev().find_map(|e| match e {
            Event::End(name, range) if name == "body" => Some(range.start),
            _ => None,
        });
        let at = end.unwrap_or(self.html.len());
        self.edits.push((at..at, std::mem::take(&mut self.tail)));
    }

    fn apply(&mut self) -> String {
        // A stable sort keeps tf.js, which was added last, before a script that begins at the same place.
        self.edits.sort_by_key(|(range, _)| (range.start, range.end));
        let mut html = String::new();
        let mut at = 0;
        for (range, text) in &self.edits {
            if range.start < at {
                continue;
            }
            html.push_str(self.html.get(at..range.start).unwrap_or_default());
            html.push_str(text);
            at = range.end;
        }
        html.push_str(self.html.get(at..).unwrap_or_default());
        html
    }
}

/// The media type of a file by its ending, for what may be a `data:` address in a work.
fn media_type(name: &str) -> Option<&'static str> {
    Some(match name.rsplit('.').next()?.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "svg" => "image/svg+xml",
        "ico" => "image/x-icon",
        "mp3" => "audio/mpeg",
        "ogg" | "oga" | "opus" => "audio/ogg",
        "wav" => "audio/wav",
        "m4a" => "audio/mp4",
        "flac" => "audio/flac",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "ttf" => "font/ttf",
        "otf" => "font/otf",
        _ => return None,
    })
}
