//! Tokens that prove nothing, roles that are gone, and submissions that want what is not theirs, through nginx.

use anyhow::{Context as _, Result, ensure};
use data_encoding::BASE64URL_NOPAD;
use p256::ecdsa::Signature;
use serde_json::{Value, json};
use tests::desk::{self, Key, Running};
use tests::{Installation, http};

const PAGE: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Kite</title><body><h1>Kite</h1></body></html>\n";

fn installation() -> Result<(Installation, Running)> {
    let mut here = Installation::small()?;
    here.publish()?;
    let serve = desk::serve(&here)?;
    here.serve()?;
    Ok((here, serve))
}

/// Asks who one is, with these words as token.
fn asked(here: &Installation, token: &str) -> Result<http::Answer> {
    let bearer = format!("Bearer {token}");
    http::with(here.site_port, "localhost", "GET", "/api/members/me", &[("Authorization", &bearer)])
}

#[test]
fn every_token_that_proves_nothing_has_the_same_answer() -> Result<()> {
    let (here, _serve) = installation()?;
    let (ann, zoe) = (Key::new(&here, 1)?.claim("ann")?, Key::new(&here, 2)?.claim("zoe")?);
    let stranger = Key::new(&here, 3)?;
    let good = ann.token()?;
    assert_eq!(asked(&here, &good)?.status, 200);
    let (header, claims) = ann.words(0)?;
    let (words, signature) = good.rsplit_once('.').context("no signature")?;
    let signature = BASE64URL_NOPAD.decode(signature.as_bytes())?;
    let with = |bytes: &[u8]| format!("{words}.{}", BASE64URL_NOPAD.encode(bytes));
    let parsed = Signature::from_slice(&signature)?;
    let other_s = Signature::from_scalars(parsed.r().to_bytes(), (-*parsed.s()).to_bytes())?;
    let zeros = [0; 32];
    let unsigned = |alg: &str| {
        let header = BASE64URL_NOPAD.encode(header.replace("ES256", alg).as_bytes());
        format!("{header}.{}.", BASE64URL_NOPAD.encode(claims.as_bytes()))
    };
    let bad = [
        ("nobody's", stranger.token()?),
        ("another's key", zoe.signed(&header, &claims)),
        ("another curve", ann.signed(&header.replace("ES256", "ES384"), &claims)),
        ("symmetric", ann.signed(&header.replace("ES256", "HS256"), &claims)),
        ("none", unsigned("none")),
        ("None", unsigned("None")),
        ("unsigned", unsigned("ES256")),
        ("another audience", ann.signed(&header, &claims.replace("localhost", "127.0.0.1"))),
        ("expired", ann.token_from(-600)?),
        ("from the future", ann.token_from(600)?),
        ("r is zero", with(&[&zeros, &signature[32..]].concat())),
        ("s is zero", with(&[&signature[..32], &zeros].concat())),
        ("the other s", with(&other_s.to_bytes())),
        ("cut off", good[..good.len() - 1].to_owned()),
        ("nothing", String::new()),
    ];
    let mut answers = Vec::new();
    for (what, token) in &bad {
        let mut answer = asked(&here, token)?;
        assert_eq!(answer.status, 401, "{what}: {}", answer.text());
        answer.headers.retain(|(name, _)| name != "date");
        answers.push((what, answer.headers, answer.body));
    }
    let (_, headers, body) = answers.first().context("no answers")?;
    for (what, other_headers, other_body) in &answers {
        assert_eq!((other_headers, other_body), (headers, body), "{what}");
    }
    // So long a header is nginx's to refuse, before the server hears of it.
    assert_eq!(asked(&here, &"a".repeat(65_536))?.status, 400);
    assert_eq!(asked(&here, &"a".repeat(4_096))?.status, 401);
    assert_eq!(asked(&here, &good)?.status, 200);
    Ok(())
}

#[test]
fn a_role_that_was_revoked_a_moment_ago_is_gone() -> Result<()> {
    let (here, _serve) = installation()?;
    let (ann, zoe) = (Key::new(&here, 1)?.claim("ann")?, Key::new(&here, 2)?.claim("zoe")?);
    let member = |verb: &str, name: &str, role: &str| -> Result<()> {
        let ran = desk::api(&here, &["member", verb, name, role])?;
        ensure!(ran.code == 0, "{ran:?}");
        Ok(())
    };
    let takedown = json!({ "creator": "moth", "work": "hitch", "reason": "It is mine." });
    member("grant", "zoe", "moderator")?;
    assert_eq!(zoe.ask("GET", "/api/review", None)?.status, 200);
    member("revoke", "zoe", "moderator")?;
    assert_eq!(zoe.ask("GET", "/api/review", None)?.status, 403);
    assert_eq!(zoe.ask("POST", "/api/takedowns", Some(&takedown))?.status, 403);
    let submit = || {
        ann.send(
            "POST",
            "/api/submissions",
            desk::MULTIPART,
            &desk::multipart(&[("payload", "a.html", PAGE.as_bytes())]),
        )
    };
    assert_eq!(submit()?.status, 202);
    member("revoke", "ann", "creator")?;
    assert_eq!(submit()?.status, 403);
    let catalog = catalog::Catalog::open(&here.data("catalog.db"))?;
    assert_eq!(catalog.staged()?.len(), 1);
    assert!(catalog.audit(9)?.iter().all(|a| a.action != "take_down"));
    Ok(())
}

#[test]
fn nobody_submits_under_anothers_name_or_without_a_sidecar() -> Result<()> {
    let (here, _serve) = installation()?;
    let maker = Key::new(&here, 1)?.claim("maker")?;
    let page = ("payload", "a.html", PAGE.as_bytes());
    let sidecar = |text: &'static str| ("sidecar", "work.json", text.as_bytes());
    let whole = maker.submit(&[page, sidecar(r#"{"id": "hitch", "title": "Hitch"}"#)])?;
    let mut refused = Vec::new();
    for files in [
        vec![page],
        vec![page, sidecar(r#"{"id": "moth/hitch"}"#)],
        vec![page, sidecar(r#"{"id": "../moth/hitch"}"#)],
        vec![page, sidecar(r#"{"id": "hitch", "creator": "moth"}"#)],
    ] {
        refused.push((maker.submit(&files)?, files));
    }
    let before = here.live()?;
    ensure!(desk::api(&here, &["work", "--once"])?.code == 0);
    for (job, files) in refused {
        let found = maker.job(&job)?;
        let findings = found["report"]["findings"].to_string();
        assert!(found["state"] == "rejected" && findings.contains("work.json"), "{files:?}: {found}");
    }
    // The name in its path is that of the key, and the work of the other one is as it was.
    assert_eq!(maker.job(&whole)?["state"], "pending_review");
    let catalog = catalog::Catalog::open(&here.data("catalog.db"))?;
    let pending: Vec<String> = catalog.pending()?.iter().map(|p| p.work.path()).collect();
    assert_eq!((pending, here.live()?), (vec!["/maker/hitch/".to_owned()], before));
    let queue: Value = serde_json::from_slice(&maker.ask("GET", "/api/submissions", None)?.body)?;
    assert_eq!(queue["submissions"].as_array().map(Vec::len), Some(5));
    Ok(())
}

/// A server that answers and hangs up while nginx still sends leaves nginx with a connection that is none, for this request
/// or for the next one on it.
#[test]
fn a_refusal_that_needed_no_body_is_passed_on_and_so_is_the_request_after_it() -> Result<()> {
    let (here, _serve) = installation()?;
    let stranger = Key::new(&here, 3)?;
    let mut statuses = Vec::new();
    // Sizes that nginx has sent before the server has read them.
    for size in [20_000, 50_000, 100_000, 150_000, 18_000].repeat(9) {
        let body = vec![b'x'; size];
        statuses.push(stranger.send("POST", "/api/submissions", desk::MULTIPART, &body)?.status);
        statuses.push(http::get(here.site_port, "localhost", "/api/members/me")?.status);
    }
    statuses.dedup();
    assert_eq!(statuses, [401]);
    Ok(())
}
