//! `/api/ratings/{creator}/{work}`: a member rates a published work, and sees how they did before.
//!
//! Called through the table of routes. What all members think is not here: it stands on the page of the work.

use std::sync::Arc;

use catalog::Slug;
use catalog::member::Role;
use catalog::rating::{RateError, Stars};
use hyper::StatusCode;
use policy::limits;
use serde::Deserialize;
use serde_json::json;

use super::http::read;
use crate::App;
use crate::answer::{self, Answer};
use crate::problem::{Kind, Problem};
use crate::route::Call;
use crate::submissions::http::failed;
use crate::work::now;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rated {
    stars: u64,
}

fn missing() -> Problem {
    Problem::from(Kind::NotFound).detail("Nothing is published there.")
}

fn address(call: &Call) -> Result<(Slug, Slug), Problem> {
    let slug = |name| call.parameter(name).parse().map_err(|_| missing());
    Ok((slug("creator")?, slug("work")?))
}

/// How the member rated it.
pub(crate) async fn own(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    let member = app.desk.member(call.headers(), Some(Role::Rater)).await?;
    let (creator, work) = address(&call)?;
    let stars = app.desk.with(move |catalog| catalog.stars_of(&member, &creator, &work)).await;
    Ok(answer::json(StatusCode::OK, &json!({ "stars": stars.map_err(|e| failed(&e))? })))
}

/// Rates, in the place of an earlier rating of the same member.
pub(crate) async fn rate(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    let member = app.desk.member(call.headers(), Some(Role::Rater)).await?;
    let (creator, work) = address(&call)?;
    let Rated { stars } = read(call).await?;
    let stars = Stars::parse(stars)
        .ok_or_else(|| Problem::from(Kind::BadRequest).detail("A rating is one to five stars."))?;
    let shown = i64::from(limits().review.rating_shown_seconds_max);
    let rated =
        app.desk.with(move |catalog| catalog.rate(&member, (&creator, &work), stars, now(), shown)).await;
    match rated {
        Ok(()) => Ok(answer::done()),
        Err(RateError::NotPublished(_)) => Err(missing()),
        Err(error @ (RateError::Own | RateError::NotRater(_))) => {
            Err(Problem::from(Kind::NotAllowed).detail(format!("{error}.")))
        }
        Err(RateError::Catalog(error)) => Err(failed(&error)),
    }
}
