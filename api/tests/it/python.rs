//! Calls of functions, up to the runner's socket: without a runner, and with a peer that misbehaves.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;

use catalog::{Catalog, Data, Manifest, Role, Work, WorkFile};
use policy::limits;

use crate::client::JSON;
use crate::server::Server;

/// Publishes a work with a function, and one without.
fn publish(server: &Server) {
    let data = Data::open(&server.data("")).unwrap();
    let writer = data.writer().unwrap();
    let mut works = Vec::new();
    for (slug, sidecar) in [
        ("dice", r#"{"id": "dice", "capabilities": {"python_backend": "dice.py"}}"#),
        ("mute", r#"{"id": "mute"}"#),
    ] {
        let file = |name: &str, role, bytes: &[u8]| WorkFile {
            name: name.into(),
            role,
            digest: writer.put(bytes).unwrap(),
            bytes: bytes.len() as u64,
        };
        works.push(Work {
            creator: "ann".parse().unwrap(),
            slug: slug.parse().unwrap(),
            manifest: Manifest::parse(sidecar.as_bytes()).unwrap(),
            released: "2026-11-01".parse().unwrap(),
            updated: "2026-11-01".parse().unwrap(),
            files: vec![
                file("dice.py", Role::Python, b"def run(inputs):\n    return {\"seen\": inputs}\n"),
                file("index.html", Role::Payload, b"<!DOCTYPE html>"),
            ],
        });
    }
    Catalog::open(&server.data("catalog.db")).unwrap().publish(&works).unwrap();
}

#[test]
fn what_cannot_be_called_is_refused_before_anybody_is_asked() {
    let server = Server::new();
    publish(&server);
    let mut client = server.client();
    for path in ["ann/mute", "ann/none", "bob/dice", "Ann/dice", "ann/..", "%61nn/dice", "a--b/dice"] {
        let refused = client.request("POST", &format!("/api/python/{path}"), &[JSON], b"{}");
        assert_eq!((refused.problem().as_str(), refused.status), ("python-unknown", 404), "{path}");
    }
    let path = "/api/python/ann/dice";
    assert_eq!(client.request("POST", path, &[], b"{}").problem(), "unsupported-type");
    assert_eq!(client.request("GET", path, &[], b"").problem(), "method-not-allowed");
    for bad in ["", "{", "nan", &"[".repeat(limits().python.json_depth_max as usize + 1)] {
        let refused = client.request("POST", path, &[JSON], bad.as_bytes());
        assert_eq!((refused.problem().as_str(), refused.status), ("python-inputs", 422), "{bad}");
    }
    let long = format!("\"{}\"", "x".repeat(usize::try_from(limits().python.inputs_bytes_max).unwrap()));
    let refused = client.request("POST", path, &[JSON], long.as_bytes());
    assert_eq!((refused.problem().as_str(), refused.status), ("python-inputs", 413));
    let closed = client.request("POST", path, &[JSON], b"{}");
    assert_eq!((closed.problem().as_str(), closed.status), ("python-closed", 503), "nobody runs it");
    assert!(closed.header("retry-after").is_some());
}

/// A runner that says what a test wants it to say, once.
fn runner(server: &Server, answer: &'static [u8]) -> std::thread::JoinHandle<String> {
    let path = server.data("runner.sock");
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = vec![0; 8192];
        let read = stream.read(&mut bytes).unwrap();
        stream.write_all(answer).unwrap();
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    })
}

#[test]
fn a_runner_that_breaks_is_our_fault_and_said_so() {
    let server = Server::new();
    publish(&server);
    let mut client = server.client();
    for answer in [
        &b""[..],
        b"hello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n{}",
        b"HTTP/1.1 500 no\r\nContent-Length: 2\r\n\r\n{}",
    ] {
        let runner = runner(&server, answer);
        let refused = client.request("POST", "/api/python/ann/dice", &[JSON], b"{}");
        let shown = String::from_utf8_lossy(answer).into_owned();
        assert_eq!((refused.problem().as_str(), refused.status), ("internal", 500), "{shown}");
        let asked = runner.join().unwrap();
        assert!(
            asked.starts_with("POST /call HTTP/1.1\r\n") && asked.contains("tinyfiles-caller: ann/dice"),
            "{asked}"
        );
    }
    let runner = runner(&server, b"HTTP/1.1 503 x\r\nContent-Length: 57\r\n\r\n{\"type\":\"python-busy\",\"status\":503,\"detail\":\"it is full\"}");
    let busy = client.request("POST", "/api/python/ann/dice", &[JSON], b"{}");
    assert_eq!((busy.problem().as_str(), busy.header("retry-after")), ("python-busy", Some("1")));
    runner.join().unwrap();
}

#[test]
fn a_runner_that_never_answers_is_not_waited_for() {
    let mut server = Server::new();
    publish(&server);
    let listener = UnixListener::bind(server.data("runner.sock")).unwrap();
    let mut client = server.client();
    client.ask("POST", "/api/python/ann/dice", &[JSON], b"{}");
    server.let_time_pass();
    assert_eq!(client.answer(false).unwrap().problem(), "python-busy");
    drop(listener);
}
