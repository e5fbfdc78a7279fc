//! Previews: a pending work at an address that nobody can guess, for a while.
//!
//! Opening one enqueues its rendering, which is `sitegen`'s. The bytes are never sent from here: nginx asks with the token,
//! on behalf of whoever has the address, and is told which of its own files to send, under the headers that it sends with
//! any other work. A token is 128 random bits; it ends with its time, or with the decision.

use std::sync::Arc;

use catalog::CatalogError;
use catalog::slug::FileName;
use hyper::StatusCode;
use policy::limits;
use serde_json::json;

use super::http::{decided, id, moderator};
use crate::App;
use crate::answer::{self, Answer};
use crate::problem::{Kind, Problem};
use crate::route::Call;
use crate::submissions::http::failed;
use crate::work::{self, now};

/// Opens a preview of a version.
pub(crate) async fn open(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    moderator(&app, &call).await?;
    let (id, token) = (id(&call)?, work::word().map_err(|_| Problem::from(Kind::Internal))?);
    let (named, at) = (token.clone(), now());
    let expires = at + i64::from(limits().review.preview_seconds);
    let opened = app.desk.with(move |catalog| catalog.open_preview(id, &named, at, expires)).await;
    if !opened.map_err(|e| failed(&e))? {
        return Err(decided());
    }
    work::wake(app.desk.data());
    let preview = json!({ "token": token, "path": format!("/preview/{token}/"), "expires": expires });
    Ok(answer::json(StatusCode::CREATED, &preview))
}

/// Whether it is rendered yet.
pub(crate) async fn state(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    moderator(&app, &call).await?;
    let job = format!("preview-{}", call.parameter("token"));
    let found = app.desk.with(move |catalog| catalog.job(&job)).await.map_err(|e| failed(&e))?;
    let (state, result) = found.ok_or_else(decided)?;
    Ok(answer::json(StatusCode::OK, &json!({ "state": state, "result": result })))
}

/// nginx's question for the page of a preview.
pub(crate) async fn page(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    send(app, call.parameter("token"), "index.html").await
}

/// nginx's question for a file of a preview.
pub(crate) async fn file(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    let name = call.parameter("file");
    let is_plain =
        name.parse::<FileName>().is_ok() || name == catalog::slug::SIDECAR || name == catalog::slug::PAYLOAD;
    if !is_plain {
        return Err(Kind::NotFound.into());
    }
    send(app, call.parameter("token"), name).await
}

async fn send(app: Arc<App>, token: &str, file: &str) -> Result<Answer, Problem> {
    let asked = token.to_owned();
    let open =
        app.desk.with(move |catalog| Ok::<_, CatalogError>(catalog.preview(&asked, now())?.is_some())).await;
    match open.map_err(|e| failed(&e))? {
        true => answer::sent_by_nginx(&format!("/preview-files/{token}/{file}")).ok_or(Kind::NotFound.into()),
        false => Err(Problem::from(Kind::NotFound).detail("This preview has ended. Open a new one.")),
    }
}
