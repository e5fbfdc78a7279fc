//! A member who asks: by a token of a key that is made here.

use std::time::{SystemTime, UNIX_EPOCH};

use data_encoding::BASE64URL_NOPAD;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use policy::limits;

use crate::server::Server;

/// The public half as a JSON Web Key, and a token for the site of [`Server`].
fn key_and_token(seed: u8) -> (String, String) {
    let key = SigningKey::from_slice(&[seed; 32]).unwrap();
    let point = key.verifying_key().to_sec1_point(false);
    let (x, y) = point.as_bytes()[1..].split_at(32);
    let (x, y) = (BASE64URL_NOPAD.encode(x), BASE64URL_NOPAD.encode(y));
    let jwk = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
    let kid = BASE64URL_NOPAD.encode(catalog::Digest::of(jwk.as_bytes()).as_bytes());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let header = format!(r#"{{"alg":"ES256","typ":"JWT","kid":"{kid}"}}"#);
    let claims = format!(r#"{{"aud":"http://localhost","iat":{now},"exp":{}}}"#, now + 300);
    let words = [header, claims].map(|part| BASE64URL_NOPAD.encode(part.as_bytes())).join(".");
    let signature: Signature = key.sign(words.as_bytes());
    let signature = BASE64URL_NOPAD.encode(&signature.normalize_s().to_bytes());
    (jwk, format!("Bearer {words}.{signature}"))
}

#[test]
fn a_key_that_asks_too_often_is_told_to_wait_and_another_is_not() {
    let server = Server::new();
    let mut client = server.client();
    let mut tokens = Vec::new();
    for (seed, name) in [(1, "ann"), (2, "zoe")] {
        let (key, token) = key_and_token(seed);
        let body = format!(r#"{{"pseudonym":"{name}","key":{key}}}"#);
        let headers = [("Authorization", token.as_str()), ("Content-Type", "application/json")];
        assert_eq!(client.request("POST", "/api/members", &headers, body.as_bytes()).status, 201);
        tokens.push(token);
    }
    let mut ask = |token: &str| client.request("GET", "/api/members/me", &[("Authorization", token)], b"");
    // A minute may end in between, which gives as many again.
    let refused = (0..=2 * limits().member.requests_per_minute_max)
        .map(|_| ask(&tokens[0]))
        .find(|answer| answer.status != 200)
        .unwrap();
    assert_eq!((refused.status, refused.problem().as_str()), (429, "rate"));
    let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
    assert_eq!(ask(&tokens[1]).status, 200);
}
