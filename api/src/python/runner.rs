//! The runner's socket: one source, one set of inputs, one answer.
//!
//! Called by [`super::http`] for published works; a review of a pending work calls it the same way, with the source
//! that waits for a decision. The runner confines, counts and queues; here its outcomes become answers or refusals.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use policy::limits;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::net::UnixStream;

use super::{Ending, Refusal};

/// The runner of an installation.
#[derive(Debug)]
pub struct Runner {
    socket: PathBuf,
}

#[derive(Serialize)]
struct Asked<'a> {
    source: &'a str,
    inputs: &'a RawValue,
}

#[derive(Deserialize)]
struct Report<'a> {
    outcome: String,
    message: String,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(rename = "type")]
    kind: Option<String>,
    text: Option<String>,
    line: Option<u64>,
}

#[derive(Deserialize)]
struct RunnerProblem {
    #[serde(rename = "type")]
    kind: String,
    detail: String,
}

type Error = Box<dyn std::error::Error + Send + Sync>;

impl Runner {
    /// The runner that listens there, or will.
    pub fn new(socket: &Path) -> Self {
        Self { socket: socket.to_owned() }
    }

    /// Calls a source with inputs that are known to be JSON. Calls of one `caller` wait for each other before those
    /// of others do.
    pub async fn call(&self, caller: &str, source: &str, inputs: &str) -> Result<String, Refusal> {
        let Ok(stream) = UnixStream::connect(&self.socket).await else {
            return Err(Refusal::Closed("Nothing runs Python functions at the moment.".to_owned()));
        };
        let most = Duration::from_secs(limits().api.call_seconds_max.into());
        let asked = tokio::time::timeout(most, exchange(stream, caller, source, inputs));
        let (status, body) = match asked.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                tracing::error!("the runner: {error}");
                return Err(Refusal::Failed);
            }
            Err(_) => return Err(Refusal::Busy),
        };
        if status == StatusCode::OK { ended(&body) } else { Err(refused(&body)) }
    }
}

async fn exchange(
    stream: UnixStream,
    caller: &str,
    source: &str,
    inputs: &str,
) -> Result<(StatusCode, Bytes), Error> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // Ends with the sender; how, the answer tells.
    tokio::spawn(connection);
    let asked = serde_json::to_string(&Asked { source, inputs: serde_json::from_str(inputs)? })?;
    let request = Request::post("/call")
        .header("host", "runner")
        .header("tinyfiles-caller", caller)
        .body(Full::<Bytes>::from(asked))?;
    let answer = sender.send_request(request).await?;
    let status = answer.status();
    let bytes_max = limits().api.runner_answer_bytes_max;
    Ok((status, Limited::new(answer.into_body(), bytes_max).collect().await?.to_bytes()))
}

/// What came of a call that ran.
fn ended(body: &[u8]) -> Result<String, Refusal> {
    let report: Report<'_> = serde_json::from_slice(body).map_err(|e| unreadable(&e))?;
    let how = match (report.outcome.as_str(), report.result) {
        ("ok", Some(result)) => return Ok(result.get().to_owned()),
        ("error", _) => {
            return Err(Refusal::Raised {
                kind: report.kind.unwrap_or_default(),
                message: report.text.unwrap_or_default(),
                line: report.line,
            });
        }
        ("closed", _) => return Err(Refusal::Closed(report.message)),
        ("timeout", _) => Ending::Timeout,
        ("memory", _) => Ending::Memory,
        ("processes", _) => Ending::Processes,
        ("output_limit", _) => Ending::Output,
        ("bad_answer", _) => Ending::BadAnswer,
        ("denied", _) => Ending::Denied,
        ("crash", _) => Ending::Crash,
        (outcome, _) => {
            tracing::error!("the runner: an unknown outcome {outcome:?}");
            return Err(Refusal::Failed);
        }
    };
    Err(Refusal::Ended { how, sentence: report.message })
}

/// What the runner refused.
fn refused(body: &[u8]) -> Refusal {
    match serde_json::from_slice::<RunnerProblem>(body) {
        Ok(problem) => match problem.kind.as_str() {
            "python-closed" => Refusal::Closed(problem.detail),
            "python-busy" => Refusal::Busy,
            kind => {
                tracing::error!("the runner refused: {kind}");
                Refusal::Failed
            }
        },
        Err(error) => unreadable(&error),
    }
}

fn unreadable(error: &serde_json::Error) -> Refusal {
    // The error names a place, never what stands there.
    tracing::error!("the runner: an unreadable answer, {:?} at byte {}", error.classify(), error.column());
    Refusal::Failed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_becomes_an_answer_or_a_refusal() {
        let of = |body: &str| ended(body.as_bytes());
        let result = r#"{"roll": 1.0e2, "z": [ ]}"#;
        let ok = format!(r#"{{"outcome":"ok","message":"m","wall_us":3,"result":{result}}}"#);
        assert_eq!(of(&ok), Ok(result.to_owned()), "as the function gave it");
        let raised =
            r#"{"outcome":"error","message":"m","type":"KeyError","text":"'x'","line":4,"frames":[]}"#;
        let expected = Refusal::Raised { kind: "KeyError".into(), message: "'x'".into(), line: Some(4) };
        assert_eq!(of(raised), Err(expected));
        for (outcome, how) in [
            ("timeout", Ending::Timeout),
            ("memory", Ending::Memory),
            ("processes", Ending::Processes),
            ("output_limit", Ending::Output),
            ("bad_answer", Ending::BadAnswer),
            ("denied", Ending::Denied),
            ("crash", Ending::Crash),
        ] {
            let body = format!(r#"{{"outcome":"{outcome}","message":"m"}}"#);
            assert_eq!(of(&body), Err(Refusal::Ended { how, sentence: "m".into() }), "{outcome}");
        }
        assert_eq!(of(r#"{"outcome":"closed","message":"m"}"#), Err(Refusal::Closed("m".into())));
        for bad in ["", "{}", r#"{"outcome":"new","message":"m"}"#, r#"{"outcome":"ok","message":"m"}"#] {
            assert_eq!(of(bad), Err(Refusal::Failed), "{bad}");
        }
        assert_eq!(refused(br#"{"type":"python-busy","status":503,"detail":"d"}"#), Refusal::Busy);
        assert_eq!(refused(br#"{"type":"bad-request","status":400,"detail":"d"}"#), Refusal::Failed);
    }
}
