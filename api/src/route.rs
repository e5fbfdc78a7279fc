//! The table of routes: each address and method once, with what it may refuse.
//!
//! Called by `server` with a request, it calls the `http` module of a feature. The API's own description is made of
//! this table, so what is not in it is neither served nor described.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{HeaderMap, Method, Request};

use crate::answer::{self, Answer};
use crate::body::{self, Unread};
use crate::problem::{Kind, Problem};
use crate::{App, members, openapi, python, review, saves, submissions};

type Handling = Pin<Box<dyn Future<Output = Result<Answer, Problem>> + Send>>;

/// One address and method.
pub struct Route {
    /// The method.
    pub method: Method,
    /// The address, `{name}` standing for one segment.
    pub path: &'static str,
    /// Its name in counters and in the description.
    pub name: &'static str,
    /// What it may refuse, beside what any address may.
    pub refuses: &'static [Kind],
    handler: fn(Arc<App>, Call) -> Handling,
}

/// A request at its route.
pub struct Call {
    request: Request<Unread>,
    parameters: Vec<(&'static str, String)>,
}

impl Call {
    /// The segment that stands in the place of `{name}`.
    pub fn parameter(&self, name: &str) -> &str {
        self.parameters.iter().find(|(n, _)| *n == name).map_or("", |(_, value)| value)
    }

    /// The header fields.
    pub fn headers(&self) -> &HeaderMap {
        self.request.headers()
    }

    /// The body, not yet read.
    pub fn into_body(self) -> Unread {
        self.request.into_body()
    }
}

macro_rules! routes {
    ($($method:ident $path:literal $name:literal => $handler:path, [$($kind:ident),* $(,)?];)*) => {
        /// Every route.
        pub static ROUTES: &[Route] = &[$(Route {
            method: Method::$method,
            path: $path,
            name: $name,
            refuses: &[$(Kind::$kind),*],
            handler: |app, call| Box::pin($handler(app, call)),
        }),*];
    };
}

routes! {
    GET "/api/saves/{key}" "load_save" => saves::http::get,
        [BadKey, BadWord, WrongWord, WordWait, NotFound, Busy, Rate, Internal];
    PUT "/api/saves/{key}" "put_save" => saves::http::put,
        [BadKey, BadWord, BadPrecondition, BadRequest, WrongWord, WordWait, NotFound, SlowBody, NewerSave, TooLarge,
         UnsupportedType, NotJson, TooDeep, PreconditionRequired, Busy, Quota, StorageFull, Rate, Internal];
    DELETE "/api/saves/{key}" "delete_save" => saves::http::delete,
        [BadKey, BadWord, BadPrecondition, WrongWord, WordWait, NotFound, NewerSave, PreconditionRequired, Busy,
         StorageFull, Rate, Internal];
    POST "/api/python/{creator}/{work}" "call_python" => python::http::call,
        [PythonUnknown, SlowBody, InputsTooLarge, UnsupportedType, BadInputs, PythonClosed, PythonBusy, PythonTimeout,
         PythonMemory, PythonProcesses, PythonOutput, PythonBadAnswer, PythonDenied, PythonCrash, PythonError, Rate,
         Internal];
    POST "/api/members" "claim" => members::http::claim,
        [Unauthorized, BadRequest, BadPseudonym, PseudonymTaken, TooLarge, SlowBody, StorageFull, Rate, Internal];
    GET "/api/members/me" "who_am_i" => members::http::me, [Unauthorized, Rate, Internal];
    POST "/api/submissions" "submit" => submissions::http::submit,
        [Unauthorized, NotAllowed, BadUpload, BadRequest, UnsupportedType, TooLarge, SlowBody, TooManySubmissions, Busy,
         StorageFull, Rate, Internal];
    GET "/api/submissions" "own_submissions" => submissions::http::list, [Unauthorized, Rate, Internal];
    GET "/api/jobs/{id}" "job" => submissions::http::job, [Unauthorized, NotFound, Rate, Internal];
    DELETE "/api/jobs/{id}" "take_back" => submissions::http::take_back,
        [Unauthorized, NotFound, Decided, StorageFull, Rate, Internal];
    DELETE "/api/works/{work}" "retire" => submissions::http::retire,
        [Unauthorized, NotAllowed, NotFound, StorageFull, Rate, Internal];
    GET "/api/review" "review_queue" => review::http::queue, [Unauthorized, NotAllowed, Rate, Internal];
    GET "/api/review/saves" "review_saves" => review::http::saves, [Unauthorized, NotAllowed, Rate, Internal];
    GET "/api/review/{id}" "review_version" => review::http::version,
        [Unauthorized, NotAllowed, Decided, Rate, Internal];
    POST "/api/review/{id}/preview" "open_preview" => review::preview::open,
        [Unauthorized, NotAllowed, Decided, StorageFull, Rate, Internal];
    GET "/api/review/previews/{token}" "preview_state" => review::preview::state,
        [Unauthorized, NotAllowed, Decided, Rate, Internal];
    POST "/api/review/{id}/decision" "decide" => review::http::decide,
        [Unauthorized, NotAllowed, BadRequest, Decided, TooLarge, SlowBody, StorageFull, Rate, Internal];
    POST "/api/takedowns" "take_down" => review::http::take_down,
        [Unauthorized, NotAllowed, BadRequest, Decided, TooLarge, SlowBody, StorageFull, Rate, Internal];
    GET "/api/ratings/{creator}/{work}" "own_rating" => review::rating::own,
        [Unauthorized, NotAllowed, NotFound, Rate, Internal];
    PUT "/api/ratings/{creator}/{work}" "rate" => review::rating::rate,
        [Unauthorized, NotAllowed, NotFound, BadRequest, TooLarge, SlowBody, StorageFull, Rate, Internal];
    GET "/api/audit" "audit" => review::http::audit, [Unauthorized, NotAllowed, Rate, Internal];
    GET "/preview/{token}/" "preview" => review::preview::page, [NotFound, Internal];
    GET "/preview/{token}/{file}" "preview_file" => review::preview::file, [NotFound, Internal];
    GET "/api/health" "health" => health, [];
    GET "/api/openapi.json" "openapi" => describe, [];
}

/// What there is.
async fn describe(_app: Arc<App>, _call: Call) -> Result<Answer, Problem> {
    Ok(answer::ok("application/json", openapi::document().to_string()))
}

/// Whether it serves.
async fn health(_app: Arc<App>, _call: Call) -> Result<Answer, Problem> {
    Ok(answer::ok("application/json", r#"{"status":"ok"}"#))
}

/// Answers a request.
pub async fn answer(app: Arc<App>, request: Request<Incoming>) -> Answer {
    let head = request.method() == Method::HEAD;
    let method = if head { Method::GET } else { request.method().clone() };
    let (parts, body) = request.into_parts();
    let (body, rest) = body::unread(body);
    let (name, result) = match find(&method, parts.uri.path()) {
        Ok((route, parameters)) => {
            let call = Call { request: Request::from_parts(parts, body), parameters };
            (route.name, (route.handler)(Arc::clone(&app), call).await)
        }
        Err(problem) => {
            drop(body);
            ("none", Err(problem))
        }
    };
    if !matches!(&result, Err(problem) if problem.kind == Kind::SlowBody) {
        rest.read_away().await;
    }
    let answer = result.unwrap_or_else(|problem| {
        app.metrics.refused(problem.kind);
        problem.into_answer()
    });
    app.metrics.answered(name, answer.status());
    answer
}

type Parameters = Vec<(&'static str, String)>;

fn find(method: &Method, path: &str) -> Result<(&'static Route, Parameters), Problem> {
    let mut others: Vec<&str> = Vec::new();
    for route in ROUTES {
        if let Some(parameters) = matches(route.path, path) {
            if route.method == *method {
                return Ok((route, parameters));
            }
            others.push(route.method.as_str());
            if route.method == Method::GET {
                others.push("HEAD");
            }
        }
    }
    match others[..] {
        [] => Err(Problem::from(Kind::NotFound).detail("There is no such address.")),
        _ => Err(Problem::method_not_allowed(&others.join(", "))),
    }
}

fn matches(pattern: &'static str, path: &str) -> Option<Parameters> {
    let (mut parameters, mut segments) = (Vec::new(), path.split('/'));
    for part in pattern.split('/') {
        let segment = segments.next()?;
        match part.strip_prefix('{').and_then(|p| p.strip_suffix('}')) {
            Some(name) => parameters.push((name, segment.to_owned())),
            None if part == segment => {}
            None => return None,
        }
    }
    segments.next().is_none().then_some(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_whole() {
        let (route, parameters) = find(&Method::GET, "/api/saves/ab").unwrap();
        assert_eq!((route.name, &parameters[..]), ("load_save", &[("key", "ab".to_owned())][..]));
        for path in
            ["", "/", "/api", "/api/saves", "/api/saves/a/b", "/api/saves/a/", "//api/saves/a", "/API/health"]
        {
            assert_eq!(find(&Method::GET, path).err().unwrap().kind, Kind::NotFound, "{path}");
        }
        assert_eq!(find(&Method::PATCH, "/api/health").err().unwrap().kind, Kind::MethodNotAllowed);
    }

    #[test]
    fn a_route_is_in_the_table_once() {
        let mut names: Vec<&str> = ROUTES.iter().map(|r| r.name).collect();
        let mut addresses: Vec<_> = ROUTES.iter().map(|r| (r.method.as_str(), r.path)).collect();
        names.sort_unstable();
        addresses.sort_unstable();
        names.dedup();
        addresses.dedup();
        assert_eq!((names.len(), addresses.len()), (ROUTES.len(), ROUTES.len()));
    }
}
