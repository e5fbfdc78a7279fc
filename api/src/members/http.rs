//! `/api/members`: a pseudonym is claimed, and a key is told what it may do.

use std::sync::Arc;

use catalog::member::{Member, MemberError};
use catalog::{Day, Slug};
use policy::limits;
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use crate::answer::{self, Answer};
use crate::members::token::PublicKey;
use crate::problem::{Kind, Problem};
use crate::route::Call;
use crate::submissions::http::failed;
use crate::{App, body};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim<'b> {
    pseudonym: &'b str,
    #[serde(borrow)]
    key: &'b RawValue,
}

/// Claims a pseudonym for the key in the body, which must have signed the request's token.
pub(crate) async fn claim(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    let headers = call.headers().clone();
    let body = body::read(call.into_body(), limits().member.body_bytes_max).await?;
    let Claim { pseudonym, key } = serde_json::from_slice(&body)
        .map_err(|e| Problem::from(Kind::BadRequest).detail(format!("the body is not a claim: {e}")))?;
    let key = PublicKey::parse(key.get()).map_err(|_| {
        Problem::from(Kind::BadRequest)
            .detail("`key` is no public key: a JSON Web Key with kty, crv, x and y on P-256")
    })?;
    app.desk.claimed(&headers).and_then(|token| token.signed_by(&key)).map_err(|_| Kind::Unauthorized)?;
    let pseudonym = Slug::parse_creator(pseudonym)
        .map_err(|e| Problem::from(Kind::BadPseudonym).detail(e.to_string()))?;
    let claimed = app
        .desk
        .with(move |catalog| catalog.claim(&key.thumbprint(), key.as_jwk(), &pseudonym, Day::today()))
        .await;
    let member = claimed.map_err(|error| match error {
        MemberError::Taken(name) => Problem::from(Kind::PseudonymTaken)
            .detail(format!("{name} belongs to somebody else; choose another.")),
        MemberError::Known(name) => {
            Problem::from(Kind::PseudonymTaken).detail(format!("This key belongs to {name} already."))
        }
        MemberError::Catalog(error) => failed(&error),
        MemberError::Unknown(_) => {
            tracing::error!("{error}");
            Kind::Internal.into()
        }
    })?;
    Ok(answer::json(hyper::StatusCode::CREATED, &shown(&member)))
}

/// Who the key belongs to.
pub(crate) async fn me(app: Arc<App>, call: Call) -> Result<Answer, Problem> {
    let member = app.desk.member(call.headers(), None).await?;
    Ok(answer::json(hyper::StatusCode::OK, &shown(&member)))
}

fn shown(member: &Member) -> serde_json::Value {
    json!({ "pseudonym": member.pseudonym, "roles": member.roles })
}
