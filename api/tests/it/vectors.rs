//! `tests/vectors/saves.json`, which the scripts of the page read too: keys, seals and blocks, made anew here with other
//! libraries. The server makes none of them; it is the other half of the promise that a save opens without this site.

use std::path::Path;

use aes_gcm::aead::{Aead as _, Payload};
use aes_gcm::{Aes256Gcm, KeyInit as _};
use data_encoding::{BASE64, HEXLOWER};
use hkdf::Hkdf;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use unicode_normalization::UnicodeNormalization as _;

use crate::client::{BYTES, NEW};
use crate::server::Server;

fn vectors() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/saves.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn rows(of: &Value) -> &[Value] {
    let rows = of.as_array().unwrap();
    assert!(!rows.is_empty());
    rows
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_else(|| panic!("no {name}: {row}"))
}

fn bytes(row: &Value, name: &str) -> Vec<u8> {
    HEXLOWER.decode(text(row, name).as_bytes()).unwrap()
}

/// A code as it is read: the reading rules of the save format.
fn read_code(typed: &str) -> Option<String> {
    let dropped = |c: char| {
        c.is_whitespace()
            || "-._".contains(c)
            || ('\u{2010}'..='\u{2015}').contains(&c)
            || c == '\u{2212}'
            || "\u{ad}\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}".contains(c)
    };
    let symbols: String = typed.nfkc().flat_map(char::to_uppercase).filter(|c| !dropped(*c)).collect();
    let vectors = vectors();
    let alphabet = text(&vectors, "code_alphabet");
    if symbols.chars().count() != 16 || !symbols.chars().all(|c| alphabet.contains(c)) {
        return None;
    }
    Some([&symbols[..4], &symbols[4..8], &symbols[8..12], &symbols[12..]].join("-"))
}

#[test]
fn every_accepted_spelling_of_a_code_leads_to_one_key() {
    let vectors = vectors();
    let code = text(&vectors, "code");
    for spelling in rows(&vectors["code_spellings"]) {
        assert_eq!(read_code(spelling.as_str().unwrap()).as_deref(), Some(code), "{spelling}");
    }
    for refused in rows(&vectors["code_refused"]) {
        assert_eq!(read_code(refused.as_str().unwrap()), None, "{refused}");
    }
    let server = Server::new();
    let mut client = server.client();
    for row in rows(&vectors["keys"]) {
        let key = HEXLOWER.encode(&Sha256::digest(format!("{}:{}", text(row, "slug"), text(row, "code"))));
        assert_eq!(key, text(row, "key"));
        // And it is a key to the server.
        assert_eq!(client.request("PUT", &format!("/api/saves/{key}"), &[NEW, BYTES], b"x").status, 201);
    }
}

/// Opens a sealed save: `head` bytes are not secret, of which the first `bound` are bound to it with the slug.
fn open(key: &[u8], sealed: &[u8], head: usize, bound: usize, slug: &str) -> Option<String> {
    let aad = [&sealed[..bound], slug.as_bytes()].concat();
    let nonce = aes_gcm::Nonce::try_from(&sealed[head - 12..head]).unwrap();
    let payload = Payload { msg: &sealed[head..], aad: &aad };
    let state = Aes256Gcm::new_from_slice(key).unwrap().decrypt(&nonce, payload).ok()?;
    Some(String::from_utf8(state).unwrap().trim_end_matches(' ').to_owned())
}

#[test]
fn a_save_sealed_with_a_code_opens_with_it_and_for_its_work_only() {
    for row in rows(&vectors()["sealed_with_code"]) {
        let (slug, sealed) = (text(row, "slug"), bytes(row, "sealed"));
        let mut key = [0; 32];
        let salted = Hkdf::<Sha256>::new(Some(slug.as_bytes()), text(row, "code").as_bytes());
        salted.expand(b"tinyfiles save 1", &mut key).unwrap();
        assert_eq!(key.to_vec(), bytes(row, "key"));
        assert_eq!((&sealed[..4], &sealed[4..16]), (&b"TFC\x01"[..], &bytes(row, "nonce")[..]));
        assert_eq!(
            open(&key, &sealed, 16, 4, slug).as_deref(),
            Some(text(row, "state").trim_end_matches(' '))
        );
        assert_eq!(open(&key, &sealed, 16, 4, "another/work"), None);
        assert_eq!((sealed.len() - 32) % 256, 0, "padded");
    }
}

#[test]
fn a_save_sealed_with_a_passphrase_opens_with_it() {
    for row in rows(&vectors()["sealed_with_passphrase"]) {
        let (slug, sealed) = (text(row, "slug"), bytes(row, "sealed"));
        let rounds = u32::from_be_bytes(sealed[4..8].try_into().unwrap());
        assert_eq!(u64::from(rounds), row["rounds"].as_u64().unwrap());
        let passphrase: String = text(row, "passphrase").nfkc().collect();
        let mut key = [0; 32];
        pbkdf2::pbkdf2_hmac::<Sha256>(passphrase.as_bytes(), &sealed[8..24], rounds, &mut key);
        assert_eq!(key.to_vec(), bytes(row, "key"));
        assert_eq!((&sealed[..4], &sealed[8..24]), (&b"TFP\x01"[..], &bytes(row, "salt")[..]));
        assert_eq!(
            open(&key, &sealed, 36, 24, slug).as_deref(),
            Some(text(row, "state").trim_end_matches(' '))
        );
    }
}

#[test]
fn a_block_is_the_sealed_save_framed() {
    for row in rows(&vectors()["blocks"]) {
        let sealed = bytes(row, "sealed");
        let lines: Vec<&str> = text(row, "text").trim_end().lines().collect();
        assert_eq!(lines[0], "-----BEGIN TINYFILES SAVE-----");
        assert_eq!(lines[1], format!("Work: {}", text(row, "slug")));
        assert_eq!(lines[lines.len() - 1], "-----END TINYFILES SAVE-----");
        let frame = BASE64.decode(lines[2..lines.len() - 1].concat().as_bytes()).unwrap();
        let length = u32::try_from(sealed.len()).unwrap().to_be_bytes();
        let checked = [&b"TFB\x01"[..], &length, &sealed].concat();
        assert_eq!(frame, [&checked[..], &Sha256::digest(&checked)[..4]].concat());
    }
}
