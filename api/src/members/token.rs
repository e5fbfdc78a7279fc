//! Bearer tokens: proof that a request was made by whoever holds a key.
//!
//! A token is a JSON Web Token of the one shape below, signed with ES256 by the member's own key, which `kid` names by
//! its thumbprint (RFC 7638). Nothing is negotiated: any other algorithm, member of the header or claim is refused, and
//! so is the second form that every ECDSA signature has (a token has one spelling, with `s` in the lower half). Called
//! by `members`. It keeps no state, and says nothing of why a token was refused: all refusals are one.

use data_encoding::BASE64URL_NOPAD;
use p256::ecdsa::signature::Verifier as _;
use p256::ecdsa::{Signature, VerifyingKey};
use policy::limits;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

/// A token that proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unauthorized;

/// A point on P-256, as a JSON Web Key.
#[derive(Debug, Clone)]
pub struct PublicKey {
    key: VerifyingKey,
    jwk: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Jwk {
    kty: String,
    crv: String,
    x: String,
    y: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    alg: String,
    typ: String,
    kid: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    aud: String,
    iat: i64,
    exp: i64,
}

/// A token whose words are right; whose it is, its signature still has to show.
#[derive(Debug)]
pub struct Claimed<'t> {
    signed: &'t str,
    signature: Signature,
    /// The thumbprint of the key that it names.
    pub thumbprint: String,
}

impl PublicKey {
    /// Reads a JSON Web Key with exactly `kty`, `crv`, `x` and `y`: a point on the curve, and no private part.
    pub fn parse(jwk: &str) -> Result<Self, Unauthorized> {
        let Jwk { kty, crv, x, y } = serde_json::from_str(jwk).map_err(|_| Unauthorized)?;
        if (kty.as_str(), crv.as_str()) != ("EC", "P-256") {
            return Err(Unauthorized);
        }
        let mut point = vec![4];
        for half in [&x, &y] {
            point.extend(BASE64URL_NOPAD.decode(half.as_bytes()).map_err(|_| Unauthorized)?);
        }
        let key = VerifyingKey::from_sec1_bytes(&point).map_err(|_| Unauthorized)?;
        // The members that RFC 7638 hashes, in its order.
        let jwk = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        Ok(Self { key, jwk })
    }

    /// The key in the one spelling that is stored and hashed.
    pub fn as_jwk(&self) -> &str {
        &self.jwk
    }

    /// Its name: SHA-256 in base64url, 43 characters.
    pub fn thumbprint(&self) -> String {
        BASE64URL_NOPAD.encode(&Sha256::digest(self.jwk.as_bytes()))
    }
}

/// Reads a token for `audience` at that second. Nothing of it is proved before [`Claimed::signed_by`].
pub fn read<'t>(token: &'t str, audience: &str, now: i64) -> Result<Claimed<'t>, Unauthorized> {
    let limits = &limits().member;
    if token.len() > limits.token_bytes_max {
        return Err(Unauthorized);
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(Unauthorized)?;
    let (header, claims) = signed.split_once('.').ok_or(Unauthorized)?;
    let Header { alg, typ, kid } = json(header)?;
    let Claims { aud, iat, exp } = json(claims)?;
    let (life, skew) = (i64::from(limits.token_seconds_max), i64::from(limits.clock_skew_seconds_max));
    let is_in_time = now.saturating_sub(exp) < skew
        && iat.saturating_sub(now) < skew
        && (1..=life).contains(&exp.saturating_sub(iat));
    if (alg.as_str(), typ.as_str(), aud.as_str()) != ("ES256", "JWT", audience) || !is_in_time {
        return Err(Unauthorized);
    }
    let signature = BASE64URL_NOPAD.decode(signature.as_bytes()).map_err(|_| Unauthorized)?;
    // Refuses an `r` or `s` that is zero or not below the order of the curve.
    let signature = Signature::from_slice(&signature).map_err(|_| Unauthorized)?;
    if signature.normalize_s() != signature {
        return Err(Unauthorized);
    }
    Ok(Claimed { signed, signature, thumbprint: kid })
}

impl Claimed<'_> {
    /// Whether the token was signed by that key, and names it.
    pub fn signed_by(&self, key: &PublicKey) -> Result<(), Unauthorized> {
        if key.thumbprint() != self.thumbprint {
            return Err(Unauthorized);
        }
        key.key.verify(self.signed.as_bytes(), &self.signature).map_err(|_| Unauthorized)
    }
}

fn json<T: serde::de::DeserializeOwned>(part: &str) -> Result<T, Unauthorized> {
    let bytes = BASE64URL_NOPAD.decode(part.as_bytes()).map_err(|_| Unauthorized)?;
    serde_json::from_slice(&bytes).map_err(|_| Unauthorized)
}

#[cfg(test)]
mod tests {
    use super::*;
    use p256::ecdsa::SigningKey;
    use p256::ecdsa::signature::Signer as _;

    /// The key of RFC 7515, appendix A.3.
    const KEY: &str = r#"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#;
    const PRIVATE: &str = "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI";
    const NOW: i64 = 1_800_000_000;
    const SITE: &str = "https://tinyfiles.tv";

    fn private() -> SigningKey {
        SigningKey::from_slice(&BASE64URL_NOPAD.decode(PRIVATE.as_bytes()).unwrap()).unwrap()
    }

    fn header() -> String {
        let thumbprint = PublicKey::parse(KEY).unwrap().thumbprint();
        format!(r#"{{"alg":"ES256","typ":"JWT","kid":"{thumbprint}"}}"#)
    }

    fn claims(iat: i64, exp: i64) -> String {
        format!(r#"{{"aud":"{SITE}","iat":{iat},"exp":{exp}}}"#)
    }

    fn encode(bytes: &[u8]) -> String {
        BASE64URL_NOPAD.encode(bytes)
    }

    fn signed(header: &str, claims: &str, change: impl FnOnce(Signature) -> Vec<u8>) -> String {
        let signed = format!("{}.{}", encode(header.as_bytes()), encode(claims.as_bytes()));
        let signature: Signature = private().sign(signed.as_bytes());
        format!("{signed}.{}", encode(&change(signature.normalize_s())))
    }

    fn token(header: &str, claims: &str) -> String {
        signed(header, claims, |s| s.to_bytes().to_vec())
    }

    fn good() -> String {
        token(&header(), &claims(NOW, NOW + 300))
    }

    #[track_caller]
    fn check(token: &str, expected: Result<(), Unauthorized>) {
        let key = PublicKey::parse(KEY).unwrap();
        assert_eq!(read(token, SITE, NOW).and_then(|t| t.signed_by(&key)), expected, "{token}");
    }

    #[test]
    fn a_token_of_the_right_key_is_accepted_within_its_time() {
        check(&good(), Ok(()));
        for (iat, exp) in
            [(NOW, NOW + 3_600), (NOW - 3_600, NOW), (NOW - 300, NOW - 59), (NOW + 59, NOW + 60)]
        {
            check(&token(&header(), &claims(iat, exp)), Ok(()));
        }
    }

    #[test]
    fn out_of_its_time_it_is_refused() {
        for (iat, exp) in [
            (NOW, NOW + 3_601),
            (NOW - 300, NOW - 60),
            (NOW + 60, NOW + 300),
            (NOW, NOW),
            (NOW, i64::MAX),
            (i64::MIN, NOW + 300),
            (i64::MIN, i64::MAX),
        ] {
            check(&token(&header(), &claims(iat, exp)), Err(Unauthorized));
        }
    }

    #[test]
    fn the_signature_of_rfc_7515_verifies_and_its_high_s_is_not_taken() {
        let signed = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
        let signature =
            "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
        let key = PublicKey::parse(KEY).unwrap();
        let signature =
            Signature::from_slice(&BASE64URL_NOPAD.decode(signature.as_bytes()).unwrap()).unwrap();
        key.key.verify(signed.as_bytes(), &signature).unwrap();
        assert_ne!(signature.normalize_s(), signature);
        key.key.verify(signed.as_bytes(), &signature.normalize_s()).unwrap();
    }

    #[test]
    fn a_thumbprint_is_that_of_rfc_7638() {
        // sha256 of {"crv":"P-256","kty":"EC","x":"f83O…","y":"x_FE…"}, by coreutils and basenc.
        let key = PublicKey::parse(KEY).unwrap();
        assert_eq!(key.thumbprint(), "oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U");
    }

    #[test]
    fn signatures_that_prove_nothing() {
        let order = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
        let order = data_encoding::HEXLOWER.decode(order.as_bytes()).unwrap();
        let with = |change: &dyn Fn(&mut Vec<u8>)| {
            signed(&header(), &claims(NOW, NOW + 300), |s| {
                let mut bytes = s.to_bytes().to_vec();
                change(&mut bytes);
                bytes
            })
        };
        check(&with(&|_| ()), Ok(()));
        check(&with(&|b| b[..32].fill(0)), Err(Unauthorized)); // r = 0
        check(&with(&|b| b[32..].fill(0)), Err(Unauthorized)); // s = 0
        check(&with(&|b| b.fill(0)), Err(Unauthorized));
        check(&with(&|b| b[..32].copy_from_slice(&order)), Err(Unauthorized)); // r = n
        check(&with(&|b| b[63] ^= 1), Err(Unauthorized));
        check(&with(&|b| b.push(0)), Err(Unauthorized));
        check(&with(&|b| b.truncate(63)), Err(Unauthorized));
        check(&with(&Vec::clear), Err(Unauthorized));
        // The same signature with n - s: valid by the standard, and one spelling too many here.
        let malleated = signed(&header(), &claims(NOW, NOW + 300), |s| {
            let negative = -*s.s();
            Signature::from_scalars(s.r().to_bytes(), negative.to_bytes()).unwrap().to_bytes().to_vec()
        });
        let (words, signature) = malleated.rsplit_once('.').unwrap();
        let signature =
            Signature::from_slice(&BASE64URL_NOPAD.decode(signature.as_bytes()).unwrap()).unwrap();
        PublicKey::parse(KEY).unwrap().key.verify(words.as_bytes(), &signature).unwrap();
        check(&malleated, Err(Unauthorized));
        // DER, as other libraries make it.
        let der = signed(&header(), &claims(NOW, NOW + 300), |s| s.to_der().as_bytes().to_vec());
        check(&der, Err(Unauthorized));
    }

    #[test]
    fn words_that_are_refused_though_they_are_signed() {
        let (h, c) = (header(), claims(NOW, NOW + 300));
        for header in [
            h.replace("ES256", "none"),
            h.replace("ES256", "HS256"),
            h.replace("ES256", "es256"),
            h.replace("ES256", "ES384"),
            h.replace("JWT", "JOSE"),
            h.replace('}', r#","crit":["exp"]}"#),
            h.replace('}', &format!(r#","jwk":{KEY}}}"#)),
            h.replace('}', r#","alg":"none"}"#),
            h.replace('}', r#","jku":"https://example.org/key"}"#),
            r#"{"alg":"ES256","typ":"JWT"}"#.to_owned(),
            "{}".to_owned(),
            format!("{h} {h}"),
            String::new(),
        ] {
            check(&token(&header, &c), Err(Unauthorized));
        }
        for claims in [
            c.replace(SITE, "https://content-sandbox.com"),
            c.replace(SITE, &format!("{SITE}/")),
            c.replace(&format!("\"{SITE}\""), &format!("[\"{SITE}\"]")),
            c.replace(r#","iat""#, r#","nbf""#),
            c.replace("300}", "300.5}"),
            c.replace('}', r#","exp":1}"#),
            r#"{"aud":"https://tinyfiles.tv"}"#.to_owned(),
            "[]".to_owned(),
            String::new(),
        ] {
            assert_ne!(claims, c);
            check(&token(&h, &claims), Err(Unauthorized));
        }
    }

    #[test]
    fn texts_that_are_no_tokens() {
        let good = good();
        let (words, _) = good.rsplit_once('.').unwrap();
        for bad in [
            "".to_owned(),
            ".".to_owned(),
            "..".to_owned(),
            format!("{words}."),
            words.to_owned(),
            format!("{good}.{good}"),
            format!("{good}="),
            format!(" {good}"),
            good.replace('.', ".."),
            "a".repeat(65_536),
            format!("{}.{good}", "a".repeat(65_536)),
        ] {
            check(&bad, Err(Unauthorized));
        }
    }

    #[test]
    fn another_key_is_another_member() {
        let other = SigningKey::from_slice(&[7; 32]).unwrap();
        let point = other.verifying_key().to_sec1_point(false);
        let (x, y) = point.as_bytes()[1..].split_at(32);
        let jwk = format!(r#"{{"kty":"EC","crv":"P-256","x":"{}","y":"{}"}}"#, encode(x), encode(y));
        let (key, other) = (PublicKey::parse(KEY).unwrap(), PublicKey::parse(&jwk).unwrap());
        // Signed by the one, naming the other.
        let named = header().replace(&key.thumbprint(), &other.thumbprint());
        let swapped = token(&named, &claims(NOW, NOW + 300));
        for key in [&key, &other] {
            assert_eq!(read(&swapped, SITE, NOW).unwrap().signed_by(key), Err(Unauthorized));
        }
        assert_eq!(read(&good(), SITE, NOW).unwrap().signed_by(&other), Err(Unauthorized));
    }

    #[test]
    fn keys_that_are_none() {
        let x = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
        for bad in [
            KEY.replace("P-256", "P-384"),
            KEY.replace("P-256", "secp256k1"),
            KEY.replace("EC", "OKP"),
            KEY.replace("x_FE", "x_FF"),   // not on the curve
            KEY.replace(&x[1..], &x[2..]), // 31 bytes
            KEY.replace(x, &format!("{x}=")),
            KEY.replace('}', &format!(r#","d":"{PRIVATE}"}}"#)), // somebody's private key
            KEY.replace('}', r#","kid":"me"}"#),
            r#"{"kty":"EC","crv":"P-256","x":"","y":""}"#.to_owned(),
            "null".to_owned(),
        ] {
            assert!(PublicKey::parse(&bad).is_err(), "{bad}");
        }
    }
}
