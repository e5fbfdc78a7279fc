//! HTTP/1.1 in bytes: one request on a connection of its own, the answer taken apart.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// How long a server may stay silent.
const SILENCE_SECONDS_MAX: u64 = 20;

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The header fields in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as sent.
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a header that must not come twice.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_str());
        let value = values.next();
        assert_eq!(values.next(), None, "two {name} headers");
        value
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Gets a path.
pub fn get(port: u16, host: &str, path: &str) -> Result<Answer> {
    with(port, host, "GET", path, &[])
}

/// Sends a request with further header fields.
pub fn with(port: u16, host: &str, method: &str, path: &str, headers: &[(&str, &str)]) -> Result<Answer> {
    let extra: String = headers.iter().map(|(n, v)| format!("{n}: {v}\r\n")).collect();
    raw(
        port,
        format!("{method} {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n{extra}\r\n")
            .as_bytes(),
    )
}

/// Sends bytes and reads the answer up to the end of the connection.
pub fn raw(port: u16, request: &[u8]) -> Result<Answer> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(SILENCE_SECONDS_MAX)))?;
    stream.write_all(request)?;
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        // A server that did not want the rest of a request may answer and hang up.
        Err(e) if bytes.is_empty() || e.kind() != std::io::ErrorKind::ConnectionReset => return Err(e.into()),
        _ => parse(&bytes),
    }
}

/// Takes an answer apart.
pub fn parse(bytes: &[u8]) -> Result<Answer> {
    let end =
        bytes.windows(4).position(|w| w == b"\r\n\r\n").context("an answer without an end of its headers")?;
    let head = std::str::from_utf8(&bytes[..end])?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|l| l.split(' ').nth(1)?.parse().ok()).context("no status line")?;
    let mut headers = Vec::new();
    for line in lines {
        let Some((name, value)) = line.split_once(": ") else { bail!("not a header: {line:?}") };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let body = bytes[end + 4..].to_vec();
    let chunked = headers.iter().any(|(n, v)| n == "transfer-encoding" && v == "chunked");
    Ok(Answer { status, headers, body: if chunked { unchunk(&body)? } else { body } })
}

fn unchunk(mut rest: &[u8]) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|w| w == b"\r\n").context("a chunk without a size")?;
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line])?, 16)?;
        let start = line + 2;
        if size == 0 {
            return Ok(body);
        }
        body.extend_from_slice(rest.get(start..start + size).context("a chunk that is cut off")?);
        rest = &rest[start + size + 2..];
    }
}
