//! The runner as a service: HTTP/1.1 over a Unix socket, for `api` and nobody else.
//!
//! `POST /call` runs one call, under limits that may be lower than the policy's, `POST /lint` has bandit read a
//! function's file, `GET /gate` says whether Python is open, `GET /metrics` counts. Requests are parsed on one thread;
//! each call runs on a thread of its own, because it waits for a child. Takes a listener and a shutdown, so that a test
//! can bring both. It knows no creators and no works: a caller is a name in a header.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::convert::Infallible;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full as FullBody};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::cache::Cache;
use crate::gate::{Gate, State};
use crate::limits::{Limits, Lower};
use crate::outcome::Outcome;
use crate::queue::{Queue, Sizes};
use crate::supervisor::{Call, Report, Supervisor};

/// The largest request body: a source and inputs, escaped.
const BODY_BYTES_MAX: usize = 262_144;
/// Connections at once; more wait in the socket's backlog.
const CONNECTIONS_MAX: usize = 128;
/// How long a client may take to send its headers, and then its body.
const PATIENCE: Duration = Duration::from_secs(5);
/// Sources kept by digest.
const SOURCES_MAX: usize = 512;
/// One call in this many is looked at from outside.
const SAMPLE: u64 = 64;
/// What a refused client is told to wait.
const RETRY_SECONDS: u32 = 1;

/// The name of the header by which the caller tells for whom it calls.
const CALLER: &str = "tinyfiles-caller";

/// Everything that connections share.
#[derive(Debug)]
pub struct Service {
    supervisor: Supervisor,
    /// The one whose zygote holds bandit, or why there is none.
    linter: Result<Supervisor, String>,
    gate: Gate,
    /// Why Python is closed; `None` while it is open.
    closed: Mutex<Option<String>>,
    queue: Queue,
    sources: Mutex<Sources>,
    calls: AtomicU64,
    lints: AtomicU64,
    refused: AtomicU64,
    outcomes: Mutex<BTreeMap<&'static str, u64>>,
}

#[derive(Debug, Default)]
struct Sources {
    by_digest: HashMap<String, Arc<[u8]>>,
    order: VecDeque<String>,
}

/// An answer that is not a call's outcome.
struct Problem {
    status: StatusCode,
    kind: &'static str,
    detail: String,
}

type Answer = Response<FullBody<Bytes>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    #[serde(default)]
    source: Option<String>,
    #[serde(default)]
    digest: Option<String>,
    inputs: Box<RawValue>,
    #[serde(default)]
    limits: Lower,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Service {
    /// A service that is closed until [`Service::refresh`] finds a proof.
    pub fn new(
        supervisor: Supervisor,
        linter: Result<Supervisor, String>,
        gate: Gate,
        sizes: Sizes,
    ) -> Service {
        Service {
            supervisor,
            linter,
            gate,
            closed: Mutex::new(Some("the suite has not run yet".to_owned())),
            queue: Queue::new(sizes),
            sources: Mutex::default(),
            calls: AtomicU64::new(0),
            lints: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            outcomes: Mutex::default(),
        }
    }

    /// Reads the gate's history anew. Returns why Python is closed, if it is; closing ends the calls under way.
    pub fn refresh(&self) -> Option<String> {
        let why = match self.gate.state() {
            Ok(State::Open(_)) => None,
            Ok(State::Closed(why)) => Some(why),
            Err(e) => Some(format!("the gate's history cannot be read: {e}")),
        };
        lock(&self.closed).clone_from(&why);
        // What the status page says is no decision: closed and open are what this process answers.
        let _ = self.gate.publish();
        if why.is_some() {
            self.end_calls();
        }
        why
    }

    /// Closes Python for a reason found while it ran.
    fn close(&self, why: &str) {
        *lock(&self.closed) = Some(why.to_owned());
        // Closed in memory whether or not it can be written down.
        let _ = self.gate.close(why);
        self.end_calls();
    }

    fn end_calls(&self) {
        self.supervisor.end_calls();
        if let Ok(linter) = &self.linter {
            linter.end_calls();
        }
    }

    fn closed(&self) -> Option<String> {
        lock(&self.closed).clone()
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Answer {
        let result = match (request.method(), request.uri().path()) {
            (&Method::POST, "/call") => Arc::clone(&self).call(request).await,
            (&Method::POST, "/lint") => Arc::clone(&self).lint(request).await,
            (&Method::GET, "/gate") => Ok(json_answer(StatusCode::OK, self.gate_report().to_string())),
            (&Method::GET, "/metrics") => Ok(text_answer(self.metrics())),
            (_, "/call" | "/lint" | "/gate" | "/metrics") => {
                Err(problem(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "another method is needed"))
            }
            _ => Err(problem(
                StatusCode::NOT_FOUND,
                "not-found",
                "POST /call, POST /lint, GET /gate, GET /metrics",
            )),
        };
        result.unwrap_or_else(|p| {
            self.refused.fetch_add(1, Ordering::Relaxed);
            p.into_answer()
        })
    }

    async fn call(self: Arc<Self>, request: Request<Incoming>) -> Result<Answer, Problem> {
        if let Some(why) = self.closed() {
            return Err(closed(&why));
        }
        let (caller, body) = read_request(request).await?;
        let asked: Asked = serde_json::from_slice(&body)
            .map_err(|e| problem(StatusCode::BAD_REQUEST, "bad-request", &e.to_string()))?;
        let source = self.source(&asked)?;
        let limits = Limits::lowered(asked.limits)
            .map_err(|e| problem(StatusCode::UNPROCESSABLE_ENTITY, "limit-out-of-range", &e.to_string()))?;
        let service = Arc::clone(&self);
        let run = move || service.run(&source, asked.inputs.get().as_bytes(), limits);
        self.in_turn(&caller, run).await
    }

    /// The body is the file itself; the answer is bandit's own, or an error, which is not an answer without findings.
    async fn lint(self: Arc<Self>, request: Request<Incoming>) -> Result<Answer, Problem> {
        if let Some(why) = self.closed() {
            return Err(closed(&why));
        }
        let (caller, source) = read_request(request).await?;
        let service = Arc::clone(&self);
        self.in_turn(&caller, move || service.run_lint(&source)).await
    }

    /// Does `work` on a thread that may wait, when it is this caller's turn.
    async fn in_turn<W>(&self, caller: &str, work: W) -> Result<Answer, Problem>
    where
        W: FnOnce() -> Result<Answer, Problem> + Send + 'static,
    {
        let turn = self.queue.enter(caller).await;
        let turn =
            turn.map_err(|_| problem(StatusCode::SERVICE_UNAVAILABLE, "python-busy", "the queue is full"))?;
        // The turn goes along: a client that hangs up does not make room before its call has ended.
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(turn);
            done
        });
        done.await.map_err(|e| problem(StatusCode::INTERNAL_SERVER_ERROR, "internal", &e.to_string()))?
    }

    /// The source that a request brings or names.
    fn source(&self, asked: &Asked) -> Result<Arc<[u8]>, Problem> {
        let mut sources = lock(&self.sources);
        match (&asked.source, &asked.digest) {
            (Some(source), None) => {
                let source: Arc<[u8]> = source.as_bytes().into();
                let digest = Cache::digest(&source).iter().fold(String::new(), |mut hex, byte| {
                    // Writing to a string cannot fail.
                    let _ = write!(hex, "{byte:02x}");
                    hex
                });
                if sources.by_digest.insert(digest.clone(), Arc::clone(&source)).is_none() {
                    sources.order.push_back(digest);
                }
                while sources.order.len() > SOURCES_MAX {
                    if let Some(oldest) = sources.order.pop_front() {
                        sources.by_digest.remove(&oldest);
                    }
                }
                Ok(source)
            }
            (None, Some(digest)) => sources.by_digest.get(digest).map(Arc::clone).ok_or_else(|| {
                problem(
                    StatusCode::NOT_FOUND,
                    "unknown-digest",
                    "send the source once; then its digest will do",
                )
            }),
            _ => Err(problem(StatusCode::BAD_REQUEST, "bad-request", "either `source` or `digest`")),
        }
    }

    /// One call, on a thread that may wait.
    fn run(&self, source: &[u8], inputs: &[u8], limits: Limits) -> Result<Answer, Problem> {
        if let Some(why) = self.closed() {
            return Err(closed(&why));
        }
        let inspect = self.calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(SAMPLE);
        let report = match self.supervisor.call(&Call { limits, inspect, ..Call::new(source, inputs) }) {
            Ok(report) => report,
            Err(e) => {
                // A child that cannot be confined, or is not, is a hole until the suite has shown otherwise.
                self.close(&e.to_string());
                return Err(closed(&e.to_string()));
            }
        };
        if let Some(why) = self.closed() {
            return Err(closed(&why));
        }
        *lock(&self.outcomes).entry(report.outcome.name()).or_default() += 1;
        Ok(json_answer(StatusCode::OK, render(&report, &limits)))
    }

    fn run_lint(&self, source: &[u8]) -> Result<Answer, Problem> {
        let failed = |status, why: &str| Err(problem(status, "lint-failed", &format!("bandit: {why}")));
        let linter = match &self.linter {
            Ok(linter) => linter,
            Err(why) => return failed(StatusCode::SERVICE_UNAVAILABLE, why),
        };
        let inspect = self.calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(SAMPLE);
        let report = match linter.lint(&Call { inspect, ..Call::to_lint(source) }) {
            Ok(report) => report,
            Err(e) => {
                self.close(&e.to_string());
                return Err(closed(&e.to_string()));
            }
        };
        if let Some(why) = self.closed() {
            return Err(closed(&why));
        }
        self.lints.fetch_add(1, Ordering::Relaxed);
        match report.outcome {
            Outcome::Ok(findings) => Ok(json_answer(StatusCode::OK, findings)),
            other => {
                failed(StatusCode::INTERNAL_SERVER_ERROR, &format!("{}: {}", other.name(), other.sentence()))
            }
        }
    }

    fn gate_report(&self) -> Value {
        let mut report =
            json!({"state": if self.closed().is_none() { "open" } else { "closed" }, "why": self.closed()});
        if let (Value::Object(report), Ok(Value::Object(subject))) =
            (&mut report, serde_json::to_value(self.gate.subject()))
        {
            report.extend(subject);
        }
        let last = self.gate.history().unwrap_or_default().pop();
        report["last_run"] = serde_json::to_value(last).unwrap_or(Value::Null);
        report
    }

    fn metrics(&self) -> String {
        let (running, waiting) = self.queue.lengths();
        let mut text = format!(
            "runner_open {}\nrunner_running {running}\nrunner_waiting {waiting}\nrunner_refused_total {}\n\
             runner_zygote_restarts_total {}\nrunner_lints_total {}\n",
            u8::from(self.closed().is_none()),
            self.refused.load(Ordering::Relaxed),
            self.supervisor.restarts() + self.linter.as_ref().map_or(0, Supervisor::restarts),
            self.lints.load(Ordering::Relaxed),
        );
        for (outcome, count) in &*lock(&self.outcomes) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "runner_calls_total{{outcome=\"{outcome}\"}} {count}");
        }
        text
    }
}

/// For whom a request comes, and its body.
async fn read_request(request: Request<Incoming>) -> Result<(String, Vec<u8>), Problem> {
    let caller = request.headers().get(CALLER).and_then(|v| v.to_str().ok()).unwrap_or("").to_owned();
    let body = tokio::time::timeout(PATIENCE, read_body(request.into_body())).await;
    let slow = |_| problem(StatusCode::REQUEST_TIMEOUT, "slow-request", "the body did not come in time");
    Ok((caller, body.map_err(slow)??))
}

/// Reads a body. One that is too large is read to a multiple of the limit and thrown away, so that its sender, who is
/// still writing, gets to see the answer.
async fn read_body(mut body: Incoming) -> Result<Vec<u8>, Problem> {
    const PATIENT_BYTES_MAX: usize = BODY_BYTES_MAX * 16;
    let (mut bytes, mut total) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| problem(StatusCode::BAD_REQUEST, "bad-request", &e.to_string()))?;
        let Ok(data) = frame.into_data() else { continue };
        total += data.len();
        if total > PATIENT_BYTES_MAX {
            break;
        }
        if total <= BODY_BYTES_MAX {
            bytes.extend_from_slice(&data);
        }
    }
    if total > BODY_BYTES_MAX {
        return Err(problem(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "the body is too large"));
    }
    Ok(bytes)
}

/// A report as JSON, with the result as the function gave it.
fn render(report: &Report, limits: &Limits) -> String {
    let mut object = report.outcome.to_json();
    if let Value::Object(object) = &mut object {
        object.insert("message".into(), report.outcome.sentence_under(limits).into());
        object.insert("printed".into(), String::from_utf8_lossy(&report.printed).into());
        object.insert("errors".into(), String::from_utf8_lossy(&report.errors).into());
        object.insert("wall_us".into(), u64::try_from(report.wall.as_micros()).unwrap_or(u64::MAX).into());
        object.insert("cpu_us".into(), u64::try_from(report.cpu.as_micros()).unwrap_or(u64::MAX).into());
        object.insert("memory_peak_bytes".into(), report.memory_peak_bytes.into());
    }
    let mut text = object.to_string();
    if let Outcome::Ok(result) = &report.outcome {
        text.pop();
        text.push_str(",\"result\":");
        text.push_str(result);
        text.push('}');
    }
    text
}

fn problem(status: StatusCode, kind: &'static str, detail: &str) -> Problem {
    Problem { status, kind, detail: detail.to_owned() }
}

fn closed(why: &str) -> Problem {
    problem(StatusCode::SERVICE_UNAVAILABLE, "python-closed", why)
}

impl Problem {
    fn into_answer(self) -> Answer {
        let body = json!({"type": self.kind, "status": self.status.as_u16(), "detail": self.detail});
        let mut answer = json_answer(self.status, body.to_string());
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
        }
        answer
    }
}

fn json_answer(status: StatusCode, body: String) -> Answer {
    let mut answer = Response::new(FullBody::from(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn text_answer(body: String) -> Answer {
    let mut answer = Response::new(FullBody::from(body));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; version=0.0.4"));
    answer
}

/// Serves `listener` until `shutdown`; then takes no more connections and waits for the calls under way.
pub async fn run(service: Arc<Service>, listener: UnixListener, shutdown: impl Future<Output = ()>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let (stop, stopped) = tokio::sync::watch::channel(());
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        let place = tokio::select! {
            place = Arc::clone(&places).acquire_owned() => place,
            () = &mut shutdown => break,
        };
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                // A client that is gone before it was met, or no descriptor left: the next one may do better.
                Err(_) => { tokio::task::yield_now().await; continue }
            },
            () = &mut shutdown => break,
        };
        while connections.try_join_next().is_some() {}
        let (service, stopped) = (Arc::clone(&service), stopped.clone());
        connections.spawn(async move {
            connection(service, stream, stopped).await;
            drop(place);
        });
    }
    drop(listener);
    drop(stop);
    let most = Duration::from_secs(u64::from(policy::limits().python.wall_seconds_max) + 2);
    // What has not ended by then is ended by the supervisor's drop.
    let _ = tokio::time::timeout(most, async { while connections.join_next().await.is_some() {} }).await;
}

async fn connection(
    service: Arc<Service>,
    stream: UnixStream,
    mut stopped: tokio::sync::watch::Receiver<()>,
) {
    let answer = service_fn(move |request| {
        let service = Arc::clone(&service);
        async move { Ok::<_, Infallible>(service.answer(request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(16_384);
    let connection = builder.serve_connection(TokioIo::new(stream), answer);
    tokio::pin!(connection);
    tokio::select! {
        // How a connection ends is the client's affair.
        _ = connection.as_mut() => return,
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
