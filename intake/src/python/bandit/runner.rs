//! bandit as a runner has it: one `POST /lint` over the runner's Unix socket.
//!
//! The runner is trusted, and so is what it says about a failure; its answers are bounded all the same, because what
//! bandit says about a hostile file is long when the file wants it to be.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

/// Room for the headers of an answer.
const HEAD_BYTES: u64 = 16 << 10;

/// What the runner says when it has no answer.
#[derive(Deserialize)]
struct Problem {
    detail: String,
}

/// What bandit says about a source, or why that is not known.
pub(super) fn ask(socket: &Path, seconds: u64, source: &[u8]) -> Result<Vec<u8>, String> {
    let answer = exchange(socket, seconds, source).map_err(|error| {
        format!("the runner at {} could not be asked for bandit's answer: {error}", socket.display())
    })?;
    let (status, body) = parse(&answer).ok_or("the runner's answer about bandit is cut short")?;
    if status == 200 {
        return Ok(body.to_vec());
    }
    let why =
        serde_json::from_slice(body).map_or_else(|_| "no reason given".to_owned(), |p: Problem| p.detail);
    Err(format!("the runner has no answer of bandit ({status}): {why}"))
}

/// Sends the source and reads to the end of the answer. The runner keeps its own deadline; ours is for one that hangs.
fn exchange(socket: &Path, seconds: u64, source: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = UnixStream::connect(socket)?;
    // As long again, for the queue before it.
    let patience = Some(Duration::from_secs(seconds * 2));
    stream.set_read_timeout(patience)?;
    stream.set_write_timeout(patience)?;
    let length = source.len();
    write!(
        stream,
        "POST /lint HTTP/1.1\r\nHost: runner\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    )?;
    stream.write_all(source)?;
    let mut answer = Vec::new();
    stream.take(policy::lint().bandit.answer_bytes_max + HEAD_BYTES).read_to_end(&mut answer)?;
    Ok(answer)
}

/// Status and body of an answer that is complete.
fn parse(answer: &[u8]) -> Option<(u16, &[u8])> {
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n")?;
    let (head, body) = (std::str::from_utf8(answer.get(..end)?).ok()?, answer.get(end + 4..)?);
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    (length == Some(body.len())).then_some((status, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_complete_answer_counts() {
        let whole = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(parse(whole), Some((200, &b"{}"[..])));
        for bad in [
            &whole[..whole.len() - 1],
            b"HTTP/1.1 200 OK\r\n\r\n{}",
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n",
            b"HTTP/1.1 2",
            b"",
            b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n{}",
        ] {
            assert_eq!(parse(bad), None, "{}", String::from_utf8_lossy(bad));
        }
    }
}
