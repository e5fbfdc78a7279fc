//! Every refusal by name, as RFC 9457 problems: the one table of names, statuses and words.
//!
//! Features return enums that know no HTTP; the conversions below give them a status. A `type` is an address on the
//! site, `/problems.html#NAME`, and its name never changes. What went wrong inside goes to the log, not to the client.

use hyper::header::{ALLOW, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use serde_json::{Map, Value};

use crate::answer::{self, Answer};
use crate::body::BodyError;
use crate::desk::Turned;
use crate::json::JsonError;
use crate::python::{self, Ending};
use crate::saves::Refusal;

/// Declares the kinds of problems: variant, name, status, title.
macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $status:ident, $title:literal;)*) => {
        /// A kind of problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { $($(#[$doc])* $variant),* }

        impl Kind {
            /// All of them, in the order of the problems page.
            pub const ALL: &[Kind] = &[$(Kind::$variant),*];

            /// Its name: the fragment of its `type`.
            pub fn name(self) -> &'static str {
                match self { $(Kind::$variant => $name),* }
            }

            /// The status it is answered with.
            pub fn status(self) -> StatusCode {
                match self { $(Kind::$variant => StatusCode::$status),* }
            }

            /// What it is, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Kind::$variant => $title),* }
            }
        }
    };
}

kinds! {
    /// The key in the address.
    BadKey = "bad-key", BAD_REQUEST, "This is not a key";
    /// The word in the header.
    BadWord = "bad-word", BAD_REQUEST, "A word has four letters, a to z";
    /// If-Match or If-None-Match.
    BadPrecondition = "bad-precondition", BAD_REQUEST, "This precondition cannot be used here";
    /// The bytes of the request.
    BadRequest = "bad-request", BAD_REQUEST, "The request could not be read";
    /// The token, whatever is wrong with it.
    Unauthorized = "unauthorized", UNAUTHORIZED, "This needs a member's key";
    /// The role.
    NotAllowed = "not-allowed", FORBIDDEN, "Your key does not open this";
    /// The chosen name.
    BadPseudonym = "bad-pseudonym", BAD_REQUEST, "This cannot be a name";
    /// The name, or the key.
    PseudonymTaken = "pseudonym-taken", CONFLICT, "This is taken";
    /// The parts of an upload.
    BadUpload = "bad-upload", BAD_REQUEST, "This upload is not a submission";
    /// Within an hour.
    TooManySubmissions = "too-many-submissions", TOO_MANY_REQUESTS, "These are many submissions";
    /// Somebody was earlier.
    Decided = "decided", CONFLICT, "This is decided already";
    /// The word does not match, or is missing.
    WrongWord = "wrong-word", FORBIDDEN, "This is not the word of the save";
    /// After wrong words.
    WordWait = "word-wait", TOO_MANY_REQUESTS, "Wait before the next word";
    /// Nothing is kept under the key, or at the address.
    NotFound = "not-found", NOT_FOUND, "There is nothing here";
    /// The method.
    MethodNotAllowed = "method-not-allowed", METHOD_NOT_ALLOWED, "This address has no such method";
    /// The body did not arrive.
    SlowBody = "slow-body", REQUEST_TIMEOUT, "The body came too slowly";
    /// The revision in the precondition is not the current one.
    NewerSave = "newer-save", PRECONDITION_FAILED, "Another save is there";
    /// The body.
    TooLarge = "too-large", PAYLOAD_TOO_LARGE, "This is too large";
    /// Content-Type or Content-Encoding.
    UnsupportedType = "unsupported-type", UNSUPPORTED_MEDIA_TYPE, "This type of content is not taken here";
    /// A plaintext save that is no JSON.
    NotJson = "not-json", UNPROCESSABLE_ENTITY, "This is not JSON";
    /// JSON that is nested too deep.
    TooDeep = "too-deep", UNPROCESSABLE_ENTITY, "This JSON is nested too deep";
    /// No If-Match and no If-None-Match.
    PreconditionRequired = "precondition-required", PRECONDITION_REQUIRED, "Say which save this replaces";
    /// A work that is not there, or has no function.
    PythonUnknown = "python-unknown", NOT_FOUND, "There is no such function";
    /// The inputs of a function, by their size.
    InputsTooLarge = "python-inputs", PAYLOAD_TOO_LARGE, "These inputs cannot be given to a function";
    /// The inputs of a function, by what they are.
    BadInputs = "python-inputs", UNPROCESSABLE_ENTITY, "These inputs cannot be given to a function";
    /// Python is closed.
    PythonClosed = "python-closed", SERVICE_UNAVAILABLE, "Python is closed";
    /// The queue of calls.
    PythonBusy = "python-busy", SERVICE_UNAVAILABLE, "Too many calls at once";
    /// A call that took too long.
    PythonTimeout = "python-timeout", GATEWAY_TIMEOUT, "The function took too long";
    /// A call that needed too much.
    PythonMemory = "python-memory", BAD_GATEWAY, "The function needed too much memory";
    /// A call with too many threads.
    PythonProcesses = "python-processes", BAD_GATEWAY, "The function started too many threads";
    /// A call that wrote too much.
    PythonOutput = "python-output", BAD_GATEWAY, "The function wrote too much";
    /// A call that returned something else than JSON.
    PythonBadAnswer = "python-bad-answer", BAD_GATEWAY, "The function's answer is not JSON";
    /// A call of a forbidden system call.
    PythonDenied = "python-denied", BAD_GATEWAY, "The function did something forbidden";
    /// A call that died.
    PythonCrash = "python-crash", BAD_GATEWAY, "The function's process died";
    /// A call that raised.
    PythonError = "python-error", BAD_GATEWAY, "The function raised an error";
    /// Answered by nginx: too many requests from an address.
    Rate = "rate", TOO_MANY_REQUESTS, "Too many requests";
    /// More at once than is taken.
    Busy = "busy", SERVICE_UNAVAILABLE, "Too much at once";
    /// All that may be saved in a day has been saved.
    Quota = "quota", INSUFFICIENT_STORAGE, "No more can be saved today";
    /// The disk.
    StorageFull = "storage-full", INSUFFICIENT_STORAGE, "The disk of the server is full";
    /// A fault of ours.
    Internal = "internal", INTERNAL_SERVER_ERROR, "Something broke here";
    /// Answered by nginx: nobody is there to answer.
    Unavailable = "unavailable", BAD_GATEWAY, "The server behind this address is away";
}

/// A refusal on its way out.
#[derive(Debug)]
pub struct Problem {
    /// What kind.
    pub kind: Kind,
    detail: Option<String>,
    members: Vec<(&'static str, Value)>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl From<Kind> for Problem {
    fn from(kind: Kind) -> Self {
        Self { kind, detail: None, members: Vec::new(), headers: Vec::new() }
    }
}

impl Problem {
    /// Adds what this one is about, for the person who reads it.
    pub fn detail(self, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }

    fn member(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.members.push((name, value.into()));
        self
    }

    fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    fn retry_after(self, seconds: u64) -> Self {
        self.header(RETRY_AFTER, seconds.into())
    }

    /// A method that an address does not have; `allowed` as the header wants it.
    pub fn method_not_allowed(allowed: &str) -> Self {
        let value = HeaderValue::from_str(allowed).unwrap_or(HeaderValue::from_static(""));
        Self::from(Kind::MethodNotAllowed).detail(format!("There is {allowed}.")).header(ALLOW, value)
    }

    /// The answer that says so.
    pub fn into_answer(self) -> Answer {
        let mut body = Map::new();
        body.insert("type".into(), format!("/problems.html#{}", self.kind.name()).into());
        body.insert("title".into(), self.kind.title().into());
        body.insert("status".into(), self.kind.status().as_u16().into());
        body.extend(self.detail.map(|d| ("detail".to_owned(), d.into())));
        body.extend(self.members.into_iter().map(|(name, value)| (name.to_owned(), value)));
        let mut answer = Response::new(Value::Object(body).to_string().into());
        *answer.status_mut() = self.kind.status();
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        answer.headers_mut().extend(self.headers);
        answer::never_stored(answer)
    }
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge { bytes_max } => {
                Problem::from(Kind::TooLarge).detail(format!("At most {bytes_max} bytes are taken here."))
            }
            BodyError::Slow => Kind::SlowBody.into(),
            BodyError::Broken => Problem::from(Kind::BadRequest).detail("The body ended early."),
        }
    }
}

impl From<Turned> for Problem {
    fn from(turned: Turned) -> Self {
        match turned {
            // One answer, whatever was wrong.
            Turned::Unauthorized => {
                Self::from(Kind::Unauthorized).header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
            }
            Turned::NotAllowed(role) => {
                Self::from(Kind::NotAllowed).detail(format!("It needs the role {role}."))
            }
            Turned::TooOften(seconds) => Self::from(Kind::Rate)
                .detail(format!("This key asks too often; in {seconds} seconds it may again."))
                .retry_after(seconds.unsigned_abs()),
            Turned::Failed => Kind::Internal.into(),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let plain = Problem::from;
        match refusal {
            Refusal::BadKey => plain(Kind::BadKey).detail("A key has 64 digits, 0 to 9 and a to f."),
            Refusal::BadWord => plain(Kind::BadWord),
            Refusal::BadPrecondition(why) => plain(Kind::BadPrecondition).detail(why),
            Refusal::NoPrecondition => plain(Kind::PreconditionRequired)
                .detail("A new save needs `If-None-Match: *`; changing or deleting one needs `If-Match` with its tag."),
            Refusal::BadType(why) => plain(Kind::UnsupportedType).detail(why),
            Refusal::BadJson(error) => {
                let (kind, detail) = match error {
                    JsonError::Not(_) => (Kind::NotJson, about(&error)),
                    JsonError::TooDeep { .. } => (Kind::TooDeep, about(&error)),
                };
                plain(kind).detail(detail)
            }
            Refusal::WrongWord { tries_left, wait_seconds } => plain(Kind::WrongWord)
                .member("attempts_left", tries_left)
                .member("wait_seconds", wait_seconds),
            Refusal::WordWait { seconds } => {
                plain(Kind::WordWait).member("wait_seconds", seconds).retry_after(seconds)
            }
            Refusal::Missing => plain(Kind::NotFound).detail("No save is kept under this key."),
            Refusal::Newer(revision) => plain(Kind::NewerSave)
                .detail("The save under this key is another one than the request names.")
                .header(ETAG, answer::etag(revision)),
            Refusal::Busy => plain(Kind::Busy).retry_after(1),
            Refusal::Quota { seconds } => plain(Kind::Quota).retry_after(seconds),
            Refusal::Full => plain(Kind::StorageFull).detail("The save that was there before is unharmed."),
            Refusal::Failed => plain(Kind::Internal),
        }
    }
}

/// What is wrong with JSON, in a sentence.
fn about(error: &JsonError) -> String {
    match error {
        JsonError::Not(place) => place.clone(),
        JsonError::TooDeep { levels_max } => format!("At most {levels_max} levels are taken."),
    }
}

impl From<python::Refusal> for Problem {
    fn from(refusal: python::Refusal) -> Self {
        use python::Refusal;
        let plain = Problem::from;
        match refusal {
            Refusal::Unknown => plain(Kind::PythonUnknown)
                .detail("No published work at this address declares a Python function."),
            Refusal::BadType => plain(Kind::UnsupportedType).detail("Inputs are application/json."),
            Refusal::BadInputs(error) => plain(Kind::BadInputs).detail(about(&error)),
            Refusal::Closed(why) => plain(Kind::PythonClosed).detail(why).retry_after(60),
            Refusal::Busy => plain(Kind::PythonBusy).retry_after(1),
            Refusal::Raised { kind, message, line } => plain(Kind::PythonError)
                .member("error_type", kind)
                .member("message", message)
                .member("line", line),
            Refusal::Ended { how, sentence } => plain(match how {
                Ending::Timeout => Kind::PythonTimeout,
                Ending::Memory => Kind::PythonMemory,
                Ending::Processes => Kind::PythonProcesses,
                Ending::Output => Kind::PythonOutput,
                Ending::BadAnswer => Kind::PythonBadAnswer,
                Ending::Denied => Kind::PythonDenied,
                Ending::Crash => Kind::PythonCrash,
            })
            .detail(sentence),
            Refusal::Failed => plain(Kind::Internal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_stable_words_and_come_once() {
        let mut names: Vec<_> = Kind::ALL.iter().map(|k| (k.name(), k.status())).collect();
        assert!(
            names.iter().all(|(n, _)| n.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')),
            "{names:?}"
        );
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Kind::ALL.len());
        assert!(Kind::ALL.iter().all(|k| k.status().is_client_error() || k.status().is_server_error()));
    }

    /// The page is where a `type` leads.
    #[test]
    fn the_problems_page_explains_each_of_them() {
        let page =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../content/pages/problems.md"))
                .unwrap();
        let mut explained: Vec<(String, Vec<u16>)> = Vec::new();
        for section in page.split("\n### ").skip(1) {
            let (name, text) = section.split_once('\n').unwrap();
            let statuses = text.trim_start().split('·').next().unwrap();
            let statuses = statuses.split("**").filter_map(|s| s.parse().ok()).collect();
            assert!(text.contains("What to do:"), "{name}");
            explained.push((name.to_owned(), statuses));
        }
        let mut known: Vec<(String, Vec<u16>)> = Vec::new();
        for kind in Kind::ALL {
            match known.iter_mut().find(|(n, _)| n == kind.name()) {
                Some((_, statuses)) => statuses.push(kind.status().as_u16()),
                None => known.push((kind.name().to_owned(), vec![kind.status().as_u16()])),
            }
        }
        explained.sort();
        known.sort();
        assert_eq!(explained, known);
    }

    #[test]
    fn a_problem_carries_its_members_and_headers() {
        let answer = Problem::from(Refusal::WordWait { seconds: 8 }).into_answer();
        assert_eq!(answer.status(), 429);
        assert_eq!(answer.headers()[RETRY_AFTER], "8");
        assert_eq!(answer.headers()[CONTENT_TYPE], "application/problem+json");
        assert_eq!(answer.headers()["cache-control"], "no-store");
    }
}
