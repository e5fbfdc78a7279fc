//! `/api/submissions` and `/api/jobs/{id}`: uploads, how far they have come, taking them back.

use std::sync::Arc;

use catalog::member::{Member, Role};
use catalog::submission::{State, Submission, SubmitError};
use catalog::{CatalogError, Slug};
use hyper::StatusCode;
use hyper::header::CONTENT_TYPE;
use policy::limits;
use serde_json::{Value, json};

use super::multipart::boundary;
use super::upload::{self, UploadError};
use crate::App;
use crate::answer::{self, Answer};
use crate::problem::{Kind, Problem};
use crate::route::Call;
use crate::work::{self, now};

/// Takes an upload and answers with the job that it became.
pub(crate) async fn submit(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    let member = app.desk.member(call.headers(), Some(Role::Creator)).await?;
    let content_type = call.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let boundary = boundary(content_type)
        .ok_or_else(|| Problem::from(Kind::UnsupportedType).detail("Send multipart/form-data."))?;
    let Ok(_place) = app.desk.uploads.try_acquire() else { return Err(Kind::Busy.into()) };
    let job = work::word().map_err(|_| Problem::from(Kind::Internal))?;
    let folder = work::staging(app.desk.data(), &job);
    let staged = upload::receive(&folder, call.into_body(), &boundary).await?;
    let id = job.clone();
    let submitted = app
        .desk
        .with(move |catalog| catalog.submit(&id, &member, now(), limits().submission.hourly_max))
        .await;
    submitted.map_err(|error| match error {
        SubmitError::TooMany(_) => Problem::from(Kind::TooManySubmissions).detail(format!("{error}.")),
        SubmitError::Catalog(error) => failed(&error),
    })?;
    // From here on it is in the catalogue, whatever becomes of this process.
    staged.keep();
    work::wake(app.desk.data());
    Ok(answer::json(StatusCode::ACCEPTED, &json!({ "jobId": job })))
}

/// A member's submissions, newest first.
pub(crate) async fn list(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    let member = app.desk.member(call.headers(), None).await?;
    let listed_max = limits().submission.listed_max;
    let own = app.desk.with(move |catalog| catalog.submissions_of(&member, listed_max)).await;
    let own = own.map_err(|e| failed(&e))?;
    let rows: Vec<Value> = own.iter().map(|s| shown(s, false)).collect();
    Ok(answer::json(StatusCode::OK, &json!({ "submissions": rows })))
}

/// How far a submission has come, for its creator and for moderators.
pub(crate) async fn job(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    let member = app.desk.member(call.headers(), None).await?;
    let submission = own(&app, &call, member).await?;
    Ok(answer::json(StatusCode::OK, &shown(&submission, true)))
}

/// Takes a submission back before it is decided.
pub(crate) async fn take_back(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    let member = app.desk.member(call.headers(), None).await?;
    let submission = own(&app, &call, member.clone()).await?;
    let job = submission.job.clone();
    let taken = app.desk.with(move |catalog| catalog.take_back(&job, &member, now())).await;
    match taken {
        Ok(true) => {
            let _ = std::fs::remove_dir_all(work::staging(app.desk.data(), &submission.job));
            Ok(answer::done())
        }
        Ok(false) => Err(Problem::from(Kind::Decided).detail("It was decided already, or it is not yours.")),
        Err(error) => Err(failed(&error)),
    }
}

/// Takes a published work of one's own down.
pub(crate) async fn retire(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    let member = app.desk.member(call.headers(), Some(Role::Creator)).await?;
    let missing = || Problem::from(Kind::NotFound).detail("You have no published work of that name.");
    let slug: Slug = call.parameter("work").parse().map_err(|_| missing())?;
    let retired = app.desk.with(move |catalog| catalog.retire(&member, &slug, now())).await;
    match retired {
        Ok(true) => {
            work::wake(app.desk.data());
            Ok(answer::done())
        }
        Ok(false) => Err(missing()),
        Err(error) => Err(failed(&error)),
    }
}

async fn own(app: &Arc<App>, call: &Call, member: Member) -> Result<Submission, Problem> {
    let id = call.parameter("id").to_owned();
    let found = app.desk.with(move |catalog| catalog.submission(&id)).await.map_err(|e| failed(&e))?;
    // Somebody else's is as unknown as one that never was.
    let is_theirs = |s: &Submission| s.creator == member.pseudonym || member.is(Role::Moderator);
    found
        .filter(is_theirs)
        .ok_or_else(|| Problem::from(Kind::NotFound).detail("You have no such submission."))
}

fn shown(submission: &Submission, whole: bool) -> Value {
    let Submission { job, state, stage, note, slug, report, received, ahead, creator } = submission;
    let mut row = json!({
        "jobId": job, "state": state, "stage": stage, "note": note, "slug": slug, "creator": creator,
        "received": received, "ahead": ahead,
    });
    if *state == State::Published {
        row["path"] = format!("/{creator}/{slug}/").into();
    }
    if whole {
        row["report"] = serde_json::from_str(report).unwrap_or(Value::Null);
    }
    row
}

pub(crate) fn failed(error: &CatalogError) -> Problem {
    tracing::error!("{error}");
    if error.is_disk_full() { Kind::StorageFull.into() } else { Kind::Internal.into() }
}

impl From<UploadError> for Problem {
    fn from(error: UploadError) -> Self {
        match error {
            UploadError::Bad(why) => Self::from(Kind::BadUpload).detail(why),
            UploadError::TooLarge(why) => Self::from(Kind::TooLarge).detail(why),
            UploadError::Slow => Kind::SlowBody.into(),
            UploadError::Broken => Self::from(Kind::BadRequest).detail("The body ended early."),
            UploadError::Full => Kind::StorageFull.into(),
            UploadError::Failed => Kind::Internal.into(),
        }
    }
}
