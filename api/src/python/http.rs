//! `POST /api/python/{creator}/{work}`: the inputs as JSON, the function's answer as JSON.
//!
//! Which function it is stands in the catalogue: that of the published version, by the digest of its bytes; in a preview,
//! that of the version that waits.

use std::sync::Arc;

use catalog::{Role, Slug, Work};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use policy::limits;

use super::Refusal;
use crate::answer::{self, Answer};
use crate::problem::{Kind, Problem};
use crate::route::Call;
use crate::work::now;
use crate::{App, body, json};

/// The first segment of the path of a preview, which no creator can have.
const PREVIEW: &str = "preview";

/// `POST`.
pub async fn call(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    let (creator, slug) = (call.parameter("creator").parse(), call.parameter("work").parse());
    let (Ok(creator), Ok(slug)) = (creator, slug) else { return Err(Refusal::Unknown.into()) };
    if !is_json(call.headers()) {
        return Err(Refusal::BadType.into());
    }
    let creator: Slug = creator;
    let found = match creator.as_str() {
        PREVIEW => app.works.previewed(&slug, now()),
        _ => app.works.published(&creator, &slug),
    };
    let work = found.map_err(|_| Refusal::Failed)?.ok_or(Refusal::Unknown)?;
    let source = source(&app, &work)?;
    let bytes_max = usize::try_from(limits().python.inputs_bytes_max).unwrap_or(usize::MAX);
    let bytes = body::read(call.into_body(), bytes_max).await.map_err(|error| match error {
        body::BodyError::TooLarge { bytes_max } => Problem::from(Kind::InputsTooLarge)
            .detail(format!("The inputs of a function are at most {bytes_max} bytes.")),
        other => other.into(),
    })?;
    let inputs = json::check(&bytes, limits().python.json_depth_max).map_err(Refusal::BadInputs)?;
    let answer = app.runner.call(&format!("{creator}/{slug}"), &source, inputs).await?;
    Ok(answer::ok("application/json", answer))
}

/// The function of a work, if it declares one.
fn source(app: &App, work: &Work) -> Result<String, Refusal> {
    let declared = work.manifest.capabilities.python_backend.is_some();
    let file = work.file(Role::Python).filter(|_| declared).ok_or(Refusal::Unknown)?;
    let bytes = app.works.object(&file.digest).map_err(|_| Refusal::Failed)?;
    String::from_utf8(bytes).map_err(|_| Refusal::Failed)
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json") && headers.get(CONTENT_ENCODING).is_none()
}
