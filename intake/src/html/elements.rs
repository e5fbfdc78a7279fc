//! What each element and attribute may be.

use policy::Capability;

use super::align::align;
use super::tokens::{Attr, Start};
use crate::address::{Address, classify, normalise};
use crate::css;
use crate::data;
use crate::js::{self, Form};
use crate::rules::code::{SCRIPT_URL, WASM};
use crate::rules::network::{FRAME, HINT, IMPORT, LOAD, MISSING, PING, REPORT};
use crate::rules::page::{BASE, COOKIE, FILE, LINK, REFRESH, SECRET, SEND, WINDOW};
use crate::scan::Scan;
use crate::source::Piece;

const HINTS: [&str; 7] =
    ["preconnect", "dns-prefetch", "preload", "prefetch", "prerender", "modulepreload", "next"];
const SECRETS: [&str; 8] = [
    "cc-",
    "username",
    "current-password",
    "new-password",
    "one-time-code",
    "email",
    "tel",
    "street-address",
];

impl Start {
    /// The attribute of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&Attr> {
        self.attrs.iter().find(|a| a.name == name)
    }

    fn value(&self, name: &str) -> String {
        self.get(name).map(|a| a.value.trim().to_ascii_lowercase()).unwrap_or_default()
    }
}

impl Attr {
    /// The value as text that knows where it stands.
    fn piece<'p>(&self, slice: &'p Piece<'p>) -> Piece<'p> {
        Piece::derived(slice, self.value.clone(), align(&slice.text, &self.value), None)
    }
}

/// Runs `then` on the attribute's value as a piece.
fn with(piece: &Piece<'_>, attr: &Attr, then: impl FnOnce(&Piece<'_>)) {
    let slice = Piece::slice(piece, attr.raw.clone());
    then(&attr.piece(&slice));
}

/// Judges a start tag and its attributes, except event handlers.
pub(super) fn scan(scan: &mut Scan<'_>, piece: &Piece<'_>, start: &Start) {
    let tag = start.range.clone();
    match start.name.as_str() {
        "iframe" | "frame" | "frameset" | "portal" | "fencedframe" | "object" | "embed" | "applet" => {
            scan.add(&FRAME, piece, tag, format!("<{}> holds another document", start.name));
        }
        "base" => scan.add(&BASE, piece, tag, "a base element changes where addresses lead"),
        "meta" => meta(scan, piece, start),
        "link" => link(scan, piece, start),
        "input" | "select" | "textarea" | "form" | "button" => form(scan, piece, start),
        "audio" => scan.uses(Capability::Audio, piece, tag.start),
        "video" if start.get("muted").is_none() => scan.uses(Capability::Audio, piece, tag.start),
        "animate" | "set" | "animatemotion" => animate(scan, piece, start),
        _ => {}
    }
    for attr in &start.attrs {
        attribute(scan, piece, start, attr);
    }
}

/// Judges the event handlers of a start tag.
pub(super) fn handlers(scan: &mut Scan<'_>, piece: &Piece<'_>, start: &Start) {
    for attr in start.attrs.iter().filter(|a| a.name.starts_with("on")) {
        with(piece, attr, |text| js::scan(scan, text, Form::Handler));
    }
}

fn attribute(scan: &mut Scan<'_>, piece: &Piece<'_>, start: &Start, attr: &Attr) {
    let element = start.name.as_str();
    match attr.name.as_str() {
        "style" => with(piece, attr, |text| css::scan_declarations(scan, text)),
        "srcdoc" => with(piece, attr, |text| super::scan(scan, text)),
        "srcset" | "imagesrcset" => with(piece, attr, |text| srcset(scan, text)),
        "ping" => scan.add(&PING, piece, attr.raw.clone(), "a link that reports being followed"),
        "target" if element != "base" => target(scan, piece, attr),
        "href" | "xlink:href" if matches!(element, "a" | "area") => {
            with(piece, attr, |text| follow(scan, text))
        }
        "href" if matches!(element, "link" | "base") => {}
        "action" | "formaction" => with(piece, attr, |text| send(scan, text)),
        "src" | "href" | "xlink:href" | "poster" | "background" | "lowsrc" | "dynsrc" | "manifest" => {
            with(piece, attr, |text| resource(scan, text, element));
        }
        "data" | "codebase" | "archive" | "code" if matches!(element, "object" | "applet" | "embed") => {
            with(piece, attr, |text| resource(scan, text, element));
        }
        _ if attr.value.contains("url(") => with(piece, attr, |text| css::scan_declarations(scan, text)),
        _ => {
            let looks_like_script = normalise(&attr.value).to_ascii_lowercase().starts_with("javascript:");
            if looks_like_script && start.is_foreign {
                scan.add(&SCRIPT_URL, piece, attr.raw.clone(), "an attribute with a javascript: address");
            }
        }
    }
}

/// Judges an address from which something is loaded into the page.
pub fn resource(scan: &mut Scan<'_>, text: &Piece<'_>, user: &str) {
    let address = normalise(&text.text);
    let all = 0..text.text.len();
    match classify(&address) {
        Address::Inside | Address::Blob => {}
        Address::Data => data::scan(scan, text),
        Address::Remote => scan.add(&LOAD, text, all, format!("<{user}> loads {}", shown(&address))),
        Address::Scheme => scan.add(&LOAD, text, all, format!("<{user}> loads {}", shown(&address))),
        Address::Script(code) => script_address(scan, text, code),
        Address::File(file) => missing(scan, text, all, file, &format!("<{user}>")),
    }
}

/// Says that `file` is not inside the work.
pub fn missing(scan: &mut Scan<'_>, text: &Piece<'_>, range: std::ops::Range<usize>, file: &str, user: &str) {
    let name = file.split(['?', '#']).next().unwrap_or(file);
    scan.missing.insert(name.to_owned());
    let advice = match user {
        "a link" => "; a work is one page, so what stands there has to become a part of it",
        "an import" => "; bundle it into the script, as esbuild and rollup do",
        "fetch" | "XMLHttpRequest" => "; write what it holds into the script",
        _ if name.ends_with("manifest.json") || name.ends_with(".webmanifest") => {
            "; a work is not installed, so remove the element"
        }
        _ => "",
    };
    let what = format!("{user} needs the file {}, which is not inside the work{advice}", shown(name));
    scan.add(&MISSING, text, range, what);
}

/// Judges an address that a player can follow.
fn follow(scan: &mut Scan<'_>, text: &Piece<'_>) {
    let address = normalise(&text.text);
    let all = 0..text.text.len();
    match classify(&address) {
        Address::Inside | Address::Blob => {}
        Address::Data => data::scan(scan, text),
        Address::Script(code) => script_address(scan, text, code),
        Address::Remote | Address::Scheme => {
            scan.add(&LINK, text, all, format!("a link to {}", shown(&address)));
        }
        Address::File(file) if file.starts_with('?') => {}
        Address::File(file) => missing(scan, text, all, file, "a link"),
    }
}

fn send(scan: &mut Scan<'_>, text: &Piece<'_>) {
    let address = normalise(&text.text);
    match classify(&address) {
        Address::Inside => {}
        Address::Script(code) => script_address(scan, text, code),
        _ => scan.add(&SEND, text, 0..text.text.len(), format!("a form that goes to {}", shown(&address))),
    }
}

fn script_address(scan: &mut Scan<'_>, text: &Piece<'_>, code: &str) {
    scan.add(&SCRIPT_URL, text, 0..text.text.len(), "a javascript: address");
    if let Some(at) = text.text.find(code) {
        js::scan(scan, &Piece::slice(text, at..at + code.len()), Form::Handler);
    }
}

fn target(scan: &mut Scan<'_>, piece: &Piece<'_>, attr: &Attr) {
    let target = attr.value.trim().to_ascii_lowercase();
    if !target.is_empty() && target != "_self" {
        scan.add(&WINDOW, piece, attr.raw.clone(), format!("a target outside the frame: {target}"));
    }
}

fn srcset(scan: &mut Scan<'_>, text: &Piece<'_>) {
    for candidate in candidates(&text.text) {
        resource(scan, &Piece::slice(text, candidate), "img");
    }
}

/// The addresses of a `srcset`: each runs to the next space, and a width or density behind it to the next comma.
pub(crate) fn candidates(all: &str) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(skip) = all[at..].find(|c: char| !c.is_ascii_whitespace() && c != ',') {
        let start = at + skip;
        let end = all[start..].find(|c: char| c.is_ascii_whitespace()).map_or(all.len(), |i| start + i);
        let address = all[start..end].trim_end_matches(',');
        found.push(start..start + address.len());
        let has_descriptor = address.len() == end - start;
        at = match all[end..].find(',') {
            Some(comma) if has_descriptor => end + comma + 1,
            None if has_descriptor => all.len(),
            _ => end,
        };
    }
    found
}

fn meta(scan: &mut Scan<'_>, piece: &Piece<'_>, start: &Start) {
    let tag = start.range.clone();
    if let Some(attr) = start.get("charset") {
        super::charset(scan, piece, attr.raw.clone(), &attr.value);
    }
    let content = start.value("content");
    match start.value("http-equiv").as_str() {
        "refresh" => scan.add(&REFRESH, piece, tag, "the page replaces itself"),
        "content-security-policy" | "content-security-policy-report-only" | "report-to" | "nel" => {
            scan.add(&REPORT, piece, tag, "a content policy of the work's own");
        }
        "x-dns-prefetch-control" => scan.add(&HINT, piece, tag, "switches name look-ups ahead of time"),
        "set-cookie" => scan.add(&COOKIE, piece, tag, "sets a cookie"),
        "content-type" => {
            if let Some((_, charset)) = content.split_once("charset=") {
                super::charset(scan, piece, tag, charset);
            }
        }
        _ => {}
    }
}

fn link(scan: &mut Scan<'_>, piece: &Piece<'_>, start: &Start) {
    let rel = start.value("rel");
    let rels: Vec<&str> = rel.split_ascii_whitespace().collect();
    let hint = rels.iter().find(|r| HINTS.contains(r));
    if let Some(hint) = hint {
        scan.add(
            &HINT,
            piece,
            start.range.clone(),
            format!("rel={hint} makes the browser connect ahead of time"),
        );
        return;
    }
    let loads =
        ["stylesheet", "icon", "apple-touch-icon", "apple-touch-icon-precomposed", "manifest", "mask-icon"];
    if let Some(href) = start.get("href")
        && rels.iter().any(|r| loads.contains(r))
    {
        with(piece, href, |text| resource(scan, text, "link"));
    }
}

fn form(scan: &mut Scan<'_>, piece: &Piece<'_>, start: &Start) {
    let tag = start.range.clone();
    match start.value("type").as_str() {
        kind @ ("password" | "email" | "tel") if start.name == "input" => {
            scan.add(&SECRET, piece, tag.clone(), format!("a field of type {kind}"));
        }
        "file" if start.name == "input" => scan.add(&FILE, piece, tag.clone(), "a field that takes a file"),
        _ => {}
    }
    let autocomplete = start.value("autocomplete");
    if let Some(word) =
        autocomplete.split_ascii_whitespace().find(|w| SECRETS.iter().any(|s| w.starts_with(s)))
    {
        scan.add(&SECRET, piece, tag, format!("a field that the browser fills with {word}"));
    }
}

/// SMIL can set an address after the page was read.
fn animate(scan: &mut Scan<'_>, piece: &Piece<'_>, start: &Start) {
    let attribute = start.value("attributename");
    if attribute != "href" && attribute != "xlink:href" {
        return;
    }
    for attr in start.attrs.iter().filter(|a| matches!(a.name.as_str(), "to" | "from" | "by" | "values")) {
        with(piece, attr, |text| resource(scan, text, &start.name));
    }
}

/// How the content of a `<script>` is run, or nothing if it is only data.
pub(super) fn script_form(scan: &mut Scan<'_>, piece: &Piece<'_>, start: &Start) -> Option<Form> {
    let kind = match (start.get("type"), start.get("language")) {
        (Some(kind), _) => kind.value.trim().to_ascii_lowercase(),
        (None, Some(language)) if !language.value.is_empty() => {
            format!("text/{}", language.value.to_ascii_lowercase())
        }
        _ => String::new(),
    };
    match kind.split(';').next().unwrap_or_default().trim() {
        "importmap" => {
            scan.add(&IMPORT, piece, start.range.clone(), "an import map");
            None
        }
        "speculationrules" => {
            scan.add(&HINT, piece, start.range.clone(), "speculation rules load pages ahead of time");
            None
        }
        "application/wasm" => {
            scan.add(&WASM, piece, start.range.clone(), "WebAssembly in a script element");
            None
        }
        "module" => Some(Form::Module),
        "" => Some(Form::Script),
        kind if is_javascript(kind) => Some(Form::Script),
        _ => None,
    }
}

fn is_javascript(kind: &str) -> bool {
    let Some((group, name)) = kind.split_once('/') else { return false };
    matches!(group, "text" | "application")
        && (name.trim_start_matches("x-") == "ecmascript"
            || name.trim_start_matches("x-").starts_with("javascript")
            || matches!(name, "jscript" | "livescript"))
}

/// An address for a sentence: its start, without what could be long.
pub fn shown(address: &str) -> String {
    let end = crate::source::floor(address, 60);
    if end < address.len() { format!("{}…", &address[..end]) } else { address.to_owned() }
}
