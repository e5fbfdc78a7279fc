//! The theme: templates, and assets under names made from their bytes.
//!
//! Templates are minijinja, undefined values are errors. Assets are the files of `theme/style`, `theme/script` and
//! `theme/image`; a page names one with `asset("site.css")` and gets its published path. Scripts may import each other
//! by relative name; the name is replaced by the published one, so a change anywhere below a script changes its name.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use catalog::Digest;
use data_encoding::BASE64;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value, ValueKind};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use policy::{Config, limits};
use pulldown_cmark_escape::{FmtWriter, escape_html};

use crate::diagnostic::Diagnostic;

/// How many hexadecimal digits of its digest a published asset carries.
const FINGERPRINT_DIGITS: usize = 16;

/// A loaded theme.
pub(crate) struct Theme {
    env: Environment<'static>,
    sources: BTreeMap<String, Source>,
    assets: BTreeMap<String, Asset>,
}

struct Source {
    file: PathBuf,
    text: String,
}

/// A file under `/assets/`.
pub(crate) struct Asset {
    /// Its name there.
    pub(crate) published: String,
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
}

impl Theme {
    /// Loads `theme/` below `source`. Problems in it are added to `problems`.
    pub(crate) fn load(config: &Config, problems: &mut Vec<Diagnostic>) -> anyhow::Result<Self> {
        let root = config.source.join("theme");
        let mut env = Environment::new();
        env.set_debug(true);
        env.set_undefined_behavior(UndefinedBehavior::Strict);
        env.set_syntax(block_syntax()?);
        env.set_formatter(write_value);
        env.set_auto_escape_callback(|name| match name.rsplit('.').next() {
            Some("html") => AutoEscape::Html,
            _ => AutoEscape::None,
        });
        env.add_filter("bytes", bytes);
        env.add_filter("thousands", thousands);
        env.add_filter("doublings", doublings);
        env.add_filter("day", day);
        let mut sources = BTreeMap::new();
        for (name, path) in files(&root.join("templates"))? {
            let text = read_text(&path)?;
            let file = relative(config, &path);
            if let Err(e) = env.add_template_owned(name.clone(), text.clone()) {
                problems.push(template_problem(&e, &file, &text, 0));
            }
            sources.insert(name, Source { file, text });
        }
        let assets = assets(config, &root, problems)?;
        let paths: BTreeMap<String, (String, String)> = assets
            .iter()
            .map(|(name, a)| (name.clone(), (format!("/assets/{}", a.published), integrity(&a.bytes))))
            .collect();
        for (function, pick) in [("asset", 0), ("integrity", 1)] {
            let paths = paths.clone();
            env.add_function(function, move |name: &str| {
                let found =
                    paths.get(name).map(|(path, sri)| Value::from_safe_string([path, sri][pick].clone()));
                found.ok_or_else(|| {
                    let detail = format!("no asset {name:?} in theme/style, theme/script or theme/image");
                    minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, detail)
                })
            });
        }
        env.add_global("limits", Value::from(Serde(limits())));
        env.add_global("site", Value::from_safe_string(config.site.to_string()));
        env.add_global("content", Value::from_safe_string(config.content.to_string()));
        env.add_global("contact", Value::from_safe_string(config.contact.clone()));
        env.add_global("contact_text", config.contact.trim_start_matches("mailto:").to_owned());
        Ok(Self { env, sources, assets })
    }

    /// Gives every template and page a value of that name.
    pub(crate) fn add_global(&mut self, name: &'static str, value: Value) {
        self.env.add_global(name, value);
    }

    /// Renders a template of the theme.
    pub(crate) fn render(&self, name: &str, context: Value) -> Result<String, Diagnostic> {
        let source = self.sources.get(name).map_or((Path::new(name), ""), |s| (&s.file, &s.text));
        let template = self.env.get_template(name).map_err(|e| self.problem(&e, source))?;
        template.render(context).map_err(|e| self.problem(&e, source))
    }

    /// Renders a text that is not a template of the theme, such as a page of `content/`.
    pub(crate) fn render_text(
        &self,
        file: &Path,
        text: &str,
        skipped_lines: usize,
    ) -> Result<String, Diagnostic> {
        let rendered = self.env.render_named_str("page.md", text, ());
        rendered.map_err(|e| match e.name() {
            Some("page.md") | None => template_problem(&e, file, text, skipped_lines),
            Some(_) => self.problem(&e, (file, text)),
        })
    }

    /// The digest of a template and of everything it extends, includes or imports, with the assets it could name.
    pub(crate) fn closure(&self, name: &str) -> Digest {
        let mut names = BTreeSet::new();
        let mut ahead = vec![name.to_owned()];
        while let Some(name) = ahead.pop() {
            let Some(source) = self.sources.get(&name) else { continue };
            if names.insert(name) {
                let quoted = source.text.split('"').skip(1).step_by(2);
                ahead.extend(quoted.filter(|q| self.sources.contains_key(*q)).map(str::to_owned));
            }
        }
        let mut all = String::new();
        for name in &names {
            all.push_str(&self.sources[name].text);
            all.push('\0');
        }
        for asset in self.assets.values() {
            all.push_str(&asset.published);
            all.push('\0');
        }
        Digest::of(all.as_bytes())
    }

    /// The assets by the names that templates use.
    pub(crate) fn assets(&self) -> impl Iterator<Item = &Asset> {
        self.assets.values()
    }

    /// The template sources, for finding who wrote something.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.sources.values().map(|s| (s.file.as_path(), s.text.as_str()))
    }

    /// Names the template that an error is about, which may be one that `fallback` includes.
    fn problem(&self, error: &minijinja::Error, fallback: (&Path, &str)) -> Diagnostic {
        let mut inner = error;
        while let Some(next) =
            std::error::Error::source(inner).and_then(|e| e.downcast_ref::<minijinja::Error>())
        {
            inner = next;
        }
        let source = inner.name().and_then(|n| self.sources.get(n));
        let (file, text) = source.map_or(fallback, |s| (&s.file, &s.text));
        template_problem(inner, file, text, 0)
    }
}

/// Block tags on lines of their own leave nothing in the output.
pub(crate) fn block_syntax() -> Result<SyntaxConfig, minijinja::Error> {
    SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build()
}

fn template_problem(error: &minijinja::Error, file: &Path, text: &str, skipped_lines: usize) -> Diagnostic {
    let message = match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    let mut problem = match (error.range(), error.line()) {
        (Some(range), _) => {
            let named = text.get(range.clone()).filter(|t| !t.is_empty() && t.len() < 80);
            let message = named.map_or(message.clone(), |t| format!("{message} in `{t}`"));
            Diagnostic::at_byte(file, text, range.start, message)
        }
        (None, Some(line)) => Diagnostic { line, col: 1, ..Diagnostic::file(file, message, "") },
        (None, None) => Diagnostic::file(file, message, ""),
    };
    if problem.line > 0 {
        problem.line += skipped_lines;
    }
    problem.hint("mend the name or the tag; theme/templates and the pages share one set of names")
}

/// Writes a value: escaped where the template is HTML and the value is not marked safe.
fn write_value(
    out: &mut minijinja::Output<'_>,
    state: &mut minijinja::State<'_, '_>,
    value: &Value,
) -> Result<(), minijinja::Error> {
    if value.is_undefined() {
        return minijinja::escape_formatter(out, state, value);
    }
    match (state.auto_escape(), value.as_str()) {
        (AutoEscape::Html, Some(text)) if !value.is_safe() => {
            escape_html(FmtWriter(&mut *out), text).map_err(minijinja::Error::from)
        }
        (_, Some(text)) => out.write_str(text).map_err(minijinja::Error::from),
        _ if value.kind() == ValueKind::Number => write!(out, "{value}").map_err(minijinja::Error::from),
        _ => minijinja::escape_formatter(out, state, value),
    }
}

/// `32768` as `32 KiB`, `13722` as `13.4 KiB`, `842` as `842 bytes`.
fn bytes(count: u64) -> String {
    for (unit, size) in [("MiB", 1024 * 1024), ("KiB", 1024)] {
        if count >= size {
            let tenths = (count * 10 + size / 2) / size;
            return match tenths % 10 {
                0 => format!("{} {unit}", tenths / 10),
                tenth => format!("{}.{tenth} {unit}", tenths / 10),
            };
        }
    }
    if count == 1 { "1 byte".to_owned() } else { format!("{count} bytes") }
}

/// `12345` as `12,345`.
fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How often one byte must double to be `count` bytes, in tenths: `4096` as `12`, `10404` as `13.3`.
#[expect(clippy::cast_precision_loss, reason = "a tenth is all that is shown")]
fn doublings(count: u64) -> String {
    let text = format!("{:.1}", (count.max(1) as f64).log2());
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// `2026-10-02` as `2 October 2026`; any other text as it is.
fn day(text: &str) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next(), parts.next(), parts.next());
    let month = month.and_then(|m| m.parse::<usize>().ok()).and_then(|m| MONTHS.get(m.checked_sub(1)?));
    match (year, month, day) {
        (Some(year), Some(month), Some(day)) => format!("{} {month} {year}", day.trim_start_matches('0')),
        _ => text.to_owned(),
    }
}

/// The value of an `integrity` attribute (Subresource Integrity).
fn integrity(bytes: &[u8]) -> String {
    format!("sha256-{}", BASE64.encode(Digest::of(bytes).as_bytes()))
}

/// Reads the assets and names each by its bytes, imported scripts first.
fn assets(
    config: &Config,
    root: &Path,
    problems: &mut Vec<Diagnostic>,
) -> anyhow::Result<BTreeMap<String, Asset>> {
    let mut waiting: HashMap<String, (PathBuf, Vec<u8>)> = HashMap::new();
    for folder in ["style", "script", "image"] {
        for (name, path) in files(&root.join(folder))? {
            let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            waiting.insert(name, (relative(config, &path), bytes));
        }
    }
    waiting.insert("policy.js".to_owned(), ("policy".into(), policy::host_script().into_bytes()));
    let mut done: BTreeMap<String, Asset> = BTreeMap::new();
    while !waiting.is_empty() {
        let ready: Vec<String> = waiting
            .iter()
            .filter(|(_, (_, bytes))| imports(bytes).iter().all(|i| !waiting.contains_key(i)))
            .map(|(name, _)| name.clone())
            .collect();
        if ready.is_empty() {
            for (name, (file, _)) in &waiting {
                problems.push(Diagnostic::file(
                    file,
                    format!("{name} imports itself through others"),
                    "break the circle",
                ));
            }
            break;
        }
        for name in ready {
            let Some((file, mut bytes)) = waiting.remove(&name) else { continue };
            for import in imports(&bytes) {
                let text = String::from_utf8_lossy(&bytes);
                let quoted = format!("\"./{import}\"");
                match done.get(&import) {
                    Some(asset) => {
                        bytes = text.replace(&quoted, &format!("\"./{}\"", asset.published)).into_bytes()
                    }
                    None => {
                        let at = text.find(&quoted).unwrap_or_default();
                        problems.push(
                            Diagnostic::at_byte(
                                &file,
                                &text,
                                at,
                                format!("imports {import:?}, which is not in the theme"),
                            )
                            .hint("add the file to theme/script or mend the name"),
                        );
                    }
                }
            }
            let (stem, extension) = name.rsplit_once('.').unwrap_or((&name, "bin"));
            let fingerprint = &Digest::of(&bytes).to_string()[..FINGERPRINT_DIGITS];
            let published = format!("{stem}.{fingerprint}.{extension}");
            done.insert(name, Asset { published, bytes });
        }
    }
    Ok(done)
}

/// The names in `from "./name"`, `import "./name"` and `import("./name")`.
fn imports(bytes: &[u8]) -> Vec<String> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Vec::new() };
    text.split("\"./").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
}

/// The files in a folder, not below it, by name.
fn files(folder: &Path) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    if folder.is_dir() {
        for entry in walkdir::WalkDir::new(folder).min_depth(1).max_depth(1) {
            let entry = entry.with_context(|| format!("cannot list {}", folder.display()))?;
            if entry.file_type().is_file() {
                found.insert(entry.file_name().to_string_lossy().into_owned(), entry.into_path());
            }
        }
    }
    Ok(found)
}

/// The text of a source file.
pub(crate) fn read_text(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {} as UTF-8 text", path.display()))
}

/// A path as people write it: from the source folder.
pub(crate) fn relative(config: &Config, path: &Path) -> PathBuf {
    path.strip_prefix(&config.source).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_for_people() {
        for (count, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (842, "842 bytes"),
            (1024, "1 KiB"),
            (13_722, "13.4 KiB"),
            (65_536, "64 KiB"),
            (5_242_880, "5 MiB"),
        ] {
            assert_eq!(bytes(count), text);
        }
        for (count, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (5_242_880, "5,242,880")] {
            assert_eq!(thousands(count), text);
        }
        for (count, text) in [(0, "0"), (1, "0"), (10_404, "13.3"), (65_536, "16"), (5_242_880, "22.3")] {
            assert_eq!(doublings(count), text);
        }
        for (iso, text) in
            [("2026-10-02", "2 October 2026"), ("2026-12-30", "30 December 2026"), ("soon", "soon")]
        {
            assert_eq!(day(iso), text);
        }
    }

    #[test]
    fn imports_are_found_in_every_form() {
        let script = b"import { a } from \"./a.js\";\nimport \"./b.js\";\nawait import(\"./c.js\"); const s = './d.js';";
        assert_eq!(imports(script), ["a.js", "b.js", "c.js"]);
    }
}
