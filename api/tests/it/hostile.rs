//! What no client should send. Each gets an answer that says so, or a closed connection; never a hang.

use policy::limits;

use crate::client::{BYTES, JSON, NEW, save};
use crate::server::Server;

#[test]
fn keys_that_are_none() {
    let server = Server::new();
    let mut client = server.client();
    let good = "0".repeat(64);
    for bad in [
        "",
        "0",
        &good[1..],
        &format!("{good}0"),
        &"A".repeat(64),
        &"g".repeat(64),
        &"%30".repeat(64),
        "..",
        "*",
    ] {
        let path = format!("/api/saves/{bad}");
        for method in ["GET", "PUT", "DELETE"] {
            assert_eq!(
                client.request(method, &path, &[NEW, BYTES], b"x").problem(),
                "bad-key",
                "{method} {path}"
            );
        }
    }
    for path in [
        "/",
        "/api",
        "/api/",
        "/api/saves",
        &format!("/api/saves/{good}/"),
        &format!("/api/save/{good}"),
        "*",
    ] {
        assert_eq!(client.request("GET", path, &[], b"").problem(), "not-found", "{path}");
    }
}

#[test]
fn methods_that_are_none() {
    let server = Server::new();
    let mut client = server.client();
    for method in ["POST", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "x"] {
        let refused = client.request(method, &save(1), &[], b"");
        assert_eq!((refused.problem().as_str(), refused.status), ("method-not-allowed", 405), "{method}");
        assert_eq!(refused.header("allow"), Some("GET, HEAD, PUT, DELETE"));
    }
    assert_eq!(client.request("DELETE", "/api/health", &[], b"").header("allow"), Some("GET, HEAD"));
}

#[test]
fn bodies_that_are_not_taken() {
    let server = Server::new();
    let mut client = server.client();
    let most = limits().save.body_bytes_max as usize;
    let levels = limits().save.json_depth_max as usize;
    let nested = |levels: usize| ["[".repeat(levels), "]".repeat(levels)].concat().into_bytes();
    let gzip = ("Content-Encoding", "gzip");
    for (what, headers, body, problem) in [
        ("one byte too many", &[NEW, BYTES][..], vec![0; most + 1], "too-large"),
        ("twice as much", &[NEW, BYTES], vec![0; most * 2], "too-large"),
        ("not JSON", &[NEW, JSON], b"{'a': 1}".to_vec(), "not-json"),
        ("nothing", &[NEW, JSON], Vec::new(), "not-json"),
        ("not UTF-8", &[NEW, JSON], b"\"\xff\"".to_vec(), "not-json"),
        ("too deep", &[NEW, JSON], nested(levels + 1), "too-deep"),
        ("very deep", &[NEW, JSON], nested(most / 2), "too-deep"),
        ("no type", &[NEW], b"x".to_vec(), "unsupported-type"),
        ("another type", &[NEW, ("Content-Type", "text/plain")], b"x".to_vec(), "unsupported-type"),
        ("packed", &[NEW, BYTES, gzip], b"x".to_vec(), "unsupported-type"),
        ("no precondition", &[BYTES], b"x".to_vec(), "precondition-required"),
        ("any", &[BYTES, ("If-Match", "*")], b"x".to_vec(), "bad-precondition"),
        ("weak", &[BYTES, ("If-Match", "W/\"1\"")], b"x".to_vec(), "bad-precondition"),
        ("none of these", &[BYTES, ("If-None-Match", "\"1\"")], b"x".to_vec(), "bad-precondition"),
        ("both", &[BYTES, NEW, ("If-Match", "\"1\"")], b"x".to_vec(), "bad-precondition"),
    ] {
        assert_eq!(client.request("PUT", &save(1), headers, &body).problem(), problem, "{what}");
    }
    assert_eq!(client.request("GET", &save(1), &[], b"").status, 404, "nothing of it was kept");
    assert_eq!(
        client.request("PUT", &save(1), &[NEW, JSON], &nested(levels)).status,
        201,
        "as deep as allowed"
    );
    assert_eq!(
        client.request("PUT", &save(2), &[NEW, BYTES], &vec![7; most]).status,
        201,
        "as large as allowed"
    );
}

#[test]
fn a_body_that_never_ends_is_cut_off() {
    let server = Server::new();
    let mut client = server.client();
    let head = format!(
        "PUT {} HTTP/1.1\r\nHost: a\r\nContent-Type: application/octet-stream\r\nIf-None-Match: *\r\n",
        save(1)
    );
    client.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes());
    let chunk = [b"10000\r\n", &[0; 0x10000][..], b"\r\n"].concat();
    for _ in 0..64 {
        client.send(&chunk);
    }
    assert_eq!(client.answer(false).unwrap().problem(), "too-large");
    assert!(client.is_closed());
    // Chunks of an ordinary body are put together.
    let mut client = server.client();
    client
        .send(format!("{head}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").as_bytes());
    assert_eq!(client.answer(false).unwrap().status, 201);
    assert_eq!(client.request("GET", &save(1), &[], b"").body, b"abcde");
}

#[test]
fn slow_clients_are_not_waited_for() {
    let head = format!(
        "PUT {} HTTP/1.1\r\nHost: a\r\nContent-Type: application/octet-stream\r\nIf-None-Match: *\r\n",
        save(1)
    );
    let mut server = Server::new();
    let mut client = server.client();
    client.send(format!("{head}Content-Length: 9\r\n\r\nabc").as_bytes());
    server.let_time_pass();
    let refused = client.answer(false).unwrap();
    assert_eq!((refused.problem().as_str(), refused.status), ("slow-body", 408));
    assert!(client.is_closed());
    let mut server = Server::new();
    let mut client = server.client();
    client.send(b"GET /api/health HTTP/1.1\r\nHost: ");
    server.let_time_pass();
    assert!(client.is_closed(), "headers that never end");
}

#[test]
fn a_connection_outlives_a_refusal_that_needed_no_body() {
    let server = Server::new();
    let body = vec![b'x'; limits().save.body_bytes_max as usize];
    for (method, path, headers, problem) in [
        ("PUT", save(1), &[NEW][..], "unsupported-type"),
        ("PUT", "/api/saves/0".to_owned(), &[NEW, BYTES], "bad-key"),
        (
            "POST",
            "/api/submissions".to_owned(),
            &[("Content-Type", "multipart/form-data; boundary=b")],
            "unauthorized",
        ),
        ("POST", "/api/nothing".to_owned(), &[], "not-found"),
        ("GET", "/api/members/me".to_owned(), &[("Content-Length", "5")], "unauthorized"),
    ] {
        let mut client = server.client();
        let (first, rest) = if method == "GET" { (&b"ab"[..], &b"cde"[..]) } else { body.split_at(1_000) };
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: api\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if method != "GET" {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        client.send(&[head.as_bytes(), b"\r\n", first].concat());
        // One thread serves all: what it answers here it answers after it has begun with the other.
        server.client().request("GET", "/api/health", &[], b"");
        client.send(rest);
        assert_eq!(client.answer(false).unwrap().problem(), problem);
        assert_eq!(client.request("GET", "/api/health", &[], b"").status, 200, "{method} {path}");
    }
}

#[test]
fn framing_that_makes_no_sense_ends_the_connection() {
    let server = Server::new();
    let put = format!(
        "PUT {} HTTP/1.1\r\nHost: a\r\nContent-Type: application/octet-stream\r\nIf-None-Match: *\r\n",
        save(1)
    );
    let long = "x".repeat(limits().api.headers_bytes_max + 1);
    for (what, bytes) in [
        ("no HTTP", "hello\r\n\r\n".to_owned()),
        ("two lengths", format!("{put}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd")),
        ("no length", format!("{put}Content-Length: x\r\n\r\nabcd")),
        ("a negative length", format!("{put}Content-Length: -1\r\n\r\nabcd")),
        ("bad chunks", format!("{put}Transfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n")),
        ("unknown coding", format!("{put}Transfer-Encoding: gzip\r\n\r\nabc")),
        ("headers too long", format!("GET /api/health HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n")),
        ("a zero byte", "GET /api/health HTTP/1.1\r\nHost: \0\r\n\r\n".to_owned()),
    ] {
        let mut client = server.client();
        client.send(bytes.as_bytes());
        if let Ok(answer) = client.answer(false) {
            assert!((400..600).contains(&answer.status), "{what}: {answer:?}");
        }
        assert!(client.is_closed(), "{what}");
    }
    assert_eq!(server.client().request("GET", &save(1), &[], b"").status, 404, "nothing of it was kept");
}

#[test]
fn a_body_that_ends_early_is_not_kept() {
    let server = Server::new();
    let mut client = server.client();
    client.send(
        format!("PUT {} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nIf-None-Match: *\r\nContent-Length: 9\r\n\r\n123", save(1))
            .as_bytes(),
    );
    client.no_more();
    if let Ok(answer) = client.answer(false) {
        assert_eq!(answer.problem(), "bad-request");
    }
    assert_eq!(server.client().request("GET", &save(1), &[], b"").status, 404);
}

#[test]
fn half_closed_and_pipelined_requests_are_answered_in_order() {
    let server = Server::new();
    let mut client = server.client();
    let put = |n: u64| {
        format!(
            "PUT {} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nIf-None-Match: *\r\nContent-Length: 1\r\n\r\n{n}",
            save(n)
        )
    };
    let get = |n: u64| format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", save(n));
    client.send([put(1), get(1), put(2), get(2), get(3)].concat().as_bytes());
    client.no_more();
    let answers: Vec<_> = (0..5).map(|_| client.answer(false).unwrap()).collect();
    assert_eq!(answers.iter().map(|a| a.status).collect::<Vec<_>>(), [201, 200, 201, 200, 404]);
    assert_eq!((&answers[1].body[..], &answers[3].body[..]), (&b"1"[..], &b"2"[..]));
    assert!(client.is_closed());
}
