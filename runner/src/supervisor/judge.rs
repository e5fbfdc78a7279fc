//! How a call ended: what the host saw counts first, what the child claims last.

use super::RunError;
use super::watch::{Stop, Watched};
use crate::confine::cgroup::Counters;
use crate::confine::seccomp as filters;
use crate::json;
use crate::outcome::{Crash, Outcome};
use crate::sys::process::Ended;
use crate::wire::Reply;

/// How a call ended: first what the host saw, last what the child says.
pub(super) fn judge(
    stop: Stop,
    ended: Ended,
    compiling: bool,
    [before, after]: [Counters; 2],
    watched: &Watched,
) -> Result<(Outcome, Option<Vec<u8>>), RunError> {
    let out_of_memory = after.memory_kills > before.memory_kills;
    let outcome = match (stop, ended) {
        (Stop::Flood(stream), _) => Outcome::OutputLimit(stream),
        (Stop::Denied(number), _) => Outcome::Denied { call: Some(call_name(number)) },
        (_, Ended::Killed(libc::SIGSYS)) => Outcome::Denied { call: None },
        (_, Ended::Killed(_)) if out_of_memory => Outcome::Memory,
        (Stop::Late, _) => Outcome::Timeout,
        _ if watched.hello.is_none() => return Err(RunError::Silent),
        (Stop::Ended, Ended::Killed(signal)) => Outcome::Crash(Crash::Signal(signal)),
        (Stop::Ended, Ended::Exited(0)) => {
            let refused = after.processes_refused > before.processes_refused;
            return Ok(believe(watched, compiling, refused));
        }
        (Stop::Ended, Ended::Exited(status)) => Outcome::Crash(Crash::Exit(status)),
    };
    Ok((outcome, None))
}

fn call_name(number: i32) -> String {
    let known = u32::try_from(number).ok().and_then(filters::name);
    known.map_or_else(|| format!("number {number}"), str::to_owned)
}

/// What a child that ended cleanly claims.
fn believe(watched: &Watched, compiling: bool, processes_refused: bool) -> (Outcome, Option<Vec<u8>>) {
    let bad = |path: &str, why: String| Outcome::BadAnswer { path: path.to_owned(), why };
    if watched.received.is_empty() {
        return (Outcome::Crash(Crash::Exit(0)), None);
    }
    let outcome = match Reply::parse(&watched.received) {
        Err(e) => bad("$", e.to_string()),
        Ok(Reply::Compiled(code)) if compiling => return (Outcome::Ok(String::new()), Some(code)),
        Ok(Reply::Compiled(_)) => bad("$", "compiled code is no answer".to_owned()),
        Ok(Reply::BadAnswer { path, why }) => bad(&path, why),
        Ok(Reply::Raised(raised)) if raised.kind == "MemoryError" => Outcome::Memory,
        Ok(Reply::Raised(_)) if processes_refused => Outcome::Processes,
        Ok(Reply::Raised(raised)) => Outcome::Error(raised),
        Ok(Reply::Answer(answer)) => {
            let most = watched.answer_bytes_max;
            match json::check(&answer, policy::limits().python.json_depth_max) {
                _ if answer.len() > most => bad("$", format!("more than {most} bytes")),
                Ok(text) => Outcome::Ok(text.to_owned()),
                Err(e) => bad(&e.path(), e.why),
            }
        }
    };
    (outcome, None)
}
