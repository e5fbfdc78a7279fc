//! One request to a `runner serve` over its Unix socket, one bounded answer.
//!
//! Called by the gate for Python, which has a file linted, and by the smoke run, which has a function called. What an
//! answer means is theirs.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Room for the headers of an answer.
const HEAD_BYTES: u64 = 16 << 10;

/// Sends `body` to `path` and reads to the end of the answer.
pub(crate) fn post(
    socket: &Path,
    path: &str,
    body: &[u8],
    patience: Duration,
    answer_bytes_max: u64,
) -> std::io::Result<Vec<u8>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: runner\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    )?;
    stream.write_all(body)?;
    let mut answer = Vec::new();
    stream.take(answer_bytes_max + HEAD_BYTES).read_to_end(&mut answer)?;
    Ok(answer)
}

/// Status and body of an answer that is complete.
pub(crate) fn parse(answer: &[u8]) -> Option<(u16, &[u8])> {
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
