//! What is answered when all went well, and what every answer has in common.
//!
//! Called by the `http` module of each feature. Refusals are made in `problem`.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue};
use hyper::{Response, StatusCode};

use crate::saves::Revision;

/// An answer, complete in memory.
pub type Answer = Response<Full<Bytes>>;

/// Marks an answer as one that no cache may keep.
pub fn never_stored(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// 200 with a body.
pub fn ok(content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    never_stored(answer)
}

/// JSON with that status.
pub fn json(status: StatusCode, body: &serde_json::Value) -> Answer {
    let mut answer = ok("application/json", body.to_string());
    *answer.status_mut() = status;
    answer
}

/// 200 with the bytes of a file, which nginx sends.
pub fn sent_by_nginx(path: &str) -> Option<Answer> {
    let mut answer = Response::new(Full::default());
    answer.headers_mut().insert("x-accel-redirect", HeaderValue::from_str(path).ok()?);
    Some(answer)
}

/// 201: it is there now.
pub fn created() -> Answer {
    empty(StatusCode::CREATED)
}

/// 204: done, and nothing to say.
pub fn done() -> Answer {
    empty(StatusCode::NO_CONTENT)
}

fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::default();
    *answer.status_mut() = status;
    never_stored(answer)
}

/// The entity tag of a revision.
pub fn etag(revision: Revision) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{revision}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Adds the entity tag of a revision.
pub fn tagged(mut answer: Answer, revision: Revision) -> Answer {
    answer.headers_mut().insert(ETAG, etag(revision));
    answer
}
