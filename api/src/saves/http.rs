//! The three methods of `/api/saves/{key}`: from a request to a change of the store, and back to an answer.
//!
//! The word is looked at before anything else about the record, so that nobody without it learns more than that a
//! record is there. Called through the table of routes.

use std::sync::Arc;

use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, IF_MATCH, IF_NONE_MATCH};
use policy::limits;

use super::store::{Change, Head, NewWord};
use super::words::Word;
use super::{Key, Position, Refusal, Revision, Today};
use crate::answer::{self, Answer};
use crate::metrics::Work;
use crate::problem::Problem;
use crate::route::Call;
use crate::{App, body, json};

/// The header with the word.
pub const WORD: &str = "save-word";

const ENCRYPTED: &str = "application/octet-stream";
const PLAINTEXT: &str = "application/json";

/// `GET`: the bytes as they were put.
pub async fn get(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    let key: Key = call.parameter("key").parse()?;
    let word = word(call.headers())?;
    let (head, bytes) = app.saves.load(&key)?.ok_or(Refusal::Missing)?;
    app.words.check(&app.saves, key, &head, word).await?;
    if head.day != Today::now() {
        app.saves.change_later(key, Change::Touch);
    }
    Ok(answer::tagged(answer::ok(content_type(head.position), bytes), head.revision))
}

/// `PUT`: a new save, or another body for the one that is named.
pub async fn put(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    let work = Work::of(&app, call.headers());
    let done = replace(&app, call).await;
    app.metrics.saved(work, done.as_ref().map(|(_, bytes)| *bytes).map_err(|problem| problem.kind));
    done.map(|(answer, _)| answer)
}

/// The answer, and how many bytes were saved.
async fn replace(app: &App, call: Call) -> Result<(Answer, usize), Problem> {
    let key: Key = call.parameter("key").parse()?;
    let word = word(call.headers())?;
    let precondition = precondition(call.headers());
    let position = position(call.headers())?;
    let bytes = body::read(call.into_body(), limits().save.body_bytes_max as usize).await?;
    if position == Position::Plaintext {
        json::check(&bytes, limits().save.json_depth_max).map_err(Refusal::BadJson)?;
    }
    let head = app.saves.head(&key)?;
    if let Some(head) = &head {
        app.words.check(&app.saves, key, head, word.clone()).await?;
    }
    let (size, precondition) = (bytes.len(), precondition?);
    stands(head.as_ref(), &precondition)?;
    app.budget.spend(size, Today::now())?;
    let had_word = head.is_some_and(|h| h.word.is_some());
    let new_word = match (position, word) {
        (Position::Encrypted, _) => NewWord::Remove,
        (Position::Plaintext, Some(word)) if !had_word => NewWord::Set(app.words.hash(key, word).await?),
        (Position::Plaintext, _) => NewWord::Keep,
    };
    let (change, answer) = match precondition {
        Precondition::New => {
            let word = if let NewWord::Set(hash) = new_word { Some(hash) } else { None };
            (Change::Create { position, body: bytes, word }, answer::created())
        }
        Precondition::Is(expected) => {
            (Change::Replace { expected, position, body: bytes, word: new_word }, answer::done())
        }
    };
    let done = app.saves.change(key, change).await?;
    Ok((answer::tagged(answer, done.revision), size))
}

/// `DELETE`: the save that is named is no more.
pub async fn delete(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    let key: Key = call.parameter("key").parse()?;
    let word = word(call.headers())?;
    let precondition = precondition(call.headers());
    let head = app.saves.head(&key)?.ok_or(Refusal::Missing)?;
    app.words.check(&app.saves, key, &head, word).await?;
    let Precondition::Is(expected) = precondition? else {
        return Err(Refusal::BadPrecondition("Deleting needs `If-Match` with the tag of the save.").into());
    };
    app.saves.change(key, Change::Delete { expected }).await?;
    Ok(answer::done())
}

/// Which state of the record a change is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Precondition {
    /// There is none yet.
    New,
    /// This one.
    Is(Revision),
}

/// Whether the record is in that state now. The writer asks once more; this spares a hash and the day's budget.
fn stands(head: Option<&Head>, precondition: &Precondition) -> Result<(), Refusal> {
    match (head, precondition) {
        (None, Precondition::Is(_)) => Err(Refusal::Missing),
        (Some(head), Precondition::New) => Err(Refusal::Newer(head.revision)),
        (Some(head), Precondition::Is(revision)) if head.revision != *revision => {
            Err(Refusal::Newer(head.revision))
        }
        _ => Ok(()),
    }
}

fn precondition(headers: &HeaderMap) -> Result<Precondition, Refusal> {
    let bad = Refusal::BadPrecondition;
    match (single(headers, IF_NONE_MATCH)?, single(headers, IF_MATCH)?) {
        (None, None) => Err(Refusal::NoPrecondition),
        (Some(_), Some(_)) => Err(bad("Either `If-None-Match` or `If-Match`, not both.")),
        (Some("*"), None) => Ok(Precondition::New),
        (Some(_), None) => Err(bad("`If-None-Match` is `*` here: make a save that is not there yet.")),
        (None, Some(tag)) => revision(tag)
            .map(Precondition::Is)
            .ok_or(bad("`If-Match` is the `ETag` of the save, exactly as it was answered.")),
    }
}

fn revision(tag: &str) -> Option<Revision> {
    let digits = tag.strip_prefix('"')?.strip_suffix('"')?;
    let revision = Revision(digits.parse().ok()?);
    (revision.to_string() == digits && revision.0 >= 0).then_some(revision)
}

/// A header that must not come twice.
fn single(headers: &HeaderMap, name: hyper::header::HeaderName) -> Result<Option<&str>, Refusal> {
    let mut values = headers.get_all(&name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match value.to_str() {
            Ok(text) => Ok(Some(text.trim())),
            Err(_) => Err(Refusal::BadPrecondition("A precondition is ASCII.")),
        },
        (Some(_), Some(_)) => Err(Refusal::BadPrecondition("A precondition comes once.")),
    }
}

fn word(headers: &HeaderMap) -> Result<Option<Word>, Refusal> {
    let mut values = headers.get_all(WORD).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map_err(|_| Refusal::BadWord)?.parse().map(Some),
        (Some(_), Some(_)) => Err(Refusal::BadWord),
    }
}

fn position(headers: &HeaderMap) -> Result<Position, Refusal> {
    if headers.get(CONTENT_ENCODING).is_some_and(|v| v != "identity") {
        return Err(Refusal::BadType("A save is sent without a content encoding."));
    }
    let both = "A save is application/octet-stream (encrypted) or application/json (plaintext).";
    let value = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).ok_or(Refusal::BadType(both))?;
    let (kind, parameters) = value.split_once(';').unwrap_or((value, ""));
    let parameters = parameters.trim();
    let utf8 = parameters.is_empty() || parameters.eq_ignore_ascii_case("charset=utf-8");
    match kind.trim() {
        kind if kind.eq_ignore_ascii_case(ENCRYPTED) && parameters.is_empty() => Ok(Position::Encrypted),
        kind if kind.eq_ignore_ascii_case(PLAINTEXT) && utf8 => Ok(Position::Plaintext),
        _ => Err(Refusal::BadType(both)),
    }
}

fn content_type(position: Position) -> &'static str {
    match position {
        Position::Encrypted => ENCRYPTED,
        Position::Plaintext => PLAINTEXT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(rows: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in rows {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn preconditions() {
        let of = |rows: &[(&'static str, &str)]| precondition(&headers(rows));
        assert_eq!(of(&[("if-none-match", "*")]), Ok(Precondition::New));
        assert_eq!(of(&[("if-match", "\"7\"")]), Ok(Precondition::Is(Revision(7))));
        assert_eq!(of(&[]), Err(Refusal::NoPrecondition));
        for bad in [
            &[("if-match", "*")][..],
            &[("if-match", "7")],
            &[("if-match", "W/\"7\"")],
            &[("if-match", "\"7\", \"8\"")],
            &[("if-match", "\"07\"")],
            &[("if-match", "\"+7\"")],
            &[("if-match", "\"-7\"")],
            &[("if-match", "\"99999999999999999999\"")],
            &[("if-match", "\"\"")],
            &[("if-match", "\"")],
            &[("if-match", "")],
            &[("if-none-match", "\"7\"")],
            &[("if-none-match", "*, *")],
            &[("if-none-match", "*"), ("if-none-match", "*")],
            &[("if-none-match", "*"), ("if-match", "\"7\"")],
        ] {
            assert!(matches!(of(bad), Err(Refusal::BadPrecondition(_))), "{bad:?}");
        }
    }

    #[test]
    fn content_types() {
        let of = |value: &str| position(&headers(&[("content-type", value)]));
        assert_eq!(of("application/octet-stream"), Ok(Position::Encrypted));
        assert_eq!(of("Application/JSON; charset=UTF-8"), Ok(Position::Plaintext));
        for bad in
            ["", "text/plain", "application/json; charset=utf-16", "application/jsonx", "multipart/form-data"]
        {
            assert!(matches!(of(bad), Err(Refusal::BadType(_))), "{bad}");
        }
        assert!(position(&headers(&[])).is_err());
        let packed = headers(&[("content-type", ENCRYPTED), ("content-encoding", "gzip")]);
        assert!(matches!(position(&packed), Err(Refusal::BadType(_))));
    }
}
