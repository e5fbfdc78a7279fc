//! A client that speaks HTTP/1.1 in bytes, so that a test can say what no library would.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

/// One connection.
pub(crate) struct Client {
    stream: UnixStream,
    read: Vec<u8>,
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// A header that comes at most once.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_str());
        let value = values.next();
        assert_eq!(values.next(), None, "two {name} headers");
        value
    }

    pub(crate) fn tag(&self) -> String {
        self.header("etag").unwrap_or_else(|| panic!("no tag: {self:?}")).to_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The name of the problem it is, which must be well formed.
    pub(crate) fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let body = self.json();
        assert_eq!(body["status"], self.status, "{self:?}");
        assert!(!body["title"].as_str().unwrap().is_empty());
        body["type"].as_str().unwrap().strip_prefix("/problems.html#").unwrap().to_owned()
    }
}

impl Client {
    pub(crate) fn connect(socket: &Path) -> Self {
        Self::try_connect(socket).unwrap()
    }

    pub(crate) fn try_connect(socket: &Path) -> std::io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        // A server that hangs is a failure, not a wait.
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self { stream, read: Vec::new() })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        // A server may have answered and hung up in the middle.
        let _ = self.stream.write_all(bytes);
    }

    pub(crate) fn no_more(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    pub(crate) fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        self.try_request(method, path, headers, body).unwrap_or_else(|e| panic!("{method} {path}: {e}"))
    }

    pub(crate) fn try_request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Answer> {
        self.ask(method, path, headers, body);
        self.answer(method == "HEAD")
    }

    /// Sends a request and does not wait.
    pub(crate) fn ask(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: api\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() || ["PUT", "POST"].contains(&method) {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        self.send(&[head.as_bytes(), body].concat());
    }

    /// Reads one answer.
    pub(crate) fn answer(&mut self, is_head: bool) -> std::io::Result<Answer> {
        let end = loop {
            if let Some(at) = self.read.windows(4).position(|w| w == b"\r\n\r\n") {
                break at;
            }
            self.more()?;
        };
        let head = String::from_utf8(self.read[..end].to_vec()).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let field = |line: &str| {
            let (name, value) = line.split_once(": ").unwrap_or_else(|| panic!("{line:?}"));
            (name.to_lowercase(), value.to_owned())
        };
        let headers: Vec<_> = lines.map(field).collect();
        let length =
            headers.iter().find(|(n, _)| n == "content-length").map_or(0, |(_, v)| v.parse().unwrap());
        let length: usize = if is_head || status == 204 { 0 } else { length };
        while self.read.len() < end + 4 + length {
            self.more()?;
        }
        let body = self.read[end + 4..end + 4 + length].to_vec();
        self.read.drain(..end + 4 + length);
        Ok(Answer { status, headers, body })
    }

    /// Whether the server has closed the connection, having said nothing more.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.read.is_empty() && self.more().is_err()
    }

    fn more(&mut self) -> std::io::Result<()> {
        let mut buffer = [0; 8192];
        match self.stream.read(&mut buffer)? {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.read.extend_from_slice(&buffer[..read]);
                Ok(())
            }
        }
    }
}

/// The address of a save that no other test uses.
pub(crate) fn save(number: u64) -> String {
    format!("/api/saves/{number:064x}")
}

pub(crate) const NEW: (&str, &str) = ("If-None-Match", "*");
pub(crate) const BYTES: (&str, &str) = ("Content-Type", "application/octet-stream");
pub(crate) const JSON: (&str, &str) = ("Content-Type", "application/json");
