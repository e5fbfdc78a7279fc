//! The page around a work during a smoke run, as files and answers of the site's origin.
//!
//! Called by [`super`] for works with a Python function. The bridge and the call of the function are the site's own
//! scripts; only saves are kept in the page, and forgotten with it.

use catalog::Manifest;
use policy::{Capability, grants};
use serde_json::{Value, json};

use super::backend::{Answer, Backend};

/// The name of every work here.
const WORK: &str = "play/work";

/// The page around a work, and who answers its function.
pub(super) struct Around {
    site: String,
    work: String,
    pub(super) backend: Backend,
}

/// What the page around asks for.
pub(super) enum Asked {
    /// A file, with its media type.
    File(&'static str, String),
    /// A call of the function.
    Call,
}

impl Around {
    /// The page on `site` around the work at `src`.
    pub(super) fn new(
        site: String,
        src: &str,
        (width, height): (u16, u16),
        manifest: &Manifest,
        backend: Backend,
    ) -> Self {
        let declared: Vec<&str> = manifest.capabilities.declared().collect();
        let granted: Vec<_> =
            Capability::ALL.iter().copied().filter(|c| declared.contains(&c.key())).collect();
        let attributes = json!({
            "title": manifest.title(), "sandbox": grants().sandbox(), "allow": grants().allow(&granted),
            "referrerpolicy": grants().frame.referrerpolicy, "width": width, "height": height, "src": src,
        });
        let work = format!(
            "export const work = {WORK:?}, declared = {}, attributes = {attributes};\n",
            json!(declared)
        );
        Self { site, work, backend }
    }

    /// Where the page itself is.
    pub(super) fn address(&self) -> String {
        format!("{}/{WORK}/", self.site)
    }

    /// Whether an address is of the site.
    pub(super) fn has(&self, url: &str) -> bool {
        url.strip_prefix(&self.site).is_some_and(|rest| rest.starts_with('/'))
    }

    /// What a request asks for, if it is something that the page needs.
    pub(super) fn asked(&self, url: &str) -> Option<Asked> {
        let path = url.strip_prefix(&self.site)?.strip_prefix('/')?;
        let script = |text: &str| Some(Asked::File("text/javascript", text.to_owned()));
        match path.strip_prefix(WORK) {
            Some("/") => Some(Asked::File(
                "text/html; charset=utf-8",
                "<!doctype html><meta charset=\"utf-8\"><title>play</title><body><script type=\"module\" src=\"around.js\"></script>"
                    .to_owned(),
            )),
            Some("/around.js") => script(include_str!("around.js")),
            Some("/work.js") => script(&self.work),
            Some("/policy.js") => script(&policy::host_script()),
            Some("/bridge.js") => script(include_str!("../../../theme/script/bridge.js")),
            Some("/function.js") => script(include_str!("../../../theme/script/function.js")),
            Some("/refusal.js") => script(include_str!("../../../theme/script/refusal.js")),
            Some("/server.js") => script(include_str!("../../../theme/script/server.js")),
            _ if path.strip_prefix("api/python/") == Some(WORK) => Some(Asked::Call),
            _ => None,
        }
    }
}

/// An answer of the function as the site's API gives it: status, media type, body.
pub(super) fn response(answer: &Answer) -> (u16, &'static str, String) {
    match answer {
        Answer::Result(result) => (200, "application/json", result.to_string()),
        Answer::Problem { kind, more } => {
            let mut problem = json!({ "type": format!("/problems.html#{kind}"), "status": 503 });
            if let (Value::Object(problem), Value::Object(more)) = (&mut problem, more) {
                problem.extend(more.clone());
            }
            (503, "application/problem+json", problem.to_string())
        }
    }
}
