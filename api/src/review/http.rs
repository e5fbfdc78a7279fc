//! `/api/review`: the queue, one version with its sources, saves per work, decisions, takedowns, the audit.

use std::sync::Arc;

use catalog::member::{Member, Role};
use catalog::review::{DecideError, Decision, Pending};
use catalog::{Catalog, CatalogError, Day, Slug, Work};
use hyper::StatusCode;
use policy::limits;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::{self, Answer};
use crate::problem::{Kind, Problem};
use crate::route::Call;
use crate::submissions::http::failed;
use crate::work::{self, now};
use crate::{App, body};

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Approve,
    Decline,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Decided {
    decision: Verdict,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TakeDown {
    creator: Slug,
    work: Slug,
    reason: String,
}

/// What waits, the oldest first.
pub(crate) async fn queue(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    moderator(&app, &call).await?;
    let pending = app.desk.with(|catalog| catalog.pending()).await.map_err(|e| failed(&e))?;
    let with_saves = |pending: &Pending| {
        let mut row = row(pending);
        // Those of the version before: a new work has none.
        row["saves"] = json!(app.metrics.of_work(pending.work.path().trim_matches('/')));
        row
    };
    let rows: Vec<Value> = pending.iter().map(with_saves).collect();
    Ok(answer::json(StatusCode::OK, &json!({ "pending": rows, "now": now() })))
}

/// What was saved for each work since the server started, and refused: of works, never of players.
pub(crate) async fn saves(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    moderator(&app, &call).await?;
    let (since, works) = app.metrics.of_works();
    let rows: Vec<Value> = works
        .iter()
        .take(limits().review.saves_listed_max)
        .map(|(work, saved)| json!({ "work": work, "saved": saved }))
        .collect();
    Ok(answer::json(StatusCode::OK, &json!({ "since": since, "works": rows })))
}

/// One version that waits: its report, its sources and those of the version that is served, its screenshot.
pub(crate) async fn version(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    moderator(&app, &call).await?;
    let (id, data, stored) = (id(&call)?, app.desk.data().to_owned(), app.desk.stored().clone());
    let read = move |catalog: &mut Catalog| -> Result<Option<Value>, CatalogError> {
        let Some(pending) = catalog.pending_version(id)? else { return Ok(None) };
        let served = catalog.published_version(&pending.work.creator, &pending.work.slug)?;
        let sources = |work: &Work| -> Value {
            let text = |f: &catalog::WorkFile| {
                let bytes = stored.objects.read(&f.digest).ok()?;
                (f.role != catalog::Role::Cover).then(|| String::from_utf8_lossy(&bytes).into_owned())
            };
            let files = work.files.iter().map(|f| {
                json!({ "name": f.name, "role": f.role.as_str(), "bytes": f.bytes, "sha256": f.digest, "text": text(f) })
            });
            files.collect()
        };
        let mut whole = row(&pending);
        whole["report"] = serde_json::from_str(&pending.report).unwrap_or(Value::Null);
        whole["files"] = sources(&pending.work);
        whole["served"] = served.as_ref().map(sources).into();
        let picture = std::fs::read(work::screenshot(&data, &pending.job)).ok();
        whole["screenshot"] =
            picture.map(|png| format!("data:image/png;base64,{}", data_encoding::BASE64.encode(&png))).into();
        Ok(Some(whole))
    };
    let found = app.desk.with(read).await.map_err(|e| failed(&e))?;
    found.map(|whole| answer::json(StatusCode::OK, &whole)).ok_or_else(decided)
}

/// Approves or declines.
pub(crate) async fn decide(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    let moderator = moderator(&app, &call).await?;
    let id = id(&call)?;
    let Decided { decision: verdict, reason } = read(call).await?;
    if matches!(verdict, Verdict::Decline) && reason.trim().is_empty() {
        return Err(Problem::from(Kind::BadRequest).detail("A rejection needs its reason."));
    }
    let tree = app.desk.stored().live().ok().flatten();
    let act = move |catalog: &mut Catalog| {
        let decision = Decision { moderator: &moderator, reason: reason.trim(), now: now(), tree };
        match verdict {
            Verdict::Approve => catalog.approve(id, Day::today(), &decision),
            Verdict::Decline => catalog.decline(id, &decision),
        }
    };
    app.desk.with(act).await?;
    work::wake(app.desk.data());
    Ok(answer::done())
}

/// Takes a published work down.
pub(crate) async fn take_down(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    let moderator = moderator(&app, &call).await?;
    let TakeDown { creator, work, reason } = read(call).await?;
    if reason.trim().is_empty() {
        return Err(Problem::from(Kind::BadRequest).detail("A takedown needs its reason."));
    }
    let tree = app.desk.stored().live().ok().flatten();
    let act = move |catalog: &mut Catalog| {
        let decision = Decision { moderator: &moderator, reason: reason.trim(), now: now(), tree };
        catalog.take_down(&creator, &work, &decision)
    };
    app.desk.with(act).await?;
    work::wake(app.desk.data());
    Ok(answer::done())
}

/// The last decisions, newest first, and whether their chain holds.
pub(crate) async fn audit(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    moderator(&app, &call).await?;
    let listed_max = limits().review.audit_listed_max;
    let read = move |catalog: &mut Catalog| -> Result<Value, CatalogError> {
        let rows = catalog.audit(listed_max)?;
        Ok(json!({ "rows": rows, "intact": catalog.check_audit()?.is_ok() }))
    };
    let audit = app.desk.with(read).await.map_err(|e| failed(&e))?;
    Ok(answer::json(StatusCode::OK, &audit))
}

pub(super) async fn moderator(app: &Arc<App>, call: &Call) -> Result<Member, Problem> {
    Ok(app.desk.member(call.headers(), Some(Role::Moderator)).await?)
}

pub(super) fn id(call: &Call) -> Result<i64, Problem> {
    call.parameter("id").parse().map_err(|_| decided())
}

pub(super) fn decided() -> Problem {
    Problem::from(Kind::Decided)
        .detail("This version does not wait any more: somebody decided, or took it back.")
}

pub(super) async fn read<T: serde::de::DeserializeOwned>(call: Call) -> Result<T, Problem> {
    let body = body::read(call.into_body(), limits().member.body_bytes_max).await?;
    let text = std::str::from_utf8(&body).map_err(|_| Kind::BadRequest)?;
    if text.chars().count() > limits().review.reason_chars_max {
        return Err(Problem::from(Kind::TooLarge)
            .detail(format!("At most {} characters are taken here.", limits().review.reason_chars_max)));
    }
    serde_json::from_str(text)
        .map_err(|e| Problem::from(Kind::BadRequest).detail(format!("The body cannot be read: {e}")))
}

fn row(pending: &Pending) -> Value {
    let Pending { row, work, job, received, report } = pending;
    let report: Value = serde_json::from_str(report).unwrap_or(Value::Null);
    let notes = report["findings"].as_array().map_or(0, Vec::len);
    json!({
        "id": row, "jobId": job, "received": received, "path": work.path(), "creator": work.creator, "work": work.slug,
        "title": work.manifest.title(), "summary": work.manifest.summary, "notes": notes,
        "capabilities": work.manifest.capabilities.declared().collect::<Vec<_>>(),
        "bytes": work.file(catalog::Role::Payload).map(|f| f.bytes),
    })
}

impl From<DecideError> for Problem {
    fn from(error: DecideError) -> Self {
        match error {
            DecideError::NotModerator(_) => Self::from(Kind::NotAllowed).detail(format!("{error}.")),
            DecideError::Decided(_) => Self::from(Kind::Decided).detail(format!("{error}.")),
            DecideError::Catalog(error) => failed(&error),
        }
    }
}
