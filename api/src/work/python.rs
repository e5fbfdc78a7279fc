//! Whether Python is open, asked of the runner.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(5);
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Why Python is closed; `None` if it is open.
pub(crate) fn closed(data: &Path) -> Option<String> {
    let socket = data.join("runner.sock");
    let answer = match ask(&socket) {
        Ok(answer) => answer,
        Err(error) => return Some(format!("the runner does not answer ({error})")),
    };
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    match serde_json::from_str::<Value>(body) {
        Ok(gate) if gate["state"] == "open" => None,
        Ok(gate) => Some(gate["why"].as_str().unwrap_or("its gate is closed").to_owned()),
        Err(_) => Some("the runner's answer cannot be read".to_owned()),
    }
}

fn ask(socket: &Path) -> std::io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /gate HTTP/1.1\r\nHost: runner\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
    Ok(answer)
}
