//! The service over its socket: calls, refusals, slow and vanishing clients, and a stop that waits.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use runner::engine::Mode;
use runner::gate::Gate;
use runner::queue::Sizes;
use runner::serve::{self, Service};
use runner::suite::Finished;
use runner::supervisor::Supervisor;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::{program, supervisor};

pub(crate) struct Server {
    folder: tempfile::TempDir,
    service: Arc<Service>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    /// A server whose gate has been opened by hand: what the suite proves is another test's business.
    fn start(waiting_max: usize) -> Server {
        Server::with_linter(waiting_max, Err("this test has no bandit".to_owned()))
    }

    pub(crate) fn with_linter(waiting_max: usize, linter: Result<Supervisor, String>) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let gate = Gate::open_in(folder.path(), &program()).unwrap();
        let sizes = Sizes { running_max: 2, waiting_max };
        let service = Arc::new(Service::new(supervisor(Mode::Guarded), linter, gate.clone(), sizes));
        assert!(service.refresh().is_some());
        gate.keep(&Finished { report: Value::Null, attacks: 1, failures: Vec::new() }).unwrap();
        assert_eq!(service.refresh(), None);
        let (stop, stopped) = oneshot::channel();
        let (path, shared) = (folder.path().join("socket"), Arc::clone(&service));
        let listener = std::os::unix::net::UnixListener::bind(path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::UnixListener::from_std(listener).unwrap();
                serve::run(shared, listener, async { drop(stopped.await) }).await;
            });
        });
        Server { folder, service, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn call(&self, body: &Value) -> (u16, Value, String) {
        exchange(&self.socket(), "POST /call", &body.to_string())
    }

    fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Status, body and headers of one exchange.
pub(crate) fn exchange(socket: &Path, line: &str, body: &str) -> (u16, Value, String) {
    let mut stream = UnixStream::connect(socket).unwrap();
    let request = format!(
        "{line} HTTP/1.1\r\nHost: runner\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned())), head.to_owned())
}

const ADD: &str = "def run(i):\n    print('hi')\n    return i['n'] + 1";

#[test]
fn a_call_by_source_and_then_by_digest() {
    let server = Server::start(8);
    let (status, answer, _) = server.call(&json!({"source": ADD, "inputs": {"n": 1}}));
    assert_eq!((status, &answer["outcome"], &answer["result"]), (200, &json!("ok"), &json!(2)), "{answer}");
    assert_eq!(answer["printed"], "hi\n");
    let output = Command::new("sha256sum").arg(write(&server, ADD)).output().unwrap();
    let digest = String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().to_owned();
    let (_, answer, _) = server.call(&json!({"digest": digest, "inputs": {"n": 41}}));
    assert_eq!(answer["result"], 42);
    let (_, metrics, _) = exchange(&server.socket(), "GET /metrics", "");
    let metrics = metrics.as_str().unwrap();
    assert!(
        metrics.contains("runner_calls_total{outcome=\"ok\"} 2") && metrics.contains("runner_open 1"),
        "{metrics}"
    );
    let (status, gate, _) = exchange(&server.socket(), "GET /gate", "");
    assert_eq!((status, &gate["state"]), (200, &json!("open")));
}

fn write(server: &Server, text: &str) -> PathBuf {
    let path = server.folder.path().join("work.py");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn requests_that_make_no_sense() {
    let server = Server::start(8);
    let rows = [
        (json!({"inputs": 1}), 400, "bad-request"),
        (json!({"source": ADD, "digest": "00", "inputs": 1}), 400, "bad-request"),
        (json!({"source": ADD}), 400, "bad-request"),
        (json!({"source": ADD, "inputs": 1, "bare": true}), 400, "bad-request"),
        (json!({"digest": "00", "inputs": 1}), 404, "unknown-digest"),
        (json!({"source": ADD, "inputs": 1, "limits": {"wall_ms": 3001}}), 422, "limit-out-of-range"),
        (json!({"source": ADD, "inputs": 1, "limits": {"wall_ms": 0}}), 422, "limit-out-of-range"),
        (json!({"source": "x".repeat(300_000), "inputs": 1}), 413, "too-large"),
    ];
    for (body, status, kind) in rows {
        let (got, answer, _) = server.call(&body);
        assert_eq!((got, answer["type"].as_str()), (status, Some(kind)), "{answer}");
    }
    assert_eq!(exchange(&server.socket(), "POST /call", "{").0, 400);
    assert_eq!(exchange(&server.socket(), "GET /call", "").0, 405);
    assert_eq!(exchange(&server.socket(), "GET /", "").0, 404);
    let (_, answer, _) = server.call(&json!({"source": "x".repeat(16_385), "inputs": 1}));
    assert_eq!((&answer["outcome"], &answer["type"]), (&json!("error"), &json!("SourceError")));
    let loops =
        json!({"source": "def run(i):\n    while True: pass", "inputs": 1, "limits": {"wall_ms": 100}});
    let started = Instant::now();
    assert_eq!(server.call(&loops).1["outcome"], "timeout");
    // The policy's own limit would end it after three seconds.
    assert!(started.elapsed().as_millis() < 2_900);
}

#[test]
fn every_limit_of_a_call_may_be_lowered() {
    let server = Server::start(8);
    let fill = "def run(i):\n    b'x' * (40 << 20)\n    return 1";
    let threads = "import threading\ndef run(i):\n    e = threading.Event()\n    \
                   ts = [threading.Thread(target=e.wait) for _ in range(6)]\n    \
                   [t.start() for t in ts]\n    e.set()\n    return 1";
    let file =
        "def run(i):\n    with open('/tmp/a', 'wb') as f:\n        f.write(b'x' * 100_000)\n    return 1";
    let rows = [
        (fill, json!({"memory_bytes": 33_554_432}), "memory", "more than 32 MiB"),
        (threads, json!({"processes": 4}), "processes", "more than 4 threads"),
        (file, json!({"tmp_bytes": 65_536}), "error", "No space left on device"),
        (
            "def run(i):\n    print('x' * 99)\n    return 1",
            json!({"print_bytes": 50}),
            "output_limit",
            "more than 50 bytes",
        ),
    ];
    for (source, limits, name, words) in rows {
        // Lowered, then as it was, then lowered again: a slot keeps nothing of the call before.
        for limits in [&limits, &json!({}), &limits] {
            let (name, words) = if limits == &json!({}) { ("ok", "returned") } else { (name, words) };
            let (status, answer, _) = server.call(&json!({"source": source, "inputs": 0, "limits": limits}));
            assert_eq!((status, answer["outcome"].as_str()), (200, Some(name)), "{limits}: {answer}");
            assert!(answer["message"].as_str().unwrap().contains(words), "{answer}");
        }
    }
    let long =
        json!({"source": "def run(i):\n    return 'x' * 99", "inputs": 0, "limits": {"output_bytes": 50}});
    let (_, answer, _) = server.call(&long);
    assert_eq!((&answer["outcome"], &answer["why"]), (&json!("bad_answer"), &json!("more than 50 bytes")));
    // A tenth of the policy's share takes longer over the same work, whatever else the machine does.
    let work = "def run(i):\n    n = 0\n    while n < 3_000_000:\n        n += 1\n    return n";
    let slow = json!({"source": work, "inputs": 0, "limits": {"cpus": 0.05, "wall_ms": 150}});
    assert_eq!(server.call(&slow).1["outcome"], "timeout");
    assert_eq!(server.call(&json!({"source": work, "inputs": 0})).1["outcome"], "ok");
}

#[test]
fn a_raised_limit_is_refused_by_name() {
    let server = Server::start(8);
    for (field, value, most) in [
        ("memory_bytes", "134217729", "134217728"),
        ("cpus", "0.6", "0.5"),
        ("processes", "33", "32"),
        ("tmp_bytes", "1048577", "1048576"),
        ("print_bytes", "16385", "16384"),
        ("output_bytes", "262145", "262144"),
        ("wall_ms", "3001", "3000"),
    ] {
        let body = format!("{{\"source\": \"\", \"inputs\": 1, \"limits\": {{\"{field}\": {value}}}}}");
        let (status, answer, _) = exchange(&server.socket(), "POST /call", &body);
        let detail = answer["detail"].as_str().unwrap();
        assert!(status == 422 && [field, value, most].iter().all(|w| detail.contains(w)), "{answer}");
    }
    assert_eq!(exchange(&server.socket(), "GET /gate", "").1["state"], "open");
}

#[test]
fn a_full_queue_says_when_to_come_back() {
    let server = Server::start(2);
    let sleep = json!({"source": "import time\ndef run(i):\n    time.sleep(1)\n    return 1", "inputs": 1});
    let answers: Vec<(u16, Value, String)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..12).map(|_| scope.spawn(|| server.call(&sleep))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let busy: Vec<_> = answers.iter().filter(|a| a.0 == 503).collect();
    assert!(busy.len() >= 8 && busy.len() <= 10, "{}", busy.len());
    assert!(
        busy.iter().all(|a| a.1["type"] == "python-busy" && a.2.to_lowercase().contains("retry-after: 1"))
    );
    assert!(answers.iter().filter(|a| a.0 == 200).all(|a| a.1["result"] == 1));
    assert_eq!(server.call(&json!({"source": ADD, "inputs": {"n": 1}})).1["result"], 2);
}

#[test]
fn clients_that_vanish_or_never_speak_harm_nobody() {
    let server = Server::start(8);
    let silent: Vec<UnixStream> = (0..20).map(|_| UnixStream::connect(server.socket()).unwrap()).collect();
    // Two that begin and do not go on, in the head and in the body.
    let begun = [
        "POST /call HTTP/1.1\r\nHost: ru",
        "POST /call HTTP/1.1\r\nHost: runner\r\nContent-Length: 9\r\n\r\n{",
    ];
    let begun = begun.map(|text| {
        let mut stream = UnixStream::connect(server.socket()).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    });
    for _ in 0..4 {
        let mut stream = UnixStream::connect(server.socket()).unwrap();
        let body = json!({"source": "import time\ndef run(i):\n    time.sleep(1)", "inputs": 1}).to_string();
        let head = format!("POST /call HTTP/1.1\r\nHost: runner\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    }
    assert_eq!(server.call(&json!({"source": ADD, "inputs": {"n": 1}})).1["result"], 2);
    // The silent ones are shown the door.
    for mut stream in silent {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
    }
    let [head, body] = begun.map(|mut stream| {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    assert!(!head.contains(" 200 ") && body.starts_with("HTTP/1.1 408 "), "{head}\n{body}");
    let (_, metrics, _) = exchange(&server.socket(), "GET /metrics", "");
    assert!(metrics.as_str().unwrap().contains("runner_running 0\nrunner_waiting 0"), "{metrics}");
}

#[test]
fn closing_refuses_calls_and_ends_those_under_way() {
    let server = Server::start(8);
    let gate = Gate::open_in(server.folder.path(), &program()).unwrap();
    std::thread::scope(|scope| {
        let sleep = json!({"source": "import time\ndef run(i):\n    time.sleep(2.9)", "inputs": 1});
        let slow = scope.spawn({
            let server = &server;
            move || server.call(&sleep)
        });
        let running = || {
            exchange(&server.socket(), "GET /metrics", "").1.as_str().unwrap().contains("runner_running 1")
        };
        while !running() {}
        gate.close("a test closed it").unwrap();
        assert!(server.service.refresh().unwrap().contains("a test closed it"));
        let (status, answer, head) = slow.join().unwrap();
        assert_eq!((status, answer["type"].as_str()), (503, Some("python-closed")));
        assert!(head.to_lowercase().contains("retry-after"));
    });
    assert_eq!(server.call(&json!({"source": ADD, "inputs": 1})).1["type"], "python-closed");
    assert_eq!(exchange(&server.socket(), "GET /gate", "").1["state"], "closed");
}

#[test]
fn a_stop_waits_for_the_calls_under_way() {
    let mut server = Server::start(8);
    let socket = server.socket();
    let body =
        json!({"source": "import time\ndef run(i):\n    time.sleep(1)\n    return 'done'", "inputs": 1})
            .to_string();
    let slow = std::thread::spawn({
        let socket = socket.clone();
        move || exchange(&socket, "POST /call", &body)
    });
    while !exchange(&socket, "GET /metrics", "").1.as_str().unwrap().contains("runner_running 1") {}
    server.stop();
    assert_eq!(slow.join().unwrap().1["result"], "done");
    assert!(UnixStream::connect(socket).is_err());
}
