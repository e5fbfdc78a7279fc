//! The vectors of the frames (`vectors/frames.tsv`, `vectors/frames_refused.tsv`), read by the program and by a second
//! reader in Python that knows the description only.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use runner::confine::{Step, Steps};
use runner::wire::{self, Hello, Raised, Reply, Request, WireError};
use serde_json::Value;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The three columns of each row.
fn rows(name: &str) -> Vec<[String; 3]> {
    let text = std::fs::read_to_string(file(name)).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| row.split('\t').map(str::to_owned).collect::<Vec<_>>().try_into().unwrap()).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn text(fields: &Value, name: &str) -> String {
    fields[name].as_str().unwrap().to_owned()
}

fn number<N: TryFrom<i64>>(value: &Value) -> Option<N> {
    value.as_i64().and_then(|n| N::try_from(n).ok())
}

/// Writing `fields` gives `frame`, and reading `frame` what was written.
fn check_request(name: &str, frame: &[u8], fields: &Value) {
    let (source, inputs) = (fields["source"].as_str(), fields["inputs"].as_str());
    let code = fields["code"].as_str().map(bytes).unwrap_or_default();
    let request = match name {
        "compile" => Request::Compile { source: source.unwrap().as_bytes() },
        "lint" => Request::Lint { source: source.unwrap().as_bytes() },
        _ => Request::Run { code: &code, inputs: inputs.unwrap().as_bytes() },
    };
    assert_eq!(request.to_frame(), frame, "{fields}");
    let (kind, payload, rest) = wire::split(frame).unwrap();
    assert_eq!((Request::parse(kind, payload), rest), (Ok(request), &b""[..]), "{fields}");
}

/// The same of what a child says first.
fn check_hello(name: &str, frame: &[u8], fields: &Value) {
    let hello = if name == "confined" {
        let steps = Steps::from_bits(number(&fields["steps"]).unwrap());
        Hello::Confined { steps, listener: number(&fields["listener"]) }
    } else {
        let step = Step::from_number(number(&fields["step"]).unwrap()).unwrap();
        Hello::Refused { step, errno: number(&fields["errno"]).unwrap() }
    };
    assert_eq!(hello.to_frame()[..], *frame, "{fields}");
    let (kind, payload, rest) = wire::split(frame).unwrap();
    assert_eq!((Hello::parse(kind, payload), rest), (Ok(hello), &b""[..]), "{fields}");
}

/// The same of what it says last.
fn check_reply(name: &str, frame: &[u8], fields: &Value) {
    let reply = match name {
        "answer" => Reply::Answer(text(fields, "json").into_bytes()),
        "compiled" => Reply::Compiled(bytes(&text(fields, "code"))),
        "bad_answer" => Reply::BadAnswer { path: text(fields, "path"), why: text(fields, "why") },
        _ => {
            let frames = fields["frames"].as_array().unwrap().iter();
            let frames = frames.map(|f| (number(&f[0]).unwrap(), f[1].as_str().unwrap().to_owned()));
            Reply::Raised(Raised {
                kind: text(fields, "kind"),
                message: text(fields, "message"),
                line: number(&fields["line"]).unwrap(),
                frames: frames.collect(),
            })
        }
    };
    assert_eq!(reply.to_frame(), frame, "{fields}");
    assert_eq!(Reply::parse(frame), Ok(reply), "{fields}");
}

#[test]
fn frames_are_these_bytes_both_ways() {
    let mut names = BTreeSet::new();
    for [name, hex, fields] in rows("vectors/frames.tsv") {
        let fields = serde_json::from_str(&fields).unwrap();
        let check = match name.as_str() {
            "compile" | "run" | "lint" => check_request,
            "confined" | "refused" => check_hello,
            "answer" | "raised" | "bad_answer" | "compiled" => check_reply,
            other => panic!("no frame is called {other}"),
        };
        check(&name, &bytes(&hex), &fields);
        names.insert(name);
    }
    assert_eq!(names.len(), 9, "a kind of frame without a vector: only {names:?} have one");
}

#[test]
fn other_bytes_are_refused_by_their_rule() {
    for [reader, hex, rule] in rows("vectors/frames_refused.tsv") {
        let bytes = bytes(&hex);
        let part = wire::split(&bytes);
        let refused = match reader.as_str() {
            "reply" => Reply::parse(&bytes).err(),
            "hello" => part.and_then(|(kind, payload, _)| Hello::parse(kind, payload).err()),
            _ => part.and_then(|(kind, payload, _)| Request::parse(kind, payload).err()),
        };
        let found = match refused {
            Some(WireError::Short) => "short",
            Some(WireError::Trailing) => "trailing",
            Some(WireError::Kind(_)) => "kind",
            Some(WireError::Malformed(_)) => "malformed",
            None => "no refusal",
        };
        assert_eq!(found, rule, "{reader} {hex}");
    }
}

#[test]
fn a_second_reader_finds_the_same() {
    let (good, bad) = ("vectors/frames.tsv", "vectors/frames_refused.tsv");
    let mut python = Command::new("python3");
    python.args(["-I", "-B"]).arg(file("tests/frames.py")).args([file(good), file(bad)]);
    let output = python.output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(said, format!("{} {}\n", rows(good).len(), rows(bad).len()));
    assert!(output.status.success());
}
